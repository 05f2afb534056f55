"""Package docstrings list the modules of the package."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

TOP = Path(__file__).resolve().parents[3]
PACKAGES = sorted(
    path.parent
    for root in ("apiserver", "controller", "hack", "webhooks")
    for path in TOP.glob(f"{root}/**/__init__.py")
)
QUOTED = re.compile(r"`(\w+)(?:\.py)?`|\*\*(\w+)\*\*")
FIRST_COLUMN = re.compile(r"^ *(\w+(?:, \w+)*) {2,}\S", re.MULTILINE)


def listed(docstring: str) -> set[str]:
    """Return the names that a docstring lists: quoted, bold, or in the first column of a table."""
    names = {name for pair in QUOTED.findall(docstring) for name in pair}
    return names.union(*(names.split(", ") for names in FIRST_COLUMN.findall(docstring)))


@pytest.mark.parametrize("package", PACKAGES, ids=lambda path: str(path.relative_to(TOP)))
def test_a_package_lists_its_modules(package: Path) -> None:
    """The list may be in any of the three forms that `listed` recognizes."""
    docstring = ast.get_docstring(ast.parse((package / "__init__.py").read_text("utf-8"))) or ""
    modules = {path.stem for path in package.glob("*.py")} - {"__init__", "__main__"}

    assert modules - listed(docstring) == set()


@pytest.mark.parametrize("package", PACKAGES, ids=lambda path: str(path.relative_to(TOP)))
def test_a_table_of_modules_lists_no_others(package: Path) -> None:
    """A module that was merged with another is easily left in it."""
    docstring = ast.get_docstring(ast.parse((package / "__init__.py").read_text("utf-8"))) or ""
    named = {name for names in FIRST_COLUMN.findall(docstring) for name in names.split(", ")}
    named = {name for name in named if name.islower()}  # and no classes
    named |= {name for name, _ in QUOTED.findall(docstring) if f"`{name}.py`" in docstring}

    assert named - {path.stem for path in package.iterdir()} == set()


def test_packages_are_found() -> None:
    """With an empty list, the test above would check nothing."""
    assert TOP / "controller" / "planning" / "engine" in PACKAGES
