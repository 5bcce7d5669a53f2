"""The networks of memory policies in torch, and what they become in numpy.

Imported where torch is wanted, never by the package. `SlotsNetwork` is `networks.slots_scores` with
a second head for the value; `exported` reads the arrays of either kind out of what SB3 trained.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import torch
from gymnasium import spaces
from sb3_contrib.common.maskable.policies import MaskableActorCriticPolicy
from stable_baselines3.common.policies import ActorCriticPolicy
from stable_baselines3.dqn.policies import DQNPolicy, QNetwork
from torch import Tensor, nn

from amemgym_env.errors import ConfigError
from amemgym_env.networks import Weights


class SlotsNetwork(nn.Module):
    """Scores slot actions, and values states; the order of entries is irrelevant to both."""

    LAYERS = ("message", "entry", "beside", "context", "inner", "around", "scored", "whole")

    def __init__(self, shape: tuple[int, int], present: int, hidden: int = 64) -> None:
        super().__init__()
        self.shape = shape
        self.present = present
        self.latent_dim_pi = 2 * shape[0]
        self.latent_dim_vf = hidden
        columns = shape[1]
        self.message = nn.Linear(columns, hidden)
        self.entry = nn.Linear(columns, hidden)
        self.beside = nn.Linear(columns, hidden)
        self.context = nn.Linear(3 * hidden, hidden)
        self.inner = nn.Linear(hidden, hidden)
        self.around = nn.Linear(hidden, hidden)
        self.scored = nn.Linear(hidden, 2)
        self.whole = nn.Linear(hidden, 2)
        self.critic = nn.Linear(3 * hidden, hidden)
        for head in (self.scored, self.whole):
            nn.init.orthogonal_(head.weight, 0.1)

    def _pooled(self, flat: Tensor) -> tuple[Tensor, Tensor]:
        observations = flat.reshape(-1, *self.shape)
        message, entries = observations[:, 0], observations[:, 1:]
        present = (entries[:, :, self.present] > 0).to(entries.dtype)
        encoded = torch.relu(self.entry(entries) + self.beside(message)[:, None])
        encoded = encoded * present[:, :, None]
        count = present.sum(dim=1, keepdim=True).clamp(min=1.0)
        parts = [torch.relu(self.message(message)), encoded.sum(dim=1) / count, encoded.amax(dim=1)]
        return encoded, torch.cat(parts, dim=1)

    def _scores(self, encoded: Tensor, pooled: Tensor) -> Tensor:
        context = torch.relu(self.context(pooled))
        inner = torch.relu(self.inner(encoded) + self.around(context)[:, None])
        scored = self.scored(inner)
        return torch.cat([self.whole(context), scored[:, :, 0], scored[:, :, 1]], dim=1)

    def forward(self, flat: Tensor) -> tuple[Tensor, Tensor]:
        """Return action scores (N, actions) and the value's features (N, hidden)."""
        encoded, pooled = self._pooled(flat)
        return self._scores(encoded, pooled), torch.relu(self.critic(pooled))

    def forward_actor(self, flat: Tensor) -> Tensor:
        """Return the action scores alone."""
        return self._scores(*self._pooled(flat))

    def forward_critic(self, flat: Tensor) -> Tensor:
        """Return the value's features alone."""
        return torch.relu(self.critic(self._pooled(flat)[1]))


class _SlotsActorCritic:
    """An actor and critic over `SlotsNetwork`; `present` and `hidden` come as its arguments."""

    observation_space: spaces.Space[Any]
    action_net: Any
    optimizer_class: Any
    optimizer_kwargs: dict[str, Any]

    def __init__(self, *args: Any, present: int, hidden: int, **more: Any) -> None:
        self._network_settings = (present, hidden)
        super().__init__(*args, ortho_init=False, **more)  # type: ignore[call-arg]

    def _build_mlp_extractor(self) -> None:
        shape = self.observation_space.shape
        assert shape is not None
        self.mlp_extractor: Any = SlotsNetwork((shape[0], shape[1]), *self._network_settings)

    def _build(self, lr_schedule: Any) -> None:
        super()._build(lr_schedule)  # type: ignore[misc]
        # The network scores actions itself. 2 + 2 * capacity scores, and as many actions.
        self.action_net = nn.Identity()
        parameters = self.parameters()  # type: ignore[attr-defined]
        settings = {"lr": lr_schedule(1), **self.optimizer_kwargs}
        self.optimizer = self.optimizer_class(parameters, **settings)


class SlotsPolicy(_SlotsActorCritic, ActorCriticPolicy):
    """For PPO."""


class MaskableSlotsPolicy(_SlotsActorCritic, MaskableActorCriticPolicy):
    """For MaskablePPO."""


class _SlotsScores(nn.Module):
    def __init__(self, network: SlotsNetwork) -> None:
        super().__init__()
        self.network = network

    def forward(self, flat: Tensor) -> Tensor:
        return self.network.forward_actor(flat)


class SlotsQPolicy(DQNPolicy):
    """For DQN: the scores are the values of the actions."""

    def __init__(self, *args: Any, present: int, hidden: int, **more: Any) -> None:
        self._network_settings = (present, hidden)
        super().__init__(*args, **more)

    def make_q_net(self) -> QNetwork:
        """Return a network over slots in the place of a plain one."""
        made = super().make_q_net()
        shape = self.observation_space.shape
        assert shape is not None
        made.q_net = _SlotsScores(SlotsNetwork((shape[0], shape[1]), *self._network_settings))  # type: ignore[assignment]
        return made


def action_scores(policy: Any, observations: Tensor) -> Tensor:
    """Return the scores of actions before any mask, (N, actions), with gradients."""
    if isinstance(policy, DQNPolicy):
        found: Tensor = policy.q_net(observations)
        return found
    features = policy.extract_features(observations, policy.pi_features_extractor)
    scores: Tensor = policy.action_net(policy.mlp_extractor.forward_actor(features))
    return scores


def exported(policy: Any, action_space: spaces.Space[Any]) -> Weights:
    """Return the arrays of a policy of SB3, as `networks.py` names them.

    Raises:
        ConfigError: the policy has another architecture than the two known ones.
    """
    if isinstance(policy, DQNPolicy):
        network: Any = policy.q_net.q_net
        if isinstance(network, _SlotsScores):
            return _slots(network.network)
        return _plain(network.modules())
    extractor = getattr(policy, "mlp_extractor", None)
    if isinstance(extractor, SlotsNetwork):
        return _slots(extractor)
    if isinstance(policy, ActorCriticPolicy | MaskableActorCriticPolicy) and extractor is not None:
        return _plain([*extractor.policy_net.modules(), policy.action_net])
    raise ConfigError(
        f"algorithm: expected an actor-critic or DQN policy over features, found "
        f"{type(policy).__name__} for {action_space}"
    )


def _plain(modules: Iterable[nn.Module]) -> Weights:
    weights: dict[str, Any] = {}
    for number, layer in enumerate(part for part in modules if isinstance(part, nn.Linear)):
        weights[f"layer.{number}.weight"] = _array(layer.weight.T)
        weights[f"layer.{number}.bias"] = _array(layer.bias)
    return weights


def _slots(network: SlotsNetwork) -> Weights:
    weights: dict[str, Any] = {"present": np.array(network.present, np.float32)}
    for name in network.LAYERS:
        layer = getattr(network, name)
        weights[f"{name}.weight"] = _array(layer.weight.T)
        weights[f"{name}.bias"] = _array(layer.bias)
    return weights


def imported(policy: Any, weights: Weights) -> None:
    """Set the arrays of a policy of SB3 to those of a checkpoint of the same architecture."""
    known = exported(policy, policy.action_space)
    if {name: array.shape for name, array in known.items()} != {
        name: array.shape for name, array in weights.items()
    }:
        raise ConfigError("start: expected a checkpoint of the same network, found another one")
    layers = _layers(policy)
    with torch.no_grad():
        for name, layer in layers.items():
            layer.weight.copy_(torch.as_tensor(weights[f"{name}.weight"]).T)
            layer.bias.copy_(torch.as_tensor(weights[f"{name}.bias"]))


def _layers(policy: Any) -> dict[str, nn.Linear]:
    if isinstance(policy, DQNPolicy):
        network: Any = policy.q_net.q_net
        inner = network.network if isinstance(network, _SlotsScores) else None
        parts = [] if inner is not None else list(network.modules())
    else:
        extractor: Any = policy.mlp_extractor
        inner = extractor if isinstance(extractor, SlotsNetwork) else None
        parts = [] if inner is not None else [*extractor.policy_net.modules(), policy.action_net]
    if inner is not None:
        return {name: getattr(inner, name) for name in inner.LAYERS}
    linear = [part for part in parts if isinstance(part, nn.Linear)]
    return {f"layer.{number}": layer for number, layer in enumerate(linear)}


def _array(values: Tensor) -> Any:
    return np.ascontiguousarray(values.detach().cpu().numpy().astype(np.float32))
