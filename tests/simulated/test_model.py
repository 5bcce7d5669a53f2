"""The simulated model reads what it is shown and nothing else: the controls against peeking."""

from __future__ import annotations

import json

import pytest

from amemgym_env.agent import Entry, Op, Operation, Question, Variable
from amemgym_env.errors import ConfigError
from amemgym_env.models.client import Models
from amemgym_env.prompts.assistant import Context, ExamAnswer, StateQuery, UserFollowUp
from amemgym_env.prompts.base import Message, message
from amemgym_env.prompts.memory import DictionaryUpdate, FactExtraction, MemoryDecision
from amemgym_env.scenarios.model import Scenario
from amemgym_env.scenarios.script import Script, build
from amemgym_env.simulated.model import ErrorRates, SimulatedModel, fact_text


def exam_answer(script: Script, number: int, context: Context, profile: str = "exact") -> int:
    """Return the stored index of the choice that the model takes."""
    models = Models({"assistant": SimulatedModel(script, profile)})
    question = Question(script.scenario.qas[number].query, script.choices_shown(number))
    shown = models.ask(ExamAnswer(context, question)).value
    assert shown is not None
    return script.option_orders[number][shown]


def facts(script: Script, values: dict[str, str]) -> Context:
    return Context(tuple(fact_text(name, value) for name, value in values.items()))


def test_exact_answers_every_combination_that_it_is_shown(tiny: list[Scenario]) -> None:
    for scenario in tiny:
        script = build(scenario)
        for number, question in enumerate(scenario.qas):
            for stored, choice in enumerate(question.answer_choices):
                shown = dict(zip(question.required_info, choice.state, strict=True))
                assert exam_answer(script, number, facts(script, shown)) == stored


def test_altering_one_shown_value_moves_the_answer_to_that_value(tiny: list[Scenario]) -> None:
    moved = 0
    for scenario in tiny:
        script = build(scenario)
        for number, question in enumerate(scenario.qas):
            for period, right in enumerate(scenario.right_choices):
                shown = {name: scenario.periods[period].state[name] for name in question.variables}
                for stored, choice in enumerate(question.answer_choices):
                    altered = dict(zip(question.required_info, choice.state, strict=True))
                    if sum(altered[name] != shown[name] for name in altered) == 1:
                        assert exam_answer(script, number, facts(script, altered)) == stored
                        assert stored != right[number]
                        moved += 1
    assert moved > 0


def test_with_nothing_or_another_users_messages_it_guesses_as_with_an_empty_memory(
    tiny: list[Scenario],
) -> None:
    script, foreign = build(tiny[0]), build(tiny[1])
    spoken = tuple(message("user", utterance.text) for utterance in foreign.utterances)
    for number in range(len(tiny[0].qas)):
        guess = exam_answer(script, number, Context(()))
        assert exam_answer(script, number, Context(None, ())) == guess
        assert exam_answer(script, number, Context((), spoken)) == guess


def test_the_newest_of_two_shown_values_holds(tiny: list[Scenario]) -> None:
    script = build(tiny[0])
    question = tiny[0].qas[0]
    name = question.variables[0]
    first, second = tiny[0].state_schema[name][:2]
    for old, new in ((first, second), (second, first)):
        state = {**tiny[0].periods[0].state, name: new}
        context = Context((fact_text(name, old), fact_text(name, new)))
        answer = exam_answer(script, 0, context)
        value = question.answer_choices[answer].state[question.required_info.index(name)]
        assert value == state[name]


def test_the_seed_changes_the_guesses(tiny: list[Scenario]) -> None:
    guesses = {
        tuple(
            exam_answer(build(scenario, seed=seed), number, Context(()))
            for scenario in tiny
            for number in range(len(scenario.qas))
        )
        for seed in range(8)
    }
    assert len(guesses) > 1


def test_state_query_names_known_values_and_null_for_unknown_ones(tiny: list[Scenario]) -> None:
    scenario = tiny[0]
    script = build(scenario)
    known, unknown = scenario.variables[:2]
    variables = tuple(
        Variable(name, tuple(scenario.state_schema[name])) for name in (known, unknown)
    )
    context = Context((fact_text(known, scenario.state_schema[known][1]),))
    models = Models({"assistant": SimulatedModel(script, "exact")})
    assert models.ask(StateQuery(context, variables)).value == (1, None)


def opener(script: Script) -> tuple[Message, str, str]:
    utterance = next(item for item in script.utterances if len(item.exposures) == 1)
    return message("user", utterance.text), *utterance.exposures[0]


def test_extraction_notes_what_an_utterance_gives_away(tiny: list[Scenario]) -> None:
    script = build(tiny[0])
    spoken, name, value = opener(script)
    models = Models({"assistant": SimulatedModel(script, "exact")})
    found = models.ask(FactExtraction((spoken, message("assistant", "Try oat biscuits.")))).value
    assert found == (fact_text(name, value),)


@pytest.mark.parametrize("said", ["My sister prefers cocoa.", "What would you do?", ""])
def test_b10_10_b10_11_other_texts_are_not_taken_for_facts(tiny: list[Scenario], said: str) -> None:
    script = build(tiny[0])
    spoken = opener(script)[0]["content"]
    models = Models({"assistant": SimulatedModel(script, "exact")})
    batch = (message("user", said), message("assistant", "You could start with green tea."))
    assert models.ask(FactExtraction(batch)).value == ()
    assert models.ask(FactExtraction((message("user", spoken),))).value != ()


def test_b10_01_a_contradiction_updates_the_entry_and_keeps_the_new_fact(
    tiny: list[Scenario],
) -> None:
    script = build(tiny[0])
    name = tiny[0].variables[0]
    old, new = (fact_text(name, value) for value in tiny[0].state_schema[name][:2])
    models = Models({"assistant": SimulatedModel(script, "exact")})
    stored = (Entry("7", old, "2024", "2024", 0), Entry("9", "likes the sea", "2024", "2024", 1))
    decided = models.ask(MemoryDecision((new,), stored)).value
    assert decided == (Operation.update("7", new),)
    again = models.ask(MemoryDecision((old,), stored)).value
    assert again is not None
    assert again[0].op is Op.NOOP


def test_dictionary_update_returns_only_what_is_new(tiny: list[Scenario]) -> None:
    script = build(tiny[0])
    spoken, name, value = opener(script)
    models = Models({"assistant": SimulatedModel(script, "exact")})
    changes = models.ask(DictionaryUpdate(("name: somebody",), (spoken,))).value
    assert changes is not None
    assert [tuple(change) for change in changes] == [
        (name.replace("_", " "), value.replace("_", " "))
    ]


def test_follow_up_is_the_scripts_next_utterance(tiny: list[Scenario]) -> None:
    script = build(tiny[0])
    conversation = script.periods[1][0]
    first, second = conversation.utterances[:2]
    models = Models({"assistant": SimulatedModel(script, "exact")})
    prompt = UserFollowUp("p", "2024-02-29", first.text, (message("user", first.text),), ())
    assert models.ask(prompt).value == second.text


@pytest.mark.parametrize(
    ("weakness", "shown"), [("comprehension_miss", 1.0), ("extraction_miss", 1.0)]
)
def test_a_certain_weakness_leaves_nothing(
    tiny: list[Scenario], weakness: str, shown: float
) -> None:
    script = build(tiny[0])
    spoken, _, _ = opener(script)
    model = SimulatedModel(script, ErrorRates(**{weakness: shown}))
    assert Models({"assistant": model}).ask(FactExtraction((spoken,))).value == ()


def test_replies_are_text_that_goes_through_the_common_reader(tiny: list[Scenario]) -> None:
    script = build(tiny[0])
    model = SimulatedModel(script, "exact")
    question = Question(tiny[0].qas[0].query, script.choices_shown(0))
    models = Models({"assistant": model})
    outcome = models.ask(ExamAnswer(Context(()), question))
    assert list(json.loads(outcome.text)) == ["answer"]


def test_an_unknown_profile_is_refused_with_the_known_ones(tiny: list[Scenario]) -> None:
    with pytest.raises(ConfigError, match=r"exact.*confusion_only.*perfect"):
        SimulatedModel(build(tiny[0]), "perfect")
