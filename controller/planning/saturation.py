"""How full one engine is, and how much it can hold. The unit is the token of KV cache throughout.

The model is that of the token-based saturation analyzer of the llm-d workload variant autoscaler: an engine
is limited by memory (k1, the usable part of its KV cache) or by compute (k2, the tokens that it holds when
requests queue although memory is left), whichever is less.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from operator import attrgetter
from typing import TYPE_CHECKING

from controller.planning.decision import CapacitySource

if TYPE_CHECKING:
    from controller.planning.settings import Settings
    from controller.planning.snapshot import ReplicaSample, Variant

SHORT_OUTPUT_TOKENS = 100
LONG_OUTPUT_TOKENS = 500


@dataclass(frozen=True, kw_only=True, slots=True)
class Capacity:
    """What one replica can hold, in tokens of KV cache, and how we know."""

    tokens: int
    source: CapacitySource


def tokens_in_use(sample: ReplicaSample) -> float:
    """Return the tokens of KV cache that the engine's running requests hold."""
    return sample.kv_usage * sample.kv_tokens


def is_full(sample: ReplicaSample, settings: Settings) -> bool:
    """Tell whether the engine works as much as it can: requests queue while others run."""
    return sample.waiting >= max(settings.queue_length_threshold, 1) and sample.kv_usage > 0


def output_length(avg_output_tokens: float) -> str:
    """Return the class of output length under which a full engine's capacity is remembered."""
    if avg_output_tokens < SHORT_OUTPUT_TOKENS:
        return "short"
    return "medium" if avg_output_tokens < LONG_OUTPUT_TOKENS else "long"


def memory_capacity(sample: ReplicaSample, settings: Settings) -> int:
    """Return k1: the usable part of the KV cache."""
    return round_down(sample.kv_tokens * settings.kv_cache_threshold)


def derived_capacity(
    variant: Variant, *, avg_input_tokens: float | None, avg_output_tokens: float | None
) -> int | None:
    """Return k2 from the batch limits: N requests, each holding its prompt and on average half its output.

    N is what a step's token budget carries when prompts and outputs share it in their proportion, at most
    `max_num_seqs`. None when the lengths are not known or leave no request.
    """
    if avg_input_tokens is None or not avg_output_tokens:
        return None
    budget = variant.max_num_batched_tokens * avg_output_tokens / (avg_input_tokens + avg_output_tokens)
    requests = min(round_down(budget), variant.max_num_seqs)
    return round_down(requests * (avg_input_tokens + avg_output_tokens / 2)) or None


def replica_capacity(
    variant: Variant, sample: ReplicaSample, *, window: tuple[int, ...], observed: bool, settings: Settings
) -> Capacity:
    """Return min(k1, k2) of one engine; k2 is observed, else historical, else derived, else k1.

    `window` holds what full engines of this kind held of late, this one included if `observed`. Its largest
    entry counts: an engine that is still filling up shows less than it can hold, never more.
    """
    memory = Capacity(tokens=memory_capacity(sample, settings), source=CapacitySource.MEMORY)
    if window:
        source = CapacitySource.OBSERVED if observed else CapacitySource.HISTORICAL
        compute = Capacity(tokens=max(window), source=source)
    else:
        derived = derived_capacity(
            variant, avg_input_tokens=sample.avg_input_tokens, avg_output_tokens=sample.avg_output_tokens
        )
        if derived is None:
            return memory
        compute = Capacity(tokens=derived, source=CapacitySource.DERIVED)
    return compute if compute.tokens < memory.tokens else memory


def median_capacity(capacities: list[Capacity]) -> Capacity:
    """Return what a typical replica can hold: the median, so that one odd engine does not speak for all.

    Of an even number, the mean of the middle two, rounded down. Raises IndexError without any.
    """
    ranked = sorted(capacities, key=attrgetter("tokens"))
    low, high = ranked[(len(ranked) - 1) // 2], ranked[len(ranked) // 2]
    if low is high:
        return low
    return Capacity(tokens=(low.tokens + high.tokens) // 2, source=low.source)


def round_up(tokens: float) -> int:
    """Return the whole tokens that cover a demand; a millionth is noise of binary fractions."""
    return math.ceil(round(tokens, 6))


def round_down(tokens: float) -> int:
    """Return the whole tokens that a capacity surely has; a millionth is noise of binary fractions."""
    return math.floor(round(tokens, 6))
