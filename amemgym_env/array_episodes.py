"""The rule of the number environments in numpy: many episodes as columns of arrays.

This is the one translation of `episode.py`, `memory.py`, `operations.py` and `reader.py` into
arrays; tests prove it equal to a stack of scalar environments. There is no loop over episodes.

Slots stand in the first axis, so that reductions over a bank run along memory. A bank is a column
of rounds (see `tables.py`), first added first, without gaps; 0 is an empty place. An entry's
similarity and position are packed into one integer, so that a plain maximum finds the most similar
entry, the first of equals, and where it stands.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from amemgym_env.pool import EXAM, TWIN_SIMILARITY, Pool

Ints = npt.NDArray[np.int64]
Slots = npt.NDArray[np.int32]
Bools = npt.NDArray[np.bool_]
Floats = npt.NDArray[np.float64]
_FEW = 16
"""Slots up to which it costs more to find out how many are in use than to go through all."""


class Snapshot(NamedTuple):
    """A copy of the state of N episodes."""

    script: Ints  # (N,) row of the pool
    turn: Slots  # (N,) rounds played
    slots: Slots  # (slots, N) round that wrote each entry, 0: empty
    held: Slots  # (N,) entries held


class Ranking(NamedTuple):
    """How the banks stand to the present messages; all 0 on an empty bank but `similarity`."""

    similarity: Slots  # (slots, N), NOTHING where empty
    texts: Ints  # (3, N) present message, nearest and oldest entry, as texts of the pool
    facts: npt.NDArray[np.int16]  # (3, N, 4) `Pool.facts` of them
    held: Bools  # (N,) whether the bank holds anything
    near_position: Slots  # (N,) of the most similar entry
    near_similarity: Slots  # (N,)
    near: Slots  # (N,) the entry
    old_position: Slots  # (N,) of the entry written longest ago
    old_similarity: Slots  # (N,)
    old: Slots  # (N,) the entry


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
        self.turn: Slots = np.zeros(num_envs, np.int32)
        self.count: Slots = np.zeros(num_envs, np.int32)
        self.slots: Slots = np.zeros((0, num_envs), np.int32)
        self._chance_newest = np.array([1.0, 1.0 - confusion])  # without, with a stale value
        self._chance_stale = np.array([0.0, confusion])
        self._inverse = np.array([0.0, *(1.0 / np.arange(1.0, 256.0))])
        self._ranking: Ranking | None = None
        self._exam = np.full(num_envs, -1, np.int16)  # (N,) period whose exam is now, -1: none
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
        slots = np.zeros((height, self.num_envs), np.int32)
        slots[: len(self.slots)] = self.slots
        self.slots = slots
        self._bits = max(1, int(height - 1).bit_length())
        self._low = (1 << self._bits) - 1
        fill = np.arange(height + 1) / self.capacity
        self.fill = np.stack([fill, fill >= 1.0])  # (2, height + 1): share in use, whether full
        # Empty places count as written after everything else.
        self._late = (1 << int(pool.texts).bit_length()) - 1
        self.positions = np.arange(height, dtype=np.int32)[:, None]  # (slots, 1)
        self.nowhere = np.array(height, np.int32)  # a position that no entry has
        self._reverse = (self._low - self.positions).astype(np.int32)
        self._similarity = pool.similarity.reshape(-1)
        self._question_similarity = pool.question_similarity.reshape(-1)
        self._pairs = pool.pairs.reshape(-1, pool.given)
        self._codes = pool.codes.reshape(-1)
        self._counts = pool.counts.reshape(-1)
        self._right = pool.right_reading.reshape(-1)
        self._facts = pool.facts.view(np.int64).reshape(-1)
        self._last_exam = pool.last_exam.reshape(-1)
        self._exams_in_a_row = pool.exams_in_a_row
        self._twin = pool.twin.reshape(-1)
        self._asked = np.arange(pool.questions)[:, None]  # (Q, 1)
        strides = [pool.values ** (pool.depth - 1 - place) for place in range(pool.depth)]
        self._strides = np.array(strides)[:, None, None]  # (M, 1, 1)
        self._move_row()

    def _move_row(self) -> None:
        self.row = self.script * self.pool.texts  # (N,) first text of each episode's script
        self.text = (
            self.row + self.turn + 1
        )  # (N,) the present message; after the end, an empty one
        self.rounds = self.pool.rounds[self.script]  # (N,)
        self._ranking = None

    def begin(self, which: Ints, scripts: Ints) -> None:
        """Let the episodes `which` begin anew with these rows of the pool."""
        row = scripts * self.pool.texts
        self.script[which] = scripts
        self.turn[which] = 0
        self.count[which] = 0
        self.slots[:, which] = 0
        self.row[which] = row
        self.text[which] = row + 1
        self.rounds[which] = self.pool.rounds[scripts]
        self._exam[which] = -1
        self._ranking = None

    def ranking(self) -> Ranking:
        """Return how the banks stand to the present messages; kept until something changes."""
        if self._ranking is None:
            self._ranking = self._rank()
        return self._ranking

    def _rank(self) -> Ranking:
        slots, bits, low = self.slots, self._bits, self._low
        similarity = self._similarity.take(slots + self.text * self.pool.texts).astype(np.int32)
        keys = similarity << bits
        keys |= self._reverse
        best = keys.max(axis=0)
        near_position = low - (best & low)
        # Empty places come last: as unsigned integers, -1 is large.
        written = (slots - 1) & self._late
        written <<= bits
        written |= self.positions
        first = written.min(axis=0)
        old_position = first & low
        held = self.count > 0
        near_place = near_position * self.num_envs + self.columns
        old_place = old_position * self.num_envs + self.columns
        flat = slots.ravel()
        near, old = flat.take(near_place), flat.take(old_place)
        texts = np.empty((3, self.num_envs), np.int64)
        texts[0] = self.text
        np.add(self.row, near, out=texts[1])
        np.add(self.row, old, out=texts[2])
        return Ranking(
            similarity,
            texts,
            self._facts.take(texts).view(np.int16).reshape(3, self.num_envs, 4),
            held,
            near_position,
            (best >> bits) * held,
            near,
            old_position,
            similarity.ravel().take(old_place) * held,
            old,
        )

    def change(self, remove: Slots, overwrite: Slots, add: Bools) -> None:
        """Change the banks by the present messages, and go on to the next round.

        Of each bank the entry at position `remove` goes (`height` or more: none does), then the
        one at `overwrite` becomes the message (the same), then the message is added. Callers see
        to it that at most one text is written and that there is room.
        """
        slots, count = self.slots, self.count
        self._exam = self.ranking().facts[0, :, EXAM]
        removing = remove < self.nowhere
        if removing.any():
            np.copyto(slots[:-1], slots[1:], where=self.positions[:-1] >= remove)
            np.copyto(slots[-1], 0, where=removing)
            count -= removing
        position = np.where(add, count, overwrite)
        self.turn += 1
        np.copyto(slots, self.turn, where=self.positions == position)
        count += add
        self.text += 1
        self._ranking = None

    def twins(self, adding: Bools) -> Slots | None:
        """Return where the message already stands, in the banks of `adding`; -1 elsewhere.

        None stands for nowhere at all. A message that was never said before has no twin.
        """
        ranking = self.ranking()
        alike = ranking.facts[0, :, TWIN_SIMILARITY]
        which = (adding & (ranking.near_similarity >= alike)).nonzero()[0]
        if not which.size:
            return None
        found = np.full(self.num_envs, -1, np.int32)
        row = self.row[which]
        held = self._twin.take(self.slots[:, which] + row)
        same = held == self._twin.take(self.text[which])
        found[which] = np.where(same.any(axis=0), same.argmax(axis=0), -1)
        return found

    def exams(self) -> tuple[Ints, Floats, Floats]:
        """Return which episodes have just come to exams, their accuracies' sum and number.

        Call after `change`; accuracies are the expectation of `reader.choice_probabilities`.
        """
        which = (self._exam >= 0).nonzero()[0]
        if not which.size:
            return which, np.zeros(0), np.zeros(0)
        first = self._exam[which].astype(np.int64)
        readings = self._read(which)
        total = self._expected(which, first, readings)
        if not self._exams_in_a_row:
            return which, total, np.ones(which.size)
        last = self._last_exam.take(self.text[which] - 1)
        number = (last - first + 1).astype(np.float64)
        # Where sessions are missing, exams follow each other without a round between them.
        for step in range(1, int(number.max())):
            again = (number > step).nonzero()[0]
            part = readings[..., again]
            total[again] += self._expected(which[again], first[again] + step, part)
        return which, total, number

    def _read(self, which: Ints) -> Ints:
        """Return the newest and the stale value read of each needed variable, (2, M, Q, n).

        Few entries say anything about a question, so this goes through what is said, oldest
        first: where a place is assigned twice, the last assignment stands.
        """
        pool = self.pool
        number = which.size
        found = np.zeros((2, pool.depth * pool.questions * number), np.int64)
        slots = self.slots[:, which]  # (C, n)
        if len(slots) > _FEW:
            slots = slots[: int(self.count[which].max())]
        pairs = self._pairs.take(slots + self.row[which], axis=0)  # (C, n, E)
        said = (pairs.ravel() >= 0).nonzero()[0]
        if said.size:
            entry = said // pool.given if pool.given > 1 else said  # into (C, n)
            written = slots.ravel().take(entry)
            order = written.argsort(kind="stable")
            said, entry, written = said[order], entry[order], written[order]
            position, column = np.divmod(entry, number)
            pair = pairs.ravel().take(said).astype(np.int64)
            episode = which[column]
            place = pair * number + column
            text = self.row[episode] + written
            code = self._codes.take(text * pool.given + said % pool.given)
            if len(slots) > self.top_k:
                query = self.script[episode] * pool.questions + pair % pool.questions
                index = slots[:, column] + query * pool.texts  # (C, said)
                keys = self._question_similarity.take(index).astype(np.int32) << self._bits
                keys |= self._reverse[: len(slots)]
                own = keys.ravel().take(position * said.size + np.arange(said.size))
                read = ((keys > own).sum(axis=0) < self.top_k).nonzero()[0]
                place, code = place[read], code[read]
            newest, stale = found
            newest[place] = code
            other = (newest[place] != code).nonzero()[0]
            stale[place[other]] = code[other]
        return found.reshape(2, pool.depth, pool.questions, number)

    def _expected(self, which: Ints, period: Ints, readings: Ints) -> Floats:
        """Return the expected accuracy of one exam of each episode, (n,)."""
        pool = self.pool
        script = self.script[which]
        exam = (script * pool.periods + period) * pool.questions
        index = self._right.take(exam + self._asked)[None]
        # (combinations, Q, n): newest or stale for each variable
        weights = np.empty(readings.shape)
        shown = readings[1] > 0
        weights[0] = self._chance_newest.take(shown)
        weights[1] = self._chance_stale.take(shown)
        weight: Floats | None = None
        steps = readings * self._strides
        for place in range(pool.depth):
            shape = (2 * len(index), *index.shape[1:])
            index = (index[:, None] + steps[:, place]).reshape(shape)
            chance = weights[:, place]
            weight = chance if weight is None else (weight[:, None] * chance).reshape(shape)
        chances = self._inverse.take(self._counts.take(index)) * weight
        # Running sums add in order whatever the shape, as the scalar environment does.
        chances = np.add.accumulate(chances, axis=0)[-1]
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
