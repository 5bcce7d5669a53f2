"""Events of a scenario's journal: one frozen class for each kind, with its reader and writer.

On disk an event is a JSON object whose key `event` names its kind. `event_json` and `read_event`
convert.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from functools import cache
from typing import Any, ClassVar, NamedTuple, get_args

from pydantic import TypeAdapter, ValidationError

from amemgym_env.errors import RunError
from amemgym_env.models.usage import Usage
from amemgym_env.prompts.memory import INFORMATION_TYPES


class RecordedOperation(NamedTuple):
    """One memory operation and its outcome."""

    op: str
    """`ADD`, `UPDATE`, `DELETE` or `NOOP`."""
    entry_id: str | None
    """The entry that was written, changed or removed."""
    text: str | None
    status: str
    """A `memory.bank.Status`."""


@dataclass(frozen=True, slots=True)
class StartEvent:
    """An attempt at a scenario begins. A resumed run writes another one."""

    KIND: ClassVar[str] = "start"
    scenario: str
    script: str
    """Key of the script: scenario, seed and difficulty."""


@dataclass(frozen=True, slots=True)
class ReferenceEvent:
    """Answers given the true values (upper bound), and with an empty memory."""

    KIND: ClassVar[str] = "reference"
    informed: tuple[tuple[float | None, ...], ...]
    """`[question][stored choice]`: 1.0 where the model chose the choice whose values it was given,
    else 0.0; null where it could not be asked."""
    never_write: tuple[int, ...]
    """Shown index of each question, -1 no answer, -2 unscored."""


@dataclass(frozen=True, slots=True)
class CallEvent:
    """One call of a language model: its reply, or why it failed for good.

    `details` are further keys of the JSON object: the served model, parameters that were dropped.
    """

    KIND: ClassVar[str] = "call"
    kind: str
    """Kind of the prompt."""
    role: str
    key: str | None
    """Hash of model, parameters and messages; null for the simulated model."""
    occurrence: int
    """Number of earlier calls with the same key in the attempt."""
    text: str | None = None
    cause: str | None = None
    """Why there is nothing to read (`errors.Cause`), although the provider answered."""
    finish_reason: str | None = None
    usage: Usage | None = None
    retries: Usage | None = None
    """Usage of the attempts before the last."""
    error: str | None = None
    """Message of the failure; null for a call with a reply."""
    reason: str = "other"
    """Class of the failure (`errors.Reason`)."""
    details: Mapping[str, Any] = field(default_factory=dict)

    @property
    def failed(self) -> bool:
        """Whether the call has no reply."""
        return self.error is not None

    @property
    def total(self) -> Usage:
        """Usage of the reply and of all attempts before it."""
        return (self.usage or Usage()) + (self.retries or Usage())

    @property
    def dropped(self) -> tuple[str, ...]:
        """Parameters that the model refused and that were left out."""
        return tuple(self.details.get("dropped") or ())


@dataclass(frozen=True, slots=True)
class TurnEvent:
    """One round of a dialogue: the message, the reply, and the operations on memory."""

    KIND: ClassVar[str] = "turn"
    period: int
    session: int
    round: int
    time: str
    message: str
    reply: str
    retrieved: tuple[str, ...] = ()
    """Ids of the entries shown with the message."""
    operations: tuple[RecordedOperation, ...] = ()

    @property
    def place(self) -> tuple[int, int, int]:
        """Period, session and round."""
        return self.period, self.session, self.round


@dataclass(frozen=True, slots=True)
class ExamEvent:
    """The answers to the questions of a period's exam."""

    KIND: ClassVar[str] = "exam"
    period: int
    answers: tuple[int, ...]
    """Shown index of each question, -1 no answer, -2 unscored."""
    causes: tuple[str | None, ...]
    retrieved: tuple[tuple[str, ...], ...] = ()
    """Ids of the entries shown with each question."""
    stored: int = 0
    """Entries in the bank."""


@dataclass(frozen=True, slots=True)
class ProbeEvent:
    """The values that the agent named for the variables of each question after a period."""

    KIND: ClassVar[str] = "probe"
    period: int
    values: tuple[tuple[int, ...], ...]
    """`[question][variable]`: index of the value, -1 no answer, -2 unscored."""
    causes: tuple[tuple[str | None, ...], ...]
    retrieved: tuple[tuple[str, ...], ...] = ()
    window: tuple[tuple[int, int], ...] | None = None
    """[session, round] of the period's messages that the agent still keeps verbatim."""


@dataclass(frozen=True, slots=True)
class WritingPolicy:
    """How an agent writes memory, as an evolution changes it."""

    information_types: tuple[str, ...] = INFORMATION_TYPES
    prompt: str | None = None
    """Text of the writing prompt; null: the agent's own."""

    def to_json(self) -> dict[str, Any]:
        """Return the policy as a JSON object."""
        return {"information_types": list(self.information_types), "prompt": self.prompt}


@dataclass(frozen=True, slots=True)
class PolicyProposal:
    """One proposal for a better policy."""

    status: str
    policy: WritingPolicy | None
    score: float | None
    """Score on the held-out scenarios, if there are any."""


@dataclass(frozen=True, slots=True)
class EvolutionStep:
    """One step of an evolution: the proposals and the policy that results."""

    status: str
    after: WritingPolicy
    score: float | None = None
    """Score of the policy before the step on the held-out scenarios."""
    proposals: tuple[PolicyProposal, ...] | None = None
    feedback: str | None = None
    before: WritingPolicy | None = None
    difference: tuple[str, ...] | None = None
    """Lines removed (-) and added (+)."""

    def to_json(self) -> dict[str, Any]:
        """Return the step as a JSON object; what a kind of step does not have is left out."""
        found: dict[str, Any] = {"status": self.status}
        if self.proposals is not None:
            found["score"] = self.score
            found["proposals"] = [_plain(item) for item in self.proposals]
            found["feedback"] = self.feedback
        if self.before is not None:
            found["before"] = self.before.to_json()
        found["after"] = self.after.to_json()
        if self.difference is not None:
            found["difference"] = list(self.difference)
        return found


@dataclass(frozen=True, slots=True)
class EvolutionEvent(EvolutionStep):
    """The step of an evolution after a period's exam."""

    KIND: ClassVar[str] = "evolution"
    period: int = 0
    recall: tuple[int, int] = (0, 0)
    """Newly exposed values that the memory states, and all of them."""
    entries: Mapping[str, str] = field(default_factory=dict)
    """Text of each entry in the bank, by id."""

    @classmethod
    def of(
        cls, step: EvolutionStep, period: int, recall: tuple[int, int], entries: Mapping[str, str]
    ) -> EvolutionEvent:
        """Return the event of a step that was taken after a period."""
        taken = {name: getattr(step, name) for name in _names(EvolutionStep)}
        return cls(**taken, period=period, recall=recall, entries=entries)

    def lineage_json(self) -> dict[str, Any]:
        """Return the event as `lineage.json` lists it: without the entries."""
        return {name: value for name, value in event_json(self).items() if name != "entries"}


@dataclass(frozen=True, slots=True)
class EndEvent:
    """The attempt ended, complete or not."""

    KIND: ClassVar[str] = "end"
    hash: str | None
    """Hash of the whole episode; null where it was not played to its end."""
    error: str | None
    reason: str | None = None
    index_recall: tuple[int, int] | None = None
    """Nearest entries that an approximate index found, and those it was asked for."""
    unreadable: Mapping[str, int] = field(default_factory=dict)
    """Replies that could not be read, by `kind.cause`."""
    unrecognised: int = 0
    """Memories shown in which the simulated model recognised nothing."""
    follow_up_failures: int = 0


Event = (
    StartEvent
    | ReferenceEvent
    | CallEvent
    | TurnEvent
    | ExamEvent
    | ProbeEvent
    | EvolutionEvent
    | EndEvent
)
"""One line of a scenario's journal."""

CLASSES: dict[str, type[Event]] = {found.KIND: found for found in get_args(Event)}
"""Class of each kind of event."""


def event_json(event: Event) -> dict[str, Any]:
    """Return the JSON object of an event."""
    if isinstance(event, CallEvent):
        return _call_json(event)
    if isinstance(event, EvolutionEvent):
        head = {"event": event.KIND, "period": event.period, "recall": list(event.recall)}
        return {**head, "entries": dict(event.entries), **EvolutionStep.to_json(event)}
    found = {"event": event.KIND, **_plain(event)}
    if isinstance(event, EndEvent) and event.index_recall is None:
        del found["index_recall"]
    return found


def read_event(content: Mapping[str, Any]) -> Event:
    """Return the event of a JSON object; keys that a kind does not know are ignored.

    Raises:
        RunError: its kind is not known, or a value is missing or of another type.
    """
    given = dict(content)
    kind = given.pop("event", None)
    if kind not in CLASSES:
        raise RunError(f"expected an event, one of {', '.join(CLASSES)}, found {kind!r}")
    if kind == CallEvent.KIND:
        known = _names(CallEvent)
        details = {name: value for name, value in given.items() if name not in known}
        given = {name: value for name, value in given.items() if name in known}
        given["details"] = details
    try:
        event: Event = _ADAPTERS[kind].validate_python(given)
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(map(str, first["loc"]))
        raise RunError(f"event {kind!r}, {place}: {first['msg']}") from error
    return event


def read_policy(content: Mapping[str, Any]) -> WritingPolicy:
    """Return the policy of a JSON object."""
    policy: WritingPolicy = _POLICY.validate_python(dict(content))
    return policy


def read_step(content: Mapping[str, Any]) -> EvolutionStep:
    """Return the evolution's step of a JSON object in `lineage.json`."""
    step: EvolutionStep = _STEP.validate_python(dict(content))
    return step


def _call_json(event: CallEvent) -> dict[str, Any]:
    found: dict[str, Any] = {
        "event": event.KIND,
        "kind": event.kind,
        "role": event.role,
        "key": event.key,
        "occurrence": event.occurrence,
    }
    retries = None if event.retries is None else event.retries.to_json()
    if event.failed:
        return {**found, "error": event.error, "reason": event.reason, "retries": retries}
    found |= {"text": event.text, "cause": event.cause, "finish_reason": event.finish_reason}
    found["usage"] = None if event.usage is None else event.usage.to_json()
    return {**found, "retries": retries, **event.details}


def _plain(record: Any) -> dict[str, Any]:
    return {
        name: value.to_json() if isinstance(value, WritingPolicy) else value
        for name in _names(record.__class__)
        for value in [getattr(record, name)]
    }


@cache
def _names(kind: Any) -> tuple[str, ...]:
    return tuple(part.name for part in fields(kind))


_ADAPTERS: dict[str, TypeAdapter[Any]] = {
    kind: TypeAdapter(found) for kind, found in CLASSES.items()
}
_POLICY, _STEP = TypeAdapter(WritingPolicy), TypeAdapter(EvolutionStep)
