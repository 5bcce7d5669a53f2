"""Event loop in a thread of its own, shared by all calls that wait for the network.

Hundreds of calls wait in one thread, each with a time limit that holds whatever the server does.
One loop serves all backends of a process, because provider libraries keep connections by loop.
"""

from __future__ import annotations

import asyncio
import atexit
import os
import threading
from collections.abc import Callable, Coroutine, Sequence
from concurrent.futures import Future
from typing import Any, TypeVar

T = TypeVar("T")

Last = Callable[[], Coroutine[Any, Any, None]]

_LOCK = threading.Lock()
_last: list[Last] = []
_running: dict[int, LoopThread] = {}
"""The loop of this process, by process id: a forked child gets one of its own."""


class LoopThread:
    """An event loop that runs in a daemon thread until the process ends."""

    def __init__(self) -> None:
        self.loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self.loop.run_forever, name="calls", daemon=True)
        self._thread.start()

    def submit(self, work: Coroutine[Any, Any, T]) -> Future[T]:
        """Begin a coroutine in the loop and return at once."""
        return asyncio.run_coroutine_threadsafe(work, self.loop)

    def stop(self, last: Sequence[Last], timeout: float = 5.0) -> None:
        """Run last coroutines (seconds at most for each), then stop the loop and its thread."""
        try:
            for work in last:
                self.submit(work()).result(timeout)
        finally:
            self.loop.call_soon_threadsafe(self.loop.stop)
            self._thread.join(timeout)
            if not self._thread.is_alive():
                self.loop.close()


def shared() -> LoopThread:
    """Return the loop of this process, started at the first call."""
    with _LOCK:
        found = _running.get(os.getpid())
        if found is None:
            _running.clear()
            found = _running[os.getpid()] = LoopThread()
        return found


def at_exit(last: Last) -> None:
    """Let a coroutine run in the loop when the process ends; the newest runs first.

    It runs before whatever is registered with `atexit` by now.
    """
    with _LOCK:
        _last.insert(0, last)
        atexit.unregister(_stop_shared)
        atexit.register(_stop_shared)


def _stop_shared() -> None:
    with _LOCK:
        found = _running.pop(os.getpid(), None)
    if found is not None:
        found.stop(_last)
