"""A local server that speaks chat completions and embeddings, with faults on command.

It listens on loopback alone and holds hundreds of connections in one event loop. Given scenarios,
it answers as the simulated model of the scenario that it recognises in the messages, so that runs
against it have real scores; otherwise it answers `{"answer": 1}`. `Faults` is drawn by hash for
each attempt (kind of call, content, attempt number), so a run is repeatable.

    PYTHONPATH=. python tests/server.py --port 8765 --latency 0.05 --scenarios FILE
"""

from __future__ import annotations

import argparse
import asyncio
import json
import re
import threading
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from amemgym_env.evaluation.bounds import UninformedAnswer
from amemgym_env.generation.sets import scenarios as named_scenarios
from amemgym_env.memory.embedding import DEFAULT
from amemgym_env.models.backend import Call
from amemgym_env.prompts.assistant import KINDS
from amemgym_env.scenarios.script import Script, build
from amemgym_env.seeding import uniform
from amemgym_env.simulated.model import SimulatedModel

TRANSPORT = ("rate_limit", "server_error", "disconnect", "hang")
CONTENT = (
    "empty",
    "null",
    "cut",
    "filtered",
    "refused",
    "wrong_json",
    "context_exceeded",
    "blocks",
)


@dataclass
class Faults:
    """What goes wrong, and how often."""

    share: float = 0.0
    """Share of attempts that go wrong."""
    kinds: Sequence[str] = ("rate_limit", "server_error", "disconnect")
    calls: Sequence[str] = ()
    """Kinds of calls that it happens to; empty: all."""
    first: int = 0
    """Instead of a share: the first n attempts of each call go wrong."""


@dataclass
class Behaviour:
    """How the server answers; may be changed while it runs."""

    latency: float = 0.0
    """Seconds before an answer."""
    faults: Faults = field(default_factory=Faults)
    retry_after: str | None = "0.01"
    usage: Any = True
    """Whether usage is sent; a mapping is sent as it is."""
    refuses: Sequence[str] = ()
    """Parameters that the model does not support (status 400)."""
    answer: str | None = None
    """Fixed text of every answer."""
    key: str | None = None
    """The only API key that is let in."""
    drip: float = 0.0
    """Seconds between the bytes of a body (a slow stream)."""
    echo: str | None = None
    """Status 500 with this text, as providers that echo what they were sent."""


class ModelServer:
    """The server; use it as a context manager (a thread of its own)."""

    def __init__(
        self,
        behaviour: Behaviour | None = None,
        scenarios: str | None = None,
        profile: str = "exact",
    ) -> None:
        self.behaviour = behaviour or Behaviour()
        self.people = None if scenarios is None else People(scenarios, profile)
        self.hits: Counter[str] = Counter()
        """Requests by kind of call."""
        self.faults: Counter[str] = Counter()
        """Attempts that went wrong on command, by fault."""
        self.keys: Counter[str] = Counter()
        """Requests by authorization header."""
        self.requests: list[dict[str, Any]] = []
        """The last bodies received."""
        self.open = 0
        self.most_open = 0
        self._attempts: Counter[str] = Counter()
        self._started = threading.Event()
        self.address = ""

    def __enter__(self) -> ModelServer:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()
        assert self._started.wait(10)
        return self

    def __exit__(self, *_: object) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(10)

    def _run(self) -> None:
        async def begin() -> None:
            server = await asyncio.start_server(self._serve, "127.0.0.1", 0, backlog=1024)
            self._listening = server
            self.address = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1"
            self._started.set()

        async def end() -> None:
            for task in asyncio.all_tasks() - {asyncio.current_task()}:
                task.cancel()
            await asyncio.sleep(0)  # cancelled tasks close their connections

        self._loop.run_until_complete(begin())
        self._loop.run_forever()
        self._listening.close()
        self._loop.run_until_complete(end())
        self._loop.run_until_complete(self._loop.shutdown_asyncgens())
        self._loop.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while True:
                head = await reader.readuntil(b"\r\n\r\n")
                headers = dict(re.findall(r"(?m)^([\w-]+): *(.*?)\r$", head.decode().lower()))
                body = await reader.readexactly(int(headers.get("content-length", 0)))
                key = re.search(rb"(?im)^authorization: bearer *(.*?)\r$", head)
                path = head.split(b" ", 2)[1].decode()
                self.open += 1
                self.most_open = max(self.most_open, self.open)
                try:
                    given = key[1].decode() if key else ""
                    done = await self._respond(path, json.loads(body or b"{}"), given, writer)
                finally:
                    self.open -= 1
                if not done:
                    return
        except (asyncio.IncompleteReadError, ConnectionError, asyncio.CancelledError):
            pass
        finally:
            writer.close()

    async def _respond(
        self, path: str, body: dict[str, Any], key: str, writer: asyncio.StreamWriter
    ) -> bool:
        """Answer one request; whether the connection stays."""
        self.keys[key] += 1
        self.requests = [*self.requests[-19:], body]
        behaviour = self.behaviour
        if path.endswith("/stats"):
            await self._send(writer, 200, {"hits": self.hits, "most_open": self.most_open})
            return True
        messages = body.get("messages") or []
        kind = "embedding" if path.endswith("/embeddings") else kind_of(messages)
        self.hits[kind] += 1
        if behaviour.latency:
            await asyncio.sleep(behaviour.latency)
        if behaviour.key is not None and key != behaviour.key:
            await self._error(writer, 401, f"Incorrect API key provided: {key}", "invalid_api_key")
            return True
        if behaviour.echo is not None:
            await self._error(writer, 500, behaviour.echo, "server_error")
            return True
        for name in behaviour.refuses:
            if name in body:
                text = f"Unsupported parameter: '{name}' is not supported with this model."
                await self._error(writer, 400, text, "unsupported_parameter")
                return True
        if kind == "embedding":
            texts = body["input"] if isinstance(body["input"], list) else [body["input"]]
            rows = DEFAULT(texts).tolist()
            data = [
                {"object": "embedding", "index": index, "embedding": row}
                for index, row in enumerate(rows)
            ]
            usage = {"prompt_tokens": 5, "total_tokens": 5}
            await self._send(writer, 200, {"object": "list", "data": data, "usage": usage})
            return True
        fault = self._fault(kind, messages)
        if fault is not None and fault in TRANSPORT:
            return await self._fail(fault, writer)
        if fault == "context_exceeded":
            text = "This model's maximum context length is 8192 tokens. Please reduce the length."
            await self._error(writer, 400, text, "context_length_exceeded")
            return True
        if fault == "filtered":
            text = (
                "The response was filtered due to the prompt triggering content management policy."
            )
            await self._error(writer, 400, text, "content_filter")
            return True
        await self._send(writer, 200, self._completion(body, kind, messages, fault))
        return True

    def _fault(self, kind: str, messages: list[dict[str, Any]]) -> str | None:
        faults = self.behaviour.faults
        if (faults.calls and kind not in faults.calls) or not (faults.share or faults.first):
            return None
        content = json.dumps(messages)
        self._attempts[content] += 1
        attempt = self._attempts[content]
        wrong = attempt <= faults.first or uniform("fault", content, attempt) < faults.share
        if not wrong:
            return None
        fault = faults.kinds[int(uniform("which", content, attempt) * len(faults.kinds))]
        self.faults[fault] += 1
        return fault

    async def _fail(self, fault: str, writer: asyncio.StreamWriter) -> bool:
        if fault == "rate_limit":
            after = self.behaviour.retry_after
            extra = {} if after is None else {"Retry-After": after}
            await self._error(writer, 429, "Rate limit reached", "rate_limit_exceeded", extra)
            return True
        if fault == "server_error":
            await self._error(writer, 500, "The server had an error", "server_error")
            return True
        if fault == "hang":
            await asyncio.sleep(3600)
        return False

    def _completion(
        self, body: dict[str, Any], kind: str, messages: list[dict[str, Any]], fault: str | None
    ) -> dict[str, Any]:
        behaviour = self.behaviour
        text: str = behaviour.answer or '{"answer": 1}'
        if behaviour.answer is None and self.people is not None:
            text = self.people.answer(kind, messages)
        content: Any = text
        reason, message = "stop", {}
        if fault in ("empty", "null"):
            content, reason = ("" if fault == "empty" else None), "stop"
        elif fault == "cut":
            content, reason = text[: max(1, len(text) - 3)], "length"
        elif fault == "refused":
            content, message = None, {"refusal": "I cannot help with that."}
        elif fault == "wrong_json":
            content = '{"anwser": [true]} I am not sure.'
        elif fault == "blocks":
            thought = {"type": "thinking", "thinking": '{"answer": 1}'}
            content = [thought, {"type": "text", "text": text}]
        length = sum([len(part["content"]) for part in messages])
        document: dict[str, Any] = {
            "id": "local",
            "object": "chat.completion",
            "created": 1,
            "model": body.get("model", "local"),
            "system_fingerprint": "local-1",
            "choices": [
                {
                    "index": 0,
                    "message": {"role": "assistant", "content": content, **message},
                    "finish_reason": reason,
                }
            ],
        }
        if isinstance(behaviour.usage, Mapping):
            document["usage"] = behaviour.usage
        elif behaviour.usage:
            prompt, completion = length // 4, len(text) // 4 + 1
            document["usage"] = {
                "prompt_tokens": prompt,
                "completion_tokens": completion,
                "total_tokens": prompt + completion,
            }
        return document

    async def _error(
        self,
        writer: asyncio.StreamWriter,
        status: int,
        message: str,
        code: str,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        error = {"message": message, "type": "error", "code": code, "param": None}
        await self._send(writer, status, {"error": error}, headers)

    async def _send(
        self,
        writer: asyncio.StreamWriter,
        status: int,
        document: Any,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        body = json.dumps(document).encode()
        headers = {"Date": "Wed, 21 Oct 2026 07:28:00 GMT", **(headers or {})}
        extra = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
        head = (
            f"HTTP/1.1 {status} -\r\nContent-Type: application/json\r\n"
            f"Content-Length: {len(body)}\r\n{extra}\r\n"
        ).encode()
        if self.behaviour.drip:
            writer.write(head)
            for byte in body:
                writer.write(bytes([byte]))
                await writer.drain()
                await asyncio.sleep(self.behaviour.drip)
            return
        writer.write(head + body)
        await writer.drain()


class People:
    """The simulated models of all scenarios of a set, recognised by what stands in messages."""

    def __init__(self, scenarios: str, profile: str = "exact") -> None:
        chosen = list(named_scenarios(scenarios))
        scripts = [build(item, "none", 0, rounds_initial=1, rounds_update=2) for item in chosen]
        self.models = [SimulatedModel(script, profile) for script in scripts]
        self.lines: dict[str, list[int]] = {}
        for number, script in enumerate(scripts):
            for text in _texts(script):
                self.lines.setdefault(_line(text), []).append(number)

    def answer(self, kind: str, messages: list[dict[str, Any]]) -> str:
        votes: Counter[int] = Counter()
        for part in reversed(messages):
            for line in str(part["content"]).split("\n"):
                votes.update(self.lines.get(_line(line), ()))
            if len(votes) == 1 or (votes and part is not messages[-1]):
                break
        number = min(votes, key=lambda found: (-votes[found], found), default=0)
        call = Call(kind, "exam", messages)  # type: ignore[arg-type]
        return self.models[number].complete(call).text


def _texts(script: Script) -> list[str]:
    texts = [question.query for question in script.scenario.qas]
    texts += [utterance.text for utterance in script.utterances]
    for variable, values in script.scenario.state_schema.items():
        texts += [f"{variable}: {value}" for value in values]
        texts.append(f"{variable}: {' | '.join(values)}")
    return [line for text in texts for line in text.split("\n")]


def _line(text: str) -> str:
    plain = re.sub(r"^(- |\[[^\]]*\] |user: |assistant: )+", "", text.strip())
    return re.sub(r"[\s_]+", " ", plain)


def _marks() -> list[tuple[str, str]]:
    """Return (longest line of a template that holds no placeholder, kind of the call)."""
    kinds = {**KINDS, UninformedAnswer.kind: UninformedAnswer}
    marks = []
    for kind, prompt in kinds.items():
        lines = [line for line in prompt.template.split("\n") if not re.search(r"\{\w+\}", line)]
        if lines and kind not in ("system_memory", "informed_answer", "uninformed_answer"):
            marks.append((max(lines, key=len), kind))
    return marks


_MARKS = _marks()


def kind_of(messages: Sequence[Mapping[str, Any]]) -> str:
    """Return the kind of a call from its last message."""
    last = str(messages[-1]["content"]) if messages else ""
    return next((kind for mark, kind in _MARKS if mark in last), "assistant_reply")


async def _forever(server: ModelServer, port: int) -> None:
    listening = await asyncio.start_server(server._serve, "127.0.0.1", port, backlog=1024)
    print(listening.sockets[0].getsockname()[1], flush=True)
    await listening.serve_forever()


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--latency", type=float, default=0.0)
    parser.add_argument("--scenarios")
    parser.add_argument("--faults", type=json.loads, default={})
    given = parser.parse_args()
    behaviour = Behaviour(given.latency, Faults(**given.faults))
    asyncio.run(_forever(ModelServer(behaviour, given.scenarios), given.port))
