"""Runs a job as a Hydra application, and turns every mistake into one error and exit status 2.

Hydra refuses unknown keys by itself, but says neither what is near nor what is allowed; the command
line is therefore looked at first, and every job of a sweep is composed and checked before any is
played. Relative paths are seen from where the command was given, whatever `hydra.job.chdir` says.
This is the only file that imports Hydra.
"""

from __future__ import annotations

import difflib
import errno
import os
import sys
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any

import hydra
from hydra._internal.core_plugins.basic_sweeper import BasicSweeper
from hydra.core.config_store import ConfigStore
from hydra.core.global_hydra import GlobalHydra
from hydra.core.hydra_config import HydraConfig
from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.core.override_parser.types import ChoiceSweep, Override
from hydra.errors import HydraException
from hydra.types import RunMode
from omegaconf import DictConfig, OmegaConf
from omegaconf.errors import MissingMandatoryValue, OmegaConfBaseException

from amemgym_env.errors import ConfigError, InputError, RunError, near
from amemgym_env.models.redaction import redacted
from experiments.app import sweep
from experiments.app.settings import CONF

Job = Callable[[dict[str, Any]], Any]
Swept = Callable[[dict[str, Any], sweep.Place], float]

MOST_CHECKED = 500
"""Jobs of a sweep that are checked before the first is played."""
EXTRAS = {"joblib": "sweep", "ray": "ray"}
"""The extra that installs a launcher."""


def run(
    name: str,
    job: Job,
    groups: tuple[str, ...] = (),
    *,
    check: Job | None = None,
    swept: Swept | None = None,
) -> None:
    """Run a job with the settings of `conf/<name>.yaml` and the command line, then exit on errors.

    `groups` are the folders of conf/ whose files may be chosen. The job gets the composed settings
    as plain data; its return value is the objective of a sweep. `check` raises for settings that
    the job would refuse. `swept` plays one job of a sweep (`-m`); without it `job` does.
    """
    folder: Path | None = None
    try:
        overrides = _check(name, sys.argv[1:], groups)
        if _several(sys.argv[1:], overrides):
            jobs = _jobs(name, overrides, check)
            if swept is not None:
                folder = sweep.begin(_out(overrides), name, jobs)
                sys.argv.append(f"hydra.sweep.dir={_quoted(str(folder))}")
            sys.argv += _launcher_settings(overrides)
    except InputError as error:
        fail(error)

    def task(config: DictConfig) -> Any:
        here = os.getcwd()
        os.chdir(HydraConfig.get().runtime.cwd)
        try:
            plain = OmegaConf.to_container(config, resolve=True, throw_on_missing=True)
            assert isinstance(plain, dict)
            if swept is not None and is_sweep():
                return swept(plain, _place())  # type: ignore[arg-type]
            return job(plain)  # type: ignore[arg-type]
        except InputError as error:
            fail(error)
        except MissingMandatoryValue as error:
            fail(ConfigError(f"{error.full_key}: expected a value, found none"))
        except OmegaConfBaseException as error:
            fail(ConfigError(_first_line(error)))
        except KeyboardInterrupt as error:
            if not getattr(error, "told", False):
                print("interrupted; what is written stays", file=sys.stderr)
            sys.exit(130)  # as shells say it
        except OSError as error:
            if error.filename is None and error.errno != errno.ENOSPC:
                raise
            what = redacted(f"{error.filename or 'the disk'}: {error.strerror}")
            fail(RunError(f"{what}; expected a path that can be used; what is written stays"))
        except Exception:
            said = traceback.format_exc()
            if redacted(said) == said:
                raise
            print(redacted(said), file=sys.stderr)  # Hydra would print it with the keys
            sys.exit(1)
        finally:
            os.chdir(here)

    try:
        hydra.main(version_base="1.3", config_path=str(CONF), config_name=name)(task)()
    finally:
        status = 0 if folder is None else sweep.finish(folder)
    if status:
        sys.exit(status)


def fail(error: InputError) -> None:
    """Print one error and leave with exit status 2."""
    print(f"error: {error}", file=sys.stderr)
    sys.exit(2)


def is_sweep() -> bool:
    """Whether the present job is one of several (`-m`)."""
    return HydraConfig.initialized() and HydraConfig.get().mode is RunMode.MULTIRUN


def compose(name: str, words: Sequence[str] = ()) -> dict[str, Any]:
    """Return the settings of `conf/<name>.yaml` with some words of a command line, as plain data.

    Raises:
        ConfigError: the words do not fit.
    """
    try:
        with _initialized():
            config = hydra.compose(name, overrides=list(words))
        plain = OmegaConf.to_container(config, resolve=True, throw_on_missing=True)
    except (HydraException, OmegaConfBaseException) as error:
        raise ConfigError(f"{' '.join(words)}: {_first_line(error)}") from error
    assert isinstance(plain, dict)
    return plain  # type: ignore[return-value]


def _initialized() -> AbstractContextManager[Any]:
    """Return a context in which settings can be composed: within a job, the job's own."""
    if GlobalHydra.instance().is_initialized():
        return nullcontext()
    return hydra.initialize_config_dir(str(CONF), version_base="1.3")


def _place() -> sweep.Place:
    config = HydraConfig.get()
    launcher = str(config.launcher._target_).rpartition(".")[2]
    words = tuple(str(word) for word in config.overrides.task)
    return sweep.Place(Path(config.sweep.dir), int(config.job.num), words, launcher)


def _several(arguments: Sequence[str], overrides: Sequence[Override]) -> bool:
    return bool({"-m", "--multirun"} & set(arguments)) or any(
        override.key_or_group == "hydra.mode" and str(override.value()) == "MULTIRUN"
        for override in overrides
    )


def _out(overrides: Sequence[Override]) -> str | None:
    given = [override for override in overrides if override.key_or_group == "out"]
    if given and given[-1].is_sweep_override():
        raise ConfigError(f"{given[-1].input_line}: expected one folder for the whole sweep")
    value = given[-1].value() if given else None
    return None if value is None else str(value)


def _jobs(name: str, overrides: Sequence[Override], check: Job | None) -> list[list[str]]:
    """Return the words of every job (none for another sweeper); refuse all wrong ones at once."""
    if any(override.key_or_group == "hydra/sweeper" for override in overrides):
        return []
    own = [override for override in overrides if not override.key_or_group.startswith("hydra")]
    try:
        jobs: list[list[str]] = BasicSweeper.split_arguments(list(own), None)[0]
    except HydraException as error:
        raise ConfigError(
            f"{_first_line(error)}: expected values with commas, or range()"
        ) from error
    problems = []
    for words in jobs[:MOST_CHECKED]:
        try:
            plain = compose(name, words)
            if check is not None:
                check(plain)
        except InputError as error:
            said = str(error).splitlines()[-1].strip(" -").removeprefix(f"{' '.join(words)}: ")
            problems.append(f"  - {' '.join(words)}: {said}")
    if problems:
        raise ConfigError(
            f"{len(problems)} of {len(jobs)} jobs are wrong; nothing was played\n"
            + "\n".join(problems)
        )
    return jobs


def _launcher_settings(overrides: Sequence[Override]) -> list[str]:
    """Return what a launcher needs to be quiet: Ray phones home and opens a web server."""
    given = {override.key_or_group: override.value() for override in overrides}
    key = "hydra.launcher.ray.init.include_dashboard"
    if given.get("hydra/launcher") != "ray" or key in given:
        return []
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    return [f"++{key}=false"]


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace("'", "\\'").replace("${", "\\${")
    return f"'{escaped}'"


def _first_line(error: Exception) -> str:
    return str(error).strip().splitlines()[0]


def _check(name: str, arguments: list[str], groups: tuple[str, ...]) -> list[Override]:
    """Return the overrides; refuse unknown keys and choices, naming the nearest ones."""
    words = [word for word in arguments if "=" in word and not word.startswith("-")]
    try:
        overrides = OverridesParser.create().parse_overrides(words)
    except HydraException as error:
        raise ConfigError(
            f"cannot read the command line: {_first_line(error)}; put text with commas, "
            "brackets or spaces in quotes inside quotes: \"key='a, b'\""
        ) from error
    several = _several(arguments, overrides)
    chosen = []
    for override in overrides:
        if override.is_sweep_override() and not several:
            raise ConfigError(
                f"{override.input_line}: several values; add -m for one run each, or put text with "
                "commas in quotes inside quotes: \"key='a, b'\""
            )
        own = not override.key_or_group.startswith("hydra")
        if own and (override.is_add() or override.is_delete()):
            raise ConfigError(f"{override.input_line}: settings are closed; expected key=value")
        if override.key_or_group in groups:
            for choice in _choices(override):
                _check_choice(override.key_or_group, str(choice))
            chosen.append(f"{override.key_or_group}={next(iter(_choices(override)))}")
    with hydra.initialize_config_dir(str(CONF), version_base="1.3"):
        for override in overrides:
            if override.key_or_group in ("hydra/launcher", "hydra/sweeper"):
                _check_plugin(override.key_or_group, str(override.value()))
        config = hydra.compose(name, overrides=chosen)
    known = sorted(_keys(OmegaConf.to_container(config)))
    for override in overrides:
        key = override.key_or_group
        if key in groups or key in known or key.startswith("hydra"):
            continue
        if any(key.startswith(f"{group}.") for group in groups) and _in_any_choice(key):
            continue
        alike = difflib.get_close_matches(key, sorted({*known, *groups}), n=3, cutoff=0.5)
        raise ConfigError(
            f"{key}: unknown setting; nearest: {', '.join(alike) or 'none'}; "
            f"all: {', '.join(part for part in known if '.' not in part)}"
        )
    return overrides


def _choices(override: Override) -> Iterator[Any]:
    value = override.value()
    if isinstance(value, ChoiceSweep):
        yield from value.list
    else:
        yield value


def _check_plugin(group: str, choice: str) -> None:
    """Refuse a launcher or sweeper that is not installed; Hydra's own error names its files."""
    loader = GlobalHydra.instance().config_loader()
    available = sorted(loader.get_group_options(group))
    if choice in available:
        return
    remedy = f"; pip install 'amemgym-env[{EXTRAS[choice]}]'" if choice in EXTRAS else ""
    raise ConfigError(
        f"{group}: expected one of {', '.join(available)}, found {choice!r}, which is not "
        f"installed{remedy}"
    )


def _check_choice(group: str, choice: str) -> None:
    available = sorted(path.stem for path in (CONF / group).glob("*.yaml"))
    if choice in available:
        return
    if group == "agent" and ":" in choice:
        node = {"name": "own", "path": choice}
        ConfigStore.instance().store(group=group, name=choice, node=node)
        return
    module, dot, name = choice.rpartition(".")
    own = " or package.module:Class" if group == "agent" else ""
    meant = f"; did you mean {module}:{name}?" if own and dot else near(choice, available)
    raise ConfigError(
        f"{group}: expected one of {', '.join(available)}{own}, found {choice!r}{meant}"
    )


def _in_any_choice(key: str) -> bool:
    """Whether some choice of a group knows `group.key`."""
    group, _, rest = key.partition(".")
    loaded = (
        OmegaConf.to_container(OmegaConf.load(file)) for file in (CONF / group).glob("*.yaml")
    )
    found = {name for content in loaded for name in _keys(content)}
    if rest in found:
        return True
    alike = difflib.get_close_matches(rest, sorted(found), n=3, cutoff=0.4)
    names = ", ".join(f"{group}.{part}" for part in alike)
    raise ConfigError(f"{key}: unknown setting; nearest: {names or 'none'}")


def _keys(node: Any, prefix: str = "") -> Iterator[str]:
    if isinstance(node, dict):
        for key, value in node.items():
            yield f"{prefix}{key}"
            yield from _keys(value, f"{prefix}{key}.")
