"""Mean lengths of requests from the counters of engines."""

from __future__ import annotations

from dataclasses import replace

import pytest

from controller.sizing.lengths import Lengths, lengths_of
from controller.sizing.records import LengthCounts

FORMER = Lengths(prompt=500, computed=500, output=300)


def counts(*, begun: float, ended: float, tokens: float) -> LengthCounts:
    """Return counts of requests with prompts of 1000 tokens, and of the tokens that they generated."""
    return LengthCounts(
        begun=begun,
        prompt_tokens=1000 * begun,
        computed_prompt_tokens=1000 * begun,
        generation_tokens=tokens,
        ended=ended,
    )


def test_at_a_steady_load_the_mean_answer_is_tokens_per_request() -> None:
    """As many requests begin as end."""
    found = lengths_of(counts(begun=60, ended=60, tokens=12_000), FORMER)

    assert found is not None
    assert found.output == pytest.approx(200)


@pytest.mark.parametrize(
    ("begun", "ended"),
    [
        pytest.param(240, 30, id="a load that has just begun"),
        pytest.param(30, 240, id="a load that has just ended"),
    ],
)
def test_while_the_load_changes_the_mean_answer_is_between_what_both_ends_suggest(
    begun: float, ended: float
) -> None:
    """Tokens are also those of requests that have not ended, or that began earlier."""
    found = lengths_of(counts(begun=begun, ended=ended, tokens=480_000), FORMER)

    assert found is not None
    assert 480_000 / 240 < found.output < 480_000 / 30


@pytest.mark.parametrize(("begun", "ended"), [(40, 0), (0, 40), (40, -3)])
def test_the_former_mean_answer_applies_until_requests_have_begun_and_ended(
    begun: float, ended: float
) -> None:
    """Requests whose answers take minutes have all begun and none has ended."""
    found = lengths_of(counts(begun=begun, ended=ended, tokens=9_000), FORMER)

    assert found is not None
    assert found.output == 300
    assert lengths_of(counts(begun=begun, ended=ended, tokens=9_000), None) is None


def test_prompts_that_were_all_transferred_from_elsewhere_cost_a_token() -> None:
    """This is the case in the decoding pods of a disaggregated engine."""
    transferred = replace(counts(begun=60, ended=60, tokens=12_000), computed_prompt_tokens=0.0)

    found = lengths_of(transferred, FORMER)

    assert found is not None
    assert (found.prompt, found.computed) == (1000, 1)
