"""Roles of engines that serve a request together: prefill and decode pods do not replace each other.

A plan takes the replicas of a model's variants as interchangeable. So variants of one role are planned
together, but not beside those of another role: these are left alone. Pure functions.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from apiserver.kinds.identity import Key
from controller.observe.claim import Claim
from controller.observe.targets import Target, TargetKey

ROLE_LABEL: Final = "llm-d.ai/role"
"""The label of pods with their role in a disaggregated pair."""

_WHOLE: Final = frozenset({"", "both", "prefill-decode"})
"""Roles of engines that serve requests alone."""


def role_of(target: Target) -> str:
    """Return the role of a target's pods; empty if they serve requests alone."""
    role = next((labels[ROLE_LABEL] for labels in target.labels if labels.get(ROLE_LABEL)), "")
    return "" if role in _WHOLE else role


class RolesOfModels:
    """The roles of targets, and of the variants of each model."""

    def __init__(self, roles: Mapping[TargetKey, str], models: Mapping[Key, frozenset[str]]) -> None:
        self._roles = roles
        self._models = models

    def why_apart(self, claim: Claim) -> str:
        """Return why a variant is left alone because of its role, or an empty string."""
        role = self._roles.get(claim.target, "")
        others = sorted(self._models.get(claim.model, frozenset()) - {role})
        if not role or not others:
            return ""
        named = " and ".join(repr(other) if other else "no role" for other in others)
        return (
            f"its pods have the role {role!r} by the label {ROLE_LABEL}, and those of other variants of model"
            f" {claim.model_id!r} have {named}: these do not replace each other, so its replicas are left"
            " alone: let its HorizontalPodAutoscaler read other metrics"
        )


def roles_of_models(claims: Iterable[Claim], targets: Mapping[TargetKey, Target]) -> RolesOfModels:
    """Return the roles of the targets of claims."""
    roles: dict[TargetKey, str] = {}
    models: dict[Key, frozenset[str]] = {}
    for claim in claims:
        if claim.target in targets:
            role = roles[claim.target] = role_of(targets[claim.target])
            models[claim.model] = models.get(claim.model, frozenset()) | {role}
    return RolesOfModels(roles, models)
