"""What is tried again, how often, and what comes of it in the end."""

from __future__ import annotations

import pytest

from apiserver.cluster.errors import AlreadyExists, ClusterError, Conflict, NotFound, Throttled, Unavailable
from apiserver.upgrading.retrying import comes_true, patiently, retried, steadily

SOON = 1e-6


class Answers:
    """Gives one answer after the other: an error is raised, anything else is returned."""

    def __init__(self, *answers: ClusterError | str) -> None:
        self.left = [*answers]

    async def __call__(self) -> str:
        """Give the next answer."""
        answer = self.left.pop(0)
        if isinstance(answer, ClusterError):
            raise answer
        return answer


RETRIED = {
    "an answer at once": (["done"], "done", 0),
    "errors of the kind, then an answer": ([Conflict("1"), AlreadyExists("2"), "done"], "done", 0),
    "an error of another kind ends it": ([Conflict("1"), NotFound("2"), "done"], NotFound, 1),
    "the last of too many errors is raised": ([Conflict("1")] * 3 + ["done"], Conflict, 1),
}


@pytest.mark.parametrize(("answers", "expected", "left"), RETRIED.values(), ids=RETRIED)
async def test_attempts_are_made_again_for_some_errors(
    answers: list[ClusterError | str], expected: str | type[ClusterError], left: int
) -> None:
    """One attempt more than there are pauses."""
    attempt = Answers(*answers)

    try:
        found: str | type[ClusterError] = await retried(attempt, Conflict, (SOON, SOON))
    except ClusterError as error:
        found = type(error)

    assert (found, len(attempt.left)) == (expected, left)


async def test_a_server_is_waited_for_as_long_as_it_says() -> None:
    """Thirty times a second would be half a minute."""
    throttled = [Throttled("storage is initializing", retry_after_seconds=SOON)] * 30

    assert await patiently(Answers(*throttled, "done")) == "done"
    with pytest.raises(Throttled):
        await patiently(Answers(*throttled, throttled[0], "done"))


async def test_what_may_work_later_is_tried_three_times() -> None:
    """Whatever else goes wrong is said at once."""
    busy = Unavailable("busy", retry_after_seconds=SOON)

    assert await steadily(Answers(busy, busy, "done")) == "done"
    with pytest.raises(Unavailable):
        await steadily(Answers(busy, busy, busy, "done"))


async def test_what_comes_true_is_waited_for_up_to_a_limit() -> None:
    """It is looked at once more after the limit."""
    answers = [False, True]

    async def holds() -> bool:
        return answers.pop(0)

    assert await comes_true(holds, within_seconds=60)
    answers = [False, False]
    assert not await comes_true(holds, within_seconds=-1)
