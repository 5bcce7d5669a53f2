"""JSON objects in a model's reply, found in one pass; thoughts are left out.

Time is linear in the length of the text, and nesting is bounded. An object is read as strict JSON
first. Where that fails, Python literals, trailing commas and raw line breaks are read by one safe
path; nothing is guessed. NaN, infinities and paths with a single backslash are unreadable.
"""

from __future__ import annotations

import json
import math
import re
from typing import Any, NamedTuple

from amemgym_env.errors import ParseError

_NAMES = (
    "think|thinking|thought|thoughts|reason|reasoning|reflection|scratchpad|analysis"
    "|inner_monologue|chain_of_thought"
)
_TAG = (
    rf"<(?i:{_NAMES})>|</(?i:{_NAMES})>|<\|(?:begin|end)_of_thought\|>|\[(?i:think)\]"
    r"|\[/(?i:think)\]|◁think▷|◁/think▷|```"
)
_TAGS = re.compile(_TAG)
_TOP = re.compile(rf"{_TAG}|\{{(?=\s*+[\"'}}])")
"""Tags of thoughts, starts of objects, fences; each begins with a plain sign, so search is fast."""
_STRING = r'"(?:[^"\\]++|\\.)*+"'
_SINGLE = r"'(?:[^'\\]++|\\.)*+'"
_INSIDE = re.compile(
    rf"(?:{_STRING}|[,:]\s*+{_SINGLE}|[^\"{{}}\[\],:]++|[,:])*+", re.DOTALL
)  # up to the next bracket, or a string that does not end
_FIRST = re.compile(rf"\s*+{_SINGLE}", re.DOTALL)
_LOOSE = re.compile(rf"{_STRING}|{_SINGLE}|[A-Za-z_]\w*|,(?=\s*[}}\]])", re.DOTALL)
_DRIVE = re.compile(r"(?<![^\s\"'(])[A-Za-z]:\\[A-Za-z]")
_END = re.compile(r"(?:<\|[\w ]{1,40}\|>|</s>)\Z")

DEPTH = 50
"""Nesting of an object at most."""
MOST = 10_000
"""Brackets and tags of a reply at most; a longer one is no answer."""
_LONGEST = 200_000
"""Characters of an object that is read loosely, at most."""


class Found(NamedTuple):
    """A complete object: its value (None: unreadable) and where it stands."""

    value: dict[str, Any] | None
    start: int
    end: int


class Spoken(NamedTuple):
    """A reply without thoughts."""

    text: str
    """Thoughts and objects are blanked out, line by line; positions are the reply's."""
    objects: tuple[Found, ...]
    cut: bool
    """Whether an object at the end is incomplete."""


def scan(reply: str) -> Spoken:
    """Return the objects of a reply and the text around them.

    Raises:
        ParseError: more brackets and tags than an answer has.
    """
    kept: list[str] = []
    objects: list[Found] = []
    position = done = depth = steps = 0
    last_close = -1

    def blank(until: int) -> None:
        nonlocal done
        kept.append(" " * (until - done))
        done = until

    while (match := _TOP.search(reply, position)) is not None:
        steps += 1
        if steps > MOST:
            raise ParseError(f"expected an answer, found more than {MOST} brackets and tags")
        kind, start = _kind(match[0]), match.start()
        position = match.end()
        if kind == "open":
            if depth == 0:
                kept.append(reply[done:start])
                done, last_close = start, -1
            depth += 1
        elif kind == "close":
            if depth == 0:  # it began in the prompt: all before it is thought
                kept, objects = [], []
                done = 0
                blank(position)
            else:
                depth -= 1
                last_close = position
                if depth == 0:
                    blank(position)
        elif kind == "object" and depth == 0:
            end, used, deep = _end(reply, start, MOST - steps)
            steps += used
            if end is None:
                kept.append(reply[done:start])
                return Spoken("".join(kept), tuple(objects), True)
            kept.append(reply[done:start])
            done = start
            blank(end)
            value = None if deep else _value(reply[start:end])
            objects.append(Found(value, start, end))
            position = end
    if depth and last_close >= 0:  # an opening tag that was only mentioned in a thought
        rest = scan(reply[last_close:])
        objects += [
            Found(value, start + last_close, end + last_close) for value, start, end in rest.objects
        ]
        blank(last_close)
        return Spoken("".join(kept) + rest.text, tuple(objects), rest.cut)
    kept.append("" if depth else reply[done:])
    return Spoken(_ended("".join(kept)), tuple(objects), False)


def _kind(found: str) -> str:
    if found[0] in "{`":
        return "object" if found[0] == "{" else "code"
    return "close" if "/" in found or found.startswith("<|end") else "open"


def _end(reply: str, start: int, most: int) -> tuple[int | None, int, bool]:
    """Return where the object at `start` ends, the brackets seen, and whether it is too deep."""
    position, stack, steps, deep = start, "", 0, False
    while steps <= most:
        bracket = reply[position : position + 1]
        if bracket not in ("{", "[", "}", "]"):
            return None, steps, deep
        steps += 1
        position += 1
        if bracket in "{[":
            stack += bracket
            if len(stack) > DEPTH:
                return None, steps, True
            first = _FIRST.match(reply, position)
            position = position if first is None else first.end()
        elif stack[-1] != {"}": "{", "]": "["}[bracket]:
            return position, steps, True
        else:
            stack = stack[:-1]
            if not stack:
                return position, steps, deep
        inside = _INSIDE.match(reply, position)
        assert inside is not None
        position = inside.end()
    raise ParseError(f"expected an answer, found more than {MOST} brackets and tags")


def _value(source: str) -> dict[str, Any] | None:
    """Return the object that a source text holds, None where it is not readable."""
    if _DRIVE.search(source):
        return None
    for text in (source, None):
        if text is None and len(source) > _LONGEST:
            break
        try:
            value = json.loads(
                _strict(source) if text is None else text,
                parse_constant=_refuse,
                parse_float=_finite,
            )
            return value if isinstance(value, dict) else None
        except (ValueError, RecursionError):
            continue
    return None


def _refuse(name: str) -> Any:
    raise ValueError(f"{name} is no value")


def _finite(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        raise ValueError(f"{text} is beyond the numbers")
    return value


_WORDS = {"True": "true", "False": "false", "None": "null"}
_CONTROL = re.compile(r"[\x00-\x1f]")


def _strict(source: str) -> str:
    """Return a loosely written object as strict JSON, word by word."""
    return _LOOSE.sub(lambda match: _word(match[0]), source)


def _word(word: str) -> str:
    if word == ",":
        return ""
    if word[0] == "'":
        inside = re.sub(r"\\.|\"", _requoted, word[1:-1], flags=re.DOTALL)
        word = f'"{inside}"'
    if word[0] == '"':
        return _CONTROL.sub(lambda match: f"\\u{ord(match[0]):04x}", word)
    return _WORDS.get(word, word)


def _requoted(match: re.Match[str]) -> str:
    return {"\\'": "'", '"': '\\"'}.get(match[0], match[0])


def without_thoughts(text: str) -> str:
    """Return free text without the parts in which the model thinks aloud.

    A tag opens a thought at the start of a line only, and ends one that began in the prompt at the
    end of a line only; in a sentence or a code fence it is text.
    """
    if "<" not in text and "[" not in text and "◁" not in text:
        return text
    kept: list[str] = []
    done = depth = steps = 0
    code = False
    last_close = -1
    for match in _TAGS.finditer(text):
        kind = _kind(match[0])
        steps += 1
        if steps > MOST:
            break
        if kind == "code":
            code = not code if depth == 0 else code
        if kind == "code" or (code and depth == 0):
            continue
        if kind == "open":
            if depth == 0:
                line = max(text.rfind("\n", max(done, match.start() - 80), match.start()) + 1, done)
                if match.start() - line > 80 or text[line : match.start()].strip():
                    continue
                kept.append(text[done : match.start()])
                last_close = -1
            depth += 1
        elif depth:
            depth -= 1
            last_close = done = match.end()
        elif re.compile(r"[ \t]*(\r?\n|\Z)").match(text, match.end()):
            kept, done = [], match.end()
    if depth and last_close < 0:
        return _ended("".join(kept))
    return _ended("".join([*kept, text[done:]]))


def _ended(text: str) -> str:
    """Return a text without the special tokens that some servers leave at its end."""
    stripped = text[-1000:].rstrip()
    whole = len(stripped)
    while (match := _END.search(stripped[-48:])) is not None:
        stripped = stripped[: match.start() - len(stripped[-48:])].rstrip()
    return text if len(stripped) == whole else text[: len(text) - len(text[-1000:])] + stripped
