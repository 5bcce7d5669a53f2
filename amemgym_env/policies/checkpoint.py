"""Checkpoints of trained memory policies.

A checkpoint is a folder of two files that cannot run code: `policy.json` describes the observation
and the network, `weights.npz` holds the arrays. It contains the fingerprint of its feature set and
is refused under other features. Acting needs numpy only.
"""

from __future__ import annotations

import hashlib
import json
import zipfile
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any, Literal, get_args

import numpy as np
import numpy.typing as npt

from amemgym_env.agent import Entry, Operation
from amemgym_env.errors import ConfigError
from amemgym_env.memory.embedding import DEFAULT, Embedder
from amemgym_env.policies.actions import (
    legal_memory_actions,
    legal_slot_actions,
    memory_operations,
    slot_operations,
)
from amemgym_env.policies.features import FeatureSet, Floats, TextFeatures
from amemgym_env.policies.networks import (
    Scores,
    Weights,
    memory_scores,
    memory_shapes,
    slots_scores,
    slots_shapes,
)

FORMAT = 1
"""Version of the checkpoint's files."""

Kind = Literal["memory", "slots"]
"""Which environment's observations and actions a policy is for."""

Choices = npt.NDArray[np.int64]
Masks = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class Policy:
    """A network over named features. Make one with `load`, or `Policy(...)` after training."""

    kind: Kind
    features: FeatureSet
    capacity: int
    """Entries of the bank that it was trained with."""
    weights: Weights

    def __post_init__(self) -> None:
        expected = slots_shapes if self.kind == "slots" else memory_shapes
        problems = expected(self.features, self.weights)
        if problems:
            raise ConfigError("policy: " + "; ".join(problems))

    def scores(self, observations: Floats) -> Scores:
        """Return a score for each action, (N, actions), of observations (N, …)."""
        network = slots_scores if self.kind == "slots" else memory_scores
        return network(self.weights, observations)

    def act(self, observations: Floats, masks: Masks) -> Choices:
        """Return the legal action with the highest score for each observation, (N,)."""
        chosen: Choices = np.where(masks, self.scores(observations), -np.inf).argmax(axis=1)
        return chosen


class PolicyWriter:
    """Decides the operations on a text bank by a policy: what an agent needs at play time.

    Raises:
        ConfigError: the policy observes what an assistant is not shown.
    """

    def __init__(self, policy: Policy, embedder: Embedder = DEFAULT) -> None:
        features = policy.features
        for hidden in ("profile", "privileged"):
            if getattr(features, hidden):
                raise ConfigError(
                    f"policy: expected features that an assistant can compute, found one trained "
                    f"with {hidden}=true"
                )
        if embedder.name != features.embedder:
            raise ConfigError(
                f"policy: expected embedder {features.embedder!r}, found {embedder.name!r}"
            )
        self.policy = policy
        self._features = TextFeatures(features, policy.capacity, embedder)

    def operations(
        self,
        shown: str,
        turn: int,
        place: tuple[int, int, int],
        entries: Sequence[Entry],
        asked: Sequence[str],
    ) -> tuple[Operation, ...]:
        """Return the operations for a message as shown; arguments as in `TextFeatures.memory`.

        In a bank that holds more than the policy's capacity, the surplus is not looked at.
        """
        capacity = self.policy.capacity
        known = list(entries)[:capacity]
        see = self._features.slots if self.policy.kind == "slots" else self._features.memory
        observation = see(shown, turn, place, known, asked)
        masks = np.array([_legal(self.policy.kind, len(known), capacity)])
        action = int(self.policy.act(observation[None], masks)[0])
        if self.policy.kind == "slots":
            return slot_operations(action, shown, known, capacity)
        nearest = self._features.nearest(shown, known) if action >= 2 and known else 0
        return memory_operations(action, shown, known, capacity, nearest)


def _legal(kind: Kind, count: int, capacity: int) -> Sequence[bool]:
    return legal_slot_actions(count, capacity) if kind == "slots" else legal_memory_actions(count)


def save(policy: Policy, folder: str | Path, trained: Mapping[str, Any] | None = None) -> Path:
    """Write a checkpoint; `trained` describes the training, for readers. Returns the folder."""
    path = Path(folder)
    path.mkdir(parents=True, exist_ok=True)
    with (path / "weights.npz").open("wb") as file:
        np.savez(file, **dict(policy.weights))  # type: ignore[arg-type]
    document = {
        "format": FORMAT,
        "kind": policy.kind,
        "capacity": policy.capacity,
        "feature_key": policy.features.key,
        "features": asdict(policy.features),
        "feature_names": _names(policy.kind, policy.features),
        "weights_sha256": hashlib.sha256((path / "weights.npz").read_bytes()).hexdigest(),
        "trained": dict(trained or {}),
    }
    text = json.dumps(document, indent=1, allow_nan=False)
    (path / "policy.json").write_text(text + "\n", encoding="utf-8")
    return path


def load(folder: str | Path) -> Policy:
    """Return the policy of a checkpoint.

    Raises:
        ConfigError: nothing is there, it is damaged, it is of another kind of file, or it was
            trained with another feature set than this version computes.
    """
    path = Path(folder)
    if path.name in ("policy.json", "weights.npz"):
        path = path.parent
    if path.suffix == ".zip" or path.is_file():
        raise ConfigError(
            f"checkpoint {path}: expected a folder with policy.json and weights.npz, found a file; "
            "a zip of stable-baselines3 can run code when it is opened, and is refused"
        )
    try:
        document = json.loads((path / "policy.json").read_text(encoding="utf-8"))
        data = (path / "weights.npz").read_bytes()
    except OSError as error:
        raise ConfigError(
            f"checkpoint {path}: expected a folder with policy.json and weights.npz, found "
            f"{error.strerror or error}"
        ) from error
    except ValueError as error:
        raise ConfigError(f"checkpoint {path}: policy.json cannot be read ({error})") from error
    features = _features(path, document)
    if hashlib.sha256(data).hexdigest() != document.get("weights_sha256"):
        raise ConfigError(f"checkpoint {path}: weights.npz is not the file that policy.json names")
    try:
        return Policy(document["kind"], features, document["capacity"], _arrays(path))
    except ConfigError as error:
        raise ConfigError(f"checkpoint {path}: {error}") from error


def _features(path: Path, document: Any) -> FeatureSet:
    if not isinstance(document, dict) or document.get("format") != FORMAT:
        found = document.get("format") if isinstance(document, dict) else document
        raise ConfigError(f"checkpoint {path}: expected format {FORMAT}, found {found!r:.80}")
    kind: Any = document.get("kind")
    capacity, given = document.get("capacity"), document.get("features")
    if kind not in get_args(Kind):
        raise ConfigError(f"checkpoint {path}: expected kind memory or slots, found {kind!r:.80}")
    if type(capacity) is not int or capacity < 1:
        raise ConfigError(f"checkpoint {path}: expected a capacity >= 1, found {capacity!r:.80}")
    names = {field.name for field in fields(FeatureSet)}
    if not isinstance(given, dict) or set(given) != names:
        raise ConfigError(
            f"checkpoint {path}: expected features with {sorted(names)}, found {given!r:.200}"
        )
    features = FeatureSet(**given)
    if features.key != document.get("feature_key"):
        then, now = document.get("feature_names") or [], _names(kind, features)
        changed = sorted(set(then) ^ set(now))[:6]
        raise ConfigError(
            f"checkpoint {path}: trained with feature set {document.get('feature_key')!r:.40}, "
            f"this version computes {features.key!r} (differing names: {changed or 'none'}); "
            "train it anew, or use the version that trained it"
        )
    return features


def _names(kind: Kind, features: FeatureSet) -> list[str]:
    return list(features.slot_names if kind == "slots" else features.feature_names)


def _arrays(path: Path) -> Weights:
    try:
        with np.load(path / "weights.npz", allow_pickle=False) as arrays:
            return {name: arrays[name] for name in arrays.files}
    except (OSError, ValueError, EOFError, KeyError, zipfile.BadZipFile) as error:
        raise ConfigError(f"weights.npz cannot be read ({error})") from error
