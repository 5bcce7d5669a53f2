"""The simulated user in other words: what it says drawn again, what it gives away unchanged.

Openers of generated scenarios are replaced by others of the topic library that give the same
values away; files of others bring no library, so there the openers stay. Follow-ups are worded by
a backend in the user's role, the way a real user model words them, so that whatever else hangs on
the script's seed (options' order, the simulated model's luck, times) stays as it is.
"""

from __future__ import annotations

from collections.abc import Sequence

from amemgym_env.errors import ConfigError
from amemgym_env.models.backend import Backend, Call, Completion
from amemgym_env.models.usage import Usage
from amemgym_env.scenarios import neutral_texts as neutral
from amemgym_env.scenarios.library import Topic, topic_index
from amemgym_env.scenarios.model import Scenario, Session
from amemgym_env.scenarios.samples import exposures, joint_exposures, questions
from amemgym_env.scenarios.script import Script
from amemgym_env.seeding import permutation


def redrawn(scenario: Scenario, draw: int) -> Scenario:
    """Return a scenario whose exposing openers have other words for the same values.

    Draws 1, 2, ... go through a value's other utterances in an order of the session's own; a value
    that the library can put in one way only keeps it.
    """
    known = _topics(scenario)
    if not known:
        return scenario
    periods = []
    for number, period in enumerate(scenario.periods):
        sessions = [
            session.model_copy(
                update={"query": _other(session, known, draw, scenario.id, number, place)}
            )
            for place, session in enumerate(period.sessions)
        ]
        periods.append(period.model_copy(update={"sessions": sessions}))
    return scenario.model_copy(update={"periods": periods})


def _topics(scenario: Scenario) -> dict[str, Topic]:
    """Return the topic of each variable; empty for a scenario without a library."""
    index = topic_index()
    return {
        variable: index[question.topic]
        for question in scenario.qas
        if scenario.library is not None and question.topic in index
        for variable in question.variables
    }


def _other(
    session: Session, known: dict[str, Topic], draw: int, scenario: str, period: int, place: int
) -> str:
    exposed = session.exposed_states
    about = known.get(next(iter(exposed), ""))
    if about is None or len(exposed) > 2:
        return session.query
    if len(exposed) == 1:
        ((variable, value),) = exposed.items()
        texts: Sequence[str] = exposures(about, variable, value)
    else:
        (first, second), (one, other) = exposed.keys(), exposed.values()
        texts = joint_exposures(about, ((first, one), (second, other)))
    others = [text for text in texts if text != session.query]
    if not others:
        return session.query
    order = permutation(len(others), "redrawn opener", scenario, period, place)
    return others[order[(draw - 1) % len(others)]]


class RedrawnUser(Backend):
    """Words follow-ups other than the script's, from the same stock of neutral ones.

    It counts as no simulated model (`simulated` is False): a simulated user is never asked, the
    script's own words are played.
    """

    name = "redrawn"

    def __init__(self, script: Script, draw: int) -> None:
        self._script = script
        self._draw = draw
        known = _topics(script.scenario)
        self._stocks: dict[str, tuple[str, ...]] = {}
        """By opener: neutral utterances that this conversation does not have."""
        for conversation in (row for period in script.periods for row in period):
            said = [utterance.text for utterance in conversation.utterances]
            matter = [name for part in conversation.utterances for name, _ in part.exposures]
            about = known.get(matter[0]) if matter else None
            texts = neutral.FOLLOW_UPS if about is None else questions(about)
            self._stocks[said[0]] = tuple(text for text in texts if text not in said) or texts

    def complete(self, call: Call) -> Completion:
        """Return a follow-up; it depends on the opener and on what the user said last.

        Raises:
            ConfigError: the call is no follow-up, or of another script.
        """
        content = call.messages[-1]["content"]
        openers = [opener for opener in self._stocks if opener in content]
        if call.kind != "user_follow_up" or not openers:
            raise ConfigError(f"a redrawn user words its script's follow-ups, found {call.kind!r}")
        opener = max(openers, key=len)
        stock = self._stocks[opener]
        key = ("redrawn follow-ups", self._script.scenario.id, self._script.seed, opener)
        order = permutation(len(stock), *key)
        start = self._draw - 1
        turned = [stock[order[(start + step) % len(stock)]] for step in range(len(stock))]
        text = next((text for text in turned if text not in content), turned[0])
        return Completion(text, Usage(1, usd=0.0, estimated=True), "stop")
