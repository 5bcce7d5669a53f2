"""Openings of requests: the same request in the words that people use most.

A library request is a question in the writer's own words. Its opening can be exchanged for another
one of the same grammar: a verb phrase ("how do I keep it up") fits "can you help me ...", a noun
phrase ("any ideas for ...") fits "what are some ...". Requests of other shapes keep their opening
or become indirect questions.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import NamedTuple

from amemgym_env.scenarios.random_stream import Draws, Weighted

Openings = tuple[tuple[str, float], ...]

_VERB = re.compile(
    r"^(?:how (?:do|can|could|should|might|would) (?:i|we|you)"
    r"|(?:could|can|would) you (?:help|show|teach) (?:me|us)(?: to| how to)?"
    r"|(?:could|can|would) you (?:tell|explain to) (?:me|us) how (?:to|i can|i could|we can)"
    r"|what(?:'s| is| would be) (?:the|a) (?:best|good|sensible|easiest|smartest|right) way"
    r" (?:to|of)"
    r"|(?:is|are) there (?:a|any) (?:good |simple |easy |sensible )?ways? (?:to|i can|i could)"
    r"|what (?:can|could|should) (?:i|we) do to|any ideas (?:on )?how (?:to|i can|i could))"
    r" (?!best\b|ever\b|know\b|think\b)(?P<rest>[a-z]+(?<!ing) .+)$"
    r"|^(?:could|can|would) you (?P<bare>(?:plan|sketch|draft|design|choose|pick|find|work out|sort"
    r"|put|write|outline|set up|make|build|draw|compare|map|organise|organize|list|prepare) .+)$",
    re.IGNORECASE,
)
_NOUN = re.compile(
    r"^(?:(?:can|could|would) you (?:suggest|recommend|give me|name|list|propose)"
    r"|do you (?:have|know(?: of)?)|are there|have you (?:got )?|any chance of)"
    r" (?:any |some |a few |me )?(?P<rest>(?!a |an |the |one |two |what |which |how |where "
    r"|something|somebody|someone|whether |me |good enough)[a-z].+)$"
    r"|^(?:any|some) (?P<bare>(?:ideas|tips|advice|suggestions|thoughts|tricks"
    r"|recommendations) .+)$",
    re.IGNORECASE,
)
_SINGULAR = re.compile(
    r"^(?:(?:can|could|would) you (?:suggest|recommend|think of|give me|name|propose)|is there"
    r"|do you have|do you know(?: of)?) "
    r"(?P<rest>(?:a|an|the|one|something|anything) (?!good way to|way to).+)$"
    r"|^what(?:'s| is| would be) (?P<bare>(?:a|the) .+)$",
    re.IGNORECASE,
)
_SUBJECT = re.compile(
    r"^(?:what|who|which .{3,40}?|what kind of .{3,40}?) (?:would|could|might|can|tends? to"
    r"|works?|makes?|helps?|gives?|suits?) "
    r"(?!(?:i|we|you|a|an|the|my|our|it|they|people|somebody|other)\b)[a-z]",
    re.IGNORECASE,
)
_INDIRECT = re.compile(
    r"^(?P<what>(?:which|what|how|where|when)\b.*?) (?P<verb>should|can|could|would) (?P<who>i|we) "
    r"(?P<rest>.+)$",
    re.IGNORECASE,
)

_VERB_OPENINGS: dict[bool, Openings] = {
    True: (
        ("how can I", 3.5), ("what are some {adjective} ways to", 4.0), ("how do I", 0.6),
        ("what are some ways to", 0.4), ("what are the most {adjective} ways to", 0.5),
        ("can you suggest {adjective} ways to", 0.8), ("can you help me", 1.5),
        ("what's the best way to", 0.5), ("what's a {adjective} way to", 1.0),
        ("could you suggest {adjective} ways to", 0.5), ("are there any {adjective} ways to", 0.7),
        ("can you recommend {adjective} ways to", 0.4), ("what should I do to", 0.3),
        ("what {adjective} strategies would help me", 0.4), ("what steps should I take to", 0.3),
    ),
    False: (
        ("can you help me", 6.0), ("could you help me", 2.0),
        ("can you suggest {adjective} ways to", 1.2),
        ("could you suggest {adjective} ways to", 1.0),
        ("can you suggest some {adjective} ways to", 0.8), ("can you suggest ways to", 0.3),
        ("what are some {adjective} ways to", 2.2), ("what are some ways to", 0.3),
        ("could you suggest some {adjective} ways to", 0.6), ("how can I", 0.5),
        ("can you recommend {adjective} ways to", 0.6), ("what's the best way to", 0.2),
        ("what {adjective} strategies would help me", 0.3), ("do you have tips to help me", 0.3),
        ("could you help me find {adjective} ways to", 0.3),
    ),
}  # fmt: skip
_NOUN_OPENINGS: dict[bool, Openings] = {
    True: (
        ("what are some", 3.5), ("what are some {quality}", 2.0), ("can you suggest", 1.3),
        ("can you suggest some", 0.6), ("can you suggest {quality}", 0.8), ("are there any", 1.2),
        ("can you recommend", 0.9), ("can you recommend some", 0.6), ("do you have any", 0.6),
        ("could you suggest", 0.4), ("could you recommend {quality}", 0.4),
    ),
    False: (
        ("can you suggest", 1.4), ("can you suggest some", 0.9), ("could you suggest", 0.9),
        ("could you suggest some", 0.8), ("can you recommend", 0.8),
        ("can you recommend some", 0.6), ("what are some", 1.5),
        ("what are some {quality}", 0.8), ("do you have any", 0.9),
        ("could you recommend", 0.5), ("could you recommend some", 0.4),
        ("can you suggest some {quality}", 0.6), ("could you suggest {quality}", 0.5),
        ("can you help me find {quality}", 0.6), ("can you help me find", 0.3),
        ("can you help me brainstorm", 0.5), ("could you share some", 0.3),
    ),
}  # fmt: skip
ADJECTIVES = (
    "good", "effective", "creative", "practical", "simple", "easy", "affordable", "realistic",
    "sensible", "enjoyable", "reliable", "low-effort", "fun", "smart", "helpful",
    "straightforward", "time-saving", "engaging", "different", "new", "better", "sustainable",
)  # fmt: skip
QUALITIES = (
    "good",
    "helpful",
    "practical",
    "useful",
    "new",
    "creative",
    "effective",
    "more",
    "different",
)
_SINGULAR_OPENINGS: Openings = (
    ("can you suggest", 2.0), ("can you recommend", 1.5), ("could you suggest", 1.5),
    ("could you recommend", 1.0), ("can you help me find", 1.0), ("could you help me find", 0.5),
    ("do you have", 0.5),
)  # fmt: skip
_INDIRECT_OPENINGS: Openings = (
    ("can you suggest", 1.8), ("could you suggest", 1.3), ("can you tell me", 1.0),
    ("can you recommend", 0.8), ("can you help me decide", 0.7), ("could you help me decide", 0.5),
    ("can you help me understand", 0.4), ("could you explain", 0.4), ("could you recommend", 0.5),
)  # fmt: skip
_VERBS = {initial: Weighted(rows) for initial, rows in _VERB_OPENINGS.items()}
_NOUNS = {initial: Weighted(rows) for initial, rows in _NOUN_OPENINGS.items()}
_SINGULARS, _INDIRECTS = Weighted(_SINGULAR_OPENINGS), Weighted(_INDIRECT_OPENINGS)
_KEPT = 0.12
"""Probability that a request keeps its own opening."""


class _Shape(NamedTuple):
    kind: str
    rest: str


@lru_cache(maxsize=16_384)
def _shape(request: str) -> _Shape:
    found = _VERB.match(request)
    if found:
        return _Shape("verb", found["rest"] or found["bare"])
    found = _NOUN.match(request)
    if found:
        rest: str = found["rest"] or found["bare"]
        mass = re.match(r"(?:[a-z-]+ )?(?:advice|help|guidance|inspiration|information)\b", rest)
        return _Shape("singular" if mass else "noun", f"some {rest}" if mass else rest)
    found = _SINGULAR.match(request)
    if found:
        rest = found["rest"] or found["bare"]
        return _Shape("singular", re.sub("^anything", "something", rest))
    if _SUBJECT.match(request):
        return _Shape("indirect", request)
    found = _INDIRECT.match(request)
    if found:
        who = "I" if found["who"].lower() == "i" else "we"
        what = found["what"][0].lower() + found["what"][1:]
        return _Shape("indirect", f"{what} {who} {found['verb'].lower()} {found['rest']}")
    return _Shape("other", request)


def reworded(request: str, draws: Draws, *, initial: bool) -> str:
    """Return the request with a drawn opening; `initial` for a message of period 0."""
    shape = _shape(request)
    if shape.kind == "other" or draws.chance(_KEPT):
        return request
    if shape.kind == "verb":
        openings = _VERBS[initial]
    elif shape.kind == "noun":
        openings = _NOUNS[initial]
    elif shape.kind == "singular":
        openings = _SINGULARS
    else:
        openings = _INDIRECTS
    opening = draws.of(openings).format(
        adjective=draws.pick(ADJECTIVES), quality=draws.pick(QUALITIES)
    )
    return f"{opening} {shape.rest}"
