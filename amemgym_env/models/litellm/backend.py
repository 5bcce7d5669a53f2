"""Real language models through litellm.

There is one retry layer, `attempts`; litellm's and the SDKs' own are switched off. What a failed
request means is decided by one table (`decisions`). Parameters that a model refuses are left out or
lowered once, with a warning, and recorded with every call. Keys are read from the environment when
a call is made, and not stored.
"""

from __future__ import annotations

import asyncio
import dataclasses
import functools
import os
import time
from collections.abc import Awaitable, Callable, Mapping
from concurrent.futures import Future
from pathlib import Path
from typing import Any

from amemgym_env.errors import BudgetExceeded, ConfigError, TransportError
from amemgym_env.models.backend import Backend, Call, Completion, call_key
from amemgym_env.models.budget import Budget
from amemgym_env.models.cache import CallCache
from amemgym_env.models.litellm import event_loop, worker_pool
from amemgym_env.models.litellm.attempts import Endpoint
from amemgym_env.models.litellm.faults import Fault
from amemgym_env.models.litellm.library import Facts, facts, request
from amemgym_env.models.litellm.parameters import (
    Format,
    Parameters,
    checked_address,
    checked_extra,
    checked_key_name,
    connection,
    usual_address,
    warn,
)
from amemgym_env.models.litellm.preflight import check_address, check_key
from amemgym_env.models.litellm.responses import Answered
from amemgym_env.models.litellm.token_counts import about, shortfall
from amemgym_env.models.usage import Usage
from amemgym_env.prompts.base import message

_PREFLIGHT = Call(
    "preflight",
    "assistant",
    [message("user", 'Reply with JSON and nothing else: {"answer": 1}')],
    {
        "type": "object",
        "properties": {"answer": {"type": "integer"}},
        "required": ["answer"],
        "additionalProperties": False,
    },
)

Send = Callable[[Mapping[str, Any], float], Awaitable[Answered | Fault]]


class LitellmModel(Backend):
    """A model by its litellm name, such as `openai/gpt-4.1-mini`.

    `timeout` is in seconds for one attempt, `retries` the attempts after the first; the n-th waits
    `first_delay * 2 ** n` seconds at most. A provider that asks to wait more than `max_wait`
    seconds stops the run. `max_tokens` limits the reply (None: not sent); `extra` are further
    arguments of `litellm.acompletion`, such as `num_ctx`. `api_key_env` names the variable that
    holds the key (None: the provider's usual one). `cache` is a folder. `offline` allows no call.
    `processes` send the requests (0: this one; None: by `max_concurrency`).
    """

    def __init__(
        self,
        model: str,
        *,
        api_base: str | None = None,
        api_key_env: str | None = None,
        temperature: float | None = 0.0,
        max_tokens: int | None = None,
        extra: Mapping[str, Any] | None = None,
        seed: int | None = None,
        timeout: float = 120.0,
        retries: int = 5,
        first_delay: float = 0.5,
        max_wait: float = 120.0,
        max_concurrency: int = 32,
        processes: int | None = 0,
        requests_per_minute: float | None = None,
        response_format: Format = "auto",
        cache: str | Path | None = None,
        offline: bool = False,
        budget_usd: float | None = None,
        budget_tokens: int | None = None,
    ) -> None:
        self.name = f"litellm/{model}"
        self.model = model
        self.concurrency = max(2, max_concurrency)  # 1 is held by the slots: calls stay in the loop
        self.timeout = timeout
        key = f"backend.model={model}"
        self.endpoint = Endpoint(key, self.name, retries, first_delay, max_wait)
        self.offline = offline
        api_base = usual_address(model) if api_base is None else api_base
        self.api_base = None if api_base is None else checked_address(api_base)
        self.api_key_env = checked_key_name(model, api_key_env)
        self.budget = Budget(budget_usd, budget_tokens)
        optional = {"temperature": temperature, "seed": seed, "max_tokens": max_tokens}
        self.asked = Parameters(model, optional, response_format)
        self.extra = checked_extra(extra or {})
        self._given: dict[str, Any] = {**optional, "api_base": api_base, "format": response_format}
        self._given |= {"extra": self.extra} if self.extra else {}
        self._cache = None if cache is None else CallCache(cache)
        self._slots = max_concurrency
        if processes is None:
            processes = worker_pool.fitting(max_concurrency)
        self.processes = processes
        self._senders: tuple[int, worker_pool.Senders] | None = None
        self._stopped: str | None = None
        self._cut = False
        self._sleeping: set[asyncio.Future[None]] = set()
        self._gate: tuple[asyncio.AbstractEventLoop, asyncio.Semaphore] | None = None
        self._interval = 60.0 / requests_per_minute if requests_per_minute else 0.0
        self._next = 0.0

    @property
    def parameters(self) -> Mapping[str, Any]:
        """What the model was asked with, as configured."""
        return self._given

    def complete(self, call: Call) -> Completion:
        """Return the model's reply; see `Backend.complete`.

        Raises:
            ConfigError: the provider refuses the key, the model or the address.
        """
        return self.start(call).result()

    def start(
        self, call: Call, deliver: Callable[[Completion], None] | None = None
    ) -> Future[Completion]:
        """Begin a call; what goes wrong is raised by the future."""
        future: Future[Completion] = Future()
        try:
            key = None if self._cache is None else call_key(self, call)
            known = None if self._cache is None or key is None else self._cache.get(key)
            if known is not None:
                future.set_result(known)
                return future
            if self.offline:
                text = "without network (offline=true, replay=), and the call is not in the record"
                raise TransportError(text, reason="offline")
            _ = self._prepared
            return event_loop.shared().submit(self._answer(call, key, deliver))
        except Exception as error:  # noqa: BLE001 - every error is classified
            future.set_exception(error)
            return future

    def preflight(self) -> Usage:
        """Make one small call and return what it cost; nothing without network.

        Key, address, certificate, model, response format and limit on the reply are so checked
        before anything is played. A provider that is only busy is passed with a warning.

        Raises:
            ConfigError: no call can pass.
        """
        if self.offline:
            return Usage()
        check_key(self.model, self.api_key_env, self.api_base)
        check_address(self.endpoint.key, self.api_base)
        self.endpoint.checking = True
        try:
            _ = self._prepared
            return event_loop.shared().submit(self._attempts(_PREFLIGHT, None)).result().usage
        except TransportError as error:
            if error.reason == "rejected":
                raise ConfigError(f"{self.endpoint.key}: {error}") from error
            warn(f"{self.model}: no answer to the preflight call ({error}); the run begins")
            return Usage()
        finally:
            self.endpoint.checking = False

    def remember(self, usage: Usage) -> None:
        """Count what an earlier part of the run has spent."""
        self.budget.remember(usage)

    def stop(self, reason: str | None) -> None:
        """Begin no further call and wait for no further attempt; see `Backend.stop`."""
        self._stopped = reason
        if reason is not None and self._gate is not None:
            self._gate[0].call_soon_threadsafe(self._wake)

    def _wake(self) -> None:
        for sleeping in self._sleeping:
            _end(sleeping)

    async def _sleep(self, seconds: float) -> None:
        """Wait the seconds, or until the backend is stopped."""
        loop = asyncio.get_running_loop()
        sleeping: asyncio.Future[None] = loop.create_future()
        self._sleeping.add(sleeping)
        timer = loop.call_later(seconds, _end, sleeping)
        try:
            if self._stopped is None:
                await sleeping
        finally:
            timer.cancel()
            self._sleeping.discard(sleeping)

    def close(self) -> None:
        """Close the cache's file, and the sending processes if nobody else uses them."""
        self._senders = None
        if self._cache is not None:
            self._cache.close()

    @property
    def prices(self) -> tuple[float, float] | None:
        """Dollars a prompt and a completion token; None: not known."""
        return self._facts.prices

    @functools.cached_property
    def _facts(self) -> Facts:
        if self._senders is None:
            known = facts(self.model)
        else:  # they have litellm: this process need not import it too
            known = event_loop.shared().submit(self._sending().facts(self.model)).result()
        if known.prices is None:
            warn(f"{self.model}: price not known; dollars are null in the accounts, not 0")
        return known

    def cost(self, prompt_tokens: int, completion_tokens: int) -> float | None:
        """Return what tokens cost in dollars at list price, None where it is not known."""
        if self.prices is None:
            return None
        return prompt_tokens * self.prices[0] + completion_tokens * self.prices[1]

    @functools.cached_property
    def _prepared(self) -> bool:
        """Look at what the model can do, once, before its first call."""
        if self.processes:
            self._sending()
        if self.budget.usd is not None and self.prices is None:
            raise ConfigError(
                f"backend.budget_usd: expected a model with a known price, found {self.model!r}; "
                "use backend.budget_tokens"
            )
        self.asked.choose_form(self._facts.takes_format, self._facts.takes_schema)
        return True

    async def _answer(
        self, call: Call, key: str | None, deliver: Callable[[Completion], None] | None
    ) -> Completion:
        completion = await self._attempts(call, deliver)
        if self._cache is not None and key is not None and completion.cause is None:
            await asyncio.to_thread(self._cache.put, key, completion)
        return completion

    async def _attempts(
        self, call: Call, deliver: Callable[[Completion], None] | None
    ) -> Completion:
        send = await self._sender()
        begun = sent = time.perf_counter()
        arguments: dict[str, Any] = {}
        reply_limit: list[Fault] = []
        """Refusals of the reply limit for this prompt; the next attempt has none."""

        async def attempt(number: int) -> Completion | Fault:
            nonlocal sent, arguments
            async with self._gated():
                await self._paced()
                if self._stopped is not None:
                    raise BudgetExceeded(self._stopped)
                estimate = self._estimate(call)
                self.budget.reserve(estimate)
                spent = None
                arguments = self.asked.of(call)
                if reply_limit:
                    arguments.pop("max_tokens", None)
                sent = time.perf_counter()
                try:
                    fault = await send({**arguments, **self._fixed(call)}, self.timeout)
                    retries = Usage(number, seconds=sent - begun) if number else Usage()
                    if isinstance(fault, Fault):
                        return self._failure(fault, sent, retries)
                    if reply_limit:
                        self.asked.leave_out(reply_limit[0], self.asked.of(call))
                    done = self._completed(call, fault, time.perf_counter() - sent, retries)
                    spent = done.usage
                    if deliver is not None:
                        deliver(done)
                    return done
                finally:
                    self.budget.settle(estimate, spent)

        def remedy(fault: Fault) -> bool:
            if fault.action == "window":
                reply_limit.append(dataclasses.replace(fault, limit=None))
                return "max_tokens" in arguments
            return self.asked.leave_out(fault, arguments)

        text = call.messages[-1]["content"]
        return await self.endpoint.attempts(attempt, remedy, self._sleep, text)

    async def _sender(self) -> Send:
        """Return what sends a request: this process, or others that are ready."""
        if not self.processes:
            return request
        senders = self._sending()
        await senders.ready()
        return senders.request

    def _sending(self) -> worker_pool.Senders:
        # A forked child cannot use its parent's.
        if self._senders is None or self._senders[0] != os.getpid():
            self._senders = (os.getpid(), worker_pool.shared(self.processes))
        return self._senders[1]

    def _gated(self) -> asyncio.Semaphore:
        loop = asyncio.get_running_loop()
        if self._gate is None or self._gate[0] is not loop:
            self._gate = (loop, asyncio.Semaphore(self._slots))
        return self._gate[1]

    async def _paced(self) -> None:
        if self._interval:
            now = time.monotonic()
            wait, self._next = self._next - now, max(now, self._next) + self._interval
            if wait > 0:
                await self._sleep(wait)

    def _fixed(self, call: Call) -> dict[str, Any]:
        known = connection(self.model, self.api_base, self.api_key_env)
        known |= {"allowed_openai_params": sorted(self.extra)} if self.extra else {}
        return {**self.extra, "model": self.model, "messages": call.messages, **known}

    def _completed(
        self, call: Call, answer: Answered, seconds: float, retries: Usage
    ) -> Completion:
        prompt, completion, estimated = answer.prompt_tokens, answer.completion_tokens, False
        if not prompt:
            prompt, estimated = about(part["content"] for part in call.messages), True
        if not completion and answer.text:
            completion, estimated = about([answer.text]), True
        usd = answer.usd
        if self.prices is None or usd is None or estimated:
            usd = self.cost(prompt, completion)
        usage = Usage(1, prompt, completion, answer.cached_tokens, seconds, usd, estimated)
        details = dict(answer.details)
        if self.asked.dropped:
            details["dropped"] = sorted(self.asked.dropped)
        least = shortfall(call.messages, answer.prompt_tokens)
        if least is not None:
            details["prompt_shortfall"] = least - answer.prompt_tokens
            self._warn_of_cut(least, answer.prompt_tokens)
        cause = answer.cause
        if cause is None and answer.finish_reason == "length" and call.schema is not None:
            cause = "unreadable"  # a whole object in a reply that was cut may be a draft of another
        return Completion(answer.text, usage, answer.finish_reason, retries, cause, details)

    def _failure(self, fault: Fault, sent: float, retries: Usage) -> Completion | Fault:
        """Return the model's own failure as a completion, any other fault as it is."""
        if fault.action != "failure":
            return fault
        usage = Usage(1, seconds=time.perf_counter() - sent, usd=self.cost(0, 0))
        details = {"error_message": fault.message}
        return Completion("", usage, None, retries, fault.cause, details)

    def _warn_of_cut(self, least: int, counted: int) -> None:
        if not self._cut:
            self._cut = True
            warn(
                f"{self.model}: the provider counted {counted} prompt tokens where at least "
                f"{least} were sent: it cuts prompts; enlarge its window (Ollama: "
                "backend.extra.num_ctx); results.json counts such calls"
            )

    def _estimate(self, call: Call) -> Usage:
        """Return about what a call will cost; exact counts come with its answer."""
        if self.budget.usd is None and self.budget.tokens is None:
            return Usage()
        tokens = sum(len(part["content"]) for part in call.messages) // 4
        return Usage(prompt_tokens=tokens, completion_tokens=1, usd=self.cost(tokens, 1))


def _end(sleeping: asyncio.Future[None]) -> None:
    if not sleeping.done():
        sleeping.set_result(None)
