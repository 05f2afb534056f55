"""SubjectAccessReviews: whether a user may perform an action (`k8s.io/api/authorization/v1`)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from apiserver.cluster.resource import SUBJECT_ACCESS_REVIEWS

if TYPE_CHECKING:
    from apiserver.schema.json import Json


def access_review(
    user: Json, *, verb: str, namespace: str, group: str, resource: str, name: str, subresource: str = ""
) -> Json:
    """Return the SubjectAccessReview for an action of a user on an object.

    `user` has the form of `userInfo` in an admission request.
    """
    spec = {
        "user": user.get("username") or "",
        "groups": user.get("groups") or [],
        "uid": user.get("uid") or "",
        "extra": user.get("extra") or {},
        "resourceAttributes": {
            "namespace": namespace,
            "verb": verb,
            "group": group,
            "resource": resource,
            "subresource": subresource,
            "name": name,
        },
    }
    return {
        "apiVersion": SUBJECT_ACCESS_REVIEWS.api_version,
        "kind": SUBJECT_ACCESS_REVIEWS.kind,
        "spec": spec,
    }


def is_allowed(answer: Json) -> bool:
    """Tell whether an answered review allows the action."""
    return (answer.get("status") or {}).get("allowed") is True
