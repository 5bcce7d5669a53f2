"""Budget of dollars and tokens: usage so far, calls under way, refusal of the next call."""

from __future__ import annotations

import threading

from amemgym_env.errors import BudgetExceeded
from amemgym_env.models.usage import Usage


class Budget:
    """Counts what calls cost and refuses the call that would begin after the budget is spent.

    Calls under way are counted with an estimate; many at once do not overrun the budget together.
    """

    def __init__(self, usd: float | None = None, tokens: int | None = None) -> None:
        self.usd = usd
        self.tokens = tokens
        self._lock = threading.Lock()
        self._spent = Usage()
        self._open = Usage()

    @property
    def spent(self) -> Usage:
        """What finished calls have cost."""
        return self._spent

    def reserve(self, estimate: Usage) -> None:
        """Admit a call that will cost about `estimate`.

        Raises:
            BudgetExceeded: it would go beyond the budget.
        """
        with self._lock:
            total = self._spent + self._open + estimate
            if self.tokens is not None and total.tokens > self.tokens:
                raise BudgetExceeded(
                    f"backend.budget_tokens={self.tokens}: spent {self._spent.tokens} tokens, the "
                    "next call would go beyond; the same command with a larger one continues"
                )
            if self.usd is not None and (total.usd or 0.0) > self.usd:
                raise BudgetExceeded(
                    f"backend.budget_usd={self.usd:g}: spent {self._spent.usd or 0.0:.4f} dollars, "
                    "the next call would go beyond; the same command with a larger one continues"
                )
            self._open += estimate

    def settle(self, estimate: Usage, usage: Usage | None) -> None:
        """Replace an admitted call's estimate by what it cost; None: nothing."""
        with self._lock:
            self._open = Usage(
                prompt_tokens=self._open.prompt_tokens - estimate.prompt_tokens,
                completion_tokens=self._open.completion_tokens - estimate.completion_tokens,
                usd=(self._open.usd or 0.0) - (estimate.usd or 0.0),
            )
            if usage is not None:
                self._spent += usage

    def remember(self, usage: Usage) -> None:
        """Count what was spent before."""
        with self._lock:
            self._spent += usage
