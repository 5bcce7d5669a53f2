"""What the README and the docs tell people to type is run as written, and prints what they show.

Every code block in bash or Python has a mark in a comment above it:

- `test: job`: each line is run in an empty folder.
- `test: python`: the block is run.
- `test: evidence`: as `job`, in the long runs only.
- `test: install`, `test: tests`: set-up; `.ci/run` runs it in a new environment. The job that the
  install line ends in is run here.
- `test: no, REASON`: not run.

`output: COMMAND` above a text block says which command printed it; it must print the same again.
"""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import pytest
import yaml

from amemgym_env.version import VERSION

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]


class Block(NamedTuple):
    page: str
    language: str
    mark: str
    text: str


def blocks(path: Path) -> list[Block]:
    pattern = r"(?:<!-- ([^\n]*?) -->\n)?```(\w+)\n(.*?)```"
    found = re.findall(pattern, path.read_text(encoding="utf-8"), re.DOTALL)
    return [Block(path.name, language, mark, text) for mark, language, text in found]


ALL = [block for path in PAGES for block in blocks(path)]


def marked(mark: str) -> list[Block]:
    return [block for block in ALL if block.mark == f"test: {mark}"]


def name(block: object) -> str:
    return f"{block.page}: {block.text[:50].strip()}" if isinstance(block, Block) else str(block)


def run(command: str, timeout: int = 180) -> str:
    words = shlex.split(command.replace("< /dev/null", ""), comments=True)
    if words and words[0] == "python":
        words[0] = sys.executable
    done = subprocess.run(
        words,
        env={**os.environ, "PYTHONPATH": f"{ROOT}{os.pathsep}.", "COLUMNS": "80"},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=timeout,
        check=False,
    )
    assert done.returncode == 0, f"{command}\n{done.stdout}\n{done.stderr}"
    return done.stdout


def lines(block: Block) -> list[str]:
    """Return a block's commands, one each, without comments."""
    commands = block.text.replace("\\\n", " ").splitlines()
    return [line for line in commands if line.strip() and not line.startswith("#")]


def my_agent(folder: Path) -> None:
    """Write the agent of CONTRIBUTING.md, which the docs speak of."""
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    (folder / "my_agent.py").write_text(text.split("```python\n")[1].split("```")[0], "utf-8")


def test_every_block_that_can_be_run_says_what_is_done_with_it() -> None:
    runnable = [block for block in ALL if block.language in ("bash", "python")]
    unmarked = [name(block) for block in runnable if not block.mark.startswith("test: ")]
    assert unmarked == []
    known = ("job", "python", "evidence", "install", "tests")
    kinds = {block.mark.removeprefix("test: ") for block in runnable}
    assert {kind for kind in kinds if kind not in known and not kind.startswith("no, ")} == set()


@pytest.mark.slow
@pytest.mark.parametrize("block", marked("job"), ids=name)
def test_jobs_run_as_written(block: Block, tmp_path: Path) -> None:
    my_agent(tmp_path)
    assert [run(line) for line in lines(block)]


@pytest.mark.evidence
@pytest.mark.parametrize("block", marked("evidence"), ids=name)
def test_long_jobs_run_as_written(block: Block) -> None:
    assert [run(line, timeout=3600) for line in lines(block)]


@pytest.mark.slow
@pytest.mark.parametrize("block", marked("python"), ids=name)
def test_python_blocks_run_as_written(block: Block, tmp_path: Path) -> None:
    my_agent(tmp_path)
    (tmp_path / "block.py").write_text(block.text, encoding="utf-8")
    assert isinstance(run("python block.py"), str)


def test_the_install_line_ends_in_the_main_job() -> None:
    (install,) = marked("install")
    assert install.text.strip().endswith("pip install -e . && python -m experiments.evaluate")


def test_the_checks_run_the_command_of_the_readme() -> None:
    (tests,) = marked("tests")
    checks = (ROOT / ".ci" / "run").read_text(encoding="utf-8")
    (program,) = re.findall(r'\$\((sed -n .* README\.md)\)"', checks)
    found = subprocess.run(["bash", "-c", program], cwd=ROOT, capture_output=True, text=True)
    assert found.stdout.strip() == tests.text.strip()


SHOWN = [block for block in ALL if block.mark.startswith("output: ")]


@pytest.mark.slow
@pytest.mark.parametrize("block", SHOWN, ids=name)
def test_what_is_shown_is_what_is_printed(block: Block) -> None:
    printed = [line.rstrip() for line in run(block.mark.removeprefix("output: ")).splitlines()]
    shown = [line.rstrip() for line in block.text.splitlines()]
    assert [line for line in shown if line] == [
        line for line in printed if line and not line.startswith("written to")
    ]


def test_the_only_links_into_the_project_lead_somewhere() -> None:
    for path in PAGES:
        for target in re.findall(r"\]\((?!https?://|#)([^)#]+)", path.read_text(encoding="utf-8")):
            assert (path.parent / target).exists(), f"{path.name}: {target}"


def test_the_citation_is_of_this_version_and_of_people_and_entities_alone() -> None:
    cited = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    assert cited["cff-version"] == "1.2.0"
    assert cited["version"] == VERSION
    assert cited["authors"] == [{"name": "AMemGym-env contributors"}]
    (paper,) = cited["references"]
    assert paper["doi"].endswith("2603.01966")
    assert all(set(author) == {"family-names", "given-names"} for author in paper["authors"])


def test_the_readmes_agent_is_the_one_of_the_contract() -> None:
    texts = [(ROOT / name).read_text(encoding="utf-8") for name in ("README.md", "CONTRIBUTING.md")]
    shown, kept = (text.split("# my_agent.py\n")[1].split("```")[0] for text in texts)
    assert shown == kept
    assert len([line for line in shown.splitlines() if line.strip()]) <= 25


def test_the_index_of_the_docs_leads_to_every_page() -> None:
    index = (ROOT / "docs" / "index.md").read_text(encoding="utf-8")
    pages = {path.name for path in (ROOT / "docs").glob("*.md")} - {"index.md"}
    assert set(re.findall(r"\]\((\S+\.md)\)", index)) == pages
