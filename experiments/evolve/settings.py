"""Settings of the job `evolve`; conf/evolve.yaml documents each."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field, model_validator

from experiments.app.settings import BackendSettings, Count, RoleSettings, Settings
from experiments.evaluate.settings import AgentSettings


class EvolveSettings(Settings):
    """What evolves, from which feedback, and against which controls it is measured."""

    scenarios: str
    limit: Count | None
    feedback: list[str]
    target: Literal["types", "prompt"]
    cadence: Literal["period", "episode"]
    population: Literal["each", "shared"]
    proposals: Count
    guard: Literal["held_out", "none"]
    held_out: str
    generations: Count
    folds: Annotated[int, Field(ge=2)]
    controls: bool
    seeds: Annotated[list[int], Field(min_length=1)]
    rounds_initial: Count
    rounds_update: Count
    out: str | None
    resume: bool
    workers: Count | None
    agent: AgentSettings
    backend: BackendSettings
    user_backend: RoleSettings
    memory_backend: RoleSettings
    judge_backend: RoleSettings

    @model_validator(mode="after")
    def _fits(self) -> EvolveSettings:
        if self.agent.name not in ("awe", "awi"):
            raise ValueError(f"expected agent=awe or awi, found {self.agent.name}")
        if self.population == "shared" and self.cadence == "period":
            raise ValueError("a shared policy evolves between episodes: add cadence=episode")
        if self.population == "each" and self.proposals > 1 and self.guard == "none":
            raise ValueError("several proposals need scores to choose by: add guard=held_out")
        return self

    def identity(self) -> dict[str, Any]:
        """Return what each seed's results depend on: a run may be continued with more seeds."""
        return self.model_dump(mode="json", exclude={"out", "resume", "workers", "seeds"})
