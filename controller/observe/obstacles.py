"""Why VariantAutoscalings cannot be planned, as far as that does not depend on their pods. Pure functions."""

from __future__ import annotations

from collections.abc import Container, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass

from apiserver.kinds.identity import Key, key_of, seniority
from apiserver.kinds.llmd.v1alpha2 import VariantAutoscaling
from apiserver.schema.json import Json
from apiserver.schema.validation import validate
from controller.observe.asks import binding_of
from controller.observe.conditions import ConditionReason
from controller.observe.roles import RolesOfModels
from controller.observe.targets import TargetKey, TargetKind, scaled_by
from controller.observe.unplanned import Unplanned
from controller.observe.variants import claim_of


def malformation(autoscaling: Json) -> Unplanned | None:
    """Return why an object is invalid: it was stored before admission was installed, or bypassed it."""
    found = validate(VariantAutoscaling, {"spec": autoscaling.get("spec")})
    return Unplanned(reason=ConditionReason.INVALID_CONFIGURATION, message=str(found[0])) if found else None


def _impostor(autoscaling: Json, bound_models: AbstractSet[Key]) -> Unplanned | None:
    """Return why a variant cannot be planned if its model ID equals that of a planned binding."""
    namespace, name = key_of(autoscaling)
    model_id = autoscaling["spec"]["modelID"]
    if binding_of(namespace, name) or (namespace, model_id) not in bound_models:
        return None
    text = f"modelID {model_id!r} is the name of an AutoscalingPolicyBinding in plans: choose another one"
    return Unplanned(reason=ConditionReason.INVALID_CONFIGURATION, message=text)


@dataclass(frozen=True, kw_only=True, slots=True)
class Obstacles:
    """What prevents the planning of targets."""

    exist: Container[TargetKey]
    """All targets, whether or not they can be planned."""

    unread: Mapping[TargetKey, str]
    """Why targets that are known only by their scale could not be read."""

    bound: Mapping[TargetKey, tuple[str, Key]]
    """The oldest binding that claims each target, with its creation timestamp."""

    unplannable: Mapping[TargetKey, Unplanned]
    bound_models: AbstractSet[Key]
    """Namespaces and model IDs of planned bindings."""

    roles: RolesOfModels

    def of(self, autoscaling: Json, claimed: Mapping[TargetKey, Json]) -> Unplanned | None:
        """Return why an object cannot be planned, or None. `claimed` are targets of older ones."""
        if found := malformation(autoscaling) or _impostor(autoscaling, self.bound_models):
            return found
        target = scaled_by(autoscaling)
        if target not in self.exist:
            return self._missing(target)
        bound = self.bound.get(target)
        # At equal age the binding takes precedence, consistent with the reader of bindings.
        is_own = bound is not None and bound[1] == binding_of(*key_of(autoscaling))
        if bound is not None and not is_own and bound[0] <= seniority(autoscaling)[0]:
            text = (
                f"AutoscalingPolicyBinding {bound[1][1]!r} is older and already decides on {target.called}"
                f" {target.name!r}; delete one of the two"
            )
            return Unplanned(reason=ConditionReason.TARGET_CLAIMED, message=text)
        if target in claimed:
            claim = claim_of(claimed[target], autoscaling)
            text = f"{claim} {target.called} {target.name!r}; delete one of the two"
            return Unplanned(reason=ConditionReason.TARGET_CLAIMED, message=text)
        if target in self.unplannable:
            return self.unplannable[target]
        why = self.roles.why_apart(autoscaling, target)
        return Unplanned(reason=ConditionReason.TARGET_NOT_SUPPORTED, message=why) if why else None

    def _missing(self, target: TargetKey) -> Unplanned:
        if target.kind is TargetKind.SCALED:
            why = self.unread.get(target, "its scale was not read: see docs/targets.md")
            text = f"{target.called} {target.name!r} cannot be planned: {why}"
            return Unplanned(reason=ConditionReason.TARGET_NOT_SUPPORTED, message=text)
        text = f"{target.called} {target.name!r} does not exist in namespace {target.namespace!r}"
        return Unplanned(reason=ConditionReason.TARGET_NOT_FOUND, message=text)
