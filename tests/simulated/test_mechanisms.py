"""Each mechanism of the simulated model does what its number says, and with the same luck."""

from __future__ import annotations

import json

import pytest

import agents
from amemgym_env.agent import Entry, Op, Question, Variable, shown_message
from amemgym_env.errors import ConfigError
from amemgym_env.evaluation.results import Results
from amemgym_env.evaluation.run import Game, evaluate, simulated
from amemgym_env.generation.sets import scenarios as named_scenarios
from amemgym_env.models.client import Models
from amemgym_env.prompts.assistant import (
    AssistantReply,
    Context,
    ExamAnswer,
    InformedAnswer,
    StateQuery,
)
from amemgym_env.prompts.base import message
from amemgym_env.prompts.memory import DictionaryUpdate, FactExtraction, MemoryDecision
from amemgym_env.scenarios.model import Scenario
from amemgym_env.scenarios.script import Script, build
from amemgym_env.simulated.model import PROFILES, ErrorRates, SimulatedModel, fact_text


@pytest.fixture(scope="module")
def generated() -> list[Scenario]:
    return list(named_scenarios("validation:2:5"))


def models(script: Script, **rates: float) -> Models:
    return Models({"assistant": SimulatedModel(script, ErrorRates(**rates))})


def played(kind: type[agents.Assistant], scenarios: list[Scenario], profile: str) -> Results:
    return evaluate(kind, scenarios, game=Game(), backends=simulated(profile))


@pytest.mark.parametrize("kind", [agents.Native, agents.AWI], ids=lambda kind: kind.name)
def test_exact_is_without_fault_where_nothing_has_to_be_found(
    kind: type[agents.Assistant], generated: list[Scenario]
) -> None:
    document = played(kind, generated, "exact").to_json()
    assert (document["overall"], document["upper_bound"]) == (1.0, 1.0)


def test_confusion_alone_leaves_the_upper_bound_whole(generated: list[Scenario]) -> None:
    assert played(agents.AWI, generated, "confusion_only").to_json()["upper_bound"] == 1.0


def test_calibrated_is_the_default_and_fails_in_every_way(generated: list[Scenario]) -> None:
    default = evaluate(agents.Native, generated).to_json()
    named = played(agents.Native, generated, "calibrated").to_json()
    assert default["accuracy"] == named["accuracy"]
    assert 0.8 < named["upper_bound"] < 1.0
    assert named["random"] < named["overall"] < 0.8
    assert min(named["failures"][name] for name in ("write", "read", "utilization")) > 0


def test_every_weakness_but_the_assistants_belief_only_takes_away(
    generated: list[Scenario],
) -> None:
    whole = played(agents.AWE, generated, "exact").to_json()["overall"]
    for name in ("comprehension_miss", "extraction_miss", "rewrite_loss", "answer_error"):
        weak = ErrorRates(**{name: 0.5})
        results = evaluate(
            agents.AWE,
            generated,
            backends=lambda script, weak=weak: {"assistant": SimulatedModel(script, weak)},
        )
        assert results.to_json()["overall"] < whole, name


def test_what_is_not_understood_is_the_same_for_all_agents(generated: list[Scenario]) -> None:
    script = build(generated[0])
    model = models(script, comprehension_miss=0.5)
    exposing = [u for u in script.utterances if u.exposures]
    noted, known = set(), set()
    for utterance in exposing:
        said = (message("user", utterance.text),)
        facts = model.ask(FactExtraction(said)).value or ()
        noted |= {(utterance.id, name) for name, v in utterance.exposures
                  if fact_text(name, v) in facts}  # fmt: skip
        for name, value in utterance.exposures:
            values = tuple(script.scenario.state_schema[name])
            answer = model.ask(StateQuery(Context(None, said), (Variable(name, values),))).value
            assert answer is not None
            if answer[0] == values.index(value):
                known.add((utterance.id, name))
    pairs = sum(len(u.exposures) for u in exposing)
    assert noted == known
    assert 0.3 < len(known) / pairs < 0.7


def test_extraction_misses_more_in_larger_batches(generated: list[Scenario]) -> None:
    script = build(generated[0])
    model = models(script, extraction_miss=0.3)
    said = [message("user", u.text) for u in script.utterances if u.exposures]
    single = sum(len(model.ask(FactExtraction((part,))).value or ()) for part in said)
    batched = sum(
        len(model.ask(FactExtraction(tuple(said[start : start + 4]))).value or ())
        for start in range(0, len(said), 4)
    )
    assert batched < single


def test_irrelevant_writes_are_noted_beside_the_facts_and_gives_nothing_away(
    generated: list[Scenario],
) -> None:
    script = build(generated[0])
    plain = next(u for u in script.utterances if not u.exposures)
    facts = (
        models(script, irrelevant_writes=1.0)
        .ask(FactExtraction((message("user", plain.text),)))
        .value
    )
    assert facts is not None
    assert len(facts) == 1
    assert models(script).ask(FactExtraction((message("user", plain.text),))).value == ()
    model = SimulatedModel(script, "exact")
    question = Question(script.scenario.qas[0].query, script.choices_shown(0))
    ask = Models({"assistant": model}).ask
    assert ask(ExamAnswer(Context(facts), question)).value == (
        ask(ExamAnswer(Context(()), question)).value
    )
    assert model.unrecognised == 0


def test_rewriting_loses_memories_that_the_new_messages_do_not_concern(
    tiny: list[Scenario],
) -> None:
    script = build(tiny[0])
    first, second = tiny[0].variables
    spoken = next(u for u in script.utterances if dict(u.exposures).keys() == {first})
    other = fact_text(second, tiny[0].state_schema[second][0])
    said = (message("user", spoken.text),)
    changes = models(script, rewrite_loss=1.0).ask(DictionaryUpdate((other,), said)).value
    assert changes is not None
    assert dict(changes)[second.replace("_", " ")] is None
    kept = models(script).ask(DictionaryUpdate((other,), said)).value
    assert kept is not None
    assert second.replace("_", " ") not in dict(kept)
    new = (fact_text(*spoken.exposures[0]),)
    stored = (Entry("4", other, "2024", "2024", 0),)
    decided = models(script, rewrite_loss=1.0).ask(MemoryDecision(new, stored)).value
    assert decided is not None
    assert [(d.op, d.entry_id) for d in decided] == [(Op.DELETE, "4"), (Op.ADD, None)]


def test_more_is_overlooked_among_more_and_less_when_asked_by_name(
    generated: list[Scenario],
) -> None:
    script = build(generated[0])
    state = script.scenario.periods[0].state
    facts = tuple(fact_text(name, value) for name, value in state.items())
    filler = tuple(f"The user spoke of thing {number}" for number in range(100))

    def known(memories: tuple[str, ...]) -> int:
        model = models(script, dilution=0.8)
        count = 0
        for name, value in state.items():
            values = tuple(script.scenario.state_schema[name])
            answer = model.ask(StateQuery(Context(memories), (Variable(name, values),))).value
            count += answer == (values.index(value),)
        return count

    def right(memories: tuple[str, ...]) -> int:
        model = models(script, dilution=0.8)
        return sum(
            model.ask(
                ExamAnswer(Context(memories), Question(q.query, script.choices_shown(number)))
            ).value
            == script.right_shown[0][number]
            for number, q in enumerate(script.scenario.qas)
        )

    assert known(facts) > known(facts + filler) > 0
    assert right(facts) > right(facts + filler)
    assert known(facts + filler) / len(state) > right(facts + filler) / len(script.scenario.qas)


def test_slips_bound_the_upper_bound(generated: list[Scenario]) -> None:
    def best(slip: float) -> float:
        right = total = 0
        for scenario in generated:
            script = build(scenario)
            model = models(script, answer_error=slip)
            for number, question in enumerate(scenario.qas):
                for stored, choice in enumerate(question.answer_choices):
                    told = tuple(
                        fact_text(*pair)
                        for pair in zip(question.required_info, choice.state, strict=True)
                    )
                    asked = Question(question.query, script.choices_shown(number))
                    answer = model.ask(InformedAnswer(Context(told), asked)).value
                    right += answer == script.option_orders[number].index(stored)
                    total += 1
        return right / total

    assert best(0.0) == 1.0
    assert 0.7 < best(0.2) < 0.9


def belief(script: Script, echo: float) -> tuple[str, str, str]:
    """Return what the assistant replies when a change is missed: it believes the old value."""
    name = script.scenario.variables[0]
    changed = next(
        (period, session)
        for period, item in enumerate(script.scenario.periods)
        for session, part in enumerate(item.sessions)
        if period and name in part.exposed_states
    )
    opener = script.periods[changed[0]][changed[1]].utterances[0]
    old = next(v for v in script.scenario.state_schema[name] if v != dict(opener.exposures)[name])
    weak = models(script, echo=echo, comprehension_miss=1.0)
    shown = shown_message(opener.text, "2024-01-01T00:00:00", True)
    reply = weak.ask(AssistantReply(Context((fact_text(name, old),)), shown)).value
    assert reply is not None
    return reply, fact_text(name, old), name


def test_a_reply_restates_what_the_assistant_believes_right_or_wrong(tiny: list[Scenario]) -> None:
    script = build(tiny[0])
    reply, wrong, _ = belief(script, 0.5)
    assert wrong in reply
    assert wrong not in belief(script, 0.0)[0]


def test_a_belief_has_lower_standing_than_the_users_own_words(tiny: list[Scenario]) -> None:
    script = build(tiny[0])
    reply, _, name = belief(script, 0.5)
    values = tuple(tiny[0].state_schema[name])
    said = next(u for u in script.utterances if name in dict(u.exposures))
    value = values.index(dict(said.exposures)[name])
    asked = (Variable(name, values),)
    later = (message("user", said.text), message("assistant", reply.replace(
        fact_text(name, values[value]), fact_text(name, values[1 - value]))))  # fmt: skip
    alone = (message("assistant", f"As I see it, {fact_text(name, values[1 - value])}."),)
    sceptic, credulous = models(script, echo=1e-9), models(script, echo=1.0)
    assert sceptic.ask(StateQuery(Context(None, (later[0], *alone)), asked)).value == (value,)
    assert credulous.ask(StateQuery(Context(None, (later[0], *alone)), asked)).value == (1 - value,)
    assert sceptic.ask(StateQuery(Context(None, alone), asked)).value == (1 - value,)


def test_a_believed_reply_is_noted_as_a_fact_and_a_doubted_one_is_not(
    tiny: list[Scenario],
) -> None:
    script = build(tiny[0])
    reply, wrong, _ = belief(script, 0.5)
    said = (message("user", "Thanks."), message("assistant", reply))
    assert models(script, echo=1.0).ask(FactExtraction(said)).value == (wrong,)
    assert models(script, echo=1e-9).ask(FactExtraction(said)).value == ()


def test_draws_do_not_depend_on_the_words_of_a_prompt(tiny: list[Scenario]) -> None:
    script = build(tiny[0])
    for number in range(len(tiny[0].qas)):
        question = Question(tiny[0].qas[number].query, script.choices_shown(number))
        told = tuple(fact_text(*pair) for pair in tiny[0].periods[0].state.items())
        prompt = ExamAnswer(Context(told), question)
        model = SimulatedModel(script, PROFILES["calibrated"])
        plain = Models({"assistant": model}).ask(prompt).text
        from amemgym_env.prompts.base import Templates

        other = Templates({"exam_answer": "Now then:\n{question}\n\nA number as JSON, please."})
        assert Models({"assistant": model}, other).ask(prompt).text == plain
        assert isinstance(json.loads(plain)["answer"], int)


@pytest.mark.parametrize(
    ("name", "value"), [("answer_error", 1.5), ("stale", -0.1), ("dilution", -1.0)], ids=str
)
def test_a_number_outside_its_range_is_refused(name: str, value: float) -> None:
    with pytest.raises(ConfigError, match=f"error rate {name}"):
        ErrorRates(**{name: value})
