"""The native batch is a stack of scalars, and it resets, reports and forks as Gymnasium says."""

from __future__ import annotations

from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.vector import AutoresetMode, SyncVectorEnv
from gymnasium.wrappers.vector import RecordEpisodeStatistics

from amemgym_env.envs.memory.pool import Pool
from amemgym_env.envs.memory.script_source import Scripts
from amemgym_env.errors import ActionError, ConfigError, EpisodeOver
from tests.envs.memory.cases import PAIRS, batch, few, pool, scalar

SETTINGS: dict[str, dict[str, Any]] = {
    "default": {},
    "cut short, terminal reward": {"max_steps": 41, "reward": "terminal", "top_k": 3},
    "one entry, reads all": {"capacity": 1, "top_k": "all", "confusion": 0.5},
    "more room than texts": {"capacity": 4096},
}
MODES = (AutoresetMode.NEXT_STEP, AutoresetMode.SAME_STEP)


def assert_equal(kind: str, mode: AutoresetMode, steps: int, num_envs: int, **settings: Any) -> int:
    """Step a batch and a stack of scalars side by side; return the number of episodes ended."""
    together = batch(kind, num_envs, autoreset_mode=mode, **settings)
    singles = [scalar(kind, **settings) for _ in range(num_envs)]
    seen, _ = together.reset(seed=[11 + i for i in range(num_envs)])
    assert np.array_equal(seen, [env.reset(seed=11 + i)[0] for i, env in enumerate(singles)])
    generator = np.random.default_rng(5)
    done = np.zeros(num_envs, bool)
    never = np.zeros(num_envs, bool)
    episodes = 0
    for step in range(steps):
        masks = together.action_masks()
        live = [env.action_masks() if not done[i] else masks[i] for i, env in enumerate(singles)]
        assert np.array_equal(masks, live)
        actions = generator.integers(0, together.single_action_space.n, num_envs)  # type: ignore[attr-defined]
        if step % 2:  # random slot actions are mostly illegal; these are not
            actions = np.array([generator.choice(np.flatnonzero(row)) for row in masks])
        seen, reward, terminated, truncated, infos = together.step(actions)
        for i, env in enumerate(singles):
            if mode is AutoresetMode.NEXT_STEP and done[i]:
                observation, info = env.reset()
                expected = (0.0, False, False)
                done[i] = False
                assert infos["scenario"][i] == info["scenario"]
                assert infos["seed"][i] == info["seed"]
            else:
                observation, *rest, info = env.step(int(actions[i]))
                expected = tuple(rest)
                done[i] = rest[1] or rest[2]
                episodes += int(done[i])
                where = infos
                if mode is AutoresetMode.SAME_STEP and done[i]:
                    assert np.array_equal(infos["final_obs"][i], observation)
                    where = infos["final_info"]
                    observation, _ = env.reset()
                for name in ("accuracy", "accuracies", "masked", "masked_actions"):
                    assert where.get(f"_{name}", never)[i] == (name in info), name
                    assert name not in info or where[name][i] == info[name]
            assert (reward[i], terminated[i], truncated[i]) == expected
            assert np.array_equal(seen[i], observation)
    return episodes


@pytest.mark.parametrize("settings", SETTINGS.values(), ids=SETTINGS)
@pytest.mark.parametrize("mode", MODES, ids=lambda mode: mode.value)
@pytest.mark.parametrize("kind", PAIRS)
def test_a_batch_equals_a_stack_of_scalars(
    kind: str, mode: AutoresetMode, settings: dict[str, Any]
) -> None:
    episodes = assert_equal(kind, mode, 140, 3, **settings)
    assert episodes >= 3


def test_a_batch_of_one_adds_in_the_same_order() -> None:
    assert assert_equal("memory", AutoresetMode.SAME_STEP, 300, 1) >= 2


@pytest.mark.evidence
@pytest.mark.parametrize("kind", PAIRS)
def test_a_batch_equals_a_stack_of_scalars_over_a_thousand_episodes(kind: str) -> None:
    episodes = 0
    for mode in MODES:
        for difficulty in ("easy", "hard"):
            shared = pool(difficulty)
            level = {"scenarios": shared, "capacity": 12, "top_k": 5, "confusion": 0.3}
            episodes += assert_equal(kind, mode, 2600, 16, **level)
    assert episodes >= 1000


@pytest.mark.parametrize("kind", PAIRS)
@pytest.mark.parametrize("mode", ["sync", "async", "vector_entry_point"])
def test_make_vec_gives_the_same_in_its_three_modes(kind: str, mode: str) -> None:
    name = {"memory": "AMemGymMemory-v0", "slots": "AMemGymSlots-v0"}[kind]
    env = gym.make_vec(name, 2, mode, scenarios=pool())
    other = batch(kind, 2)
    assert env.observation_space == other.observation_space
    try:
        assert np.array_equal(env.reset(seed=[3, 4])[0], other.reset(seed=[3, 4])[0])
        env.action_space.seed(1)
        for _ in range(150):
            action = env.action_space.sample()
            for mine, theirs in zip(env.step(action)[:4], other.step(action)[:4], strict=True):
                assert np.array_equal(mine, theirs)
    finally:
        env.close()


def test_same_step_infos_are_those_of_sync_vector_env() -> None:
    sync = SyncVectorEnv([lambda: scalar("memory")] * 3, autoreset_mode=AutoresetMode.SAME_STEP)
    native = batch("memory", 3, autoreset_mode="SameStep")
    sync.reset(seed=[2, 3, 4])
    native.reset(seed=[2, 3, 4])
    compared = 0
    for _ in range(260):
        action = sync.action_space.sample()
        theirs, mine = sync.step(action)[4], native.step(action)[4]
        assert theirs.keys() == mine.keys()
        for key in set(theirs) - {"final_obs", "final_info"}:
            mask = theirs.get(f"_{key}", slice(None))
            assert np.array_equal(theirs[key][mask], mine[key][mask]), key
        if "final_info" in theirs:
            compared += 1
            where = theirs["_final_info"]
            for key in ("accuracy", "accuracies", "masked_actions"):
                assert theirs["final_info"][key][where].tolist() == (
                    mine["final_info"][key][where].tolist()
                )
            for index in np.flatnonzero(where):
                assert np.array_equal(theirs["final_obs"][index], mine["final_obs"][index])
    assert compared >= 3


@pytest.mark.parametrize("mode", MODES, ids=lambda mode: mode.value)
def test_record_episode_statistics_counts_returns_and_lengths(mode: AutoresetMode) -> None:
    env = RecordEpisodeStatistics(batch("memory", 4, autoreset_mode=mode))
    env.reset(seed=0)
    total, returns = np.zeros(4), []
    for _ in range(200):
        _, reward, terminated, _, infos = env.step(np.ones(4, np.int64))
        total += reward
        for index in np.flatnonzero(terminated):
            returns.append(float(total[index]))
            assert infos["episode"]["r"][index] == pytest.approx(total[index])
            total[index] = 0.0
    assert len(returns) >= 4


def test_an_episode_depends_on_its_seed_and_number_alone() -> None:
    wide, narrow = batch("memory", 5, autoreset_mode="SameStep"), batch("memory", 1)
    wide.reset(seed=[20, 21, 22, 23, 24])
    narrow.reset(seed=[23])
    names: list[list[str]] = [[], []]
    for _ in range(400):
        for env, index, found in ((wide, 3, names[0]), (narrow, 0, names[1])):
            infos = env.step(np.zeros(env.num_envs, np.int64))[4]
            if "_scenario" in infos and infos["_scenario"][index]:
                found.append(infos["scenario"][index])
    count = min(map(len, names))
    assert count >= 2
    assert names[0][:count] == names[1][:count]


@pytest.mark.parametrize("kind", PAIRS)
def test_a_fork_goes_on_like_the_original(kind: str) -> None:
    env = batch(kind, 4, autoreset_mode="SameStep", max_steps=90)
    env.reset(seed=1)
    generator = np.random.default_rng(0)

    def step(target: Any, actions: Any) -> Any:
        return target.step(actions)[:4]

    for _ in range(40):
        env.step(generator.integers(0, 4, 4))
    snapshot = env.snapshot()
    fork = env.fork([2, 2, 0])
    plays = generator.integers(0, 4, (120, 4))
    first = [step(env, actions) for actions in plays]
    forked = [step(fork, actions[[2, 2, 0]]) for actions in plays]
    env.restore(snapshot)
    again = [step(env, actions) for actions in plays]
    for one, two, three in zip(first, again, forked, strict=True):
        for a, b, c in zip(one, two, three, strict=True):
            assert np.array_equal(a, b)
            assert np.array_equal(a[[2, 2, 0]], c)


def test_reset_mask_leaves_the_others_alone() -> None:
    env = batch("memory", 3)
    env.reset(seed=0)
    for _ in range(10):
        before = env.step(np.ones(3, np.int64))[0]
    after, infos = env.reset(options={"reset_mask": np.array([False, True, False])})
    assert np.array_equal(before[[0, 2]], after[[0, 2]])
    assert env.episodes.count.tolist() == [10, 0, 10]
    assert infos["_scenario"].tolist() == [False, True, False]


@pytest.mark.slow
def test_a_refreshed_pool_disturbs_no_episode_and_does_not_grow() -> None:
    scripts = Scripts(few(), "default")
    fresh, fixed = Pool(scripts, 4), Pool(scripts, 4)
    env, other = batch("memory", 6, scenarios=fresh), batch("memory", 6, scenarios=fixed)
    env.reset(seed=0)
    other.reset(seed=0)
    first = int(env.episodes.rounds.min())
    opened = 0
    for step in range(first - 1):
        if step % 10 == 0:
            opened += fresh.refresh(2)
        actions = np.full(6, step % 4)
        for mine, theirs in zip(env.step(actions)[:3], other.step(actions)[:3], strict=True):
            assert np.array_equal(mine, theirs)
    assert opened == 2  # the two spare rows; the rows under way were left alone
    size = fresh.nbytes
    for step in range(400):
        env.step(np.zeros(6, np.int64))
        if step % 20 == 0:
            opened += fresh.refresh(1)
    assert opened > 8
    assert len(fresh.open) == 4
    assert fresh.nbytes <= 1.2 * size
    assert max(fresh.numbers) >= 8


@pytest.mark.parametrize(
    ("actions", "message"),
    [
        ([0, 1], "3 integers"),
        ([0.0, 1.0, 2.0], "type float64"),
        ([0, 4, 0], r"0\.\.3"),
        ([-1, 0, 0], r"0\.\.3"),
        (["a", "b", "c"], "3 integers"),
    ],
    ids=["too few", "floats", "too large", "negative", "text"],
)
def test_a_wrong_action_is_one_clear_error(actions: list[Any], message: str) -> None:
    env = batch("memory", 3)
    with pytest.raises(EpisodeOver, match="reset"):
        env.step(np.zeros(3, np.int64))
    env.reset(seed=0)
    with pytest.raises(ActionError, match=message):
        env.step(np.array(actions))


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"num_envs": 0}, "num_envs"),
        ({"autoreset_mode": AutoresetMode.DISABLED}, "autoreset_mode"),
        ({"autoreset_mode": "sometimes"}, "autoreset_mode"),
    ],
    ids=["no environment", "disabled", "unknown mode"],
)
def test_a_wrong_batch_setting_is_one_clear_error(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        batch("memory", **{"num_envs": 2, **settings})
