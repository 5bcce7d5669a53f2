"""Commands of the docs that are too long for the default tests can be read and composed."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest
from hydra.core.override_parser.overrides_parser import OverridesParser

from experiments.app.composition import compose
from experiments.app.settings import CONF

PAGES = sorted((Path(__file__).parents[2] / "docs").glob("*.md"))
BLOCK = re.compile(r"<!-- test: (?:evidence|no, [^\n]*?) -->\n```bash\n(.*?)```", re.DOTALL)


def commands() -> list[tuple[str, list[str]]]:
    """Return the name and the words of every job of Hydra's that no default test runs."""
    found = []
    for page in PAGES:
        for block in BLOCK.findall(page.read_text(encoding="utf-8")):
            for line in block.replace("\\\n", " ").splitlines():
                said = re.match(r"python -m experiments\.(\w+)(.*)", line)
                if said and (CONF / f"{said[1]}.yaml").exists():
                    found.append((said[1], shlex.split(said[2], comments=True)))
    return found


@pytest.mark.parametrize(
    ("name", "words"), commands(), ids=lambda part: part if isinstance(part, str) else None
)
def test_a_long_command_can_be_read_and_knows_its_settings(name: str, words: list[str]) -> None:
    several = {"-m", "--multirun"} & set(words)
    given = [word for word in words if word not in ("-m", "--multirun")]
    overrides = OverridesParser.create().parse_overrides(given)
    assert len(overrides) == len(given)
    if not several:
        assert compose(name, given)
