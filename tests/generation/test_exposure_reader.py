"""How well the offline reader of user turns tells exposures from neutral follow-ups."""

from __future__ import annotations

import pytest

from amemgym_env.evaluation.user_audit import TextReader
from amemgym_env.generation.sets import scenarios as named_scenarios
from amemgym_env.scenarios.library import topic
from amemgym_env.scenarios.samples import questions
from amemgym_env.scenarios.script import build


@pytest.mark.evidence
def test_the_reader_on_words_that_it_was_not_trained_on() -> None:
    """Its weights are fitted without the topic that it reads (`giveaways.py`)."""
    exposures: list[bool] = []
    follow_ups: list[bool] = []
    for scenario in named_scenarios("test:6:21"):
        reader = TextReader(build(scenario))
        for name in dict.fromkeys(question.topic for question in scenario.qas):
            about = topic(name or "")
            exposures += [
                bool(reader(text))
                for name, variable in about.variables.items()
                if name in scenario.state_schema
                for value in variable.values
                for text in exposures(about, name, value)
            ]
            follow_ups += [bool(reader(text)) for text in questions(about)]
    print(f"exposures found: {sum(exposures)} of {len(exposures)}")
    print(f"follow-ups taken for a leak: {sum(follow_ups)} of {len(follow_ups)}")
    assert sum(exposures) > 0.65 * len(exposures)
    assert sum(follow_ups) < 0.05 * len(follow_ups)
