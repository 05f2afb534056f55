"""Who may have which privileges, as the API server said: pure, it is asked elsewhere."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import msgspec

from apiserver.kinds.authorship import record_of, taking_over, writer_of
from apiserver.kinds.privileges import Privilege
from apiserver.schema.json import Json
from controller.observe.asks import binding_of

_CREDENTIAL: Final = "authentication.kubernetes.io/"
"""What of `extra` begins so names the token, and the pod that sent it. That restricts nothing, and to ask for
each token anew would be nearly as many questions as objects.
Source: `k8s.io/apiserver/pkg/authentication/serviceaccount/util.go`."""


@dataclass(frozen=True, kw_only=True, slots=True, order=True)
class Question:
    """Whether a user may have a privilege."""

    record: str
    """Who, as an object tells of its writer."""

    privilege: Privilege

    @property
    def user(self) -> Json:
        """Return the user as `userInfo` of an admission request describes one."""
        user: Json = msgspec.json.decode(self.record)
        return user


@dataclass(frozen=True, kw_only=True, slots=True)
class Grants:
    """The questions that were answered with yes."""

    allowed: frozenset[Question]
    namespace: str
    """Of the installation: where the right is looked for."""

    def refusal(self, value: Json, privilege: Privilege) -> str:
        """Return why the writer of an object may not have a privilege, and what to do; empty where he may."""
        question = question_of(value, privilege)
        if question in self.allowed:
            return ""
        metadata = value["metadata"]
        binding = binding_of(metadata["namespace"], metadata["name"])
        what = f"aspb {binding[1]}" if binding else f"va {metadata['name']}"
        command = f"a user who has it must run {taking_over(what, namespace=metadata['namespace'])}"
        right = f"use {privilege} in namespace {self.namespace!r}"
        if question is None:
            return f"no writer is recorded, so no user's permission to {right} applies: {command}"
        return (
            f"user {question.user['username']!r}, who wrote it, is not allowed to {right}: grant this"
            f" permission, or {command}"
        )


def question_of(value: Json, privilege: Privilege) -> Question | None:
    """Return whether the writer of an object may have it; None where nobody is known to have written that."""
    user = writer_of(value)
    if user is None:
        return None
    extra = user.get("extra")
    if isinstance(extra, dict):
        kept = {name: item for name, item in extra.items() if not name.startswith(_CREDENTIAL)}
        user = user | {"extra": kept}
    return Question(record=record_of(user), privilege=privilege)
