"""Selection and order of the distractors of a script.

A distractor concerns a topic of the user and exposes nothing of the user's present. In a scenario
without a topic library, openers of other users are used instead.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Protocol

from amemgym_env.errors import ConfigError
from amemgym_env.scenarios.entropy_balancing import order
from amemgym_env.scenarios.library import DISTRACTOR_KINDS, Topic, utterances
from amemgym_env.scenarios.model import Scenario
from amemgym_env.seeding import permutation


class Weights(Protocol):
    """Returns the weights of the texts of period 0 (`initial`), or of those of later periods."""

    def __call__(self, *, initial: bool) -> Mapping[str, float]:
        """Return a weight for each text."""
        ...


class Distractors:
    """The distractors of one script, one after the other.

    `others` are the other scenarios of the set.

    Raises:
        ConfigError: there is neither a library nor another scenario.
    """

    def __init__(
        self,
        scenario: Scenario,
        seed: int,
        topics: Iterable[Topic],
        weights: Weights,
        others: Sequence[Scenario],
    ) -> None:
        self._key = ("script", scenario.id, seed)
        self._weights = weights
        self._topics = list(dict.fromkeys(topics))
        self._foreign = [] if self._topics else self._foreign_openers(scenario, others)
        if not self._topics and not self._foreign:
            raise ConfigError(
                f"scenario {scenario.id!r} has no topic library, so its distractors are other "
                "users' openers: give a set of at least two scenarios, or difficulty=none"
            )
        self._count = 0
        self._told: set[str] = set()
        self._rows: dict[tuple[str, bool], list[str]] = {}

    def next(self, period: int) -> tuple[str, Topic | None]:
        """Return the next distractor and its topic, if any: topics in turn, in drawn order.

        The weights are made for texts that are drawn so, topic first. No text comes again as
        long as its topic has others.
        """
        number, self._count = self._count, self._count + 1
        if not self._topics:
            return self._foreign[number % len(self._foreign)], None
        turn, place = divmod(number, len(self._topics))
        drawn = permutation(len(self._topics), *self._key, "topics", turn)
        about = self._topics[drawn[place]]
        row = self._row(about, initial=period == 0)
        if self._told.issuperset(row):
            self._told.difference_update(row)
        text = next(text for text in row if text not in self._told)
        self._told.add(text)
        return text, about

    def _row(self, about: Topic, initial: bool) -> list[str]:
        """Return the topic's distractors in the order in which period 0, or a later one, takes."""
        key = (about.id, initial)
        if key not in self._rows:
            texts = [text for text, kind in utterances(about) if kind in DISTRACTOR_KINDS]
            named = ("distractors", about.id, int(initial))
            self._rows[key] = order(texts, self._weights(initial=initial), *self._key, *named)
        return self._rows[key]

    def _foreign_openers(self, scenario: Scenario, others: Sequence[Scenario]) -> list[str]:
        own = {session.query for period in scenario.periods for session in period.sessions}
        foreign = {
            session.query
            for other in others
            if other.id != scenario.id
            for period in other.periods
            for session in period.sessions
        }
        # Sorted, so that a script does not depend on the order of the set.
        return order(sorted(foreign - own), {}, *self._key, "distractors")
