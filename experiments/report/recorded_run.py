"""A finished run opened for analysis: settings, scripts, journals, agent and models."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from amemgym_env.agent import Agent
from amemgym_env.errors import ConfigError, RunError
from amemgym_env.evaluation.driver import made_agent
from amemgym_env.evaluation.run import DEFAULT_TOP_K, script_of
from amemgym_env.generation.sets import scenarios as named_scenarios
from amemgym_env.models.client import Models, Recorded
from amemgym_env.models.events import Event
from amemgym_env.models.journal import FileJournal
from amemgym_env.scenarios.files import slug
from amemgym_env.scenarios.script import Script
from experiments.app.factories import backends
from experiments.app.settings import checked
from experiments.evaluate.agents import agent_maker
from experiments.evaluate.run import game_of, roles
from experiments.evaluate.settings import EvaluateSettings

_NOT_SETTINGS = ("scenarios_hash", "traces_hash")


@dataclass(frozen=True)
class RecordedRun:
    """A run's folder with what it was played with."""

    path: Path
    settings: EvaluateSettings
    scripts: tuple[Script, ...]

    @classmethod
    def open(cls, path: str) -> RecordedRun:
        """Return the run that a folder holds.

        Raises:
            RunError: there is none, or its scenarios are not there any more.
        """
        folder = Path(path)
        try:
            stored: dict[str, Any] = json.loads((folder / "config.yaml").read_text("utf-8"))
            places = {"out": None, "resume": True, "workers": None}
            wanted = {key: value for key, value in stored.items() if key not in _NOT_SETTINGS}
            settings = checked(EvaluateSettings, {**wanted, **places})
        except (OSError, ValueError, AttributeError, ConfigError) as error:
            raise RunError(
                f"{path}: expected the folder of an evaluation, found none ({error})"
            ) from error
        chosen = list(named_scenarios(settings.scenarios, settings.limit))
        game = game_of(settings)
        return cls(folder, settings, tuple(script_of(item, game, chosen) for item in chosen))

    def events(self, script: Script) -> list[Event]:
        """Return everything that a scenario's journal holds."""
        return FileJournal(self.path / "journals" / f"{slug(script.scenario.id)}.jsonl").read()

    def models(self, script: Script, events: Sequence[Event] = ()) -> Models:
        """Return the models of one scenario; calls that are in the record are not made again."""
        made = backends(self.settings.backend, roles(self.settings))
        return Models(made(script), recorded=Recorded(events))

    def agent(self, models: Models) -> Agent:
        """Return a fresh agent like the run's."""
        return made_agent(agent_maker(self.settings.agent), models)

    @staticmethod
    def top_k(agent: Agent) -> int:
        """Return how many entries the agent is shown; negative: all."""
        return int(getattr(agent, "top_k", DEFAULT_TOP_K))
