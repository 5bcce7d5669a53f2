"""How fast does a run on a real model get with concurrency, and what do we add to each call?

Swept variable: calls under way at once, against a local server that answers after a fixed time.
Baseline: a bare litellm loop over the same messages at the same concurrency, in CPU seconds.
Start the server first: `python tests/server.py --port 8765 --latency 0.05`.

    python -m experiments.load SCENARIOS http://127.0.0.1:8765/v1 --concurrency 1 8 32 128

The run is a whole one, with journals on disk. CPU is that of this process and of those that send
for it; what it takes to start them is told apart.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import agents
from amemgym_env import litellm_senders, loop_thread
from amemgym_env.calls import Call, Completion
from amemgym_env.evaluation import Game, evaluate
from amemgym_env.litellm_backend import LitellmModel
from amemgym_env.litellm_library import library
from experiments.run_folder import RunFolder


class Measured(NamedTuple):
    """One measurement."""

    concurrency: int
    processes: int
    """That send requests; 0: the run's own."""
    calls: int
    begin_seconds: float
    """Until the first answer: imports, and the start of the processes."""
    seconds: float
    cpu_seconds: float
    """Of this process and those that send."""
    bare_seconds: float
    bare_cpu_seconds: float

    @property
    def added(self) -> float:
        """Milliseconds of CPU that we add to each call."""
        return 1000 * (self.cpu_seconds - self.bare_cpu_seconds) / max(1, self.calls)


def measure(
    scenarios: str,
    model: str,
    api_base: str,
    concurrency: int,
    processes: int | None = None,
    limit: int | None = None,
) -> Measured:
    """Return wall and CPU time of a native run with exam and probes, and of the bare loop."""
    backend = _Noting(
        model, api_base=api_base, max_concurrency=concurrency, processes=processes, temperature=0.0
    )
    begun = time.perf_counter()
    backend.complete(Call("assistant_reply", "assistant", [{"role": "user", "content": "hello"}]))
    begin = time.perf_counter() - begun
    backend.sent.clear()
    with tempfile.TemporaryDirectory() as folder:
        begun, cpu = time.perf_counter(), _cpu_seconds()
        evaluate(
            agents.Native,
            scenarios,
            game=Game(upper_bound=False),
            backends=lambda script: {"assistant": backend},
            limit=limit,
            workers=20,
            journal=RunFolder(Path(folder)).journal,
        )
        seconds, cpu = time.perf_counter() - begun, _cpu_seconds() - cpu
    loop_thread.shared().submit(litellm_senders.close_shared()).result()
    library()
    bare_begun, bare_cpu = time.perf_counter(), time.process_time()
    loop_thread.shared().submit(_bare(backend, backend.sent, concurrency)).result()
    bare = time.perf_counter() - bare_begun, time.process_time() - bare_cpu
    calls = len(backend.sent)
    return Measured(concurrency, backend.processes, calls, begin, seconds, cpu, *bare)


def _cpu_seconds() -> float:
    """Return what this process and those that send for it have used so far."""
    ticks = 0
    for pid in litellm_senders.shared(0).pids:
        fields = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
        ticks += int(fields[11]) + int(fields[12])
    return time.process_time() + ticks / os.sysconf("SC_CLK_TCK")


class _Noting(LitellmModel):
    """Notes every call, for the bare loop to repeat."""

    def __init__(self, *arguments: Any, **settings: Any) -> None:
        super().__init__(*arguments, **settings)
        self.sent: list[Call] = []

    async def _attempts(self, call: Call, deliver: Any) -> Completion:
        self.sent.append(call)
        return await super()._attempts(call, deliver)


async def _bare(backend: LitellmModel, calls: Sequence[Call], concurrency: int) -> None:
    """Send the same requests through litellm and nothing else."""
    slots = asyncio.Semaphore(concurrency)
    complete = library().acompletion

    async def one(call: Call) -> None:
        async with slots:
            arguments = {**backend.asked.of(call), **backend._fixed(call)}
            await complete(**arguments, timeout=backend.timeout, num_retries=0, max_retries=0)

    await asyncio.gather(*map(one, calls))


def main() -> None:
    """Measure each concurrency in a process of its own and print a table."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0] if __doc__ else None)
    parser.add_argument("scenarios")
    parser.add_argument("api_base")
    parser.add_argument("--model", default="openai/gpt-4.1-mini")
    parser.add_argument("--concurrency", type=int, nargs="+", default=[1, 8, 32, 128])
    parser.add_argument("--processes", type=int, help="that send; default: by concurrency")
    parser.add_argument("--limit", type=int)
    parser.add_argument("--one", action="store_true", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.one:
        found = measure(
            given.scenarios,
            given.model,
            given.api_base,
            given.concurrency[0],
            given.processes,
            given.limit,
        )
        print(json.dumps(found))
        return
    print(
        "concurrency  processes  calls  begin s  wall s  bare s  "
        "CPU ms/call  bare ms/call  added ms/call"
    )
    for concurrency in given.concurrency:
        words = [*sys.argv[1:], "--one", "--concurrency", str(concurrency)]
        output = subprocess.run(
            [sys.executable, "-W", "ignore", "-m", "experiments.load", *words],
            check=True,
            stdout=subprocess.PIPE,
            text=True,
        ).stdout
        found = Measured(*json.loads(output.splitlines()[-1]))
        each = 1000 / found.calls
        print(
            f"{found.concurrency:11d} {found.processes:10d} {found.calls:6d} "
            f"{found.begin_seconds:8.1f} {found.seconds:7.1f} "
            f"{found.bare_seconds:7.1f} {found.cpu_seconds * each:12.2f} "
            f"{found.bare_cpu_seconds * each:13.2f} {found.added:14.2f}",
            flush=True,
        )


if __name__ == "__main__":
    main()
