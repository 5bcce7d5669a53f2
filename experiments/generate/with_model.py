"""Scenario sets made by a language model: cost estimate, generation, bill, and judge ratings.

python -m experiments.generate source=model backend.model=openai/gpt-4.1-mini dry_run=true
python -m experiments.generate source=model backend.model=... personas=people.csv out=my.json
python -m experiments.generate audit=my.json judge_backend=litellm judge_backend.model=...
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path

from rich.console import Console

from amemgym_env.errors import ConfigError
from amemgym_env.generation.audit.judge import judge
from amemgym_env.generation.audit.report import Figure
from amemgym_env.generation.pipeline.personas import Person, people
from amemgym_env.generation.pipeline.repair import RepairingClient
from amemgym_env.generation.pipeline.runner import PipelineRunner, RunnerResult, bill, estimate
from amemgym_env.models.client import Models
from amemgym_env.models.journal import FileJournal, Journal, MemoryJournal
from amemgym_env.models.last_play import calls_in
from amemgym_env.models.litellm.backend import LitellmModel
from amemgym_env.models.replay import Recorded
from amemgym_env.models.usage import Usage
from amemgym_env.prompts.base import BUILT_IN, Templates
from amemgym_env.prompts.generation import GENERATING, versions
from amemgym_env.scenarios import files as scenario_files
from amemgym_env.scenarios.model import Scenario
from amemgym_env.scenarios.script import Script, build
from amemgym_env.version import VERSION
from experiments.app.factories import litellm_model
from experiments.app.file_lock import sole_writer
from experiments.app.settings import LitellmBackend
from experiments.generate.settings import GenerateSettings

SHOWN = 10
"""Questions given up that are printed; all stand in the report."""
_OTHERS = 20
"""Scenarios whose openers serve as distractors where a set has no topic library."""


def backends(settings: GenerateSettings) -> dict[str, LitellmModel]:
    """Return the model that generates and, where it is another, the one that reads texts back.

    Raises:
        ConfigError: a model is not named or cannot be used.
    """
    if not settings.backend.model:
        raise ConfigError(
            "backend.model: expected a litellm model string, such as openai/gpt-4.1-mini, found "
            "none; source=library needs no model"
        )
    found = {"assistant": litellm_model(settings.backend)}
    if isinstance(settings.judge_backend, LitellmBackend):
        found["judge"] = litellm_model(settings.judge_backend)
    return found


def generate_by_model(settings: GenerateSettings, console: Console) -> int:
    """Make scenarios with a model, or estimate what it costs; returns the exit status.

    Raises:
        ConfigError: settings, personas or a model cannot be used; nothing was asked.
        RunError: another process writes the file; nothing was asked.
    """
    path, shape, options = settings.file(), settings.shaped(), settings.options()
    chosen = people(settings.personas, settings.split, settings.n, settings.seed)
    models = backends(settings)
    templates = (
        BUILT_IN
        if settings.templates is None
        else Templates.from_folder(settings.templates, GENERATING)
    )
    if settings.dry_run:
        _print_estimate(estimate(chosen, shape, options, settings.seed), models, settings, console)
        return 0
    campaign = PipelineRunner(
        dict(models),
        shape,
        options,
        settings.seed,
        templates,
        settings.workers,
        _Progress(len(chosen)),
    )
    with sole_writer(path):
        return _made(campaign, chosen, path, settings, console)


def _made(
    campaign: PipelineRunner,
    chosen: Sequence[Person],
    path: Path,
    settings: GenerateSettings,
    console: Console,
) -> int:
    folder = path.with_name(f"{path.name}.calls")
    outcome = campaign.run(chosen, folder)
    made = [found.scenario for found in outcome.made]
    if made:
        scenario_files.save(made, path)
    report = {
        "settings": settings.identity(),
        "versions": {"amemgym_env": VERSION, "prompts": versions()},
        **outcome.report(),
    }
    (folder / "report.json").write_text(
        json.dumps(report, indent=1, ensure_ascii=False) + "\n", encoding="utf-8"
    )
    _print_outcome(outcome, console)
    where = f"written to {path}: " if made else "nothing was written: "
    console.print(f"{where}{len(made)} of {settings.n} scenarios; all about it: {folder}",
                  markup=False)  # fmt: skip
    return 0 if len(made) == settings.n else 1


def judged(
    settings: GenerateSettings, scenarios: list[Scenario], console: Console
) -> tuple[Figure, ...]:
    """Return the judge's figures of a set; its calls stand in `out`, if named, and are kept.

    Raises:
        ConfigError: the judge's model cannot be used.
        RunError: another process writes the calls.
    """
    assert isinstance(settings.judge_backend, LitellmBackend)
    if settings.out is not None and not settings.out.endswith(".jsonl"):
        raise ConfigError(
            f"out: expected a .jsonl file for the judge's calls, found {settings.out!r}"
        )
    if not settings.judge_backend.model:
        raise ConfigError("judge_backend.model: expected a litellm model string, found none")
    model = litellm_model(settings.judge_backend)
    kept: AbstractContextManager[Journal] = nullcontext(MemoryJournal())
    held: AbstractContextManager[None] = nullcontext()
    if settings.out is not None:
        kept, held = FileJournal(Path(settings.out)), sole_writer(Path(settings.out))
    with held, kept as journal:
        earlier = journal.read()
        for call in calls_in(earlier):
            if call.usage is not None:
                model.remember(call.usage)
        models = Models({"assistant": model}, BUILT_IN, journal.write, Recorded(earlier))
        ask = RepairingClient(models, settings.repairs)
        others = scenarios[:_OTHERS]

        def script_of(scenario: Scenario) -> Script:
            return build(scenario, "default", 0, others=others)

        figures = judge(scenarios, script_of, ask, settings.judge_sample, settings.seed)
        _print_bill(bill(journal.read()), console)
    return figures


class _Progress:
    """One line on standard error for each person that is done."""

    def __init__(self, total: int) -> None:
        self._total = total
        self._done = 0

    def __call__(self, person: Person, what: str) -> None:
        self._done += 1
        said = "made" if what == "made" else f"failed ({what})"
        print(f"{self._done} of {self._total}: {person.id} {said}", file=sys.stderr)


def _print_outcome(outcome: RunnerResult, console: Console) -> None:
    given_up = [(made.scenario.id, found) for made in outcome.made for found in made.given_up]
    for person, found in given_up[:SHOWN]:
        console.print(f"{person}: gave up {found.question!r} ({found.step}: {found.reason})",
                      markup=False)  # fmt: skip
    if len(given_up) > SHOWN:
        console.print(f"and {len(given_up) - SHOWN} more questions given up", markup=False)
    for failed in outcome.failed:
        console.print(f"failed: {failed.person}, {failed.step}: {failed.reason}", markup=False)
    if outcome.stopped is not None:
        console.print(f"stopped: {outcome.stopped}; the same command continues", markup=False)
    _print_bill(outcome.bill, console)


def _print_estimate(
    usage: Mapping[str, Usage],
    models: Mapping[str, LitellmModel],
    settings: GenerateSettings,
    console: Console,
) -> None:
    console.print(
        f"estimate for {settings.n} scenarios, rehearsed offline; repairs, refinements and "
        "attempts that fail come on top",
        markup=False,
    )
    priced = {}
    for role, used in usage.items():
        model = models.get("judge" if role == "judge" else "assistant", models["assistant"])
        usd = model.cost(used.prompt_tokens, used.completion_tokens)
        priced[role] = Usage(used.calls, used.prompt_tokens, used.completion_tokens, usd=usd)
    _print_bill(priced, console)


def _print_bill(usage: Mapping[str, Usage], console: Console) -> None:
    total = sum(usage.values(), Usage())
    for role, used in [*usage.items(), ("total", total)]:
        dollars = "price unknown" if used.usd is None else f"{used.usd:.4f} dollars"
        console.print(
            f"{role:12}{used.calls:8} calls{used.prompt_tokens:12} + {used.completion_tokens:10} "
            f"tokens  {dollars}{'  (partly counted by us)' if used.estimated else ''}",
            markup=False,
        )
