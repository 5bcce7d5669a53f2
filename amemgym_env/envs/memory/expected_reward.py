"""Expected accuracy of an exam, from tables.

Equal to the mean `answer_model.choice_probabilities` of the right choices to 1e-12, and many times
faster.
"""

from __future__ import annotations

from itertools import product

import numpy as np

from amemgym_env.envs.memory.tables import ScriptTables


class Expectation:
    """The expected accuracy of one script's exams.

    `top_k` entries are retrieved for a question; a stale value is read instead of the
    newest with probability `confusion`.
    """

    def __init__(self, tables: ScriptTables, top_k: int, confusion: float) -> None:
        self._top_k = top_k
        self._weights = ((1.0, 0.0), (1.0 - confusion, confusion))
        self._right = tables.right.tolist()
        self._depth = tables.counts.ndim - 2
        self._similarity = tables.question_similarity
        self._counts = tables.counts.reshape(*tables.counts.shape[:2], -1)
        values = tables.counts.shape[2]
        self._strides = [values ** (self._depth - 1 - place) for place in range(self._depth)]
        # For each question, the few texts that expose something it needs.
        self._given: list[dict[int, list[tuple[int, int]]]] = [{} for _ in self._counts]
        for text, place in zip(*np.nonzero(tables.pairs >= 0), strict=True):
            variable, question = divmod(int(tables.pairs[text, place]), len(self._counts))
            said = self._given[question].setdefault(int(text), [])
            said.append((variable, int(tables.codes[text, place])))
        self._unknown = self._counts[:, :, 0].tolist()
        self._choices = tuple(product((0, 1), repeat=self._depth))

    def accuracy(self, entries: list[int], period: int) -> float:
        """Return the mean probability of the right choices after a period.

        `entries` are the texts' numbers in the bank's order.
        """
        total = 0.0
        right = self._right[period]
        for question, given in enumerate(self._given):
            telling = [text for text in entries if text in given]
            if telling and len(entries) > self._top_k:
                row = self._similarity[question].tolist()
                ranked = sorted(entries, key=lambda text: -row[text])[: self._top_k]
                telling = [text for text in telling if text in ranked]
            choice = right[question]
            if telling:
                total += self._chance(question, choice, given, sorted(telling))
            else:
                count = self._unknown[question][choice]
                total += 1.0 / count if count else 0.0
        return total / len(self._given)

    def _chance(
        self,
        question: int,
        choice: int,
        given: dict[int, list[tuple[int, int]]],
        telling: list[int],
    ) -> float:
        newest, stale = [0] * self._depth, [0] * self._depth
        for text in telling:
            for place, code in given[text]:
                if code != newest[place]:
                    newest[place], stale[place] = code, newest[place]
        counts = self._counts[question, choice]
        total = 0.0
        # Terms and factors in the order of the array version, so that both are equal to the bit.
        for choices in self._choices:
            weight, index = 1.0, 0
            for place, is_stale in enumerate(choices):
                weight *= self._weights[stale[place] > 0][is_stale]
                index += (stale if is_stale else newest)[place] * self._strides[place]
            if weight:
                count = int(counts[index])
                total += weight * (1.0 / count if count else 0.0)
        return total
