"""What executes Prompts: backends differ in one method, everything else is shared.

`Backend.complete(call)` turns messages into text. `Models` is what agents and drivers are handed:
it chooses the backend for a role, renders, parses, records every call as it happens, keeps the
accounts, and answers calls that are already in the record without making them again.
"""

from __future__ import annotations

import json
import threading
import time
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any, Generic, NamedTuple, TypeVar

from amemgym_env.errors import Cause, ContentError, ParseError, TransportError
from amemgym_env.prompt import BUILT_IN, Message, Prompt, Role, Templates
from amemgym_env.randomness import digest

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Usage:
    """What calls cost. Tokens are counts; `usd` is None where the price is not known."""

    calls: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    cached_tokens: int = 0
    seconds: float = 0.0
    usd: float | None = 0.0
    estimated: bool = False
    """Whether some tokens were counted by us, because the provider did not say."""

    def __add__(self, other: Usage) -> Usage:
        """Return the sum; unknown and estimated parts make it unknown and estimated."""
        return Usage(
            self.calls + other.calls,
            self.prompt_tokens + other.prompt_tokens,
            self.completion_tokens + other.completion_tokens,
            self.cached_tokens + other.cached_tokens,
            self.seconds + other.seconds,
            None if self.usd is None or other.usd is None else self.usd + other.usd,
            self.estimated or other.estimated,
        )

    def to_json(self) -> dict[str, Any]:
        """Return the fields as a JSON object."""
        return {name: getattr(self, name) for name in self.__slots__}


class Call(NamedTuple):
    """One call of a language model."""

    kind: str
    role: Role
    messages: list[Message]
    schema: Mapping[str, Any] | None = None
    """JSON schema that the reply should follow; None: free text."""


class Completion(NamedTuple):
    """What came back."""

    text: str
    usage: Usage
    finish_reason: str | None = None
    retries: Usage = Usage()
    """What attempts cost that were billed but gave nothing."""


class Backend(ABC):
    """A language model, simulated or real."""

    name: str
    """Identifies the model in results and records."""
    simulated: bool = False
    """Whether results must be labelled as a simulated model's."""
    concurrency: int = 1
    """Calls that may be under way at once."""

    @abstractmethod
    def complete(self, call: Call) -> Completion:
        """Return the model's reply to `call`.

        Raises:
            ContentError: the model answered with nothing to read (empty, filtered, too long).
            TransportError: the call failed for good; nothing is known of the answer.
            BudgetExceeded: the run's budget is spent.
        """

    @property
    def parameters(self) -> Mapping[str, Any]:
        """What distinguishes this model's calls from the same messages under other settings."""
        return {}


class Outcome(NamedTuple, Generic[T]):
    """What a Prompt led to: a value, or the cause why a reply is not readable, or an error."""

    value: T | None
    cause: Cause | None = None
    text: str = ""
    """The model's reply as it came."""
    error: TransportError | None = None
    """The call could not be answered: whatever it was to decide is unscored."""


Recorder = Callable[[dict[str, Any]], None]
"""Writes one event of an episode; must be safe to call from several threads."""

_GROUPS: dict[Role, str] = {
    "assistant": "assistant",
    "exam": "assistant",
    "probe": "assistant",
    "upper_bound": "assistant",
    "memory": "memory",
    "user": "user",
    "judge": "judge",
    "generation": "assistant",
}


class Recorded:
    """Calls of an earlier part of the same run, by key and occurrence."""

    def __init__(self, events: Sequence[Mapping[str, Any]] = ()) -> None:
        self._events: dict[tuple[str, int], Mapping[str, Any]] = {
            (event["key"], event["occurrence"]): event
            for event in events
            if event["event"] == "call" and event["key"] is not None
        }

    def get(self, key: str, occurrence: int) -> Mapping[str, Any] | None:
        """Return the event of a call, if it was made before."""
        return self._events.get((key, occurrence))

    def __len__(self) -> int:
        """Return the number of recorded calls."""
        return len(self._events)


@dataclass
class Models:
    """The models of one episode, by role, with its record and accounts."""

    backends: Mapping[str, Backend]
    """Keys assistant, memory, user, judge; missing ones are answered by the assistant's."""
    templates: Templates = BUILT_IN
    recorder: Recorder | None = None
    recorded: Recorded = field(default_factory=Recorded)
    usage: dict[str, Usage] = field(default_factory=dict)
    causes: Counter[str] = field(default_factory=Counter)
    """How often a reply could not be read, by `kind.cause`."""

    def __post_init__(self) -> None:
        """Prepare what the threads of one episode share."""
        self._lock = threading.Lock()
        self._occurrences: dict[str, int] = {}

    @property
    def simulated(self) -> bool:
        """Whether any of the models is simulated."""
        return any(backend.simulated for backend in self.backends.values())

    def backend(self, role: Role) -> Backend:
        """Return the backend that answers calls of a role."""
        return self.backends.get(_GROUPS[role], self.backends["assistant"])

    def ask(self, prompt: Prompt[T]) -> Outcome[T]:
        """Return what a model makes of `prompt`.

        Raises:
            TransportError: the call failed for good.
            BudgetExceeded: the run's budget is spent.
        """
        outcome = self._run(*self._prepared(prompt))
        if outcome.error is not None:
            raise outcome.error
        return outcome

    def ask_all(self, prompts: Sequence[Prompt[T]]) -> list[Outcome[T]]:
        """Return the outcomes of independent prompts, in order, asked at once where possible.

        A call that failed for good stands in its outcome's `error`; the others are unharmed.

        Raises:
            BudgetExceeded: the run's budget is spent.
        """
        prepared = [self._prepared(prompt) for prompt in prompts]
        width = min([len(prepared), *(backend.concurrency for _, _, backend, *_ in prepared)])
        if width <= 1:
            return [self._run(*item) for item in prepared]
        with ThreadPoolExecutor(width) as pool:
            return list(pool.map(lambda item: self._run(*item), prepared))

    def _prepared(self, prompt: Prompt[T]) -> tuple[Prompt[T], Call, Backend, str | None, int]:
        """Render a prompt and fix its place in the record before anything is sent."""
        call = Call(prompt.kind, prompt.role, prompt.render(self.templates), prompt.schema)
        backend = self.backend(prompt.role)
        if backend.simulated:
            return prompt, call, backend, None, 0
        content = json.dumps([backend.name, dict(backend.parameters), call.kind, call.messages])
        key = digest("call", content).hex()
        with self._lock:
            occurrence = self._occurrences.get(key, 0)
            self._occurrences[key] = occurrence + 1
        return prompt, call, backend, key, occurrence

    def _run(
        self, prompt: Prompt[T], call: Call, backend: Backend, key: str | None, occurrence: int
    ) -> Outcome[T]:
        known = None if key is None else self.recorded.get(key, occurrence)
        if known is not None:
            return self._remembered(prompt, call, known)
        begun = time.perf_counter()
        cause: Cause | None = None
        try:
            completion = backend.complete(call)
        except ContentError as error:
            completion, cause = Completion("", Usage(calls=1)), error.cause
        except TransportError as error:
            self._record(call, key, occurrence, {"error": str(error)})
            return Outcome(None, error=error)
        seconds = 0.0 if backend.simulated else time.perf_counter() - begun
        usage = completion.usage + Usage(seconds=seconds)
        self._account(call.role, usage, completion.retries)
        self._record(
            call,
            key,
            occurrence,
            {
                "text": completion.text,
                "cause": cause,
                "finish_reason": completion.finish_reason,
                "usage": usage.to_json(),
                "retries": completion.retries.to_json() if completion.retries.calls else None,
            },
        )
        return self._parsed(prompt, completion.text, cause)

    def _remembered(self, prompt: Prompt[T], call: Call, event: Mapping[str, Any]) -> Outcome[T]:
        self._account(call.role, Usage(**event["usage"]), Usage(**(event["retries"] or {})))
        return self._parsed(prompt, event["text"], event["cause"])

    def _account(self, role: Role, usage: Usage, retries: Usage) -> None:
        with self._lock:
            self.usage[role] = self.usage.get(role, Usage()) + usage
            if retries.calls:
                self.usage["retries"] = self.usage.get("retries", Usage()) + retries

    def _record(self, call: Call, key: str | None, occurrence: int, rest: dict[str, Any]) -> None:
        if self.recorder is None:
            return
        event = {"event": "call", "kind": call.kind, "role": call.role}
        self.recorder({**event, "key": key, "occurrence": occurrence, **rest})

    def _parsed(self, prompt: Prompt[T], text: str, cause: Cause | None) -> Outcome[T]:
        if cause is None:
            try:
                return Outcome(prompt.parse(text), None, text)
            except ParseError as error:
                cause = error.cause
        with self._lock:
            self.causes[f"{prompt.kind}.{cause}"] += 1
        return Outcome(None, cause, text)
