"""Training of one policy with an algorithm of stable-baselines3 on the native batch.

After each validation it writes numpy arrays, JSON, and torch arrays that are loaded as arrays only.
"""

from __future__ import annotations

import json
import pickle
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from gymnasium.vector import AutoresetMode

from amemgym_env.errors import ConfigError, RunError
from amemgym_env.evaluation.statistics import mean_estimate
from amemgym_env.policies import checkpoint as policies
from amemgym_env.policies.checkpoint import Policy
from experiments.app.run_folder import write
from experiments.baselines.benchmark import KINDS, PolicyBenchmark, PolicyFn, chooser
from experiments.train import value_pretraining as foresight
from experiments.train.action_bias import calibrated
from experiments.train.algorithms import class_of
from experiments.train.behaviour_cloning import demonstrations, imitate, scales
from experiments.train.learning_curve import Curve
from experiments.train.reward_shaping import Shaping
from experiments.train.sb3_callbacks import Report
from experiments.train.settings import OnPolicy, TrainSettings

_CALIBRATED = 96
"""Number of scripts on which action biases are tuned."""
_CRITIC_ROLLOUTS = 8
"""Rollouts after a warm start in which only the critic learns."""


class Trainer:
    """One training: a seed, its folder, its environments.

    Args:
        training: the scripts that are played.
        validation: the scripts that choose the best checkpoint.
        teacher: whom the policy imitates first; None: nobody.
    """

    def __init__(
        self,
        settings: TrainSettings,
        seed: int,
        folder: Path,
        training: PolicyBenchmark,
        validation: PolicyBenchmark,
        teacher: PolicyFn | None,
    ) -> None:
        import torch

        # Small networks: threads cost more than they bring, and results depend on their number.
        torch.set_num_threads(1)
        self.settings = settings
        self.seed = seed
        self.folder = folder
        # Refreshing changes a pool, so that each training has its own.
        self.training: PolicyBenchmark = pickle.loads(pickle.dumps(training))
        self.validation = validation
        self.curve = Curve()
        self._teacher = teacher
        self._say: Callable[[str], None] = lambda doing: None
        self.env = KINDS[settings.env](
            settings.algorithm.num_envs,
            self.training.pool,
            autoreset_mode=AutoresetMode.SAME_STEP,
            **self.training.rules,
        )
        self.model = self._algorithm()

    def _algorithm(self) -> Any:
        from stable_baselines3.common.logger import Logger

        from experiments.train.sb3_callbacks import TrainingVecEnv

        algorithm, settings = self.settings.algorithm, self.settings
        shaping = None
        if settings.shaping > 0:
            discount = getattr(algorithm, "gamma", 0.99)
            shaping = Shaping(self.env, settings.shaping, discount)
        vec_env = TrainingVecEnv(self.env, shaping)
        logs = str(self.folder / "tensorboard") if settings.tensorboard else None
        kind, arguments = class_of(algorithm)
        policy, network = self._network(algorithm)
        try:
            model = kind(
                policy,
                vec_env,
                seed=self.seed,
                device="cpu",
                tensorboard_log=logs,
                policy_kwargs=network,
                **arguments,
            )
        except (AssertionError, TypeError, ValueError) as error:
            said = str(error).strip().split("\n")[0]
            raise ConfigError(
                f"algorithm {kind.__name__} cannot learn this environment with actions "
                f"{vec_env.action_space}: {said}"
            ) from error
        if logs is None:
            model.set_logger(Logger(None, []))  # SB3's own would leave a folder among the system's
        return model

    def _network(self, algorithm: Any) -> tuple[Any, dict[str, Any]]:
        import torch

        from experiments.train import networks as torch_networks

        scaled: dict[str, Any] = {
            "features_extractor_class": torch_networks.ScaledExtractor,
            "features_extractor_kwargs": {"scale": scales(self.training, self.settings.env)},
        }
        if self.settings.env == "memory":
            return "MlpPolicy", {
                **scaled,
                "net_arch": [algorithm.hidden, algorithm.hidden],
                "activation_fn": torch.nn.ReLU,
            }
        classes = {
            "ppo": torch_networks.SlotsPolicy,
            "maskable_ppo": torch_networks.MaskableSlotsPolicy,
            "dqn": torch_networks.SlotsQPolicy,
        }
        if algorithm.name not in classes:
            raise ConfigError(
                f"algorithm: expected one of {', '.join(classes)} for env=slots, whose network is "
                f"ours, found {algorithm.name!r}"
            )
        present = self.env.features.slot_names.index("present")
        return classes[algorithm.name], {
            **scaled,
            "present": present,
            "hidden": algorithm.hidden,
        }

    def run(self, report: Report, say: Callable[[str], None] | None = None) -> Curve:
        """Train to the end, resuming an earlier run; return the curve.

        `say` is called after every validation.
        """
        self._say = say or self._say
        if not self._resume():
            self._clock = time.process_time()
            self.validate(save=False)
            self._start()
            self.validate()
        left = self.settings.steps - int(self.model.num_timesteps)
        if left > 0:
            self.model.learn(left, callback=self._callback(report), reset_num_timesteps=False)
            if self.curve.steps[-1] < self.curve.before + self.model.num_timesteps:
                self.validate()
        return self.curve

    def policy(self) -> Policy:
        """Return the current policy in numpy."""
        from experiments.train.networks import exported

        weights = exported(self.model.policy)
        capacity = self.env.settings.capacity
        return Policy(self.settings.env, self.env.features, capacity, weights)

    def validate(self, save: bool = True) -> None:
        """Score the policy on the validation set and save the state of the training.

        Without `save`, no state for resuming is written.
        """
        began = time.process_time()
        policy = self.policy()
        score = mean_estimate(self.validation.score(chooser(policy), self.settings.env))
        better = score.mean > self.curve.best
        self.curve.steps.append(self.curve.before + int(self.model.num_timesteps))
        self.curve.scores.append(score)
        rounds = f"{self.curve.steps[-1]:,} rounds"
        self._say(f"seed {self.seed}: {rounds}, validation {score.mean:.3f}")
        trained: dict[str, Any] = {"seed": self.seed, "validation": score.mean}
        trained["steps"] = self.curve.steps[-1]
        trained["settings"] = self.settings.identity()
        if better:
            policies.save(policy, self.folder / "best", trained)
        policies.save(policy, self.folder / "last", trained)
        if save:
            self._save()
        # Validation does not count as training time.
        self._clock += time.process_time() - began

    def begun(self) -> Policy | None:
        """Return the initial checkpoint, if any.

        Raises:
            ConfigError: it cannot be used here.
        """
        from experiments.train.checkpoints import load
        from experiments.train.networks import imported

        settings = self.settings
        if settings.start is None:
            return None
        found = load(settings.start, settings.trust, self.training, settings.env)
        if (found.kind, found.features.key) != (settings.env, self.env.features.key):
            raise ConfigError(
                f"start: expected a {settings.env} policy of this run's features, found "
                f"{found.kind} with feature set {found.features.key}"
            )
        imported(self.model.policy, found.weights)
        return found

    def _start(self) -> None:
        """Load a checkpoint or run the warm start, before the first round."""
        algorithm, taken_over = self.settings.algorithm, self.begun() is not None
        can_imitate = self._teacher is not None and isinstance(algorithm, OnPolicy)
        if can_imitate and not taken_over:
            self._imitate(algorithm.name == "maskable_ppo")
        self._warm = taken_over or can_imitate

    def _imitate(self, masked: bool) -> None:
        from experiments.train.networks import imported

        teacher = self._teacher
        assert teacher is not None
        settings, policy = self.settings, self.model.policy
        updates, rounds = settings.warm_updates, settings.warm_rounds
        if settings.warm_start == "writer":
            examples = demonstrations(self.training, teacher, settings.env, self.seed)
            self.curve.before = len(examples[0])
            imitate(policy, examples, masked, self.seed, updates * rounds)
        else:
            foresight.warm(
                policy,
                lambda: chooser(self.policy()),
                self.training,
                teacher,
                settings.env,
                self.seed,
                rounds=rounds,
                updates=updates,
                after=self._played,
            )
            better = calibrated(self.policy(), self.training.window(0, _CALIBRATED))
            imported(policy, better.weights)

    def _played(self, rounds: int, more: bool) -> None:
        """Count rounds of the warm start, and validate when more follow."""
        self.curve.before += rounds
        if more:
            self.validate(save=False)

    def _callback(self, report: Report) -> Any:
        from experiments.train.sb3_callbacks import TrainingCallback

        critic = 0
        algorithm = self.settings.algorithm
        if self._warm and isinstance(algorithm, OnPolicy):
            critic = _CRITIC_ROLLOUTS * algorithm.num_envs * algorithm.n_steps
        return TrainingCallback(self._validated, self._refresh, self.settings, report, critic)

    def _validated(self) -> float:
        self.validate()
        return self.curve.scores[-1].mean

    def _refresh(self) -> None:
        self.training.pool.refresh(max(1, self.settings.pool_size // 16))

    def _save(self) -> None:
        import torch

        self.curve.seconds = time.process_time() - self._clock
        partial = self.folder / "state.partial"
        state = {"policy": self.model.policy.state_dict()}
        state["optimizer"] = self.model.policy.optimizer.state_dict()
        torch.save(state, partial)
        partial.replace(self.folder / "state.pt")
        write(self.folder / "curve.json", json.dumps(self.curve.to_json()))

    def _resume(self) -> bool:
        """Continue from the last validation of an interrupted run; episodes begin anew."""
        import torch

        file = self.folder / "curve.json"
        if not file.exists():
            self.folder.mkdir(parents=True, exist_ok=True)
            return False
        try:
            self.curve = Curve.from_json(json.loads(file.read_text(encoding="utf-8")))
            state = torch.load(self.folder / "state.pt", weights_only=True)
            self.model.policy.load_state_dict(state["policy"])
            self.model.policy.optimizer.load_state_dict(state["optimizer"])
        except (OSError, ValueError, LookupError, RuntimeError, pickle.UnpicklingError) as error:
            raise RunError(
                f"{self.folder}: cannot be continued ({error}); choose another out="
            ) from error
        self.model.num_timesteps = self.curve.steps[-1] - self.curve.before
        self._warm = False
        self._clock = time.process_time() - self.curve.seconds
        return True
