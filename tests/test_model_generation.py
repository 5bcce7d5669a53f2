"""Scenarios made by a model: the whole pipeline, rehearsed in process and over HTTP."""

from __future__ import annotations

import json
import threading
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from amemgym_env import rules, scenario_files
from amemgym_env.accounts import Usage
from amemgym_env.backend import Models
from amemgym_env.calls import Call, Completion
from amemgym_env.errors import BudgetExceeded, ConfigError, TransportError
from amemgym_env.generation.asking import Asker
from amemgym_env.generation.campaign import Campaign, estimate
from amemgym_env.generation.judging import judge
from amemgym_env.generation.making import Making, Manner
from amemgym_env.generation.people import Person, people
from amemgym_env.generation.rehearsal import Rehearsal
from amemgym_env.generation.settings import BASE, EXTRA, Settings
from amemgym_env.scenario import Scenario
from amemgym_env.script import build
from amemgym_env.topics import topics
from experiments import generate
from tests.generation_server import FAULTS, GenerationServer
from tests.server import Behaviour, Faults
from tests.test_generate_job import settings

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning", "ignore::DeprecationWarning")

SMALL = Settings(periods=2, questions=3, changes_per_period=2, max_changes_per_variable=2)
PEOPLE = people(None, "train", 3, 0)


class Model(Rehearsal):
    """A rehearsal that is recorded like a real model, and may fail or misanswer."""

    simulated = False
    concurrency = 1

    def __init__(self, **given: Any) -> None:
        super().__init__(**given)
        self.asked: Counter[str] = Counter()
        self.wrong: Mapping[str, str | Exception] = {}
        """By a fragment of the first message: what is said, or raised, in place of the answer."""
        self.last: int | None = None
        self._guard = threading.Lock()

    def complete(self, call: Call) -> Completion:
        with self._guard:
            if self.last is not None and self.asked.total() >= self.last:
                raise BudgetExceeded("enough")
            self.asked[json.dumps(call.messages)] += 1
        for fragment, instead in self.wrong.items():
            if fragment in call.messages[0]["content"]:
                if isinstance(instead, Exception):
                    raise instead
                return Completion(instead, Usage(1, 10, 10))
        return super().complete(call)


def campaign(model: Model, shape: Settings = SMALL, **given: Any) -> Campaign:
    return Campaign({"assistant": model}, shape, **given)


def tokens(bill: Mapping[str, Usage]) -> dict[str, tuple[int, int]]:
    return {role: (used.calls, used.tokens) for role, used in bill.items()}


def valid(scenario: Scenario, shape: Settings) -> None:
    assert rules.problems(scenario) == rules.lints(scenario) == ()
    assert len(scenario.qas) == shape.questions
    assert len(scenario.state_schema) == shape.variables
    assert all(len(q.answer_choices) >= shape.min_choices for q in scenario.qas)
    assert all(
        shape.changes_per_period <= len(period.updates) <= shape.most_changes
        for period in scenario.periods[1:]
    )
    for name in scenario.state_schema:
        changes = sum(name in period.updates for period in scenario.periods[1:])
        assert changes <= shape.max_changes_per_variable
        assert scenario.periods[0].update_cnts[name] == changes


@pytest.mark.parametrize("shape", [SMALL, BASE, EXTRA], ids=["small", "base", "extra"])
def test_a_scenario_is_valid_and_in_the_benchmarks_shape(shape: Settings) -> None:
    made = Making(PEOPLE[0], shape, Manner(), Models({"assistant": Rehearsal()})).made()
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
    Making(PEOPLE[0], SMALL, Manner("Frisian"), Models({"assistant": model})).made()
    writing = ("Invent", "Tell why", "begins some", "Rewrite", "for each of several circumstances")
    for text in model.asked:
        first = json.loads(text)[0]["content"]
        if any(mark in first for mark in writing):
            assert "Frisian" in first


def test_misread_texts_are_refined_and_what_stays_misread_is_given_up_and_reported() -> None:
    plain = Making(PEOPLE[0], SMALL, Manner(), Models({"assistant": Rehearsal()})).made()
    lost = plain.scenario.qas[1].required_info[0]
    stubborn = Models({"assistant": Rehearsal(0.2, frozenset([lost]))})
    made = Making(PEOPLE[0], SMALL, Manner(), stubborn).made()
    valid(made.scenario, SMALL)
    assert lost not in made.scenario.state_schema
    assert made.refined > 0
    reasons = {found.question: found for found in made.given_up}
    found = reasons[plain.scenario.qas[1].query]
    assert found.step == "opening utterances"
    assert f"expected {lost} = " in found.reason
    neutral = {text for topic in topics("train") for text in topic.openers}
    assert not any(s.query in neutral for p in made.scenario.periods for s in p.sessions)


def test_too_few_questions_left_fail_the_person_with_the_arithmetic() -> None:
    every = frozenset(name for topic in topics("train") for name in topic.variables)
    outcome = campaign(Model(never=every)).run(PEOPLE[:1], Path("calls"))
    assert outcome.made == ()
    (failed,) = outcome.failed
    assert failed.step == "questions"
    assert failed.reason.startswith("3 wanted + 2 spare - 3 given up leave too few; given up: ")


def test_unresolved_conflicts_give_one_question_up() -> None:
    model = Model()
    making = Making(PEOPLE[0], SMALL, Manner(), Models({"assistant": model}))
    names = [draft.variables[0].name for draft in making._drafts()]
    conflict = [{"variables": [names[0], names[2]], "reason": "the same"}]
    model.wrong = {"Check the circumstances": json.dumps({"conflicts": conflict})}
    making = Making(PEOPLE[0], SMALL, Manner(refinements=0), Models({"assistant": model}))
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
    (failed,) = campaign(model, manner=Manner(repairs=2)).run(PEOPLE[:1], Path("calls")).failed
    assert failed.step == "initial state"
    assert failed.reason.startswith("no reply of 3 could be used; the last: expected the key ")
    asked = model.asked.total()
    assert campaign(model, manner=Manner(repairs=2)).run(PEOPLE[:1], Path("calls")).failed
    assert model.asked.total() == asked  # it fails again without a call; more repairs go on
    model.wrong = {}
    assert campaign(model, manner=Manner(repairs=3)).run(PEOPLE[:1], Path("calls")).made
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
    guessed = estimate(PEOPLE[:1], SMALL, Manner())
    assert tokens(guessed) == tokens(outcome.bill)
    assert estimate(PEOPLE, SMALL, Manner())["judge"].calls == 3 * guessed["judge"].calls
    many = replace(SMALL, questions=100)
    with pytest.raises(ConfigError, match="there is no estimate; questions: no reply of 4"):
        estimate(PEOPLE, many, Manner())


def test_a_judge_rates_a_set_as_people_rated_the_papers() -> None:
    made = campaign(Model()).run(PEOPLE, Path("calls")).made
    scenarios = [found.scenario for found in made]

    def figures(model: Rehearsal) -> list[tuple[str, float, str]]:
        ask = Asker(Models({"assistant": model}), repairs=1)
        found = judge(scenarios, lambda s: build(s, "none", 0), ask, 20)
        return [(figure.name, figure.value, figure.note.split(";")[0]) for figure in found]

    assert figures(Rehearsal()) == [
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


# Over HTTP


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[GenerationServer]:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-test-CANARY")
    with GenerationServer(Behaviour(), Rehearsal(clumsy=0.1)) as running:
        yield running


def job_settings(server: GenerationServer, **given: Any) -> dict[str, Any]:
    backend = {
        "name": "litellm", "model": "openai/gpt-4.1-mini", "api_base": server.address,
        "timeout": 2.0, "first_delay": 0.01,
    }  # fmt: skip
    shape = {"periods": 2, "questions": 3, "changes_per_period": 2}
    made = {"source": "model", "n": 3, "repairs": 6, "out": "my.json"}
    return settings(**{**shape, **made, "backend": backend, **given})


def report() -> dict[str, Any]:
    found: dict[str, Any] = json.loads(Path("my.json.calls/report.json").read_text("utf-8"))
    return found


def test_with_faults_on_a_third_of_the_calls_all_scenarios_come_out_and_all_calls_are_accounted(
    server: GenerationServer, capsys: pytest.CaptureFixture[str]
) -> None:
    server.behaviour.faults = Faults(1 / 3, FAULTS)
    generate.main(job_settings(server))
    printed = capsys.readouterr().out
    assert "written to my.json: 3 of 3 scenarios" in printed
    found = scenario_files.load("my.json")
    assert len(found) == 3
    shape = replace(BASE, periods=2, questions=3, changes_per_period=2)
    for scenario in found:
        valid(scenario, shape)
    assert set(server.faults) == set(FAULTS)
    hits = sum(server.hits.values())
    assert 0.2 < server.faults.total() / hits < 0.45
    bill = report()["bill"]
    # On a busy machine an attempt may also time out by itself, before the server has seen it.
    slow = bill["retries"]["calls"] - server.faults["hang"] - server.faults["server_error"]
    assert 0 <= sum(usage["calls"] for usage in bill.values()) - hits <= slow
    assert bill["generation"]["usd"] > 0
    faulty = Path("my.json").read_bytes()
    everything = [path.read_text("utf-8") for path in Path("my.json.calls").iterdir()]
    assert "CANARY" not in printed + "".join(everything) + faulty.decode()
    # Without a fault the same scenarios come out; and a rerun asks nothing.
    server.behaviour.faults = Faults()
    generate.main(job_settings(server))
    assert sum(server.hits.values()) == hits
    Path("my.json").unlink()
    generate.main(job_settings(server, out="other.json"))
    assert Path("other.json").read_bytes() == faulty


def test_fewer_than_n_end_with_status_1_and_none_write_no_file(
    server: GenerationServer, capsys: pytest.CaptureFixture[str]
) -> None:
    server.behaviour.faults = Faults(1.0, ("refused",), ())
    with pytest.raises(SystemExit) as caught:
        generate.main(job_settings(server, n=1, repairs=1))
    assert caught.value.code == 1
    printed = capsys.readouterr().out
    assert "questions: no reply of 2 could be used; the last: it was refused" in printed
    assert "nothing was written: 0 of 1 scenarios" in printed
    assert not Path("my.json").exists()
    assert report()["failed"][0]["step"] == "questions"


def test_a_spent_budget_stops_and_more_continues(server: GenerationServer) -> None:
    given = job_settings(server, n=2)
    with pytest.raises(SystemExit) as caught:
        generate.main({**given, "backend": {**given["backend"], "budget_tokens": 3000}})
    assert caught.value.code == 1
    assert "budget_tokens=3000" in report()["stopped"]
    hits = sum(server.hits.values())
    generate.main(given)
    assert report()["stopped"] is None
    assert sum(u["calls"] for u in report()["bill"].values()) >= sum(server.hits.values()) > hits


def test_an_audit_with_a_judge_shows_its_figures_and_asks_once(
    server: GenerationServer, capsys: pytest.CaptureFixture[str]
) -> None:
    backend = job_settings(server)["backend"]
    given = settings(audit="train:1", judge_sample=5, judge_backend=backend, out="ratings.jsonl")
    generate.main(given)
    printed = capsys.readouterr().out
    assert "exposure, rated by the judge" in printed
    assert "5 rated, 0 not; v1.base as rated by people" in printed
    hits = sum(server.hits.values())
    assert hits == 15
    generate.main(given)
    assert sum(server.hits.values()) == hits


@pytest.mark.parametrize(
    ("wrong", "expected"),
    [
        ({"backend": {"name": "litellm", "model": ""}}, "backend.model: expected a litellm model"),
        ({"personas": "none.csv"}, "found none at 'none.csv'"),
        ({"changes_per_period": 9}, "9 changes a period are more than the 3 questions x 2"),
        ({"n": 601}, "n=601 scenarios, each of its own persona, are more than the 600"),
        ({"spare_questions": -1}, "spare_questions: expected at least 0, found -1"),
        ({"language": " "}, "language: expected the name of a language"),
        ({"source": "library"}, "backend.model: expected source=model with it"),
        ({"backend": {"name": "simulated"}}, "backend.name"),
    ],
    ids=["model", "file", "changes", "people", "spare", "language", "library", "simulated"],
)
def test_wrong_settings_are_refused_before_anything_is_asked(
    server: GenerationServer, wrong: dict[str, Any], expected: str
) -> None:
    with pytest.raises(ConfigError) as caught:
        generate.main(job_settings(server, **wrong))
    assert expected in str(caught.value)
    assert not list(Path().iterdir())
    assert not server.hits


def test_a_dry_run_shows_an_estimate_and_asks_nothing(
    server: GenerationServer, capsys: pytest.CaptureFixture[str]
) -> None:
    generate.main(job_settings(server, dry_run=True))
    printed = capsys.readouterr().out
    assert printed.startswith("estimate for 3 scenarios, rehearsed offline")
    assert "dollars" in printed.splitlines()[-1]
    assert not server.hits
    assert not list(Path().iterdir())


@pytest.mark.evidence
def test_twenty_base_scenarios_come_out_of_a_server_that_fails_a_third_of_its_calls(
    server: GenerationServer,
) -> None:
    server.behaviour.faults = Faults(1 / 3, FAULTS)
    shape = {"periods": None, "questions": None, "changes_per_period": None}
    generate.main(job_settings(server, n=20, workers=20, **shape))
    found = scenario_files.load("my.json")
    assert len(found) == 20
    for scenario in found:
        valid(scenario, BASE)
    bill = report()["bill"]
    slow = bill["retries"]["calls"] - server.faults["hang"] - server.faults["server_error"]
    assert 0 <= sum(usage["calls"] for usage in bill.values()) - sum(server.hits.values()) <= slow
