"""Pool of sending processes, as litellm needs about 10 ms of CPU a call.

The parent, here, keeps what is global (slots, pace, retries, budget, cache, records). A child, see
`litellm_sender`, takes the arguments of one request and returns what came of it. If it ends early,
that was a transport fault for the requests it had, and another one takes its place.
"""

from __future__ import annotations

import asyncio
import os
import sys
import threading
import weakref
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from amemgym_env.errors import ConfigError
from amemgym_env.models.litellm import event_loop as loop_thread
from amemgym_env.models.litellm.faults import Fault, out_of_time
from amemgym_env.models.litellm.library import Facts, set_environment
from amemgym_env.models.litellm.responses import Answered
from amemgym_env.models.litellm.worker import GRACE, LONGEST, Outbox, read

_WORTH = (8, 16)
"""Calls under way at once from which one and two processes are worth their memory (250 MB each)."""
_FACTS = 60.0
"""Seconds that a process may take to say what litellm knows of a model."""
_CALLS_A_PROCESS = 64
"""Calls under way at once for which there is another one after these."""


def fitting(calls_at_once: int) -> int:
    """Return how many processes serve so many calls under way; 0: this one does it itself."""
    cores = (
        len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    )
    if os.name != "posix" or cores < 2:
        return 0
    few = sum(calls_at_once >= least for least in _WORTH)
    return min(cores, max(few, calls_at_once // _CALLS_A_PROCESS))


class Senders:
    """Some child processes that share the requests of a process; used from its event loop alone.

    They end when the last model that holds this object lets it go, and with the process.
    """

    def __init__(self, count: int) -> None:
        self.count = count
        self.environment = _environment()
        self._children: list[_Child] = []
        ending = weakref.finalize(self, _let_go, self._children, os.getpid(), loop_thread.shared())
        ending.atexit = False

    async def ready(self) -> None:
        """Wait until every child has begun: some seconds at the first request.

        Raises:
            ConfigError: they cannot be started.
        """
        if sum(child.up for child in self._children) >= self.count:
            return
        self._children[:] = [child for child in self._children if not child.ended]
        while len(self._children) < self.count:
            self._children.append(_Child())
        await asyncio.gather(*(asyncio.shield(child.started) for child in self._children))

    async def request(self, arguments: Mapping[str, Any], timeout: float) -> Answered | Fault:
        """Send one request through the child that has the fewest; see `litellm_library.request`.

        Raises:
            ConfigError: a child cannot be started.
        """
        try:
            return await (await self._freest()).request(arguments, timeout)
        except EOFError as error:
            return Fault("retry", str(error), reason="disconnect")

    async def facts(self, model: str) -> Facts:
        """Return what litellm knows of a model; see `litellm_library.facts`.

        Raises:
            ConfigError: a child cannot be started, or ended.
        """
        try:
            return await (await self._freest()).facts(model)
        except EOFError as error:
            raise ConfigError(f"backend.processes: {error}") from error

    async def _freest(self) -> _Child:
        await self.ready()
        working = [child for child in self._children if child.up]
        if not working:
            raise EOFError("the processes that send requests ended")
        return min(working, key=lambda child: len(child.waiting))

    @property
    def pids(self) -> list[int]:
        """Process ids of the children that have begun."""
        return [child.pid for child in self._children if child.up]

    async def close(self) -> None:
        """End the children and wait for them; a further request starts them again."""
        await _close(self._children)


def _environment() -> int:
    """Return what tells environments apart: a child has the keys that are set when it begins."""
    # pytest changes this one with every test.
    items = (item for item in os.environ.items() if item[0] != "PYTEST_CURRENT_TEST")
    return hash(frozenset(items))


def _let_go(children: list[_Child], process: int, loop: loop_thread.LoopThread) -> None:
    # The collector calls this in any thread, the loop's own too: nobody waits here.
    if children and process == os.getpid() and not loop.loop.is_closed():
        loop.submit(_close(children))


async def _close(children: list[_Child]) -> None:
    ending = children[:]
    children.clear()
    await asyncio.gather(*(child.close() for child in ending))


class _Child:
    """One process, seen from its parent."""

    def __init__(self) -> None:
        self.waiting: dict[int, asyncio.Future[Any]] = {}
        self.up = self.ended = False
        self._count = 0
        self._process: Any = None
        self._reading: asyncio.Task[None] | None = None
        self.started = asyncio.ensure_future(self._start())

    @property
    def pid(self) -> int:
        pid: int = self._process.pid
        return pid

    async def request(self, arguments: Mapping[str, Any], timeout: float) -> Answered | Fault:
        try:
            # Here too: a child that hangs must not hold its requests.
            async with asyncio.timeout(timeout + GRACE):
                answered, fault = await self._ask(timeout, arguments)
        except TimeoutError:
            self._replace()
            return out_of_time(timeout)
        if fault is None:
            return Answered(*answered)
        return Fault(**{**fault, "parameters": tuple(fault["parameters"])})

    async def facts(self, model: str) -> Facts:
        try:
            async with asyncio.timeout(_FACTS):
                prices, *rest = await self._ask(model)
        except TimeoutError as error:
            self._replace()
            raise EOFError("a sending process hangs") from error
        return Facts(None if prices is None else (prices[0], prices[1]), *rest)

    def _replace(self) -> None:
        """End a process that hangs; the next request starts another one."""
        self.up = False
        with suppress(ProcessLookupError):
            self._process.kill()

    async def _ask(self, *question: Any) -> Any:
        number = self._count = self._count + 1
        found = self.waiting[number] = asyncio.get_running_loop().create_future()
        try:
            self._outbox.put([number, *question])
            return await found
        finally:
            self.waiting.pop(number, None)

    async def close(self) -> None:
        with suppress(ConfigError):
            await self.started
        if self._reading is not None:
            self._process.stdin.close()
            await self._reading

    async def _start(self) -> None:
        program = (
            "import sys; sys.path[:] = sys.argv[1:]; import amemgym_env.models.litellm.worker as it"
        )
        # The modules of this process, but not by chance a file of the present folder.
        paths = [*filter(None, sys.path), str(Path(__file__).resolve().parents[3])]
        self._process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-W", "ignore", "-c", f"{program}; it.serve()", *paths),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            limit=LONGEST,
        )
        if await read(self._process.stdout) is None:
            self.ended = True
            raise ConfigError(
                "backend.processes: expected processes that can be started, found one that ended "
                f"with status {await self._process.wait()}; use backend.processes=0"
            )
        self._outbox = Outbox(self._process.stdin.write)
        self.up = True
        self._reading = asyncio.ensure_future(self._read())

    async def _read(self) -> None:
        while (found := await read(self._process.stdout)) is not None:
            future = self.waiting.get(found[0])
            if future is not None and not future.done():
                future.set_result(found[1])
        self.up, self.ended = False, True
        text = f"the process that sends requests ended with status {await self._process.wait()}"
        for future in self.waiting.values():
            if not future.done():
                future.set_exception(EOFError(text))


_LOCK = threading.Lock()
_running: dict[int, Senders] = {}
"""The senders of this process, by process id: a forked child gets some of its own."""


def shared(count: int) -> Senders:
    """Return the senders of this process, at least `count`, with today's environment."""
    set_environment()
    with _LOCK:
        found = _running.get(os.getpid())
        if found is None or found.environment != _environment():
            if not _running:
                loop_thread.at_exit(close_shared)
            _running.clear()
            found = _running[os.getpid()] = Senders(count)
        found.count = max(found.count, count)
        return found


async def close_shared() -> None:
    """End the senders of this process, if there are any."""
    found = _running.pop(os.getpid(), None)
    if found is not None:
        await found.close()
