"""Answer choices of a question: one for each combination that occurs, plus random fillers.

The choices alone must not reveal the right one. They are shuffled; each has one sentence of advice
per variable, and the two wordings of a sentence alternate over the choices that share a value.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from amemgym_env.generation.offline.random_stream import RandomStream
from amemgym_env.generation.offline.state_evolution import Course
from amemgym_env.scenarios.library import Topic


def answer_choices(
    topic: Topic,
    names: Sequence[str],
    course: Course,
    least: int,
    draws: RandomStream,
) -> list[dict[str, Any]]:
    """Return the choices as JSON objects: at least `least`, all combinations that occur."""
    material = [list(topic.variables[name].items()) for name in names]
    lived = set(course.path)
    used: dict[tuple[int, int], int] = {}
    choices = []
    for combination in draws.shuffled(course.filled(least)):
        sentences = []
        for position, value in enumerate(combination):
            advice = material[position][value][1].advice
            turn = used.setdefault((position, value), draws.below(len(advice)))
            sentences.append(advice[turn % len(advice)])
            used[position, value] = turn + 1
        choices.append(
            {
                "state": [material[p][value][0] for p, value in enumerate(combination)],
                "answer": " ".join(sentences),
                "type": "experience" if combination in lived else "random",
            }
        )
    return choices
