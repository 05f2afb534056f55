"""What engines count: tokens per step, tokens found in caches, and requests that begin and end."""

from __future__ import annotations

import pytest
from support.engine_expositions import SGLANG, VLLM, without

from controller.engines.readings import Totals, parse_exposition, reading_of


def counted(text: str) -> Totals:
    """Return the counters in an exposition."""
    (part,) = reading_of(parse_exposition(text), time_seconds=5.0).parts.values()
    return part.totals


def test_a_step_of_vllm_that_yields_several_tokens_counts_with_all_of_them() -> None:
    """With speculative decoding, the time between two tokens is that of a step divided by its tokens."""
    line = 'vllm:generation_tokens_total{engine="0",model_name="m"}'
    speculative = VLLM.replace(f"{line} 900.0", f"{line} 2680.0")

    totals = counted(speculative)

    assert totals.inter_tokens == (2680 - 10) + (700 - 8)
    assert totals.inter_token_seconds == 16


@pytest.mark.parametrize(
    ("text", "want"),
    [
        pytest.param(VLLM, (7100, 6000), id="vLLM: of finished requests, without those that were aborted"),
        pytest.param(without(VLLM, "vllm:request_prefill"), (None, None), id="vLLM before 0.13"),
        pytest.param(SGLANG, (8000, 6500), id="SGLang"),
        pytest.param(without(SGLANG, "sglang:cached"), (None, None), id="SGLang before the first hit"),
    ],
)
def test_prompt_tokens_found_in_a_cache_are_not_computed(
    text: str, want: tuple[float | None, float | None]
) -> None:
    """If an engine does not report them, all tokens count as computed."""
    totals = counted(text)

    assert (totals.examined_prompt_tokens, totals.computed_prompt_tokens) == want


@pytest.mark.parametrize(
    ("text", "want"),
    [
        pytest.param(VLLM, (18, 18 - 2), id="vLLM: 18 got a first token, 2 are running"),
        pytest.param(
            without(VLLM, 'vllm:request_success_total{engine="1"')
            + 'vllm:request_success_total{engine="1",model_name="m",finished_reason="stop"} 0.0\n',
            (18, 18 - 2),
            id="vLLM does not count aborted requests as finished",
        ),
        pytest.param(SGLANG, (16, 16), id="SGLang counts the tokens of finished requests"),
    ],
)
def test_requests_begin_and_end_when_their_tokens_are_counted(text: str, want: tuple[float, float]) -> None:
    """Mean lengths are tokens divided by these numbers."""
    totals = counted(text)

    assert (totals.begun, totals.ended) == want
