"""The rule of the number environments in numpy: many episodes as columns of arrays.

This is the one translation of `episode.py`, `memory.py`, `operations.py` and `reader.py` into
arrays; tests prove it equal to a stack of scalar environments. There is no loop over episodes.

Slots stand in the first axis, so that reductions over a bank run along memory. A bank is a column
of rounds (see `tables.py`), first added first, without gaps; 0 is an empty place. An entry's
similarity and position are packed into one integer, so that a plain maximum finds the most similar
entry, the first of equals, and where it stands.
"""

from __future__ import annotations

from typing import NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt

from amemgym_env.pool import Pool

Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]
Floats = npt.NDArray[np.float64]
T = TypeVar("T", bound=np.generic)


class Snapshot(NamedTuple):
    """A copy of the state of N episodes."""

    script: Ints  # (N,) row of the pool
    turn: Ints  # (N,) rounds played
    slots: Ints  # (slots, N) round that wrote each entry, 0: empty
    held: Ints  # (N,) entries held


class Ranking(NamedTuple):
    """How the banks stand to the present messages."""

    similarity: npt.NDArray[np.int32]  # (slots, N), NOTHING where empty
    near_position: Ints  # (N,) of the most similar entry; 0 on an empty bank
    near_similarity: Ints  # (N,); 0 on an empty bank
    near: Ints  # (N,) the entry; 0 on an empty bank
    old_position: Ints  # (N,) of the entry written longest ago; 0 on an empty bank
    old: Ints  # (N,) the entry; 0 on an empty bank


class ArrayEpisodes:
    """N episodes under way. An episode that has ended waits for `begin`."""

    def __init__(
        self, pool: Pool, num_envs: int, capacity: int, top_k: int, confusion: float
    ) -> None:
        self.pool = pool
        self.num_envs = num_envs
        self.capacity = capacity
        self.top_k = top_k
        self.confusion = confusion
        self.columns = np.arange(num_envs)
        self.script: Ints = np.zeros(num_envs, np.int64)
        self.turn: Ints = np.zeros(num_envs, np.int64)
        self.count: Ints = np.zeros(num_envs, np.int64)
        self.slots: Ints = np.zeros((0, num_envs), np.int64)
        self._inverse = np.array([0.0, *(1.0 / np.arange(1.0, 256.0))])
        self._ranking: Ranking | None = None
        self._version = -1
        self.follow_pool()

    def follow_pool(self) -> None:
        """Take over the pool's layout when it has been laid out anew."""
        pool = self.pool
        if self._version == pool.version:
            return
        self._version = pool.version
        # A bank never holds more than every text of a script.
        height = min(self.capacity, pool.texts - 2)
        slots = np.zeros((height, self.num_envs), np.int64)
        slots[: len(self.slots)] = self.slots
        self.slots = slots
        self._bits = max(1, int(height - 1).bit_length())
        self._low = (1 << self._bits) - 1
        # Empty places count as written after everything else.
        self._late = (1 << int(pool.texts).bit_length()) - 1
        self.positions = np.arange(height)[:, None]  # (slots, 1)
        self._reverse = (self._low - self.positions).astype(np.int32)
        self._similarity = pool.similarity.reshape(-1)
        self._question_similarity = pool.question_similarity.reshape(-1)
        self._codes = pool.codes.reshape(-1)
        self._counts = pool.counts.reshape(-1)
        self._right = pool.right.reshape(-1)
        self._exam = pool.exam.reshape(-1)
        self._last_exam = pool.last_exam.reshape(-1)
        self._twin = pool.twin.reshape(-1)
        self._has_twin = pool.has_twin.reshape(-1)
        questions, depth = pool.questions, pool.depth
        self._question = np.arange(questions)[:, None] * pool.texts  # (Q, 1)
        self._pairs = ((np.arange(depth)[:, None] * questions + np.arange(questions)) * pool.texts)[
            :, :, None
        ]  # (M, Q, 1)
        self._strides = [pool.values ** (depth - 1 - place) for place in range(depth)]
        self._move_row()

    def _move_row(self) -> None:
        self.row = self.script * self.pool.texts  # (N,) first text of each episode's script
        self.rounds = self.pool.rounds[self.script]  # (N,)
        self._ranking = None

    @property
    def present(self) -> Ints:
        """Number of the present message, from 1; after the end one more than there are, (N,)."""
        return self.turn + 1

    def begin(self, which: Ints, scripts: Ints) -> None:
        """Let the episodes `which` begin anew with these rows of the pool."""
        self.script[which] = scripts
        self.turn[which] = 0
        self.count[which] = 0
        self.slots[:, which] = 0
        self.row[which] = scripts * self.pool.texts
        self.rounds[which] = self.pool.rounds[scripts]
        self._ranking = None

    def ranking(self) -> Ranking:
        """Return how the banks stand to the present messages; kept until something changes."""
        if self._ranking is None:
            self._ranking = self._rank()
        return self._ranking

    def _rank(self) -> Ranking:
        slots = self.slots
        base = (self.row + self.turn + 1) * self.pool.texts
        similarity = self._similarity.take(slots + base).astype(np.int32)
        keys = similarity << self._bits
        keys |= self._reverse
        best = keys.max(axis=0).astype(np.int64)
        near_position = self._low - (best & self._low)
        near_similarity = (best >> self._bits) * (self.count > 0)
        near = self.at(slots, near_position)
        written = slots - 1
        written &= self._late
        written <<= self._bits
        written |= self.positions
        first = written.min(axis=0)
        old = ((first >> self._bits) + 1) & self._late
        return Ranking(similarity, near_position, near_similarity, near, first & self._low, old)

    def change(self, remove: Ints, overwrite: Ints, add: Bools) -> None:
        """Change the banks by the present messages, and go on to the next round.

        Of each bank the entry at position `remove` goes (`height` or more: none does), then the
        one at `overwrite` becomes the message (the same), then the message is added. Callers see
        to it that at most one text is written and that there is room.
        """
        slots, count = self.slots, self.count
        height = len(slots)
        removing = remove < height
        if removing.any():
            after = self.positions[:-1] >= remove
            np.copyto(slots[:-1], slots[1:], where=after)
            slots[-1, removing] = 0
            count -= removing
        position = np.where(add, count, overwrite)
        writing = np.flatnonzero(position < height)
        slots.ravel()[position[writing] * self.num_envs + writing] = self.turn[writing] + 1
        count += add
        self.turn += 1
        self._ranking = None

    def at(self, array: npt.NDArray[T], position: Ints) -> npt.NDArray[T]:
        """Return the element of each column at a position, (N,); `array` has shape (slots, N)."""
        return array.ravel().take(position * self.num_envs + self.columns)

    def twins(self, adding: Bools) -> Ints | None:
        """Return where the message already stands, in the banks of `adding`; -1 elsewhere.

        None stands for nowhere at all. A message that was never said before has no twin.
        """
        which = np.flatnonzero(adding & self._has_twin.take(self.row + self.turn + 1))
        if not which.size:
            return None
        found = np.full(self.num_envs, -1, np.int64)
        row = self.row[which]
        held = self._twin.take(self.slots[:, which] + row)
        same = held == self._twin.take(row + self.turn[which] + 1)
        found[which] = np.where(same.any(axis=0), same.argmax(axis=0), -1)
        return found

    def exams(self) -> tuple[Ints, Floats, Floats]:
        """Return which episodes have just come to exams, their accuracies' sum and number.

        Call after `change`; accuracies are the expectation of `reader.choice_probabilities`.
        """
        text = self.row + self.turn
        period = self._exam.take(text)
        which = np.flatnonzero(period >= 0)
        if not which.size:
            return which, np.zeros(0), np.zeros(0)
        last = self._last_exam.take(text[which])
        first = period[which].astype(np.int64)
        readings = self._read(which)
        total = self._expected(which, first, readings)
        number = (last - first + 1).astype(np.float64)
        # Where sessions are missing, exams follow each other without a round between them.
        for step in range(1, int(number.max())):
            again = np.flatnonzero(number > step)
            part = (readings[0][..., again], readings[1][..., again])
            total[again] += self._expected(which[again], first[again] + step, part)
        return which, total, number

    def _read(self, which: Ints) -> tuple[Ints, Ints]:
        """Return the newest and the stale value read of each needed variable, (M, Q, n)."""
        pool = self.pool
        slots = self.slots[:, which]  # (C, n)
        height = int(self.count[which].max())
        slots = slots[:height]
        if not height:
            nothing = np.zeros((pool.depth, pool.questions, which.size), np.int64)
            return nothing, nothing
        script = self.script[which]
        given = (script * (pool.depth * pool.questions * pool.texts)) + self._pairs  # (M, Q, n)
        codes = self._codes.take(given[:, :, None] + slots)  # (M, Q, C, n)
        value = (slots << 8) * (codes > 0) + codes  # newest text with a value is largest
        if height > self.top_k:
            query = script * (pool.questions * pool.texts) + self._question  # (Q, n)
            index = query[:, None] + slots  # (Q, C, n)
            keys = self._question_similarity.take(index).astype(np.int32) << self._bits
            keys |= self._reverse[:height]
            cut = height - self.top_k
            least = np.partition(keys, cut, axis=1)[:, cut : cut + 1]
            value *= keys >= least
        newest = value.max(axis=2) & 255
        value *= (value & 255) != newest[:, :, None]
        return newest, value.max(axis=2) & 255

    def _expected(self, which: Ints, period: Ints, readings: tuple[Ints, Ints]) -> Floats:
        """Return the expected accuracy of one exam of each episode, (n,)."""
        pool = self.pool
        newest, stale = readings
        script = self.script[which]
        question = np.arange(pool.questions)[:, None]
        right = self._right.take((script * pool.periods + period) * pool.questions + question)
        table = ((script * pool.questions + question) * pool.choices + right) * (
            pool.values**pool.depth
        )
        shown = stale > 0
        weight_newest = np.where(shown, 1.0 - self.confusion, 1.0)
        weight_stale = np.where(shown, self.confusion, 0.0)
        states = [(table, None)]
        for place in range(pool.depth):
            stride = self._strides[place]
            following = []
            for index, weight in states:
                for values, chance in (
                    (newest[place], weight_newest[place]),
                    (stale[place], weight_stale[place]),
                ):
                    following.append(
                        (index + values * stride, chance if weight is None else weight * chance)
                    )
            states = following
        chances = sum(
            weight * self._inverse.take(self._counts.take(index)) for index, weight in states
        )
        # A running sum adds in order whatever the shape, as the scalar environment does.
        total: Floats = np.add.accumulate(chances, axis=0)[-1]
        return total / pool.question_count[script]

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
