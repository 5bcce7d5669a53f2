"""`AMemGym-v0`: the episode as a Gymnasium environment with text in and text out."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal

import gymnasium as gym

from amemgym_env import actions, spaces
from amemgym_env.embedding import DEFAULT, Embedder
from amemgym_env.env_settings import Limit, checked_limit, checked_scenarios, one_of
from amemgym_env.episode import Episode
from amemgym_env.errors import BackendError, BudgetExceeded, ConfigError, EpisodeOver, ParseError
from amemgym_env.info import (
    Info,
    accuracies,
    accuracy,
    missing_and_surplus,
    reward,
    scores_of,
    step_info,
    truth,
)
from amemgym_env.memory import Applied, Bank
from amemgym_env.observations import Observation, Observer, exam_from, probe_from, turn_from
from amemgym_env.scenario import Scenario
from amemgym_env.schedule import scenario_index, script_seed
from amemgym_env.scoring import Floats
from amemgym_env.script import Difficulty, Script, build, named_difficulty
from amemgym_env.stores import MemoryIndex, NumpyStore, ReadOnlyView, StoreFactory
from amemgym_env.transcript import transcript
from amemgym_env.turn import Exam, Probe, Turn

UserModel = Callable[[Episode, str], str | None]
"""(episode before the step, the assistant's reply) -> the user's next message, or None."""


class AMemGymEnv(gym.Env[Observation, dict[str, Any]]):
    """A simulated user talks, an assistant answers and keeps a memory, exams test the memory.

    Each period has its sessions of some rounds, then an exam (all questions in one step), then,
    with `diagnosis`, a probe (the values of all variables of each question). Paper: AMemGym, §3.4.

    | argument | default | meaning |
    |---|---|---|
    | scenarios | "tiny" | name of a set, path of a file, or a sequence of `Scenario` |
    | limit | None | keep the first `limit` >= 1 scenarios; None: all |
    | difficulty | "none" | none, easy, default, hard, or a `Difficulty` |
    | capacity | None | entries in the bank: >= 1, "all" (unbounded), None: the difficulty's |
    | top_k | None | entries retrieved: >= 0, "all", None: the difficulty's |
    | rounds_initial | 1 | rounds a session in period 0, >= 1 |
    | rounds_update | 2 | rounds a session in later periods, >= 1 |
    | shuffle_choices | True | choices in an order keyed by (script seed, scenario, question) |
    | diagnosis | False | a probe step after each exam |
    | reward | "period" | each exam pays its accuracy; "terminal": the last pays the mean |
    | question_blind | False | keep the questions of past exams out of `asked` |
    | privileged | False | truth in `info["truth"]`; never for agents that are compared |
    | max_steps | None | truncate after this many steps >= 1 |
    | user | None | words follow-ups, `(episode, reply) -> str or None`; None: the script's |
    | embedder | `embedding.DEFAULT` | turns texts into integer vectors |
    | store | `NumpyStore` | makes the store that searches the memory, `width -> Store` |
    | render_mode | None | "ansi": `render()` returns text; "human": steps are printed |

    Observation, a dict of immutable values; each field is there in every phase, what does not
    apply is 0 or empty:

    | field | content |
    |---|---|
    | phase | 0 dialogue, 1 exam, 2 probe (`turn.Phase`) |
    | period, session, round | where the episode stands, from 0 |
    | time | the session's scenario time, or the period's end (ISO 8601) |
    | message | the user's utterance |
    | memory | `Entry`s retrieved for it, most similar first; with "all", every one, oldest first |
    | stored | number of entries in the bank |
    | questions | exam: `Question`s (text, choices as shown, memory); probe: `ProbedQuestion`s |
    | asked | texts of the questions of past exams |

    Action, a dict: see `actions.py`. Reward: see `info.reward`. `terminated` at the scenario's
    end; `truncated` at `max_steps`, or when embedding, store or budget fails (`info["error"]`).

    Info: scenario (id), seed (of the script), operations (tuple of `memory.Applied`), applied and
    refused (their numbers), accuracy and scored (of an exam just answered; else None and 0),
    exams (accuracies so far), missing and surplus (answers of this step), usage (calls and
    failures of `user`), hash (of the episode, at its end).
    """

    metadata = {  # noqa: RUF012 - declared so by Gymnasium
        "render_modes": ["ansi", "human"],
        "render_fps": 4,
    }

    def __init__(
        self,
        scenarios: str | os.PathLike[str] | Sequence[Scenario] = "tiny",
        *,
        limit: int | None = None,
        difficulty: str | Difficulty = "none",
        capacity: Limit = None,
        top_k: Limit = None,
        rounds_initial: int = 1,
        rounds_update: int = 2,
        shuffle_choices: bool = True,
        diagnosis: bool = False,
        reward: Literal["period", "terminal"] = "period",
        question_blind: bool = False,
        privileged: bool = False,
        max_steps: int | None = None,
        user: UserModel | None = None,
        embedder: Embedder = DEFAULT,
        store: StoreFactory = NumpyStore,
        render_mode: str | None = None,
    ) -> None:
        level = named_difficulty(difficulty)
        self.scenarios = checked_scenarios(scenarios, limit)
        self.capacity = checked_limit("capacity", capacity, level.capacity, least=1)
        self.top_k = checked_limit("top_k", top_k, level.top_k, least=0)
        self.reward_mode = one_of("reward", reward, ("period", "terminal"))
        self.max_steps = checked_limit("max_steps", max_steps, None, least=1)
        self.render_mode = one_of("render_mode", render_mode, (None, "ansi", "human"))
        self.diagnosis, self.question_blind, self.privileged = diagnosis, question_blind, privileged
        self._script_settings: dict[str, Any] = {
            "difficulty": level,
            "rounds_initial": rounds_initial,
            "rounds_update": rounds_update,
            "shuffle_choices": shuffle_choices,
            "others": self.scenarios,
        }
        self._user = user
        self._index = MemoryIndex(embedder, store)
        self.view = ReadOnlyView(self._index)
        """The memory bank to look at: `entries()`, `search(text, k)`; stays valid over resets."""
        self.observation_space = spaces.observation_space()
        self.action_space = spaces.action_space()
        self._seed: int | None = None
        self._number = -1
        self._steps = 0
        self._ended = False
        self._user_calls = self._user_failures = 0
        self._episode: Episode | None = None
        self.applied: tuple[Applied, ...] = ()
        """What became of the operations of the last step."""
        # A wrong setting is refused here, before anything is played.
        self._script(self.scenarios[0], 0)

    @property
    def episode(self) -> Episode:
        """The episode as it stands: script, bank, and the record of exams and probes.

        Raises:
            EpisodeOver: before the first `reset()`.
        """
        if self._episode is None:
            raise EpisodeOver("no episode has begun; call reset() first")
        return self._episode

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Observation, Info]:
        """Begin the next episode; `seed` begins a new series of episodes.

        `options={"scenario": id}` names the scenario; otherwise each comes once in a drawn order,
        then all again in another. The script of episode n has the seed of `schedule.script_seed`.
        `options={"script": Script}` plays a script that is already built, as evaluations do.

        Raises:
            ConfigError: an unknown option or scenario.
        """
        super().reset(seed=seed)
        if seed is not None:
            self._seed, self._number = int(seed), -1
        elif self._seed is None:
            self._seed = int(self.np_random.integers(2**63))
        self._number += 1
        script = (options or {}).get("script")
        if not isinstance(script, Script):
            scenario = self._chosen(options or {}, self._seed)
            script = self._script(scenario, script_seed(self._seed, self._number))
        self._begin(Episode.start(script, Bank(capacity=self.capacity), self.diagnosis))
        observation, _ = self._observe()
        self._print(0)
        return observation, self._info()

    def step(self, action: Mapping[str, Any]) -> tuple[Observation, float, bool, bool, Info]:
        """Play one round, exam or probe.

        Raises:
            ActionError: a field that the phase reads has the wrong type; nothing was played.
            EpisodeOver: the episode has ended, or none has begun.
        """
        episode = self.episode
        if self._ended:
            raise EpisodeOver("the episode is over; call reset() to begin another")
        read = actions.read(action, episode.place.phase)
        spoken, spent = self._follow_up(episode, read.reply)
        after, applied, exam, _ = episode.advance(read, spoken)
        self._episode = after
        self._steps += 1
        self._index.follow(after.bank, applied)
        self.applied = applied
        scores = None if exam is None else scores_of(after, exam)
        if scores is not None:
            self._exams = (*self._exams, accuracy(scores))
        observation, error = self._observe()
        error = spent or error
        terminated = after.over
        limited = self.max_steps is not None and self._steps >= self.max_steps
        truncated = not terminated and (limited or error is not None)
        self._ended = terminated or truncated
        info = self._info(applied, scores, *missing_and_surplus(episode, read))
        if truncated and error is not None:
            info["error"] = error
        if self._ended:
            info["hash"] = after.digest()
        self._print(episode.position)
        return observation, reward(after, scores, self.reward_mode), terminated, truncated, info

    def turn(self) -> Turn:
        """Return the present user turn; ValueError in another phase."""
        return turn_from(self._observe()[0])

    def exam(self) -> Exam:
        """Return the present exam; ValueError in another phase."""
        return exam_from(self._observe()[0])

    def probe(self) -> Probe:
        """Return the present state query; ValueError in another phase."""
        return probe_from(self._observe()[0])

    def render(self) -> str | None:
        """Return the episode so far as text in mode "ansi"; "human" prints as it goes."""
        if self.render_mode != "ansi":
            return None
        return transcript(self.episode, marks=self.privileged)

    def close(self) -> None:
        """Release the store."""
        self._index.close()

    def get_state(self) -> dict[str, Any]:
        """Return a JSON snapshot of the episode with its memory, and of the series of episodes."""
        episode = self.episode
        return {
            "scenario": episode.script.scenario.id,
            "script_seed": episode.script.seed,
            "episode": episode.to_json(),
            "steps": self._steps,
            "ended": self._ended,
            "user": [self._user_calls, self._user_failures],
            "seed": self._seed,
            "number": self._number,
            "generator": self.np_random.bit_generator.state,
        }

    def set_state(self, state: Mapping[str, Any]) -> tuple[Observation, Info]:
        """Continue from a snapshot of an environment with the same scenarios and settings.

        Raises:
            ConfigError: the snapshot is of another kind, scenario or script.
        """
        try:
            scenario = self._chosen({"scenario": state["scenario"]}, 0)
            script = self._script(scenario, state["script_seed"])
            episode = Episode.restore(script, state["episode"])
            steps, ended, (calls, failures) = state["steps"], state["ended"], state["user"]
            seed, number = state["seed"], state["number"]
            self.np_random.bit_generator.state = state["generator"]
        except (KeyError, TypeError) as error:
            raise ConfigError(
                f"snapshot: expected what get_state() returned, found {error!r} wrong in it"
            ) from error
        self._seed, self._number = seed, number
        self._begin(episode)
        self._steps, self._ended = steps, ended
        self._user_calls, self._user_failures = calls, failures
        observation, _ = self._observe()
        return observation, self._info()

    def _begin(self, episode: Episode) -> None:
        self._episode = episode
        self._index.load(episode.bank)
        self._observer = Observer(episode.script, self._index, self.top_k, self.question_blind)
        self._steps = 0
        self._ended = False
        self.applied = ()
        self._exams = accuracies(episode)
        self._user_calls = self._user_failures = 0

    def _chosen(self, options: Mapping[str, Any], seed: int) -> Scenario:
        unknown = [name for name in options if name != "scenario"]
        if unknown:
            raise ConfigError(f"options: expected 'scenario' alone, found {unknown[0]!r}")
        if "scenario" not in options:
            return self.scenarios[scenario_index(len(self.scenarios), seed, self._number)]
        for scenario in self.scenarios:
            if scenario.id == options["scenario"]:
                return scenario
        some = [scenario.id for scenario in self.scenarios[:5]]
        raise ConfigError(
            f"scenario: expected an id of the {len(self.scenarios)} scenarios ({some} …), "
            f"found {options['scenario']!r}"
        )

    def _script(self, scenario: Scenario, seed: int) -> Script:
        return build(scenario, seed=seed, **self._script_settings)

    def _observe(self) -> tuple[Observation, str | None]:
        """Return the observation, and the error when entries could not be retrieved for it."""
        episode = self.episode
        try:
            return self._observer.observe(episode), None
        except BackendError as error:
            return self._observer.observe(episode, retrieve=False), _described(error)

    def _follow_up(self, episode: Episode, reply: str) -> tuple[str | None, str | None]:
        """Return the next follow-up in the user model's words, and the error that ends all."""
        if self._user is None or not episode.next_is_follow_up:
            return None, None
        self._user_calls += 1
        error = None
        try:
            text = self._user(episode, reply)
        except (BackendError, ParseError) as failure:
            text = None
            error = _described(failure) if isinstance(failure, BudgetExceeded) else None
        if text is None or not text.strip():
            self._user_failures += 1
            return None, error
        return actions.unicode(text), None

    def _info(
        self,
        applied: tuple[Applied, ...] = (),
        scores: Floats | None = None,
        missing: int = 0,
        surplus: int = 0,
    ) -> Info:
        info = step_info(self.episode, self._exams, applied, scores, missing, surplus)
        info["usage"] = {"user": {"calls": self._user_calls, "failures": self._user_failures}}
        if self.privileged:
            info["truth"] = truth(self.episode, scores)
        return info

    def _print(self, start: int) -> None:
        if self.render_mode == "human":
            print(transcript(self.episode, marks=self.privileged, start=start))


def _described(error: Exception) -> str:
    return f"{type(error).__name__}: {error}"
