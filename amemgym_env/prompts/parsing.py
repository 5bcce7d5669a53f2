"""Replies of models: one reader of objects, verdicts, numbers and values, for every path.

Lenient about form (prose, fences, thoughts, markdown, numbers as text), never about content: what
cannot be read with certainty raises ParseError and is recorded as the model's answer.

Rules, each documented once:
- Thoughts (`<think>...</think>` and their like) are not searched. An unclosed thought has no answer;
  one that only ends began in the prompt, so all in front of its end is thought.
- An object is read by `objects`; text around it is ignored. An object that is cut off makes the
  reply unreadable.
- A number is whole: `2`, `2.0`, `"2"`, `" 2 "`, `"Option 2"`, `**2**`, full-width digits and a list
  of exactly one of these. Not booleans, words, 2.5 or anything out of range. An exam's choice may
  also be one letter.
- Verdicts have levels: a JSON object, then a box or final answer, a labelled value, a bare line. The
  last one holds if all agree, if its level is above all others, or if a correction introduces it;
  otherwise the reply is unreadable.
- Names and values are compared without case, outer space, and with `_`, `-` and spaces alike.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from amemgym_env.errors import ParseError
from amemgym_env.prompts.objects import Spoken, scan, without_thoughts

__all__ = [
    "normal",
    "number_of",
    "read_choice",
    "read_number",
    "read_object",
    "read_values",
    "without_thoughts",
]

_NUMBER = r"[#(\[]?\s*(?P<number>\d{1,6})(?:\.0{0,6})?(?![\d.]*\d)|(?P<letter>[A-Za-z])(?![\w'])"
_MARKS = r"[*_`$\"'\s(\[{]{0,12}"
_CLOSING = r"[*_`$\"'\s)\]}.]{0,12}"
_VALUE = rf"{_MARKS}(?:(?:option|choice|answer|number)\b[\s:#]{{0,4}})?{_MARKS}(?:{_NUMBER})"
_WHOLE = re.compile(rf"{_VALUE}{_CLOSING}", re.IGNORECASE)
_BOXED = re.compile(rf"\\(?:boxed|fbox)\s?\{{(?:\\text\s?\{{)?{_VALUE}{_CLOSING}\}}", re.IGNORECASE)
_LABEL = re.compile(
    r"(?P<final>\bfinal[ \t]+)?\b(?:(?:answer|choice)\b[ \t]*[*_]{0,3}[ \t]*[:=][*_]{0,3}"
    r"|(?:answer|choice|best (?:option|answer|choice))(?: for you)? (?:is|would be)[: \t])"
    rf"{_VALUE}[*_`$\"')\]}}]{{0,6}}\.?[*_`$\"')\]}}]{{0,6}}"
    r"(?![ \t]*,?[ \t]*(?:or|and|/|&))(?=[ \t]*(?:$|\n|[;:(\u2013\u2014]|, ?[a-z]|- |because|since"
    r"|as\b)|\.?[ \t]+(?-i:[A-Z]))",
    re.IGNORECASE | re.MULTILINE,
)
_DOUBT = re.compile(
    r"\b(if|whether|unless|suppose|not|n't|maybe|might|could|unsure|either|cannot|wrong"
    r"|incorrect)\b|n't\b",
    re.IGNORECASE,
)
_CORRECTION = re.compile(
    r"\b(wait|correction|corrected|actually|sorry|i meant|instead|on second thought|revised|rather"
    r"|let me (correct|revise|re))\b",
    re.IGNORECASE,
)
_LINE = 200
"""Characters of a line that may hold nothing but a value, at most."""
_VERDICTS = 1000
"""Verdicts that are compared, at most."""
_SEARCHED = 20_000
"""Characters at the end of a reply that are searched for labels and boxes."""


class Verdict(NamedTuple):
    """One value that a reply names as its answer."""

    place: int
    level: int
    """4 an object, 3 a box or final answer, 2 a label, 1 a bare line."""
    number: int | None
    """None: the object's value is no number."""
    shown: Any


def read_object(text: str, key: str | None = None) -> dict[str, Any]:
    """Return the last complete JSON object in a reply, with `key` the last one that has it.

    Raises:
        ParseError: the reply is empty, or holds no complete and readable JSON object.
    """
    spoken = scan(text)
    if spoken.cut:
        raise ParseError("expected a complete JSON object, found one that is cut off")
    having = [found for found in spoken.objects if found.value is None or key in found.value]
    found = (having if key is not None and having else list(spoken.objects))[-1:]
    if found and found[0].value is not None:
        return found[0].value
    if not found and not spoken.text.strip():
        raise ParseError("expected a JSON object, found an empty reply", "empty")
    raise ParseError(f"expected a JSON object, found {_shortened(text)!r}")


def read_choice(text: str, count: int) -> int:
    """Return the index (from 0) of the choice that a reply to an exam question names.

    Raises:
        ParseError: no choice of 1..count can be read.
    """
    return read_number(text, "answer", 1, count, letters=True) - 1


def read_number(text: str, key: str, low: int, high: int, *, letters: bool = False) -> int:
    """Return the whole number from low to high that a reply names under `key`, or alone.

    `letters`: a is 1, b is 2.

    Raises:
        ParseError: no such number can be read.
    """
    spoken = scan(text)
    if not spoken.objects and not spoken.text.strip() and not spoken.cut:
        raise ParseError("expected an answer, found an empty reply", "empty")
    wanted = f"expected a number from {low} to {high}"
    if spoken.cut:
        raise ParseError(f"{wanted}, found an object that is cut off")
    verdicts = sorted(_verdicts(spoken, key, letters))
    if len(verdicts) > _VERDICTS:
        raise ParseError(f"{wanted}, found {len(verdicts)}")
    if not verdicts:
        raise ParseError(f"{wanted} under {key!r}, found {_shortened(text)!r}")
    if max(one.level for one in verdicts) > 1:
        verdicts = [
            one for one in verdicts if one.level > 1
        ]  # a bare line beside a verdict is text
    last = verdicts[-1]
    others = [one for one in verdicts if one.number != last.number]
    corrected = others and _CORRECTION.search(text[others[-1].place : last.place][-400:])
    if others and not corrected and max(one.level for one in others) >= last.level:
        raise ParseError(f"{wanted}, found {others[-1].shown!r} and {last.shown!r}")
    if last.number is None or not low <= last.number <= high:
        raise ParseError(f"{wanted}, found {last.shown!r}")
    return last.number


def _verdicts(spoken: Spoken, key: str, letters: bool) -> Iterator[Verdict]:
    """Yield every value that a reply marks as its answer, in no order."""
    for found in spoken.objects:
        if found.value is None:
            yield Verdict(found.start, 4, None, "an unreadable object")
        else:
            named = [value for name, value in found.value.items() if normal(name) == normal(key)]
            if named:
                yield Verdict(found.start, 4, number_of(named[0], letters=letters), named[0])
    yield from _bare(spoken.text, letters)
    text = unicodedata.normalize("NFKC", spoken.text[-_SEARCHED:])
    before = len(spoken.text) - len(text)
    for match in _BOXED.finditer(text):
        yield Verdict(before + match.start(), 3, _named(match, letters), match[0])
    for match in _LABEL.finditer(text):
        sentence = re.split(r"[.!?\n]", text[max(0, match.start() - 200) : match.start()])[-1]
        if not _DOUBT.search(sentence):
            number = _named(match, letters)
            if number is not None:
                yield Verdict(before + match.start(), 3 if match["final"] else 2, number, match[0])


def _bare(text: str, letters: bool) -> Iterator[Verdict]:
    """Yield the first and the last line if it holds nothing but a value."""
    lines = [
        match for match in (_first_line(text), _last_line(text)) if match and len(match[1]) < _LINE
    ]
    for start, line in dict.fromkeys(lines):
        match = _WHOLE.fullmatch(unicodedata.normalize("NFKC", line))
        number = None if match is None else _named(match, letters)
        if match is None or number is None or (match["letter"] or "A").islower():
            continue
        first = not text[:start].strip()
        after = text[start + len(line) :]
        last = not after.strip()
        # An explanation may follow after a blank line; or the value ends the reply.
        explained = first and re.match(r"[ \t]*\r?\n[ \t]*\r?\n", after) is not None
        if (first and last) or (not match["letter"] and (explained or last)):
            yield Verdict(start, 1, number, line.strip())


def _first_line(text: str) -> tuple[int, str] | None:
    start = len(text) - len(text.lstrip())
    line = text[start : start + _LINE].split("\n", 1)[0]
    return (start, line) if line else None


def _last_line(text: str) -> tuple[int, str] | None:
    tail = text.rstrip()[-_LINE:]
    line = tail.rsplit("\n", 1)[-1]
    return (len(text.rstrip()) - len(line), line) if line else None


def _named(match: re.Match[str], letters: bool) -> int | None:
    if match["number"]:
        return int(match["number"])
    return ord(match["letter"].lower()) - ord("a") + 1 if letters else None


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


def number_of(value: Any, *, letters: bool = False) -> int | None:
    """Return the whole number that a value names, if it names exactly one."""
    if isinstance(value, list) and len(value) == 1:
        value = value[0]
    if isinstance(value, bool):
        return None
    if isinstance(value, int):
        return value
    if isinstance(value, float):
        return int(value) if value.is_integer() else None
    if isinstance(value, str) and len(value) < _LINE:
        match = _WHOLE.fullmatch(unicodedata.normalize("NFKC", value).strip())
        return None if match is None else _named(match, letters)
    return None


def _shortened(text: str, most: int = 120) -> str:
    flat = " ".join(text[: 4 * most].split())
    return flat if len(flat) <= most else f"{flat[:most]}..."
