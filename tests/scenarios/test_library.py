"""Topic files: what a good one is, what is refused, and that the library's are good."""

from __future__ import annotations

import json
import math
import re
from collections import Counter, defaultdict
from typing import Any

import numpy as np
import pytest

from amemgym_env.errors import ConfigError, InputError
from amemgym_env.memory.embedding import terms
from amemgym_env.scenarios import entropy_balancing as balance
from amemgym_env.scenarios import library as topics
from amemgym_env.scenarios.text_weights import form_weights

ALL = [topic for split in topics.SPLITS for topic in topics.topics(split)]


def words(number: int) -> str:
    return f"I am utterance number {number} of a small topic that a test made up."


def small_topic() -> dict[str, Any]:
    numbers = iter(range(1000))

    def some(count: int) -> list[str]:
        return [words(next(numbers)) for _ in range(count)]

    variables = {
        f"tea_{name}": {
            value: {
                "exposures": some(5),
                "events": ["{name} moved.", "{name} stayed."],
                "advice": some(2),
                "distractors": {kind: some(1) for kind in topics.DISTRACTOR_KINDS},
            }
            for value in ("low", "mid", "high")
        }
        for name in ("strength", "sugar")
    }
    values = ("low", "mid", "high")
    return {
        "id": "tea",
        "domain": "food",
        "fits": {},
        "variables": variables,
        "joint": {"tea_strength+tea_sugar": {f"{a}+{b}": some(1) for a in values for b in values}},
        "questions": ["How?", "Why?"],
        "openers": some(6),
        "follow_ups": some(6),
    }


def parsed(document: dict[str, Any]) -> topics.Topic:
    return topics.parse({"tea.json": json.dumps(document)})[0]


def test_a_topic_is_read_as_it_stands_in_its_file() -> None:
    document = small_topic()
    topic = parsed(document)
    assert topics.to_json(topic) == document
    assert topic.state_schema == {
        "tea_strength": ["low", "mid", "high"],
        "tea_sugar": ["low", "mid", "high"],
    }
    pair = topic.joint_utterances("tea_strength", "tea_sugar", ("low", "high"))
    assert list(pair) == document["joint"]["tea_strength+tea_sugar"]["low+high"]
    assert topic.joint_utterances("tea_sugar", "tea_strength", ("high", "low")) == ()


def test_utterances_come_with_their_kinds() -> None:
    counts = Counter(kind for _, kind in topics.utterances(parsed(small_topic())))
    assert counts == {
        "exposure": 30,
        "joint": 9,
        "opener": 6,
        "follow_up": 6,
        "other_person": 6,
        "hypothetical": 6,
        "fell_through": 6,
        "old_habit": 6,
    }


def test_one_error_lists_all_offenders_of_all_files() -> None:
    first, second = small_topic(), small_topic()
    first["openers"] = first["openers"][:3]
    del first["joint"]["tea_strength+tea_sugar"]["mid+mid"]
    first["variables"]["tea_sugar"]["low"]["events"] = ["Nobody moved.", "{name} had {more}."]
    second["id"] = "coffee"
    second["surplus"] = 1
    with pytest.raises(InputError) as caught:
        topics.parse({"tea.json": json.dumps(first), "coffee.json": json.dumps(second)}, "here")
    lines = str(caught.value).splitlines()
    assert lines[0] == "topic files of 'here': 5 problems"
    assert len(lines) == 6
    for expected in (
        "tea.json, openers: expected at least 6, found 3",
        "mid+mid: expected at least 1 utterance, found none",
        "found 'Nobody moved.'",
        "found '{name} had {more}.'",
        "coffee.json, surplus",
    ):
        assert any(expected in line for line in lines), expected


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (lambda d: d["variables"].pop("tea_sugar"), "variables: expected 2 or 3, found 1"),
        (lambda d: d.update(id="Tea"), "id: expected the file's name"),
        (lambda d: d["variables"]["tea_sugar"].pop("high"), "expected 3 or 4 values, found 2"),
        (lambda d: d["openers"].append(d["openers"][0]), "found twice"),
        (lambda d: d.update(questions=["One?"]), "questions: expected at least 2, found 1"),
        (lambda d: d["fits"].update(needs=["yacht"]), "fits.needs"),
    ],
    ids=["one variable", "id", "two values", "repeated", "one question", "unknown need"],
)
def test_a_broken_topic_is_refused(change: Any, expected: str) -> None:
    document = small_topic()
    change(document)
    with pytest.raises(InputError, match=expected.replace("(", r"\(")):
        parsed(document)


def test_fits_asks_for_age_and_needs() -> None:
    fits = topics.Fits(min_age=20, max_age=60, needs=("garden", "pet"))
    assert fits.suits(20, frozenset({"garden", "pet", "car"}))
    assert not fits.suits(19, frozenset({"garden", "pet"}))
    assert not fits.suits(61, frozenset({"garden", "pet"}))
    assert not fits.suits(40, frozenset({"garden"}))


def test_unknown_names_are_refused() -> None:
    with pytest.raises(ConfigError, match="split: expected one of train, validation, test"):
        topics.topics("dev")  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match="found 'no_such_topic'"):
        topics.topic("no_such_topic")


def test_the_library_is_as_large_as_agreed() -> None:
    sizes = {split: len(topics.topics(split)) for split in topics.SPLITS}
    assert sizes["train"] >= 60
    assert sizes["validation"] >= 20
    assert sizes["test"] >= 40
    for split in topics.SPLITS:
        open_to_all = [t for t in topics.topics(split) if t.fits == topics.Fits()]
        assert len(open_to_all) >= 15
        assert sum(len(t.variables) == 3 for t in open_to_all) >= 10


def test_ids_are_unique_and_lead_to_their_split() -> None:
    assert len({topic.id for topic in ALL}) == len(ALL)
    for split in topics.SPLITS:
        for topic in topics.topics(split):
            assert topics.split_of(topic.id) == split
            assert topics.topic(topic.id) is topic


def test_no_exposure_shares_a_stem_with_its_value() -> None:
    found = [
        (value, text)
        for topic in ALL
        for values in topic.variables.values()
        for value, material in values.items()
        for text in material.exposures
        if set(terms(text)) & set(terms(value.replace("_", " ")))
    ]
    assert found == []


def test_utterances_have_one_length_and_plain_punctuation() -> None:
    for topic in ALL:
        for text, _ in topics.utterances(topic):
            assert 14 <= len(text.split()) <= 32, text
            assert text[-1] in ".?", text
            assert not set(text) & set('!;:"0123456789'), text


def test_splits_share_no_text_and_no_near_duplicate() -> None:
    """Two texts are near duplicates when they share most of their words."""
    texts: list[str] = []
    splits: list[int] = []
    for number, split in enumerate(topics.SPLITS):
        for topic in topics.topics(split):
            own = [text for text, _ in topics.utterances(topic)] + list(topic.questions)
            for values in topic.variables.values():
                for value in values.values():
                    own.extend(value.advice)
            texts.extend(own)
            splits.extend([number] * len(own))
    assert near_duplicates(texts, splits) == []


def test_near_duplicates_are_found() -> None:
    planted = [
        "My allotment lies an hour away by tram and I get there on Sundays alone.",
        "My allotment lies an hour away by bus and I get there on Sundays alone.",
        "Our kettle holds two litres and the stove is slow on a cold morning.",
    ]
    assert near_duplicates(planted, [0, 1, 1]) == [(planted[0], planted[1])]
    assert near_duplicates(planted, [0, 0, 1]) == []


def near_duplicates(texts: list[str], splits: list[int]) -> list[tuple[str, str]]:
    """Return pairs of texts of different splits that share at least .7 of their words.

    Such a pair shares one of the rarest words of each, so only those need an index.
    """
    sets = [frozenset(re.findall(r"[\w']+", text.lower())) for text in texts]
    counts = Counter(word for found in sets for word in found)
    index: dict[str, list[int]] = defaultdict(list)
    pairs = []
    for row, found in enumerate(sets):
        ranked = sorted(found, key=lambda word: (counts[word], word))
        rare = ranked[: len(ranked) - math.ceil(0.7 * len(ranked)) + 1]
        near = {other for word in rare for other in index[word] if splits[other] != splits[row]}
        for other in sorted(near):
            if len(found & sets[other]) >= 0.7 * len(found | sets[other]):
                pairs.append((texts[other], texts[row]))
        for word in rare:
            index[word].append(row)
    return pairs


def test_weights_make_forms_alike() -> None:
    pool = [" ".join(["word"] * n) + end for n in range(10, 31) for end in (".", "?")]
    wanted = [" ".join(["word"] * n) + "?" for n in range(20, 31)] * 3
    found = balance.weights([pool], [1.0], wanted, [1.0] * len(wanted))
    drawn = [balance.order(pool, found, "draw", n)[0] for n in range(600)]
    assert np.mean([len(text.split()) for text in pool]) == 20
    assert np.mean([len(text.split()) for text in drawn]) == pytest.approx(25, abs=1)
    assert np.mean([text.endswith("?") for text in drawn]) > 0.75
    assert sorted(balance.order(pool, found, "all")) == sorted(pool)
    assert balance.order(pool, found, 1) == balance.order(pool, found, 1)
    assert min(found.values()) >= 1 / 16
    assert max(found.values()) <= 16


def test_neutral_texts_of_a_split_have_weights() -> None:
    topic = topics.topics("validation")[0]
    for initial in (True, False):
        found = form_weights(("validation",), initial=initial)
        assert all(text in found for text in (*topic.openers, *topic.follow_ups))


def test_distractors_of_period_0_have_weights_of_their_own() -> None:
    initial, later = (form_weights(("train",), initial=first) for first in (True, False))
    assert initial.keys() == later.keys()
    # Two values told at once are told with fewer questions and commas than one.
    for mark in ("?", ","):
        kinds = [(t, k) for topic in topics.topics("train") for t, k in topics.utterances(topic)]
        texts = [text for text, kind in kinds if kind in topics.DISTRACTOR_KINDS]
        means = [
            np.average([mark in text for text in texts], weights=[found[text] for text in texts])
            for found in (initial, later)
        ]
        assert means[0] < means[1]
