"""The layers of the design, as data: a module imports what is below it, or beside it."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]

LAYERS: tuple[frozenset[str], ...] = tuple(
    frozenset(row.split())
    for row in (
        "errors version clock randomness draws balance difficulty",
        "scenario turn prompt embedding topics neutral wording rules scenario_files "
        "form_weights distractors",
        "memory script scoring statistics features reader operations replies",
        "episode prompts memory_prompts judge_prompts evolution_prompts stores tables expectation "
        "schedule info generation_steps generation_questions generation_course generation_texts "
        "generation_prompts rating_prompts",
        "accounts calls redaction provider_errors model_replies model_parameters "
        "budget call_cache loop_thread estimate "
        "backend litellm_library litellm_sender litellm_senders litellm_backend litellm_embedding "
        "wordllama_embedding "
        "simulated recognition weaknesses "
        "transcript actions pool "
        "chroma_store floors journal attention simulated_policy feedback",
        "env env_settings observations user spaces generation number_env number_settings "
        "array_episodes array_observations number_vector_env vector_env memory_operations sb3_env",
        "play traces credit turn_audit answer_bias evaluation networks policies reference "
        "scenario_result results",
        "testing",
    )
)
"""Modules of `amemgym_env` by layer; a package counts as one module."""

AGENTS_MAY = {
    *(
        "turn",
        "prompt",
        "prompts",
        "memory_prompts",
        "replies",
        "memory",
        "embedding",
        "stores",
        "features",
    ),
    *("policies", "backend", "errors"),
}

HEAVY = ("litellm", "chromadb", "stable_baselines3", "sb3_contrib", "torch", "hydra", "omegaconf")
LAZY = ("litellm", "chromadb", "stable_baselines3", "sb3_contrib", "torch", "wordllama")
"""Imported inside functions alone: users may not have them, or do not want to wait for them."""


def python_files(folder: str) -> list[Path]:
    return sorted((ROOT / folder).rglob("*.py"))


def name_of(path: Path) -> str:
    """Return the name of a module (or package) below `amemgym_env`; empty for the root."""
    first = path.relative_to(ROOT / "amemgym_env").parts[0]
    return first.removesuffix(".py").replace("__init__", "")


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
            for alias in node.names:
                yield f"{node.module}.{alias.name}"


def own_imports(path: Path) -> set[str]:
    """Return the modules of `amemgym_env` that a file imports."""
    parts = [name.split(".") for name in imports(path)]
    return {part[1] for part in parts if part[0] == "amemgym_env" and len(part) > 1}


def layer(module: str) -> int:
    for number, names in enumerate(LAYERS):
        if module in names:
            return number
    raise AssertionError(f"module {module!r} has no layer; give it one in LAYERS")


@pytest.mark.parametrize("path", python_files("amemgym_env"), ids=lambda path: path.stem)
def test_a_module_imports_nothing_above_its_layer(path: Path) -> None:
    module = name_of(path)
    if not module:
        return  # the package's own file names public things of every layer
    above = {name for name in own_imports(path) - {module} if layer(name) > layer(module)}
    assert not above, f"{module} (layer {layer(module)}) imports {sorted(above)}"


def test_modules_of_one_layer_do_not_import_each_other_in_circles() -> None:
    graph: dict[str, set[str]] = {}
    for path in python_files("amemgym_env"):
        module = name_of(path)
        if module:
            graph.setdefault(module, set()).update(own_imports(path) - {module})
    done: set[str] = set()

    def visit(module: str, way: tuple[str, ...]) -> None:
        assert module not in way, f"a circle of imports: {' -> '.join((*way, module))}"
        if module not in done:
            for name in sorted(graph.get(module, ())):
                visit(name, (*way, module))
            done.add(module)

    for module in sorted(graph):
        visit(module, ())
    assert done >= set(graph)


@pytest.mark.parametrize("path", python_files("agents"), ids=lambda path: path.stem)
def test_an_agent_cannot_reach_the_answer_key(path: Path) -> None:
    assert own_imports(path) <= AGENTS_MAY
    roots = {name.split(".")[0] for name in imports(path)}
    assert "experiments" not in roots


@pytest.mark.parametrize("folder", ["amemgym_env", "agents"])
def test_nothing_imports_experiments_and_the_package_does_not_import_agents(folder: str) -> None:
    for path in python_files(folder):
        roots = {name.split(".")[0] for name in imports(path)}
        assert "experiments" not in roots, path
        assert folder == "agents" or "agents" not in roots, path


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


@pytest.mark.parametrize("folder", ["amemgym_env", "agents", "experiments", "tests"])
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
