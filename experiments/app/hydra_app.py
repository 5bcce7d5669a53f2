"""Hydra applications: one error line and exit status 2 for every mistake of the user.

Settings are composed and checked before anything is played; in a sweep, those of every job.
Relative paths are seen from where the command was given, whatever `hydra.job.chdir` says. Hydra's
own output folders and logs are switched off; a run's folder is `app.run_folder`'s.
"""

from __future__ import annotations

import errno
import os
import sys
import traceback
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import hydra
from hydra.core.hydra_config import HydraConfig
from hydra.types import RunMode
from omegaconf import DictConfig

from amemgym_env.errors import ConfigError, InputError, RunError
from amemgym_env.models.redaction import redacted
from experiments.app import sweep
from experiments.app.composition import Check, compose, jobs, plain
from experiments.app.settings import CONF

Job = Callable[[dict[str, Any]], Any]
Swept = Callable[[dict[str, Any], sweep.Place], float]

QUIET = (
    "hydra/hydra_logging=disabled",
    "hydra/job_logging=disabled",
    "hydra.run.dir=.",
    "hydra.sweep.dir=.",
    "hydra.sweep.subdir=.",
    "hydra.output_subdir=null",
)
"""Switches off Hydra's folders and logs; the same words on the command line win."""


def run(name: str, job: Job, *, check: Check | None = None, swept: Swept | None = None) -> None:
    """Run a job with the settings of `conf/<name>.yaml` and the command line, then exit on errors.

    The job gets the composed settings as plain data; its return value is the objective of a sweep.
    `check` raises for settings that the job would refuse. `swept` plays one job of a sweep (`-m`);
    without it `job` does.
    """
    warnings.formatwarning = _plain_warning
    folder: Path | None = None
    words = _words(sys.argv[1:])
    given = {word.partition("=")[0] for word in words}
    added = [word for word in QUIET if word.partition("=")[0] not in given]
    try:
        if {"-m", "--multirun", "hydra.mode=MULTIRUN"} & set(sys.argv[1:]):
            listed = jobs(name, words, check)
            if swept is not None:
                folder = sweep.begin(_out(name, words, listed), name, listed)
                added.append(f"hydra.sweep.dir={_quoted(str(folder))}")
        else:
            compose(name, words)
    except InputError as error:
        fail(error)
    sys.argv += [*added, *_launcher_settings(words)]

    def task(config: DictConfig) -> Any:
        here = os.getcwd()
        os.chdir(HydraConfig.get().runtime.cwd)
        try:
            composed = plain(config)
            if swept is not None and is_sweep():
                return swept(composed, _place())
            return job(composed)
        except InputError as error:
            fail(error)
        except KeyboardInterrupt as error:
            if not getattr(error, "told", False):
                print("interrupted; what is written stays", file=sys.stderr)
            sys.exit(130)  # the exit status of shells for Ctrl-C
        except OSError as error:
            if error.filename is None and error.errno != errno.ENOSPC:
                raise
            what = redacted(f"{error.filename or 'the disk'}: {error.strerror}")
            fail(RunError(f"{what}; expected a path that can be used; what is written stays"))
        except Exception:
            report = traceback.format_exc()
            if redacted(report) == report:
                raise
            print(redacted(report), file=sys.stderr)  # Hydra would print it with the keys
            sys.exit(1)
        finally:
            os.chdir(here)

    try:
        hydra.main(version_base="1.3", config_path=str(CONF), config_name=name)(task)()
    finally:
        status = 0 if folder is None else sweep.finish(folder)
    if status:
        sys.exit(status)


def _plain_warning(message: Warning | str, *_: Any, **__: Any) -> str:
    return f"warning: {message}\n"


def fail(error: InputError) -> None:
    """Print one error and leave with exit status 2."""
    print(f"error: {error}", file=sys.stderr)
    sys.exit(2)


def is_sweep() -> bool:
    """Whether the present job is one of several (`-m`)."""
    return HydraConfig.initialized() and HydraConfig.get().mode is RunMode.MULTIRUN


def _words(arguments: Sequence[str]) -> list[str]:
    """Return the settings of a command line, without flags and their values."""
    flags = {word for word in arguments if word.startswith("-")} - {"-m", "--multirun"}
    return [
        word
        for word in arguments
        if not word.startswith("-") and ("=" in word or word.startswith("~") or not flags)
    ]


def _place() -> sweep.Place:
    config = HydraConfig.get()
    launcher = str(config.launcher._target_).rpartition(".")[2]
    words = tuple(str(word) for word in config.overrides.task)
    return sweep.Place(Path(config.sweep.dir), int(config.job.num), words, launcher)


def _out(name: str, words: Sequence[str], listed: Sequence[Sequence[str]]) -> str | None:
    """Return the folder of a sweep."""
    given = {word for job in listed for word in job if word.startswith("out=")}
    asked = [word for word in words if word.startswith("out=")]
    if len(given) > 1:
        raise ConfigError(f"{asked[-1]}: expected one folder for the whole sweep")
    out: str | None = compose(name, asked)["out"]
    return out


def _launcher_settings(words: Sequence[str]) -> list[str]:
    """Return what a launcher needs to be quiet: Ray phones home and opens a web server."""
    key = "hydra.launcher.ray.init.include_dashboard"
    if "hydra/launcher=ray" not in words or any(key in word for word in words):
        return []
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    return [f"++{key}=false"]


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace("'", "\\'").replace("${", "\\${")
    return f"'{escaped}'"
