"""The audit: classifiers with known answers, planted leaks that it must find, and honest sets."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from amemgym_env.generation.audit.choice_leaks import choice_leak, choice_table
from amemgym_env.generation.audit.classifiers import auc, folds, held_out_scores
from amemgym_env.generation.audit.exposure_reader import THRESHOLD, Reader, library_reader
from amemgym_env.generation.audit.form_leaks import Played, form_leaks
from amemgym_env.generation.audit.report import Audit, Figure, audit
from amemgym_env.generation.audit.two_sample import halves, two_sample
from amemgym_env.generation.offline.generator import Generator
from amemgym_env.scenarios import files as scenario_files
from amemgym_env.scenarios import library as topics
from amemgym_env.scenarios.model import Scenario
from amemgym_env.scenarios.samples import exposures, utterances
from amemgym_env.scenarios.script import Script, build
from amemgym_env.seeding import below, uniform


@pytest.fixture(scope="module")
def items() -> list[dict[str, Any]]:
    return list(Generator("test", 11).items(40))


@pytest.fixture(scope="module")
def reader() -> Reader:
    return library_reader()


@pytest.fixture(scope="module")
def honest(items: list[dict[str, Any]]) -> Audit:
    return audit(scenario_files.parse(items))


def changed(
    items: list[dict[str, Any]], change: Callable[[dict[str, Any]], None]
) -> list[Scenario]:
    copies = [Scenario.model_validate(item).to_json() for item in items]
    for copy in copies:
        change(copy)
    return scenario_files.parse(copies)


def test_auc_has_its_known_values() -> None:
    truth = np.array([True, True, False, False])
    assert auc(np.array([4.0, 3, 2, 1]), truth) == 1
    assert auc(np.array([1.0, 2, 3, 4]), truth) == 0
    assert auc(np.array([4.0, 1, 3, 2]), truth) == 0.5
    assert auc(np.array([2.0, 2, 2, 2]), truth) == 0.5
    assert auc(np.array([3.0, 2, 2, 1]), truth) == 0.875
    assert np.isnan(auc(np.array([1.0, 2]), np.array([True, True])))


def test_folds_keep_groups_together() -> None:
    groups = [f"group {n // 3}" for n in range(300)]
    found = folds(groups)
    assert set(found) == {0, 1, 2, 3, 4}
    assert all(len(set(found[n : n + 3])) == 1 for n in range(0, 300, 3))


def test_a_held_out_classifier_finds_a_difference_and_invents_none() -> None:
    groups = [f"group {n}" for n in range(400)]
    truth = np.array([below(2, "truth", n) for n in range(400)], float)
    noise = np.array([[uniform("noise", n, c) for c in range(3)] for n in range(400)])
    told = noise + np.outer(truth, [0.0, 1.0, 0.0])
    assert auc(held_out_scores(told, truth, groups), truth == 1) > 0.95
    assert 0.4 < auc(held_out_scores(noise, truth, groups), truth == 1) < 0.6


def test_an_honest_set_is_within_all_limits_that_do_not_need_a_thousand(honest: Audit) -> None:
    outside = {figure.name for figure in honest.figures if not figure.within}
    assert {name for name in outside if "AUC" not in name and "chance" not in name} == set()
    assert honest.scenarios == 40
    assert not honest.foreign
    assert honest.figure("choices a question").value == pytest.approx(4.41, rel=0.1)


def test_the_table_shows_every_figure_with_its_limits(honest: Audit) -> None:
    table = honest.table()
    assert all(figure.name in table for figure in honest.figures)
    assert "audit of 40 scenarios" in table
    assert Figure("x", 2.0, high=1.0).within is False
    assert Figure("x", float("nan"), high=1.0).within is True
    with pytest.raises(KeyError):
        honest.figure("no such figure")


def most_lived(item: dict[str, Any], qa: dict[str, Any]) -> list[str]:
    """Return the combination that holds in most periods."""
    lived = [tuple(p["state"][v] for v in qa["required_info"]) for p in item["periods"]]
    return list(Counter(lived).most_common(1)[0][0])


def test_right_choices_that_come_first_are_found(items: list[dict[str, Any]]) -> None:
    def lived_first(item: dict[str, Any]) -> None:
        for qa in item["qas"]:
            best = most_lived(item, qa)
            qa["answer_choices"].sort(key=lambda choice: choice["state"] != best)

    plain = choice_leak(choice_table(scenario_files.parse(items)))
    leak = choice_leak(choice_table(changed(items, lived_first)))
    assert abs(plain.classifier - plain.chance) < 0.05  # 40 scenarios alone
    assert leak.classifier > leak.chance + 0.1
    assert leak.first > leak.chance + 0.1


def test_right_choices_that_are_longer_are_found(items: list[dict[str, Any]]) -> None:
    def lengthen(item: dict[str, Any]) -> None:
        for qa in item["qas"]:
            for choice in qa["answer_choices"]:
                if choice["state"] == most_lived(item, qa):
                    choice["answer"] += " Begin with this today and look at it again in a week."

    leak = choice_leak(choice_table(changed(items, lengthen)))
    assert leak.classifier > leak.chance + 0.1
    assert leak.longest > leak.chance + 0.1


def test_choices_that_share_most_with_the_others_are_found(items: list[dict[str, Any]]) -> None:
    """All texts are of one length and made of words without meaning; one is the medoid."""

    def stand_out(item: dict[str, Any]) -> None:
        for qa in item["qas"]:
            count, best = len(qa["answer_choices"]), most_lived(item, qa)
            for number, choice in enumerate(qa["answer_choices"]):
                central = choice["state"] == best
                words = (f"zq{k % count if central else number}w{k:02d}" for k in range(40))
                choice["answer"] = " ".join(words) + "."

    leak = choice_leak(choice_table(changed(items, stand_out)))
    assert leak.classifier > leak.chance + 0.1


def test_a_form_that_tells_is_found_in_its_group_alone() -> None:
    rows = [
        Played(f"scenario {n // 20}", text(n % 2 == 0 and turn == 0, n), 1, 0.5, turn, n % 2 == 0)
        for n in range(400)
        for turn in (0, 1)
    ]
    found = form_leaks(rows)
    assert found["openers"] > 0.95
    assert 0.4 < found["follow-ups"] < 0.6
    assert np.isnan(found["initial openers"])


def text(long: bool, number: int) -> str:
    return " ".join(["word"] * (14 + below(6, "length", number) + 6 * long)) + "."


def test_the_reader_knows_giveaways_of_topics_it_has_not_seen(reader: Reader) -> None:
    given, quiet = [], []
    for topic in topics.topics("test"):
        exposures = [t for t, kind in utterances(topic) if kind == "exposure"]
        others = [t for t, kind in utterances(topic) if kind not in ("exposure", "joint")]
        given.extend(reader.scores(exposures, topic))
        quiet.extend(reader.scores(others, topic))
    assert np.mean(np.array(given) >= THRESHOLD) > 0.65
    assert np.mean(np.array(quiet) >= THRESHOLD) < 0.05


# Written for this test alone; the topics' exposures say such things in other words.
GIVEAWAYS = (
    "My own kitchen clock says six when I get in, and I have all evening to stand and cook.",
    "I live by myself at the moment and my pan holds just the one portion that I eat.",
    "We keep two cars on the drive and mine goes out every morning, so what do I check?",
    "My bedroom has a street lamp right outside, and I lie awake with the light on my face.",
)
QUIET = (
    "Thank you for that. Could you say a little more about the second point when you can?",
    "What would you tell somebody who hears about all this for the very first time?",
    "Suppose a person had a street lamp outside the bedroom. Would that be worth a thought?",
    "My cousin used to keep two cars on his drive and went out every morning back then.",
)


def test_the_reader_tells_hand_made_giveaways_from_quiet_texts(reader: Reader) -> None:
    def scored(texts: tuple[str, ...]) -> Any:
        return np.mean([reader.scores(texts, topic) for topic in topics.topics("validation")], 0)

    assert scored(GIVEAWAYS).min() > scored(QUIET).max()


def test_an_utterance_of_a_value_that_does_not_hold_is_found(
    items: list[dict[str, Any]],
) -> None:
    def stale(scenario: Scenario) -> Script:
        script = build(scenario, "none", 0)
        name, values = next(iter(scenario.state_schema.items()))
        topic = topics.topic(scenario.qas[0].topic or "")
        other = next(v for v in values if v != scenario.periods[2].state[name])
        text = exposures(topic, name, other)[0]
        conversation = script.periods[2][0]
        turns = (*conversation.utterances[:-1], conversation.utterances[-1]._replace(text=text))
        row = (replace(conversation, utterances=turns), *script.periods[2][1:])
        return replace(script, periods=(*script.periods[:2], row, *script.periods[3:]))

    found = audit(scenario_files.parse(items[:2]), script_of=stale)
    assert found.figure("utterances that contradict the state").value > 0


def test_openers_that_name_nothing_are_found(items: list[dict[str, Any]]) -> None:
    def silence(item: dict[str, Any]) -> None:
        for period in item["periods"]:
            for session in period["sessions"]:
                session["query"] = "What would you do?"

    found = audit(changed(items[:2], silence))
    assert found.figure("values named by their opener").value == 0
    assert not found.figure("words an opener").within


def test_the_two_sample_test_tells_one_word_messages_and_not_halves(
    items: list[dict[str, Any]],
) -> None:
    pytest.importorskip("sklearn")

    def shorten(item: dict[str, Any]) -> None:
        for period in item["periods"]:
            for session in period["sessions"]:
                session["query"] = " ".join(session["query"].split()[:8]) + "."

    scenarios = scenario_files.parse(items)
    assert two_sample(changed(items[:10], shorten), scenarios[10:20]).features > 0.99
    assert 0.35 < halves(scenarios).features < 0.65


def test_the_benchmarks_own_set_has_its_known_figures(real_data: Path) -> None:
    found = audit(scenario_files.load(real_data))
    assert found.figure("broken rules").value == 0
    assert found.figure("choices a question").value == pytest.approx(4.41, abs=0.005)
    assert found.figure("exposures a session").value == pytest.approx(1207 / 943)
    assert found.figure("changes a period").value == pytest.approx((192 * 4 + 8 * 5) / 200)
    assert found.figure("sessions a period").value == pytest.approx(943 / 220)
    assert found.figure("first choice above chance").value == pytest.approx(
        0.2568 - 0.2308, abs=1e-4
    )
    assert np.isnan(found.figure("utterances that contradict the state").value)
    # What is ours, or how people write, is no fault of the file; a leak of its choices is one.
    assert {figure.name for figure in found.figures if not figure.within} == {
        "choices-only classifier above chance",
        "first choice above chance",
    }
    assert found.figure("values named by their opener").value == pytest.approx(0.82, abs=0.01)
    assert found.figure("same variable more similar, AUC (terms)").value > 0.9
    assert found.foreign
    assert not found.offenders


@pytest.mark.evidence
@pytest.mark.parametrize("split", topics.SPLITS)
def test_a_thousand_generated_scenarios_are_within_all_limits(split: topics.Split) -> None:
    found = audit(Generator(split, 2024).scenarios(1000))
    assert found.passed, found.table()
