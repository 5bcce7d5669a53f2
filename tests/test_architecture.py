"""The rooms of the house: which may import which, as one table.

    python tests/test_architecture.py        prints the rooms with their lines, and every arrow

A room is a folder, or a file next to the folders. A sub-room has a row of its own where its
neighbours may not all import it. A new file needs no edit here; a new arrow between rooms does.
"""

from __future__ import annotations

import ast
import subprocess
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PACKAGES = ("amemgym_env", "agents", "experiments")

GROUND = "errors seeding text version"
PACKAGE = f"{GROUND} agent prompts memory scenarios models generation simulated policies episode"
ROOMS: dict[str, str] = {
    "errors": "",
    "version": "",
    "text": "",
    "seeding": "errors",
    "agent": "errors",
    "prompts": "agent errors text",
    "memory": "agent errors text",
    "scenarios": "agent errors seeding",
    "models": "agent errors memory prompts seeding text version",
    "models.litellm": "errors memory models prompts seeding text",
    "generation": "errors scenarios generation.offline",
    "generation.offline": "errors scenarios seeding",
    "generation.audit": "agent errors memory models prompts scenarios seeding generation.offline "
    "generation.pipeline",
    "generation.pipeline": "agent errors models prompts scenarios seeding generation "
    "generation.offline",
    "simulated": "agent errors memory models prompts scenarios seeding",
    "policies": "agent errors memory",
    "external": "agent errors memory models",
    "episode": "agent errors memory scenarios",
    "envs": "agent episode errors generation memory policies scenarios seeding",
    "envs.text": "agent envs episode errors generation memory scenarios seeding text",
    "envs.memory": "agent envs envs.text episode errors generation memory policies scenarios "
    "seeding",
    "evaluation": f"{PACKAGE} generation.audit envs envs.text",
    "testing": f"{PACKAGE} envs envs.text envs.memory evaluation",
    "integrations": f"{PACKAGE} envs envs.text envs.memory evaluation testing",
    "agents": "agent errors prompts memory policies models",
}
"""Room of `amemgym_env`, or `agents` -> the rooms that it may import. An agent cannot reach the
answer key: neither scenarios nor episode, simulated or envs are in its row."""

APP = "app baselines"
JOBS: dict[str, str] = {
    "app": "",
    "baselines": "app",
    "train": APP,
    "evaluate": f"{APP} train",
    "generate": f"{APP} train evaluate",
    "search": f"{APP} train evaluate",
    "evolve": f"{APP} train evaluate",
    "report": f"{APP} train evaluate generate search evolve report.page",
    "report.page": f"{APP} train evaluate report report.page.official",
    "report.page.official": f"{APP} report.page",
    "calibrate": f"{APP} train evaluate generate search evolve report",
    "benchmark": f"{APP} train evaluate generate search evolve report",
    "sensitivity": f"{APP} train evaluate generate search evolve report",
    "reuse_bias": f"{APP} train evaluate generate search evolve report",
    "standings": f"{APP} train evaluate generate search evolve report",
    "play": "app",
}
"""Room of `experiments` -> its rooms that it may import, apart from the package."""

HEAVY = ("litellm", "chromadb", "stable_baselines3", "sb3_contrib", "torch", "hydra", "omegaconf")
LAZY = ("litellm", "chromadb", "stable_baselines3", "sb3_contrib", "torch", "wordllama")
"""Imported inside functions alone: users may not have them, or do not want to wait for them."""


@cache
def python_files(folder: str) -> tuple[Path, ...]:
    return tuple(sorted((ROOT / folder).rglob("*.py")))


@cache
def modules() -> dict[str, Path]:
    """Every module of the three packages by its dotted name."""
    return {
        ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__"): path
        for package in PACKAGES
        for path in python_files(package)
    }


def room_of(module: str) -> tuple[str, str]:
    """Return the package's name and the deepest room in the tables that holds a module."""
    package, _, rest = module.partition(".")
    if package == "agents":
        return "amemgym_env", "agents"
    table: Mapping[str, str] = ROOMS if package == "amemgym_env" else JOBS
    parts = rest.split(".")
    for length in range(len(parts), 0, -1):
        if ".".join(parts[:length]) in table:
            return package, ".".join(parts[:length])
    return package, parts[0]


def imports(path: Path, top_level: bool = False) -> Iterator[str]:
    """Yield the full name of everything that a file imports."""
    tree = ast.parse(path.read_text("utf-8"))
    nodes: list[ast.AST] = list(ast.walk(tree))
    if top_level:
        inside = {
            id(child)
            for node in nodes
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
            or (isinstance(node, ast.If) and "TYPE_CHECKING" in ast.dump(node.test))
            for child in ast.walk(node)
        }
        nodes = [node for node in nodes if id(node) not in inside]
    for node in nodes:
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: a relative import"
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


@cache
def arrows() -> tuple[tuple[str, str], ...]:
    """Return every import between two modules of the project."""
    known = modules()
    found = []
    for module, path in known.items():
        for name in imports(path):
            target = name if name in known else name.rpartition(".")[0]
            if target in known and target != module and "." in target + "." * (target == "agents"):
                found.append((module, target))
    return tuple(dict.fromkeys(found))


def is_front(module: str) -> bool:
    """Return whether a file only forwards: a package's front, a command, a moved command."""
    path = modules()[module]
    if path.name in ("__init__.py", "__main__.py"):
        return True
    body = ast.parse(path.read_text("utf-8")).body
    return not any(
        isinstance(node, ast.FunctionDef | ast.ClassDef | ast.Assign | ast.AnnAssign)
        for node in body
    )


def forbidden() -> list[str]:
    found = []
    for module, target in arrows():
        (package, room), (other, wanted) = room_of(module), room_of(target)
        if module in PACKAGES or is_front(module) or (package, room) == (other, wanted):
            continue
        if package == "amemgym_env":
            allowed = other == "amemgym_env" and wanted in ROOMS.get(room, "").split()
        else:
            allowed = other == "amemgym_env" or wanted in JOBS.get(room, "").split()
        if not allowed:
            found.append(f"{module} ({room}) -> {target} ({wanted})")
    return found


def circle(graph: Mapping[str, Iterable[str]]) -> list[str]:
    """Return the nodes of one circle of a graph, or nothing."""
    done: set[str] = set()

    def visit(node: str, way: list[str]) -> list[str]:
        if node in way:
            return [*way[way.index(node) :], node]
        if node not in done:
            for following in sorted(graph.get(node, ())):
                found = visit(following, [*way, node])
                if found:
                    return found
            done.add(node)
        return []

    for node in sorted(graph):
        found = visit(node, [])
        if found:
            return found
    return []


def graph_of(rooms: bool) -> dict[str, set[str]]:
    graph: dict[str, set[str]] = {}
    for module, target in arrows():
        if is_front(module) or module in PACKAGES:
            continue
        a, b = (("/".join(room_of(module)), "/".join(room_of(target))) if rooms
                else (module, target))  # fmt: skip
        if a != b:
            graph.setdefault(a, set()).add(b)
    return graph


def test_every_file_lies_in_a_room_of_the_table() -> None:
    fronts = {module for module in modules() if is_front(module)}
    for module in modules().keys() - set(PACKAGES) - fronts:
        package, room = room_of(module)
        assert room in (ROOMS if package == "amemgym_env" else JOBS), f"{module}: no such room"


def test_rooms_import_what_their_row_names() -> None:
    assert not forbidden()


def test_rows_name_rooms() -> None:
    for table in (ROOMS, JOBS):
        assert {name for row in table.values() for name in row.split()} <= table.keys()


@pytest.mark.parametrize("rooms", [True, False], ids=["rooms", "files"])
def test_there_is_no_circle_of_imports(rooms: bool) -> None:
    assert not circle(graph_of(rooms))


@pytest.mark.parametrize("library", HEAVY)
def test_a_heavy_library_is_imported_in_one_place_of_the_package(library: str) -> None:
    users = [
        path.name
        for folder in ("amemgym_env", "agents")
        for path in python_files(folder)
        if library in {name.split(".")[0] for name in imports(path)}
    ]
    assert len(users) <= 1, users


@pytest.mark.parametrize("library", LAZY)
def test_a_library_that_users_may_lack_is_imported_lazily(library: str) -> None:
    for folder in ("amemgym_env", "agents"):
        for path in python_files(folder):
            roots = {name.split(".")[0] for name in imports(path, top_level=True)}
            assert library not in roots, path


def test_the_import_is_light() -> None:
    program = (
        "import sys, time; start = time.process_time(); import amemgym_env; "
        "seconds = time.process_time() - start; "
        "print(seconds, *[name for name in sys.modules if name in "
        "('litellm', 'torch', 'chromadb', 'hydra', 'stable_baselines3')])"
    )
    runs = [
        subprocess.run(
            [sys.executable, "-c", program], check=True, capture_output=True, text=True, cwd=ROOT
        ).stdout.split()
        for _ in range(3)
    ]
    assert all(len(run) == 1 for run in runs), runs
    assert min(float(run[0]) for run in runs) < 0.5, runs


@pytest.mark.parametrize("folder", [*PACKAGES, "tests"])
def test_no_file_is_long(folder: str) -> None:
    long = {
        str(path.relative_to(ROOT)): lines
        for path in python_files(folder)
        if (lines := len(path.read_text("utf-8").splitlines())) > 400
    }
    assert not long


def test_every_collected_function_of_the_tests_states_something() -> None:
    for path in python_files("tests"):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.FunctionDef) and node.name.startswith("test_"):
                text = ast.dump(node)
                states = "Assert(" in text or "raises" in text or "check_" in text
                assert states, f"{path.name}: {node.name} asserts nothing"


def _print_house() -> None:
    lines: Counter[str] = Counter()
    for module, path in modules().items():
        if module not in PACKAGES and not is_front(module):
            lines["/".join(room_of(module))] += len(path.read_text("utf-8").splitlines())
    counted = Counter(
        ("/".join(room_of(module)), "/".join(room_of(target)))
        for module, target in arrows()
        if not is_front(module) and room_of(module) != room_of(target)
    )
    for room, number in sorted(lines.items()):
        to = [f"{b.split('/')[1]} {n}" for (a, b), n in sorted(counted.items()) if a == room]
        print(f"{room:34} {number:6} lines -> {', '.join(to) or 'nothing'}")
    print(f"{len(lines)} rooms, {sum(lines.values())} lines, {len(counted)} arrows")


if __name__ == "__main__":
    _print_house()
