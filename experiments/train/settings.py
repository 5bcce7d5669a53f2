"""Settings of the training job; conf/train.yaml and conf/algorithm/ say what they mean."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field

from experiments.app.settings import Count, DifficultyName, Settings

Positive = Annotated[float, Field(gt=0)]
Share = Annotated[float, Field(ge=0, le=1)]


class OnPolicy(Settings):
    """`algorithm=ppo` and `algorithm=maskable_ppo`."""

    name: Literal["ppo", "maskable_ppo"]
    num_envs: Count
    n_steps: Count
    batch_size: Count
    n_epochs: Count
    learning_rate: Positive
    gamma: Share
    gae_lambda: Share
    ent_coef: Annotated[float, Field(ge=0)]
    hidden: Count


class OffPolicy(Settings):
    """`algorithm=dqn`."""

    name: Literal["dqn"]
    num_envs: Count
    batch_size: Count
    learning_rate: Positive
    gamma: Share
    buffer_size: Count
    learning_starts: Count
    train_freq: Count
    gradient_steps: Count
    target_update_interval: Count
    exploration_fraction: Share
    exploration_final_eps: Share
    hidden: Count


class OwnAlgorithm(Settings):
    """`algorithm=own`: any class of SB3's kind, with the arguments of its constructor."""

    name: Literal["own"]
    path: str
    num_envs: Count
    hidden: Count
    arguments: dict[str, Any]


Algorithm = Annotated[OnPolicy | OffPolicy | OwnAlgorithm, Field(discriminator="name")]


QuietKind = Literal["minimal_pairs", "other_topics", "small_talk", "other_users", "mixed"]


class TrainSettings(Settings):
    """Settings of `python -m experiments.train`."""

    env: Literal["memory", "slots"]
    scenarios: str
    limit: Count | None
    validation: str
    test: str | None
    v1: str | None
    difficulty: DifficultyName
    quiet_messages: QuietKind
    v1_quiet_messages: QuietKind
    question_blind: bool
    steps: Count
    seeds: Count
    seed: Annotated[int, Field(ge=0)]
    evaluate_every: Count
    pool_size: Count
    refresh_every: Count | None
    shaping: Annotated[float, Field(ge=0)]
    warm_start: Literal["writer", "foresight", "none"]
    warm_rounds: Count
    warm_updates: Count
    start: str | None
    trust: bool
    hand_candidates: Count
    planning: bool
    tensorboard: bool
    workers: Count
    out: str | None
    resume: bool
    algorithm: Algorithm

    def identity(self) -> dict[str, Any]:
        """Return what results depend on: all but where they go and how they are watched."""
        return self.model_dump(mode="json", exclude={"out", "resume", "tensorboard", "workers"})
