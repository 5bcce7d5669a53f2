"""Pareto front of memory score against cost in tokens and dollars.

Cost covers the assistant's replies, the memory's own calls and the answers to questions, retries
included. The cost of measuring (upper bound, probes, user model, judge) is excluded.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from amemgym_env.evaluation.results_file import ResultsFile
from amemgym_env.models.usage import Usage

PAID = ("assistant", "memory", "exam", "retries")
"""Roles of the accounts that count as cost."""

LIST_PRICE = (0.40, 1.60)
"""US dollars for a million prompt and completion tokens of gpt-4.1-mini, the paper's model.
Dollars of simulated runs are computed with it and labelled as estimated."""


class Cost(NamedTuple):
    """What one user's episode costs."""

    tokens: float
    usd: float | None
    """None where the price of a real model is not known."""
    estimated: bool
    """Whether the dollars are LIST_PRICE times the tokens, not what was paid."""


def paid_usage(results: ResultsFile) -> Usage:
    """Return the usage that counts as cost, over all users."""
    return sum((results.usage[role] for role in PAID if role in results.usage), Usage())


def cost(results: ResultsFile) -> Cost:
    """Return the cost of one user."""
    users = max(1, len(results.scenarios))
    paid = paid_usage(results)
    if results.simulated:
        in_price, out_price = LIST_PRICE
        usd = paid.prompt_tokens * in_price + paid.completion_tokens * out_price
        return Cost(paid.tokens / users, usd / 1e6 / users, True)
    return Cost(paid.tokens / users, None if paid.usd is None else paid.usd / users, False)


class Point(NamedTuple):
    """One setting's score and cost; None is unknown and never on a front."""

    score: float | None
    cost: float | None


def front(points: Sequence[Point]) -> list[int]:
    """Return the indices of the points that no other beats, cheapest first.

    A point is beaten by one that scores at least as much for at most as much, and differs in one
    of the two; of equal points the first stays.
    """
    known = [
        (point.cost, -point.score, index)
        for index, point in enumerate(points)
        if point.score is not None and point.cost is not None
    ]
    best, kept = float("-inf"), []
    for _, negative, index in sorted(known):
        if -negative > best:
            best = -negative
            kept.append(index)
    return kept


def varied(overrides: Iterable[Sequence[str]]) -> list[str]:
    """Return the words of each job that not all jobs share, without the keys' common head."""
    jobs = [list(words) for words in overrides]
    shared = set(jobs[0]).intersection(*map(set, jobs[1:])) if len(jobs) > 1 else set()
    rows = [[word.removeprefix("agent.") for word in words if word not in shared] for words in jobs]
    return [" ".join(row) for row in rows]
