"""Makes the scenarios of many people with a model, at once, and keeps the accounts.

Every call stands in its person's journal as it happens; what is there is not asked again, so the
same command continues where it was stopped, or failed. One person's failure never touches
another's, and the result does not depend on how many are made at once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from amemgym_env.errors import BudgetExceeded, ConfigError, GenerationError
from amemgym_env.generation.offline.settings import Settings
from amemgym_env.generation.pipeline.mock_model import Rehearsal
from amemgym_env.generation.pipeline.personas import Person
from amemgym_env.generation.pipeline.scenario_pipeline import Made, Making, Manner
from amemgym_env.models.client import Backend, Models
from amemgym_env.models.journal import Event, FileJournal
from amemgym_env.models.replay import Recorded
from amemgym_env.models.usage import Usage
from amemgym_env.prompts.base import BUILT_IN, Templates
from amemgym_env.scenarios.files import slug


class Failed(NamedTuple):
    """A person without a scenario, the step that failed, and why."""

    person: str
    step: str
    reason: str


@dataclass(frozen=True)
class Outcome:
    """What came of a campaign, in the order of its people."""

    made: tuple[Made, ...]
    failed: tuple[Failed, ...]
    stopped: str | None
    """Why no further calls were made, if so: the rest can be made by the same command."""
    bill: Mapping[str, Usage]
    """What all calls in the journals cost, by role, and `retries`: attempts that gave nothing."""
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
class Campaign:
    """What the scenarios of one campaign share."""

    backends: Mapping[str, Backend]
    """Keys `assistant` (generates) and `judge` (reads texts back; default: the same)."""
    settings: Settings
    manner: Manner = field(default_factory=Manner)
    seed: int = 0
    templates: Templates = BUILT_IN
    workers: int = 4
    """People at once; the calls at once are the backend's to limit."""
    progress: Callable[[Person, str], None] = lambda person, what: None
    """Told `made` or the step that failed, from several threads."""

    def run(self, people: Sequence[Person], folder: Path) -> Outcome:
        """Make a scenario of each person; `folder` holds their journals.

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
        return Outcome(
            tuple(found for found in results if isinstance(found, Made)),
            tuple(found for found in results if isinstance(found, Failed)),
            self._stopped,
            bill(events),
            counts(events),
        )

    def _remember(self, journals: Iterable[Path]) -> None:
        """Count what earlier runs have spent against the budgets."""
        for path in journals:
            for event in FileJournal(path).read():
                if event.get("usage"):
                    role = "judge" if event["role"] == "judge" else "assistant"
                    backend = self.backends.get(role, self.backends["assistant"])
                    backend.remember(Usage(**event["usage"]))

    def _one(self, person: Person, path: Path) -> Made | Failed:
        with FileJournal(path) as journal:
            models = Models(
                self.backends,
                self.templates,
                journal.write,
                Recorded(journal.read()),
                lambda: self._stopped,
            )
            making = Making(person, self.settings, self.manner, models, self.seed)
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
    """Return what the calls in journals cost, by role, and `retries`."""
    found: dict[str, Usage] = {}
    for event in events:
        if event["event"] != "call":
            continue
        for role, usage in ((event["role"], event.get("usage")), ("retries", event.get("retries"))):
            if usage:
                found[role] = found.get(role, Usage()) + Usage(**usage)
    return dict(sorted(found.items()))


def counts(events: Iterable[Event]) -> dict[str, int]:
    """Return the calls in journals by kind."""
    found: dict[str, int] = {}
    for event in events:
        if event["event"] == "call":
            found[event["kind"]] = found.get(event["kind"], 0) + 1
    return dict(sorted(found.items()))


def estimate(
    people: Sequence[Person], settings: Settings, manner: Manner, seed: int = 0
) -> dict[str, Usage]:
    """Return about what a campaign will use, by role, without a price and without a repair.

    One person's generation is rehearsed offline, and its tokens are multiplied.

    Raises:
        ConfigError: the topic library has too little to rehearse such settings with.
    """
    models = Models({"assistant": Rehearsal()})
    try:
        Making(people[0], settings, manner, models, seed).made()
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
