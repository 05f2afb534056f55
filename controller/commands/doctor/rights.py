"""What the permissions of our service accounts are for: what does not work without them.

A test compares the table with the roles of the base manifests.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from apiserver.cluster.access import access_review
from apiserver.schema.json import Json
from controller.commands.upgrade.calls import resource_attributes

_CONTROLLER: Final = "controller"
_APISERVER: Final = "apiserver"
_WEBHOOKS: Final = "webhooks"
_NOTHING: Final = "nothing is decided"
_CERTIFICATES: Final = "certificates are not renewed"
_ADVICE: Final = "admission warns of fewer mistakes"


@dataclass(frozen=True, slots=True)
class Right:
    """What one account does with some verbs on some resources."""

    account: str
    """The component, such as `controller`."""

    verbs: str
    resources: str
    """Resources with their group, such as `deployments.apps`."""

    without: str
    """What does not work without it."""

    names: str = ""
    """Names of objects, if it is limited to these."""

    is_own: bool = False
    """Whether it applies in our namespace only."""

    is_needed: bool = True
    """Whether nothing works without it."""


def _optional(
    verbs: str,
    resources: str,
    without: str,
    *,
    account: str = _CONTROLLER,
    names: str = "",
    is_own: bool = False,
) -> Right:
    """Return what one feature needs."""
    return Right(account, verbs, resources, without, names=names, is_own=is_own, is_needed=False)


RIGHTS: Final = (
    Right(_CONTROLLER, "list watch", "variantautoscalings.llmd.ai", _NOTHING),
    Right(_CONTROLLER, "patch", "variantautoscalings/status.llmd.ai", "no decision is published"),
    Right(_CONTROLLER, "list watch", "deployments.apps statefulsets.apps nodes pods", _NOTHING),
    Right(_CONTROLLER, "list watch", "horizontalpodautoscalers.autoscaling", _NOTHING),
    _optional("patch", "pods", "ReplicaSets choose which pods to delete, and gated pods are never scheduled"),
    _optional("list watch", "resourcequotas", "plans may exceed quotas"),
    _optional("list watch", "leaderworkersets.leaderworkerset.x-k8s.io", "LeaderWorkerSets are not planned"),
    _optional(
        "list watch",
        "resourceslices.resource.k8s.io resourceclaims.resource.k8s.io"
        " resourceclaimtemplates.resource.k8s.io deviceclasses.resource.k8s.io",
        "devices of Dynamic Resource Allocation are not counted",
    ),
    _optional("list watch", "scaledobjects.keda.sh", "a minimum of 0 replicas of KEDA is not known"),
    _optional("list watch", "nodepools.karpenter.sh", "nodes that Karpenter could add are not planned with"),
    _optional(
        "list watch",
        "inferencepools.inference.networking.k8s.io",
        "models do not start from zero by the queue of their pool",
    ),
    _optional("list watch", "poddisruptionbudgets.policy", "evictions that a budget forbids are planned"),
    _optional("create patch", "events.events.k8s.io", "there are no events"),
    Right(
        _CONTROLLER,
        "get patch",
        "mutatingwebhookconfigurations.admissionregistration.k8s.io"
        " validatingwebhookconfigurations.admissionregistration.k8s.io",
        _CERTIFICATES,
        names="stowplan stowplan-kthena stowplan-kthena-serving stowplan-inference-extension",
    ),
    Right(
        _CONTROLLER,
        "get patch",
        "customresourcedefinitions.apiextensions.k8s.io",
        _CERTIFICATES,
        names="variantautoscalings.llmd.ai",
    ),
    Right(
        _CONTROLLER,
        "get list watch patch",
        "apiservices.apiregistration.k8s.io",
        _CERTIFICATES,
        names="v1beta1.external.metrics.k8s.io",
    ),
    Right(_CONTROLLER, "list watch", "configmaps", "prices and service classes are not read", is_own=True),
    _optional(
        "patch",
        "configmaps",
        "a new leader does not know the last valid prices and service classes",
        names="stowplan-last-valid-settings",
        is_own=True,
    ),
    Right(
        _CONTROLLER,
        "get update",
        "secrets",
        _CERTIFICATES,
        names="stowplan-authority stowplan-webhooks-certificate stowplan-apiserver-certificate",
        is_own=True,
    ),
    Right(_CONTROLLER, "create", "leases.coordination.k8s.io", "no replica becomes the leader", is_own=True),
    Right(
        _CONTROLLER,
        "get update",
        "leases.coordination.k8s.io",
        "no replica stays the leader",
        names="stowplan-controller",
        is_own=True,
    ),
    Right(_APISERVER, "list watch", "variantautoscalings.llmd.ai", "autoscalers get no number"),
    Right(
        _APISERVER,
        "list watch",
        "configmaps",
        "every request of the API server is refused",
        names="extension-apiserver-authentication",
    ),
    _optional(
        "create",
        "tokenreviews.authentication.k8s.io subjectaccessreviews.authorization.k8s.io",
        "direct requests with a token, such as those of KEDA, are refused",
        account=_APISERVER,
    ),
    _optional(
        "list watch",
        "leases.coordination.k8s.io",
        "decisions count as outdated although a cycle confirmed them",
        account=_APISERVER,
        names="stowplan-controller",
        is_own=True,
    ),
    Right(
        _WEBHOOKS,
        "create",
        "subjectaccessreviews.authorization.k8s.io",
        "it is not checked whether a user may scale the target",
    ),
    _optional(
        "list watch",
        "deployments.apps statefulsets.apps horizontalpodautoscalers.autoscaling variantautoscalings.llmd.ai",
        _ADVICE,
        account=_WEBHOOKS,
    ),
    _optional("list watch", "configmaps", _ADVICE, account=_WEBHOOKS, is_own=True),
)
"""The permissions of the base installation."""


def permissions_of(right: Right, system: str) -> tuple[str, ...]:
    """Return each permission as `VERB PLURAL[/SUB][.GROUP][ NAME][ in NAMESPACE]`; `system` is ours."""
    place = f" in {system}" if right.is_own else ""
    return tuple(
        f"{verb} {resource}{name}{place}"
        for verb in right.verbs.split()
        for resource in right.resources.split()
        for name in ([f" {name}" for name in right.names.split()] or [""])
    )


def review_of(right: Right, permission: str, system: str) -> Json:
    """Return the SubjectAccessReview of one permission of an account."""
    user = {
        "username": f"system:serviceaccount:{system}:stowplan-{right.account}",
        "groups": ["system:serviceaccounts", f"system:serviceaccounts:{system}", "system:authenticated"],
    }
    return access_review(user, **resource_attributes(permission))
