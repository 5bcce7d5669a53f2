"""Rules of an episode in numpy: a batch of episodes as columns of arrays.

This is the one translation of `episode.py`, `memory/bank.py`, `policies/actions.py` and
`scenarios/answer_model.py` into arrays; tests prove it equal to a stack of scalar environments.
There is no loop over episodes.

Slots are the first axis, so that reductions over a bank run along memory. A bank is a column of
rounds (see `tables.py`), first added first, without gaps; 0 is an empty place. Similarity and
position of an entry are packed into one integer, so one maximum finds the most similar entry, the
first of equals, and its position.
"""

from __future__ import annotations

from functools import reduce
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from amemgym_env.envs.memory.pool import DUPLICATE_SIMILARITY, EXAM, Pool
from amemgym_env.envs.memory.tables import NOTHING
from amemgym_env.policies.features import UNIT

Ints = npt.NDArray[np.int64]
Slots = npt.NDArray[np.int32]
Bools = npt.NDArray[np.bool_]
Floats = npt.NDArray[np.float64]
NOWHERE = -1
"""A position that no entry has."""
# Arrays without axes: numpy spends as long on a plain number as on adding 64 of them.
_ZERO, _ONE = np.array(0, np.int32), np.array(1, np.int32)
_UNSIGNED_ONE = np.array(1, np.uint32)
_FEW = 16
"""Slots up to which it costs more to find out how many are in use than to go through all."""


class Snapshot(NamedTuple):
    """A copy of the state of N episodes."""

    script: Ints  # (N,) row of the pool
    turn: Slots | Ints  # (N,) rounds played
    slots: Slots  # (slots, N) round that wrote each entry, 0: empty
    held: Slots | Ints  # (N,) entries held


class Ranking(NamedTuple):
    """Similarities of the banks to the current messages; the entries of an empty bank are 0."""

    similarity: Slots  # (slots, N), NOTHING where empty; overwritten when something changes
    near_position: Slots  # (N,) of the most similar entry, `NOWHERE` in an empty bank
    entries: Ints  # (2, N) the most similar entry and the one written longest ago
    similarities: npt.NDArray[np.int16]  # (2, N) of these, NOTHING in an empty bank
    texts: Ints  # (N, 3) present message and these entries, as texts of the pool
    facts: npt.NDArray[np.int16]  # (N, 3, 4) `Pool.facts` of the three


class Exams(NamedTuple):
    """The exams of n of N episodes to which the last round has led."""

    mask: Bools  # (N,) whether an episode is among them
    which: Ints  # (n,) the same as indices
    total: Floats  # (n,) expected accuracies, summed where several exams follow each other
    number: Ints | None  # (n,) of exams; None: one each
    each: tuple[tuple[Ints, Floats], ...]  # episodes and their accuracies, exam after exam


class ArrayEpisodes:
    """N parallel episodes. An episode that has ended waits for `begin`."""

    def __init__(
        self, pool: Pool, num_envs: int, capacity: int, top_k: int, confusion: float
    ) -> None:
        self.pool = pool
        self.num_envs = num_envs
        self.capacity = capacity
        self.top_k = top_k
        self.confusion = confusion
        self.columns = np.arange(num_envs)
        self._width = np.array(num_envs)
        self.script: Ints = np.zeros(num_envs, np.int64)
        # What grows with every round: rounds played, the present message (after the end an empty
        # one) as a text of the pool, and the place of its first similarity, (N,) each.
        self._counters = np.zeros((3, num_envs), np.int64)
        self.turn, self.text, self._pairs = self._counters
        self.count: Ints = np.zeros(num_envs, np.int64)
        self.slots: Slots = np.zeros((0, num_envs), np.int32)
        # Of the newest and the stale value, without and with a stale one.
        self._weights = np.array([[1.0, 1.0 - confusion], [0.0, confusion]])
        self._inverse = np.array([0.0, *(1.0 / np.arange(1.0, 256.0))])
        self._ranking: Ranking | None = None
        self._exam = np.full(num_envs, -1, np.int16)  # (N,) period whose exam is now, -1: none
        self._version = -1
        self.follow_pool()

    def follow_pool(self) -> None:
        """Adopt the pool's layout when that has changed."""
        pool = self.pool
        if self._version == pool.version:
            return
        self._version = pool.version
        # A bank never holds more than every text of a script.
        height = min(self.capacity, pool.texts - 2)
        # The last row is always empty: what moves up comes from there, writes to nowhere go there.
        # The first half holds the similarities to the current messages, so one sum covers both.
        self.banks = np.zeros((2, height + 1, self.num_envs), np.int32)
        self._store = self.banks[1]
        self._store[: len(self.slots)] = self.slots
        self._flat = self._store.reshape(-1)
        self.slots = self._store[:-1]
        self.positions = np.arange(height, dtype=np.int32)[:, None]  # (slots, 1)
        bits = int(height).bit_length()
        low = (1 << bits) - 1
        self._bits, self._low = np.array(bits, np.int32), np.array(low, np.int32)
        self._first = np.array(low - 1, np.int32)
        # Of equals the first wins, but in an empty bank the last row does: it is `NOWHERE`.
        self._reverse = np.full((height + 1, 1), low, np.int32)
        self._reverse[:-1] = self._first - self.positions
        self.by_count = self._by_count(height)
        self.texts = pool.rows.reshape(-1, pool.rows.shape[2])
        self._similarity = pool.similarity.reshape(-1)
        self._exam_facts = pool.exam_facts.reshape(1 + pool.depth, -1, pool.questions)
        self._counts = pool.counts.reshape(-1)
        self._right = pool.right_reading.reshape(-1, pool.questions)
        self._facts = pool.text_facts.view(np.int64).reshape(-1)
        self._last_exam = pool.last_exam.reshape(-1)
        self._exams_in_a_row = pool.exams_in_a_row
        self._duplicate_of = pool.duplicate_of.reshape(-1)
        self._undated = np.array((1 << pool.date_shift) - 1, np.int32)
        self._periods = np.array(pool.periods)
        self._one_round = np.array([[1], [1], [pool.texts]])
        self._move_row()

    def _by_count(self, height: int) -> Floats:
        """Return what depends on the number of entries alone, (8, height + 1)."""
        count = np.arange(height + 1)
        some = np.maximum(count, 1)
        return np.stack(
            [
                count / self.capacity,
                count >= self.capacity,
                count > 0,
                np.where(count > 0, UNIT, -np.inf),  # by it, NOTHING becomes 0, not -0
                NOTHING * (height + 1 - count),  # what empty places add to a sum of similarities
                np.zeros(height + 1),  # and to one of rounds
                some * UNIT,
                some,
            ]
        )

    def _move_row(self) -> None:
        self.row = self.script * self.pool.texts  # (N,) first text of each episode's script
        np.add(self.row, self.turn + 1, out=self.text)
        np.multiply(self.text, self.pool.texts, out=self._pairs)
        self.rounds = self.pool.rounds[self.script]  # (N,)
        self._ranking = None

    def __getstate__(self) -> dict[str, Any]:
        """Return the state without views and caches, which do not survive a copy."""
        return {
            "arguments": (self.pool, self.num_envs, self.capacity, self.top_k, self.confusion),
            "snapshot": self.snapshot(),
        }

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Lay the arrays out anew, and continue from the state."""
        self.__init__(*state["arguments"])  # type: ignore[misc]
        self.restore(state["snapshot"])

    def begin(self, which: Ints, scripts: Ints) -> None:
        """Let the episodes `which` begin anew with these rows of the pool."""
        row = scripts * self.pool.texts
        self.script[which] = scripts
        self.turn[which] = 0
        self.count[which] = 0
        self.slots[:, which] = 0
        self.row[which] = row
        self.text[which] = row + 1
        self._pairs[which] = (row + 1) * self.pool.texts
        self.rounds[which] = self.pool.rounds[scripts]
        self._exam[which] = -1
        self._ranking = None

    def ranking(self) -> Ranking:
        """Return the ranking of the banks for the current messages; cached until a change."""
        if self._ranking is None:
            self._ranking = self._rank()
        return self._ranking

    def _rank(self) -> Ranking:
        similarity = self.banks[0]
        similarity[:] = self._similarity[self._store + self._pairs]
        keys = similarity << self._bits
        keys |= self._reverse
        best = np.maximum.reduce(keys, axis=0)
        near_position = self._first - (best & self._low)
        entries = np.empty((2, self.num_envs), np.int64)
        entries[0] = self._flat[near_position * self._width + self.columns]
        # Rounds differ, so the first is the oldest. As unsigned integers, empty places come last.
        first = np.minimum.reduce((self.slots - _ONE).view(np.uint32), axis=0)
        entries[1] = first + _UNSIGNED_ONE
        texts = np.empty((self.num_envs, 3), np.int64)
        texts[:, 0] = self.text
        np.add(entries, self.row, out=texts[:, 1:].T)
        return Ranking(
            similarity[:-1],
            near_position,
            entries,
            self._similarity[entries + self._pairs],
            texts,
            self._facts[texts].view(np.int16).reshape(self.num_envs, 3, 4),
        )

    def step(self, remove: Slots, overwrite: Slots, add: Bools) -> None:
        """Apply the current messages to the banks, and go on to the next round.

        In each bank the entry at position `remove` is deleted, then the one at `overwrite` replaced
        by the message, then the message is added; `NOWHERE` means none. Callers ensure that at most
        one text is written and that there is room.
        """
        self._exam = self.ranking().facts[:, 0, EXAM]
        which = (remove >= _ZERO).nonzero()[0]
        if which.size:
            part = self._store.take(which, axis=1)
            moves = self.positions >= remove[which]
            self.slots[:, which] = np.where(moves, part[1:], part[:-1])
            self.count[which] -= 1
        position = np.where(add, self.count, overwrite)
        self._counters += self._one_round
        self._flat[position * self._width + self.columns] = self.turn
        self._store[-1] = 0
        self.count += add
        self._ranking = None

    def oldest(self, which: Ints) -> Slots:
        """Return the positions of the entries written longest ago, in banks that hold some."""
        old = self.ranking().entries[1, which]
        positions: Slots = (self.slots.take(which, axis=1) == old).argmax(axis=0).astype(np.int32)
        return positions

    def duplicates(self, adding: Bools) -> Slots | None:
        """Return the position of the same text in the banks of `adding`, `NOWHERE` elsewhere.

        None means nowhere at all. Only a repeated message can have a duplicate.
        """
        ranking = self.ranking()
        alike = ranking.similarities[0] >= ranking.facts[:, 0, DUPLICATE_SIMILARITY]
        which = (alike & adding).nonzero()[0]
        if not which.size:
            return None
        found = np.full(self.num_envs, NOWHERE, np.int32)
        held = self._duplicate_of[self.slots.take(which, axis=1) + self.row[which]]
        same = held == self._duplicate_of[self.text[which]]
        found[which] = np.where(same.any(axis=0), same.argmax(axis=0), NOWHERE)
        return found

    def exams(self) -> Exams:
        """Return the exams to which the last round has led; call after `step`.

        Accuracies are the expectation of `answer_model.choice_probabilities`.
        """
        mask = self._exam >= _ZERO
        which = mask.nonzero()[0]
        if not which.size:
            return Exams(mask, which, np.zeros(0), None, ())
        first = self._exam[which].astype(np.int64)
        readings = self.readings(which)
        total = self.expected_accuracy(which, first, readings)
        if not self._exams_in_a_row:
            return Exams(mask, which, total, None, ((which, total),))
        number = self._last_exam[self.text[which] - 1] - first + 1
        # Where sessions are missing, exams follow each other without a round between them.
        each = [(which, total.copy())]
        for step in range(1, int(number.max())):
            again = (number > step).nonzero()[0]
            part = readings[:, :, again]
            found = self.expected_accuracy(which[again], first[again] + step, part)
            total[again] += found
            each.append((which[again], found))
        return Exams(mask, which, total, number, tuple(each))

    def readings(self, which: Ints) -> Slots:
        """Return what is read of each needed variable, newest and stale, (2, M, n, Q).

        A value is given as the step along `Pool.counts` to which it leads; 0 is unknown.
        """
        slots = self.slots.take(which, axis=1)  # (C, n)
        if len(slots) > _FEW:
            slots = slots[: max(1, int(self.count[which].max()))]
        facts = self._exam_facts.take(slots + self.row[which], axis=1)  # (1 + M, C, n, Q)
        keys, dated = facts[0], facts[1:]
        least = len(slots) - self.top_k
        if least > 0:
            keys |= self._reverse[: len(slots), :, None]
            dated *= keys >= np.partition(keys, least, axis=0)[least]
        found = np.empty((2, len(dated), *keys.shape[1:]), np.int32)
        np.bitwise_and(np.maximum.reduce(dated, axis=1), self._undated, out=found[0])
        dated *= (dated & self._undated) != found[0, :, None]
        np.bitwise_and(np.maximum.reduce(dated, axis=1), self._undated, out=found[1])
        return found

    def expected_accuracy(self, which: Ints, period: Ints, readings: Slots) -> Floats:
        """Return the expected accuracy of one exam of each episode, (n,)."""
        script = self.script[which]
        right = self._right.take(script * self._periods + period, axis=0)
        # (combinations, n, Q): newest or stale for each variable
        weights = self._weights.take((readings[1] > _ZERO).view(np.int8), axis=1)
        index, weight = right + readings[:, 0], weights[:, 0]
        for place in range(1, self.pool.depth):
            shape = (2 * len(index), *right.shape)
            index = (index[:, None] + readings[:, place]).reshape(shape)
            weight = (weight[:, None] * weights[:, place]).reshape(shape)
        chances = self._inverse[self._counts[index]]
        chances *= weight
        # One after the other, as the scalar environment adds: sums are then equal to the bit.
        # (A plain sum along the first axis does so, unless that is the only one.)
        each = np.add.reduce(chances, axis=0) if chances[0].size > 1 else reduce(np.add, chances)
        total: Floats = np.add.accumulate(each, axis=1)[:, -1]
        return total / self.pool.question_count[script]

    def over(self) -> Bools:
        """Return which episodes have no round left, (N,)."""
        return self.turn >= self.rounds

    def snapshot(self) -> Snapshot:
        """Return a copy of the state."""
        return Snapshot(self.script.copy(), self.turn.copy(), self.slots.copy(), self.count.copy())

    def restore(self, snapshot: Snapshot) -> None:
        """Continue from a copy of the state."""
        self.script[:], self.turn[:], self.count[:] = (
            snapshot.script,
            snapshot.turn,
            snapshot.held,
        )
        self.slots[:] = 0
        self.slots[: len(snapshot.slots)] = snapshot.slots
        self._move_row()
