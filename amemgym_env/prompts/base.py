"""Prompt: one call of a language model as a typed object.

It renders itself as messages from a template, and parses the model's text into a typed result;
`parse` raises, never guesses. A template's placeholders are `{name}` for the prompt's own names
and are filled in a single pass; every other brace, backslash or dollar sign is plain text, in the
template as in the content, so rendering any number of times gives the same text.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar, Generic, Literal, TypedDict, TypeVar

from amemgym_env.errors import ConfigError

T_co = TypeVar("T_co", covariant=True)

Role = Literal["assistant", "memory", "user", "exam", "probe", "upper_bound", "judge", "generation"]
"""What a call is for, in the accounts of a run."""


class Message(TypedDict):
    """One chat message."""

    role: str
    content: str


def message(role: str, content: str) -> Message:
    """Return a chat message."""
    return {"role": role, "content": content}


class Prompt(ABC, Generic[T_co]):
    """Base of all prompts; subclasses are frozen dataclasses, their fields the call's content."""

    kind: ClassVar[str]
    """Name of the call, and of its template file."""
    version: ClassVar[int] = 1
    """Raised with every change of the text that can change a score; recorded in results."""
    role: ClassVar[Role]
    template: ClassVar[str]
    """The built-in text, with `{name}` for each of `placeholders`."""
    placeholders: ClassVar[tuple[str, ...]] = ()
    schema: ClassVar[Mapping[str, Any] | None] = None
    """JSON schema of the reply, for models that can be held to one; None: free text."""

    @abstractmethod
    def render(self, templates: Templates) -> list[Message]:
        """Return the messages of the call."""

    @abstractmethod
    def parse(self, text: str) -> T_co:
        """Return what the model's reply says.

        Raises:
            ParseError: the reply cannot be read.
        """


class Templates:
    """The templates of all prompts: the built-in ones, or files of the same name in a folder.

    A folder may replace any of them by `<kind>.txt`; a file for an unknown kind, or one that
    misses a placeholder, is refused.
    """

    def __init__(self, texts: Mapping[str, str] | None = None) -> None:
        self.texts = dict(texts or {})

    @classmethod
    def from_folder(cls, folder: str | Path, kinds: Mapping[str, type[Prompt[Any]]]) -> Templates:
        """Return templates with the folder's files in place of built-in ones.

        Raises:
            ConfigError: the folder is missing, a file's name is no kind, or a text lacks one of
                its placeholders.
        """
        path = Path(folder)
        if not path.is_dir():
            raise ConfigError(f"templates: expected a folder, found nothing at {str(path)!r}")
        texts = {}
        for file in sorted(path.glob("*.txt")):
            prompt = kinds.get(file.stem)
            if prompt is None:
                raise ConfigError(
                    f"templates: expected a name of {sorted(kinds)}, found {file.name!r}"
                )
            texts[file.stem] = check_template(prompt, file.read_text(encoding="utf-8-sig"))
        return cls(texts)

    def fill(self, prompt: type[Prompt[Any]], values: Mapping[str, str]) -> str:
        """Return a prompt's template with its placeholders filled, in one pass."""
        text = self.texts.get(prompt.kind, prompt.template)
        return fill(text, values)


def fill(template: str, values: Mapping[str, str]) -> str:
    """Return `template` with each `{name}` of `values` replaced; nothing else is touched."""
    names = "|".join(re.escape(name) for name in values)
    if not names:
        return template
    return re.sub(r"\{(" + names + r")\}", lambda match: values[match[1]], template)


def check_template(prompt: type[Prompt[Any]], text: str) -> str:
    """Return a template's text if it has every placeholder of its prompt.

    Raises:
        ConfigError: a placeholder is missing.
    """
    missing = [name for name in prompt.placeholders if f"{{{name}}}" not in text]
    if missing:
        raise ConfigError(
            f"template {prompt.kind!r}: expected the placeholders "
            f"{[f'{{{name}}}' for name in prompt.placeholders]}, found none of {missing}"
        )
    return text


BUILT_IN = Templates()
