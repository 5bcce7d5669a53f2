"""Files of the benchmark's own code: their shapes, and strict readers.

Indices in brackets are lists:

    overall_results.json       [period][question] {query, answer, answer_state, answer_choice,
                               response, response_state, response_choice, json_error,
                               llm_usage_statistics}; null where it was not asked yet
    diagnosis_results.json     [period][question] {results: [{info_type, answer_state,
                               response_state, json_error}]}
    utilization_results.json   [user][question][choice] {query, answer_state, answer_choice,
                               response_state, json_error}

`answer` counts from 0, `response` from 1. More fields may stand in each object.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, StrictBool, StrictInt, TypeAdapter, ValidationError

from amemgym_env.errors import RunError

OVERALL = "overall_results.json"
DIAGNOSIS = "diagnosis_results.json"
UTILIZATION = "utilization_results.json"


class Item(BaseModel):
    """One object of a file; what is not read is let through."""

    model_config = ConfigDict(extra="allow", frozen=True)


class Cell(Item):
    """One answered exam question."""

    query: str
    answer: StrictInt
    answer_state: list[str]
    answer_choice: str
    response: Any
    response_state: list[str]
    response_choice: str
    json_error: StrictBool
    llm_usage_statistics: dict[str, float] = {}


class Named(Item):
    """A value named at a state query."""

    info_type: str
    answer_state: str
    response_state: Any
    json_error: StrictBool


class ProbeCell(Item):
    """One state query."""

    results: list[Named]


class InformedCell(Item):
    """One answer given the true values of a choice."""

    query: str
    answer_state: list[str]
    answer_choice: str
    response_state: list[str]
    json_error: StrictBool


Overall = list[list[Cell | None]]
Probes = list[list[ProbeCell | None]]
Informed = list[list[list[InformedCell | None]]]


def parsed(file: Path, shape: Any) -> Any:
    """Return a file's content in a shape.

    Raises:
        RunError: it is damaged or has another shape.
    """
    try:
        return TypeAdapter(shape).validate_python(json.loads(file.read_text("utf-8")))
    except ValidationError as error:
        first = error.errors()[0]
        place = "".join(f"[{part}]" for part in first["loc"])
        raise RunError(f"{file}: {place or 'file'}: {first['msg']}") from error
    except (OSError, ValueError) as error:
        raise RunError(f"{file}: expected JSON, found a damaged file ({error})") from error
