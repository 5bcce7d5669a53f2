"""A named stream of draws: fast, and the same in any process for the same key."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from itertools import accumulate
from typing import Generic, TypeVar

from amemgym_env.seeding import Key, generator

T = TypeVar("T")

_BLOCK = 256


class Weighted(Generic[T]):
    """Items with weights, prepared for many draws."""

    def __init__(self, rows: Sequence[tuple[T, float]]) -> None:
        self.items = tuple(item for item, _ in rows)
        self.bounds = tuple(accumulate(weight for _, weight in rows))


class Draws:
    """Draws one after the other from the stream that `key` names.

    Only the raw uniform numbers of the generator are used, so the draws do not depend on how a
    version of numpy turns them into integers or permutations; drawing them in blocks makes a draw
    several times cheaper than a call of the generator.
    """

    def __init__(self, *key: Key) -> None:
        self._generator = generator("generation", *key)
        self._block: list[float] = []

    def uniform(self) -> float:
        """Return the next number in [0, 1)."""
        if not self._block:
            self._block = self._generator.random(_BLOCK).tolist()
        return self._block.pop()

    def chance(self, probability: float) -> bool:
        """Return true with the given probability."""
        return self.uniform() < probability

    def below(self, n: int) -> int:
        """Return an integer in 0..n-1 (`n` >= 1).

        A number of 53 bits below 1, times `n`, never rounds up to `n`.
        """
        return int(self.uniform() * n)

    def pick(self, items: Sequence[T]) -> T:
        """Return one of the items, each as likely."""
        return items[int(self.uniform() * len(items))]

    def weighted(self, items: Sequence[T], weights: Sequence[float]) -> T:
        """Return one of the items, as likely as its weight (at least one is positive)."""
        point = self.uniform() * sum(weights)
        for item, weight in zip(items, weights, strict=True):
            point -= weight
            if point < 0:
                return item
        # Rounding can leave a point of about 1e-16 after the last.
        return next(i for i, w in zip(reversed(items), reversed(weights), strict=True) if w > 0)

    def of(self, table: Weighted[T]) -> T:
        """Return an item of a prepared table, as likely as its weight."""
        place = bisect_right(table.bounds, self.uniform() * table.bounds[-1])
        return table.items[min(place, len(table.items) - 1)]

    def shuffled(self, items: Sequence[T]) -> list[T]:
        """Return the items in a random order."""
        return self.sample(items, len(items))

    def sample(self, items: Sequence[T], count: int) -> list[T]:
        """Return `count` different items (at most all) in a random order."""
        found = list(items)
        size = len(found)
        for place in range(min(count, size - 1)):
            other = place + int(self.uniform() * (size - place))
            found[place], found[other] = found[other], found[place]
        return found[:count]
