"""Throughput of concurrent model calls, and the overhead of each call.

Swept variable: calls under way at once, against a local server that answers after a fixed time.
Baseline: a bare litellm loop over the same messages at the same concurrency, in one process with
nothing else in it, in CPU seconds.
Start the server first: `python tests/server.py --port 8765 --latency 0.05`.

    python -m experiments.load SCENARIOS http://127.0.0.1:8765/v1 --concurrency 1 8 32 128

The run is a whole one, with journals on disk. CPU is that of this process and of those that send
for it; their start-up cost is reported separately.
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
from amemgym_env.evaluation.run import Game, evaluate
from amemgym_env.models.backend import Call, Completion
from amemgym_env.models.litellm import library as litellm_library
from amemgym_env.models.litellm import worker_pool as litellm_senders
from amemgym_env.models.litellm.backend import LitellmModel
from experiments.app.run_folder import RunFolder


class Measured(NamedTuple):
    """One measurement."""

    concurrency: int
    processes: int
    """That send requests; 0: the run's own."""
    calls: int
    begin_seconds: float
    """Until the first answers: imports, and the start of the processes."""
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
    hello = Call("assistant_reply", "assistant", [{"role": "user", "content": "hello"}])
    for future in [backend.start(hello) for _ in range(max(1, backend.processes))]:
        future.result()
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
        calls = [{**backend.asked.of(call), **backend._fixed(call)} for call in backend.sent]
        written = Path(folder, "calls.json")
        written.write_text(json.dumps(calls), encoding="utf-8")
        bare = _child("--bare", str(written), "--concurrency", str(concurrency))
    return Measured(concurrency, backend.processes, len(calls), begin, seconds, cpu, *bare)


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


def _child(*words: str) -> Any:
    """Return what a process of its own finds out."""
    program = [sys.executable, "-W", "ignore", "-m", "experiments.load", *words]
    # What we set for litellm is not part of a bare loop.
    own = {name: word for name, word in os.environ.items() if name not in litellm_library.SETTINGS}
    output = subprocess.run(program, check=True, stdout=subprocess.PIPE, text=True, env=own).stdout
    return json.loads(output.splitlines()[-1])


async def _bare(calls: Sequence[Any], concurrency: int) -> tuple[float, float]:
    """Return wall and CPU seconds of the same requests through litellm and nothing else."""
    os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"  # else it looks for one on the network
    import litellm

    slots = asyncio.Semaphore(concurrency)

    async def one(arguments: Any) -> None:
        async with slots:
            await litellm.acompletion(**arguments)

    await one(calls[0])
    begun, cpu = time.perf_counter(), time.process_time()
    await asyncio.gather(*map(one, calls))
    return time.perf_counter() - begun, time.process_time() - cpu


def main() -> None:
    """Measure each concurrency in a process of its own and print a table."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0] if __doc__ else None)
    parser.add_argument("scenarios", nargs="?")
    parser.add_argument("api_base", nargs="?")
    parser.add_argument("--model", default="openai/gpt-4.1-mini")
    parser.add_argument("--concurrency", type=int, nargs="+", default=[1, 8, 32, 128])
    parser.add_argument("--processes", type=int, help="that send; default: by concurrency")
    parser.add_argument("--limit", type=int)
    parser.add_argument("--one", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--bare", type=Path, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.bare is not None:
        calls = json.loads(given.bare.read_text(encoding="utf-8"))
        print(json.dumps(asyncio.run(_bare(calls, given.concurrency[0]))))
        return
    if given.scenarios is None or given.api_base is None:
        parser.error("expected scenarios and the address of a server")
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
        found = Measured(*_child(*sys.argv[1:], "--one", "--concurrency", str(concurrency)))
        each = 1000 / found.calls
        print(
            f"{found.concurrency:11d} {found.processes:10d} {found.calls:6d} "
            f"{found.begin_seconds:8.1f} {found.seconds:7.1f} "
            f"{found.bare_seconds:7.1f} {found.cpu_seconds * each:12.2f} "
            f"{found.bare_cpu_seconds * each:13.2f} {found.added:14.2f}",
            flush=True,
        )
