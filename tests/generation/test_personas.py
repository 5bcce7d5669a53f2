"""Personas from tables: columns of Nemotron-Personas, lists as text, errors that name the row."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import pytest

from amemgym_env.errors import ConfigError
from amemgym_env.generation.pipeline.personas import list_of_texts, people, person


def row(number: int, **given: Any) -> dict[str, Any]:
    return {
        "uuid": f"id-{number}",
        "persona": f"Wanda, {number}, keeps bees and mends clocks.",
        "professional_persona": "Wanda runs a workshop for clocks.",
        "hobbies_and_interests": "Wanda keeps bees.",
        "hobbies_and_interests_list": "['keeping bees', \"mending grandma's clocks\"]",
        "skills_and_expertise_list": "",
        "sex": "Female",
        "age": str(30 + number),
        "marital_status": "never_married",
        "education_level": "bachelors",
        "occupation": "clockmaker",
        **given,
    }


def table(path: str, rows: list[dict[str, Any]]) -> str:
    if path.endswith(".csv"):
        with Path(path).open("w", newline="", encoding="utf-8") as file:
            writer = csv.DictWriter(file, list(rows[0]))
            writer.writeheader()
            writer.writerows(rows)
    elif path.endswith(".jsonl"):
        Path(path).write_text("".join(json.dumps(item) + "\n" for item in rows), encoding="utf-8")
    else:
        pyarrow = pytest.importorskip("pyarrow")
        parquet = pytest.importorskip("pyarrow.parquet")
        parquet.write_table(pyarrow.Table.from_pylist(rows), path)
    return path


def test_a_row_becomes_a_profile_in_the_benchmarks_shape() -> None:
    found = person(row(1))
    assert found.id == "id-1"
    assert found.profile == {
        "uuid": "id-1",
        "name": "Wanda",
        "age": 31,
        "gender": "Female",
        "marital_status": "never_married",
        "education_level": "bachelors",
        "occupation": "clockmaker",
        "hobbies_and_interests": "keeping bees, mending grandma's clocks",
        "complementary_info": (
            "Wanda, 1, keeps bees and mends clocks. Wanda runs a workshop for clocks."
        ),
        "formatted_str": found.text,
    }
    assert found.text.startswith("name: Wanda\nage: 31\ngender: Female\n")


@pytest.mark.parametrize("path", ["people.csv", "people.jsonl", "people.parquet"])
def test_every_kind_of_file_gives_the_same_people(path: str) -> None:
    rows = [row(number) for number in range(7)]
    found = people(table(path, rows), "train", 4, 3)
    assert found == people(table("other.jsonl", rows), "train", 4, 3)
    assert len({one.id for one in found}) == 4
    assert people(path, "train", 2, 3) == found[:2]
    assert {one.id for one in people(path, "train", 7, 4)} == {f"id-{n}" for n in range(7)}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("['a', 'b']", ["a", "b"]),
        ('["a", "it\'s"]', ["a", "it's"]),
        ("['it\\'s', ' b  c ']", ["it's", "b c"]),
        ("", []),
        ("   ", []),
        ("[]", []),
        ("('a',)", ["a"]),
        (["a"], ["a"]),
    ],
    ids=["python", "json", "escaped", "empty", "blank", "none", "tuple", "list"],
)
def test_b04_09_lists_written_as_text_are_read(text: Any, expected: list[str]) -> None:
    assert list_of_texts(text, "hobbies_list") == expected


@pytest.mark.parametrize(
    "text",
    ["['a', ", "__import__('os').mkdir('canary')", "a, b", "{'a': 1}", "[1]", "[" * 5000, 7],
    ids=["torn", "code", "prose", "object", "numbers", "deep", "number"],
)
def test_b04_09_anything_else_is_refused_and_never_run(text: Any) -> None:
    with pytest.raises(ConfigError, match=r"hobbies_list: expected a list such as \['a', 'b'\]"):
        list_of_texts(text, "hobbies_list")
    assert not Path("canary").exists()


def test_malformed_rows_are_named_and_nothing_is_sampled() -> None:
    rows = [row(0), row(1, age="old"), row(2, hobbies_and_interests_list="[1, 2"), row(0)]
    with pytest.raises(ConfigError) as caught:
        people(table("people.csv", rows), "train", 1, 0)
    text = str(caught.value)
    assert "row 2, age: expected a whole number of years, found 'old'" in text
    assert "row 3, hobbies_and_interests_list: expected a list" in text
    assert "row 4, uuid: 'id-0' is that of row 1 too" in text


def test_too_few_people_are_refused_with_the_arithmetic() -> None:
    with pytest.raises(ConfigError, match=r"n=3 scenarios.* more than the 2 personas of people"):
        people(table("people.jsonl", [row(0), row(1)]), "train", 3, 0)
    with pytest.raises(ConfigError, match=r"n=700 .* more than the 600 personas of our pool"):
        people(None, "train", 700, 0)


@pytest.mark.parametrize(
    ("path", "content", "expected"),
    [
        ("none.csv", None, "found none at"),
        ("people.xlsx", b"x", r"expected a \.csv, \.jsonl, \.parquet file"),
        ("people.jsonl", b"{\n", "line 1"),
        ("people.jsonl", b"[1]\n", "line 1: expected an object"),
        ("people.csv", b"persona\n\xff\n", "expected UTF-8"),
        ("people.csv", b"uuid,age\nx,3\n", "row 1, expected text in one of persona"),
    ],
    ids=["missing", "ending", "torn", "list", "bytes", "columns"],
)
def test_files_that_cannot_be_used_are_refused(
    path: str, content: bytes | None, expected: str
) -> None:
    if content is not None:
        Path(path).write_bytes(content)
    with pytest.raises(ConfigError, match=expected):
        people(path, "train", 1, 0)


def test_our_pool_has_people_of_the_split_and_seed() -> None:
    found = people(None, "validation", 5, 1)
    assert found[:3] == people(None, "validation", 3, 1)
    assert found != people(None, "validation", 5, 2)
    assert all(one.id.startswith("validation-") and one.text for one in found)
