"""Reviews as API servers send them, the webhooks' answers, and stand-ins for a cluster."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterable, Sequence

from apiserver.kinds.autoscalers import Autoscaler, autoscaler_of
from apiserver.kinds.scalable import Scalable
from apiserver.schema.json import Json
from apiserver.schema.kind import Reference
from support.manifests import autoscaler
from webhooks.decision import mutate as ask_mutate
from webhooks.decision import validate as ask_validate
from webhooks.permissions import AccessRequest, Authorizer, UndecidedError
from webhooks.referents import Claimant, Referents
from webhooks.review import AdmissionRequest, AdmissionResponse, decode_admission
from webhooks.scaling import OPEN, ScalingAdmission, Tenancy

TARGET = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "llama"}


class Deployments(Referents):
    """A filled cache of Deployments."""

    def __init__(self, *names: str) -> None:
        super().__init__("")
        self._names = names

    def has(self, reference: Reference, namespace: str) -> bool | None:
        """Tell whether a Deployment in namespace ns is one of those given; None for other kinds."""
        return (namespace, reference.name) in {("ns", name) for name in self._names} or (
            None if reference.kind != "Deployment" else False
        )

    def place(self, reference: Reference, namespace: str) -> str:
        """Return the object's own namespace."""
        del reference
        return namespace

    def others(self, reference: Reference, namespace: str, own: Claimant) -> Iterable[Claimant]:
        """Return a VariantAutoscaling that scales every target named `claimed`."""
        claimant = ("VariantAutoscaling", "older")
        return (claimant,) if (namespace, reference.name) == ("ns", "claimed") and own != claimant else ()

    def autoscalers(self, reference: Reference, namespace: str) -> Sequence[Autoscaler]:
        """Return one that follows the variant `ok`, for every target named `followed`."""
        followed = autoscaler_of(autoscaler("ok"))
        return (followed,) if (namespace, reference.name) == ("ns", "followed") else ()


class Permissions(Authorizer):
    """Allows everything to some users, and records requests. Without users, it is unreachable."""

    def __init__(self, *users: str, refuses: tuple[str, ...] = ()) -> None:
        super().__init__()
        self._users = users
        self._refuses = refuses
        self.asked: list[AccessRequest] = []

    async def may(self, request: AccessRequest) -> bool:
        """Decide by the names of the user and of the object; without one, for all objects."""
        self.asked.append(request)
        if not self._users:
            raise UndecidedError("nobody there")
        is_refused = request.name in self._refuses if request.name else bool(self._refuses)
        return request.user["username"] in self._users and not is_refused


RESOURCES = {
    ("apps", "Deployment"): Scalable(resource="deployments"),
    ("workload.volcano.sh", "ModelInfer"): Scalable(resource="modelinfers", has_scale=False),
}
NOBODY = Referents("")
ANYBODY = ScalingAdmission(resources=RESOURCES, authorizer=None)


def mutate(request: Json, scaling: ScalingAdmission = ANYBODY, tenancy: Tenancy = OPEN) -> AdmissionResponse:
    """Return the response of /mutate to a request."""
    return asyncio.run(ask_mutate(read(request), scaling, tenancy))


def validate(
    request: Json, referents: Referents = NOBODY, scaling: ScalingAdmission = ANYBODY, tenancy: Tenancy = OPEN
) -> AdmissionResponse:
    """Return the response of /validate to a request."""
    return asyncio.run(ask_validate(read(request), scaling, referents, tenancy))


def read(request: Json) -> AdmissionRequest:
    """Return a request as decoded from its wire format."""
    return decode_admission(json.dumps({"kind": "AdmissionReview", "request": request}).encode())


def variant(*, version: str = "v1alpha2", metadata: Json | None = None, **spec: object) -> Json:
    """Return a VariantAutoscaling of the current shape with some fields of its spec changed."""
    return {
        "apiVersion": f"llmd.ai/{version}",
        "kind": "VariantAutoscaling",
        "metadata": {"name": "llama", "namespace": "ns"} | (metadata or {}),
        "spec": {"modelID": "m", "scaleTargetRef": TARGET} | spec,
    }


def review(value: Json | None, old: Json | None = None, **members: object) -> Json:
    """Return an admission request for a create, or for an update if there is an old object."""
    request = {"uid": "u1", "operation": "UPDATE" if old else "CREATE", "namespace": "ns"}
    return request | {"object": value, "oldObject": old} | members


def asked_by(user: str, value: Json, old: Json | None = None) -> Json:
    """Return a request of a user."""
    return review(value, old, userInfo={"username": user, "groups": ["devs"]})


def owned_by(name: str) -> Json:
    """Return metadata with a controlling Deployment."""
    return {"ownerReferences": [{"kind": "Deployment", "name": name, "controller": True}]}


def legacy(metadata: Json) -> Json:
    """Return a legacy object, whose target is implied by its owner."""
    value = variant(version="v1alpha1", metadata=metadata, sloClassRef={"name": "c", "key": "k"})
    del value["spec"]["scaleTargetRef"]
    return value
