"""Tokens are reviewed once for all requests within some seconds, by an API server in memory."""

from __future__ import annotations

import asyncio
from collections import Counter
from contextlib import nullcontext
from typing import TYPE_CHECKING

import pytest
from support.logs import capture_logs

from apiserver.cluster.client import Cluster
from apiserver.cluster.errors import ClusterError, Forbidden, Unavailable
from apiserver.cluster.resource import TOKEN_REVIEWS
from apiserver.metrics.status import (
    ForbiddenError,
    ServiceUnavailableError,
    StatusError,
    TooManyRequestsError,
    UnauthorizedError,
)
from apiserver.metrics.tokens import AT_ONCE, LIFETIME_SECONDS, MOST_NEW, TokenReviewer, bearer_token

if TYPE_CHECKING:
    from apiserver.cluster.resource import Resource
    from apiserver.schema.json import Json

METRIC = "wva_desired_replicas"


class Reviews(Cluster):
    """An API server that knows the token `good`, whose user may read one metric in namespace `chat`."""

    def __init__(self) -> None:
        self.calls: Counter[str] = Counter()
        self.error: ClusterError | None = None
        self.forbidden = ""
        """A kind of review that fails."""
        self.at_once = self.most_at_once = 0
        self.is_open = asyncio.Event()
        self.is_open.set()
        self.has_begun = asyncio.Event()

    async def create(
        self,
        resource: Resource,
        body: Json,
        *,
        namespace: str | None = None,  # noqa: ARG002 (the signature of the client)
        dry_run: bool = False,  # noqa: ARG002
        timeout_seconds: float = 0.0,  # noqa: ARG002
    ) -> Json:
        """Answer a review."""
        self.calls[resource.kind] += 1
        self.has_begun.set()
        self.at_once += 1
        self.most_at_once = max(self.most_at_once, self.at_once)
        await self.is_open.wait()
        await asyncio.sleep(0)  # as long as others wait for their turn
        self.at_once -= 1
        if self.error:
            raise self.error
        if resource.kind == self.forbidden:
            raise Forbidden("no right")
        spec = body["spec"]
        if resource is TOKEN_REVIEWS:
            is_good = spec["token"] == "good"  # noqa: S105 (no secret)
            user = {"username": "keda", "groups": ["system:authenticated"]}
            return {"status": {"authenticated": True, "user": user} if is_good else {"error": "unknown"}}
        asked = spec["resourceAttributes"]
        is_allowed = (spec["user"], asked["namespace"], asked["verb"], asked["resource"]) == (
            "keda",
            "chat",
            "get",
            METRIC,
        )
        return {"status": {"allowed": is_allowed and asked["group"] == "external.metrics.k8s.io"}}


class Clock:
    """A monotonic clock that a test advances."""

    seconds = 0.0

    def __call__(self) -> float:
        """Return the time in seconds."""
        return self.seconds


@pytest.mark.parametrize(
    ("header", "want"),
    [
        ("Bearer abc", "abc"),
        ("bearer  abc ", "abc"),
        ("Bearer ", None),
        ("Bearer", None),
        ("Basic abc", None),
        ("", None),
    ],
)
def test_only_a_bearer_token_is_read(header: str, want: str | None) -> None:
    """The name of the scheme may have any case."""
    assert bearer_token(header) == want


@pytest.mark.parametrize(
    ("token", "namespace", "error"),
    [
        pytest.param("good", "chat", None, id="it is allowed"),
        pytest.param("good", "other", ForbiddenError, id="it is valid and not allowed"),
        pytest.param("bad", "chat", UnauthorizedError, id="it is not valid"),
    ],
)
async def test_a_metric_is_for_users_who_may_read_it(
    token: str, namespace: str, error: type[StatusError] | None
) -> None:
    """The permission is that of the aggregation layer: `get` on the metric's name as resource."""
    reviewer = TokenReviewer(Reviews())
    with pytest.raises(error) if error else nullcontext():
        await reviewer.authorize(token, namespace=namespace, metric_name=METRIC)


async def test_concurrent_requests_share_a_review_until_it_is_old() -> None:
    """A hundred objects that are polled with one token cost two reviews."""
    cluster, clock = Reviews(), Clock()
    reviewer = TokenReviewer(cluster, seconds=clock)

    async def ask() -> None:
        requests = [reviewer.authorize("good", namespace="chat", metric_name=METRIC) for _ in range(100)]
        await asyncio.gather(*requests)

    await ask()
    clock.seconds += LIFETIME_SECONDS - 0.1
    await ask()
    assert cluster.calls == {"TokenReview": 1, "SubjectAccessReview": 1}
    clock.seconds += 0.1
    await ask()
    assert cluster.calls == {"TokenReview": 2, "SubjectAccessReview": 2}


@pytest.mark.parametrize(
    ("error", "text"), [(Unavailable("timeout"), "timeout"), (Forbidden("no"), "ClusterRole lacks the right")]
)
async def test_a_failed_review_is_repeated_by_the_next_request(error: ClusterError, text: str) -> None:
    """Without an answer nobody is admitted, and nobody is told that the token is wrong."""
    cluster = Reviews()
    cluster.error = error
    reviewer = TokenReviewer(cluster)
    with pytest.raises(ServiceUnavailableError, match=text):
        await reviewer.authenticate("good")
    cluster.error = None
    assert (await reviewer.authenticate("good"))["username"] == "keda"


async def test_a_client_that_leaves_does_not_end_the_review_of_others() -> None:
    """They wait for the same answer."""
    cluster = Reviews()
    cluster.is_open.clear()
    reviewer = TokenReviewer(cluster)
    first, second = (asyncio.create_task(reviewer.authenticate("good")) for _ in range(2))
    await cluster.has_begun.wait()
    first.cancel()
    cluster.is_open.set()
    assert (await second)["username"] == "keda"


async def test_a_token_that_is_no_longer_valid_is_refused_at_once() -> None:
    """Only valid answers are used again."""
    cluster = Reviews()
    reviewer = TokenReviewer(cluster)
    for _ in range(3):
        with pytest.raises(UnauthorizedError):
            await reviewer.authenticate("bad")
    assert cluster.calls["TokenReview"] == 3


async def test_a_problem_is_logged_once_for_each_kind_of_review() -> None:
    """Here, only the permission cannot be reviewed."""
    cluster = Reviews()
    cluster.forbidden = "SubjectAccessReview"
    reviewer = TokenReviewer(cluster)
    with capture_logs() as lines:
        for _ in range(5):
            with pytest.raises(ServiceUnavailableError):
                await reviewer.authorize("good", namespace="chat", metric_name=METRIC)
        cluster.forbidden = ""
        for _ in range(5):
            await reviewer.authorize("good", namespace="chat", metric_name=METRIC)

    assert [(line["event"], line["kind"]) for line in lines] == [
        ("token not reviewed", "SubjectAccessReview"),
        ("tokens are reviewed again", "SubjectAccessReview"),
    ]


async def test_invented_tokens_delay_no_valid_one_and_take_little_memory() -> None:
    """A few are reviewed at a time, few wait, and the others are refused."""
    cluster, clock = Reviews(), Clock()
    reviewer = TokenReviewer(cluster, seconds=clock)
    await reviewer.authenticate("good")
    cluster.is_open.clear()
    cluster.has_begun.clear()
    before = len(asyncio.all_tasks())
    asked = [asyncio.create_task(reviewer.authenticate(f"invented-{number}")) for number in range(10_000)]
    await cluster.has_begun.wait()
    clock.seconds += LIFETIME_SECONDS
    valid = asyncio.create_task(reviewer.authenticate("good"))
    await asyncio.wait(asked[MOST_NEW:])
    assert len(asyncio.all_tasks()) - before <= 2 * MOST_NEW + 2
    assert cluster.most_at_once == AT_ONCE + 1  # and the valid one
    cluster.is_open.set()
    assert (await valid)["username"] == "keda"
    results = await asyncio.gather(*asked, return_exceptions=True)
    assert Counter(map(type, results)) == {
        TooManyRequestsError: len(asked) - MOST_NEW,
        UnauthorizedError: MOST_NEW,
    }


async def test_reviews_whose_clients_have_left_count() -> None:
    """Otherwise, requests that are aborted at once would add up."""
    cluster = Reviews()
    cluster.is_open.clear()
    reviewer = TokenReviewer(cluster)
    asked = [asyncio.create_task(reviewer.authenticate(f"invented-{number}")) for number in range(MOST_NEW)]
    await cluster.has_begun.wait()
    for task in asked:
        task.cancel()
    await asyncio.gather(*asked, return_exceptions=True)

    with pytest.raises(TooManyRequestsError):
        await reviewer.authenticate("one more")
    cluster.is_open.set()
