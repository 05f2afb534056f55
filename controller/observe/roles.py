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
from controller.observe.unplanned import Unplanned

ROLE_LABEL: Final = "llm-d.ai/role"
"""The label of pods with their role in a disaggregated pair."""

_WHOLE: Final = frozenset({"", "both", "prefill-decode"})
"""Roles of engines that serve requests alone."""


def role_of(target: Target) -> str:
    """Return the role of a target's pods; empty if they serve requests alone."""
    role = next((labels[ROLE_LABEL] for labels in target.labels if labels.get(ROLE_LABEL)), "")
    return "" if role in _WHOLE else role


def roles_of_models(
    claims: Iterable[Claim], targets: Mapping[TargetKey, Target | Unplanned]
) -> Mapping[Key, frozenset[str]]:
    """Return the roles of the targets of each model (namespace, ID)."""
    models: dict[Key, frozenset[str]] = {}
    for claim in claims:
        if isinstance(target := targets.get(claim.target), Target):
            models[claim.model] = models.get(claim.model, frozenset()) | {role_of(target)}
    return models


def why_apart(claim: Claim, target: Target, models: Mapping[Key, frozenset[str]]) -> str:
    """Return why a variant is left alone because of its role, or an empty string.

    The author of a binding says which of its targets replace each other.
    """
    role = "" if claim.is_bound else role_of(target)
    others = sorted(models.get(claim.model, frozenset()) - {role})
    if not role or not others:
        return ""
    named = " and ".join(repr(other) if other else "no role" for other in others)
    return (
        f"its pods have the role {role!r} by the label {ROLE_LABEL}, and those of other variants of model"
        f" {claim.model_id!r} have {named}: these do not replace each other, so its replicas are left alone:"
        " let its HorizontalPodAutoscaler read other metrics"
    )
