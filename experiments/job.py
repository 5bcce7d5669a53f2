"""Runs a job as a Hydra application, and turns every mistake into one error and exit status 2.

Hydra refuses unknown keys by itself, but says neither what is near nor what is allowed; the command
line is therefore looked at first. This is the only file that imports Hydra.
"""

from __future__ import annotations

import difflib
import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import hydra
from hydra.core.config_store import ConfigStore
from hydra.core.hydra_config import HydraConfig
from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.core.override_parser.types import ChoiceSweep, Override
from hydra.errors import HydraException
from hydra.types import RunMode
from omegaconf import DictConfig, OmegaConf
from omegaconf.errors import MissingMandatoryValue, OmegaConfBaseException

from amemgym_env.errors import ConfigError, InputError
from experiments.settings import CONF

Job = Callable[[dict[str, Any]], Any]


def run(name: str, job: Job, groups: tuple[str, ...] = ()) -> None:
    """Run a job with the settings of `conf/<name>.yaml` and the command line, then exit on errors.

    `groups` are the folders of conf/ whose files may be chosen. The job gets the composed settings
    as plain data; its return value is the objective of a sweep.
    """
    try:
        _check(name, sys.argv[1:], groups)
    except InputError as error:
        fail(error)

    def task(config: DictConfig) -> Any:
        try:
            plain = OmegaConf.to_container(config, resolve=True, throw_on_missing=True)
            return job(plain)  # type: ignore[arg-type]
        except InputError as error:
            fail(error)
        except MissingMandatoryValue as error:
            fail(ConfigError(f"{error.full_key}: expected a value, found none"))
        except OmegaConfBaseException as error:
            fail(ConfigError(str(error).strip().split("\n")[0]))

    hydra.main(version_base="1.3", config_path=str(CONF), config_name=name)(task)()


def fail(error: InputError) -> None:
    """Print one error and leave with exit status 2."""
    print(f"error: {error}", file=sys.stderr)
    sys.exit(2)


def is_sweep() -> bool:
    """Whether the present job is one of several (`-m`)."""
    return HydraConfig.initialized() and HydraConfig.get().mode is RunMode.MULTIRUN


def _check(name: str, arguments: list[str], groups: tuple[str, ...]) -> None:
    """Refuse unknown keys and choices, naming the nearest ones."""
    words = [word for word in arguments if "=" in word and not word.startswith("-")]
    try:
        overrides = OverridesParser.create().parse_overrides(words)
    except HydraException as error:
        raise ConfigError(
            f"cannot read the command line: {str(error).splitlines()[0]}; put text with commas, "
            "brackets or spaces in quotes inside quotes: \"key='a, b'\""
        ) from error
    chosen = []
    for override in overrides:
        if override.is_sweep_override() and not {"-m", "--multirun"} & set(arguments):
            raise ConfigError(
                f"{override.input_line}: several values; add -m for one run each, or put text with "
                "commas in quotes inside quotes: \"key='a, b'\""
            )
        if override.is_add() or override.is_delete():
            raise ConfigError(
                f"{override.input_line}: settings are closed; expected key=value with a known key"
            )
        if override.key_or_group in groups:
            for choice in _choices(override):
                _check_choice(override.key_or_group, str(choice))
            chosen.append(f"{override.key_or_group}={next(iter(_choices(override)))}")
    with hydra.initialize_config_dir(str(CONF), version_base="1.3"):
        config = hydra.compose(name, overrides=chosen)
    known = sorted(_keys(OmegaConf.to_container(config)))
    for override in overrides:
        key = override.key_or_group
        if key in groups or key in known or key.startswith("hydra"):
            continue
        if any(key.startswith(f"{group}.") for group in groups) and _in_any_choice(key):
            continue
        near = difflib.get_close_matches(key, sorted({*known, *groups}), n=3, cutoff=0.5)
        raise ConfigError(
            f"{key}: unknown setting; nearest: {', '.join(near) or 'none'}; "
            f"all: {', '.join(part for part in known if '.' not in part)}"
        )


def _choices(override: Override) -> Iterator[Any]:
    value = override.value()
    if isinstance(value, ChoiceSweep):
        yield from value.list
    else:
        yield value


def _check_choice(group: str, choice: str) -> None:
    available = sorted(path.stem for path in (CONF / group).glob("*.yaml"))
    if choice in available:
        return
    if group == "agent" and ":" in choice:
        node = {"name": "own", "path": choice}
        ConfigStore.instance().store(group=group, name=choice, node=node)
        return
    near = difflib.get_close_matches(choice, available, n=1)
    own = " or package.module:Class" if group == "agent" else ""
    raise ConfigError(
        f"{group}: expected one of {', '.join(available)}{own}, found {choice!r}"
        + (f"; did you mean {near[0]!r}?" if near else "")
    )


def _in_any_choice(key: str) -> bool:
    """Whether some choice of a group knows `group.key`: a sweep may mix agents with other keys."""
    group, _, rest = key.partition(".")
    files = (CONF / group).glob("*.yaml")
    found: set[str] = set()
    for file in files:
        found |= set(_keys(OmegaConf.to_container(OmegaConf.load(file))))
    if rest in found:
        return True
    near = difflib.get_close_matches(rest, sorted(found), n=3, cutoff=0.4)
    names = ", ".join(f"{group}.{part}" for part in near)
    raise ConfigError(f"{key}: unknown setting; nearest: {names or 'none'}")


def _keys(node: Any, prefix: str = "") -> Iterator[str]:
    if isinstance(node, dict):
        for key, value in node.items():
            yield f"{prefix}{key}"
            yield from _keys(value, f"{prefix}{key}.")


def absolute(path: str) -> Path:
    """Return a path as seen from where the command was given, whatever Hydra's folder is."""
    return Path(os.environ.get("PWD", os.getcwd())).joinpath(path).resolve()
