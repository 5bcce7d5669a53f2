"""Reading what a model wrote: one reader for every answer in JSON, used by every path.

Lenient about form (prose around it, fences, thoughts, numbers as text), never about content: what
cannot be read with certainty raises ParseError and is recorded as the model's answer.

Rules, each documented once:
- Thoughts (`<think>...</think>`, any case) are not searched. An unclosed thought has no answer; one
  that only ends began in the prompt, so all in front of its end is thought.
- The answer is the last complete JSON object in the text; text around it is ignored.
- A choice is a whole number from 1: `2`, `2.0`, `"2"`, `" 2 "`, `"Option 2"`, full-width digits and
  a list of exactly one of these. Not booleans, words, letters, 2.5, 0 or anything out of range.
- A reply that is a bare number counts as that choice.
- Names and values are compared without case, outer space, and with `_`, `-` and spaces alike.
"""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Iterator, Sequence
from typing import Any

from amemgym_env.errors import ParseError

_THOUGHT = re.compile(r"<(think|thinking|reasoning)>.*?(</\1>|\Z)", re.DOTALL | re.IGNORECASE)
_UNOPENED = re.compile(r"\A.*</(think|thinking|reasoning)>", re.DOTALL | re.IGNORECASE)
_LABELLED = re.compile(
    r"(?:(?:option|choice|answer|number)\s*)?[#(]?\s*(\d{1,6})(?:\.0*)?\s*[.)]?", re.I
)
_DECODER = json.JSONDecoder(parse_constant=lambda name: None)


def without_thoughts(text: str) -> str:
    """Return the text without the parts in which the model thinks aloud."""
    return _UNOPENED.sub("", _THOUGHT.sub("", text))


def read_object(text: str) -> dict[str, Any]:
    """Return the last complete JSON object in a reply.

    Raises:
        ParseError: the reply is empty, or holds no complete JSON object.
    """
    spoken = without_thoughts(text)
    if not spoken.strip():
        raise ParseError("expected a JSON object, found an empty reply", "empty")
    found: dict[str, Any] | None = None
    for value in _values(spoken):
        if isinstance(value, dict):
            found = value
    if found is None:
        raise ParseError(f"expected a JSON object, found {_shortened(spoken)!r}")
    return found


def read_choice(text: str, count: int) -> int:
    """Return the index (from 0) of the choice that a reply to an exam question names.

    Raises:
        ParseError: no choice of 1..count can be read.
    """
    spoken = without_thoughts(text).strip()
    if not spoken:
        raise ParseError("expected an answer, found an empty reply", "empty")
    number = _number(spoken)
    if number is None:
        answer = read_object(spoken)
        if "answer" not in answer:
            raise ParseError(f"expected the key 'answer', found {list(answer)}")
        number = _number(answer["answer"])
        if number is None:
            raise ParseError(f"expected a choice from 1 to {count}, found {answer['answer']!r}")
    if not 1 <= number <= count:
        raise ParseError(f"expected a choice from 1 to {count}, found {number}")
    return number - 1


def read_values(
    answer: dict[str, Any], variables: Sequence[tuple[str, Sequence[str]]]
) -> tuple[int | ParseError | None, ...]:
    """Return for each variable the index of the value named in a reply to a state query.

    None where the reply says null (not known). A ParseError where the variable is missing, which
    says nothing of what is known, or where no single one of its values is named, which is no
    answer. A list of exactly one value is that value.
    """
    given = {normal(name): value for name, value in answer.items()}
    read: list[int | ParseError | None] = []
    for name, values in variables:
        if normal(name) not in given:
            read.append(ParseError(f"expected the key {name!r}, found {list(answer)}"))
            continue
        value = given[normal(name)]
        if isinstance(value, list) and len(value) == 1:
            value = value[0]
        if value is None:
            read.append(None)
            continue
        wanted = normal(value) if isinstance(value, str) else None
        matches = [index for index, known in enumerate(values) if normal(known) == wanted]
        if len(matches) == 1:
            read.append(matches[0])
        else:
            text = f"expected one of {list(values)} for {name!r}, found {value!r}"
            read.append(ParseError(text, "no_answer"))
    return tuple(read)


def normal(name: str) -> str:
    """Return a name or value in the form in which it is compared."""
    return re.sub(r"[\s_\-]+", " ", unicodedata.normalize("NFKC", name)).strip().casefold()


def _number(value: Any) -> int | None:
    """Return the whole number that a value names, if it names exactly one."""
    if isinstance(value, list) and len(value) == 1:
        value = value[0]
    if isinstance(value, bool):
        return None
    if isinstance(value, int):
        return value
    if isinstance(value, float):
        return int(value) if value.is_integer() else None
    if isinstance(value, str):
        match = _LABELLED.fullmatch(unicodedata.normalize("NFKC", value).strip())
        return int(match[1]) if match else None
    return None


def _values(text: str) -> Iterator[Any]:
    """Yield the top-level JSON objects and lists in a text, left to right."""
    position = 0
    while True:
        match = re.compile(r"[{\[]").search(text, position)
        if match is None:
            return
        try:
            value, position = _DECODER.raw_decode(text, match.start())
        except (ValueError, RecursionError):
            position = match.start() + 1
            if text[match.start()] == "{" and _cut_off(text, match.start()):
                return
            continue
        yield value


def _cut_off(text: str, start: int) -> bool:
    """Whether the object that begins at `start` runs to the end of the text without closing.

    Then whatever complete object stands inside it is a part of an unfinished answer, not one.
    """
    depth, quoted, escaped = 0, False, False
    for character in text[start:]:
        if escaped:
            escaped = False
        elif quoted:
            escaped, quoted = character == "\\", character != '"'
        elif character == '"':
            quoted = True
        elif character in "{[":
            depth += 1
        elif character in "}]":
            depth -= 1
            if depth == 0:
                return False
    return bool(re.match(r"\{\s*\"", text[start:]))


def _shortened(text: str, most: int = 120) -> str:
    flat = " ".join(text.split())
    return flat if len(flat) <= most else f"{flat[:most]}..."
