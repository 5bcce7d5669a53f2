"""Recorded dialogues of another assistant and its user, for off-policy evaluation.

Two sources are read. A run's folder of this project holds one journal a scenario. A JSON file of
the benchmark's own code holds one item a user, an object `{"id": ..., ...}` or the place in the
scenarios' order; within it, however deeply nested by period, one list of messages a session, in
order of play: `[{"role": "user", "content": ...}, {"role": "assistant", "content": ...}, ...]`.
Openers may carry the session's time on a line of its own.

A trace must hold every round of the script, and what the script's user exposes in the script's
own words; anything else is an error before anything is played. Paper: AMemGym, Section 4.2.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from amemgym_env.agent import Turn
from amemgym_env.episode import Episode
from amemgym_env.errors import RunError
from amemgym_env.models.journal import FileJournal
from amemgym_env.models.last_play import last_play
from amemgym_env.scenarios.files import slug
from amemgym_env.scenarios.script import Kind, Script
from amemgym_env.seeding import digest

Place = tuple[int, int, int]
"""Period, session and round."""


@dataclass(frozen=True)
class RecordedDialogue:
    """The recorded dialogue of one scenario."""

    rounds: Mapping[Place, tuple[str, str]]
    """What the user and the assistant said."""

    def reply(self, turn: Turn) -> str:
        """Return what the recorded assistant said in a turn; empty where it said nothing."""
        return self.rounds[turn.period, turn.session, turn.round][1]

    def follow_up(self, episode: Episode, reply: str) -> str | None:
        """Return what the recorded user says next, for an environment's `user`."""
        _, period, session, number = episode.place
        said = self.rounds.get((period, session, number + 1))
        return None if said is None else said[0]


def traces(source: str | Path, scripts: Sequence[Script]) -> dict[str, RecordedDialogue]:
    """Return the recorded dialogue of every script's scenario, by id.

    Raises:
        RunError: nothing is recorded there, a scenario or round is missing, or the dialogue is
            another script's.
    """
    path = Path(source)
    if path.is_dir():
        found = {script.scenario.id: _journal(path, script) for script in scripts}
    elif path.is_file():
        found = _interactions(path, scripts)
    else:
        raise RunError(
            f"traces={source}: expected a run's folder or a file of interactions, found nothing"
        )
    for script in scripts:
        _check(source, script, found[script.scenario.id])
    return found


def fingerprint(dialogues: Mapping[str, RecordedDialogue]) -> str:
    """Return a hash of recorded dialogues: equal ones replay the same."""
    parts = [
        json.dumps([name, *sorted([*place, *said] for place, said in trace.rounds.items())])
        for name, trace in sorted(dialogues.items())
    ]
    return digest("traces", *parts).hex()


def _journal(folder: Path, script: Script) -> RecordedDialogue:
    file = folder / "journals" / f"{slug(script.scenario.id)}.jsonl"
    if not file.exists():
        raise RunError(
            f"traces={folder}: expected a journal of scenario {script.scenario.id!r}, found none; "
            "name a run of the same scenarios"
        )
    turns = last_play(FileJournal(file).read()).turns
    return RecordedDialogue({event.place: (event.message, event.reply) for event in turns})


def _interactions(file: Path, scripts: Sequence[Script]) -> dict[str, RecordedDialogue]:
    try:
        document = json.loads(file.read_text(encoding="utf-8-sig"))
    except ValueError as error:
        raise RunError(f"traces={file}: expected JSON, found {error}") from error
    if not isinstance(document, list):
        raise RunError(
            f"traces={file}: expected a list with one item a user, found {type(document).__name__}"
        )
    named = {item["id"]: item for item in document if isinstance(item, dict) and "id" in item}
    found = {}
    for number, script in enumerate(scripts):
        item = named.get(script.scenario.id)
        if item is None and not named and number < len(document):
            item = document[number]
        if item is None:
            raise RunError(
                f"traces={file}: expected interactions of scenario {script.scenario.id!r}, "
                f"found {len(document)} users without it"
            )
        found[script.scenario.id] = RecordedDialogue(_rounds(script, list(_sessions(item))))
    return found


def _sessions(item: Any) -> Iterator[list[Mapping[str, Any]]]:
    """Yield the message lists in an item, however deeply they are nested."""
    if isinstance(item, dict):
        for part in item.values():
            yield from _sessions(part)
    elif isinstance(item, list):
        if item and all(isinstance(part, dict) and "role" in part for part in item):
            yield item
        else:
            for part in item:
                yield from _sessions(part)


def _rounds(
    script: Script, sessions: Sequence[list[Mapping[str, Any]]]
) -> dict[Place, tuple[str, str]]:
    rounds: dict[Place, tuple[str, str]] = {}
    places = [
        (period, session)
        for period, conversations in enumerate(script.periods)
        for session in range(len(conversations))
    ]
    for place, messages in zip(places, sessions, strict=False):
        number = -1
        for part in messages:
            content = str(part.get("content") or "")
            if part["role"] == "user":
                number += 1
                rounds[*place, number] = (_TIME.sub("", content), "")
            elif part["role"] == "assistant" and number >= 0:
                rounds[*place, number] = (rounds[*place, number][0], content)
    return rounds


def _check(source: str | Path, script: Script, trace: RecordedDialogue) -> None:
    for period, conversations in enumerate(script.periods):
        for session, conversation in enumerate(conversations):
            for number, utterance in enumerate(conversation.utterances):
                said = trace.rounds.get((period, session, number))
                where = (
                    f"traces={source}: scenario {script.scenario.id!r}, period {period}, "
                    f"session {session}, round {number}"
                )
                if said is None:
                    raise RunError(f"{where}: expected a recorded round, found none")
                if utterance.kind is Kind.FOLLOW_UP and number > 0:
                    continue
                if said[0].strip() != utterance.text.strip():
                    raise RunError(
                        f"{where}: expected the user to say {utterance.text!r:.80}, found "
                        f"{said[0]!r:.80}; the trace belongs to another script"
                    )


_TIME = re.compile(r"\A\[[^\]\n]*\]\s*\n")
