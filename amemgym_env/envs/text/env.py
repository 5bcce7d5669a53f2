"""`AMemGym-v0`: the episode as a Gymnasium environment with text in and text out."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any, Literal

import gymnasium as gym

from amemgym_env.agent import Exam, Probe, Turn
from amemgym_env.envs.arguments import Limit, checked_limit, checked_scenarios, one_of
from amemgym_env.envs.rewards import Floats, accuracies, accuracy, reward, scores_of
from amemgym_env.envs.text import actions, spaces
from amemgym_env.envs.text.info import Info, missing_and_surplus, step_info, truth
from amemgym_env.envs.text.observations import (
    Observation,
    Observer,
    exam_from,
    probe_from,
    turn_from,
)
from amemgym_env.envs.text.render import transcript, wrapped
from amemgym_env.envs.text.user import UserModel, UserVoice
from amemgym_env.episode import Episode
from amemgym_env.errors import BackendError, ConfigError, EpisodeOver
from amemgym_env.memory.bank import Applied, Bank
from amemgym_env.memory.embedding import DEFAULT, Embedder
from amemgym_env.memory.index import MemoryIndex, NumpyStore, ReadOnlyView, StoreFactory
from amemgym_env.scenarios.difficulty import Difficulty, named_difficulty
from amemgym_env.scenarios.model import Scenario
from amemgym_env.scenarios.schedule import Schedule


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

    In vector environments texts batch as tuples; `AsyncVectorEnv` needs `shared_memory=False`.

    Action, a dict: see `actions.py`. Reward: see `info.reward`. `terminated` at the scenario's
    end; `truncated` at `max_steps`, or when embedding, store or budget fails (`info["error"]` with
    `info["reason"]`, see `errors.Reason`).

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
        quiet_messages: str | None = None,
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
        level = named_difficulty(difficulty, quiet_messages)
        self.scenarios = checked_scenarios(scenarios, limit)
        self.capacity = checked_limit("capacity", capacity, level.capacity, least=1)
        self.top_k = checked_limit("top_k", top_k, level.top_k, least=0)
        self.reward_mode = one_of("reward", reward, ("period", "terminal"))
        self.max_steps = checked_limit("max_steps", max_steps, None, least=1)
        self.render_mode = one_of("render_mode", render_mode, (None, "ansi", "human"))
        self.diagnosis, self.question_blind, self.privileged = diagnosis, question_blind, privileged
        self._schedule = Schedule(
            self.scenarios,
            difficulty=level,
            rounds_initial=rounds_initial,
            rounds_update=rounds_update,
            shuffle_choices=shuffle_choices,
        )
        self._user = UserVoice(user)
        self._index = MemoryIndex(embedder, store)
        self.view = ReadOnlyView(self._index)
        """The memory bank to look at: `entries()`, `search(text, k)`; stays valid over resets."""
        self.observation_space = spaces.observation_space()
        self.action_space = spaces.action_space()
        self._seed: int | None = None
        self._number = -1
        self._steps = 0
        self._ended = False
        self._exams: tuple[float | None, ...] = ()
        self._episode: Episode | None = None
        self.applied: tuple[Applied, ...] = ()
        """What became of the operations of the last step."""

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
        then all again in another. The script of episode n has the seed of `schedule.script_seed`;
        `options={"script": script}` gives it ready, as evaluations do.

        Raises:
            ConfigError: an unknown option or scenario.
        """
        super().reset(seed=seed)
        if seed is not None:
            self._seed, self._number = int(seed), -1
        elif self._seed is None:
            self._seed = int(self.np_random.integers(2**63))
        self._number += 1
        script = self._schedule.script(self._seed, self._number, options or {})
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
        spoken, spent = self._user.follow_up(episode, read.reply)
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
            info["error"] = f"{type(error).__name__}: {error}"
            info["reason"] = error.reason
        if self._ended:
            info["hash"] = after.digest()
        self._print(episode.position, told=True)
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

    @property
    def index_recall(self) -> tuple[int, int]:
        """Nearest entries that an approximate store found, and those it was asked for, or zeros."""
        return self._index.recall

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
            "user": [self._user.calls, self._user.failures],
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
            script = self._episode.script if self._episode is not None else None
            if script is None or script.key != state["episode"]["script"]:
                script = self._schedule.build(state["scenario"], state["script_seed"])
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
        self._user.calls, self._user.failures = calls, failures
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
        self._user.calls = self._user.failures = 0

    def _observe(self) -> tuple[Observation, BackendError | None]:
        """Return the observation, and the error when entries could not be retrieved for it."""
        episode = self.episode
        try:
            return self._observer.observe(episode), None
        except BackendError as error:
            return self._observer.observe(episode, retrieve=False), error

    def _info(
        self,
        applied: tuple[Applied, ...] = (),
        scores: Floats | None = None,
        missing: int = 0,
        surplus: int = 0,
    ) -> Info:
        info = step_info(self.episode, self._exams, applied, scores, missing, surplus)
        info["usage"] = {"user": {"calls": self._user.calls, "failures": self._user.failures}}
        if self.privileged:
            info["truth"] = truth(self.episode, scores)
        return info

    def _print(self, start: int, told: bool = False) -> None:
        if self.render_mode == "human":
            shown = transcript(self.episode, marks=self.privileged, start=start, told=told)
            print(wrapped(shown))
