"""Import rules, limits on the length of files and functions, and the imports of each process."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
LONGEST_FILE_LINES = 400
LONGEST_FUNCTION_LINES = 60


def test_import_contracts_hold() -> None:
    """They are declared in `pyproject.toml` for import-linter."""
    program = "import sys; from importlinter.cli import lint_imports; sys.exit(lint_imports())"
    finished = subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=False
    )

    assert finished.returncode == 0, finished.stdout


def test_a_program_of_the_tests_imports_this_checkout(tmp_path: Path) -> None:
    """Also in a worktree whose virtual environment has another checkout installed."""
    program = tmp_path / "program.py"
    program.write_text("import controller; print(controller.__file__)", encoding="utf-8")
    finished = subprocess.run(
        [sys.executable, str(program)], cwd=ROOT, capture_output=True, text=True, check=True
    )

    assert Path(finished.stdout.strip()).parents[1] == ROOT


def test_files_and_functions_stay_short() -> None:
    """Functions in `tests` have no limit, since a test may be a long list of steps."""
    long = []
    for name, text in sources("apiserver", "webhooks", "controller", "hack", "tests"):
        if len(text.splitlines()) > LONGEST_FILE_LINES:
            long.append(name)
        if not name.startswith("tests/"):
            long += [f"{name}: {function}" for function in long_functions(text)]

    assert long == []


FORBIDDEN = {
    "no test imports a benchmark: what both need is in a package of its own": (("tests",), r"hack\.bench"),
    "tests of processes use them like users: kubectl, HTTP, files and verbs": (
        ("tests/controlplane", "tests/e2e", "tests/keda"),
        r"apiserver|webhooks|controller|hack\.clusters|hack\.scale",
    ),
}


@pytest.mark.parametrize(("folders", "packages"), FORBIDDEN.values(), ids=FORBIDDEN)
def test_tests_import_only_what_they_may(folders: tuple[str, ...], packages: str) -> None:
    """Tests of modules with a real API server are in `tests/integration`."""
    imports = re.compile(rf"^ *(?:from|import) (?:{packages})\b", re.MULTILINE)

    assert [name for name, text in sources(*folders) if imports.search(text)] == []


def sources(*folders: str) -> Iterator[tuple[str, str]]:
    """Yield the path and the text of each source file."""
    for folder in folders:
        for path in sorted((ROOT / folder).rglob("*.py")):
            yield str(path.relative_to(ROOT)), path.read_text(encoding="utf-8")


def long_functions(text: str) -> Iterator[str]:
    """Yield the names of functions with too many lines."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            lines = (node.end_lineno or 0) - node.lineno + 1
            if lines > LONGEST_FUNCTION_LINES:
                yield node.name


SERVING_IMPORTS = {
    "webhooks.app": {"ortools", "numpy", "kubernetes_asyncio", "jsonschema", "controller"},
    "apiserver.cli": {"ortools", "numpy", "kubernetes_asyncio", "aiohttp", "webhooks", "controller"},
    "controller.run": {"rich"},
    "controller.planning.plan": {"pandas", "kubernetes_asyncio", "aiohttp"},
}


@pytest.mark.parametrize(("module", "unwanted"), SERVING_IMPORTS.items(), ids=SERVING_IMPORTS.keys())
def test_a_process_loads_only_what_it_needs(module: str, unwanted: set[str]) -> None:
    """Modules that are slow or large to import are not loaded by processes that do not need them."""
    program = f"import sys, {module}; print(*{{name.partition('.')[0] for name in sys.modules}})"
    finished = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)

    assert unwanted.isdisjoint(finished.stdout.split())
