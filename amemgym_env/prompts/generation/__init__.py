"""Prompts of scenario generation, by kind.

The steps of the paper's pipeline in their order: questions, schema, conflicts, state, updates,
events, utterances and answers, each of the latter two with a reading back and a refinement.
"""

from __future__ import annotations

from typing import Any

from amemgym_env.prompts.base import Prompt
from amemgym_env.prompts.generation.base import RepairNote
from amemgym_env.prompts.generation.questions import (
    QuestionDrafts,
    SchemaConflicts,
    SchemaRefinement,
)
from amemgym_env.prompts.generation.state import InitialState, LifeEvents, PeriodUpdates
from amemgym_env.prompts.generation.texts import (
    AnswerReading,
    AnswerRefinement,
    OpeningUtterances,
    PersonalAnswers,
    UtteranceReading,
    UtteranceRefinement,
)

STEPS: tuple[type[Prompt[Any]], ...] = (
    QuestionDrafts,
    SchemaConflicts,
    SchemaRefinement,
    InitialState,
    PeriodUpdates,
    LifeEvents,
    OpeningUtterances,
    UtteranceReading,
    UtteranceRefinement,
    PersonalAnswers,
    AnswerReading,
    AnswerRefinement,
    RepairNote,
)
"""All prompts of the generation."""

GENERATING: dict[str, type[Prompt[Any]]] = {prompt.kind: prompt for prompt in STEPS}


def versions() -> dict[str, int]:
    """Return the version of each prompt, for the report of a generation."""
    return {kind: prompt.version for kind, prompt in GENERATING.items()}
