"""Cost estimate of a run: calls, tokens and dollars by role, from a play on the simulated model.

Prompts are the real ones; tokens are characters / 4; an assistant's reply is taken to be as long as
`REPLY_TOKENS`, other replies as the simulated model writes them. Prices are litellm's table's.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from rich.box import SIMPLE_HEAD
from rich.table import Table

from amemgym_env.evaluation.driver import AgentMaker
from amemgym_env.evaluation.run import Backends, Game, evaluate, script_of
from amemgym_env.models.backend import Backend, Call, Completion
from amemgym_env.models.usage import Usage
from amemgym_env.scenarios.model import Scenario
from amemgym_env.scenarios.script import Script
from amemgym_env.simulated.model import SimulatedModel

REPLY_TOKENS = 250
"""Assumed length of an assistant's reply."""
CHARACTERS_A_TOKEN = 4

Price = Callable[[int, int], float | None]
"""Dollars for prompt and completion tokens; None: not known."""


class Estimate(NamedTuple):
    """What one role's calls would cost."""

    role: str
    model: str
    usage: Usage


class _Counted(Backend):
    """Answers as the simulated model, at a real model's length and price."""

    def __init__(self, script: Script, real: Backend) -> None:
        self.name = f"estimate/{real.name}"
        self._simulated = SimulatedModel(script, "exact")
        self._price: Price = getattr(real, "cost", lambda prompt, completion: None)

    def complete(self, call: Call) -> Completion:
        """Return a reply and what it would cost."""
        done = self._simulated.complete(call)
        text = done.text
        if call.kind == "assistant_reply":
            missing = REPLY_TOKENS * CHARACTERS_A_TOKEN - len(text)
            text += " And so on." * max(0, missing // 11)
        usage = done.usage
        tokens = len(text) // CHARACTERS_A_TOKEN + 1
        usd = self._price(usage.prompt_tokens, tokens)
        return Completion(text, Usage(1, usage.prompt_tokens, tokens, usd=usd, estimated=True))


def estimate(
    make_agent: AgentMaker, scenarios: Sequence[Scenario], game: Game, backends: Backends
) -> list[Estimate]:
    """Return what the calls of a run would cost, by role; no call is made."""

    def counted(script: Script) -> Mapping[str, Backend]:
        return {
            role: real if real.simulated else _Counted(script, real)
            for role, real in backends(script).items()
        }

    results = evaluate(make_agent, scenarios, game=game, backends=counted).file()
    first = _names(backends, scenarios, game)
    return [
        Estimate(role, first.get(role, first["assistant"]), usage)
        for role, usage in results.usage.items()
    ]


def _names(backends: Backends, scenarios: Sequence[Scenario], game: Game) -> dict[str, str]:
    """Return the name of the model of each role group."""
    found = backends(script_of(scenarios[0], game, scenarios))
    return {role: backend.name for role, backend in found.items()}


def table(estimates: Sequence[Estimate]) -> Table:
    """Return estimates as rows with their sum."""
    made = Table(
        title=f"Estimate; no call was made. Replies are taken to be {REPLY_TOKENS} tokens long",
        title_justify="left",
        box=SIMPLE_HEAD,
        width=80,
    )
    made.add_column("role", no_wrap=True)
    made.add_column("model", overflow="fold", ratio=1)  # its end tells it from its family
    for name in ("calls", "prompt", "completion", "dollars"):
        made.add_column(name, justify="right", no_wrap=True)
    total = sum((part.usage for part in estimates), Usage())
    for role, model, usage in [*estimates, Estimate("all", "", total)]:
        dollars = "unknown" if usage.usd is None else f"{usage.usd:.2f}"
        counts = (usage.calls, usage.prompt_tokens, usage.completion_tokens)
        made.add_row(
            role, model.removeprefix("litellm/"), *(f"{count:,}" for count in counts), dollars
        )
    return made
