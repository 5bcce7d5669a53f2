"""Runner that generates the scenarios of many personas with a model, concurrently.

Each persona has a journal of its calls. A recorded call is not made again, so the same command
continues after a stop or a failure. A failure affects one persona only, and the result does not
depend on the number of workers.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from amemgym_env.errors import BudgetExceeded, ConfigError, GenerationError
from amemgym_env.generation.offline.settings import Settings
from amemgym_env.generation.pipeline.mock_model import MockModel
from amemgym_env.generation.pipeline.personas import Person
from amemgym_env.generation.pipeline.scenario_pipeline import (
    PipelineOptions,
    PipelineResult,
    ScenarioPipeline,
)
from amemgym_env.models.client import Backend, Models
from amemgym_env.models.events import Event
from amemgym_env.models.journal import FileJournal
from amemgym_env.models.last_play import calls_in
from amemgym_env.models.replay import Recorded
from amemgym_env.models.usage import Usage
from amemgym_env.prompts.base import BUILT_IN, Templates
from amemgym_env.scenarios.files import slug


class Failed(NamedTuple):
    """A persona without a scenario, the step that failed and the reason."""

    person: str
    step: str
    reason: str


@dataclass(frozen=True)
class RunnerResult:
    """Results of a run, in the order of its personas."""

    made: tuple[PipelineResult, ...]
    failed: tuple[Failed, ...]
    stopped: str | None
    """Reason why calls stopped early, or None; the same command generates the rest."""
    bill: Mapping[str, Usage]
    """Usage of all calls in the journals by role; `retries` are failed attempts."""
    calls: Mapping[str, int]
    """Calls by kind."""

    def report(self) -> dict[str, Any]:
        """Return everything but the scenarios, as a JSON object."""
        return {
            "made": [
                {
                    "id": made.scenario.id,
                    "given_up": [found._asdict() for found in made.given_up],
                    "refined": made.refined,
                }
                for made in self.made
            ],
            "failed": [failed._asdict() for failed in self.failed],
            "stopped": self.stopped,
            "bill": {role: usage.to_json() for role, usage in self.bill.items()},
            "calls": dict(self.calls),
        }


@dataclass
class PipelineRunner:
    """Settings shared by all scenarios of a run."""

    backends: Mapping[str, Backend]
    """Keys `assistant` (generates) and `judge` (reads texts back; default: the same)."""
    settings: Settings
    options: PipelineOptions = field(default_factory=PipelineOptions)
    seed: int = 0
    templates: Templates = BUILT_IN
    workers: int = 4
    """Personas at once; the backend limits concurrent calls."""
    progress: Callable[[Person, str], None] = lambda person, what: None
    """Called with `made` or the failed step, from several threads."""

    def run(self, people: Sequence[Person], folder: Path) -> RunnerResult:
        """Generate a scenario for each persona; `folder` holds their journals.

        Raises:
            ConfigError: the provider refuses the key, the model or the address.
            RunError: a journal is damaged.
        """
        self._stopped: str | None = None
        journals = [folder / f"{slug(person.id)}.jsonl" for person in people]
        self._remember(journals)
        with ThreadPoolExecutor(max(1, self.workers)) as pool:
            making = [pool.submit(self._one, *pair) for pair in zip(people, journals, strict=True)]
            try:
                results = [future.result() for future in making]
            except BaseException as error:
                # An interrupt too: what is under way ends at its next call, and is in the record.
                self._stopped = self._stopped or f"{type(error).__name__}: {error}"
                _cancel(making)
                raise
        events = [event for path in journals for event in FileJournal(path).read()]
        return RunnerResult(
            tuple(found for found in results if isinstance(found, PipelineResult)),
            tuple(found for found in results if isinstance(found, Failed)),
            self._stopped,
            bill(events),
            counts(events),
        )

    def _remember(self, journals: Iterable[Path]) -> None:
        """Count the usage of earlier runs against the budgets."""
        for path in journals:
            for call in calls_in(FileJournal(path).read()):
                if call.usage is not None:
                    role = "judge" if call.role == "judge" else "assistant"
                    backend = self.backends.get(role, self.backends["assistant"])
                    backend.remember(call.usage)

    def _one(self, person: Person, path: Path) -> PipelineResult | Failed:
        with FileJournal(path) as journal:
            models = Models(
                self.backends,
                self.templates,
                journal.write,
                Recorded(journal.read()),
                lambda: self._stopped,
            )
            making = ScenarioPipeline(person, self.settings, self.options, models, self.seed)
            try:
                made = making.made()
            except GenerationError as error:
                self.progress(person, error.step)
                return Failed(person.id, error.step, error.reason)
            except BudgetExceeded as error:
                self._stopped = self._stopped or str(error)
                return Failed(person.id, "stopped", str(error))
        self.progress(person, "made")
        return made


def _cancel(making: Iterable[Future[Any]]) -> None:
    for future in making:
        future.cancel()


def bill(events: Iterable[Event]) -> dict[str, Usage]:
    """Return the usage of the calls in journals by role; `retries` are failed attempts."""
    found: dict[str, Usage] = {}
    for call in calls_in(events):
        for role, usage in ((call.role, call.usage), ("retries", call.retries)):
            if usage is not None:
                found[role] = found.get(role, Usage()) + usage
    return dict(sorted(found.items()))


def counts(events: Iterable[Event]) -> dict[str, int]:
    """Return the calls in journals by kind."""
    return dict(sorted(Counter(call.kind for call in calls_in(events)).items()))


def estimate(
    people: Sequence[Person], settings: Settings, options: PipelineOptions, seed: int = 0
) -> dict[str, Usage]:
    """Return the estimated usage of a run by role, without prices and repairs.

    One persona is generated with the mock model, and its tokens are multiplied.

    Raises:
        ConfigError: the topic library has too little to rehearse such settings with.
    """
    models = Models({"assistant": MockModel()})
    try:
        ScenarioPipeline(people[0], settings, options, models, seed).made()
    except GenerationError as error:
        raise ConfigError(
            f"dry_run: the topic library cannot rehearse these settings, so there is no estimate; "
            f"{error}"
        ) from error
    return {
        role: Usage(
            used.calls * len(people),
            used.prompt_tokens * len(people),
            used.completion_tokens * len(people),
            usd=None,
            estimated=True,
        )
        for role, used in sorted(models.usage.items())
    }
