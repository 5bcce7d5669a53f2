"""Sending process: the child side, and the line protocol of parent and child.

A message is a line of JSON over standard input or output. The process writes no file, has no key
but its environment's, and ends by itself with its parent, however that ends.
"""

from __future__ import annotations

import asyncio
import gc
import json
import os
import signal
import sys
from collections.abc import Callable
from typing import Any, BinaryIO

from amemgym_env.models.litellm.faults import Fault
from amemgym_env.models.litellm.library import facts, log_nothing, request

LONGEST = 1 << 30
"""Bytes of a message at most; far beyond what any model reads."""
GRACE = 2.0
"""Seconds after which a child is taken to hang, or sees that its parent is gone."""


class Outbox:
    """Gathers the messages of one turn of the event loop: the other side is woken once."""

    def __init__(self, write: Callable[[bytes], object]) -> None:
        self._write = write
        self._lines: list[bytes] = []

    def put(self, message: Any) -> None:
        """Send a message, a value of JSON, at the end of this turn of the loop."""
        if not self._lines:
            asyncio.get_running_loop().call_soon(self._flush)
        self._lines.append(json.dumps(message).encode() + b"\n")

    def _flush(self) -> None:
        lines = b"".join(self._lines)
        self._lines.clear()
        self._write(lines)


async def read(reader: asyncio.StreamReader) -> Any:
    """Return the next message, None at the end of the stream."""
    line = await reader.readline()
    return json.loads(line) if line.endswith(b"\n") else None


def serve() -> None:
    """Be a child: send what comes in on standard input until the parent is gone."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the parent, which then ends us
    outlet = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # what a library prints must not get among the messages
    asyncio.run(_serve(outlet, os.getppid()))


async def _serve(outlet: BinaryIO, parent: int) -> None:
    loop = asyncio.get_running_loop()
    reader = asyncio.StreamReader(limit=LONGEST)
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    log_nothing()
    # What litellm made at its import stays: it need not be looked through again. A request leaves
    # hundreds of objects, and the usual threshold of 700 would collect at each.
    gc.collect()
    gc.freeze()
    gc.set_threshold(50_000, 50, 50)

    def write(lines: bytes) -> None:
        try:
            outlet.write(lines)
            outlet.flush()
        except BrokenPipeError:
            os._exit(0)

    outbox = Outbox(write)

    async def one(number: int, timeout: float, arguments: dict[str, Any]) -> None:
        found = await request(arguments, timeout)
        failed = isinstance(found, Fault)
        outbox.put([number, [None, vars(found)] if failed else [found, None]])

    async def watch() -> None:
        # A fork of the parent may hold our input open.
        while os.getppid() == parent:
            await asyncio.sleep(GRACE)
        os._exit(0)

    work = {loop.create_task(watch())}
    outbox.put("begun")
    while (message := await read(reader)) is not None:
        if len(message) == 2:
            outbox.put([message[0], facts(message[1])])
            continue
        task = loop.create_task(one(*message))
        work.add(task)
        task.add_done_callback(work.discard)
    os._exit(0)  # nobody is there to be answered: what is under way is not waited for
