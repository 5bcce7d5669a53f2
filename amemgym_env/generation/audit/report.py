"""Audit of a scenario set: measured figures with limits, compared with `v1.base`.

An audit reads texts and states, not the labels of scripts. Limits hold for sets of 1,000
scenarios; a set of 20 may exceed them by chance.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from itertools import chain, islice
from typing import NamedTuple

import numpy as np

from amemgym_env.generation.audit.choice_leaks import ChoiceTable, choice_leak, choice_table, joined
from amemgym_env.generation.audit.exposure_classifier import ExposureClassifier, library_classifier
from amemgym_env.generation.audit.form_leaks import Played, form_leaks, played, scenario_topics
from amemgym_env.generation.audit.statistics import Counts, contradictions
from amemgym_env.scenarios.library import Topic
from amemgym_env.scenarios.model import Scenario
from amemgym_env.scenarios.script import Script, build

JUDGED = 1000
"""Scenarios of a set that are read by default."""

_OTHERS = 20
"""Scenarios whose openers are distractors in a set without a topic library."""

_V1_BASE = {
    "choices a question": 4.41,
    "exposures a session": 1.280,
    "changes a period": 4.04,
    "sessions a period": 4.286,
    "opener and right answer, similarity": 0.213,
    "choices-only classifier above chance": 0.028,
    "first choice above chance": 0.026,
    "longest choice above chance": 0.016,
}
"""Figures of `v1.base`, measured by this module."""

_NO_LIBRARY = "no library texts"

ScriptOf = Callable[[Scenario], Script]


class Figure(NamedTuple):
    """A measured figure; None means no limit, NaN means not measurable."""

    name: str
    value: float
    low: float | None = None
    high: float | None = None
    v1_base: float | None = None
    note: str = ""

    @property
    def within(self) -> bool:
        """Whether the value lies within its limits; NaN counts as within."""
        if math.isnan(self.value):
            return True
        low_enough = self.high is None or self.value <= self.high
        return low_enough and (self.low is None or self.value >= self.low)


class Audit(NamedTuple):
    """All figures of a set, with the offending texts."""

    scenarios: int
    figures: tuple[Figure, ...]
    offenders: dict[str, tuple[str, ...]]
    """Offending texts by figure."""
    foreign: bool = False
    """Whether scenarios lack a topic library; then form and names have no limits."""

    @property
    def passed(self) -> bool:
        """Whether all figures are within their limits."""
        return all(figure.within for figure in self.figures)

    def figure(self, name: str) -> Figure:
        """Return the figure with this name.

        Raises:
            KeyError: there is none.
        """
        found = next((figure for figure in self.figures if figure.name == name), None)
        if found is None:
            raise KeyError(name)
        return found

    def table(self) -> str:
        """Return the figures as a text table."""
        head = ("", "value", "limits", "v1.base", "")
        rows = [head, *(_row(figure) for figure in self.figures)]
        widths = [max(len(row[column]) for row in rows) for column in range(len(head))]
        lines = (
            "  ".join(
                cell.ljust(width) if column in (0, 4) else cell.rjust(width)
                for column, (cell, width) in enumerate(zip(row, widths, strict=True))
            ).rstrip()
            for row in rows
        )
        return "\n".join((f"audit of {self.scenarios} scenarios", *lines))


def audit(
    scenarios: Iterable[Scenario],
    script_of: ScriptOf | None = None,
    reader: ExposureClassifier | None = None,
    judged: int = JUDGED,
) -> Audit:
    """Return the audit of the first `judged` scenarios, which are read once.

    `script_of` makes the script whose utterances are judged (default: difficulty `default`,
    seed 0); `reader` classifies exposing texts (default: the one trained on the topic library).
    """
    stream = iter(scenarios)
    others = list(islice(stream, _OTHERS))
    make = script_of or (lambda scenario: build(scenario, "default", 0, others=others))
    counts, tables = Counts(), list[ChoiceTable]()
    utterances: list[Played] = []
    quiet: dict[str, dict[str, Topic]] = {"neutral": {}, "distractor": {}}
    contradicting: dict[str, None] = {}
    for scenario in islice(chain(others, stream), judged):
        counts.add(scenario)
        tables.append(choice_table([scenario]))
        spoken = list(played(scenario, make(scenario)))
        utterances.extend(spoken)
        for utterance in spoken:
            if contradictions(scenario, utterance.period, utterance.text):
                contradicting[utterance.text] = None
        for kind, text, topic in _quiet_texts(scenario, spoken):
            quiet[kind].setdefault(text, topic)
    flagged = {kind: _flagged(texts, reader) for kind, texts in quiet.items()}
    foreign = counts.of_library < counts.scenarios
    offenders = {
        "openers that share a stem with their value": (
            () if foreign else tuple(dict.fromkeys(counts.stems))
        ),
        "utterances that contradict the state": tuple(contradicting),
        **{f"{kind} texts classified as exposing": found for kind, found in flagged.items()},
    }
    figures = (
        *_validity(counts),
        *_choices(joined(tables)),
        *_forms(utterances, foreign),
        *_texts(counts, len(contradicting), foreign),
        *_exposing_texts(quiet, flagged),
        *_variety(counts),
        *_shape(counts),
    )
    named = {name: texts for name, texts in offenders.items() if texts}
    return Audit(counts.scenarios, figures, named, foreign)


def _validity(counts: Counts) -> Iterator[Figure]:
    yield Figure("broken rules", counts.problems, high=0, v1_base=0)
    yield Figure("lints", counts.lints, high=0, v1_base=0)


def _choices(table: ChoiceTable) -> Iterator[Figure]:
    if not len(table.shares):
        return
    leak = choice_leak(table)
    for name, score in (
        ("choices-only classifier above chance", leak.classifier),
        ("first choice above chance", leak.first),
        ("longest choice above chance", leak.longest),
    ):
        note = f"{score:.3f}, chance {leak.chance:.3f}"
        yield Figure(name, score - leak.chance, -0.02, 0.02, _V1_BASE[name], note)


def _forms(utterances: list[Played], foreign: bool) -> Iterator[Figure]:
    # Without a library general phrases and other users' openers are what exposes nothing: how they
    # fit in says nothing of the file.
    low, high = (None, None) if foreign else (0.45, 0.55)
    for group, area in form_leaks(utterances).items():
        note = "against our stand-ins" if foreign else ""
        yield Figure(f"exposing {group} by form, AUC", area, low, high, note=note)


def _texts(counts: Counts, contradicting: int, foreign: bool) -> Iterator[Figure]:
    name = "opener and right answer, similarity"
    mean = float(np.mean(counts.similarity)) if counts.similarity else float("nan")
    yield Figure(name, mean, high=_V1_BASE[name] + 0.05, v1_base=_V1_BASE[name])
    # People name what they speak of; that the library's never do is a promise of its own.
    most, note = (None, "as people do") if foreign else (0, "")
    stems = len(set(counts.stems))
    yield Figure("openers that share a stem with their value", stems, None, most, note=note)
    known = contradicting if counts.of_library else float("nan")
    note = "" if counts.of_library else _NO_LIBRARY
    yield Figure("utterances that contradict the state", known, high=0, note=note)


def _exposing_texts(
    quiet: dict[str, dict[str, Topic]], flagged: dict[str, tuple[str, ...]]
) -> Iterator[Figure]:
    # The limits are twice what the reader flags by mistake among texts known to be quiet.
    for kind, limit in (("neutral", 0.08), ("distractor", 0.04)):
        share = len(flagged[kind]) / len(quiet[kind]) if quiet[kind] else float("nan")
        note = f"{len(flagged[kind])} of {len(quiet[kind])} distinct"
        note = note if quiet[kind] else _NO_LIBRARY
        yield Figure(f"{kind} texts classified as exposing", share, high=limit, note=note)


def _variety(counts: Counts) -> Iterator[Figure]:
    within = float(np.mean(counts.distinct)) if counts.distinct else float("nan")
    yield Figure("distinct openers of a user", within, low=0.95)
    yield Figure("distinct openers of the set", len(counts.openers))
    yield Figure("topics shared with the next user", counts.topic_overlap, high=0.6)


def _shape(counts: Counts) -> Iterator[Figure]:
    later = counts.periods - counts.scenarios
    found = {
        "choices a question": counts.choices / max(1, counts.questions),
        "exposures a session": counts.exposures / max(1, counts.sessions),
        "changes a period": counts.changes / later if later else float("nan"),
        "sessions a period": counts.sessions / max(1, counts.periods),
    }
    is_base = counts.evolution == {10} and counts.variables <= {18, 20}
    for name, value in found.items():
        wanted = _V1_BASE[name]
        low, high = (0.9 * wanted, 1.1 * wanted) if is_base else (None, None)
        yield Figure(name, value, low, high, wanted)
    share = counts.gradual / counts.changes if counts.changes else float("nan")
    yield Figure("changes to a neighbouring value", share, note="where values are ordered")


def _quiet_texts(scenario: Scenario, spoken: list[Played]) -> Iterator[tuple[str, str, Topic]]:
    """Yield the texts that should expose nothing, with their kind and topic.

    The library names distractors. A text that it does not contain counts as neutral, with the
    closest topic of the scenario.
    """
    topics = scenario_topics(scenario)
    if not topics:
        return
    homes = {text: topic for topic in topics for text in (*topic.openers, *topic.follow_ups)}
    pairs = {
        text: topic
        for topic in topics
        for values in topic.variables.values()
        for value in values.values()
        for texts in value.distractors.values()
        for text in texts
    }
    for utterance in spoken:
        if utterance.exposes:
            continue
        text = utterance.text
        if text in pairs:
            yield "distractor", text, pairs[text]
        else:
            yield "neutral", text, homes.get(text) or _closest(text, topics)


def _closest(text: str, topics: tuple[Topic, ...]) -> Topic:
    words = set(text.lower().split())

    def shared(topic: Topic) -> int:
        return sum(len(words & set(t.lower().split())) for t in (*topic.openers, *topic.questions))

    return max(topics, key=shared)


def _flagged(texts: dict[str, Topic], reader: ExposureClassifier | None) -> tuple[str, ...]:
    if not texts:
        return ()
    judge = reader or library_classifier()
    by_topic: dict[str, tuple[Topic, list[str]]] = {}
    for text, topic in texts.items():
        by_topic.setdefault(topic.id, (topic, []))[1].append(text)
    return tuple(t for topic, group in by_topic.values() for t in judge.exposing(group, topic))


def _row(figure: Figure) -> tuple[str, str, str, str, str]:
    limits = (
        ""
        if figure.low is None and figure.high is None
        else (f"{_number(figure.low)}..{_number(figure.high)}")
    )
    mark = "" if figure.within else "OUTSIDE"
    note = "  ".join(part for part in (mark, figure.note) if part)
    return figure.name, _number(figure.value), limits, _number(figure.v1_base), note


def _number(value: float | None) -> str:
    if value is None:
        return ""
    if math.isnan(value):
        return "-"
    told = f"{value:.0f}" if float(value).is_integer() else f"{value:.3f}"
    return "0.000" if told == "-0.000" else told
