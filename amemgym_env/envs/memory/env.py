"""`AMemGymMemory-v0` and `AMemGymSlots-v0`: memory management with numeric observations.

The same `Episode` as `AMemGym-v0` without text: the message of each round is stored as it is shown,
or not. An entry's turn is the number of the round that wrote it, and the index of its rows in the
tables.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from typing import Any, ClassVar, Self

import gymnasium as gym
import numpy as np
import numpy.typing as npt
from gymnasium import spaces

from amemgym_env.agent import Operation, Phase
from amemgym_env.envs.memory.copies import copied
from amemgym_env.envs.memory.expected_reward import Expectation
from amemgym_env.envs.memory.settings import MemoryEnvSettings
from amemgym_env.envs.memory.tables import shown_texts
from amemgym_env.envs.rewards import ExpectedRewards
from amemgym_env.envs.series import EpisodeSeries, checked_seed
from amemgym_env.episode import Action, Episode
from amemgym_env.errors import ConfigError, EpisodeOver
from amemgym_env.memory.bank import Bank
from amemgym_env.policies.actions import (
    MemoryAction,
    checked_action,
    legal_memory_actions,
    legal_slot_actions,
    memory_operations,
    slot_action_count,
    slot_operations,
)
from amemgym_env.policies.features import (
    Floats,
    ObservationInputs,
    memory_observation,
    nearest_entry,
    slots_observation,
)
from amemgym_env.policies.wording import LIMIT

Info = dict[str, Any]
_EXAM = Action()


class BaseMemoryEnv(gym.Env[Floats, np.int64], ABC):
    """Base of both environments: everything but the actions and the observation.

    Info at `reset`: scenario (id) and seed (of the script). Info at a step: accuracy (expected, in
    [0, 1]) when it ends a period; masked (True) when its action was masked and played as NOOP; in
    the last step accuracies (of all exams) and masked_actions (their number in the episode).
    """

    metadata: ClassVar[dict[str, Any]] = {"render_modes": []}  # type: ignore[misc]

    def __init__(self, scenarios: Any = "train", **settings: Any) -> None:
        self.settings = MemoryEnvSettings.of(scenarios, **settings, keep_scripts=True)
        self.pool = self.settings.pool
        self.features = self.pool.features
        self.render_mode = None
        self._series = EpisodeSeries(self.settings.max_steps)
        self._rewards = ExpectedRewards(self.settings.reward)
        self._masked = 0
        self._row = -1
        self._actions = 0
        self._episode: Episode | None = None
        self.pool.join(self)

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        """Return a copy that continues exactly as the original, with a pool of its own."""
        return copied(self, memo)

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Take over a state, and protect the pool's row in use."""
        vars(self).update(state)
        self.pool.join(self)

    @property
    def episode(self) -> Episode:
        """The current episode.

        Raises:
            EpisodeOver: before the first `reset()`.
        """
        if self._episode is None:
            raise EpisodeOver("no episode has begun; call reset() first")
        return self._episode

    def rows_in_use(self) -> Iterable[int]:
        """Return the pool's row of the current episode."""
        return () if self._row < 0 else (self._row,)

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Floats, Info]:
        """Begin the next episode; `seed` begins a new series of episodes.

        `options={"scenario": id}` names the scenario. Episode n plays a script of the pool that
        depends on the seed and n alone.

        Raises:
            ConfigError: an unknown option or scenario.
        """
        chosen = None if seed is None else checked_seed(seed)
        super().reset(seed=chosen)
        self._begin(self._drawn(self._series.begin(chosen, self.np_random), options or {}))
        self._episode = Episode.start(
            self.pool.script(self._row), Bank(capacity=self.settings.capacity)
        )
        self._to_next_round()
        self._rewards = ExpectedRewards(self.settings.reward)
        self._masked = 0
        return self._observe(), self._reset_info()

    def _drawn(self, seed: int, options: Mapping[str, Any]) -> int:
        unknown = [name for name in options if name != "scenario"]
        if unknown:
            raise ConfigError(f"options: expected 'scenario' alone, found {unknown[0]!r}")
        if "scenario" in options:
            rows = self.pool.rows_of(options["scenario"])
            return rows[self._series.number % len(rows)]
        return self.pool.draw(seed, self._series.number)

    def _begin(self, row: int) -> None:
        self._row = row
        script = self.pool.script(row)
        tables = self.pool.tables(row)
        self._shown = shown_texts(script)
        self._texts = tables.rows
        self._similarity = tables.similarity
        self._known = tables.questions_known.tolist()
        self._questions = tables.nearest_question.tolist()
        self._expectation = Expectation(tables, self.settings.top_k, self.settings.confusion)
        self._embedding = tables.embedding

    def _reset_info(self) -> Info:
        script = self.episode.script
        return {"scenario": script.scenario.id, "seed": script.seed}

    def step(self, action: Any) -> tuple[Floats, float, bool, bool, Info]:
        """Apply an action to the current message, and go on to the next.

        Raises:
            ActionError: not an integer of the action space.
            EpisodeOver: the episode has ended, or none has begun.
        """
        episode = self._episode
        if episode is None or self._series.ended:
            raise EpisodeOver("the episode is over; call reset() to begin another")
        chosen = checked_action(action, self._actions)
        info: Info = {}
        operations = self._operations(chosen, episode)
        if chosen and not operations:  # a legal action writes something
            self._masked += 1
            info["masked"] = True
        self._episode = episode.advance(Action("", operations)).episode
        accuracies = self._to_next_round()
        terminated = self._episode.over
        reward = 0.0
        if accuracies or terminated:
            reward = self._rewards.pay(accuracies, terminated, info)
        truncated = self._series.step(terminated)
        if terminated or truncated:
            info["masked_actions"] = self._masked
        return self._observe(), reward, terminated, truncated, info

    def _to_next_round(self) -> list[float]:
        """Hold the exams before the next round; return their expected accuracies."""
        episode = self.episode
        places, position = episode.places, episode.position
        if position >= len(places) or places[position].phase is not Phase.EXAM:
            return []
        accuracies: list[float] = []
        entries = [entry.turn + 1 for entry in episode.bank.entries]
        while not episode.over and episode.place.phase is Phase.EXAM:
            accuracies.append(self._expectation.accuracy(entries, episode.place.period))
            episode = episode.advance(_EXAM).episode
        self._episode = episode
        return accuracies

    def _inputs(self, episode: Episode) -> ObservationInputs:
        turn = episode.turn
        turns = [entry.turn for entry in episode.bank.entries]
        numbers = [written + 1 for written in turns]
        row = self._similarity[turn + 1].tolist()
        questions = self._questions
        return ObservationInputs(
            self._texts[turn + 1],
            self._texts,
            numbers,
            [row[number] for number in numbers],
            turns,
            turn,
            self.settings.capacity,
            self._known[turn + 1],
            questions[turn + 1],
            [questions[number] for number in numbers],
        )

    def get_state(self) -> dict[str, Any]:
        """Return a JSON snapshot of the episode with its memory, and of the series of episodes."""
        episode = self.episode
        return {
            "scenario": episode.script.scenario.id,
            "script_seed": episode.script.seed,
            "episode": episode.to_json(),
            "accuracies": list(self._rewards.accuracies),
            "masked": self._masked,
            **self._series.get_state(self.np_random),
        }

    def set_state(self, state: Mapping[str, Any]) -> tuple[Floats, Info]:
        """Continue from a snapshot of an environment with the same pool and settings.

        Raises:
            ConfigError: the snapshot is of another kind, or its script is not in the pool.
        """
        try:
            rows = self.pool.rows_of(state["scenario"])
            row = next(
                (row for row in rows if self.pool.script(row).seed == state["script_seed"]), None
            )
            if row is None:
                raise ConfigError(
                    f"snapshot: expected a script of the pool, found scenario "
                    f"{state['scenario']!r} with script seed {state['script_seed']!r}"
                )
            episode = Episode.restore(self.pool.script(row), state["episode"])
            accuracies, masked = [float(a) for a in state["accuracies"]], int(state["masked"])
        except (KeyError, TypeError, ValueError) as error:
            raise ConfigError(
                f"snapshot: expected the return value of get_state(), found {error!r} in it"
            ) from error
        self._series.set_state(state, self.np_random)
        self._begin(row)
        self._episode, self._masked = episode, masked
        self._rewards = ExpectedRewards(self.settings.reward, accuracies)
        return self._observe(), self._reset_info()

    @abstractmethod
    def action_masks(self) -> npt.NDArray[np.bool_]:
        """Return which actions are legal now, shape (actions,); action 0 always is."""

    @abstractmethod
    def _operations(self, action: int, episode: Episode) -> tuple[Operation, ...]:
        """Return the operations of an action in the current round; none when it is masked."""

    @abstractmethod
    def _observe(self) -> Floats:
        """Return the observation of the current round."""


class AMemGymMemoryEnv(BaseMemoryEnv):
    """The user's message is a candidate: skip, add, replace the nearest entry, or delete it.

    Arguments: see `settings.py`. Actions: see `policies/actions.py`. Observation: a float32 Box,
    shape (features,), columns `feature_names`; all 0 after the end. Reward: the expected accuracy
    of the exam in the last round of each period, in [0, 1], else 0.
    """

    def __init__(self, scenarios: Any = "train", **settings: Any) -> None:
        super().__init__(scenarios, **settings)
        self.feature_names = self.features.feature_names
        self.observation_space = spaces.Box(-LIMIT, LIMIT, (len(self.feature_names),), np.float32)
        self._actions = len(MemoryAction)
        self.action_space = spaces.Discrete(self._actions)

    def action_masks(self) -> npt.NDArray[np.bool_]:
        """Return which of the four actions are legal now, shape (4,)."""
        return np.array(legal_memory_actions(len(self.episode.bank.entries)))

    def _operations(self, action: int, episode: Episode) -> tuple[Operation, ...]:
        entries = episode.bank.entries
        near = 0
        if action >= MemoryAction.UPDATE and entries:
            row = self._similarity[episode.turn + 1].tolist()
            near = nearest_entry([row[entry.turn + 1] for entry in entries])
        return memory_operations(
            action, self._shown[episode.turn], entries, self.settings.capacity, near
        )

    def _observe(self) -> Floats:
        episode = self.episode
        if episode.over:
            return np.zeros(len(self.feature_names), np.float32)
        observation = memory_observation(self.features, self._inputs(episode))
        if self._embedding is not None:
            vector = self._embedding[episode.turn + 1] / np.float32(127)
            observation = np.concatenate([observation, vector])
        return observation


class AMemGymSlotsEnv(BaseMemoryEnv):
    """The action also chooses the entry to replace or delete.

    Arguments: see `settings.py`. Actions: see `policies/actions.py`. Observation: a float32 Box,
    shape (1 + capacity, columns): the message (`message_names`), then the entries in the bank's
    order (`slot_names`), rows of 0 for empty places. Reward as in `AMemGymMemory-v0`.
    """

    def __init__(self, scenarios: Any = "train", **settings: Any) -> None:
        super().__init__(scenarios, **settings)
        self.message_names = self.features.message_names
        self.slot_names = self.features.slot_names
        capacity = self.settings.capacity
        self.observation_space = spaces.Box(
            -LIMIT, LIMIT, (1 + capacity, len(self.slot_names)), np.float32
        )
        self._actions = slot_action_count(capacity)
        self.action_space = spaces.Discrete(self._actions)

    def action_masks(self) -> npt.NDArray[np.bool_]:
        """Return which actions are legal now, shape (2 + 2 * capacity,)."""
        return np.array(legal_slot_actions(len(self.episode.bank.entries), self.settings.capacity))

    def _operations(self, action: int, episode: Episode) -> tuple[Operation, ...]:
        message = self._shown[episode.turn]
        return slot_operations(action, message, episode.bank.entries, self.settings.capacity)

    def _observe(self) -> Floats:
        episode = self.episode
        if episode.over:
            shape = (1 + self.settings.capacity, len(self.slot_names))
            return np.zeros(shape, np.float32)
        numbers = [entry.turn + 1 for entry in episode.bank.entries]
        between = self._similarity[np.ix_(numbers, numbers)]
        return slots_observation(self.features, self._inputs(episode), between)
