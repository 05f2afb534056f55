"""Why variants cannot be planned, as far as that does not depend on their pods. Pure functions."""

from __future__ import annotations

from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass

from apiserver.kinds.annotated import MANAGED
from apiserver.kinds.identity import Key
from controller.observe.claim import Claim
from controller.observe.conditions import ConditionReason
from controller.observe.targets import Target, TargetKey, TargetKind
from controller.observe.unplanned import Unplanned


def _impostor(claim: Claim, bound_models: AbstractSet[Key]) -> Unplanned | None:
    """Return why a variant cannot be planned if its model ID equals that of a planned binding."""
    if claim.is_bound or claim.model not in bound_models:
        return None
    text = (
        f"modelID {claim.model_id!r} is the name of an AutoscalingPolicyBinding in plans: choose another one"
    )
    return Unplanned(reason=ConditionReason.INVALID_CONFIGURATION, message=text)


@dataclass(frozen=True, kw_only=True, slots=True)
class Obstacles:
    """What prevents the planning of targets."""

    targets: Mapping[TargetKey, Target | Unplanned]
    """All targets, or why they cannot be planned."""

    unread: Mapping[TargetKey, str]
    """Why targets that are known only by their scale could not be read."""

    bound: Mapping[TargetKey, tuple[str, Key]]
    """The oldest binding that claims each target, with its creation timestamp."""

    bound_models: AbstractSet[Key]
    """Namespaces and model IDs of planned bindings."""

    def target_of(self, claim: Claim, claimed: Mapping[TargetKey, Claim]) -> Target | Unplanned:
        """Return the target of a claim, or why it cannot be planned. `claimed` are those of older claims."""
        if impostor := _impostor(claim, self.bound_models):
            return impostor
        target = claim.target
        if target not in self.targets:
            return self._missing(target)
        bound = self.bound.get(target)
        # At equal age the binding takes precedence, consistent with the reader of bindings.
        is_own = bound is not None and claim.is_bound and bound[1] == claim.owner[1:]
        if bound is not None and not is_own and (claim.is_annotated or bound[0] <= claim.created):
            who = f"AutoscalingPolicyBinding {bound[1][1]!r}"
            is_older = "" if claim.is_annotated else " is older and"
            text = f"{who}{is_older} already decides on {target.called} {target.name!r}; {_remedy(claim)}"
            return Unplanned(reason=ConditionReason.TARGET_CLAIMED, message=text)
        if target in claimed:
            before = _precedence(claimed[target], claim)
            remedy = "delete one of the two" if claimed[target].is_annotated else _remedy(claim)
            text = f"{before} {target.called} {target.name!r}; {remedy}"
            return Unplanned(reason=ConditionReason.TARGET_CLAIMED, message=text)
        return self.targets[target]

    def _missing(self, target: TargetKey) -> Unplanned:
        if target.kind is TargetKind.SCALED:
            why = self.unread.get(target, "its scale was not read: see docs/targets.md")
            text = f"{target.called} {target.name!r} cannot be planned: {why}"
            return Unplanned(reason=ConditionReason.TARGET_NOT_SUPPORTED, message=text)
        text = f"{target.called} {target.name!r} does not exist in namespace {target.namespace!r}"
        return Unplanned(reason=ConditionReason.TARGET_NOT_FOUND, message=text)


def _remedy(claim: Claim) -> str:
    """Return what the owner of a claim that comes second can do."""
    return f"remove the annotation {MANAGED} here" if claim.is_annotated else "delete one of the two"


def _precedence(first: Claim, other: Claim) -> str:
    """Return the beginning of a sentence about a claim on a target that comes before another one."""
    who = f"{first.owner.kind} {first.name!r}"
    if other.is_annotated and not first.is_annotated:
        return f"{who} already decides on"
    if first.created != other.created:
        return f"{who} is older and already decides on"
    return f"{who}, whose name is first and whose age is the same, already decides on"
