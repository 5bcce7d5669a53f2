"""Base of the native vector environments: series of episodes, autoreset, infos, snapshots.

The rules of an episode are in `batch_state.py`, actions and observations in `vector_env.py`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt
from gymnasium import spaces
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space

from amemgym_env.envs.memory.batch_infos import BatchSnapshot, checked_autoreset, final_infos
from amemgym_env.envs.memory.batch_state import ArrayEpisodes, Bools, Ints, Snapshot
from amemgym_env.envs.memory.copies import copied
from amemgym_env.envs.memory.episode_draws import series_seeds
from amemgym_env.envs.memory.settings import MemoryEnvSettings
from amemgym_env.envs.series import checked_seed
from amemgym_env.errors import ActionError, ConfigError, EpisodeOver

Info = dict[str, Any]
Floats = npt.NDArray[np.float32]
Rewards = npt.NDArray[np.float64]
Step = tuple[Floats, Rewards, Bools, Bools, Info]


class BaseMemoryVectorEnv(VectorEnv[Floats, npt.NDArray[np.integer[Any]], Any], ABC):
    """Base of both vector environments: everything but the actions and the observation.

    Args:
        num_envs: number N of parallel episodes, >= 1.
        scenarios, settings: see `settings.py`.
        max_episode_steps: another name of `max_steps`, as `gymnasium.make_vec` calls it.
        autoreset_mode: NEXT_STEP (the step after the last of an episode begins a new one, its
            action is ignored, its reward 0) or SAME_STEP (the last step returns the new episode's
            observation; `final_obs` and `final_info` hold the old one's).

    Infos are those of the scalar environments, as arrays with masks (`accuracy`, `_accuracy`).
    """

    metadata: ClassVar[dict[str, Any]] = {  # type: ignore[misc]
        "render_modes": [],
        "autoreset_mode": AutoresetMode.NEXT_STEP,
    }

    def __init__(
        self,
        num_envs: int = 1,
        scenarios: Any = "train",
        *,
        max_episode_steps: int | None = None,
        autoreset_mode: AutoresetMode | str = AutoresetMode.NEXT_STEP,
        render_mode: None = None,
        **settings: Any,
    ) -> None:
        if isinstance(num_envs, bool) or not isinstance(num_envs, int) or num_envs < 1:
            raise ConfigError(f"num_envs: expected an integer of at least 1, found {num_envs!r}")
        if max_episode_steps is not None:
            settings.setdefault("max_steps", max_episode_steps)
        self.settings = MemoryEnvSettings.of(scenarios, **settings)
        self.pool = self.settings.pool
        self.features = self.pool.features
        self.num_envs = num_envs
        self.render_mode = render_mode
        self.autoreset_mode = checked_autoreset(autoreset_mode)
        self.metadata = {**self.metadata, "autoreset_mode": self.autoreset_mode}  # type: ignore[misc]
        self.episodes = ArrayEpisodes(
            self.pool,
            num_envs,
            self.settings.capacity,
            self.settings.top_k,
            self.settings.confusion,
        )
        self._seeds: npt.NDArray[np.uint64] | None = None
        self._numbers = np.zeros(num_envs, np.uint64)
        self._steps = np.zeros(num_envs, np.int64)
        self._ended = np.zeros(num_envs, np.bool_)
        self._exams = np.zeros((self.pool.periods, num_envs))  # accuracies so far, by exam
        self._held = np.zeros(num_envs, np.int64)  # exams so far
        self._masked = np.zeros(num_envs, np.int64)  # masked actions of the episode
        self.single_action_space = self._action_space()
        self._actions = int(self.single_action_space.n)
        self.single_observation_space = self._observation_space()
        self.action_space = batch_space(self.single_action_space, num_envs)
        self.observation_space = batch_space(self.single_observation_space, num_envs)
        self.pool.join(self)

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        """Return a copy that continues exactly as the original, with a pool of its own."""
        return copied(self, memo)

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Take over a state, and protect the pool's rows in use."""
        vars(self).update(state)
        self.pool.join(self)

    def rows_in_use(self) -> Iterable[int]:
        """Return the pool's rows of the current episodes."""
        return () if self._seeds is None else np.unique(self.episodes.script).tolist()

    def reset(
        self,
        *,
        seed: int | Sequence[int | None] | None = None,
        options: dict[str, Any] | None = None,
    ) -> tuple[Floats, Info]:
        """Begin new episodes; `seed` begins new series.

        An integer seeds all series through `series_seeds`, so that batches of different seeds share
        none; a sequence of N integers (or None) seeds them one by one.

        `options={"reset_mask": (N,) bools}` leaves the episodes outside of it as they are;
        `options={"scenario": id}` names the scenario of all.

        Raises:
            ConfigError: an unknown option or scenario, or a wrong number of seeds.
        """
        options = dict(options or {})
        mask = options.pop("reset_mask", None)
        which = self.episodes.columns if mask is None else mask.nonzero()[0]
        self._set_seeds(seed, which)
        self._begin(which, options)
        self._ended[which] = False
        return self._observe(self.episodes.over()), self._reset_info({}, which)

    def _set_seeds(self, seed: int | Sequence[int | None] | None, which: Ints) -> None:
        if seed is not None and (
            isinstance(seed, str) or not isinstance(seed, Sequence | np.ndarray)
        ):
            number = checked_seed(seed)
            super().reset(seed=number)
            given = series_seeds(number, self.num_envs)
        elif self._seeds is None or seed is not None:
            drawn = self.np_random.integers(2**63, size=self.num_envs)
            given = drawn.astype(np.uint64) if self._seeds is None else self._seeds.copy()
            if seed is not None:
                if len(seed) != self.num_envs:
                    raise ConfigError(f"seed: expected {self.num_envs} seeds, found {len(seed)}")
                named = np.array([item is not None for item in seed])
                given[named] = np.array([checked_seed(s) for s in seed if s is not None], np.uint64)
                which = np.intersect1d(which, named.nonzero()[0])
        else:
            return
        if self._seeds is None:
            self._seeds, which = given, self.episodes.columns
        self._seeds[which] = given[which]
        self._numbers[which] = 0

    def _begin(self, which: Ints, options: dict[str, Any] | None = None) -> None:
        """Begin the next episode of each of these, from the pool as it is now."""
        assert self._seeds is not None
        numbers = self._numbers[which]
        if options:
            rows = self._named(options, numbers)
        else:
            rows = self.pool.draw_many(self._seeds[which], numbers)
        self.episodes.begin(which, rows)
        missing = self.pool.periods - len(self._exams)
        if missing > 0:  # the pool has got a longer scenario
            self._exams = np.vstack([self._exams, np.zeros((missing, self.num_envs))])
        self._numbers[which] = numbers + np.uint64(1)
        self._steps[which] = 0
        self._held[which] = 0
        self._masked[which] = 0

    def _named(self, options: dict[str, Any], numbers: npt.NDArray[np.uint64]) -> Ints:
        unknown = [name for name in options if name != "scenario"]
        if unknown:
            raise ConfigError(f"options: expected 'scenario' or 'reset_mask', found {unknown[0]!r}")
        rows = np.array(self.pool.rows_of(options["scenario"]))
        chosen: Ints = rows[numbers.astype(np.int64) % len(rows)]
        return chosen

    def step(self, actions: npt.NDArray[np.integer[Any]]) -> Step:
        """Apply actions, (N,), to the current messages, and go on to the next.

        Raises:
            ActionError: not N integers of the action space.
            EpisodeOver: before the first `reset()`.
        """
        if self._seeds is None:
            raise EpisodeOver("no episode has begun; call reset() first")
        chosen = self._checked(actions)
        episodes = self.episodes
        episodes.follow_pool()
        infos: Info = {}
        resetting = np.count_nonzero(self._ended)
        if resetting:
            chosen = np.where(self._ended, 0, chosen)
        masked = self.apply(chosen)
        if masked is not None and np.count_nonzero(masked):
            infos["masked"], infos["_masked"] = masked, masked.copy()
            self._masked += masked
        self._steps += 1
        if resetting:
            which = self._ended.nonzero()[0]
            self._begin(which)
            self._reset_info(infos, which)
        terminated = episodes.over()
        reward = self._pay(terminated, infos)
        limit = self.settings.max_steps
        if limit is None:
            truncated = np.zeros(self.num_envs, np.bool_)
            ended = terminated
        else:
            truncated = (self._steps >= limit) & ~terminated
            ended = terminated | truncated
        if np.count_nonzero(ended):
            self._report(ended, terminated, infos)
        if self.autoreset_mode is AutoresetMode.SAME_STEP:
            if ended.any():
                infos = self._start_over(ended, truncated, infos)
            return self._observe(), reward, terminated, truncated, infos
        self._ended = ended.copy()
        over = terminated if np.count_nonzero(terminated) else None
        return self._observe(over), reward, terminated, truncated, infos

    def _pay(self, terminated: Bools, infos: Info) -> Rewards:
        """Return the rewards of the exams of this step, and keep their accuracies."""
        reward = np.zeros(self.num_envs)
        mask, which, total, number, each = self.episodes.exams()
        if which.size:
            accuracy = np.zeros(self.num_envs)
            accuracy[which] = total if number is None else total / number
            infos["accuracy"], infos["_accuracy"] = accuracy, mask
            for held, accuracies in each:
                self._exams[self._held[held], held] = accuracies
                self._held[held] += 1
            if self.settings.reward == "period":
                reward[which] = total
            else:
                for index in terminated.nonzero()[0].tolist():
                    accuracies = self._exams[: self._held[index], index].tolist()
                    reward[index] = sum(accuracies) / len(accuracies)
        return reward

    def _report(self, ended: Bools, terminated: Bools, infos: Info) -> None:
        """Complete the infos of the episodes that end with this step."""
        infos["masked_actions"] = np.where(ended, self._masked, 0)
        infos["_masked_actions"] = ended.copy()
        if terminated.any():
            accuracies = np.full(self.num_envs, None, dtype=object)
            for index in terminated.nonzero()[0].tolist():
                accuracies[index] = tuple(self._exams[: self._held[index], index].tolist())
            infos["accuracies"], infos["_accuracies"] = accuracies, terminated.copy()

    def _start_over(self, ended: Bools, truncated: Bools, infos: Info) -> Info:
        """SAME_STEP: move the last observations and infos to `final_*`, and begin new episodes."""
        which = ended.nonzero()[0]
        if truncated.any():
            final = list(self._observe(self.episodes.over())[which])
        else:
            final = list(np.zeros((which.size, *self.single_observation_space.shape), np.float32))  # type: ignore[misc]
        last = final_infos(infos, ended)
        observations = np.full(self.num_envs, None, dtype=object)
        for place, observation in zip(which.tolist(), final, strict=True):
            observations[place] = observation
        infos |= {
            "final_obs": observations,
            "_final_obs": ended.copy(),
            "final_info": last,
            "_final_info": ended.copy(),
        }
        self._begin(which)
        return self._reset_info(infos, which)

    def _reset_info(self, infos: Info, which: Ints) -> Info:
        rows = self.episodes.script[which]
        infos["scenario"] = np.empty(self.num_envs, object)  # of None
        infos["scenario"][which] = [self.pool.scenario_ids[row] for row in rows.tolist()]
        infos["seed"] = np.zeros(self.num_envs, np.int64)
        infos["seed"][which] = self.pool.script_seeds[rows]
        mask = np.zeros(self.num_envs, np.bool_)
        mask[which] = True
        infos["_scenario"], infos["_seed"] = mask, mask.copy()
        return infos

    def _checked(self, actions: Any) -> Ints:
        try:
            array = np.asarray(actions)
        except ValueError:  # rows of different lengths
            array = np.zeros(0, object)
        if array.shape != (self.num_envs,) or array.dtype.kind not in "iu":
            raise ActionError(
                f"actions: expected {self.num_envs} integers, found an array of shape "
                f"{array.shape} and type {array.dtype}"
            )
        size = self._actions
        chosen = array.astype(np.int64, copy=False)
        # As unsigned integers, negative ones are large.
        if chosen.view(np.uint64).max() >= size:
            raise ActionError(
                f"actions: expected integers in 0..{size - 1}, found {array.min()}..{array.max()}"
            )
        return chosen

    def snapshot(self) -> BatchSnapshot:
        """Return a copy of the state, for `restore` and `fork`.

        Raises:
            EpisodeOver: before the first `reset()`.
        """
        if self._seeds is None:
            raise EpisodeOver("no episode has begun; call reset() first")
        return BatchSnapshot(
            self.episodes.snapshot(),
            self._seeds.copy(),
            self._numbers.copy(),
            self._steps.copy(),
            self._ended.copy(),
            self._exams.copy(),
            self._held.copy(),
            self._masked.copy(),
        )

    def restore(self, snapshot: BatchSnapshot) -> Floats:
        """Continue from a snapshot of an environment with the same pool and settings.

        The pool must not have been refreshed in between. Returns the observation.
        """
        if len(snapshot.seeds) != self.num_envs:
            raise ConfigError(
                f"snapshot: expected {self.num_envs} environments, found {len(snapshot.seeds)}"
            )
        self.episodes.follow_pool()
        self.episodes.restore(snapshot.episodes)
        self._seeds, self._numbers = snapshot.seeds.copy(), snapshot.numbers.copy()
        self._steps, self._ended = snapshot.steps.copy(), snapshot.ended.copy()
        self._exams, self._held = snapshot.exams.copy(), snapshot.held.copy()
        self._masked = snapshot.masked.copy()
        return self._observe(self.episodes.over())

    def fork(self, which: Sequence[int] | Ints | None = None) -> BaseMemoryVectorEnv:
        """Return a new environment that continues copies of these episodes (None: of all).

        An index may come several times, so one state can be tried with several actions.
        """
        chosen = self.episodes.columns if which is None else np.asarray(which, np.int64)
        other = type(self)(
            len(chosen),
            self.pool,
            autoreset_mode=self.autoreset_mode,
            capacity=self.settings.capacity,
            top_k=self.settings.top_k,
            confusion=self.settings.confusion,
            reward=self.settings.reward,
            max_steps=self.settings.max_steps,
        )
        state = self.snapshot()
        script, turn, slots, held = state.episodes
        other.restore(
            BatchSnapshot(
                Snapshot(script[chosen], turn[chosen], slots[:, chosen], held[chosen]),
                state.seeds[chosen],
                state.numbers[chosen],
                state.steps[chosen],
                state.ended[chosen],
                state.exams[:, chosen],
                state.held[chosen],
                state.masked[chosen],
            )
        )
        return other

    @abstractmethod
    def action_masks(self) -> Bools:
        """Return which actions are legal now, shape (N, actions); action 0 always is."""

    @abstractmethod
    def _action_space(self) -> spaces.Discrete:
        """Return the action space of one environment."""

    @abstractmethod
    def _observation_space(self) -> spaces.Box:
        """Return the observation space of one environment."""

    @abstractmethod
    def apply(self, actions: Ints) -> Bools | None:
        """Apply valid actions, (N,), without rewards; return which were masked, (N,), or None.

        Low-level transition for lookahead on forks; use `step` to play.
        """

    @abstractmethod
    def _observe(self, over: Bools | None = None) -> Floats:
        """Return all observations; `over`, (N,), marks episodes that are over."""
