"""Models: the client that agents and drivers use to execute prompts.

`Backend.complete(call)` turns messages into text. `Models` is what agents and drivers are handed:
it chooses the backend for a role, renders, parses, records every call as it happens, keeps the
accounts, and answers calls that are already in the record without making them again.
"""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Generic, NamedTuple, TypeVar, cast

from amemgym_env.errors import (
    BudgetExceeded,
    Cause,
    ContentError,
    ParseError,
    Reason,
    TransportError,
)
from amemgym_env.models.backend import Backend, Call, Completion, call_key
from amemgym_env.models.events import CallEvent, Event
from amemgym_env.models.replay import Recorded
from amemgym_env.models.usage import Usage
from amemgym_env.prompts.base import BUILT_IN, Prompt, Role, Templates

T = TypeVar("T")


class Outcome(NamedTuple, Generic[T]):
    """What a Prompt led to: a value, or the cause why a reply is not readable, or an error."""

    value: T | None
    cause: Cause | None = None
    text: str = ""
    """The model's reply as it came."""
    error: TransportError | None = None
    """The call could not be answered: whatever it was to decide is unscored."""


Recorder = Callable[[Event], None]
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


@dataclass
class Models:
    """The models of one episode, by role, with its record and accounts."""

    backends: Mapping[str, Backend]
    """Keys assistant, memory, user, judge; missing ones are answered by the assistant's."""
    templates: Templates = BUILT_IN
    recorder: Recorder | None = None
    recorded: Recorded = field(default_factory=Recorded)
    stopped: Callable[[], str | None] = lambda: None
    """Why no further call is to be made, if so."""
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
        return self.begin(prompt)()

    def begin(self, prompt: Prompt[T]) -> Callable[[], Outcome[T]]:
        """Ask and return at once; what is returned waits for the outcome and raises as `ask`.

        Where one call is under way at a time, it is made only when its outcome is waited for.
        """
        wait = self._begin(*self._prepared(prompt))

        def waited() -> Outcome[T]:
            outcome = wait()
            if outcome.error is not None:
                raise outcome.error
            return outcome

        return waited

    def ask_all(self, prompts: Sequence[Prompt[T]]) -> list[Outcome[T]]:
        """Return the outcomes of independent prompts, in order, asked at once where possible.

        The error of a failed call is in its outcome's `error`; other calls are not affected.

        Raises:
            BudgetExceeded: the run's budget is spent.
        """
        outcomes: list[Outcome[T]] = []
        failure: Exception | None = None
        prepared = [self._prepared(prompt) for prompt in prompts]
        for wait in [self._begin(*item) for item in prepared]:
            try:
                outcomes.append(wait())
            except Exception as error:  # noqa: BLE001 - every error is classified
                failure = failure or error  # the others are under way: let them be recorded first
        if failure is not None:
            raise failure
        return outcomes

    def _prepared(self, prompt: Prompt[T]) -> tuple[Prompt[T], Call, Backend, str | None, int]:
        """Render a prompt and fix its place in the record before anything is sent."""
        call = Call(prompt.kind, prompt.role, prompt.render(self.templates), prompt.schema)
        backend = self.backend(prompt.role)
        if backend.simulated:
            return prompt, call, backend, None, 0
        key = call_key(backend, call)
        with self._lock:
            occurrence = self._occurrences.get(key, 0)
            self._occurrences[key] = occurrence + 1
        return prompt, call, backend, key, occurrence

    def _begin(
        self, prompt: Prompt[T], call: Call, backend: Backend, key: str | None, occurrence: int
    ) -> Callable[[], Outcome[T]]:
        known, copied = (None, False) if key is None else self.recorded.get(key, occurrence)
        if known is not None:
            outcome = self._remembered(prompt, call, known, copied)
            return lambda: outcome
        begun = time.perf_counter()

        def finish(result: Callable[[], Completion]) -> Outcome[T]:
            return self._finished(prompt, call, backend, key, occurrence, begun, result)

        def refuse() -> Completion:
            raise BudgetExceeded(str(self.stopped()))

        if self.stopped() is not None:
            return lambda: finish(refuse)
        if backend.concurrency <= 1:
            return lambda: finish(lambda: backend.complete(call))
        finished: Future[Outcome[T]] = Future()

        # The outcome is handed on only after the call is in the record.
        def settle(result: Callable[[], Completion]) -> None:
            try:
                finished.set_result(finish(result))
            except BaseException as error:  # noqa: BLE001 - raised where the outcome is waited for
                finished.set_exception(error)

        def done(future: Future[Completion]) -> None:
            if not finished.done():
                settle(future.result)

        backend.start(call, lambda completion: settle(lambda: completion)).add_done_callback(done)
        return finished.result

    def _finished(
        self,
        prompt: Prompt[T],
        call: Call,
        backend: Backend,
        key: str | None,
        occurrence: int,
        begun: float,
        result: Callable[[], Completion],
    ) -> Outcome[T]:
        """Record and read what a call led to."""
        try:
            completion = result()
        except ContentError as error:
            completion = Completion("", Usage(calls=1), cause=error.cause)
        except TransportError as error:
            retries = Usage(calls=error.attempts, seconds=time.perf_counter() - begun)
            self._account(call.role, Usage(), retries)
            self._record(
                CallEvent(
                    call.kind,
                    call.role,
                    key,
                    occurrence,
                    retries=retries if error.attempts else None,
                    error=str(error),
                    reason=error.reason,
                )
            )
            return Outcome(None, error=error)
        usage = completion.usage
        if not backend.simulated and not usage.seconds:
            usage += Usage(seconds=time.perf_counter() - begun)
        self._account(call.role, usage, completion.retries)
        self._record(
            CallEvent(
                call.kind,
                call.role,
                key,
                occurrence,
                completion.text,
                completion.cause,
                completion.finish_reason,
                usage,
                completion.retries if completion.retries.calls else None,
                details=completion.details or {},
            )
        )
        return self._parsed(prompt, completion.text, completion.cause)

    def _remembered(
        self, prompt: Prompt[T], call: Call, event: CallEvent, copied: bool
    ) -> Outcome[T]:
        if copied:
            self._record(event)
        self._account(call.role, event.usage or Usage(), event.retries or Usage())
        if event.error is not None:
            reason = cast(Reason, event.reason)
            return Outcome(None, error=TransportError(event.error, reason=reason))
        return self._parsed(prompt, event.text or "", cast("Cause | None", event.cause))

    def _account(self, role: Role, usage: Usage, retries: Usage) -> None:
        with self._lock:
            self.usage[role] = self.usage.get(role, Usage()) + usage
            if retries.calls:
                self.usage["retries"] = self.usage.get("retries", Usage()) + retries

    def _record(self, event: CallEvent) -> None:
        if self.recorder is not None:
            self.recorder(event)

    def _parsed(self, prompt: Prompt[T], text: str, cause: Cause | None) -> Outcome[T]:
        if cause is None:
            try:
                return Outcome(prompt.parse(text), None, text)
            except ParseError as error:
                cause = error.cause
        with self._lock:
            self.causes[f"{prompt.kind}.{cause}"] += 1
        return Outcome(None, cause, text)


__all__ = [
    "Backend",
    "Call",
    "Completion",
    "Models",
    "Outcome",
    "Recorded",
    "Recorder",
    "Usage",
    "call_key",
]
