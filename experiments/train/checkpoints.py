"""Loading of policies from checkpoint folders and, if trusted, from SB3's zip files.

Opening a zip of stable-baselines3 unpickles it, which can run any code
(DLR-RM/stable-baselines3#2281). It is refused unless the user sets `agent.trust=true`.
"""

from __future__ import annotations

from pathlib import Path

from amemgym_env.errors import ConfigError
from amemgym_env.policies import checkpoint as policies
from amemgym_env.policies.checkpoint import Kind, Policy
from amemgym_env.policies.features import FeatureSet
from experiments.baselines.benchmark import PolicyBenchmark


def load(
    path: str | Path, trust: bool, bench: PolicyBenchmark | None = None, kind: Kind = "memory"
) -> Policy:
    """Return a checkpoint's policy.

    A zip contains no feature set; that of `bench` is assumed (None: the default), and the shapes
    must agree.

    Raises:
        ConfigError: a zip without `trust`, or a checkpoint that cannot be used.
    """
    path = Path(path)
    if path.suffix != ".zip":
        return policies.load(path)
    if not trust:
        raise ConfigError(
            f"checkpoint {path}: expected a folder with policy.json and weights.npz, found a zip "
            "of stable-baselines3, which can run any code when it is opened; if you trust its "
            "author, set agent.trust=true"
        )
    return _from_zip(path, bench, kind)


def _from_zip(path: Path, bench: PolicyBenchmark | None, kind: Kind) -> Policy:
    from sb3_contrib import MaskablePPO
    from stable_baselines3 import DQN, PPO

    from experiments.train.networks import exported

    features = FeatureSet() if bench is None else bench.pool.features
    problems = []
    for algorithm in (PPO, MaskablePPO, DQN):
        try:
            model = algorithm.load(path, device="cpu")
            weights = exported(model.policy)
            shape = model.observation_space.shape or (0,)
            capacity = shape[0] - 1 if kind == "slots" else _capacity(bench)
            return Policy(kind, features, capacity, weights)
        except Exception as error:  # noqa: BLE001 - every error is classified
            problems.append(f"{algorithm.__name__}: {str(error).splitlines()[:1]}")
    raise ConfigError(f"checkpoint {path}: cannot be read as a policy ({'; '.join(problems)})")


def _capacity(bench: PolicyBenchmark | None) -> int:
    return 12 if bench is None else int(bench.rules["capacity"])
