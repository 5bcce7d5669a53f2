"""Backend: the interface of a language model, with the call and its completion."""

from __future__ import annotations

import json
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, NamedTuple

from amemgym_env.errors import Cause
from amemgym_env.models.usage import Usage
from amemgym_env.prompts.base import Message, Role
from amemgym_env.seeding import text_digest


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
    """Attempts before this one that gave nothing."""
    cause: Cause | None = None
    """Why there is nothing to read, although the provider answered."""
    details: Mapping[str, Any] | None = None
    """Further recorded facts: the model's version, parameters that were not applied, ..."""


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
            ContentError: the model answered with nothing to read (empty, filtered, too long);
                a backend that knows the cost says so by a completion with a `cause` instead.
            TransportError: the call failed for good; nothing is known of the answer.
            BudgetExceeded: the run's budget is spent.
        """

    def start(
        self, call: Call, deliver: Callable[[Completion], None] | None = None
    ) -> Future[Completion]:
        """Begin a call and return at once; used where `concurrency` is above 1.

        `deliver` gets the completion before another call takes this one's place, so that what is
        finished is on disk before the next begins.
        """
        with _POOLS:
            pool = self.__dict__.setdefault("_pool", None) or ThreadPoolExecutor(self.concurrency)
            self.__dict__["_pool"] = pool

        def complete() -> Completion:
            completion = self.complete(call)
            if deliver is not None:
                deliver(completion)
            return completion

        future: Future[Completion] = pool.submit(complete)
        return future

    def remember(self, usage: Usage) -> None:
        """Count what an earlier part of the run has spent against the budget, if there is one."""
        return None

    def stop(self, reason: str | None) -> None:
        """Begin no further call, whatever waits for its turn; None: go on.

        What is stopped ends with `BudgetExceeded` and this reason. Called from any thread.
        """
        return None

    def close(self) -> None:
        """Release what calls hold open; the backend is not used again."""
        pool = self.__dict__.pop("_pool", None)
        if pool is not None:
            pool.shutdown()

    @property
    def parameters(self) -> Mapping[str, Any]:
        """What distinguishes this model's calls from the same messages under other settings."""
        return {}


_POOLS = threading.Lock()


def call_key(backend: Backend, call: Call) -> str:
    """Return what identifies a call in records and caches: model, parameters, kind, messages."""
    texts = ["call", backend.name, json.dumps(dict(backend.parameters), sort_keys=True), call.kind]
    for part in call.messages:
        texts += (part["role"], part["content"])
    return text_digest(texts).hex()
