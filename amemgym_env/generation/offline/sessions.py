"""Grouping of variables into sessions, and session times.

Shared by the offline generator and the pipeline.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta

from amemgym_env.generation.offline.random_stream import RandomStream
from amemgym_env.generation.offline.settings import Settings


def by_question(variables: Sequence[int], settings: Settings) -> dict[int, list[int]]:
    """Return for each question among the variables (0..M-1) the positions of its variables."""
    found: dict[int, list[int]] = {}
    for variable in variables:
        question, position = divmod(variable, settings.variables_per_question)
        found.setdefault(question, []).append(position)
    return found


def session_groups(
    variables: Sequence[int], settings: Settings, draws: RandomStream, initial: bool = False
) -> list[tuple[int, ...]]:
    """Group variables by the session that exposes them, in the order of the sessions.

    In later periods, changes of a question's first two variables share a session.
    """
    groups: list[tuple[int, ...]] = []
    for question, positions in by_question(variables, settings).items():
        first = question * settings.variables_per_question
        together = positions[:2] == [0, 1]
        if together and (not initial or draws.chance(settings.joint_initial)):
            groups.append((first, first + 1))
            positions = positions[2:]
        groups.extend((first + position,) for position in positions)
    return draws.shuffled(groups)


def session_times(end: datetime, sessions: int, draws: RandomStream) -> list[str]:
    """Return the session times: evenings of the days before `end`, one a day.

    The last day is left free for distractor sessions.
    """
    evening = end + timedelta(hours=19)
    moments = (
        evening - timedelta(days=back, seconds=-draws.below(3 * 3600))
        for back in range(sessions, 0, -1)
    )
    return [moment.isoformat(" ")[:19] for moment in moments]
