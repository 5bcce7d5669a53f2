"""Composition of a job's settings from `conf/` and the words of a command line, with Hydra.

Hydra refuses unknown keys and choices; its messages are completed by the nearest valid names.
"""

from __future__ import annotations

import difflib
import itertools
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import hydra
from hydra.core.config_store import ConfigStore
from hydra.core.global_hydra import GlobalHydra
from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.errors import (
    HydraException,
    MissingConfigException,
    OverrideParseException,
)
from omegaconf import DictConfig, OmegaConf
from omegaconf.errors import MissingMandatoryValue, OmegaConfBaseException

from amemgym_env.errors import ConfigError, InputError, near
from experiments.app.settings import CONF

Check = Callable[[dict[str, Any]], Any]

MOST_CHECKED = 500
"""Jobs of a sweep that are checked before the first is played."""
EXTRAS = {"joblib": "sweep", "ray": "ray"}
"""The extra that installs a launcher."""
_COMMAS = "put text with commas, brackets or spaces in quotes inside quotes: \"key='a, b'\""

for _role in ("user_backend", "memory_backend", "judge_backend"):
    _aliases: dict[str, Any] = {"same": {"name": "same"}}
    for _name in ("simulated", "litellm"):
        _aliases[_name] = {"defaults": [f"/backend/{_name}@_here_"]}
    for _name, _node in _aliases.items():
        ConfigStore.instance().store(group=_role, name=_name, node=_node)


def compose(name: str, words: Sequence[str] = ()) -> dict[str, Any]:
    """Return the settings of `conf/<name>.yaml` with some words of a command line, as plain data.

    Raises:
        ConfigError: an unknown key or choice, or a value that is missing.
    """
    with _initialized():
        for word in words:
            _check_word(word)
        try:
            return plain(hydra.compose(name, overrides=list(words)))
        except (HydraException, OmegaConfBaseException) as error:
            raise ConfigError(_message(name, error)) from error


def plain(config: DictConfig) -> dict[str, Any]:
    """Return composed settings as plain data.

    Raises:
        ConfigError: a value that must be given is missing, or an interpolation fails.
    """
    try:
        found = OmegaConf.to_container(config, resolve=True, throw_on_missing=True)
    except MissingMandatoryValue as error:
        raise ConfigError(f"{error.full_key}: expected a value, found none") from error
    except OmegaConfBaseException as error:
        raise ConfigError(first_line(error)) from error
    assert isinstance(found, dict)
    return found  # type: ignore[return-value]


def jobs(name: str, words: Sequence[str], check: Check | None) -> list[list[str]]:
    """Return the words of every job of a sweep, all checked; none for another sweeper.

    Raises:
        ConfigError: lists the jobs that are wrong.
    """
    if any(word.startswith("hydra/sweeper=") for word in words):
        return []
    hydras = [word for word in words if _key(word).startswith("hydra")]
    found = list(_expanded([word for word in words if word not in hydras]))
    problems = []
    for job in found[:MOST_CHECKED]:
        try:
            composed = compose(name, [*hydras, *job])
            if check is not None:
                check(composed)
        except InputError as error:
            problems.append((" ".join(job), str(error).splitlines()[-1].strip(" -")))
    if not problems:
        return found
    if len(problems) == len(found) and len({message for _, message in problems}) == 1:
        raise ConfigError(f"{problems[0][1]} (in every job of the sweep; nothing was played)")
    raise ConfigError(
        f"{len(problems)} of {len(found)} jobs are wrong; nothing was played\n"
        + "\n".join(f"  - {job}: {message}" for job, message in problems)
    )


def _expanded(words: Sequence[str]) -> Iterator[list[str]]:
    """Yield the words of each job, in the order of Hydra's own sweeper."""
    choices: dict[str, list[str]] = {}
    try:
        for override in OverridesParser.create().parse_overrides(list(words)):
            key = override.get_key_element()
            if not override.is_sweep_override():
                values = iter([str(override.get_value_element_as_str())])
            elif override.is_discrete_sweep():
                values = override.sweep_string_iterator()
            else:
                raise ConfigError(f"{override.input_line}: expected values with commas, or range()")
            choices[key] = [f"{key}={value}" for value in values]
    except HydraException as error:
        raise ConfigError(_message("", error)) from error
    return (list(job) for job in itertools.product(*choices.values()))


def _initialized() -> AbstractContextManager[Any]:
    """Return a context in which settings can be composed: within a job, the job's own."""
    if GlobalHydra.instance().is_initialized():
        return nullcontext()
    return hydra.initialize_config_dir(str(CONF), version_base="1.3")


def _check_word(word: str) -> None:
    """Refuse what Hydra accepts and settings do not; make known an agent of the user's own.

    Raises:
        ConfigError: a key to add or delete, or a value that replaces a whole group.
    """
    key, value = _key(word), word.partition("=")[2]
    if word[0] in "+~" and not key.startswith("hydra"):
        raise ConfigError(f"{word}: settings are closed; expected key=value")
    if key not in _groups():
        return
    if value.startswith(("{", "[")) or value in ("", "null"):
        raise ConfigError(
            f"{word}: expected {key}=NAME, one of {', '.join(_choices(key))}; its settings are "
            f"given as {key}.KEY=VALUE"
        )
    if key == "agent" and ":" in value:
        path = value.replace("\\", "").strip("'\"")
        node = {"name": "own", "path": path}
        ConfigStore.instance().store(group=key, name=path, node=node)


def _key(word: str) -> str:
    return word.lstrip("+~").partition("=")[0]


def _groups() -> set[str]:
    """Return the keys whose values are names of files in conf/."""
    return set(GlobalHydra.instance().config_loader().list_groups("")) - {"hydra"}


def _choices(group: str) -> list[str]:
    options = GlobalHydra.instance().config_loader().get_group_options(group)
    return sorted(option for option in options if ":" not in option)


def first_line(error: Exception) -> str:
    """Return the first line of an error's message."""
    return str(error).strip().splitlines()[0]


def _message(name: str, error: Exception) -> str:
    """Return an error of Hydra with what was expected, found, and the nearest valid names."""
    said = first_line(error)
    if isinstance(error, MissingConfigException) and error.missing_cfg_file:
        group, _, choice = str(error.missing_cfg_file).rpartition("/")
        return _wrong_choice(group, choice)
    unknown = re.match(r"Could not override '(.*)'", said)
    if unknown and not unknown[1].startswith("hydra"):
        return _unknown_key(name, unknown[1])
    several = re.match(r"Ambiguous value for argument '(.*)'", said)
    if several:
        return f"{several[1]}: several values; add -m for one run each, or {_COMMAS}"
    if isinstance(error, OverrideParseException):
        return f"cannot read the command line: {said}; expected key=value; {_COMMAS}"
    return said


def _wrong_choice(group: str, choice: str) -> str:
    available = _choices(group)
    expected = f"{group}: expected one of {', '.join(available)}"
    if group.startswith("hydra/"):
        remedy = f"; pip install 'amemgym-env[{EXTRAS[choice]}]'" if choice in EXTRAS else ""
        return f"{expected}, found {choice!r}, which is not installed{remedy}"
    module, dot, attribute = choice.rpartition(".")
    if group == "agent" and dot:
        meant = f"; did you mean {module}:{attribute}?"
    else:
        meant = near(choice, available)
    own = " or package.module:Class" if group == "agent" else ""
    return f"{expected}{own}, found {choice!r}{meant}"


def _unknown_key(name: str, key: str) -> str:
    """Return the choices that know a key, or the keys that are spelled most like it."""
    config = hydra.compose(name)
    owners: dict[str, list[str]] = {known: [] for known in _keys(OmegaConf.to_container(config))}
    for group in sorted(_groups() & set(config)):
        folder = CONF / (group if (CONF / group).is_dir() else "backend")
        for file in sorted(folder.glob("*.yaml")):
            for known in _keys({group: OmegaConf.to_container(OmegaConf.load(file))}):
                owners.setdefault(known, []).append(f"{group}={file.stem}")
    if key in owners:
        return f"{key}: unknown setting of the present choice; known with {', '.join(owners[key])}"
    alike = difflib.get_close_matches(key, sorted(owners), n=3, cutoff=0.5)
    top = f"; all: {', '.join(map(str, sorted(config)))}" if "." not in key else ""
    return f"{key}: unknown setting; nearest: {', '.join(alike) or 'none'}{top}"


def _keys(node: Any, prefix: str = "") -> Iterator[str]:
    if isinstance(node, dict):
        for key, value in node.items():
            yield f"{prefix}{key}"
            yield from _keys(value, f"{prefix}{key}.")
