"""The local model server, answering the calls of a generation as the rehearsal does.

A call's kind is known by the first line of its prompt. One fault more than the server's own:
`missing_field`, a JSON reply that lacks its first key.

    PYTHONPATH=. python tests/generation_server.py --share 0.33
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Mapping, Sequence
from typing import Any

from amemgym_env.generation.pipeline.mock_model import MockModel
from amemgym_env.prompts.generation import GENERATING
from amemgym_env.prompts.generation.ratings import RATINGS
from tests.support.chat_server import Behaviour, Faults, ModelServer

FAULTS = ("wrong_json", "refused", "missing_field", "hang", "empty", "cut", "server_error")

KINDS = {**GENERATING, **{prompt.kind: prompt for prompt in RATINGS}}


def first_line(text: str) -> str:
    return text.split("\n", 1)[0].split("{", 1)[0]


_LINES = {first_line(prompt.template): kind for kind, prompt in KINDS.items()}


def generation_kind(messages: Sequence[Mapping[str, Any]]) -> str:
    """Return the kind of a call from its first message; repairs follow it."""
    text = str(messages[0]["content"])
    return max(
        ((line, kind) for line, kind in _LINES.items() if text.startswith(line)),
        key=lambda found: len(found[0]),
    )[1]


class GenerationServer(ModelServer):
    """The server with a rehearsal behind it; counts answers by kind."""

    def __init__(
        self, behaviour: Behaviour | None = None, rehearsal: MockModel | None = None
    ) -> None:
        super().__init__(behaviour)
        self.rehearsal = rehearsal or MockModel()

    def _completion(
        self, body: dict[str, Any], kind: str, messages: list[dict[str, Any]], fault: str | None
    ) -> dict[str, Any]:
        text = self.behaviour.answer or self.rehearsal.answer(generation_kind(messages), messages)
        if fault == "missing_field":
            text = json.dumps(dict(list(json.loads(text).items())[1:]))
        own = None if fault == "missing_field" else fault
        document = super()._completion(body, kind, messages, own)
        message = document["choices"][0]["message"]
        if own is None or own == "cut":
            message["content"] = text if own is None else text[: max(1, len(text) - 3)]
            if isinstance(document.get("usage"), dict):
                document["usage"]["completion_tokens"] = len(text) // 4 + 1
        return document


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--share", type=float, default=0.0)
    parser.add_argument("--clumsy", type=float, default=0.0)
    parser.add_argument("--seconds", type=float, default=600.0)
    given = parser.parse_args()
    behaviour = Behaviour(faults=Faults(given.share, FAULTS))
    with GenerationServer(behaviour, MockModel(given.clumsy)) as server:
        print(server.address, flush=True)
        time.sleep(given.seconds)
