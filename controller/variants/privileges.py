"""Checks of privileges by the API server, with cached results.

It sends one SubjectAccessReview for each user and privilege, however many objects share it. During an outage,
the last result counts for some minutes. After that, or without any result, nothing is decided, because a
service class withdrawn by mistake would remove replicas.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Final

from apiserver.cluster.access import access_review, is_allowed
from apiserver.cluster.client import Cluster
from apiserver.cluster.errors import ClusterError, Invalid
from apiserver.cluster.resource import SUBJECT_ACCESS_REVIEWS
from apiserver.kinds.privileges import GROUP, OWN_COST, USE
from apiserver.log import EventLogger
from controller.observe.claim import Claim
from controller.observe.classes import needed_privilege
from controller.observe.policies import Grants, Policies, PrivilegeQuestion, question_of

ALLOWED_SECONDS: Final = 60.0
"""Lifetime of a positive result in seconds."""

REFUSED_SECONDS: Final = 15.0
"""Lifetime of a negative result in seconds: shorter, because a user may be waiting for a permission."""

KEPT_SECONDS: Final = 180.0
"""How long in seconds a result counts if it cannot be renewed: as long as published numbers without a
controller."""

CALL_SECONDS: Final = 5.0
_AT_ONCE: Final = 8

_log = EventLogger(__name__)


@dataclass(frozen=True, slots=True)
class _PrivilegeAnswer:
    is_allowed: bool
    time_seconds: float


def questions(claims: Iterable[Claim], policies: Policies) -> frozenset[PrivilegeQuestion]:
    """Return the access questions about the writers of claims, without duplicates."""
    return frozenset(
        question
        for claim in claims
        for privilege in (needed_privilege(claim, policies), OWN_COST if claim.cost is not None else None)
        if privilege and (question := question_of(claim, privilege))
    )


class Privileges:
    """Caches results between cycles."""

    def __init__(self, cluster: Cluster, *, namespace: str, seconds: Callable[[], float]) -> None:
        """Create the cache. `namespace` is that of the installation, `seconds` a monotonic clock."""
        self._cluster = cluster
        self._namespace = namespace
        self._seconds = seconds
        self._known: dict[PrivilegeQuestion, _PrivilegeAnswer] = {}

    async def grants(self, questions: frozenset[PrivilegeQuestion]) -> Grants:
        """Return the granted privileges. Raises ClusterError if a question has no valid result."""
        self._known = {item: answer for item, answer in self._known.items() if item in questions}
        due = [item for item in sorted(questions) if self._age_seconds(item) >= self._fresh_seconds(item)]
        gate = asyncio.Semaphore(_AT_ONCE)

        errors: list[ClusterError] = []

        async def ask(question: PrivilegeQuestion) -> None:
            async with gate:
                if errors:
                    return  # trying all of them would take the whole time of the cycle
                try:
                    await self._ask(question)
                except ClusterError as error:
                    errors.append(error)

        await asyncio.gather(*map(ask, due))
        if errors:
            if any(self._age_seconds(item) >= KEPT_SECONDS for item in due):
                raise errors[0]
            _log.warning("permissions of writers not checked again", error=errors[0].message)
        allowed = frozenset(item for item, answer in self._known.items() if answer.is_allowed)
        return Grants(allowed=allowed, namespace=self._namespace)

    def _age_seconds(self, question: PrivilegeQuestion) -> float:
        answer = self._known.get(question)
        return self._seconds() - answer.time_seconds if answer else math.inf

    def _fresh_seconds(self, question: PrivilegeQuestion) -> float:
        answer = self._known.get(question)
        return ALLOWED_SECONDS if answer and answer.is_allowed else REFUSED_SECONDS

    async def _ask(self, question: PrivilegeQuestion) -> None:
        review = access_review(
            question.user,
            verb=USE,
            namespace=self._namespace,
            group=GROUP,
            resource=question.privilege.resource,
            name=question.privilege.name,
        )
        try:
            answer = await self._cluster.create(SUBJECT_ACCESS_REVIEWS, review, timeout_seconds=CALL_SECONDS)
        except Invalid:
            # A record from before our admission can contain anything. An invalid user has no permission.
            answer = {}
        self._known[question] = _PrivilegeAnswer(is_allowed(answer), self._seconds())
