"""The job `standings`: learned and simple memory managers on the same episodes.

Question: how do learned memories compare with simple ones? Swept: the memory manager. Baseline:
never writing. All hold as many entries as the difficulty allows; rules and policies act as trained,
AWE and AWI as in the paper.

    python -m experiments.standings rule=runs/rules checkpoint=runs/ppo/seed-0/best
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from rich.box import SIMPLE_HEAD
from rich.table import Table

import agents
from amemgym_env.agent import Agent
from amemgym_env.errors import ConfigError
from amemgym_env.evaluation.driver import AgentMaker
from amemgym_env.evaluation.evolution_feedback import switches
from amemgym_env.evaluation.run import Game, evaluate, script_of
from amemgym_env.generation.sets import scenarios as named_scenarios
from amemgym_env.models.client import Models
from amemgym_env.models.journal import FileJournal
from amemgym_env.policies import checkpoint as policies
from amemgym_env.scenarios.difficulty import named_difficulty
from amemgym_env.scenarios.files import slug
from amemgym_env.scenarios.model import Scenario
from experiments.app import hydra_app as job
from experiments.app.factories import backends
from experiments.app.run_folder import RunFolder, inside, write
from experiments.app.settings import BackendSettings, Count, Settings, checked
from experiments.app.terminal import WIDTH, interval, number, terminal
from experiments.baselines import rules as baselines
from experiments.baselines import tuning
from experiments.baselines.benchmark import PolicyFn
from experiments.baselines.rule_agent import RuleAgent
from experiments.baselines.rules import HandRule
from experiments.evolve.loop import WRITERS, Evolver, FromFeedback

KEPT = ("overall", "memory_score", "failures", "confidence_interval", "random")
"""Fields of `results.json` that standings.json keeps for each contestant."""
NEVER, HAND, SEARCHED = "never write", "hand rule", "searched rule"
TRAINED, EVOLVED, AWE = "trained policy", "AWI, evolved", "AWE, default"


class StandingsSettings(Settings):
    """Settings of `python -m experiments.standings`; conf/standings.yaml says what they mean."""

    scenarios: str
    v1: str | None
    difficulty: str
    rule: str | None
    checkpoint: str | None
    feedback: str
    seed: int
    workers: Count | None
    out: str | None
    resume: bool
    backend: BackendSettings

    def identity(self) -> dict[str, Any]:
        """Return what results depend on."""
        return self.model_dump(mode="json", exclude={"out", "resume", "workers"})


class Contestant(NamedTuple):
    """A memory manager; `make` is None when it is missing, for the reason `why`."""

    make: AgentMaker | None
    why: str = ""
    evolves: bool = False


def contestants(settings: StandingsSettings, capacity: int) -> dict[str, Contestant]:
    """Return the contestants, including missing ones."""

    def by(rule: PolicyFn) -> Callable[[Models], Agent]:
        return lambda models: RuleAgent(models, rule, capacity)

    found = {
        NEVER: Contestant(by(baselines.never)),
        HAND: Contestant(by(tuning.untuned())),
        SEARCHED: Contestant(
            None, "absent: give rule=, a folder of experiments.search method=rules"
        ),
        TRAINED: Contestant(None, "absent: give checkpoint=, such as <training>/seed-0/best"),
        EVOLVED: Contestant(lambda models: agents.AWI(models), evolves=True),
        AWE: Contestant(lambda models: agents.AWE(models)),
    }
    if settings.rule is not None:
        found[SEARCHED] = Contestant(by(_searched(Path(settings.rule))))
    if settings.checkpoint is not None:
        policy = policies.load(settings.checkpoint)
        found[TRAINED] = Contestant(lambda models: agents.PolicyAgent(models, policy))
    return found


def _searched(folder: Path) -> HandRule:
    try:
        document = json.loads((folder / "search.json").read_text(encoding="utf-8"))
        chosen = next(item for item in document["finalists"] if item["words"] == document["chosen"])
        return HandRule(np.array(chosen["weights"]))
    except (OSError, ValueError, KeyError, StopIteration) as error:
        raise ConfigError(
            f"rule: expected a folder of experiments.search method=rules, found {str(folder)!r} "
            f"({error!r})"
        ) from error


def run(settings: StandingsSettings) -> dict[str, Any]:
    """Play all contestants on every set; write the folder and return its results."""
    level = named_difficulty(settings.difficulty)
    if level.capacity is None:
        raise ConfigError("difficulty: expected easy, default or hard, found one without a bound")
    known = contestants(settings, level.capacity)
    sets = {settings.scenarios: list(named_scenarios(settings.scenarios))}
    if settings.v1 is not None:
        sets["v1.base"] = list(named_scenarios(settings.v1))
    folder = RunFolder.open(settings.out, "standings", settings.identity(), settings.resume)
    standings: dict[str, dict[str, Any]] = {}
    for place, (name, scenarios) in enumerate(sets.items()):
        standings[name] = {
            title: _played(settings, entrant, scenarios, folder.path / f"set-{place}" / slug(title))
            for title, entrant in known.items()
        }
    document = {
        "settings": settings.identity(),
        "capacity": level.capacity,
        "simulated": settings.backend.name == "simulated",
        "standings": standings,
    }
    write(folder.path / "standings.json", json.dumps(document, indent=1))
    return {**document, "folder": str(folder.path)}


def _played(
    settings: StandingsSettings, entrant: Contestant, scenarios: list[Scenario], path: Path
) -> dict[str, Any]:
    if entrant.make is None:
        return {"absent": entrant.why}
    game = Game(difficulty=settings.difficulty, seed=settings.seed)
    scripts = {item.id: script_of(item, game, scenarios) for item in scenarios}
    evolver = Evolver(
        entrant.make,
        WRITERS["awi"],
        scripts,
        improve=FromFeedback(switches(settings.feedback), WRITERS["awi"]),
    )

    def journal(scenario: Scenario) -> FileJournal:
        return FileJournal(inside(path, path / f"{slug(scenario.id)}.jsonl"))

    results = evaluate(
        evolver.make if entrant.evolves else entrant.make,
        scenarios,
        game=game,
        backends=backends(settings.backend, {}),
        workers=settings.workers or (1 if settings.backend.name == "simulated" else 20),
        journal=journal,
        progress=evolver.event if entrant.evolves else None,
    ).file()
    return {name: getattr(results, name) for name in KEPT}


def show(document: Mapping[str, Any]) -> None:
    """Print a table for each set, best memory score first, and the missing contestants."""
    console = terminal()
    for name, rows in document["standings"].items():
        heading = f"{name}; {document['capacity']} entries"
        if document["simulated"]:
            heading += "\nSIMULATED model: not a real model's scores"
        table = Table(
            title=heading, title_justify="left", width=WIDTH, box=SIMPLE_HEAD, padding=(0, 1, 0, 0)
        )
        table.add_column("memory managed by", ratio=1)
        for column in ("overall", "95 %", "memory", "95 %", "write", "read", "util."):
            table.add_column(column, justify="right", no_wrap=True)
        present = {title: row for title, row in rows.items() if "absent" not in row}
        for title, row in sorted(present.items(), key=lambda pair: -(pair[1]["overall"] or 0.0)):
            bounds = row["confidence_interval"]
            table.add_row(
                title,
                number(row["overall"]),
                interval(bounds["overall"]),
                number(row["memory_score"]),
                interval(bounds["memory_score"]),
                *(number(row["failures"][kind]) for kind in ("write", "read", "utilization")),
            )
        console.print(table)
        for title, row in rows.items():
            if "absent" in row:
                console.print(f"{title}: {row['absent']}", style="yellow", markup=False)
    console.print(f"written to {document['folder']}", markup=False)


def main(composed: dict[str, Any]) -> None:
    """Run the job and print its tables."""
    show(run(checked(StandingsSettings, composed)))


if __name__ == "__main__":
    job.run(
        "standings",
        main,
        check=lambda composed: checked(StandingsSettings, composed),
    )
