"""JSON Schemas of `results.json` and of a journal's lines, generated from the record classes.

python -m amemgym_env.evaluation.schemas docs/schemas
"""

from __future__ import annotations

import ast
import inspect
import json
import sys
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter

from amemgym_env.evaluation import results_file
from amemgym_env.models import events, usage

DIALECT = "https://json-schema.org/draft/2020-12/schema"


def journal_schema() -> dict[str, Any]:
    """Return the JSON Schema of one line of a journal."""
    kinds: list[dict[str, str]] = []
    parts: dict[str, Any] = {}
    for kind, found in events.CLASSES.items():
        schema = TypeAdapter(found).json_schema()
        parts |= schema.pop("$defs", {})
        properties = {"event": {"const": kind}, **schema["properties"]}
        if properties.pop("details", None) is not None:
            schema["additionalProperties"] = True
        schema |= {"properties": properties, "required": ["event", *schema.get("required", ())]}
        parts[found.__name__] = schema
        kinds.append({"$ref": f"#/$defs/{found.__name__}"})
    return {
        "$schema": DIALECT,
        "title": "Event",
        "description": "One line of journals/<scenario>.jsonl.",
        "oneOf": kinds,
        "$defs": _described(parts, events, usage),
    }


def results_schema() -> dict[str, Any]:
    """Return the JSON Schema of `results.json`."""
    schema = results_file.ResultsFile.model_json_schema()
    parts = _described({**schema.pop("$defs"), "ResultsFile": schema}, results_file, usage)
    return {"$schema": DIALECT, **parts.pop("ResultsFile"), "$defs": parts}


def _described(parts: dict[str, Any], *modules: Any) -> dict[str, Any]:
    """Return schemas of classes with the docstrings of their fields as descriptions."""
    for module in modules:
        for node in ast.parse(inspect.getsource(module)).body:
            if not isinstance(node, ast.ClassDef) or node.name not in parts:
                continue
            properties = parts[node.name].get("properties", {})
            for field, after in zip(node.body, node.body[1:], strict=False):
                match field, after:
                    case (
                        ast.AnnAssign(target=ast.Name(id=name)),
                        ast.Expr(value=ast.Constant(value=str(text))),
                    ) if name in properties:
                        properties[name]["description"] = inspect.cleandoc(text)
    return parts


SCHEMAS = {"journal-event.json": journal_schema, "results.json": results_schema}
"""Name of each file below docs/schemas, and what makes its content."""


def text(schema: dict[str, Any]) -> str:
    """Return a schema as its file has it."""
    return json.dumps(schema, indent=2, ensure_ascii=False) + "\n"


if __name__ == "__main__":
    for name, made in SCHEMAS.items():
        (Path(sys.argv[1]) / name).write_text(text(made()), encoding="utf-8")
