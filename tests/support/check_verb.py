"""`stowplan check` in tests: the type of a run, and a valid manifest."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, TypeAlias

Check: TypeAlias = Callable[..., tuple[int, list[str], list[str]]]
"""Writes files and runs the command with arguments: exit code, lines of output, lines of standard error."""

GOOD: Final = """\
apiVersion: llmd.ai/v1alpha2
kind: VariantAutoscaling
metadata: {name: x}
spec:
  modelID: m
  scaleTargetRef: {kind: Deployment, name: x}
"""
"""A valid VariantAutoscaling `x`."""
