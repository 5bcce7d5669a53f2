"""Exit statuses of runs.

0 everything is scored; 1 a gate failed or code of the user did; 2 settings or inputs are wrong;
3 incomplete: stopped, or more unscored cells than allowed; 4 nothing is scored; 130 interrupted.
"""

from __future__ import annotations

from amemgym_env.evaluation.results_file import ResultsFile

INCOMPLETE = 3
NOTHING_SCORED = 4


def exit_status(run: ResultsFile, allow_unscored: float = 0.0) -> int:
    """Return the exit status of a run's results; `allow_unscored` is a share of its cells."""
    cells = [cell for rows in run.accuracy.values() for row in rows for cell in row]
    unscored = sum(cell is None for cell in cells)
    if cells and unscored == len(cells):
        return NOTHING_SCORED
    return INCOMPLETE if run.stopped or unscored > allow_unscored * len(cells) else 0
