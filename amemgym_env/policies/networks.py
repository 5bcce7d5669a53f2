"""Networks of memory policies in numpy: from observations to action scores.

Arrays are named as the layers in training; a weight has shape (inputs, outputs).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from amemgym_env.policies.features import FeatureSet, Floats

Weights = Mapping[str, npt.NDArray[np.float32]]
Scores = npt.NDArray[np.float32]


def memory_scores(weights: Weights, observations: Floats) -> Scores:
    """Return the scores of the four actions: layers `layer.0`, `layer.1`, … with ReLU between."""
    hidden = observations
    depth = _depth(weights)
    for number in range(depth):
        hidden = _linear(weights, f"layer.{number}", hidden)
        if number < depth - 1:
            hidden = np.maximum(hidden, 0.0)
    return hidden


def memory_shapes(features: FeatureSet, weights: Weights) -> list[str]:
    """Return the shape errors of a network over `feature_names`."""
    shapes: dict[str, tuple[int, ...]] = {}
    width = len(features.feature_names)
    depth = _depth(weights)
    for number in range(depth):
        found = weights[f"layer.{number}.weight"].shape
        after = 4 if number == depth - 1 or len(found) != 2 else found[1]
        shapes[f"layer.{number}.weight"] = (width, after)
        shapes[f"layer.{number}.bias"] = (after,)
        width = after
    return _wrong(weights, shapes) if depth else ["expected arrays layer.0.weight …, found none"]


def slots_scores(weights: Weights, observations: Floats) -> Scores:
    """Return the scores of the slot actions; entries are scored alike, whatever their order.

    Each entry is encoded with the message, all entries are pooled into one context, and each entry
    is scored in it. Architecture: Zaheer et al., Deep Sets, 2017.
    """
    message, entries = observations[:, 0], observations[:, 1:]
    present = entries[:, :, _present(weights)] > 0
    said = np.maximum(_linear(weights, "message", message), 0.0)  # (N, H)
    encoded = _linear(weights, "entry", entries) + _linear(weights, "beside", message)[:, None]
    encoded = np.maximum(encoded, 0.0) * present[:, :, None]  # (N, C, H)
    count = np.maximum(present.sum(axis=1, keepdims=True), 1)
    pooled = [said, encoded.sum(axis=1) / count.astype(np.float32), encoded.max(axis=1)]
    context = np.maximum(_linear(weights, "context", np.concatenate(pooled, axis=1)), 0.0)
    inner = _linear(weights, "inner", encoded) + _linear(weights, "around", context)[:, None]
    scored = _linear(weights, "scored", np.maximum(inner, 0.0))  # (N, C, 2)
    whole = _linear(weights, "whole", context)  # (N, 2)
    return np.concatenate([whole, scored[:, :, 0], scored[:, :, 1]], axis=1)


def slots_shapes(features: FeatureSet, weights: Weights) -> list[str]:
    """Return the shape errors of a network over `slot_names`."""
    found = weights["message.bias"].shape if "message.bias" in weights else ()
    hidden = found[0] if len(found) == 1 else 0
    columns = len(features.slot_names)
    sizes = {
        "message": (columns, hidden),
        "entry": (columns, hidden),
        "beside": (columns, hidden),
        "context": (3 * hidden, hidden),
        "inner": (hidden, hidden),
        "around": (hidden, hidden),
        "scored": (hidden, 2),
        "whole": (hidden, 2),
    }
    shapes: dict[str, tuple[int, ...]] = {"present": ()}
    for name, size in sizes.items():
        shapes |= {f"{name}.weight": size, f"{name}.bias": size[1:]}
    wrong = _wrong(weights, shapes)
    if not wrong and _present(weights) != features.slot_names.index("present"):
        wrong.append(f"expected column {features.slot_names.index('present')} for `present`")
    return wrong


def _present(weights: Weights) -> int:
    return int(weights["present"])


def _linear(weights: Weights, name: str, inputs: Floats) -> Floats:
    return inputs @ weights[f"{name}.weight"] + weights[f"{name}.bias"]


def _depth(weights: Weights) -> int:
    depth = 0
    while f"layer.{depth}.weight" in weights:
        depth += 1
    return depth


def _wrong(weights: Weights, shapes: Mapping[str, tuple[int, ...]]) -> list[str]:
    wrong = [
        f"{name}: expected shape {shape}, found "
        f"{weights[name].shape if name in weights else 'nothing'}"
        for name, shape in shapes.items()
        if name not in weights or weights[name].shape != shape
    ]
    wrong += [f"{name}: expected no such array" for name in weights if name not in shapes]
    wrong += [f"{name}: expected finite numbers" for name in weights if not _finite(weights[name])]
    return wrong


def _finite(array: npt.NDArray[Any]) -> bool:
    return array.dtype.kind == "f" and bool(np.isfinite(array).all())
