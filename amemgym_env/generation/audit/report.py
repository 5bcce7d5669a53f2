"""The audit of a scenario set: each measured quality with its limits, on any scenario file.

An audit reads texts and truth, never a script's own labels. Limits are meant for 1,000 scenarios;
a set of 20 may leave them by chance. Figures of `v1.base`, the benchmark's released set, stand
beside those of the set.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from itertools import chain, islice
from typing import NamedTuple

import numpy as np

from amemgym_env.errors import ConfigError
from amemgym_env.generation.audit.choice_leaks import ChoiceTable, choice_leak, choice_table, joined
from amemgym_env.generation.audit.form_leaks import Played, form_leaks, played
from amemgym_env.generation.audit.realism import plain_figures, similarity_figures
from amemgym_env.generation.audit.statistics import Counts, contradictions
from amemgym_env.generation.audit.two_sample import FOLDS, halves, two_sample
from amemgym_env.memory.embedding import DEFAULT, Embedder
from amemgym_env.memory.wordllama import WordLlamaEmbedder
from amemgym_env.scenarios.difficulty import QUIET_KINDS, named_difficulty
from amemgym_env.scenarios.model import Scenario
from amemgym_env.scenarios.script import Script, build

JUDGED = 1000
"""Scenarios of a set that are read; limits are set for as many."""

_OTHERS = 20
"""Scenarios whose openers serve as distractors where a set has no topic library."""

_V1_BASE = {
    "choices a question": 4.41,
    "exposures a session": 1.280,
    "changes a period": 4.04,
    "sessions a period": 4.286,
    "choices-only classifier above chance": 0.028,
    "first choice above chance": 0.026,
    "longest choice above chance": 0.016,
}
"""Figures of `v1.base`, measured by this file."""

_NO_LIBRARY = "no library texts"

_REALISM: dict[str, tuple[float, float, float]] = {
    "words an opener": (30, 43, 35.9),
    "words an opener, deviation": (10, 17, 13.4),
    "sentences an opener": (1.4, 2.1, 1.74),
    "openers that ask": (0.85, 1.0, 0.99),
    "values named by their opener": (0.65, 0.90, 0.82),
    "values named by the right answer": (0.55, 0.75, 0.68),
    "openers with a common 5-gram": (0.0, 0.40, 0.30),
    "same variable more similar, AUC (terms)": (0.85, 0.95, 0.925),
    "nearest earlier opener is of the same variable (terms)": (0.50, 0.75, 0.64),
    "nearest question needs the variable (terms)": (0.55, 0.85, 0.70),
    "similarity to the right answer (terms)": (0.18, 0.30, 0.24),
    "same variable more similar, AUC (meaning)": (0.84, 1.0, 0.936),
    "nearest earlier opener is of the same variable (meaning)": (0.56, 0.76, 0.66),
    "nearest question needs the variable (meaning)": (0.65, 0.85, 0.75),
    "similarity to the right answer (meaning)": (0.40, 0.52, 0.46),
}
"""Bands of the figures of openers, and the value of `v1.base`."""

_READ = 200
"""Scenarios whose openers are compared with people's."""

_BY_KIND = 40
"""Scenarios that are played with each kind of quiet messages."""

ScriptOf = Callable[[Scenario], Script]


class Figure(NamedTuple):
    """One measured quality; a limit of None is no limit, a value of NaN was not measurable."""

    name: str
    value: float
    low: float | None = None
    high: float | None = None
    v1_base: float | None = None
    note: str = ""

    @property
    def within(self) -> bool:
        """Whether the value respects its limits; what could not be measured does."""
        if math.isnan(self.value):
            return True
        low_enough = self.high is None or self.value <= self.high
        return low_enough and (self.low is None or self.value >= self.low)


class Audit(NamedTuple):
    """All figures of a set, and the texts to look at where a limit is left."""

    scenarios: int
    figures: tuple[Figure, ...]
    offenders: dict[str, tuple[str, ...]]
    """For some figures the offending texts."""
    foreign: bool = False
    """Whether scenarios lack a topic library: then figures on form and on names have no limits."""

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
    judged: int = JUDGED,
    reference: Sequence[Scenario] | None = None,
) -> Audit:
    """Return the audit of the first `judged` scenarios, which are read once.

    `script_of` makes the script whose utterances are judged (default: difficulty `default`, seed
    0); `reference` is a set of real users for the two-sample test, which needs scikit-learn.
    """
    stream = iter(scenarios)
    others = list(islice(stream, _OTHERS))
    make = script_of or (lambda scenario: build(scenario, "default", 0, others=others))
    counts, tables = Counts(), list[ChoiceTable]()
    utterances: list[Played] = []
    read: list[Scenario] = []
    contradicting: dict[str, None] = {}
    for scenario in islice(chain(others, stream), judged):
        counts.add(scenario)
        tables.append(choice_table([scenario]))
        if len(read) < _READ:
            read.append(scenario)
        spoken = list(played(scenario, make(scenario)))
        utterances.extend(spoken)
        for utterance in spoken:
            if utterance.exposes and contradictions(scenario, utterance.period, utterance.text):
                contradicting[utterance.text] = None
    foreign = counts.of_library < counts.scenarios
    figures = (
        *_validity(counts),
        *_choices(joined(tables)),
        *_forms(utterances, foreign),
        *(() if foreign or script_of else _forms_by_kind(read[:_BY_KIND])),
        *_people(read),
        *_against(read, reference),
        *_contradictions(counts, len(contradicting)),
        *_variety(counts),
        *_shape(counts),
    )
    offenders = {"utterances that contradict the state": tuple(contradicting)}
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


def _forms_by_kind(scenarios: Sequence[Scenario]) -> Iterator[Figure]:
    for kind in QUIET_KINDS:
        if kind == "other_users" and len(scenarios) < 2:
            continue
        level = named_difficulty("default", kind)
        spoken = (
            utterance
            for scenario in scenarios
            for utterance in played(scenario, build(scenario, level, 0, others=scenarios))
        )
        for group, area in form_leaks(spoken).items():
            if group != "follow-ups":
                yield Figure(f"exposing {group} by form among {kind}, AUC", area, 0.45, 0.55)


def _people(scenarios: Sequence[Scenario]) -> Iterator[Figure]:
    found = plain_figures(scenarios)
    embedders: dict[str, Embedder] = {"terms": DEFAULT}
    with suppress(ConfigError):
        embedders["meaning"] = WordLlamaEmbedder()
    for name, embedder in embedders.items():
        for figure, value in similarity_figures(scenarios, embedder).items():
            found[f"{figure} ({name})"] = value
    for name, (low, high, real) in _REALISM.items():
        yield Figure(name, found.get(name, math.nan), low, high, real)


def _against(
    scenarios: Sequence[Scenario], reference: Sequence[Scenario] | None
) -> Iterator[Figure]:
    if reference is None or min(len(scenarios), len(reference)) < FOLDS:
        return
    ours, own = two_sample(scenarios, reference), halves(reference)
    note = "real halves: {:.2f}"
    yield Figure(
        "two-sample AUC, features", ours.features, None, 0.75, note=note.format(own.features)
    )
    yield Figure("two-sample AUC, n-grams", ours.grams, None, 0.90, note=note.format(own.grams))


def _contradictions(counts: Counts, contradicting: int) -> Iterator[Figure]:
    known = contradicting if counts.of_library else float("nan")
    note = "" if counts.of_library else _NO_LIBRARY
    yield Figure("utterances that contradict the state", known, high=0, note=note)


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
