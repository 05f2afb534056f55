"""Types of the fixtures that run verbs, which `tests/unit/conftest.py` defines, and a valid manifest."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, TypeAlias

Stowplan: TypeAlias = Callable[..., tuple[int, str, list[str]]]
"""Writes files and runs a verb with arguments: exit code, output, lines of standard error."""

Check: TypeAlias = Callable[..., tuple[int, list[str], list[str]]]
"""The same for the verb `check`, with the lines of its output."""

GOOD: Final = """\
apiVersion: llmd.ai/v1alpha2
kind: VariantAutoscaling
metadata: {name: x}
spec:
  modelID: m
  scaleTargetRef: {kind: Deployment, name: x}
"""
"""A valid VariantAutoscaling `x`."""
