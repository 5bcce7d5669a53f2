"""Evolution loop of one agent: memory prompts, proposals, and the steps within an episode.

Paper: AMemGym, Section 5. After a period's exam a model sees feedback and rewrites the policy; the
rest of the episode is played with the new one. Every step is an event of the scenario's journal,
so a run that is continued goes on from the evolved policy, and the lineage is read from there.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from difflib import unified_diff
from typing import Any, Literal, NamedTuple, Protocol

from amemgym_env.agent import Agent
from amemgym_env.evaluation.driver import AgentMaker, made_agent
from amemgym_env.evaluation.evolution_feedback import Evidence, Switch, feedback, gather, recall
from amemgym_env.models.client import Models
from amemgym_env.models.events import (
    Event,
    EvolutionEvent,
    EvolutionStep,
    ExamEvent,
    PolicyProposal,
    StartEvent,
    WritingPolicy,
)
from amemgym_env.models.last_play import last_play
from amemgym_env.prompts.base import Templates
from amemgym_env.prompts.evolution import WRITES, PromptEvolution, TypesEvolution, repaired
from amemgym_env.prompts.memory import INFORMATION_TYPES
from amemgym_env.scenarios.model import Scenario
from amemgym_env.scenarios.script import Script
from amemgym_env.seeding import permutation

Target = Literal["types", "prompt"]
"""What evolves: the list of information types, or the whole prompt that writes memory."""

WRITERS = {"awe": "fact_extraction", "awi": "dictionary_update"}
"""The prompt with which an agent writes memory; only these agents can evolve."""


def apply_policy(policy: WritingPolicy, agent: Agent, kind: str) -> None:
    """Let an agent write by a policy from now on; `kind` is its writing prompt."""
    evolving: Any = agent
    evolving.information_types = policy.information_types
    if policy.prompt is not None:
        texts = evolving.models.templates.texts
        evolving.models.templates = Templates({**texts, kind: policy.prompt})


def difference(before: WritingPolicy, after: WritingPolicy) -> tuple[str, ...]:
    """Return the lines that a step took away (-) and added (+)."""
    lines = unified_diff(policy_lines(before), policy_lines(after), lineterm="", n=0)
    return tuple(line for line in lines if not line.startswith(("---", "+++", "@@")))


def policy_lines(policy: WritingPolicy) -> list[str]:
    """Return a policy as lines, for differences."""
    whole = () if policy.prompt is None else policy.prompt.split("\n")
    return [*(f"- {kind}" for kind in policy.information_types), *whole]


class Proposal(NamedTuple):
    """What one call for a better policy led to."""

    policy: WritingPolicy | None
    """None: nothing to use came back."""
    status: str
    """`new`, `repaired`, `no change`, or why the reply cannot be read (`unreadable`, `empty`)."""


def propose(
    models: Models,
    policy: WritingPolicy,
    kind: str,
    target: Target,
    told: str,
    number: int,
    count: int,
) -> Proposal:
    """Return one proposal for a better policy; `kind` is the agent's writing prompt."""
    if target == "types":
        types = models.ask(TypesEvolution(policy.information_types, told, number, count))
        if types.value is None:
            return Proposal(None, types.cause or "unreadable")
        proposed, status = replace(policy, information_types=types.value), "new"
    else:
        prompt = WRITES[kind]
        present = policy.prompt or models.templates.texts.get(kind, prompt.template)
        asked = PromptEvolution(present, prompt.placeholders, told, number, count)
        text = models.ask(asked)
        if text.value is None:
            return Proposal(None, text.cause or "unreadable")
        whole, added = repaired(prompt, text.value)
        proposed, status = replace(policy, prompt=whole), "repaired" if added else "new"
        if whole.strip() == present.strip():
            return Proposal(None, "no change")
    if proposed == policy:
        return Proposal(None, "no change")
    return Proposal(proposed, status)


Score = Callable[[WritingPolicy], float]
"""Score of a policy on scenarios held out from evolution."""


def step(
    models: Models,
    policy: WritingPolicy,
    kind: str,
    target: Target,
    told: str,
    proposals: int = 1,
    score: Score | None = None,
) -> EvolutionStep:
    """Return one step: proposals, their scores, and the resulting policy.

    With `score` the best proposal is accepted if it does not do worse than the present policy;
    without it the first that can be read is.
    """
    made = [
        propose(models, policy, kind, target, told, number, proposals)
        for number in range(1, proposals + 1)
    ]
    scores = [None if score is None or item.policy is None else score(item.policy) for item in made]
    usable = [place for place, item in enumerate(made) if item.policy is not None]
    after, status, present = policy, made[0].status, None
    if usable:
        usable_scores = [float("-inf") if value is None else value for value in scores]
        best = max(usable, key=lambda place: (usable_scores[place], -place))
        present = None if score is None else score(policy)
        accepted = present is None or usable_scores[best] >= present
        status = "accepted" if accepted else "rejected"
        chosen = made[best].policy
        after = chosen if accepted and chosen is not None else policy
    return EvolutionStep(
        status,
        after,
        present,
        tuple(
            PolicyProposal(item.status, item.policy, value)
            for item, value in zip(made, scores, strict=True)
        ),
        told,
        policy,
        difference(policy, after),
    )


class Improver(Protocol):
    """Decides after a period's exam by which policy the episode goes on."""

    def __call__(
        self, script: Script, agent: Any, policy: WritingPolicy, seen: Evidence
    ) -> EvolutionStep:
        """Return the record of the step; its `after` is the new policy."""
        ...


@dataclass(frozen=True)
class FromFeedback:
    """Evolution proper: a model proposes from feedback."""

    switches: frozenset[Switch]
    kind: str
    target: Target = "types"
    proposals: int = 1
    score: Score | None = None
    half: bool = False
    """Whether the feedback is about every second question only, from the first."""
    instead: Callable[[str, int], Evidence] | None = None
    """(scenario, period) -> the evidence that is shown in place of the agent's own."""

    def __call__(
        self, script: Script, agent: Any, policy: WritingPolicy, seen: Evidence
    ) -> EvolutionStep:
        """Return the record of the step."""
        if self.instead is not None:
            seen = self.instead(script.scenario.id, seen.period)
        if self.half:
            seen = seen.only(range(0, len(seen.asked), 2))
        told = feedback([seen], self.switches)
        models: Models = agent.models
        return step(models, policy, self.kind, self.target, told, self.proposals, self.score)


@dataclass(frozen=True)
class RandomTypes:
    """Control with as many special types, drawn from the variables of other people."""

    lengths: Mapping[tuple[str, int], int]
    """(scenario, period) -> number of types after the evolution's step."""
    variables: Sequence[str]

    def __call__(
        self, script: Script, agent: Any, policy: WritingPolicy, seen: Evidence
    ) -> EvolutionStep:
        """Return the record of a step that saw nothing."""
        name = script.scenario.id
        count = self.lengths.get((name, seen.period), len(policy.information_types))
        after = WritingPolicy(drawn_types(script, self.variables, count))
        return EvolutionStep("drawn", after, before=policy, difference=difference(policy, after))


def drawn_types(script: Script, variables: Sequence[str], count: int) -> tuple[str, ...]:
    """Return the general types and variables drawn for a script, `count` in all."""
    own = {variable.replace("_", " ") for variable in script.scenario.variables}
    order = permutation(len(variables), "random types", script.scenario.id, script.seed)
    others = [variables[place] for place in order if variables[place] not in own]
    return (*INFORMATION_TYPES, *others)[:count]


class Evolver:
    """Watches episodes as they are played, and changes the policy of the agent that plays.

    Give `make` and `event` to `evaluate`. Each scenario is played by one thread from its first to
    its last event, which is how an event finds its agent.
    """

    def __init__(
        self,
        make_agent: AgentMaker,
        kind: str,
        scripts: Mapping[str, Script],
        start: Callable[[Script], WritingPolicy] = lambda script: WritingPolicy(),
        improve: Improver | None = None,
    ) -> None:
        self.make_agent = make_agent
        self.kind = kind
        self.scripts = scripts
        self.start = start
        self.improve = improve
        self._playing = threading.local()

    def make(self, models: Models) -> Agent:
        """Return a new agent, and remember it as this thread's."""
        agent = made_agent(self.make_agent, models)
        self._playing.agent = agent
        return agent

    def event(self, scenario: Scenario, event: Event) -> None:
        """Begin with the first policy, and take a step after every exam but the last."""
        if not isinstance(event, StartEvent | ExamEvent):
            return
        agent, script = self._playing.agent, self.scripts[scenario.id]
        if isinstance(event, StartEvent):
            self._playing.policy = self.start(script)
        else:
            self._exam(script, agent, event)
        apply_policy(self._playing.policy, agent, self.kind)

    def _exam(self, script: Script, agent: Any, event: ExamEvent) -> None:
        period, policy = event.period, self._playing.policy
        texts = {entry.id: entry.text for entry in agent.view.entries()}
        stated, told = recall(script, period, texts.values())
        seen = gather(script, period, event.answers, event.retrieved, texts)
        taken = EvolutionStep("fixed", policy)
        if self.improve is not None and period < len(script.periods) - 1:
            taken = self.improve(script, agent, policy, seen)
        self._playing.policy = taken.after
        agent.models.recorder(EvolutionEvent.of(taken, period, (stated, told), texts))


def evidence(script: Script, events: Sequence[Event]) -> dict[int, Evidence]:
    """Return the evidence of each period of the last attempt in a journal."""
    play = last_play(events)
    texts = {event.period: event.entries for event in play.evolution}
    return {
        period: gather(script, period, event.answers, event.retrieved, texts[period])
        for period, event in play.exams.items()
        if period in texts
    }
