"""The kinds of objects that may be scale targets unless configured otherwise."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from apiserver.schema import errors
from apiserver.schema.errors import FieldError
from apiserver.schema.kind import Reference

GroupKind = tuple[str, str]


@dataclass(frozen=True, kw_only=True, slots=True)
class Scalable:
    """The resource name of a kind. Without a scale subresource, the object itself is updated."""

    resource: str
    has_scale: bool = True


SCALABLE: Final[Mapping[GroupKind, Scalable]] = {
    ("apps", "Deployment"): Scalable(resource="deployments"),
    ("apps", "StatefulSet"): Scalable(resource="statefulsets"),
    ("leaderworkerset.x-k8s.io", "LeaderWorkerSet"): Scalable(resource="leaderworkersets"),
    ("workload.volcano.sh", "ModelInfer"): Scalable(resource="modelinfers", has_scale=False),
    ("workload.serving.volcano.sh", "ModelServing"): Scalable(resource="modelservings"),
}
"""Scalable kinds by group and kind. `ModelInfer` was released without a scale subresource."""


_MORE: Final = "an administrator can add kinds to scaling.resources of the webhooks' configuration"


def listing_error(claim: Reference, listed: Mapping[GroupKind, Scalable]) -> FieldError | None:
    """Return the error for a target of an unlisted kind; None for a listed kind, or for no kind."""
    if not claim.kind or (claim.group, claim.kind) in listed:
        return None
    allowed = ", ".join(_kind_text(group, kind) for group, kind in listed)
    detail = f"{_kind_text(claim.group, claim.kind)} cannot be scaled; what can: {allowed}; {_MORE}"
    return errors.forbidden(claim.path, detail)


def _kind_text(group: str, kind: str) -> str:
    return f"{kind} of {group}" if group else f"{kind} of the core group"
