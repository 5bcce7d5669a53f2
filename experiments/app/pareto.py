"""Which settings are worth their cost? The Pareto front of memory score against tokens and dollars.

Cost is what a user of the memory pays: the assistant's replies, the memory's own calls and the
answers to questions, retries included. What measuring takes (the upper bound, probes, a played
user, a judge) is no part of it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

PAID = ("assistant", "memory", "exam", "retries")
"""Roles of the accounts that count as cost."""

LIST_PRICE = {"prompt_tokens": 0.40, "completion_tokens": 1.60}
"""US dollars for a million tokens, used where the model was simulated and cost nothing: the list
price of gpt-4.1-mini, the paper's model. Such dollars are labelled as estimated."""


class Cost(NamedTuple):
    """What one user's episode costs."""

    tokens: float
    usd: float | None
    """None where the price of a real model is not known."""
    estimated: bool
    """Whether the dollars are LIST_PRICE times the tokens, not what was paid."""


def cost(document: Mapping[str, Any]) -> Cost:
    """Return the cost of one user from the contents of a results.json."""
    users = max(1, len(document["scenarios"]))
    parts = [document["usage"][role] for role in PAID if role in document["usage"]]
    tokens = sum(part.get(kind, 0) for part in parts for kind in LIST_PRICE)
    if document["simulated"]:
        usd = sum(part.get(kind, 0) * price for part in parts for kind, price in LIST_PRICE.items())
        return Cost(tokens / users, usd / 1e6 / users, True)
    paid = [part.get("usd") for part in parts]
    return Cost(tokens / users, None if None in paid else sum(paid) / users, False)


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
