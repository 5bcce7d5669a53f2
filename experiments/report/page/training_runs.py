"""Learning curves and lineages of policies, read from folders of trainings and evolutions.

`curve.json` is `{"x": [steps], "y": {name: [values or null]}}`. `lineage.json` is what the evolve
job writes, lists of steps (each with the policy `after` it) in objects by seed, condition and user,
or `{"generations": [{id, parent, label, score, text}]}`, parents before their children.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, NamedTuple, TypeVar

from pydantic import BaseModel, Field, ValidationError, model_validator

from amemgym_env.errors import RunError

Score = Annotated[float, Field(allow_inf_nan=False)] | None


class CurveFile(BaseModel):
    """A training's `curve.json`: measures over steps, null where one was not taken."""

    x: list[float] = Field(min_length=1)
    y: dict[str, list[Score]]

    @model_validator(mode="after")
    def _as_long(self) -> CurveFile:
        if any(len(values) != len(self.x) for values in self.y.values()):
            raise ValueError(f"expected {len(self.x)} values of each measure, as x has")
        return self


class Generation(BaseModel):
    """One policy of an evolution."""

    id: str
    parent: str | None = None
    label: str | None = None
    score: Score = None
    text: str | None = None


class LineageFile(BaseModel):
    """Policies, each with the one that it came from."""

    generations: list[Generation]

    @model_validator(mode="after")
    def _descends(self) -> LineageFile:
        known: set[str] = set()
        for one in self.generations:
            if one.id in known or (one.parent is not None and one.parent not in known):
                raise ValueError(
                    f"generation {one.id!r}: its id is not new, or no parent is before"
                )
            known.add(one.id)
        return self


class Study(NamedTuple):
    """A folder's curve and lineage, whichever it has."""

    name: str
    curve: CurveFile | None
    lineage: LineageFile | None


def study(path: Path, curve: Any, lineage: Any) -> Study | None:
    """Return what a folder's curve.json and lineage.json say; None when it has neither.

    Raises:
        RunError: one of them has another shape.
    """
    if curve is None and lineage is None:
        return None
    if isinstance(lineage, dict) and "generations" not in lineage:
        lineage = {"generations": list(_steps(lineage, ()))}
    return Study(
        path.name,
        None if curve is None else checked(CurveFile, curve, path / "curve.json"),
        None if lineage is None else checked(LineageFile, lineage, path / "lineage.json"),
    )


def _steps(node: Any, way: tuple[str, ...]) -> Iterator[dict[str, Any]]:
    """Yield the steps of an evolution as generations, each under the one before it."""
    name = ", ".join(way) or "lineage"
    if isinstance(node, dict):
        for key, inner in node.items():
            yield from _steps(inner, (*way, str(key)))
    elif isinstance(node, list) and node:
        yield {"id": name}
        parent = name
        for number, step in enumerate(node):
            if not isinstance(step, dict):
                yield {"id": None}  # no step: the check below tells where
                return
            at = step.get("period")
            label = f"generation {number}" if at is None else f"after period {at}"
            after = step.get("after") or {}
            lines = [f"- {kind}" for kind in after.get("information_types", ())]
            yield {
                "id": f"{name}, step {number}",
                "parent": parent,
                "label": f"{label}: {step.get('status', 'changed')}",
                "text": "\n".join([*lines, *filter(None, [after.get("prompt")])]),
            }
            parent = f"{name}, step {number}"


T = TypeVar("T", bound=BaseModel)


def checked(model: type[T], content: object, file: Path) -> T:
    """Return a file's content as a model.

    Raises:
        RunError: it has another shape; the first three differences are told.
    """
    try:
        return model.model_validate(content)
    except ValidationError as error:
        lines = [
            f"{'.'.join(map(str, line['loc'])) or 'file'}: {line['msg']}"
            for line in error.errors()[:3]
        ]
        raise RunError(
            f"{file}: expected what a run of this project writes, found another shape: "
            + "; ".join(lines)
        ) from error
