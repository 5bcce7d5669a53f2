"""Resumable Optuna study: its trials are kept in a file.

The only file that imports Optuna, when a search begins. A continued search makes the same
suggestions as an uninterrupted one: the sampler is seeded for every trial.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, NamedTuple

from amemgym_env.errors import ConfigError
from amemgym_env.seeding import below
from experiments.evaluate.period_barrier import Report, RunPruned

Direction = Literal["maximize", "minimize"]


@dataclass(frozen=True)
class Range:
    """One setting to search: `key=a|b|c`, `key=low..high`, or `key=low..high log` (integers)."""

    key: str
    choices: tuple[str, ...] = ()
    low: int = 0
    high: int = 0
    log: bool = False

    @classmethod
    def parse(cls, text: str) -> Range:
        """Return the range that a text describes.

        Raises:
            ConfigError: it has another form.
        """
        key, _, values = text.partition("=")
        span = re.fullmatch(r"\s*(-?\d+)\.\.(-?\d+)(\s+log)?\s*", values)
        if span is not None and int(span[1]) < int(span[2]) and (not span[3] or int(span[1]) > 0):
            return cls(key.strip(), (), int(span[1]), int(span[2]), bool(span[3]))
        choices = tuple(part.strip() for part in values.split("|"))
        if span is not None or not key.strip() or len(choices) < 2 or not all(choices):
            raise ConfigError(
                f"space: expected key=a|b|c, key=low..high or key=low..high log, found {text!r}"
            )
        return cls(key.strip(), choices)

    def suggest(self, trial: Any) -> str:
        """Return a trial's word for this setting."""
        if self.choices:
            return f"{self.key}={trial.suggest_categorical(self.key, list(self.choices))}"
        return f"{self.key}={trial.suggest_int(self.key, self.low, self.high, log=self.log)}"

    def example(self) -> str:
        """Return a word that must be legal."""
        return f"{self.key}={self.choices[0] if self.choices else self.low}"


class Tried(NamedTuple):
    """One trial, as the file knows it."""

    number: int
    words: tuple[str, ...]
    state: str
    """complete, pruned, fail."""
    values: tuple[float, ...]
    """Empty unless complete."""
    error: str | None


Objective = Callable[[Sequence[str], Report], Sequence[float]]
"""(words of the setting, where to report accuracies by period) -> a value for each direction."""


class Study:
    """The trials in a file."""

    def __init__(self, file: Path, directions: Sequence[Direction], seed: int, prune: bool) -> None:
        """Open or begin a study.

        Raises:
            ConfigError: Optuna is not installed, or the file holds a search for something else.
        """
        try:
            import optuna
        except ImportError as error:
            raise ConfigError(
                "search needs Optuna; install it with pip install 'amemgym-env[search]'"
            ) from error
        from optuna.storages.journal import JournalFileBackend

        optuna.logging.set_verbosity(optuna.logging.WARNING)
        self._optuna = optuna
        self._seed = seed
        file.parent.mkdir(parents=True, exist_ok=True)
        pruner = optuna.pruners.MedianPruner(n_startup_trials=5, n_warmup_steps=1)
        self._study = optuna.create_study(
            storage=optuna.storages.JournalStorage(JournalFileBackend(str(file))),
            study_name="search",
            directions=list(directions),
            pruner=pruner if prune else optuna.pruners.NopPruner(),
            load_if_exists=True,
        )
        self._several = len(directions) > 1
        known = [direction.name.lower() for direction in self._study.directions]
        if known != list(directions):
            raise ConfigError(f"{file}: expected a search to {directions}, found one to {known}")
        # What was under way when a search was killed will never be told.
        for trial in self._study.get_trials(states=[optuna.trial.TrialState.RUNNING]):
            self._study.tell(trial.number, state=optuna.trial.TrialState.FAIL)

    def run(self, trials: int, space: Sequence[Range], objective: Objective) -> None:
        """Run what is missing to `trials` finished (complete or pruned) ones.

        A trial that fails, or whose value is NaN, is no finished one; it is not tried again by the
        same call, so a search in which everything fails ends.
        """
        state = self._optuna.trial.TrialState
        finished = sum(tried.state in ("complete", "pruned") for tried in self.tried())
        for _ in range(trials - finished):
            number = len(self._study.get_trials(deepcopy=False))
            self._study.sampler = self._optuna.samplers.TPESampler(
                seed=below(2**31, "search", self._seed, number), n_startup_trials=8
            )
            trial = self._study.ask()
            words = [part.suggest(trial) for part in space]
            trial.set_user_attr("words", words)
            try:
                values = [float(value) for value in objective(words, self._report(trial))]
            except RunPruned:
                self._study.tell(trial, state=state.PRUNED)
            except Exception as error:  # noqa: BLE001  # a search outlives any trial
                trial.set_user_attr("error", f"{type(error).__name__}: {error}")
                self._study.tell(trial, state=state.FAIL)
            except BaseException:
                self._study.tell(trial, state=state.FAIL)
                raise
            else:
                if any(math.isnan(value) for value in values):
                    trial.set_user_attr("error", "no score: NaN")
                    self._study.tell(trial, state=state.FAIL)
                else:
                    self._study.tell(trial, values)

    def _report(self, trial: Any) -> Report:
        def report(period: int, accuracy: float) -> bool:
            if self._several:
                return False  # Optuna prunes by one objective only
            trial.report(accuracy, period)
            return bool(trial.should_prune())

        return report

    def tried(self) -> list[Tried]:
        """Return all trials so far, in order."""
        return [
            Tried(
                trial.number,
                tuple(trial.user_attrs.get("words", ())),
                trial.state.name.lower(),
                tuple(trial.values or ()) if trial.state.name == "COMPLETE" else (),
                trial.user_attrs.get("error"),
            )
            for trial in self._study.get_trials(deepcopy=False)
        ]

    def best(self, count: int) -> list[Tried]:
        """Return up to `count` complete trials with different settings, best first.

        With several objectives those that no other beats come first, by the first objective.
        """
        complete = [tried for tried in self.tried() if tried.state == "complete"]
        front = {trial.number for trial in self._study.best_trials} if complete else set()
        ranked = sorted(
            complete,
            key=lambda tried: (
                self._several and tried.number not in front,
                -tried.values[0],
                tried.number,
            ),
        )
        different = {tuple(sorted(tried.words)): tried for tried in reversed(ranked)}
        return sorted(different.values(), key=ranked.index)[:count]
