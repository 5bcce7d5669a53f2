"""Checkpoints: what is written is what is read, and nothing else is."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from agents import PolicyAgent
from amemgym_env.envs.memory.env import AMemGymMemoryEnv, AMemGymSlotsEnv
from amemgym_env.envs.text.env import AMemGymEnv
from amemgym_env.errors import ConfigError
from amemgym_env.evaluation.driver import play
from amemgym_env.models.client import Models
from amemgym_env.models.events import TurnEvent
from amemgym_env.policies import checkpoint as policies
from amemgym_env.policies.checkpoint import Kind, Policy, PolicyWriter
from amemgym_env.policies.features import FeatureSet
from amemgym_env.policies.networks import Weights
from amemgym_env.seeding import generator
from amemgym_env.simulated.model import SimulatedModel
from experiments.train import checkpoints as sb3_zip

CAPACITY = 4


def drawn_weights(kind: Kind, features: FeatureSet, hidden: int = 8) -> Weights:
    random = generator("weights", kind)
    width = len(features.slot_names)
    sizes = {
        "memory": {"layer.0": (len(features.feature_names), hidden), "layer.1": (hidden, 4)},
        "slots": {
            **dict.fromkeys(("message", "entry", "beside"), (width, hidden)),
            "context": (3 * hidden, hidden),
            **dict.fromkeys(("inner", "around"), (hidden, hidden)),
            **dict.fromkeys(("scored", "whole"), (hidden, 2)),
        },
    }[kind]
    weights: dict[str, Any] = {}
    for name, size in sizes.items():
        weights[f"{name}.weight"] = random.normal(size=size).astype(np.float32)
        weights[f"{name}.bias"] = random.normal(size=size[1]).astype(np.float32)
    if kind == "slots":
        weights["present"] = np.array(features.slot_names.index("present"), np.float32)
    return weights


def drawn_policy(kind: Kind, features: FeatureSet | None = None) -> Policy:
    features = features or FeatureSet()
    return Policy(kind, features, CAPACITY, drawn_weights(kind, features))


KINDS = pytest.mark.parametrize("kind", ["memory", "slots"])


@KINDS
def test_a_checkpoint_round_trips(kind: Kind, tmp_path: Path) -> None:
    policy = drawn_policy(kind)
    read = policies.load(policies.save(policy, tmp_path / "best", {"seed": 3}))
    assert (read.kind, read.features, read.capacity) == (kind, policy.features, CAPACITY)
    assert set(read.weights) == set(policy.weights)
    for name, array in policy.weights.items():
        assert np.array_equal(read.weights[name], array)
    document = json.loads((tmp_path / "best" / "policy.json").read_text("utf-8"))
    assert document["trained"] == {"seed": 3}


def damaged(folder: Path, **changes: Any) -> Path:
    file = folder / "policy.json"
    document = json.loads(file.read_text("utf-8"))
    file.write_text(json.dumps({**document, **changes}), "utf-8")
    return folder


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"feature_key": "0" * 16}, "trained with feature set '0000000000000000'"),
        ({"features": {"width": 3}}, "expected features with"),
        ({"format": 9}, "expected format 1, found 9"),
        ({"kind": "other"}, "expected kind memory or slots"),
        ({"capacity": 0}, "expected a capacity >= 1, found 0"),
        ({"weights_sha256": "0"}, "is not the file that policy.json names"),
    ],
    ids=lambda value: next(iter(value)) if isinstance(value, dict) else "",
)
def test_a_foreign_or_damaged_checkpoint_is_refused(
    changes: dict[str, Any], said: str, tmp_path: Path
) -> None:
    folder = damaged(policies.save(drawn_policy("memory"), tmp_path / "best"), **changes)
    with pytest.raises(ConfigError, match="checkpoint") as error:
        policies.load(folder)
    assert said in str(error.value)


def test_a_feature_set_names_what_differs(tmp_path: Path) -> None:
    folder = policies.save(drawn_policy("memory"), tmp_path / "best")
    names = ["message.shoe_size", *FeatureSet().feature_names]
    with pytest.raises(ConfigError, match=r"message\.shoe_size"):
        policies.load(damaged(folder, feature_names=names, feature_key="0"))


def test_torn_files_are_refused(tmp_path: Path) -> None:
    folder = policies.save(drawn_policy("memory"), tmp_path / "best")
    (folder / "policy.json").write_text("{", "utf-8")
    with pytest.raises(ConfigError, match=r"policy\.json cannot be read"):
        policies.load(folder)
    with pytest.raises(ConfigError, match="expected a folder"):
        policies.load(tmp_path / "nothing")


class Canary:
    """Writes a file when it is unpickled."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple[Any, tuple[str, str]]:
        return Path.write_text, (self.path, "sung")  # type: ignore[return-value]


def test_b09_06_arrays_that_would_be_unpickled_are_refused(tmp_path: Path) -> None:
    import hashlib

    canary = tmp_path / "canary"
    folder = policies.save(drawn_policy("memory"), tmp_path / "best")
    bad = np.empty(1, dtype=object)
    bad[0] = Canary(canary)
    with (folder / "weights.npz").open("wb") as file:
        np.savez(file, bad)
    digest = hashlib.sha256((folder / "weights.npz").read_bytes()).hexdigest()
    with pytest.raises(ConfigError, match="cannot be read"):
        policies.load(damaged(folder, weights_sha256=digest))
    assert not canary.exists()


def test_b09_06_a_zip_of_sb3_is_not_opened_without_trust(tmp_path: Path) -> None:
    import pickle

    canary = tmp_path / "canary"
    path = tmp_path / "model.zip"
    with zipfile.ZipFile(path, "w") as file:
        file.writestr("data", pickle.dumps(Canary(canary)))
        file.writestr("pytorch_variables.pth", pickle.dumps(Canary(canary)))
    with pytest.raises(ConfigError, match="trust=true"):
        sb3_zip.load(path, trust=False)
    with pytest.raises(ConfigError, match="can run code"):
        policies.load(path)
    assert not canary.exists()


def test_wrong_arrays_are_refused() -> None:
    weights = dict(drawn_weights("memory", FeatureSet()))
    weights["layer.1.bias"] = np.array([np.nan] * 4, np.float32)
    with pytest.raises(ConfigError, match="finite"):
        Policy("memory", FeatureSet(), CAPACITY, weights)
    with pytest.raises(ConfigError, match="expected shape"):
        Policy("slots", FeatureSet(), CAPACITY, weights)


def test_slots_are_scored_alike_in_any_order() -> None:
    policy = drawn_policy("slots")
    random = generator("order")
    shape = (5, 1 + CAPACITY, len(policy.features.slot_names))
    observations = np.asarray(random.normal(size=shape), np.float32)
    observations[:, 1:, policy.features.slot_names.index("present")] = [1, 1, 1, 0]
    order = [2, 0, 1, 3]
    moved = observations.copy()
    moved[:, 1:] = observations[:, 1:][:, order]
    scores, other = policy.scores(observations), policy.scores(moved)
    assert other[:, :2] == pytest.approx(scores[:, :2], rel=1e-4, abs=1e-4)
    for first in (2, 2 + CAPACITY):
        part = slice(first, first + CAPACITY)
        assert other[:, part] == pytest.approx(scores[:, part][:, order], rel=1e-4, abs=1e-4)


@pytest.mark.parametrize("hidden", ["profile", "privileged"])
def test_a_policy_that_sees_what_an_assistant_does_not_is_refused(hidden: str) -> None:
    features = FeatureSet(profile=hidden == "profile", privileged=hidden == "privileged")
    with pytest.raises(ConfigError, match=hidden):
        PolicyWriter(drawn_policy("memory", features))


@KINDS
def test_the_agent_writes_what_the_policy_does_in_the_number_environment(kind: Kind) -> None:
    policy = drawn_policy(kind)
    make = AMemGymSlotsEnv if kind == "slots" else AMemGymMemoryEnv
    settings: dict[str, Any] = {"difficulty": "default", "capacity": CAPACITY}
    number = make("validation:2:5", **settings)
    observation, info = number.reset(seed=4)
    banks = []
    done = False
    while not done:
        chosen = policy.act(observation[None], number.action_masks()[None])
        observation, _, done, _, _ = number.step(int(chosen[0]))
        banks.append([(entry.text, entry.turn) for entry in number.episode.bank.entries])
    text = AMemGymEnv("validation:2:5", **settings)
    text.reset(seed=info["seed"], options={"scenario": info["scenario"]})
    script = text.episode.script
    assert script.key == number.episode.script.key
    agent = PolicyAgent(Models({"assistant": SimulatedModel(script, "exact")}), policy)
    seen: list[Any] = []
    options = {"scenario": info["scenario"]}
    play(agent, text, seen.append, seed=info["seed"], options=options)
    assert text.episode.script.key == script.key
    final = [(entry.text, entry.turn) for entry in text.episode.bank.entries]
    assert final == banks[-1]
    assert len([event for event in seen if isinstance(event, TurnEvent)]) == len(banks)


def test_the_agents_state_round_trips() -> None:
    policy = drawn_policy("memory")
    script = AMemGymMemoryEnv("validation:2:5", capacity=CAPACITY)
    script.reset(seed=0)
    models = Models({"assistant": SimulatedModel(script.episode.script, "exact")})
    agent = PolicyAgent(models, policy, ns=2)
    agent.turns = 7
    agent.window = [{"role": "user", "content": "hello"}]
    other = PolicyAgent(models, policy, ns=2)
    other.load_state_dict(json.loads(json.dumps(agent.state_dict())))
    assert (other.turns, other.window) == (7, agent.window)
    assert other.label == "policy-memory-2-5"
