"""Scenarios made by a model, rehearsed in process: rules, round trips, resuming, accounts."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from amemgym_env.errors import ConfigError, TransportError
from amemgym_env.generation.audit.judge import judge
from amemgym_env.generation.offline.settings import BASE, EXTRA, Settings
from amemgym_env.generation.pipeline.mock_model import MockModel
from amemgym_env.generation.pipeline.personas import Person
from amemgym_env.generation.pipeline.repair import RepairingClient
from amemgym_env.generation.pipeline.runner import estimate
from amemgym_env.generation.pipeline.scenario_pipeline import PipelineOptions, ScenarioPipeline
from amemgym_env.models.client import Models
from amemgym_env.scenarios import files as scenario_files
from amemgym_env.scenarios.library import topics
from amemgym_env.scenarios.script import build
from tests.generation.cases import PEOPLE, SMALL, Model, campaign, tokens, valid


@pytest.mark.parametrize("shape", [SMALL, BASE, EXTRA], ids=["small", "base", "extra"])
def test_a_scenario_is_valid_and_in_the_benchmarks_shape(shape: Settings) -> None:
    made = ScenarioPipeline(
        PEOPLE[0], shape, PipelineOptions(), Models({"assistant": MockModel()})
    ).made()
    valid(made.scenario, shape)
    item = made.scenario.to_json()
    assert set(item) == {"id", "start_time", "user_profile", "state_schema", "periods", "qas"}
    assert scenario_files.parse([item])[0].to_json() == item
    assert {*item["periods"][1]} == {
        *("period_start", "period_end", "period_summary", "sessions", "state", "updates"),
        "update_cnts",
    }
    openers = [session["query"] for period in item["periods"] for session in period["sessions"]]
    assert len(set(openers)) == len(openers)


def test_the_language_reaches_every_step_that_writes_texts() -> None:
    model = Model(clumsy=0.3)
    ScenarioPipeline(
        PEOPLE[0], SMALL, PipelineOptions("Frisian"), Models({"assistant": model})
    ).made()
    writing = ("Invent", "Tell why", "begins some", "Rewrite", "for each of several circumstances")
    for text in model.asked:
        first = json.loads(text)[0]["content"]
        if any(mark in first for mark in writing):
            assert "Frisian" in first


def test_misread_texts_are_refined_and_what_stays_misread_is_given_up_and_reported() -> None:
    plain = ScenarioPipeline(
        PEOPLE[0], SMALL, PipelineOptions(), Models({"assistant": MockModel()})
    ).made()
    lost = plain.scenario.qas[1].required_info[0]
    stubborn = Models({"assistant": MockModel(0.2, frozenset([lost]))})
    made = ScenarioPipeline(PEOPLE[0], SMALL, PipelineOptions(), stubborn).made()
    valid(made.scenario, SMALL)
    assert lost not in made.scenario.state_schema
    assert made.refined > 0
    reasons = {found.question: found for found in made.given_up}
    found = reasons[plain.scenario.qas[1].query]
    assert found.step == "opening utterances"
    assert f"expected {lost} = " in found.reason
    neutral = {text for topic in topics("train") for text in topic.openers}
    assert not any(s.query in neutral for p in made.scenario.periods for s in p.sessions)


def test_no_refinement_asks_the_same_twice() -> None:
    model = Model(never=frozenset([next(iter(topics("train")[0].variables))]), clumsy=0.5)
    campaign(model, options=PipelineOptions(spare_questions=10)).run(PEOPLE, Path("calls"))
    assert sum("Rewrite" in text for text in model.asked) > 10
    assert all(count == 1 for text, count in model.asked.items() if "Rewrite" in text)


def test_too_few_questions_left_fail_the_person_with_the_arithmetic() -> None:
    every = frozenset(name for topic in topics("train") for name in topic.variables)
    outcome = campaign(Model(never=every)).run(PEOPLE[:1], Path("calls"))
    assert outcome.made == ()
    (failed,) = outcome.failed
    assert failed.step == "questions"
    assert failed.reason.startswith("3 wanted + 2 spare - 3 dropped leave too few; dropped: ")


def test_unresolved_conflicts_give_one_question_up() -> None:
    model = Model()
    making = ScenarioPipeline(PEOPLE[0], SMALL, PipelineOptions(), Models({"assistant": model}))
    names = [draft.variables[0].name for draft in making._drafts()]
    conflict = [{"variables": [names[0], names[2]], "reason": "the same"}]
    model.wrong = {"Check the circumstances": json.dumps({"conflicts": conflict})}
    making = ScenarioPipeline(
        PEOPLE[0], SMALL, PipelineOptions(refinements=0), Models({"assistant": model})
    )
    left = [draft.variables[0].name for draft in making._drafts()]
    assert left == [names[0], names[1], *names[3:]]
    assert [found.reason for found in making.given_up] == ["the same"]


def test_the_result_does_not_depend_on_concurrency_or_on_the_others() -> None:
    alone = [
        campaign(Model(clumsy=0.2), workers=1).run([person], Path("a")).made[0] for person in PEOPLE
    ]
    many = Model(clumsy=0.2)
    many.concurrency = 8
    together = campaign(many, workers=3).run(PEOPLE, Path("b"))
    assert together.made == tuple(alone)
    scenarios = [made.scenario for made in alone]
    assert build(scenarios[0], "default", 0, others=scenarios).periods
    assert campaign(many, seed=1).run(PEOPLE[:1], Path("c")).made[0] != alone[0]


def test_one_persons_failure_never_loses_anothers() -> None:
    model = Model()
    model.wrong = {PEOPLE[1].text: TransportError("gone", 3)}
    outcome = campaign(model).run(PEOPLE, Path("calls"))
    assert [made.scenario.id for made in outcome.made] == [PEOPLE[0].id, PEOPLE[2].id]
    assert outcome.failed[0]._replace(reason="") == (PEOPLE[1].id, "questions", "")
    assert outcome.failed[0].reason == "a call failed: gone"
    assert outcome.bill["retries"].calls == 3
    asked = dict(model.asked)
    model.wrong = {}
    again = campaign(model).run(PEOPLE, Path("calls"))
    assert len(again.made) == 3
    repeated = [text for text in asked if model.asked[text] > asked[text]]
    assert len(repeated) == 1  # the call that failed, and nothing that was finished
    assert PEOPLE[1].text.splitlines()[0] in repeated[0]


def test_replies_that_stay_wrong_fail_the_step_with_the_last_problem() -> None:
    model = Model()
    model.wrong = {"Decide the circumstances": '{"state": []}'}
    (failed,) = (
        campaign(model, options=PipelineOptions(repairs=2)).run(PEOPLE[:1], Path("calls")).failed
    )
    assert failed.step == "initial state"
    assert failed.reason.startswith("no reply of 3 could be used; the last: expected the key ")
    asked = model.asked.total()
    assert campaign(model, options=PipelineOptions(repairs=2)).run(PEOPLE[:1], Path("calls")).failed
    assert model.asked.total() == asked  # it fails again without a call; more repairs go on
    model.wrong = {}
    assert campaign(model, options=PipelineOptions(repairs=3)).run(PEOPLE[:1], Path("calls")).made
    assert model.asked.most_common(1)[0][1] == 1


def test_a_bug_or_a_refused_key_is_raised_not_swallowed() -> None:
    model = Model()
    for error in (ConfigError("backend.model=x: no such key"), ZeroDivisionError("a bug")):
        model.wrong = {PEOPLE[1].text: error}
        with pytest.raises(type(error)):
            campaign(model).run(PEOPLE, Path("calls"))


@pytest.mark.parametrize("last", [1, 7, 40])
def test_a_stopped_campaign_continues_and_repeats_no_finished_call(last: int) -> None:
    whole = campaign(Model(clumsy=0.2)).run(PEOPLE, Path("whole"))
    model = Model(clumsy=0.2)
    model.last = last
    first = campaign(model, workers=2).run(PEOPLE, Path("parts"))
    assert first.stopped == "enough"
    assert first.made == ()
    assert {failed.step for failed in first.failed} == {"stopped"}
    model.last = None
    second = campaign(model, workers=2).run(PEOPLE, Path("parts"))
    assert second.made == whole.made
    assert tokens(second.bill) == tokens(whole.bill)
    assert model.asked.most_common(1)[0][1] == 1
    third = campaign(model).run(PEOPLE, Path("parts"))
    assert third == second
    assert model.asked.total() == second.bill["generation"].calls + second.bill["judge"].calls


def test_an_interrupt_stops_the_others_and_can_be_continued() -> None:
    model = Model()
    seen: list[Person] = []

    def interrupt(person: Person, what: str) -> None:
        seen.append(person)
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        campaign(model, workers=1, progress=interrupt).run(PEOPLE, Path("calls"))
    assert seen == PEOPLE[:1]
    before = dict(model.asked)
    assert len(campaign(model).run(PEOPLE, Path("calls")).made) == 3
    assert all(model.asked[text] == 1 for text in before)


def test_an_estimate_is_what_a_generation_without_repairs_uses() -> None:
    model = Model()
    outcome = campaign(model).run(PEOPLE[:1], Path("calls"))
    guessed = estimate(PEOPLE[:1], SMALL, PipelineOptions())
    assert tokens(guessed) == tokens(outcome.bill)
    assert estimate(PEOPLE, SMALL, PipelineOptions())["judge"].calls == 3 * guessed["judge"].calls
    many = replace(SMALL, questions=100)
    with pytest.raises(ConfigError, match="there is no estimate; questions: no reply of 4"):
        estimate(PEOPLE, many, PipelineOptions())


def test_a_judge_rates_a_set_as_people_rated_the_papers() -> None:
    made = campaign(Model()).run(PEOPLE, Path("calls")).made
    scenarios = [found.scenario for found in made]

    def figures(model: MockModel) -> list[tuple[str, float, str]]:
        ask = RepairingClient(Models({"assistant": model}), repairs=1)
        found = judge(scenarios, lambda s: build(s, "none", 0), ask, 20)
        return [(figure.name, figure.value, figure.note.split(";")[0]) for figure in found]

    assert figures(MockModel()) == [
        ("exposure, rated by the judge", 1.0, "20 rated, 0 not"),
        ("state integrity, rated by the judge", 1.0, "9 rated, 0 not"),
        ("judge's agreement with the answers", 1.0, "20 rated, 0 not"),
    ]
    silent = Model()
    silent.wrong = {"Rate how well": '{"rating": 1}', "Choose the answer": "I cannot say."}
    (exposure, _, agreement) = figures(silent)
    assert exposure[1] == 0.5
    assert agreement[1] != agreement[1]  # nothing was rated, so there is no figure
    assert agreement[2] == "0 rated, 20 not"
