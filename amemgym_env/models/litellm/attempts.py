"""Attempt loop of calls and embeddings: what each decision does, and the waits between attempts."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TypeVar

from amemgym_env.errors import BudgetExceeded, ConfigError, TransportError
from amemgym_env.models.litellm.faults import Fault, delay
from amemgym_env.models.litellm.parameters import warn

T = TypeVar("T")


class Endpoint:
    """Attempts at one model: retries, delays in seconds, and whether it has ever answered.

    Before the first answer, what no further call can pass is a mistake in the settings; after it,
    the run is stopped and can be resumed.
    """

    def __init__(
        self, key: str, name: str, retries: int, first_delay: float, max_wait: float
    ) -> None:
        self.key = key
        """Setting and value that messages name, such as `backend.model=openai/gpt-4.1-mini`."""
        self.name = name
        self.retries, self.first_delay, self.max_wait = retries, first_delay, max_wait
        self.answered = False
        self.checking = False
        """Whether a preflight call is under way: a host that cannot be reached is not retried."""

    async def attempts(
        self,
        attempt: Callable[[int], Awaitable[T | Fault]],
        remedy: Callable[[Fault], bool],
        sleep: Callable[[float], Awaitable[None]],
        text: str,
    ) -> T:
        """Return what an attempt gives; it gets the number of those that failed.

        `remedy` changes the request after a fault that names what to change, and returns whether
        it did. `text` draws the jitter of the delays.

        Raises:
            ConfigError: no call can pass, and none has passed yet.
            BudgetExceeded: the same in mid-run, or a wait beyond `max_wait`: the run stops.
            TransportError: no answer can be had; the call is unscored.
        """
        failed = 0
        while True:
            result = await attempt(failed)
            if not isinstance(result, Fault):
                self.answered = True
                return result
            failed += 1
            if result.action in ("parameter", "window") and remedy(result):
                continue
            self._give_up(result, failed)
            wait = delay(result, failed, self.first_delay, self.name, text)
            if (result.delay or 0.0) > 10.0:
                warn(f"{self.name}: the provider asks to wait {wait:.0f} seconds")
            await sleep(wait)

    def _give_up(self, fault: Fault, failed: int) -> None:
        """Raise unless another attempt is to follow."""
        unreachable = fault.action == "retry" and fault.first and not self.answered
        if fault.action == "stop" or (unreachable and self.checking):
            if not self.answered:
                raise ConfigError(f"{self.key}: {fault.message}")
            raise stopped(f"{self.key}: {fault.message}; the same command continues", "rejected")
        if fault.delay is not None and fault.delay > self.max_wait:
            raise stopped(
                f"{self.key}: the provider asks to wait {fault.delay:.0f} seconds, more than "
                f"max_wait={self.max_wait:g}; the same command continues",
                fault.reason,
            )
        if fault.action != "retry" or failed > self.retries:
            raise TransportError(fault.message, failed, fault.reason)


def stopped(text: str, reason: str) -> BudgetExceeded:
    """Return the error that ends a run, counted under `reason`."""
    error = BudgetExceeded(text)
    error.reason = reason  # type: ignore[assignment]
    return error
