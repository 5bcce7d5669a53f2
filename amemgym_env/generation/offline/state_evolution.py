"""Who changes when, and to what: the hidden course of a scenario's state.

Two leaks decide the form of this file. Were the times of a question's changes bunched or spread
on a pattern, some places of its course would last longer than others; so each variable changes in
a random set of periods. And were states revisited freely, central combinations would last longest
and a reader of the choices alone could bet on them; so a question's course prefers combinations
that it has not met.
Paper: AMemGym, Section 3.2 (state evolution).
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product

from amemgym_env.generation.offline.settings import Settings
from amemgym_env.scenarios.random_stream import Draws

Combination = tuple[int, ...]
"""For each variable of a question the index of its value."""

_REVISIT = 0.05
"""Weight of a step to a combination that was met before, against 1 for a new one."""

_MOST_VALUES = 4
"""Values that a variable of the library has at most."""
_FILLINGS = 24
"""Random fillings of a question's choices among which the least conspicuous one is taken."""


def change_plan(settings: Settings, draws: Draws) -> list[list[int]]:
    """Return for each period 1..N_p the variables (0..M-1, by question) that change, ascending.

    Every variable changes at most `max_changes_per_variable` times; a period has
    `changes_per_period` changes or, with probability `extra_change` and while the variables'
    limits allow, one more. About `joint_later` pairs a period are the first two variables of one
    question.
    """
    counts = _period_counts(settings, draws)
    quotas = _quotas(settings, sum(counts), draws)
    plan = [set[int]() for _ in counts]
    left = list(quotas)
    for index, count in enumerate(counts):
        for variable in _chosen(left, count, len(counts) - index, draws):
            plan[index].add(variable)
            left[variable] -= 1
    _pair_up(plan, settings, draws)
    return [sorted(changing) for changing in plan]


def _period_counts(settings: Settings, draws: Draws) -> list[int]:
    limit = settings.variables * min(settings.max_changes_per_variable, settings.periods)
    room = limit - settings.periods * settings.changes_per_period
    counts = []
    for _ in range(settings.periods):
        more = draws.chance(settings.extra_change) and room > 0
        more = more and settings.most_changes > settings.changes_per_period
        room -= more
        counts.append(settings.changes_per_period + more)
    return counts


def _quotas(settings: Settings, total: int, draws: Draws) -> list[int]:
    """Share the changes out evenly, then move some, so that variables differ in liveliness."""
    count = settings.variables
    most = min(settings.max_changes_per_variable, settings.periods)
    quotas = [total // count] * count
    for variable in draws.shuffled(range(count))[: total % count]:
        quotas[variable] += 1
    for _ in range(count // 2):
        source, target = draws.below(count), draws.below(count)
        if quotas[source] > 1 and quotas[target] < most:
            quotas[source] -= 1
            quotas[target] += 1
    return quotas


def _chosen(left: Sequence[int], count: int, periods_left: int, draws: Draws) -> list[int]:
    """Draw `count` variables, each as likely as its share of the changes still to come.

    A variable with as many changes left as there are periods must be drawn; the rest are drawn
    by systematic sampling in a random order, which keeps each one's probability exact.
    """
    forced = [variable for variable, need in enumerate(left) if need == periods_left]
    if len(forced) >= count:
        return forced
    free = draws.shuffled([v for v, need in enumerate(left) if 0 < need < periods_left])
    wanted = count - len(forced)
    step = sum(left[variable] for variable in free) / wanted
    point = draws.uniform() * step
    found: list[int] = []
    passed = 0.0
    for variable in free:
        passed += left[variable]
        if passed > point:
            found.append(variable)
            point += step
    # A variable longer than the step takes two points at once; the next ones take its place.
    rest = (variable for variable in free if variable not in found)
    found.extend(variable for variable, _ in zip(rest, range(wanted - len(found)), strict=False))
    return forced + found[:wanted]


def _pair_up(plan: list[set[int]], settings: Settings, draws: Draws) -> None:
    """Swap changes between periods until enough pairs fall together.

    A swap leaves the number of changes of every variable and of every period as it is.
    """
    size = settings.variables_per_question
    heads = range(0, settings.variables, size)
    target = sum(draws.chance(settings.joint_later % 1) for _ in plan)
    target += int(settings.joint_later) * len(plan)

    def paired(variable: int, period: int) -> bool:
        head = variable - variable % size
        return variable - head < 2 and head in plan[period] and head + 1 in plan[period]

    have = sum(paired(head, period) for head in heads for period in range(len(plan)))
    for _ in range(20 * len(plan)):
        if have >= target:
            return
        head = draws.pick(heads)
        first, second = draws.shuffled((head, head + 1))
        to = [p for p, c in enumerate(plan) if first in c and second not in c]
        origin = [p for p, c in enumerate(plan) if second in c and first not in c]
        if not to or not origin:
            continue
        here, there = draws.pick(to), draws.pick(origin)
        others = [v for v in sorted(plan[here] - plan[there]) if v != first and not paired(v, here)]
        if not others:
            continue
        other = draws.pick(others)
        before = paired(other, there)
        plan[here] = plan[here] - {other} | {second}
        plan[there] = plan[there] - {second} | {other}
        have += 1 + (paired(other, there) and not before)


class Course:
    """One question's walk through the combinations of its variables' values."""

    def __init__(self, sizes: Sequence[int], gradual: float, draws: Draws) -> None:
        self._sizes = tuple(sizes)
        self._gradual = gradual
        self._draws = draws
        self.now: Combination = tuple(draws.below(size) for size in sizes)
        self.path: list[Combination] = [self.now]
        """Combinations in the order in which they were first met, from the initial one on."""

    def change(self, variables: Sequence[int]) -> Combination:
        """Change the variables at these positions (each to another value); return the new state."""
        self.now = self._step(self.now, variables)
        if self.now not in self.path:
            self.path.append(self.now)
        return self.now

    def filled(self, least: int) -> list[Combination]:
        """Return at least `least` combinations: those lived through, then what fills them up.

        A life's combinations are neighbours of each other, and combinations at random are not: a
        reader of the choices could tell fillers by how little they share with the rest (or how
        much, were they all drawn from the middle). So of several random fillings that one is
        taken whose fillers share with the other choices about as much as the lived ones do.
        """
        missing = least - len(self.path)
        if missing <= 0:
            return list(self.path)
        unmet = [c for c in product(*map(range, self._sizes)) if c not in self.path]
        lived = self._counts(self.path)
        best: list[Combination] = []
        least_difference = float("inf")
        for _ in range(_FILLINGS):
            fillers = self._draws.sample(unmet, missing)
            filled = self._counts(fillers)
            both = [a + b for a, b in zip(lived, filled, strict=True)]
            # What a choice shares with all others, on average, if lived and if filled in.
            shared = sum(a * b for a, b in zip(lived, both, strict=True)) / len(self.path)
            shared_filled = sum(a * b for a, b in zip(filled, both, strict=True)) / missing
            if abs(shared - shared_filled) < least_difference:
                best, least_difference = fillers, abs(shared - shared_filled)
            if not least_difference:
                break
        return self.path + best

    def _counts(self, combinations: Sequence[Combination]) -> list[int]:
        """Return how many of the combinations have each value of each variable."""
        counts = [0] * (_MOST_VALUES * len(self._sizes))
        for combination in combinations:
            for position, value in enumerate(combination):
                counts[_MOST_VALUES * position + value] += 1
        return counts

    def _step(
        self,
        start: Combination,
        variables: Sequence[int],
    ) -> Combination:
        targets: list[tuple[Combination, float]] = [(start, 1.0)]
        for position in variables:
            targets = [
                ((*target[:position], value, *target[position + 1 :]), weight * share)
                for target, weight in targets
                for value, share in self._moves(position, start[position])
            ]
        weights = [
            weight * (_REVISIT if target in self.path else 1.0) for target, weight in targets
        ]
        return self._draws.weighted([target for target, _ in targets], weights)

    def _moves(self, position: int, value: int) -> list[tuple[int, float]]:
        size = self._sizes[position]
        near = [other for other in (value - 1, value + 1) if 0 <= other < size]
        far = [other for other in range(size) if abs(other - value) > 1]
        share = self._gradual if far else 1.0
        return [(other, share / len(near)) for other in near] + [
            (other, (1 - share) / len(far)) for other in far
        ]
