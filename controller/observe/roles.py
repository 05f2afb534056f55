"""Roles of engines that serve a request together: prefill and decode pods do not replace each other.

A plan takes the replicas of a model's variants as interchangeable. So variants of one role are planned
together, but not beside those of another role: these are left alone. Pure functions.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from apiserver.schema.json import Json
from controller.observe.targets import Target, TargetKey, scaled_by

ROLE_LABEL: Final = "llm-d.ai/role"
"""The label of pods with their role in a disaggregated pair."""

_WHOLE: Final = frozenset({"", "both", "prefill-decode"})
"""Roles of engines that serve requests alone."""

_Model = tuple[str, str]
"""Namespace and model ID."""


def role_of(target: Target) -> str:
    """Return the role of a target's pods; empty if they serve requests alone."""
    role = next((labels[ROLE_LABEL] for labels in target.labels if labels.get(ROLE_LABEL)), "")
    return "" if role in _WHOLE else role


class RolesOfModels:
    """The roles of targets, and of the variants of each model."""

    def __init__(self, roles: Mapping[TargetKey, str], models: Mapping[_Model, frozenset[str]]) -> None:
        self._roles = roles
        self._models = models

    def why_apart(self, autoscaling: Json, target: TargetKey) -> str:
        """Return why a variant is left alone because of its role, or an empty string."""
        role, model = self._roles.get(target, ""), _model_of(autoscaling)
        others = sorted(self._models.get(model, frozenset()) - {role})
        if not role or not others:
            return ""
        named = " and ".join(repr(other) if other else "no role" for other in others)
        return (
            f"its pods have the role {role!r} by the label {ROLE_LABEL}, and those of other variants of model"
            f" {model[1]!r} have {named}: these do not replace each other, so its replicas are left alone:"
            " let its HorizontalPodAutoscaler read other metrics"
        )


def roles_of_models(autoscalings: Iterable[Json], targets: Mapping[TargetKey, Target]) -> RolesOfModels:
    """Return the roles of well-formed VariantAutoscalings' targets."""
    roles: dict[TargetKey, str] = {}
    models: dict[_Model, frozenset[str]] = {}
    for item in autoscalings:
        key = scaled_by(item)
        if key in targets:
            role = roles[key] = role_of(targets[key])
            model = _model_of(item)
            models[model] = models.get(model, frozenset()) | {role}
    return RolesOfModels(roles, models)


def _model_of(autoscaling: Json) -> _Model:
    return autoscaling["metadata"]["namespace"], autoscaling["spec"]["modelID"]
