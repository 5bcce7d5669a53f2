"""Settings of the job `search`; conf/search.yaml documents each."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field

from experiments.app.settings import Count, DifficultyName, Settings


class SearchSettings(Settings):
    """What is searched, on which scenarios, and how it is judged."""

    method: Literal["settings", "rules"]
    train: str
    validation: str
    test: str | None
    evaluate: list[str]
    space: Annotated[list[str], Field(min_length=1)]
    objectives: Annotated[list[Literal["memory", "tokens"]], Field(min_length=1, max_length=2)]
    trials: Count
    finalists: Count
    prune: bool
    difficulty: DifficultyName
    restarts: Count
    candidates: Annotated[int, Field(ge=20)]
    seed: int
    out: str | None
    resume: bool

    def identity(self) -> dict[str, Any]:
        """Return what trials depend on: a search may be continued with more of them."""
        return self.model_dump(mode="json", exclude={"out", "resume", "trials"})
