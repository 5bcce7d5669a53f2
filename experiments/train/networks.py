"""Networks of memory policies in torch, and their export to numpy.

Never imported by the package. `SlotsNetwork` is `networks.slots_scores` with
a value head; `exported` extracts the arrays of either network from an SB3 policy.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from gymnasium import spaces
from sb3_contrib.common.maskable.policies import MaskableActorCriticPolicy
from stable_baselines3.common.policies import ActorCriticPolicy
from stable_baselines3.common.torch_layers import BaseFeaturesExtractor
from stable_baselines3.dqn.policies import DQNPolicy, QNetwork
from torch import Tensor, nn

from amemgym_env.errors import ConfigError
from amemgym_env.policies.networks import Weights


class ScaledExtractor(BaseFeaturesExtractor):
    """Divides every feature by its scale: rare counts learn as fast as common ones.

    The scale becomes part of the first layer when a policy is exported.
    """

    scale: Tensor

    def __init__(self, observation_space: spaces.Box, scale: npt.NDArray[np.float32]) -> None:
        super().__init__(observation_space, scale.size)
        self.register_buffer("scale", torch.as_tensor(scale))

    def forward(self, observations: Tensor) -> Tensor:
        """Return scaled observations, flat."""
        return (observations / self.scale).flatten(start_dim=1)


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


def exported(policy: Any) -> Weights:
    """Return the arrays of a policy of SB3, as `networks.py` names them."""
    weights: dict[str, Any] = {}
    for name, layer in _layers(policy).items():
        weights[f"{name}.weight"] = _array(layer.weight.T / _scale(policy, name))
        weights[f"{name}.bias"] = _array(layer.bias)
    network = _slots_network(policy)
    if network is not None:
        weights["present"] = np.array(network.present, np.float32)
    return weights


def imported(policy: Any, weights: Weights) -> None:
    """Set the arrays of a policy of SB3 to those of a checkpoint of the same architecture.

    Raises:
        ConfigError: the checkpoint has another architecture.
    """
    known = exported(policy)
    if {name: array.shape for name, array in known.items()} != {
        name: array.shape for name, array in weights.items()
    }:
        raise ConfigError("start: expected a checkpoint of the same network, found another one")
    with torch.no_grad():
        for name, layer in _layers(policy).items():
            given = torch.as_tensor(weights[f"{name}.weight"]) * _scale(policy, name)
            layer.weight.copy_(given.T)
            layer.bias.copy_(torch.as_tensor(weights[f"{name}.bias"]))


def _slots_network(policy: Any) -> SlotsNetwork | None:
    if isinstance(policy, DQNPolicy):
        network: Any = getattr(policy.q_net.q_net, "network", None)
    else:
        network = getattr(policy, "mlp_extractor", None)
    return network if isinstance(network, SlotsNetwork) else None


def _layers(policy: Any) -> dict[str, nn.Linear]:
    """Return the linear layers of an actor by their names.

    Raises:
        ConfigError: the policy has another architecture than the two known ones.
    """
    network = _slots_network(policy)
    if network is not None:
        return {name: getattr(network, name) for name in network.LAYERS}
    if isinstance(policy, DQNPolicy):
        parts = list(policy.q_net.q_net.modules())
    elif isinstance(policy, ActorCriticPolicy | MaskableActorCriticPolicy):
        parts = [*policy.mlp_extractor.policy_net.modules(), policy.action_net]
    else:
        raise ConfigError(
            f"algorithm: expected an actor-critic or DQN policy, found {type(policy).__name__}"
        )
    linear = [part for part in parts if isinstance(part, nn.Linear)]
    return {f"layer.{number}": layer for number, layer in enumerate(linear)}


def _scale(policy: Any, name: str) -> Tensor:
    """Return what the inputs of a layer have been divided by, (inputs, 1), or 1."""
    owner = policy.q_net if isinstance(policy, DQNPolicy) else policy
    scale = getattr(owner.features_extractor, "scale", None)
    row = {"layer.0": None, "message": 0, "beside": 0, "entry": 1}.get(name, -1)
    if scale is None or row == -1:
        return torch.ones(())
    found: Tensor = scale if row is None else scale[row]
    return found[:, None]


def _array(values: Tensor) -> Any:
    return np.ascontiguousarray(values.detach().cpu().numpy().astype(np.float32))
