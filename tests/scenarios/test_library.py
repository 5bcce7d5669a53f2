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
from amemgym_env.scenarios import library as topics
from amemgym_env.scenarios.samples import exposures, stated, utterances

ALL = [topic for split in topics.SPLITS for topic in topics.topics(split)]


def words(number: int) -> str:
    return f"I am utterance number {number} of a small topic that a test made up."


def small_topic() -> dict[str, Any]:
    numbers = iter(range(1000))

    def some(count: int) -> list[str]:
        return [words(next(numbers)) for _ in range(count)]

    def value() -> dict[str, Any]:
        kinds = {"says": 4, "phrases": 2, "reasons": 3, "details": 3, "quiet": 4, "advice": 3}
        texts = {kind: some(count) for kind, count in kinds.items()}
        return {**texts, "events": ["{name} moved.", "{name} stayed."]}

    return {
        "id": "tea",
        "domain": "food",
        "fits": {},
        "questions": ["How?", "Why?"],
        "variables": {
            f"tea_{name}": {
                "requests": some(6),
                "oblique": some(3),
                "endings": some(4),
                "values": {name: value() for name in ("low", "mid", "high")},
            }
            for name in ("strength", "sugar")
        },
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


def test_sample_messages_come_with_their_kinds() -> None:
    counts = Counter(kind for _, kind in utterances(topics.topics("train")[0]))
    assert counts["exposure"] == 5 * sum(
        len(variable.values) for variable in topics.topics("train")[0].variables.values()
    )
    assert set(counts) == {"exposure", "joint", "minimal_pair", "question"}


def test_exposures_state_their_value_and_minimal_pairs_none() -> None:
    for topic in ALL[::7]:
        for name, variable in topic.variables.items():
            for value in variable.values:
                for text in exposures(topic, name, value):
                    assert stated(topic, text).get(name) == value, text
        for text, kind in utterances(topic):
            if kind in ("minimal_pair", "question"):
                assert stated(topic, text) == {}, text


def test_one_error_lists_all_offenders_of_all_files() -> None:
    first, second = small_topic(), small_topic()
    sugar = first["variables"]["tea_sugar"]
    sugar["requests"] = sugar["requests"][:3]
    first["variables"]["tea_strength"]["values"]["mid"]["says"] = [words(9999)]
    sugar["values"]["low"]["events"] = [
        "Nobody moved.",
        "{name} had {more}.",
    ]
    second["id"] = "coffee"
    second["surplus"] = 1
    with pytest.raises(InputError) as caught:
        topics.parse({"tea.json": json.dumps(first), "coffee.json": json.dumps(second)}, "here")
    lines = str(caught.value).splitlines()
    assert lines[0] == "topic files of 'here': 5 problems"
    assert len(lines) == 6
    for expected in (
        "tea.json, variables.tea_sugar.requests: expected at least 6, found 3",
        "mid.says: expected at least 4, found 1",
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
        (
            lambda d: d["variables"]["tea_sugar"]["values"].pop("high"),
            "expected 3 or 4 values, found 2",
        ),
        (lambda d: d["variables"]["tea_sugar"]["requests"].append(words(0)), "found twice"),
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


def test_most_statements_name_their_value() -> None:
    named = [
        not set(terms(text)).isdisjoint(terms(value.replace("_", " ")))
        for topic in ALL
        for variable in topic.variables.values()
        for value, material in variable.values.items()
        for text in material.says
    ]
    assert 0.65 < np.mean(named) < 0.95


def test_splits_share_no_text_and_no_near_duplicate() -> None:
    """Two texts are near duplicates when they share most of their words."""
    texts: list[str] = []
    splits: list[int] = []
    for number, split in enumerate(topics.SPLITS):
        for topic in topics.topics(split):
            own = [*topics.phrases(topic), *topic.questions]
            for variable in topic.variables.values():
                for value in variable.values.values():
                    own.extend(value.advice)
            own = [text for text in own if len(text.split()) >= 11]
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
