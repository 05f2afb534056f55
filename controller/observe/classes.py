"""Resolve the service class of a variant: by reference or by model, if its writer may use it."""

from __future__ import annotations

import re
from typing import Final

from apiserver.kinds.privileges import Privilege, class_privilege
from apiserver.schema.document import nearest
from controller.observe.claim import Claim, Place
from controller.observe.conditions import ConditionReason, Finding
from controller.observe.objectives import Objective
from controller.observe.policies import Policies, ServiceClass
from controller.planning.snapshot import LOWEST_PRIORITY

_NUMBER: Final = re.compile(r"\d+")
_LIKENESS: Final = 0.9
"""The similarity from which the name of a model is a typing error."""


def class_of(claim: Claim, policies: Policies) -> ServiceClass | None:
    """Return the effective class of a variant, or None."""
    place = _place(claim, policies)
    return None if place is None or class_refusal(claim, policies) else policies.classes.get(place)


def priority_of(claim: Claim, policies: Policies, objective: Objective | None = None) -> int:
    """Return the priority of the service class, else of the objective, else the lowest.

    Priority 1 is served first.
    """
    source = class_of(claim, policies) or objective
    return source.priority if source else LOWEST_PRIORITY


def class_finding(claim: Claim, policies: Policies, objective: Objective | None = None) -> Finding:
    """Return whether the service class could be resolved, with a reason and a message.

    The message says where the priority comes from.
    """
    place, instead = _place(claim, policies), _instead(objective)
    if place is None:
        return _without_class(claim, policies, objective)
    service_class = policies.classes.get(place)
    if service_class is None:
        where = f"ConfigMap {place[0]!r} of Stowplan's namespace contains no service class under"
        why = f"; {problem}" if (problem := policies.class_problem(place)) else ""
        return False, ConditionReason.CLASS_NOT_FOUND, f"{where} {place[1]!r}: {instead}{why}"
    if why := class_refusal(claim, policies, objective):
        return False, ConditionReason.CLASS_NOT_ALLOWED, why
    before = f", which takes precedence over {objective}" if objective else ""
    text = f"service class {service_class.name!r}, priority {service_class.priority}{before}"
    if problem := policies.class_problem(place):
        return False, ConditionReason.CLASS_INVALID, f"{text}; {problem}"
    return True, ConditionReason.CLASS_FOUND, text


def _without_class(claim: Claim, policies: Policies, objective: Objective | None) -> Finding:
    """Return the finding for a variant without a reference whose model no class lists."""
    instead = _instead(objective)
    reason = ConditionReason.OBJECTIVE_FOUND if objective else ConditionReason.NO_CLASS
    if unread := policies.unread_class():
        text = f"no service class lists the model, and one cannot be read: {instead}; {unread}"
        return False, ConditionReason.CLASS_INVALID, text
    hint, is_certain = _misspelt(claim.model_id, policies)
    if is_certain:
        text = f"no service class lists the model: {instead}; {hint}"
        return False, ConditionReason.CLASS_NOT_FOUND, text
    is_missing = policies.default_classes in policies.missing
    why = f", and ConfigMap {policies.default_classes!r} is missing" if is_missing else ""
    return True, reason, f"no service class applies{why}: {instead}{f'; {hint}' if hint else ''}"


def _misspelt(model_id: str, policies: Policies) -> tuple[str, bool]:
    """Return which listed model may be meant, and whether it is: only upper and lower case differ.

    Empty if none has the same numbers and almost the same name. Names of one family are alike apart from
    their numbers, such as that of parameters, or from their ends, such as `-AWQ`.
    """
    listed = {
        name.casefold(): (service_class.name, name)
        for (config_map, _), service_class in policies.classes.items()
        if policies.default_classes in {"", config_map}
        for name in (*service_class.ttft_ms, *service_class.tpot_ms)
        if _NUMBER.findall(name) == _NUMBER.findall(model_id)
    }
    own = model_id.casefold()
    close = nearest(own, tuple(listed), likeness=_LIKENESS)
    if not close or own.startswith(f"{close}-") or close.startswith(f"{own}-"):
        return "", False
    return f"{listed[close][0]!r} lists {listed[close][1]!r}: is this model meant?", close == own


def class_refusal(claim: Claim, policies: Policies, objective: Objective | None = None) -> str:
    """Return why an existing class is not applied; empty if it is, or if there is none."""
    place = _place(claim, policies)
    if policies.grants is None or place is None or place not in policies.classes:
        return ""
    why = policies.grants.refusal(claim, class_privilege(*place))
    if not why:
        return ""
    return f"service class {'/'.join(place)} is not used, so it has {_instead(objective)}: {why}"


def _instead(objective: Objective | None) -> str:
    """Return the priority without a class, in words."""
    if objective:
        return f"priority {objective.priority} by {objective}"
    return f"priority {LOWEST_PRIORITY}, the lowest"


def needed_privilege(claim: Claim, policies: Policies) -> Privilege | None:
    """Return the privilege that the writer of a claim needs for its service class; None without one."""
    place = _place(claim, policies)
    return class_privilege(*place) if place is not None and place in policies.classes else None


def _place(claim: Claim, policies: Policies) -> Place | None:
    """Return where the class is defined: the referenced one, else the one of best priority for the model."""
    if claim.service_class is not None:
        return claim.service_class
    listed = [
        (item.priority, where)
        for where, item in policies.classes.items()
        if policies.default_classes in {"", where[0]} and item.covers(claim.model_id)
    ]
    return min(listed)[1] if listed else None
