"""Table of all modes of a provider server: outcome, attempts and exit status of a whole evaluation.

    python tests/support/provider_table.py PROVIDER.py OUT.json [MODE ...]
    python tests/support/provider_table.py page BEFORE.json AFTER.json > docs/provider-modes.md

Each mode is played by the command `evaluate` of the working directory, so an older checkout is
measured by the same file.
"""

from __future__ import annotations

import contextlib
import importlib.util
import io
import json
import os
import runpy
import sys
import tempfile
import threading
import time
import warnings
from http.server import ThreadingHTTPServer
from pathlib import Path
from typing import Any

from hydra.core.global_hydra import GlobalHydra

KEYS = ("OPENAI_API_KEY", "ANTHROPIC_API_KEY", "GEMINI_API_KEY")
LIMITED = ("vllmnew", "vllm20", "mtlarge", "anthmax")
"""Modes that need a limit on the reply, beside those that begin with `mt_`."""


def served(path: str) -> tuple[Any, str]:
    """Start the provider in this process; return its module and address."""
    spec = importlib.util.spec_from_file_location("provider", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    server = ThreadingHTTPServer(("127.0.0.1", 0), module.H)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return module, f"http://127.0.0.1:{server.server_address[1]}"


def model_of(mode: str, address: str) -> tuple[str, str]:
    """Return the litellm name and the address under which a mode is asked."""
    if mode.startswith("anth") and mode != "anthcredit":
        return "anthropic/claude-3-opus-20240229", f"{address}/{mode}"
    if mode.startswith("gem") and mode not in ("gem", "gemalways"):
        return "gemini/gemini-2.5-flash", f"{address}/{mode}"
    if mode.startswith("ollama"):
        return "ollama_chat/m", f"{address}/{mode}"
    return "openai/m", f"{address}/{mode}/v1"


def command(words: list[str]) -> tuple[int, str]:
    """Run the command in this process; return its exit status and what it said of errors."""
    GlobalHydra.instance().clear()
    said = io.StringIO()
    sys.argv = ["evaluate", *words]
    try:
        with contextlib.redirect_stderr(said), contextlib.redirect_stdout(io.StringIO()):
            runpy.run_module("experiments.evaluate", run_name="__main__", alter_sys=True)
    except SystemExit as end:
        return int(end.code or 0), said.getvalue()
    except Exception as error:  # noqa: BLE001 - the user's code, as a shell would see it
        return 1, f"{said.getvalue()}\n{type(error).__name__}: {error}"
    return 0, said.getvalue()


def played(mode: str, module: Any, address: str) -> dict[str, Any]:
    """Return what came of one evaluation in a mode."""
    model, base = model_of(mode, address)
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "run"
        words = [
            "scenarios=tiny", "limit=1", "agent=native", "backend=litellm",
            f"backend.model={model}", f"backend.api_base={base}", "backend.first_delay=0.01",
            "backend.retries=3", "backend.processes=0", "seed=0",
            "backend.response_format=object", f"out={out}",
        ]  # fmt: skip
        if mode in LIMITED or mode.startswith("mt_"):
            words.append("backend.max_tokens=8192")
        before, begun = module.HITS[mode], time.perf_counter()
        status, said = command(words)
        row: dict[str, Any] = {
            "mode": mode,
            "exit": status,
            "attempts": module.HITS[mode] - before,
            "seconds": round(time.perf_counter() - begun, 1),
            "message": (said.strip().splitlines() or [""])[-1][:300],
        }
        file = out / "results.json"
        if file.exists():
            found = json.loads(file.read_text("utf-8"))
            cells = [c for rows in found["accuracy"].values() for row in rows for c in row]
            kept = ("overall", "unscored", "unscored_causes", "causes", "dropped_parameters")
            row |= {name: found.get(name) for name in kept}
            row |= {"cells": len(cells), "stopped": found.get("stopped")}
            row["cut_prompts"] = found.get("cut_prompts", 0)
    return row


WHY = {
    "toolcall": "no tool was offered, and the text is empty: the model's failure",
    "reasononly": "thoughts are not an answer: the model's failure",
    "gemempty": "the provider says that the model stopped by itself: its empty answer",
    "gemmax": "all of the reply's tokens went into thoughts: the model's empty answer",
    "ollamathink": "as `gemmax`",
    "anthpause": "nothing was said, and no tool was offered: the model's empty answer",
    "anthctx": "the reply was cut by the window: the model's, unreadable",
    "groq413": "a limit per minute of the account, whatever the status: wait",
    "gh413": "a limit in tokens is the model's window",
    "azure_down404": "a model that is loading comes up: wait",
    "lmstudio400": "a model that crashed is loaded again: wait",
    "html200": "a page is never the model's: wait",
    "s409": "a conflict passes: wait",
    "s425": "too early: wait",
    "s498": "capacity comes back: wait",
    "gemloc": "no call from here can pass: settings",
    "gemkeyexp": "as a refused key",
    "ollamanoeval": "tokens that are not counted are estimated",
    "nousage": "tokens that are not counted are estimated",
    "topperr": "an error beside half an answer: the provider broke off",
    "eostext": "a special token after the object is no text of the answer",
    "trunc4096": "tiny's prompts are far below 4,096 tokens: nothing is cut",
    "ollamacut": "as `trunc4096`; longer prompts are counted in `cut_prompts`",
}
"""Reasons for outcomes that no known fault names."""


def outcome(row: dict[str, Any]) -> str:
    """Return what came of a mode, in words."""
    if "overall" not in row:
        return "settings error"
    parts = [
        f"limit lowered to {name[11:]}" if name.startswith("max_tokens:") else f"without `{name}`"
        for name in row["dropped_parameters"] or []
    ]
    if row["unscored"]:
        parts.insert(0, "unscored: " + ", ".join(row["unscored_causes"]))
    elif row["causes"]:
        parts.insert(0, "wrong: " + ", ".join(row["causes"]))
    else:
        parts.insert(0, "scored")
    return ", ".join(parts)


def page(before: dict[str, Any], after: dict[str, Any]) -> str:
    """Return the table as a page of the documentation."""
    lines = [
        "# Provider modes",
        "",
        "What came of ways in which providers answer, each by a whole `evaluate` of one scenario",
        "of `tiny` (4 exam cells; 19 calls without faults, and 1 of the preflight) with",
        "`retries=3`: commit a6c289f before, and now. Made by `tests/support/provider_table.py`.",
        "",
        "| mode | before | attempts | exit | now | attempts | exit | why |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for mode, old in before.items():
        new = after[mode]
        cells = [f"`{mode}`", outcome(old), old["attempts"], old["exit"]]
        cells += [outcome(new), new["attempts"], new["exit"], WHY.get(mode, "")]
        lines.append("| " + " | ".join(map(str, cells)) + " |")
    return "\n".join(lines) + "\n"


def main() -> None:
    """Play all modes, or those that are named, and write them down as they end."""
    if sys.argv[1] == "page":
        documents = [json.loads(Path(file).read_text("utf-8")) for file in sys.argv[2:4]]
        print(page(*documents), end="")
        return
    _, path, target, *modes = sys.argv
    sys.path.insert(0, os.getcwd())
    warnings.simplefilter("ignore")
    os.environ |= {name: f"test-key-{name}" for name in KEYS}
    module, address = served(path)
    out = Path(target)
    rows: dict[str, Any] = json.loads(out.read_text("utf-8")) if out.exists() else {}
    for mode in modes or [name for name in module.MODES if name not in rows]:
        rows[mode] = played(mode, module, address)
        out.write_text(json.dumps(rows, indent=1), "utf-8")
        print(json.dumps(rows[mode]), flush=True)


if __name__ == "__main__":
    main()
