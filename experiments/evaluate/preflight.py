"""Preflight of an evaluation: one small call for each real model before the first scenario."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from pathlib import Path

from amemgym_env.models.backend import Backend
from amemgym_env.models.litellm.backend import LitellmModel


def preflight(backends: Mapping[str, Backend], folder: Path) -> None:
    """Check each distinct real model among the roles' backends; usage goes to `preflight.json`.

    Raises:
        ConfigError: no call of one of them can pass.
    """
    used = {}
    for role, backend in backends.items():
        if isinstance(backend, LitellmModel) and not backend.offline:
            usage = backend.preflight()
            if not usage.calls:
                continue
            used[role] = {"model": backend.model, **usage.to_json()}
            print(
                f"preflight: {backend.model} answered ({usage.tokens} tokens, not in the results)",
                file=sys.stderr,
            )
    if used:
        (folder / "preflight.json").write_text(json.dumps(used, indent=1) + "\n", "utf-8")
