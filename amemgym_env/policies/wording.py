"""Lexical features: counts of closed word classes in a message.

Minimal pairs of an exposure concern another person, a hypothesis, an abandoned plan or a past
habit; they differ in person, mood and tense. The word lists hold function words and common verbs,
no topic words. The time line of a message is not counted.
"""

from __future__ import annotations

import re
from functools import lru_cache

import numpy as np
import numpy.typing as npt

_TIME_LINE = re.compile(r"\A\[Current time: [^\]\n]*\]\n")
_TOKEN = re.compile(r"[a-z]+(?:'[a-z]+)?|\d+")
_SENTENCE = re.compile(r"[^.!?\n]+[.!?]*")


def _set(text: str) -> frozenset[str]:
    return frozenset(text.split())


_OTHER_PERSONS = _set(
    """neighbour neighbours neighbor neighbors friend friends colleague colleagues coworker
    sister brother sisters brothers cousin cousins aunt uncle niece nephew mother father mum mom
    dad parents son daughter grandson granddaughter grandmother grandfather grandma grandpa gran
    husband wife partner flatmate roommate housemate boss manager tenant landlord landlady
    stepson stepdaughter stepfather stepmother sister's brother's friend's cousin's aunt's
    uncle's neighbour's colleague's mother's father's daughter's son's boss's tenant's client
    clients customer customers pupil student students classmate acquaintance godmother
    godfather goddaughter godson fiance girlfriend boyfriend someone somebody anyone people
    couple trainee apprentice intern teammate in-law teacher"""
)
_CLASSES: dict[str, frozenset[str]] = {
    "first_subject": _set("i i'm i've i'd i'll we we're we've we'd we'll"),
    "first_object": _set("me us myself ourselves"),
    "first_possessive": _set("my our mine ours"),
    "second_person": _set("you your yours you're you've you'd you'll yourself"),
    "third_person": _set(
        "he she they him her them his hers their theirs himself herself themselves he's she's "
        "they're he'd she'd they'd they've he'll she'll they'll"
    ),
    "condition": _set(
        "if suppose supposing supposed imagine imagining say hypothetically whether assuming "
        "assume unless wish picture pretend case"
    ),
    "modal": _set(
        "would could might should i'd we'd you'd he'd she'd they'd wouldn't couldn't may"
    ),
    "past_auxiliary": _set("was were had did been wasn't weren't hadn't didn't being"),
    "plan": _set(
        """nearly almost planned plan plans meant wanted hoped intended promised booked ordered
        reserved agreed signed applied offered arranged going about ready supposed thought
        considered tempted close offer deal"""
    ),
    "negation": _set(
        "not no never none nobody without neither nor hardly nothing don't doesn't isn't aren't "
        "can't cannot won't haven't hasn't"
    ),
    "present_verb": _set(
        """am is are has have do does i'm we're it's there's that's i've we've can keep keeps need
        needs live lives work works get gets go goes take takes come comes make makes stand stands
        sit sits lie lies hang hangs cost costs mean means eat eats drink drinks sleep sleeps walk
        walks drive drives run runs buy buys cook cooks leave leaves start starts stop stops read
        reads write writes use uses spend spends feel feels fill fills share shares hold holds know
        carry carries wake bring brings send sends see sees hear pay pays play plays stay stays
        visit visits own owns know knows begin begins let lets turn turns wear wears want wants
        don't doesn't isn't aren't can't"""
    ),
    "past_verb": _set(
        """kept got made took went came said thought found gave told left felt put brought began
        held stood ran sat ate drank slept drove wrote read spoke bought built cut sold sent spent
        met paid lay led grew knew saw heard wore woke rose fell hung rang shared stuck swam rode
        lent fed bent lit swept shut sang taught caught threw forgot broke chose flew drew won
        dealt dug hid hit hurt kept laid lost meant struck swore tore understood"""
    ),
    "anaphora": _set("that this it these those such same so there which"),
    "advice_noun": _set(
        """tip tips idea ideas advice step steps way ways thing things point points part parts list
        question questions answer suggestion suggestions help example mistake mistakes people
        reason reasons opinion topic word words habits rule rules basics"""
    ),
}
_PRESENT_SUBJECT = re.compile(
    r"\b(?:i|we) (?:am|are|have|do|can|only|still|now|always|never|usually|keep|"
    r"(?!would|could|might|should|was|were|had|did|used|nearly|almost|once|will|want|need|wonder|"
    r"like|think|guess|hope|wish|know|ask|see|[a-z]+ed\b)[a-z]+)\b"
)
_PAST_SUBJECT = re.compile(
    r"\b(?:i|we) (?:was|were|had|did|used|nearly|almost|once|[a-z]+ed|went|came|took|got|made|kept|"
    r"ate|drank|slept|drove|wrote|spent|bought|stood|sat|left|ran|knew|thought|meant|would|could|"
    r"might|should)\b"
)
_OWN_RELATION = re.compile(
    r"\b(?:my|our|a|an|the) (?:[a-z]+ ){0,2}(?:" + "|".join(sorted(_OTHER_PERSONS)) + r")\b"
)
_PAST_ENDING = re.compile(r"\b(?!need|feed|seed|speed|bed|red|shed|indeed|weed|freed)[a-z]{2,}ed\b")
_LEADING_PAST = re.compile(
    r"\A(?:in|at|as|when|before|back|years|during|for|until|while|on) (?:my|our|the|i|we|a|those|"
    r"that|former|first|old|in|ago|years|school|college)\b"
)

_PATTERNS: dict[str, re.Pattern[str]] = {
    "present_subject": _PRESENT_SUBJECT,
    "past_subject": _PAST_SUBJECT,
    "own_relation": _OWN_RELATION,
    "past_ending": _PAST_ENDING,
    "leading_past": _LEADING_PAST,
}

LIMIT = 8.0
"""No feature is larger, however long a message is."""

WORDING_NAMES: tuple[str, ...] = (
    "opening",
    "words",
    "sentences",
    "asks",
    "commas",
    "tense",
    *_CLASSES,
    *_PATTERNS,
)
"""Names of the columns of `wording`, in order."""


def without_time(shown: str) -> tuple[str, bool]:
    """Return a message as the user wrote it, and whether it stood under a time line."""
    plain = _TIME_LINE.sub("", shown, count=1)
    return plain, plain != shown


@lru_cache(maxsize=16384)
def wording(shown: str) -> npt.NDArray[np.float32]:
    """Return the wording of a message as shown, shape (len(WORDING_NAMES),), float32.

    `opening` and `asks` are 0 or 1, `tense` is in -1..1; `words` is the number of
    words over 32; all else are counts over 4, none above `LIMIT`. The array is read-only.
    """
    plain, opening = without_time(shown)
    text = plain.lower().replace("\N{RIGHT SINGLE QUOTATION MARK}", "'")
    tokens = _TOKEN.findall(text)
    counts = [sum(token in words for token in tokens) for words in _CLASSES.values()]
    counts += [len(pattern.findall(text)) for pattern in _PATTERNS.values()]
    by_name = dict(zip((*_CLASSES, *_PATTERNS), counts, strict=True))
    past = sum(by_name[name] for name in ("past_auxiliary", "past_verb", "past_ending", "modal"))
    present = by_name["present_verb"]
    row = [
        float(opening),
        len(tokens) / 32,
        len(_SENTENCE.findall(plain)) / 4,
        float(plain.rstrip().endswith("?")),
        plain.count(",") / 4,
        (present - past) / max(1, present + past),
        *(count / 4 for count in counts),
    ]
    array = np.minimum(np.array(row, dtype=np.float32), LIMIT)
    array.flags.writeable = False
    return array
