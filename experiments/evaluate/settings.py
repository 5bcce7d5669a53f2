"""Settings of the job `evaluate`, and of the agents that it plays."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field

from experiments.app.memory_factories import (
    EmbeddingSettings,
    HashedSettings,
    NumpySettings,
    StoreSettings,
)
from experiments.app.settings import (
    HOW_CALLS_ARE_MADE,
    BackendSettings,
    Count,
    DifficultyName,
    RoleSettings,
    Settings,
)


class NativeAgent(Settings):
    """`agent=native`."""

    name: Literal["native"]


class AWIAgent(Settings):
    """`agent=awi`."""

    name: Literal["awi"]
    freq: Count = 2
    ns: Annotated[int, Field(ge=0)] = 4


class IndexAgent(Settings):
    """`agent=rag` and `agent=awe`."""

    name: Literal["rag", "awe"]
    freq: Count = 2
    ns: Annotated[int, Field(ge=0)] = 4
    top_k: Annotated[int, Field(ge=-1)] = 30


class PolicyAgent(Settings):
    """`agent=policy`."""

    name: Literal["policy"]
    checkpoint: str
    trust: bool = False
    ns: Annotated[int, Field(ge=0)] = 0
    top_k: Annotated[int, Field(ge=-1)] = 5


class OwnAgent(Settings):
    """`agent=package.module:Class`; the class is called with the models."""

    name: Literal["own"]
    path: str


AgentSettings = Annotated[
    NativeAgent | AWIAgent | IndexAgent | PolicyAgent | OwnAgent, Field(discriminator="name")
]


class EvaluateSettings(Settings):
    """Settings of `python -m experiments.evaluate`; conf/evaluate.yaml says what they mean."""

    scenarios: str
    limit: Count | None
    difficulty: DifficultyName
    seed: int
    rounds_initial: Count
    rounds_update: Count
    shuffle_choices: bool
    mode: Literal["on_policy", "off_policy"] = "on_policy"
    traces: str | None = None
    repeats: Count = 1
    capacity: Count | None
    question_blind: bool
    diagnosis: bool
    upper_bound: bool
    templates: str | None
    out: str | None
    resume: bool
    workers: Count | None
    agent: AgentSettings
    backend: BackendSettings
    user_backend: RoleSettings
    memory_backend: RoleSettings
    judge_backend: RoleSettings
    store: StoreSettings = NumpySettings()
    embedding: EmbeddingSettings = HashedSettings()
    replay: str | None = None
    dry_run: bool = False
    preflight: bool = True
    allow_unscored: Annotated[float, Field(ge=0, le=1)] = 0.0

    def identity(self) -> dict[str, Any]:
        """Return what results depend on: all but where they go and how their calls are made."""
        roles = ("backend", "user_backend", "memory_backend", "judge_backend")
        places = ("out", "resume", "workers", "replay", "dry_run", "preflight", "allow_unscored")
        exclude: dict[str, Any] = dict.fromkeys(roles, HOW_CALLS_ARE_MADE)
        exclude |= {"store": {"path"}, "embedding": HOW_CALLS_ARE_MADE}
        return self.model_dump(mode="json", exclude=exclude | dict.fromkeys(places, True))
