"""Privileges of the writers of objects, as answered by the API server. Pure; requests are made elsewhere."""

from __future__ import annotations

from dataclasses import dataclass

import msgspec

from apiserver.kinds.authorship import taking_over
from apiserver.kinds.privileges import Privilege
from apiserver.schema.json import Json
from controller.observe.claim import Claim


@dataclass(frozen=True, kw_only=True, slots=True, order=True)
class Question:
    """The question whether a user has a privilege."""

    record: str
    """The user, as recorded on an object by its writer."""

    privilege: Privilege

    @property
    def user(self) -> Json:
        """The user, in the form of `userInfo` in an admission request."""
        user: Json = msgspec.json.decode(self.record)
        return user


@dataclass(frozen=True, kw_only=True, slots=True)
class Grants:
    """The questions that were answered with yes."""

    allowed: frozenset[Question]
    namespace: str
    """Namespace of the installation, in which the right is checked."""

    def refusal(self, claim: Claim, privilege: Privilege) -> str:
        """Return why the writer of an object lacks a privilege, and what to do; empty if it is granted."""
        question = question_of(claim, privilege)
        if question in self.allowed:
            return ""
        kind, namespace, name = claim.owner
        if claim.is_annotated:
            return f"no writer of a {kind} is recorded: declare it in a VariantAutoscaling instead"
        command = (
            f"a user who has it must run {taking_over(f'{kind.short_name} {name}', namespace=namespace)}"
        )
        right = f"use {privilege} in namespace {self.namespace!r}"
        if question is None:
            return f"no writer is recorded, so no user's permission to {right} applies: {command}"
        return (
            f"user {question.user['username']!r}, who wrote it, is not allowed to {right}: grant this"
            f" permission, or {command}"
        )


def question_of(claim: Claim, privilege: Privilege) -> Question | None:
    """Return the question for the writer of an object; None if no writer is recorded."""
    return None if claim.writer is None else Question(record=claim.writer, privilege=privilege)
