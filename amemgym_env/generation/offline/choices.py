"""The answer choices of a question: one for each combination lived through, filled up.

A reader of the choices alone must not see which is right. Choices stand in random order; each is
one sentence of advice a variable, and the wordings of a sentence take turns over the choices
that share a value, so that no value's sentence marks its choices by its frequency.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from amemgym_env.generation.offline.state_evolution import Course
from amemgym_env.scenarios.library import Topic
from amemgym_env.scenarios.random_stream import Draws


def answer_choices(
    topic: Topic,
    names: Sequence[str],
    course: Course,
    least: int,
    draws: Draws,
) -> list[dict[str, Any]]:
    """Return the choices as JSON objects: `least` or, if more were lived through, those."""
    material = [list(topic.variables[name].values.items()) for name in names]
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
