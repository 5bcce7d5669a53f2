"""Result folders of the benchmark's own code, scored by our rules.

    AGENT/USER/overall_results.json       the exams
    AGENT/USER/diagnosis_results.json     the probes; without them failures are unattributed
    AGENT/utilization_results.json        the upper bound; also beside AGENT, or one folder below

Differences from the benchmark's own metrics: a reply that could not be read counts as wrong (there
it becomes a random guess), an answer outside 1..n too (there 0 is the last choice), and output
tokens are total minus input (there they hold the total). Without the upper bound's file there is
no memory score, and the uniform guess is unknown: choices that were neither right nor chosen stand
in no other file.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from amemgym_env.errors import RunError
from amemgym_env.evaluation.results import Results
from amemgym_env.evaluation.results_file import ResultsFile
from experiments.report.page.official.files import OVERALL, UTILIZATION, Informed, parsed
from experiments.report.page.official.user import Scored, score


def is_one(folder: Path) -> bool:
    """Whether a folder is an agent's results of the benchmark's code, or one user's."""
    return (folder / OVERALL).exists() or any(folder.glob(f"*/{OVERALL}"))


def read(folder: Path) -> tuple[ResultsFile, list[str]]:
    """Return a folder's results as the object of a `results.json`, and notes for the reader.

    A user whose files are damaged is left out, and an upper bound that is, both with a note.

    Raises:
        RunError: no user's results can be read.
    """
    users = [folder] if (folder / OVERALL).exists() else []
    users += sorted(path.parent for path in folder.glob(f"*/{OVERALL}"))
    notes = ["results of the benchmark's own code, scored here"]
    informed: Informed | None = None
    try:
        informed = _informed(folder)
    except RunError as error:
        notes.append(f"the upper bound is left out: {error}")
    scored, faults = _users(users, informed)
    if not scored and informed is not None:
        # Whom its file refuses without exception, while their own files are whole: it is foreign.
        without, others = _users(users, None)
        if without:
            notes.append(f"the upper bound is left out: {faults[0]}")
            scored, faults, informed = without, others, None
    if not scored:
        raise RunError("; ".join(map(str, faults[:3])))
    notes += [f"a user is left out: {fault}" for fault in faults]
    notes += [f"failures unattributed: {one.unprobed}" for one in scored if one.unprobed][:5]
    guesses = sum(one.unreadable for one in scored)
    if guesses:
        notes.append(f"{guesses} unreadable replies count as wrong (there: a random guess)")
    results = Results(
        label=folder.name,
        memory="external",
        simulated=False,
        settings={"scenarios": "the benchmark's", "backend": {}},
        versions={},
        scenarios=[one.result for one in scored],
        mode="on_policy",
    )
    unknown: dict[str, Any] = {"in_window_share": None}
    if informed is None:
        notes.append(f"no {UTILIZATION}: no upper bound, no memory score, no floors")
        unknown |= {"random": None, "floors": {}}
    return results.file().model_copy(update=unknown), notes


def _informed(folder: Path) -> Informed | None:
    places = [folder / UTILIZATION, folder.parent / UTILIZATION]
    places += sorted(folder.glob(f"*/{UTILIZATION}"))
    for file in places:
        if file.exists():
            found: Informed = parsed(file, Informed)
            return found
    return None


def _users(
    folders: Sequence[Path], informed: Informed | None
) -> tuple[list[Scored], list[RunError]]:
    """Return the results of the users that can be read, and what is wrong with the others."""
    found, faults = [], []
    for folder in folders:
        try:
            found.append(score(folder, informed))
        except RunError as error:
            faults.append(error)
    return found, faults
