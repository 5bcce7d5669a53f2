"""Training: a few seconds of it, what it writes, and what a mistake gets."""

from __future__ import annotations

import json
import pickle
import re
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from gymnasium.vector import AutoresetMode
from hydra import compose, initialize_config_dir
from omegaconf import OmegaConf

from amemgym_env.envs.memory.vector_env import AMemGymMemoryVectorEnv, AMemGymSlotsVectorEnv
from amemgym_env.errors import ConfigError, RunError
from amemgym_env.policies import checkpoint as policies
from experiments.app.settings import CONF, checked
from experiments.baselines.benchmark import PolicyBenchmark
from experiments.train import results as train_results
from experiments.train import run as train
from experiments.train import value_pretraining as foresight
from experiments.train.reward_shaping import Shaping, coming_exams
from experiments.train.settings import TrainSettings

pytest.importorskip("torch")
pytest.importorskip("sb3_contrib")

QUICK = (
    "scenarios=train:4",
    "validation=validation:3",
    "test=test:3",
    "pool_size=4",
    "hand_candidates=20",
    "planning=false",
    "steps=1024",
    "evaluate_every=512",
    "warm_start=writer",
    "warm_rounds=2",
    "warm_updates=20",
)
SMALL = ("algorithm.num_envs=16", "algorithm.n_steps=16", "algorithm.batch_size=64")


def settings(*words: str, quick: tuple[str, ...] = QUICK) -> TrainSettings:
    with initialize_config_dir(str(CONF), version_base="1.3"):
        config = compose("train", overrides=[*quick, *words])
    plain: Any = OmegaConf.to_container(config, resolve=True)
    return checked(TrainSettings, plain)


@pytest.mark.parametrize("algorithm", sorted(path.stem for path in (CONF / "algorithm").iterdir()))
def test_every_configuration_of_train_is_valid(algorithm: str) -> None:
    words = ["algorithm.path=sb3_contrib:QRDQN"] if algorithm == "own" else []
    assert settings(f"algorithm={algorithm}", *words).algorithm.name == algorithm


@pytest.mark.slow
@pytest.mark.parametrize("env", ["memory", "slots"])
@pytest.mark.parametrize("algorithm", ["ppo", "maskable_ppo", "dqn"])
def test_a_short_training_ends_in_a_checkpoint_a_curve_and_results(
    env: str, algorithm: str, tmp_path: Path
) -> None:
    words = list(SMALL) if algorithm != "dqn" else ["algorithm.learning_starts=256"]
    words += ["warm_start=foresight"] if algorithm == "maskable_ppo" else []
    document = train.run(settings(f"env={env}", f"algorithm={algorithm}", *words, "out=run"))
    policy = policies.load(tmp_path / "run" / "seed-0" / "best")
    assert (policy.kind, policy.capacity) == (env, 12)
    curve = json.loads((tmp_path / "run" / "curve.json").read_text("utf-8"))
    assert len(curve["x"]) == len(curve["y"]["seed 0"]) >= 3
    assert curve["x"] == sorted(curve["x"])
    assert curve["y"]["supervised writer"] == [curve["y"]["supervised writer"][0]] * len(curve["x"])
    assert (tmp_path / "run" / "curve.png").read_bytes().startswith(b"\x89PNG")
    found = json.loads((tmp_path / "run" / "results.json").read_text("utf-8"))
    assert found["sets"]["test"]["scenarios"] == 3
    assert found["sets"]["test"]["policy"][0] == document["sets"]["test"]["policy"][0]
    assert len(train_results.table(found, "test", "policy").rows) == 9


@pytest.mark.slow
def test_two_seeds_side_by_side_are_the_same_as_one_by_one() -> None:
    one = train.run(settings(*SMALL, "seeds=2", "out=one"))
    two = train.run(settings(*SMALL, "seeds=2", "workers=2", "out=two"))
    assert one["sets"] == two["sets"]
    assert len(one["sets"]["test"]["seed_means"]) == 2


@pytest.mark.slow
def test_a_run_that_is_done_is_not_trained_again_and_an_interrupted_one_goes_on(
    tmp_path: Path,
) -> None:
    first = train.run(settings(*SMALL, "out=run"))
    again = train.run(settings(*SMALL, "out=run"))
    assert again["seeds"] == first["seeds"]
    curve = tmp_path / "run" / "seed-0" / "curve.json"
    known = json.loads(curve.read_text("utf-8"))
    cut = {**known, "steps": known["steps"][:2], "scores": known["scores"][:2]}
    curve.write_text(json.dumps(cut), "utf-8")
    continued = train.run(settings(*SMALL, "out=run"))
    assert continued["seeds"][0]["steps"] == first["seeds"][0]["steps"]
    with pytest.raises(RunError, match="another run's results"):
        train.run(settings(*SMALL, "steps=2048", "out=run"))
    (tmp_path / "run" / "seed-0" / "state.pt").write_bytes(b"torn")
    with pytest.raises(RunError, match="cannot be continued"):
        train.run(settings(*SMALL, "out=run"))


@pytest.mark.slow
def test_a_training_says_what_it_does_before_it_takes_long(
    capsys: pytest.CaptureFixture[str],
) -> None:
    train.main(settings(*SMALL, "out=run").model_dump(mode="json"))
    printed = capsys.readouterr()
    said = printed.err.splitlines()
    assert re.fullmatch(r" +\d+ s  making validation:3 ready, .*", said[0])
    wanted = ["making train:4", "hand rule: 20 candidates", "baselines on validation"]
    wanted += ["seed 0: 0 rounds, validation", "making test:3", "policy and baselines on test"]
    at = 0
    for words in wanted:
        at = next(i for i, line in enumerate(said) if i >= at and words in line)
    assert "a policy scores lower there" in " ".join(printed.out.split())


class Canary:
    """Writes a file when it is unpickled."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple[Any, tuple[Path, str]]:
        return Path.write_text, (self.path, "sung")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["scenarios=test:4"], "without test topics"),
        (["validation=base"], "without test topics"),
        (["difficulty=none"], "bounded memory"),
        (["difficulty=hrad"], "expected one of"),
        (["algorithm=own", "algorithm.path=stable_baselines3:SAC"], "SAC cannot learn"),
        (["algorithm=own", "algorithm.path=no_such:Thing"], "no_such"),
        (["algorithm=own", "algorithm.path=some.Thing"], "did you mean some:Thing?"),
        (["algorithm=own", "algorithm.path=stable_baselines3:SAC", "env=slots"], "env=slots"),
        (["start=model.zip"], "trust=true"),
        (["start=nothing"], "expected a folder"),
    ],
    ids=lambda value: value[-1] if isinstance(value, list) else "",
)
def test_a_mistake_gets_one_error(words: list[str], said: str, tmp_path: Path) -> None:
    canary = tmp_path / "canary"
    with zipfile.ZipFile(tmp_path / "model.zip", "w") as file:
        file.writestr("data", pickle.dumps(Canary(canary)))
    with pytest.raises(ConfigError) as error:
        train.run(settings(*words, "out=run"))
    assert said in str(error.value)
    assert not canary.exists()
    assert not (tmp_path / "run").exists()


def test_a_start_of_other_features_is_refused(tmp_path: Path) -> None:
    train.run(settings(*SMALL, "out=run"))
    start = f"start={tmp_path}/run/seed-0/best"
    with pytest.raises(ConfigError, match="of this run's features"):
        train.run(settings(*SMALL, "question_blind=true", start, "out=other"))
    done = train.run(settings(*SMALL, start, "out=third"))
    assert done["seeds"][0]["steps"] >= 1024


@pytest.fixture(scope="module")
def bench() -> PolicyBenchmark:
    return PolicyBenchmark("train:6:2")


def test_shaping_pays_the_change_of_the_coming_exams_accuracy(bench: PolicyBenchmark) -> None:
    env = AMemGymMemoryVectorEnv(
        6, bench.pool, autoreset_mode=AutoresetMode.SAME_STEP, **bench.rules
    )
    env.reset(seed=1)
    shaping = Shaping(env, scale=2.0, discount=0.9)
    shaping.begin()
    random = np.random.Generator(np.random.PCG64(0))
    everyone = np.arange(6)
    before = _potentials(env, everyone)
    for _ in range(150):
        _, _, terminated, _, _ = env.step(random.integers(0, 4, 6))
        paid = shaping.pay(terminated)
        potential = _potentials(env, everyone)
        after = np.where(terminated, 0.0, potential)
        assert paid == pytest.approx(2.0 * (0.9 * after - before), abs=1e-12)
        before = potential


def _potentials(env: Any, everyone: Any) -> Any:
    episodes = env.episodes
    coming = coming_exams(env.pool)[episodes.script, episodes.turn + 1]
    return episodes.expected_accuracy(everyone, coming, episodes.readings(everyone))


def test_foresight_is_what_the_next_exam_pays_when_nothing_else_is_written(
    bench: PolicyBenchmark,
) -> None:
    env = AMemGymSlotsVectorEnv(6, bench.pool, **bench.rules)
    env.reset(seed=1)
    for _ in range(30):
        env.step(np.where(env.action_masks()[:, 1], 1, 2))
    everyone = np.arange(6)
    found = foresight.values(env, everyone, exams=1, discount=1.0)
    best = found.argmax(axis=1)
    assert (found.max(axis=1) >= 0).all()
    paid = [_next_exam(env, action) for action in (np.zeros(6, np.int64), best)]
    assert paid[1] - paid[0] == pytest.approx(found[everyone, best], abs=1e-6)


def _next_exam(env: Any, action: Any) -> Any:
    copy = env.fork(np.arange(6))
    paid = np.full(6, np.nan)
    while np.isnan(paid).any():
        _, reward, _, _, info = copy.step(action)
        action = np.zeros(6, np.int64)
        ended = info.get("_accuracy", np.zeros(6, np.bool_)) & np.isnan(paid)
        paid[ended] = reward[ended]
    return paid


@pytest.mark.slow
def test_tensorboard_gets_the_curves_when_asked() -> None:
    accumulator = pytest.importorskip(
        "tensorboard.backend.event_processing.event_accumulator"
    ).EventAccumulator
    train.run(settings("tensorboard=true", "hand_candidates=10", "out=logged", *SMALL))
    logs = list(Path("logged/seed-0/tensorboard").rglob("events*"))
    assert len(logs) == 1
    read = accumulator(str(logs[0])).Reload()
    names = read.Tags()["scalars"]
    assert {"validation/accuracy", "train/loss"} <= set(names)
    assert all(np.isfinite(event.value) for name in names for event in read.Scalars(name))


def test_tensorboard_that_is_not_installed_is_said_before_anything(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    there = train.find_spec
    monkeypatch.setattr(
        train, "find_spec", lambda name: None if name == "tensorboard" else there(name)
    )
    with pytest.raises(ConfigError, match="tensorboard"):
        train.run(settings("tensorboard=true", "out=logged"))
    assert not Path("logged").exists()


@pytest.mark.evidence
def test_a_policy_beats_the_best_hand_rule_on_unseen_scenarios() -> None:
    found = train.run(settings("seeds=5", "out=evidence", quick=()))
    more = found["sets"]["test"]["differences"]["best hand rule"]
    assert more[0] >= 0.03
    assert more[1] > 0
    blind = found["controls"]["features shuffled"][0]
    mixes = [scores[0] for name, scores in found["controls"].items() if "mix" in name]
    assert blind <= max(mixes) + 0.01
