"""Settings of the jobs: typed and closed. Hydra composes them, these models check them.

Nothing below this folder sees Hydra or OmegaConf.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    ValidationError,
    model_validator,
)

from amemgym_env.errors import ConfigError, near
from amemgym_env.models.litellm.parameters import usual_address
from amemgym_env.scenarios.difficulty import DIFFICULTIES
from amemgym_env.simulated.profiles import DEFAULT_PROFILE, PROFILES


class Settings(BaseModel):
    """Base of all settings: unknown keys are refused, values are not coerced."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


def one_of(names: Collection[str]) -> AfterValidator:
    """Return a check for names that are kept elsewhere, with the message of a wrong Literal."""

    def check(given: str) -> str:
        if given not in names:
            raise ValueError(_expected(names))
        return given

    return AfterValidator(check)


def _expected(names: Collection[str]) -> str:
    return f"expected one of {', '.join(names)}"


Count = Annotated[int, Field(ge=1)]
DifficultyName = Annotated[str, one_of(DIFFICULTIES)]


class SimulatedBackend(Settings):
    """`backend=simulated`."""

    name: Literal["simulated"]
    profile: Annotated[str, one_of(PROFILES)] = DEFAULT_PROFILE


class LitellmBackend(Settings):
    """`backend=litellm`. There is no key in it: keys come from the environment only."""

    name: Literal["litellm"]
    model: str
    api_base: str | None = None
    api_key_env: str | None = None
    temperature: float | None = 0.0
    max_tokens: Count | None = None
    extra: dict[str, Any] | None = None
    seed: int | None = None
    response_format: Literal["auto", "schema", "object_schema", "object", "plain"] = "auto"
    timeout: Annotated[float, Field(gt=0)] = 120.0
    retries: Annotated[int, Field(ge=0)] = 5
    first_delay: Annotated[float, Field(ge=0)] = 0.5
    max_wait: Annotated[float, Field(ge=0)] = 120.0
    max_concurrency: Count = 32
    processes: Annotated[int, Field(ge=0)] | None = None
    requests_per_minute: Annotated[float, Field(gt=0)] | None = None
    cache: str | None = None
    offline: bool = False
    budget_usd: Annotated[float, Field(ge=0)] | None = None
    budget_tokens: Annotated[int, Field(ge=0)] | None = None

    @model_validator(mode="before")
    @classmethod
    def _usual_address(cls, given: Any) -> Any:
        """Write down the address that litellm would take from the environment."""
        return with_usual_address(given)


def with_usual_address(given: Any) -> Any:
    """Return settings of a model with the address of the environment in place of none.

    A run's settings and keys then name the server that it asked.
    """
    if isinstance(given, dict) and not given.get("api_base") and given.get("model"):
        return {**given, "api_base": usual_address(str(given["model"]))}
    return given


HOW_CALLS_ARE_MADE = {
    "timeout",
    "retries",
    "first_delay",
    "max_wait",
    "max_concurrency",
    "processes",
    "requests_per_minute",
    "cache",
    "offline",
    "budget_usd",
    "budget_tokens",
}
"""Settings of a backend that results do not depend on: a run may be resumed with others."""


class SameBackend(Settings):
    """`user_backend=same`: the role is played by `backend`."""

    name: Literal["same"]


BackendSettings = Annotated[SimulatedBackend | LitellmBackend, Field(discriminator="name")]
RoleSettings = Annotated[
    SimulatedBackend | LitellmBackend | SameBackend, Field(discriminator="name")
]


T = TypeVar("T", bound=BaseModel)


def checked(model: type[T], composed: dict[str, Any]) -> T:
    """Return composed settings as a typed object.

    Raises:
        ConfigError: lists every setting that is wrong.
    """
    try:
        return model.model_validate(composed)
    except ValidationError as error:
        lines = [
            f"  - {_key(line['loc'])}: {_said(line['msg'], line['input'])}"
            for line in error.errors()
        ]
        raise ConfigError("settings are wrong; nothing was played\n" + "\n".join(lines)) from error


def _said(message: str, given: object) -> str:
    """Return what is wrong with a value; where names are expected, also which one was meant."""
    message = message.removeprefix("Value error, ")
    if message.startswith("Input should be '"):
        message = _expected(re.findall(r"'(.*?)'", message))
    names = message.removeprefix("expected one of ")
    alike = "" if names == message else near(given, names.split(", "))
    return f"{message}, found {given!r:.80}{alike}"


def _key(loc: tuple[int | str, ...]) -> str:
    """Return a setting's key as it is typed; names of union members are no part of it."""
    return ".".join(str(part) for part in loc if part not in _UNION_TAGS)


_UNION_TAGS = {"native", "awi", "rag", "awe", "policy", "own", "simulated", "litellm", "same"} | {
    "numpy",
    "chroma",
    "hashed",
}

CONF = Path(__file__).resolve().parents[2] / "conf"
"""Folder of the configuration files."""
