"""Calls to the API server: retries, polling and rate limits."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any

import pytest
from support.memory_cluster import MemoryCluster

from apiserver.cluster.errors import AlreadyExists, ClusterError, Conflict, NotFound, Throttled, Unavailable
from controller.commands.upgrade.calls import (
    Pace,
    StoppedError,
    each,
    missing_permissions,
    patiently,
    retry,
    steadily,
    wait_out,
)

if TYPE_CHECKING:
    from apiserver.cluster.resource import Resource
    from apiserver.schema.json import Json

SOON = 1e-6


class Answers:
    """A stub that gives its answers one by one: an error is raised, anything else is returned."""

    def __init__(self, *answers: ClusterError | str) -> None:
        self.left = [*answers]

    async def __call__(self) -> str:
        """Return or raise the next answer."""
        answer = self.left.pop(0)
        if isinstance(answer, ClusterError):
            raise answer
        return answer


def conflicts_twice(attempt: Answers) -> Awaitable[str]:
    """Return the result of an attempt that is retried twice after a Conflict."""
    return retry(attempt, Conflict, (SOON, SOON))


CONFLICT, BUSY = Conflict("1"), Unavailable("busy", retry_after_seconds=SOON)
THROTTLED = Throttled("storage is initializing", retry_after_seconds=SOON)
RETRIED: dict[str, tuple[Callable[[Answers], Awaitable[str]], list[ClusterError | str], str | type, int]] = {
    "an answer at the first attempt": (conflicts_twice, ["done"], "done", 0),
    "errors of the given type, then an answer": (
        conflicts_twice,
        [CONFLICT, AlreadyExists("2"), "done"],
        "done",
        0,
    ),
    "an error of another type is raised": (conflicts_twice, [CONFLICT, NotFound("2"), "done"], NotFound, 1),
    "the last of too many errors is raised": (conflicts_twice, [*(CONFLICT,) * 3, "done"], Conflict, 1),
    "throttled for half a minute": (patiently, [*(THROTTLED,) * 30, "done"], "done", 0),
    "throttled for longer": (patiently, [*(THROTTLED,) * 31, "done"], Throttled, 1),
    "unavailable twice": (steadily, [BUSY, BUSY, "done"], "done", 0),
    "unavailable three times": (steadily, [BUSY, BUSY, BUSY, "done"], Unavailable, 1),
}


@pytest.mark.parametrize(("call", "answers", "expected", "left"), RETRIED.values(), ids=RETRIED)
async def test_attempts_are_retried_after_some_errors(
    call: Callable[[Answers], Awaitable[str]],
    answers: list[ClusterError | str],
    expected: str | type[ClusterError],
    left: int,
) -> None:
    """There is one attempt more than there are pauses; what the server asks for replaces a pause."""
    attempt = Answers(*answers)

    try:
        found: str | type[ClusterError] = await call(attempt)
    except ClusterError as error:
        found = type(error)

    assert (found, len(attempt.left)) == (expected, left)


async def test_an_end_is_polled_up_to_a_time_limit() -> None:
    """It is looked for once even if the limit has already passed; the error states what is left."""
    answers = ["x still exists", ""]

    async def remainder() -> str:
        return answers.pop(0)

    await wait_out(remainder, within_seconds=60)
    answers = ["x still exists"]
    with pytest.raises(StoppedError, match="x still exists after -1 s; run this command again"):
        await wait_out(remainder, within_seconds=-1)


async def test_each_keeps_the_order_and_raises_the_first_error() -> None:
    """The raised error is that of the worker, not wrapped in another one."""

    async def work(item: int) -> int:
        if item == 3:
            raise Conflict("three")
        return item * 2

    told: list[tuple[int, int, str]] = []
    pace = Pace(per_second=10_000, tell=lambda *said: told.append(said))

    assert await each([1, 2], work, pace.of("pods")) == [2, 4]
    assert told == [(1, 2, "pods"), (2, 2, "pods")]
    with pytest.raises(Conflict, match="three"):
        await each([1, 3], work, pace)


class Reviewer(MemoryCluster):
    """A stub that allows only what concerns one namespace, and keeps what it was asked."""

    def __init__(self) -> None:
        super().__init__([])
        self.asked: list[Json] = []

    async def create(self, resource: Resource, body: Json, **_: Any) -> Json:
        """Answer a SelfSubjectAccessReview."""
        assert body["kind"] == resource.kind
        attributes = {name: text for name, text in body["spec"]["resourceAttributes"].items() if text}
        self.asked.append(attributes)
        return body | {"status": {"allowed": "namespace" in attributes}}


async def test_missing_permissions_are_named_as_they_were_given() -> None:
    """They may be for a subresource, or for one namespace."""
    cluster = Reviewer()
    status, services = (
        "update customresourcedefinitions/status.apiextensions.k8s.io",
        "get services in models",
    )

    assert await missing_permissions(cluster, (status, services)) == (status,)
    assert cluster.asked == [
        {
            "verb": "update",
            "group": "apiextensions.k8s.io",
            "resource": "customresourcedefinitions",
            "subresource": "status",
        },
        {"verb": "get", "resource": "services", "namespace": "models"},
    ]
