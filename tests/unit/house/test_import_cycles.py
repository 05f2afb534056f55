"""Import cycles between modules, imports for type annotations included."""

from __future__ import annotations

import ast
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

TOP = Path(__file__).resolve().parents[3]
PACKAGES = ("apiserver", "webhooks", "controller", "hack")


def _modules() -> dict[str, Path]:
    """Return the files of all modules by name; a package is its `__init__.py`."""
    found = {}
    for file in (file for package in PACKAGES for file in (TOP / package).rglob("*.py")):
        parts = file.relative_to(TOP).with_suffix("").parts
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = file
    return found


def _imported(file: Path, modules: dict[str, Path]) -> set[str]:
    """Return the modules of this project that a file imports, at module level or inside functions."""
    found = set()
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            names = {f"{node.module}.{alias.name}" for alias in node.names}
            found |= names if names <= modules.keys() else {node.module, *names}
    return found & modules.keys()


def test_imports_have_no_cycle() -> None:
    """The `__init__.py` of each package is checked, too."""
    modules = _modules()
    graph = {name: _imported(file, modules) - {name} for name, file in modules.items()}
    assert sum(map(len, graph.values())) > len(graph)

    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        raise AssertionError(" -> ".join(reversed(error.args[1]))) from error
