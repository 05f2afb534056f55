"""Extraction of the docstring below each field of a declaration from its source.

Only the generators need it. Each module is parsed once, which takes milliseconds.
"""

from __future__ import annotations

import ast
import functools
import inspect
import sys
from collections.abc import Mapping


def describe(declared: type) -> Mapping[str, str]:
    """Return the description of each field of a declaration, by Python name; paragraph breaks are kept."""
    return _module_descriptions(declared.__module__).get(declared.__qualname__, {})


def summary(declared: type) -> str:
    """Return the docstring of a declaration, without indentation."""
    return inspect.cleandoc(declared.__doc__ or "")


@functools.cache
def _module_descriptions(module_name: str) -> Mapping[str, Mapping[str, str]]:
    tree = ast.parse(inspect.getsource(sys.modules[module_name]))
    classes = (node for node in ast.walk(tree) if isinstance(node, ast.ClassDef))
    return {node.name: _field_descriptions(node) for node in classes}


def _field_descriptions(node: ast.ClassDef) -> Mapping[str, str]:
    found: dict[str, str] = {}
    for field, below in zip(node.body, node.body[1:], strict=False):
        if not isinstance(field, ast.AnnAssign) or not isinstance(field.target, ast.Name):
            continue
        if isinstance(below, ast.Expr) and isinstance(below.value, ast.Constant):
            found[field.target.id] = _flowing(str(below.value.value))
    return found


def _flowing(text: str) -> str:
    paragraphs = inspect.cleandoc(text).split("\n\n")
    return "\n\n".join(" ".join(paragraph.split()) for paragraph in paragraphs)
