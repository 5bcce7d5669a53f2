"""Audit of every user turn of a run: values that are missing, leaked or wrong.

    python -m experiments.report audit runs/evaluate-0001

Turns in a script's own words are read as the simulated model reads them. All others are read by the
run's judge model where it has a real one, else by their wording. Baselines: of utterances that the
wording reader has not seen, about one exposure in four goes unnoticed, and one follow-up in seventy
is taken for a leak. Exit status 0, with `--fail-if-faulty` 1 when a turn is faulty, and
2 for an error.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from amemgym_env.agent import Variable
from amemgym_env.errors import AMemGymError
from amemgym_env.evaluation.user_audit import Judge, TextReader, TurnAudit, audit_turns
from amemgym_env.models.client import Models
from amemgym_env.prompts.judge import ExposureJudgement
from amemgym_env.scenarios.script import Script
from experiments.app.terminal import terminal
from experiments.report.recorded_run import RecordedRun

SHOWN = 20
"""Faulty turns that are printed."""


class Audited(NamedTuple):
    """The audit of one scenario."""

    scenario: str
    audit: TurnAudit


def audit(run: RecordedRun) -> list[Audited]:
    """Return the audit of each scenario of a run."""
    found = []
    for script in run.scripts:
        models = run.models(script)
        judge = (
            TextReader(script)
            if models.backend("judge").simulated
            else _model_judge(models, script)
        )
        found.append(Audited(script.scenario.id, audit_turns(script, run.events(script), judge)))
    return found


def _model_judge(models: Models, script: Script) -> Judge:
    variables = tuple(
        Variable(name, tuple(values)) for name, values in script.scenario.state_schema.items()
    )

    def judge(text: str) -> Mapping[str, str] | None:
        return models.ask(ExposureJudgement(text, variables)).value

    return judge


def main(arguments: Sequence[str]) -> int:
    """Print rates and faulty turns; return the exit status."""
    parser = argparse.ArgumentParser(prog="report audit")
    parser.add_argument("run", help="folder of an evaluation")
    parser.add_argument("--fail-if-faulty", action="store_true", help="exit 1 if a turn is faulty")
    given = parser.parse_args(list(arguments))
    try:
        found = audit(RecordedRun.open(given.run))
    except AMemGymError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    _print(found)
    faulty = any(item.audit.findings for item in found)
    return int(given.fail_if_faulty and faulty)


def _print(found: Sequence[Audited]) -> None:
    console = terminal(None)
    sums = Counter[str]()
    for item in found:
        for name in ("turns", "scripted", "read", "unread", "expected"):
            sums[name] += getattr(item.audit, name)
    console.print(
        f"{sums['turns']} user turns of {len(found)} scenarios: {sums['scripted']} in the script's "
        f"own words, {sums['read']} read for what they say, {sums['unread']} that nobody could read"
    )
    rows = [(item.scenario, finding) for item in found for finding in item.audit.findings]
    faults = Counter(finding.fault for _, finding in rows)
    turns = max(1, sums["scripted"] + sums["read"])
    for fault in ("silence", "leak", "other_value"):
        console.print(f"  {fault}: {faults[fault]} ({faults[fault] / turns:.4f} a turn)")
    for scenario, finding in rows[:SHOWN]:
        console.print(
            f"  {finding.fault}: {scenario} period {finding.period} session {finding.session} "
            f"round {finding.round}, {finding.variable}: expected {finding.expected}, read "
            f"{finding.found}: {' '.join(finding.message.split()):.160}"
        )
    if len(rows) > SHOWN:
        console.print(f"  and {len(rows) - SHOWN} more")
    if sums["unread"]:
        console.print("  give a judge_backend to read what wording alone cannot tell")
