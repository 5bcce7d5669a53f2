"""Composition of user messages from the phrases of the topic library.

A message names or implies values of variables, gives a reason or a detail, and asks for advice. Its
parts are phrases of a topic file; this module joins them. In period 0 a message is mostly one
sentence, later mostly two. A quiet message has the same forms with a minimal pair in place of the
statement, or none at all.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from amemgym_env.scenarios.goals import GOALS, TRIMS
from amemgym_env.scenarios.library import Topic
from amemgym_env.scenarios.random_stream import Draws, Weighted
from amemgym_env.scenarios.requests import reworded

Pairs = Sequence[tuple[str, str]]
"""(variable, value) pairs."""

OBLIQUE = 0.2
"""Share of requests that do not name the topic."""
PARTNER = 0.25
"""Share of requests from the side of another variable of the topic."""

TRIMMED = 0.15
"""Share of requests with a generic end."""

_OFFERED = 3
"""Generic phrases of a kind for the draws of one message."""

_ASKED = 2
"""Requests of a variable for the draws of one message."""

_I_WORDS = ("I", "I'm", "I've", "I'd", "I'll")

INITIAL: tuple[tuple[str, float], ...] = (
    ("{Ask} {tail}?", 8.0),
    ("{Ask} now that {says}?", 1.2),
    ("{Ask} when {says}?", 2.0),
    ("{Ask} if {says}?", 1.5),
    ("{Ask}, given that {says}?", 0.7),
    ("{Ask}, since {says}?", 0.7),
    ("{Ask}, considering {says}?", 0.5),
    ("If {says}, {ask}?", 0.5),
    ("Since {says}, {ask}?", 0.3),
    ("{Says}, so {ask}?", 0.3),
    ("{Says}. {Ask}?", 0.5),
    ("{Ask}? {Says}.", 0.4),
)
"""Forms of period 0, with their weights."""

JOINT_INITIAL: tuple[tuple[str, float], ...] = (
    ("{Ask} {tail}?", 9.0),
    ("{Ask} now that {says}?", 0.3),
    ("{Ask} when {says}?", 0.6),
    ("{Ask} if {says}?", 0.6),
)
"""Forms of period 0 for two values."""

LATER: tuple[tuple[str, float], ...] = (
    ("{Ask} {tail}?", 0.18),
    ("{Ask}? {Says}.", 0.36),
    ("{Says}. {Ask}?", 0.3),
    ("{Ask} now that {says}?", 0.18),
    ("{Ask} now that {says} and {reason}?", 0.6),
    ("{Ask} {tail}, especially since {reason}?", 1.0),
    ("{Ask}? {Says}, and {goal}.", 0.9),
    ("{Ask}? {Reason}, so {says}.", 1.2),
    ("{Ask}? {Reason}, and now {says}.", 1.2),
    ("{Ask}? Since {reason}, {says}.", 1.2),
    ("{Ask}? {Says} since {reason}, and {goal}.", 0.72),
    ("{Ask}? {Reason}, so {says} and {goal}.", 0.72),
    ("{Ask}? Now that {says}, {goal}.", 0.72),
    ("{Ask}? Since {says}, {goal}, especially because {reason}.", 0.48),
    ("{Ask} {tail}? {Reason}, and {goal}.", 0.72),
    ("{Ask} {tail}? {Says}, so {goal}.", 0.6),
    ("{Ask} {tail}? {Reason}, so {says}, and {goal}.", 0.72),
    ("{Ask} {tail}? {Detail}", 0.5),
    ("{Ask} {tail}? Now that {says}, {detail}", 0.8),
    ("{Ask} now that {says}? {Reason}, and {detail}", 0.8),
    ("{Ask} now that {says}? {Goal}.", 0.36),
    ("{Ask}? {Says}, and {ending}", 0.5),
    ("{Ask}? {Says}—{detail}", 0.6),
    ("{Ask}? {Says}, and {detail}", 0.6),
    ("{Ask}? {Reason}, so {says}. {Detail}", 0.6),
    ("{Ask} {tail}? {Reason}, so {says}. {Goal}, and {detail}", 0.3),
    ("Since {reason}, {says}. {Ask}?", 1.0),
    ("Since {reason}, {says}. {Ask} {tail}?", 1.0),
    ("{Reason}, so {says}. {Ask}?", 1.2),
    ("{Reason}, and now {says}. {Ask} {tail}?", 1.2),
    ("{Reason}, so {says} and {goal}. {Ask}?", 0.72),
    ("{Says} since {reason}, and {goal}. {Ask}?", 0.6),
    ("{Says}, and {goal}. {Ask}?", 0.72),
    ("Now that {says}, {goal}. {Ask}, especially since {reason}?", 0.48),
    ("{Says}—{detail} {Ask}?", 0.5),
    ("{Says}. {Detail} {Ask} {tail}?", 0.8),
    ("{Reason}, so {says}, and {ending} {Ask}?", 0.7),
    ("{Reason}, and now {says}, so {goal}. {Ask} {tail}, and {other}?", 0.36),
    ("{Says}. {Ask}? {Goal}.", 0.24),
)
"""Forms of later periods, with their weights."""


_INITIAL, _JOINT_INITIAL, _LATER = map(Weighted, (INITIAL, JOINT_INITIAL, LATER))


class Generic(NamedTuple):
    """The generic phrases among which the draws of one message choose."""

    goals: Sequence[str]
    trims: Sequence[str]
    turn: float
    """Which of a variable's requests are offered, as a number in [0, 1)."""


def generic(draws: Draws) -> Generic:
    """Return a few generic phrases, so that no choice among draws can wear one of them out."""
    return Generic(
        [draws.pick(GOALS) for _ in range(_OFFERED)],
        [draws.pick(TRIMS) for _ in range(_OFFERED)],
        draws.uniform(),
    )


class Parts(NamedTuple):
    """The phrases of one message, each in lower case where it may stand inside a sentence."""

    ask: str
    other: str = ""
    tail: str = ""
    says: str = ""
    reason: str = ""
    detail: str = ""
    ending: str = ""
    goal: str = ""

    def joined(self, form: str) -> str:
        """Return the message of a form; a capitalised slot begins a sentence."""
        slots = self._asdict()
        slots |= {name.capitalize(): capitalised(text) for name, text in slots.items()}
        return form.format(**slots)


def statement(about: Topic, pairs: Pairs, draws: Draws, offered: Generic, *, initial: bool) -> str:
    """Return a message that exposes one or two values of a topic."""
    values = [about.variables[name].values[value] for name, value in pairs]
    lead = draws.below(len(pairs))
    material = values[lead]
    says, tail = draws.pick(material.says), draws.pick(material.phrases)
    if len(values) == 2:
        other = values[1 - lead]
        short = initial or draws.chance(0.4)
        says = (
            f"{says} and {draws.pick(other.says)}"
            if short
            else f"{says}, and {draws.pick(other.says)}"
        )
        tail = f"{tail} and {draws.pick(other.phrases)}"
    variable = about.variables[pairs[lead][0]]
    parts = Parts(
        ask=_ask(about, pairs[draws.below(len(pairs))][0], draws, offered, initial=initial),
        other=draws.pick(variable.requests),
        says=says,
        tail=tail,
        reason=draws.pick(material.reasons),
        detail=lowered(draws.pick(material.details)),
        ending=lowered(draws.pick(variable.endings)),
        goal=draws.pick(offered.goals),
    )
    forms = _JOINT_INITIAL if initial and len(pairs) == 2 else _INITIAL if initial else _LATER
    return parts.joined(draws.of(forms))


def minimal_pair(
    about: Topic, name: str, value: str, draws: Draws, offered: Generic, *, initial: bool
) -> str:
    """Return a message with a value of somebody or somewhere else, which exposes none."""
    variable = about.variables[name]
    material = variable.values[value]
    says = draws.pick(material.quiet)
    others = [text for text in material.quiet if text != says]
    ending = lowered(draws.pick(variable.endings))
    parts = Parts(
        ask=_ask(about, name, draws, offered, initial=initial),
        other=draws.pick(variable.requests),
        says=says,
        tail=f"{draws.pick(('when', 'if', 'now that', 'considering that', 'seeing that'))} {says}",
        reason=draws.pick(others),
        detail=ending,
        ending=ending,
        goal=draws.pick(offered.goals),
    )
    return parts.joined(draws.of(_INITIAL if initial else _LATER))


def question_only(about: Topic, name: str, draws: Draws, offered: Generic, *, initial: bool) -> str:
    """Return a message about a variable that states no value: a follow-up or a neutral opener."""
    variable = about.variables[name]
    ask = _ask(about, name, draws, offered, initial=initial)
    return without_value(ask, variable.requests, variable.endings, draws, offered, initial=initial)


def without_value(
    ask: str,
    requests: Sequence[str],
    remarks: Sequence[str],
    draws: Draws,
    offered: Generic,
    *,
    initial: bool,
) -> str:
    """Return a message with remarks in the places of statement, reason and detail."""
    first, second, third = (lowered(text) for text in draws.sample(remarks, 3))
    parts = Parts(
        ask=ask,
        other=draws.pick(requests),
        tail=f"and {draws.pick(requests)}" if draws.chance(0.5) else draws.pick(offered.trims),
        says=first.rstrip("."),
        reason=second.rstrip("."),
        detail=third,
        ending=third,
        goal=draws.pick(offered.goals),
    )
    return parts.joined(draws.of(_INITIAL if initial else _LATER))


def _ask(about: Topic, name: str, draws: Draws, offered: Generic, *, initial: bool) -> str:
    if draws.chance(PARTNER):
        name = draws.pick(tuple(about.variables))
    variable = about.variables[name]
    stock = variable.oblique if draws.chance(OBLIQUE) else variable.requests
    place = int(offered.turn * len(stock)) + draws.below(_ASKED)
    request = stock[place % len(stock)]
    text = reworded(request, draws, initial=initial)
    return f"{text} {draws.pick(offered.trims)}" if draws.chance(TRIMMED) else text


def capitalised(text: str) -> str:
    """Return the text with a capital first letter."""
    return text[:1].upper() + text[1:]


def lowered(sentence: str) -> str:
    """Return a sentence for use after a comma: in lower case unless it begins with a name."""
    first = sentence.split(" ", 1)[0]
    if first in _I_WORDS or first[1:] != first[1:].lower() or first not in _LOWERED:
        return sentence
    return sentence[:1].lower() + sentence[1:]


_BEGINNINGS = (
    "A About After All An And Another Any Apart As At Because Before Besides Between Both But By "
    "Each Eight Either Even Every Everybody Everyone Everything Few Five For Four From Half "
    "Hardly He Her His How If In Instead It It's Its Just Last Lately Less Like Many More Most "
    "Much My Neither Next Nine No Nobody None Nothing Now Of On Once One Only Or Other Others "
    "Our Over People Quite Seven Several She Since Six So Some Somebody Someone Something "
    "Sometimes Such Ten That That's The Their There There's These They They're Things This Those "
    "Though Three To Today Tomorrow Tonight Too Twelve Twenty Twice Two Under Until Up Usually "
    "We We'd We'll We're We've What Whatever When Whenever Where Which While With Without "
    "Yesterday You Your"
)
_LOWERED = frozenset(_BEGINNINGS.split())
"""Words that begin a sentence with a capital and are written small inside one."""
