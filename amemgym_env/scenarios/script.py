"""A script: a scenario made playable for one seed and difficulty.

It fixes the order of sessions and rounds, every utterance of the simulated user with its time and
what it gives away, and the order in which each question's options are shown. A real user model
replaces the follow-ups of a script, nothing else. All draws are keyed by scenario, seed and
place, so scripts do not depend on the order in which they are built.
Paper: AMemGym, Section 3.3. Late exposures, re-mentions and distractors go beyond the paper.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import datetime, timedelta
from enum import StrEnum
from functools import cached_property
from typing import NamedTuple

from amemgym_env.errors import ConfigError
from amemgym_env.scenarios import messages
from amemgym_env.scenarios import neutral_texts as neutral
from amemgym_env.scenarios.difficulty import Difficulty, named_difficulty
from amemgym_env.scenarios.distractors import Distractors
from amemgym_env.scenarios.library import Topic, topic
from amemgym_env.scenarios.model import Scenario, Session
from amemgym_env.scenarios.random_stream import Draws
from amemgym_env.scenarios.timestamps import instant, iso
from amemgym_env.seeding import below, digest, permutation, uniform

Exposures = tuple[tuple[str, str], ...]
"""(variable, value) pairs that an utterance gives away."""


class Kind(StrEnum):
    """What an utterance is for."""

    OPENER = "opener"
    FOLLOW_UP = "follow_up"
    LATE = "late"
    RE_MENTION = "re_mention"
    DISTRACTOR = "distractor"


class Utterance(NamedTuple):
    """One user utterance; `id` counts the script's utterances from 0 in order of play."""

    id: int
    text: str
    kind: Kind
    exposures: Exposures = ()


@dataclass(frozen=True, slots=True)
class Conversation:
    """One session as it is played: its time (ISO 8601) and an utterance for each round."""

    time: str
    utterances: tuple[Utterance, ...]
    source: int | None
    """Index of the scenario's session that it plays; None for a distractor session."""


@dataclass(frozen=True)
class Script:
    """Everything that a simulated user will say, and how the exams are shown."""

    scenario: Scenario
    difficulty: Difficulty
    seed: int
    rounds_initial: int
    rounds_update: int
    periods: tuple[tuple[Conversation, ...], ...]
    option_orders: tuple[tuple[int, ...], ...]
    """For each question, the stored index of each choice as shown."""

    @cached_property
    def key(self) -> str:
        """Hex digest of all that the script depends on: equal keys play the same episode."""
        parts = {
            "scenario": self.scenario.key,
            "difficulty": asdict(self.difficulty),
            "seed": self.seed,
            "utterances": [utterance.text for utterance in self.utterances],
            "orders": self.option_orders,
        }
        return digest("script", json.dumps(parts, sort_keys=True)).hex()

    @cached_property
    def utterances(self) -> tuple[Utterance, ...]:
        """All utterances in order of play; `utterances[i].id == i`."""
        return tuple(
            utterance
            for conversations in self.periods
            for conversation in conversations
            for utterance in conversation.utterances
        )

    @cached_property
    def right_shown(self) -> tuple[tuple[int, ...], ...]:
        """Shown index of the right choice, `[period][question]`."""
        return tuple(
            tuple(
                order.index(right) for order, right in zip(self.option_orders, rights, strict=True)
            )
            for rights in self.scenario.right_choices
        )

    def choices_shown(self, question: int) -> tuple[str, ...]:
        """Return the texts of a question's choices in the order shown."""
        choices = self.scenario.qas[question].answer_choices
        return tuple(choices[index].answer for index in self.option_orders[question])


def build(
    scenario: Scenario,
    difficulty: str | Difficulty = "none",
    seed: int = 0,
    *,
    rounds_initial: int = 1,
    rounds_update: int = 2,
    shuffle_choices: bool = True,
    others: Sequence[Scenario] = (),
) -> Script:
    """Return the script of a scenario for a difficulty and a seed.

    `others` are the other scenarios of the set: where a scenario has no topic library, their
    openers serve as its distractors.

    Raises:
        ConfigError: unknown difficulty, a count below its range, or distractors asked for where
            there is neither a library nor another scenario.
    """
    level = named_difficulty(difficulty)
    for name, rounds in (("rounds_initial", rounds_initial), ("rounds_update", rounds_update)):
        if rounds < 1:
            raise ConfigError(f"{name}: expected at least 1 round a session, found {rounds}")
    builder = _Builder(scenario, level, seed, rounds_initial, rounds_update, others)
    orders = tuple(
        permutation(len(question.answer_choices), "options", scenario.id, seed, index)
        if shuffle_choices
        else tuple(range(len(question.answer_choices)))
        for index, question in enumerate(scenario.qas)
    )
    periods = _numbered(builder.periods())
    return Script(scenario, level, seed, rounds_initial, rounds_update, periods, orders)


def _numbered(
    periods: list[list[Conversation]],
) -> tuple[tuple[Conversation, ...], ...]:
    count = 0
    numbered = []
    for conversations in periods:
        row = []
        for conversation in conversations:
            utterances = tuple(
                utterance._replace(id=count + index)
                for index, utterance in enumerate(conversation.utterances)
            )
            count += len(utterances)
            row.append(replace(conversation, utterances=utterances))
        numbered.append(tuple(row))
    return tuple(numbered)


class _Builder:
    """Builds the periods of one script; every draw names scenario, seed and place."""

    def __init__(
        self,
        scenario: Scenario,
        difficulty: Difficulty,
        seed: int,
        rounds_initial: int,
        rounds_update: int,
        others: Sequence[Scenario],
    ) -> None:
        self.scenario = scenario
        self.difficulty = difficulty
        self.seed = seed
        self.rounds_initial = rounds_initial
        self.rounds_update = rounds_update
        self.topics = {
            variable: topic(question.topic)
            for question in scenario.qas
            if scenario.library is not None and question.topic is not None
            for variable in question.variables
        }
        self._distractors = (
            Distractors(scenario, seed, self.topics.values(), difficulty.quiet_messages, others)
            if difficulty.distractor_sessions
            else None
        )

    def periods(self) -> list[list[Conversation]]:
        """Return the conversations of every period, ids not yet numbered."""
        return [self._period(period) for period in range(len(self.scenario.periods))]

    def _period(self, period: int) -> list[Conversation]:
        rounds = self.rounds_initial if period == 0 else self.rounds_update
        conversations = [
            self._conversation(period, index, session, rounds)
            for index, session in enumerate(self.scenario.periods[period].sessions)
        ]
        conversations = self._with_distractors(period, conversations, rounds)
        return self._with_re_mentions(period, conversations)

    def _conversation(self, period: int, index: int, session: Session, rounds: int) -> Conversation:
        place = (period, index)
        exposing = (session.query, tuple(session.exposed_states.items()))
        named = next(iter(session.exposed_states), None)
        found = None if named is None else self.topics.get(named)
        turns = list(self._follow_ups(found, named, rounds - 1, place))
        can_be_late = rounds > 1 and exposing[1]
        if can_be_late and self._uniform("late", *place) < self.difficulty.late:
            opener = (
                self._shuffled(neutral.OPENERS, "opener", *place)[0]
                if found is None or named is None
                else messages.question(
                    found, named, self._draws("opener", *place), initial=period == 0
                )
            )
            turns[self._below(rounds - 1, "late round", *place)] = Utterance(
                0, exposing[0], Kind.LATE, exposing[1]
            )
            turns.insert(0, Utterance(0, opener, Kind.OPENER))
        else:
            turns.insert(0, Utterance(0, exposing[0], Kind.OPENER, exposing[1]))
        return Conversation(iso(session.session_time), tuple(turns), index)

    def _follow_ups(
        self, about: Topic | None, variable: str | None, count: int, place: tuple[int, int]
    ) -> Iterator[Utterance]:
        if count == 0:
            return
        if about is None:
            shuffled = self._shuffled(neutral.FOLLOW_UPS, "follow-ups", *place)
            for number in range(count):
                yield Utterance(0, shuffled[number % len(shuffled)], Kind.FOLLOW_UP)
            return
        draws = self._draws("follow-ups", *place)
        for _ in range(count):
            name = variable or draws.pick(tuple(about.variables))
            text = messages.question(about, name, draws, initial=place[0] == 0)
            yield Utterance(0, text, Kind.FOLLOW_UP)

    def _with_distractors(
        self, period: int, conversations: list[Conversation], rounds: int
    ) -> list[Conversation]:
        """Insert the distractor sessions, each as likely before any session as after the last."""
        if self._distractors is None:
            return conversations
        bounds = self._moments(period, conversations)
        drawn = []
        for number in range(self.difficulty.distractor_sessions):
            slot = self._below(len(bounds) - 1, "distractor slot", period, number)
            start, end = bounds[slot], bounds[slot + 1]
            fraction = 0.05 + 0.9 * self._uniform("distractor time", period, number)
            seconds = int((end - start).total_seconds() * fraction)
            moment = start + timedelta(seconds=seconds)
            text, about, variable = self._distractors.next(period)
            place = (period, -number - 1)
            turns = (
                Utterance(0, text, Kind.DISTRACTOR),
                *self._follow_ups(about, variable, rounds - 1, place),
            )
            drawn.append(Conversation(moment.isoformat().removesuffix("+00:00"), turns, None))
        return sorted([*conversations, *drawn], key=lambda conversation: instant(conversation.time))

    def _moments(self, period: int, conversations: list[Conversation]) -> list[datetime]:
        """Return the period's session times with a bound in front and the last evening's end."""
        times = [instant(conversation.time) for conversation in conversations]
        earlier = [
            instant(session.session_time)
            for before in self.scenario.periods[:period]
            for session in before.sessions
        ]
        end = instant(self.scenario.periods[period].period_end)
        first = times[0] if times else end
        started = self.scenario.periods[period].period_start
        floor = first - timedelta(days=1) if started is None else instant(started)
        start = max([floor, *earlier[-1:]])
        evening = end.replace(hour=23, minute=59, second=59)
        return [min(start, first), *times, max([evening, *times])]

    def _with_re_mentions(
        self, period: int, conversations: list[Conversation]
    ) -> list[Conversation]:
        """Let drawn follow-ups repeat what the user said of values that still hold."""
        if period == 0:
            return conversations
        slots = [
            (number, index)
            for number, conversation in enumerate(conversations)
            for index, utterance in enumerate(conversation.utterances)
            if utterance.kind is Kind.FOLLOW_UP
        ]
        repeats = self._repeatable(period)
        for number in range(min(self.difficulty.re_mentions, len(slots), len(repeats))):
            row, column = slots.pop(self._below(len(slots), "re-mention slot", period, number))
            said = repeats.pop(self._below(len(repeats), "re-mention", period, number))
            turns = list(conversations[row].utterances)
            turns[column] = self._re_mention(said, period, number)
            conversations[row] = replace(conversations[row], utterances=tuple(turns))
        return conversations

    def _repeatable(self, period: int) -> list[Session]:
        state = self.scenario.periods[period].state
        return [
            session
            for before in self.scenario.periods[:period]
            for session in before.sessions
            if session.exposed_states
            and all(state[name] == value for name, value in session.exposed_states.items())
        ]

    def _re_mention(self, said: Session, period: int, number: int) -> Utterance:
        exposures = tuple(said.exposed_states.items())
        variable, value = exposures[self._below(len(exposures), "re-mentioned", period, number)]
        if variable in self.topics:
            exposures = ((variable, value),)
            draws = self._draws("re-mention text", period, number)
            text = messages.statement(self.topics[variable], exposures, draws, initial=False)
            return Utterance(0, text, Kind.RE_MENTION, exposures)
        lead = neutral.RE_MENTIONS[self._below(len(neutral.RE_MENTIONS), "lead", period, number)]
        return Utterance(0, f"{lead} {said.query}", Kind.RE_MENTION, exposures)

    def _shuffled(self, texts: Sequence[str], *key: str | int) -> list[str]:
        drawn = permutation(len(texts), "script", self.scenario.id, self.seed, *key)
        return [texts[index] for index in drawn]

    def _draws(self, *key: str | int) -> Draws:
        return Draws("script", self.scenario.id, self.seed, *key)

    def _uniform(self, *key: str | int) -> float:
        return uniform("script", self.scenario.id, self.seed, *key)

    def _below(self, n: int, *key: str | int) -> int:
        return below(n, "script", self.scenario.id, self.seed, *key)
