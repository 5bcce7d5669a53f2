"""Transcript of an episode: dialogue with times, operations with outcomes, exam results."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator
from typing import Any

from amemgym_env.agent import NO_ANSWER, UNSCORED, Op, Operation, Phase
from amemgym_env.envs.rewards import exam_scores, mean
from amemgym_env.episode import Episode, Place
from amemgym_env.memory.bank import Bank


def transcript(episode: Episode, marks: bool = False, start: int = 0, told: bool = False) -> str:
    """Return the lines of all steps from `start` on, and what is waited for now.

    With `marks`, every answer says whether it is right; that is truth, not for agents. With
    `told`, the first step's user message is left out: it was shown when it was waited for.
    """
    lines = list(_steps(episode, marks, start, told))
    if episode.over:
        lines.append("== end ==")
    elif episode.place.phase is Phase.DIALOGUE:
        lines.extend(_heading(episode, episode.place))
        lines.append(f"user: {episode.message}")
    return "\n".join(lines)


def wrapped(text: str, width: int = 80) -> str:
    """Return text for a terminal: long lines are wrapped, sessions and exams are separated."""
    lines: list[str] = []
    for line in text.splitlines():
        if line.startswith(("-- ", "== ")) and lines:
            lines.append("")
        indent = " " * (len(line) - len(line.lstrip()) + 2)
        lines += textwrap.wrap(line, width, subsequent_indent=indent) or [line]
    return "\n".join(lines)


def _steps(episode: Episode, marks: bool, start: int, told: bool) -> Iterator[str]:
    bank = Bank(capacity=episode.bank.capacity)
    turn = 0
    places = episode.places[: episode.position]
    for number, (place, record) in enumerate(zip(places, episode.records(), strict=True)):
        shown = number >= start
        if place.phase is Phase.DIALOGUE:
            message, reply, operations = record
            time = episode.script.periods[place.period][place.session].time
            if shown and not (told and number == start):
                yield from _heading(episode, place)
                yield f"user: {message}"
            if shown:
                yield f"assistant: {reply}"
            for operation in operations:
                op = Operation(Op(operation[0]), *operation[1:])
                bank, outcome = bank.apply(op, time, turn)
                if shown:
                    yield f"  {_operation(op, outcome.entry_id)}: {outcome.status.value}"
            turn += 1
        elif shown:
            exam = place.phase is Phase.EXAM
            yield from (_exam if exam else _probe)(episode, place.period, record[1], marks)


def _heading(episode: Episode, place: Place) -> Iterator[str]:
    if place.round == 0:
        conversation = episode.script.periods[place.period][place.session]
        yield f"-- period {place.period}, session {place.session}, {conversation.time} --"


def _operation(operation: Operation, entry_id: str | None) -> str:
    name = operation.op.value if entry_id is None else f"{operation.op.value} {entry_id}"
    return name if operation.text is None else f"{name} {operation.text!r}"


def _exam(episode: Episode, period: int, answers: Any, marks: bool) -> Iterator[str]:
    script = episode.script
    scores = exam_scores(answers, script.right_shown[period])
    end = script.scenario.periods[period].period_end
    scored = [score for score in scores.tolist() if score == score]
    yield (
        f"== exam after period {period}, {end}: {sum(scored):.0f} of {len(scored)} right "
        f"(accuracy {mean(scores):.3f}) =="
    )
    for number, (choice, score) in enumerate(zip(answers, scores, strict=True)):
        mark = f" [{ {0.0: 'wrong', 1.0: 'right'}.get(float(score), 'unscored') }]" if marks else ""
        yield f"  {script.scenario.qas[number].query}"
        yield f"    {_chosen(script.choices_shown(number), choice)}{mark}"


def _probe(episode: Episode, period: int, values: Any, marks: bool) -> Iterator[str]:
    scenario = episode.script.scenario
    yield f"== probe after period {period} =="
    for question, row in zip(scenario.qas, values, strict=True):
        for name, index in zip(question.variables, row, strict=True):
            truth = f" [true: {scenario.periods[period].state[name]}]" if marks else ""
            yield f"  {name}: {_chosen(scenario.state_schema[name], index)}{truth}"


def _chosen(options: Any, index: int) -> str:
    if index in (NO_ANSWER, UNSCORED):
        return "no answer" if index == NO_ANSWER else "not asked"
    return f"{index + 1}. {options[index]}"
