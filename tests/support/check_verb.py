"""`stowplan check` in tests: what one run of it is, and a manifest that it takes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, TypeAlias

Check: TypeAlias = Callable[..., tuple[int, list[str], list[str]]]
"""Writes files, runs the verb with arguments: exit code, lines of output, lines of standard error."""

GOOD: Final = """\
apiVersion: llmd.ai/v1alpha2
kind: VariantAutoscaling
metadata: {name: x}
spec:
  modelID: m
  scaleTargetRef: {kind: Deployment, name: x}
"""
"""A VariantAutoscaling `x` without any fault."""
