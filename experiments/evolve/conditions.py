"""Conditions of the evolution experiment: per-user loops, controls, and a shared policy.

Each condition is a folder with a journal for each scenario. Finished scenarios are not played
again.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from amemgym_env.agent import Agent, Exam, MemoryView, Operation, Probe, Turn
from amemgym_env.evaluation.driver import AgentMaker, made_agent
from amemgym_env.evaluation.evolution_feedback import Evidence
from amemgym_env.evaluation.results import Results
from amemgym_env.evaluation.run import Backends, Game, evaluate, script_of
from amemgym_env.models.client import Models
from amemgym_env.models.events import EvolutionEvent, WritingPolicy
from amemgym_env.models.journal import FileJournal
from amemgym_env.models.last_play import last_play
from amemgym_env.prompts.evolution import WRITES
from amemgym_env.prompts.memory import INFORMATION_TYPES
from amemgym_env.scenarios.files import slug
from amemgym_env.scenarios.library import topics
from amemgym_env.scenarios.model import Scenario
from amemgym_env.scenarios.script import Script
from experiments.app.run_folder import inside
from experiments.evolve.loop import Evolver, FromFeedback, Improver, RandomTypes, apply_policy
from experiments.evolve.loop import evidence as evidence_of


@dataclass(frozen=True)
class Experiment:
    """What all conditions of one seed share."""

    make_agent: AgentMaker
    kind: str
    """The agent's writing prompt."""
    backends: Backends
    game: Game
    path: Path
    workers: int = 1

    def scripts(self, scenarios: Sequence[Scenario]) -> dict[str, Script]:
        """Return the scripts by scenario."""
        return {item.id: script_of(item, self.game, scenarios) for item in scenarios}


@dataclass(frozen=True)
class Played:
    """One condition, played."""

    results: Results
    steps: Mapping[str, Sequence[EvolutionEvent]]
    """The evolution's events by scenario."""
    evidence: Mapping[str, Mapping[int, Evidence]]

    def policy(self, scenario: str) -> WritingPolicy:
        """Return the policy at the end of a scenario."""
        return self.steps[scenario][-1].after

    def lengths(self, kind: str) -> dict[tuple[str, int], int]:
        """Return how long the policy is after each step, in types; `kind` is the writing prompt."""
        return {
            (name, step.period): length(step.after, kind)
            for name, steps in self.steps.items()
            for step in steps
        }


WORDS_A_TYPE = 4
"""Words of a special type as a prompt lists it, its dash counted (on average 4.2)."""


def length(policy: WritingPolicy, kind: str) -> int:
    """Return how many types a policy lists; a whole prompt counts by the words that it has more.

    Without it a control of equal length would have nothing beside an evolved prompt, whose list
    stands in its text.
    """
    count = len(policy.information_types)
    if policy.prompt is None:
        return count
    more = len(policy.prompt.split()) - len(WRITES[kind].template.split())
    return count + max(0, round(more / WORDS_A_TYPE))


def play(
    stage: Experiment,
    name: str,
    scenarios: Sequence[Scenario],
    *,
    start: Callable[[Script], WritingPolicy] = lambda script: WritingPolicy(),
    improve: Improver | None = None,
) -> Played:
    """Play a condition, or what is left of it."""
    scripts = stage.scripts(scenarios)
    evolver = Evolver(stage.make_agent, stage.kind, scripts, start, improve)

    def journal(scenario: Scenario) -> FileJournal:
        file = stage.path / name / "journals" / f"{slug(scenario.id)}.jsonl"
        return FileJournal(inside(stage.path, file))

    results = evaluate(
        evolver.make,
        scenarios,
        game=stage.game,
        backends=stage.backends,
        workers=stage.workers,
        journal=journal,
        progress=evolver.event,
    )
    events = {item.id: journal(item).read() for item in scenarios}
    return Played(
        results,
        {name: last_play(found).evolution for name, found in events.items()},
        {name: evidence_of(scripts[name], found) for name, found in events.items()},
    )


CONTROLS = ("another_users_feedback", "random_types", "oracle_types", "half_of_the_questions")
"""Controls that are played as conditions; `emptied` is a check of its own."""


def control(
    stage: Experiment,
    scenarios: Sequence[Scenario],
    name: str,
    improve: FromFeedback,
    plain: Played,
    main: Played,
) -> Played:
    """Play one control of an evolution `main`; `plain` did not evolve."""
    if name == "oracle_types":
        return play(stage, name, scenarios, start=oracle)
    changed: Improver
    if name == "another_users_feedback":
        names = [item.id for item in scenarios]
        others = dict(zip(names, [*names[1:], names[0]], strict=True))

        def instead(scenario: str, period: int) -> Evidence:
            seen = plain.evidence[others[scenario]]
            return seen[min(period, max(seen))]

        changed = replace(improve, instead=instead)
    elif name == "random_types":
        changed = RandomTypes(main.lengths(stage.kind), foreign_variables())
    else:
        changed = replace(improve, half=True)
    return play(stage, name, scenarios, improve=changed)


def oracle(script: Script) -> WritingPolicy:
    """Return the policy that lists just what the user's questions need."""
    needed = dict.fromkeys(name for asked in script.scenario.qas for name in asked.variables)
    return WritingPolicy((*INFORMATION_TYPES, *(name.replace("_", " ") for name in needed)))


def foreign_variables() -> list[str]:
    """Return what questions of training topics need, as words; nobody in the run has them."""
    found = (name for item in topics("train") for name in item.variables)
    return [name.replace("_", " ") for name in dict.fromkeys(found)]


class BlankedInputAgent:
    """Control: plays with blank user messages, to detect answers leaked into the prompt."""

    memory = "bank"

    def __init__(self, agent: Agent) -> None:
        self.agent = agent
        self.top_k = getattr(agent, "top_k", -1)

    def reset(self, view: MemoryView) -> None:
        """Begin an episode."""
        self.agent.reset(view)

    def reply(self, turn: Turn) -> str:
        """Reply to nothing."""
        return self.agent.reply(replace(turn, message=""))

    def write(self, turn: Turn, reply: str) -> Sequence[Operation]:
        """Write what there is: nothing."""
        return self.agent.write(replace(turn, message=""), reply)

    def answer(self, exam: Exam) -> Any:
        """Answer as ever."""
        return self.agent.answer(exam)

    def probe(self, probe: Probe) -> Any:
        """Answer as ever."""
        return self.agent.probe(probe)

    def state_dict(self) -> Mapping[str, Any]:
        """Return the agent's state."""
        return self.agent.state_dict()

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Continue from a state."""
        self.agent.load_state_dict(state)


def emptied(stage: Experiment, scenario: Scenario, policy: WritingPolicy) -> Results:
    """Play a scenario with a policy and emptied dialogues; must score what never-write scores."""

    def make(models: Models) -> Agent:
        agent = made_agent(stage.make_agent, models)
        apply_policy(policy, agent, stage.kind)
        return BlankedInputAgent(agent)

    game = replace(stage.game, diagnosis=False)
    return evaluate(make, [scenario], game=game, backends=stage.backends)


def guard(stage: Experiment, scenarios: Sequence[Scenario]) -> Callable[[WritingPolicy], float]:
    """Return a policy's mean accuracy on held-out scenarios, each played once."""
    known: dict[WritingPolicy, float] = {}
    game = replace(stage.game, diagnosis=False, upper_bound=False)

    def score(policy: WritingPolicy) -> float:
        if policy not in known:

            def make(models: Models) -> Agent:
                agent = made_agent(stage.make_agent, models)
                apply_policy(policy, agent, stage.kind)
                return agent

            results = evaluate(
                make, scenarios, game=game, backends=stage.backends, workers=stage.workers
            )
            known[policy] = results.file().overall or 0.0
        return known[policy]

    return score
