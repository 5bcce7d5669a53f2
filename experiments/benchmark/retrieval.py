"""Retrieval quality of an embedding: recall, hit rate and MRR of session openers for questions.

For each user all session openers are ranked by similarity to each question. An opener is relevant
if it exposes a variable that the question needs.

    python -m experiments.retrieval base
    python -m experiments.retrieval path/to/amemgym-v1.base.json --choices --embedding wordllama
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

from amemgym_env.agent import shown_question
from amemgym_env.errors import InputError
from amemgym_env.generation.sets import scenarios
from amemgym_env.memory.embedding import DEFAULT, Embedder
from amemgym_env.scenarios.model import Scenario
from experiments.app.memory_factories import offline


class Retrieval(NamedTuple):
    """Means over questions, in [0, 1]."""

    questions: int
    recall_at_5: float
    recall_at_10: float
    hit_at_1: float
    mrr: float
    """Mean reciprocal rank of the first relevant opener."""


def retrieval(
    chosen: Iterable[Scenario], embedder: Embedder = DEFAULT, with_choices: bool = False
) -> Retrieval:
    """Return how well an embedder ranks each user's openers for each question.

    The query is the question alone, or as it is shown in an exam, with its choices.
    """
    rows = []
    for scenario in chosen:
        sessions = [session for period in scenario.periods for session in period.sessions]
        openers = embedder([session.query for session in sessions])
        for question in scenario.qas:
            needed = set(question.required_info)
            relevant = np.array([bool(needed & set(item.exposed_states)) for item in sessions])
            choices = [choice.answer for choice in question.answer_choices]
            query = shown_question(question.query, choices) if with_choices else question.query
            order = np.argsort(-(openers @ embedder([query])[0]), kind="stable")
            hits = relevant[order]
            rank = 1 + int(hits.argmax())
            total = hits.sum()
            rows.append([hits[:5].sum() / total, hits[:10].sum() / total, rank == 1, 1 / rank])
    means = np.array(rows, float).mean(axis=0)
    return Retrieval(len(rows), *(float(value) for value in means))


def main() -> None:
    """Print the figures for a set."""
    parser = argparse.ArgumentParser(prog="python -m experiments.retrieval", description=__doc__)
    parser.add_argument("scenarios", help="name of a set, or a path")
    parser.add_argument("--choices", action="store_true", help="ask with the choices, as an exam")
    parser.add_argument("--embedding", choices=["hashed", "wordllama"], default="hashed")
    given = parser.parse_args()
    try:
        embedder = offline(given.embedding)
        found = retrieval(scenarios(given.scenarios), embedder, with_choices=given.choices)
    except InputError as error:
        print(f"error: {error}", file=sys.stderr)
        sys.exit(2)
    print(
        f"{embedder.name}, {found.questions} questions: recall@5 {found.recall_at_5:.3f}, "
        f"recall@10 {found.recall_at_10:.3f}, hit@1 {found.hit_at_1:.3f}, MRR {found.mrr:.3f}"
    )
