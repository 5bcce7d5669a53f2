"""Evaluation: plays an agent through scenarios and scores it, resumable and in parallel.

Each scenario is played from its start. Calls in its journal are not repeated, so a resumed run
gives the same bytes as an uninterrupted one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, nullcontext
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, cast

from amemgym_env.envs.text.env import AMemGymEnv
from amemgym_env.errors import BudgetExceeded, RunError, TransportError
from amemgym_env.evaluation.bounds import reference
from amemgym_env.evaluation.driver import AgentMaker, made_agent, play
from amemgym_env.evaluation.results import Results
from amemgym_env.evaluation.scenario_result import ScenarioResult, scenario_result
from amemgym_env.evaluation.traces import RecordedDialogue, traces
from amemgym_env.evaluation.user_model import UserModel
from amemgym_env.generation.sets import scenarios as named_scenarios
from amemgym_env.memory.embedding import DEFAULT, Embedder
from amemgym_env.memory.index import NumpyStore, StoreFactory
from amemgym_env.models.client import Backend, Models, Recorded
from amemgym_env.models.events import CallEvent, EndEvent, Event, StartEvent
from amemgym_env.models.journal import Journal, MemoryJournal
from amemgym_env.prompts import assistant as prompts
from amemgym_env.prompts.base import BUILT_IN, Role, Templates
from amemgym_env.scenarios.model import Scenario
from amemgym_env.scenarios.script import Script, build
from amemgym_env.simulated.model import DEFAULT_PROFILE, SimulatedModel
from amemgym_env.version import VERSION

DEFAULT_TOP_K = 10
"""Entries retrieved for an agent that does not say how many it wants (`top_k`; -1: all)."""

Backends = Callable[[Script], Mapping[str, Backend]]
"""The models of one episode by role group (assistant, memory, user, judge)."""


@dataclass(frozen=True)
class Game:
    """Settings of play: everything that a score depends on, except agent and models."""

    difficulty: str = "none"
    seed: int = 0
    rounds_initial: int = 1
    rounds_update: int = 2
    shuffle_choices: bool = True
    diagnosis: bool = True
    upper_bound: bool = True
    capacity: int | None = None
    """Entries that the memory bank holds; None: unbounded."""
    question_blind: bool = False


def simulated(profile: str = DEFAULT_PROFILE) -> Backends:
    """Return the simulated model in all roles, with a profile of error rates."""
    return lambda script: {"assistant": SimulatedModel(script, profile)}


def evaluate(
    make_agent: AgentMaker,
    scenarios: str | Path | Sequence[Scenario] = "base",
    *,
    game: Game | None = None,
    backends: Backends | None = None,
    templates: Templates = BUILT_IN,
    limit: int | None = None,
    workers: int = 1,
    journal: Callable[[Scenario], AbstractContextManager[Journal]] | None = None,
    progress: Callable[[Scenario, Event], None] | None = None,
    settings: Mapping[str, Any] | None = None,
    recorded: str | Path | None = None,
    repeated: Callable[[Scenario], Sequence[Event]] | None = None,
    embedder: Embedder = DEFAULT,
    store: Callable[[Script], StoreFactory] | None = None,
    score_only: bool = False,
) -> Results:
    """Play an agent through scenarios and return its results.

    `scenarios` is a set's name, a file or loaded scenarios. `journal` gives the place where a
    scenario's events are written and, on resume, read; None keeps them in memory. `workers`
    scenarios are played side by side; results do not depend on it. `recorded` plays off-policy: a
    run's folder or a file of interactions whose dialogues are replayed (`traces.py`); only writing,
    exam and probes are then the agent's. `repeated` gives the events of another run whose calls
    stand in for those that this run would make. `embedder` and `store` (of a script; None: numpy)
    serve the memory bank. `score_only` plays nothing: what journals hold is scored. Ctrl-C stops
    cleanly: calls under way are recorded, nothing else begins.

    Raises:
        ScenarioError: a file or set cannot be used. ConfigError: a setting cannot.
        RunError: a journal belongs to another run, or the recorded dialogues are not these
            scenarios'.
        Interrupted: Ctrl-C; it holds the results so far.
    """
    game = game or Game()
    backends = backends or simulated()
    chosen = _chosen(scenarios, limit)
    scripts = [script_of(scenario, game, chosen) for scenario in chosen]
    identity = dict(settings) if settings is not None else asdict(game)
    dialogues = {} if recorded is None else traces(recorded, scripts)
    run = _Run(make_agent, backends, templates, game, identity, progress, dialogues)
    run.repeated = repeated or run.repeated
    run.score_only = score_only
    run.embedder, run.store = embedder, store or run.store
    opened = journal or (lambda _: nullcontext(MemoryJournal()))

    def one(script: Script) -> ScenarioResult:
        with opened(script.scenario) as events:
            return run.scenario(script, events)

    with ThreadPoolExecutor(max(1, workers)) as pool:
        playing = [pool.submit(one, script) for script in scripts]
        interrupted = False
        try:
            results = [future.result() for future in playing]
        except KeyboardInterrupt:
            interrupted = True
            run.stopped = "Ctrl-C; the same command continues"
            models = list(backends(scripts[0]).values())
            for backend in models:
                backend.stop(run.stopped)
            results = [future.result() for future in playing]
            for backend in models:
                backend.stop(None)
        except BaseException as error:
            run.stopped = run.stopped or f"{type(error).__name__}: {error}"
            raise
    probe = made_agent(make_agent, Models(backends(scripts[0])))
    found = Results(
        label=str(getattr(probe, "label", type(probe).__name__)),
        memory=str(getattr(probe, "memory", "bank")),
        simulated=any(backend.simulated for backend in backends(scripts[0]).values()),
        settings=identity,
        versions={"amemgym_env": VERSION, "prompts": prompts.versions()},
        scenarios=results,
        mode="on_policy" if recorded is None else "off_policy",
        seed=game.seed,
        stopped=run.stopped,
    )
    if interrupted:
        raise Interrupted(found)
    return found


class Interrupted(KeyboardInterrupt):
    """Ctrl-C stopped an evaluation; `results` holds what was scored before.

    `told` is set by who told the user.
    """

    told = False

    def __init__(self, results: Results) -> None:
        self.results = results
        super().__init__(str(results.stopped))


def _chosen(scenarios: str | Path | Sequence[Scenario], limit: int | None) -> list[Scenario]:
    if isinstance(scenarios, str | Path):
        return list(named_scenarios(scenarios, limit))
    return list(scenarios)[:limit]


def script_of(scenario: Scenario, game: Game, others: Sequence[Scenario]) -> Script:
    """Return the script that a game plays of a scenario; ConfigError for a setting out of range."""
    return build(
        scenario,
        game.difficulty,
        game.seed,
        rounds_initial=game.rounds_initial,
        rounds_update=game.rounds_update,
        shuffle_choices=game.shuffle_choices,
        others=others,
    )


class _Run:
    """What the scenarios of one run share."""

    def __init__(
        self,
        make_agent: AgentMaker,
        backends: Backends,
        templates: Templates,
        game: Game,
        identity: Mapping[str, Any],
        progress: Callable[[Scenario, Event], None] | None,
        dialogues: Mapping[str, RecordedDialogue],
    ) -> None:
        self.make_agent = make_agent
        self.backends = backends
        self.templates = templates
        self.game = game
        self.identity = identity
        self.progress = progress
        self.dialogues = dialogues
        self.repeated: Callable[[Scenario], Sequence[Event]] = lambda _: ()
        self.embedder: Embedder = DEFAULT
        self.store: Callable[[Script], StoreFactory] = lambda _: NumpyStore
        self.score_only = False
        self.stopped: str | None = None

    def scenario(self, script: Script, journal: Journal) -> ScenarioResult:
        """Return a scenario's result, playing what its journal does not hold yet."""
        earlier = journal.read()
        self._check(script, earlier)
        known = scenario_result(script, earlier)
        if known.complete or self.stopped or self.score_only:
            if known.complete and self.progress is not None:
                self.progress(script.scenario, EndEvent(known.hash, None))
            return known
        self._play(script, journal, earlier)
        return scenario_result(script, journal.read())

    def _check(self, script: Script, earlier: Sequence[Event]) -> None:
        for event in earlier:
            if isinstance(event, StartEvent) and event.script != script.key:
                raise RunError(
                    f"scenario {script.scenario.id!r}: expected the journal of script "
                    f"{script.key}, found {event.script}; the folder holds another run: "
                    "choose another out=, or the settings that it was made with"
                )

    def _play(self, script: Script, journal: Journal, earlier: Sequence[Event]) -> None:
        def record(event: Event) -> None:
            journal.write(event)
            if self.progress is not None:
                self.progress(script.scenario, event)

        known = Recorded(earlier, self.repeated(script.scenario))
        models = Models(self.backends(script), self.templates, record, known, lambda: self.stopped)
        for event in earlier:
            if isinstance(event, CallEvent) and event.key is not None and event.usage is not None:
                models.backend(cast(Role, event.role)).remember(event.usage)
        agent = made_agent(self.make_agent, models)
        trace = self.dialogues.get(script.scenario.id)
        user = None if trace or models.backend("user").simulated else UserModel(models)
        top_k = getattr(agent, "top_k", DEFAULT_TOP_K)
        capacity = self.game.capacity or script.difficulty.capacity
        record(StartEvent(script.scenario.id, script.key))
        digest = error = reason = recall = None
        env: AMemGymEnv | None = None
        try:
            env = AMemGymEnv(
                scenarios=[script.scenario],
                capacity="all" if capacity is None else capacity,
                top_k="all" if top_k < 0 else top_k,
                diagnosis=self.game.diagnosis,
                question_blind=self.game.question_blind,
                user=user if trace is None else trace.follow_up,
                embedder=self.embedder,
                store=self.store(script),
            )
            if self.game.upper_bound:
                record(reference(script, models))
            replies = None if trace is None else trace.reply
            begin = None if user is None else user.begin
            options = {"script": script}
            play(agent, env, record, options=options, replies=replies, meanwhile=begin)
            digest = env.episode.digest()
        except TransportError as failure:
            error, reason = str(failure), failure.reason
        except BudgetExceeded as failure:
            error = self.stopped = str(failure)
            reason = failure.reason
        finally:
            if user is not None:
                user.settle()
            if env is not None:
                recall = env.index_recall
                env.close()
        record(
            EndEvent(
                digest,
                error,
                reason,
                recall,
                dict(sorted(models.causes.items())),
                getattr(models.backend("exam"), "unrecognised", 0),
                0 if user is None else user.failures,
            )
        )
