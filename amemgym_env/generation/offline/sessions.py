"""Which variables one session gives away, and when sessions take place.

Shared by the offline generator and the one with a model.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta

from amemgym_env.generation.offline.settings import Settings
from amemgym_env.scenarios.random_stream import Draws


def by_question(variables: Sequence[int], settings: Settings) -> dict[int, list[int]]:
    """Return for each question among the variables (0..M-1) the positions of its variables."""
    found: dict[int, list[int]] = {}
    for variable in variables:
        question, position = divmod(variable, settings.variables_per_question)
        found.setdefault(question, []).append(position)
    return found


def session_groups(
    variables: Sequence[int], settings: Settings, draws: Draws, initial: bool = False
) -> list[tuple[int, ...]]:
    """Split variables into those that one session gives away, in the order of the sessions.

    A later period's first two variables of a question always come in one session: a user who
    tells of two changes in the same matter tells them together.
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


def session_times(end: datetime, sessions: int, draws: Draws) -> list[str]:
    """Return the session times: evenings of the days before `end`, one a day.

    The last day is left free: something may still be said there that gives nothing away.
    """
    evening = end + timedelta(hours=19)
    moments = (
        evening - timedelta(days=back, seconds=-draws.below(3 * 3600))
        for back in range(sessions, 0, -1)
    )
    return [moment.isoformat(" ")[:19] for moment in moments]
