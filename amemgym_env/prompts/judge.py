"""Judge prompt: which of the schema's values a user turn exposes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from amemgym_env.agent import Variable, shown_probe
from amemgym_env.errors import ParseError
from amemgym_env.prompts import parsing as replies
from amemgym_env.prompts.base import Message, Prompt, Role, Templates, message


@dataclass(frozen=True)
class ExposureJudgement(Prompt[Mapping[str, str]]):
    """The values that one utterance gives away about the user's present; variables left out: none.

    Paper: AMemGym, Section 3.5.
    """

    utterance: str
    variables: tuple[Variable, ...]
    kind: ClassVar[str] = "exposure_judgement"
    role: ClassVar[Role] = "judge"
    schema: ClassVar[Mapping[str, Any] | None] = {"type": "object"}
    placeholders: ClassVar[tuple[str, ...]] = ("utterance", "variables")
    template: ClassVar[str] = """\
A user said to an assistant:
{utterance}

Here are personal details with the values that they can take:
{variables}

Which values can be concluded from what the user said, as things are for this user now? Say nothing of details that are left open, of other people, wishes, plans, suppositions or the past.

Reply with one JSON object that maps each detail that is given away to its value, and nothing else; {} when none is."""

    def render(self, templates: Templates) -> list[Message]:
        """Return one user message."""
        values = {"utterance": self.utterance, "variables": shown_probe(self.variables)}
        return [message("user", templates.fill(type(self), values))]

    def parse(self, text: str) -> Mapping[str, str]:
        """Return the values given away, by variable; names that the schema lacks are unreadable."""
        answer = replies.read_object(text)
        known = {replies.normal(variable.name): variable for variable in self.variables}
        given = {name: value for name, value in answer.items() if value is not None}
        strange = [name for name in given if replies.normal(name) not in known]
        if strange:
            raise ParseError(
                f"expected names of {[v.name for v in self.variables]}, found {strange}"
            )
        asked = [known[replies.normal(name)] for name in given]
        read = replies.read_values(given, [(part.name, part.values) for part in asked])
        found = {}
        for variable, index in zip(asked, read, strict=True):
            if isinstance(index, ParseError):
                raise index
            if index is not None:
                found[variable.name] = variable.values[index]
        return found
