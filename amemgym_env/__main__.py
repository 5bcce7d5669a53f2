"""The command `amemgym`: `amemgym JOB ...` equals `python -m experiments.JOB ...`.

A wheel carries the jobs, the agents and their settings below `amemgym_env/_jobs`, so that their
names are free for other packages; they are importable only within this command. A checkout has
them next to the package.
"""

from __future__ import annotations

import os
import runpy
import sys
from pathlib import Path

JOBS = {
    "evaluate": "plays an agent through scenarios and scores it",
    "generate": "makes or audits a set of scenarios",
    "search": "searches memory settings or rules",
    "evolve": "lets an agent improve its own memory prompt",
    "train": "trains a memory policy by reinforcement learning",
    "report": "writes an HTML page of runs; compares, credits and audits them",
    "rescore": "scores the recorded answers of a run again",
    "transcript": "prints the dialogue of a run",
    "standings": "compares all memory managers on the same episodes",
    "sensitivity": "measures the effect of prompt wordings and users",
    "reuse_bias": "compares on-policy and off-policy rankings of agents",
    "calibrate": "fits the simulated model to published failure rates",
    "benchmark": "measures speed and memory",
    "load": "measures concurrent model calls",
    "retrieval": "measures the recall of embeddings",
    "play": "plays the assistant in the terminal",
}
"""Every job, and what it does."""


def main() -> None:
    """Run the job that the command line names, in this process."""
    name = sys.argv[1] if len(sys.argv) > 1 else ""
    if name in ("", "-h", "--help"):
        print("usage: amemgym JOB [key=value ...]\n\njobs:")
        print("\n".join(f"  {job:<12} {purpose}" for job, purpose in JOBS.items()))
        print("\n`amemgym JOB --help` prints a job's settings.")
        return
    if name not in JOBS:
        from amemgym_env.errors import near

        expected = f"expected one of {', '.join(JOBS)}"
        print(f"error: {expected}, found {name!r}{near(name, JOBS)}", file=sys.stderr)
        sys.exit(2)
    home = Path(__file__).parent / "_jobs"
    root = str(home if home.is_dir() else Path(__file__).parents[1])
    # Jobs start processes of their own: these find the same modules.
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, (root, os.environ.get("PYTHONPATH"))))
    sys.path[:1] = [root, os.getcwd()]
    del sys.argv[1]
    runpy.run_module(f"experiments.{name}", run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    main()
