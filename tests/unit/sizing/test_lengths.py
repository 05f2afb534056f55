"""Mean lengths of requests from the counters of engines."""

from __future__ import annotations

from dataclasses import replace

import pytest

from controller.sizing.lengths import Lengths, lengths_of
from controller.sizing.records import LengthCounts

FORMER = Lengths(prompt=500, computed=500, output=300)


def counts(*, begun: float, finished: float, ended: float, tokens: float) -> LengthCounts:
    """Return counts of requests with prompts of 1000 tokens, and of the tokens that they generated."""
    return LengthCounts(
        begun=begun,
        prompt_tokens=1000 * begun,
        examined_prompt_tokens=1000 * finished,
        computed_prompt_tokens=1000 * finished,
        generation_tokens=tokens,
        finished=finished,
        ended=ended,
    )


def test_the_mean_answer_is_tokens_per_finished_request() -> None:
    """Requests with a prompt in progress have not ended."""
    found = lengths_of(counts(begun=60, finished=60, ended=55, tokens=12_000), FORMER)

    assert found is not None
    assert (found.output, found.computed) == (200, 1000)


@pytest.mark.parametrize("finished", [30, 90])
def test_the_computed_share_is_that_of_finished_requests(finished: float) -> None:
    """Those that began in the same time can be more, as in a jump of the load, or fewer, as after one."""
    some = counts(begun=60, finished=finished, ended=60, tokens=9_000)
    half = replace(some, computed_prompt_tokens=500 * finished)

    found = lengths_of(half, FORMER)

    assert found is not None
    assert (found.prompt, found.computed) == (1000, 500)


@pytest.mark.parametrize("ended", [0, -3])
def test_the_former_lengths_apply_until_a_request_has_ended(ended: float) -> None:
    """Requests whose answers take minutes have all begun and none has ended."""
    some = replace(counts(begun=40, finished=0, ended=ended, tokens=9_000), computed_prompt_tokens=0)

    found = lengths_of(some, FORMER)

    assert found is not None
    assert (found.output, found.computed) == (300, 1000)
    assert lengths_of(some, None) is None


def test_prompts_that_were_all_transferred_from_elsewhere_cost_a_token() -> None:
    """This is the case in the decoding pods of a disaggregated engine."""
    transferred = replace(counts(begun=60, finished=60, ended=60, tokens=12_000), computed_prompt_tokens=0.0)

    found = lengths_of(transferred, FORMER)

    assert found is not None
    assert (found.prompt, found.computed) == (1000, 1)
