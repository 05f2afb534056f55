"""Specs of AutoscalingPolicyBindings for tests: valid by default, change what matters."""

from __future__ import annotations

from typing import Any, Final

from apiserver.schema.json import Json

SCALING_REF: Final = "spec.scalingConfiguration.target.targetRef"
"""Path of the reference of the only target."""

DEPLOYMENT: Final = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "llama"}
"""A target of another kind than the default."""

_TARGET: Final = {"targetRef": {"name": "llama"}}
_SCALING: Final = {"minReplicas": 1, "maxReplicas": 4, "target": _TARGET}
POLICY: Final = {"policyRef": {"name": "queue-length"}}
"""The policy of all of them."""


def scaling(**members: Any) -> Json:
    """Return a binding's spec for one target."""
    return POLICY | {"scalingConfiguration": _SCALING | members}


def target(**members: Any) -> Json:
    """Return a binding's spec for one target with additional fields."""
    return scaling(target=_TARGET | members)


def reference(**members: Any) -> Json:
    """Return a binding's spec for one target, given by its reference."""
    return scaling(target={"targetRef": members})


def optimizer(*params: Json, **members: Any) -> Json:
    """Return a binding's spec for several targets."""
    return POLICY | {"optimizerConfiguration": {"params": list(params), **members}}


def param(name: str, **members: Any) -> Json:
    """Return one of several targets."""
    return {"minReplicas": 1, "maxReplicas": 4, "cost": 10, "target": {"targetRef": {"name": name}}} | members


def of_kind(**members: Any) -> Json:
    """Return one of several targets, given by its reference."""
    return param("") | {"target": {"targetRef": members}}
