"""Quiet messages: what a script's user says without exposing a value that a question needs.

Kinds: minimal pairs (a value of the user's topics, but another person's, place's or time's), other
topics (true statements about topics that no question asks for), small talk, other users' openers,
and all of them mixed. A scenario without a topic library takes its messages from the train topics.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from amemgym_env.errors import ConfigError
from amemgym_env.scenarios import messages
from amemgym_env.scenarios.difficulty import QUIET_KINDS
from amemgym_env.scenarios.library import Topic, split_of, topics
from amemgym_env.scenarios.model import Scenario
from amemgym_env.scenarios.random_stream import Draws
from amemgym_env.seeding import Key, below, permutation

_OTHERS = 20
"""Other scenarios whose openers one script draws from."""


class Quiet(NamedTuple):
    """A quiet message and the topic it is about, if any."""

    text: str
    topic: Topic | None
    variable: str | None = None


class Distractors:
    """The quiet messages of one script, one after the other.

    `others` are the other scenarios of the set.

    Raises:
        ConfigError: other users' openers are asked for and there is no other scenario.
    """

    def __init__(
        self,
        scenario: Scenario,
        seed: int,
        own: Iterable[Topic],
        kind: str,
        others: Sequence[Scenario],
    ) -> None:
        self._key: tuple[Key, ...] = ("script", scenario.id, seed)
        self._own = tuple(dict.fromkeys(own))
        split = split_of(self._own[0].id) if self._own else "train"
        asked = {found.id for found in self._own}
        self._strange = tuple(found for found in topics(split) if found.id not in asked)
        self._foreign = self._foreign_openers(scenario, others, kind)
        kinds = QUIET_KINDS if kind == "mixed" else (kind,)
        self._kinds = [
            name for name in kinds if name != "other_users" or any(self._foreign.values())
        ]
        if not self._kinds:
            raise ConfigError(
                f"quiet_messages: other_users needs a set of at least two scenarios, and "
                f"{scenario.id!r} is alone"
            )
        self._told: set[str] = set()
        self._count = 0

    def next(self, period: int) -> Quiet:
        """Return the next quiet message; none comes twice as long as there are others."""
        number, self._count = self._count, self._count + 1
        kind = self._kinds[below(len(self._kinds), *self._key, "quiet kind", number)]
        for attempt in range(4):
            found = self._message(kind, period, number, attempt)
            if found.text not in self._told:
                break
        self._told.add(found.text)
        return found

    def _message(self, kind: str, period: int, number: int, attempt: int) -> Quiet:
        draws = Draws(*self._key, "quiet", number, attempt)
        initial = period == 0
        if kind == "small_talk":
            return Quiet(messages.small_talk(draws, initial=initial), None)
        if kind == "other_users":
            stock = self._foreign[initial] or self._foreign[not initial]
            return Quiet(stock[(number + attempt) % len(stock)], None)
        if kind == "minimal_pairs" and self._own:
            about = self._in_turn(self._own, number)
        else:
            about = self._in_turn(self._strange, number)
        variables = list(about.variables)[:2]
        name = draws.pick(variables)
        value = draws.pick(tuple(about.variables[name].values))
        if kind == "minimal_pairs":
            text = messages.minimal_pair(about, name, value, draws, initial=initial)
            return Quiet(text, about, name)
        pairs = [(name, value)]
        if draws.chance(0.6 if initial else 0.17):
            pairs = [(v, draws.pick(tuple(about.variables[v].values))) for v in variables]
        return Quiet(messages.statement(about, pairs, draws, initial=initial), about, name)

    def _in_turn(self, found: Sequence[Topic], number: int) -> Topic:
        turn, place = divmod(number, len(found))
        return found[permutation(len(found), *self._key, "topics", turn)[place]]

    def _foreign_openers(
        self, scenario: Scenario, others: Sequence[Scenario], kind: str
    ) -> dict[bool, list[str]]:
        """Return other users' openers of period 0 (true) and of later periods (false)."""
        if kind not in ("other_users", "mixed"):
            return {True: [], False: []}
        own = {session.query for period in scenario.periods for session in period.sessions}
        drawn = permutation(len(others), *self._key, "other users")[:_OTHERS]
        found: dict[bool, set[str]] = {True: set(), False: set()}
        for other in (others[index] for index in drawn):
            if other.id == scenario.id:
                continue
            for place, period in enumerate(other.periods):
                found[place == 0].update(
                    session.query
                    for session in period.sessions
                    if session.exposed_states.keys().isdisjoint(scenario.state_schema)
                )
        return {initial: self._mixed(texts - own) for initial, texts in found.items()}

    def _mixed(self, texts: set[str]) -> list[str]:
        # Sorted, so that a script does not depend on the order of the set.
        ordered = sorted(texts)
        return [ordered[i] for i in permutation(len(ordered), *self._key, "distractors")]
