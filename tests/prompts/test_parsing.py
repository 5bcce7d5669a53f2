"""Reading what a model wrote. Family 1 of the field's cases, by id."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from amemgym_env.errors import ParseError
from amemgym_env.prompts.memory import DictionaryUpdate, FactExtraction
from amemgym_env.prompts.parsing import read_choice, read_object, read_values
from amemgym_env.text import storable

FENCE = "```"
EXPLAINED = "Explanation: option 4 looked close."

READABLE = {
    "b01_01-prose": ('Sure, as you are now:\n{"answer": 3}\nHope this helps!', 3),
    "b01_01-fence": (f'Here it is:\n{FENCE}json\n{{"answer": 3}}\n{FENCE}', 3),
    **{
        f"b01_02-{name}": (f'{FENCE}{name}{end}{{"answer": 2}}{end}{FENCE}{end}{EXPLAINED}', 2)
        for name, end in [
            ("json", "\n"),
            ("JSON", "\n"),
            ("json5", "\n"),
            ("", "\n"),
            ("json", "\r\n"),
        ]
    },
    "b01_02-open": (f'{FENCE}json\n{{"answer": 2}}', 2),
    "b01_04-think": ('<think>maybe {"answer": 1}? no, 4</think>\n{"answer": 4}', 4),
    "b01_04-upper": ('<THINK>{"answer": 1}</THINK>{"answer": 4}', 4),
    "b01_04-two": ('<think>{</think><think>{"answer": 1}</think>{"answer": 4}', 4),
    "b01_09-text": ('{"answer": "2"}', 2),
    "b01_09-float": ('{"answer": 2.0}', 2),
    "b01_09-spaces": ('{"answer": " 2 "}', 2),
    "b01_09-option": ('{"answer": "Option 2"}', 2),
    "b01_09-list": ('{"answer": [2]}', 2),
    "b01_09-full-width": ('{"answer": "\uff12"}', 2),
    "b01_13-ten": ('{"answer": 10}', 10),
    "b01_13-twelve": ('{"answer": "12"}', 12),
    "b01_13-bare": ("10", 10),
}
UNREADABLE = {
    "b01_08-zero": '{"answer": 0}',
    "b01_08-minus-one": '{"answer": -1}',
    "b01_08-minus-three": '{"answer": -3}',
    "b01_09-true": '{"answer": true}',
    "b01_09-half": '{"answer": 2.5}',
    "b01_09-word": '{"answer": "two"}',
    "b01_10-none-of": "ANSWER: None of the above",
    "b01_10-dont-know": "Don't know",
    "b01_10-article": "A good question, but I lack data",
    "b01_13-beyond": '{"answer": 13}',
    "b01_16-cut": '{"answer": {"draft": {"answer": 2}, "fin',
    "b01_04-open-thought": '<think>{"answer": 1}',
    "other-key": '{"choice": 2}',
    "nan": '{"answer": NaN}',
    "empty": "  ",
}


@pytest.mark.parametrize(("text", "number"), READABLE.values(), ids=READABLE)
def test_an_answer_that_is_there_is_read(text: str, number: int) -> None:
    assert read_choice(text, 12) == number - 1


@pytest.mark.parametrize("text", UNREADABLE.values(), ids=UNREADABLE)
def test_nothing_is_guessed(text: str) -> None:
    with pytest.raises(ParseError):
        read_choice(text, 12)


def test_b01_03_backticks_in_a_value_stay() -> None:
    reply = (
        f'{FENCE}json\n{{"note_style": "wants {FENCE}python blocks{FENCE} in replies"}}\n{FENCE}'
    )
    assert read_object(reply) == {"note_style": f"wants {FENCE}python blocks{FENCE} in replies"}


@pytest.mark.parametrize("inside", ["", "nothing new"])
def test_b01_03_a_fence_without_json_is_no_empty_update(inside: str) -> None:
    with pytest.raises(ParseError):
        DictionaryUpdate((), ()).parse(f"{FENCE}json\n{inside}\n{FENCE}")


def test_b01_16_a_cut_update_stores_nothing() -> None:
    with pytest.raises(ParseError):
        DictionaryUpdate((), ()).parse('{"diet": "vegan", "employer": "Northw')
    with pytest.raises(ParseError):
        FactExtraction(()).parse('{"facts": ["likes tea", "works at Northw')


@pytest.mark.parametrize(
    ("reply", "expected"),
    [
        ({"Reading Format": "Paper "}, 0),
        ({"reading_format": ["paper"]}, 0),
        ({"reading_format": None}, None),
        ({"reading_format": ["paper", "ebook", "audio"]}, ParseError),
        ({"paper": "yes"}, ParseError),
        ({"reading_format": "scroll"}, ParseError),
    ],
    ids=["case", "list-of-one", "null", "list-of-all", "option-as-key", "unknown"],
)
def test_b01_17_values_of_a_state_query(reply: dict[str, Any], expected: Any) -> None:
    (read,) = read_values(reply, [("reading_format", ("paper", "ebook", "audio"))])
    assert isinstance(read, ParseError) if expected is ParseError else read == expected


@pytest.mark.parametrize("reply", ['["likes tea"]', '"none"', "3", '{"city": {"old": "a"}}'])
def test_b01_19_an_update_of_the_wrong_type_is_skipped(reply: str) -> None:
    with pytest.raises(ParseError):
        DictionaryUpdate((), ()).parse(reply)


def test_b01_19_null_forgets_and_nothing_is_nothing() -> None:
    assert DictionaryUpdate((), ()).parse("{}") == ()
    (change,) = DictionaryUpdate((), ()).parse('{"city": null}')
    assert (change.label, change.text) == ("city", None)


PROSE = st.text(st.characters(blacklist_characters='{}[]<>`"', blacklist_categories=["Cs"]))


@given(before=PROSE, after=PROSE, number=st.integers(1, 9), fenced=st.booleans())
def test_any_prose_around_an_answer_is_ignored(
    before: str, after: str, number: int, fenced: bool
) -> None:
    answer = json.dumps({"answer": number})
    inside = f"{FENCE}json\n{answer}\n{FENCE}" if fenced else answer
    assert read_choice(f"{before}\n{inside}\n{after}", 9) == number - 1


@given(st.text())
def test_any_text_is_read_or_refused(text: str) -> None:
    try:
        found = read_choice(text, 4)
    except ParseError:
        return
    assert 0 <= found < 4


@given(st.text(st.characters()))
def test_cleaned_text_can_be_stored(text: str) -> None:
    storable(text + "\ud83d").encode("utf-8")
    assert storable("\ud83c\udf78") == "\U0001f378"
