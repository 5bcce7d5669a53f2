"""Names of scenario sets, the personas in them, and splits that share nothing."""

from __future__ import annotations

import json
import time
import tracemalloc
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from amemgym_env.errors import ConfigError
from amemgym_env.generation.offline.generator import Generator
from amemgym_env.generation.offline.personas import POOL_SIZES, personas
from amemgym_env.generation.sets import NAMES, is_test, scenarios
from amemgym_env.scenarios import files as scenario_files
from amemgym_env.scenarios import library as topics
from amemgym_env.scenarios.model import Scenario


def test_all_personas_come_before_any_comes_twice() -> None:
    generator = Generator("validation", 0)
    uuids = [item["user_profile"]["uuid"] for item in generator.items(150)]
    assert len(set(uuids)) == 150


def test_personas_are_plausible_and_have_the_benchmarks_fields() -> None:
    assert sum(POOL_SIZES.values()) >= 200
    for split in topics.SPLITS:
        pool = personas(split)
        assert len(pool) == POOL_SIZES[split]
        for persona in pool:
            profile = persona.profile
            lines = [f"{k}: {v}" for k, v in profile.items() if k not in ("uuid", "formatted_str")]
            assert profile["formatted_str"] == "\n".join(lines)
            assert list(profile) == [
                "uuid",
                "name",
                "age",
                "gender",
                "marital_status",
                "education_level",
                "occupation",
                "hobbies_and_interests",
                "skills_and_expertise",
                "complementary_info",
                "formatted_str",
            ]
            assert 18 <= persona.age <= 86
            assert len(persona.has & {"job", "study", "retired"}) <= 1
            assert ("retired" in persona.has) == (persona.age >= 67)
            assert persona.age >= 28 or "children" not in persona.has
            assert persona.age >= 24 or profile["education_level"] != "graduate"


def test_splits_share_no_persona() -> None:
    seen: dict[str, set[Any]] = {}
    for split in topics.SPLITS:
        pool = personas(split)
        seen[split] = {p.name for p in pool}
        assert len({p.profile["uuid"] for p in pool}) == len(pool)
        assert len({p.profile["formatted_str"] for p in pool}) == len(pool)
    for one, other in pairwise([*topics.SPLITS, topics.SPLITS[0]]):
        assert seen[one].isdisjoint(seen[other])
        for field in ("uuid", "complementary_info"):
            texts = {p.profile[field] for p in personas(one)}
            assert texts.isdisjoint(p.profile[field] for p in personas(other))


def test_generated_splits_share_no_topic_and_no_opener() -> None:
    found = {}
    for split in topics.SPLITS:
        items = list(Generator(split, 0).items(10))
        named = {qa["topic"] for item in items for qa in item["qas"]}
        openers = {s["query"] for i in items for p in i["periods"] for s in p["sessions"]}
        assert all(topics.split_of(name) == split for name in named)
        found[split] = named | openers
    for one, other in pairwise([*topics.SPLITS, topics.SPLITS[0]]):
        assert found[one].isdisjoint(found[other])


def test_named_sets_have_their_sizes_and_can_be_read_twice() -> None:
    base = scenarios("base")
    first = [scenario.id for scenario in base]
    assert first == [scenario.id for scenario in base]
    assert len(set(first)) == 20
    assert len({scenario.user_profile["uuid"] for scenario in base}) == 20
    assert [len(s.periods) for s in scenarios("extra", limit=1)] == [21]
    assert [s.id for s in scenarios("train:3:7")] == ["train-7-0", "train-7-1", "train-7-2"]
    assert [s.id for s in scenarios("train:9:7:extra", 1)] == ["train-7-extra-0"]
    assert len(list(scenarios("tiny"))) >= 1


def test_files_resolve_like_names(tmp_path: Path) -> None:
    made = list(scenarios("validation:2:1"))
    for name in ("set.json", "set.jsonl"):
        scenario_files.save(made, tmp_path / name)
        assert list(scenarios(tmp_path / name)) == made
        assert list(scenarios(str(tmp_path / name), limit=1)) == made[:1]


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("bass", "did you mean base?"),
        ("tran:500", "did you mean train?"),
        ("train:0", "found count '0'"),
        ("train:5:x", "found seed 'x'"),
        ("train:5:1:extr", "did you mean extra?"),
        ("train:5:1:base:2", "found 5 parts"),
        ("missing.json", "found nothing at 'missing.json'"),
        (".", "found the folder"),
    ],
)
def test_an_unknown_name_gets_one_clear_error(name: str, expected: str) -> None:
    with pytest.raises(ConfigError) as caught:
        scenarios(name)
    assert expected in str(caught.value)


def test_an_unknown_name_is_told_all_names() -> None:
    with pytest.raises(ConfigError, match=", ".join(NAMES)):
        scenarios("nothing_like_it")


def test_test_topics_are_known_for_training_to_refuse(tmp_path: Path) -> None:
    assert [is_test(name) for name in ("base", "extra", "test", "test:3:1")] == [True] * 4
    assert [is_test(name) for name in ("tiny", "train", "validation:2")] == [False] * 3
    mixed = [*scenarios("train:1"), *scenarios("base", 1)]
    scenario_files.save(mixed, tmp_path / "mixed.jsonl")
    scenario_files.save(mixed[:1], tmp_path / "clean.jsonl")
    assert is_test(tmp_path / "mixed.jsonl")
    assert not is_test(tmp_path / "clean.jsonl")


def test_base_is_made_in_less_than_a_second() -> None:
    list(scenarios("base", limit=1))  # topics and personas are read once
    started = time.process_time()
    made = list(scenarios("base"))
    assert time.process_time() - started < 1
    assert all(isinstance(scenario, Scenario) for scenario in made)


@pytest.mark.evidence
def test_ten_thousand_scenarios_stream_in_a_minute_with_flat_memory(tmp_path: Path) -> None:
    path = tmp_path / "many.jsonl"
    next(Generator("train", 1).scenarios(1))
    started = time.process_time()
    assert scenario_files.save(Generator("train", 1).scenarios(10_000), path) == 10_000
    assert time.process_time() - started < 60
    tracemalloc.start()
    count = sum(1 for _ in scenarios(path, limit=300))
    _, early = tracemalloc.get_traced_memory()
    count += sum(1 for _ in scenarios(path, limit=3000))
    _, late = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert count == 3300
    assert late < 2 * early
    with path.open(encoding="utf-8") as file:
        assert json.loads(file.readline())["id"] == "train-1-0"
