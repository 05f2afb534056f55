"""The least work of requests on each variant: engine-seconds that no scheduling can avoid.

An iteration with n decoding sequences takes alpha + beta x n. A request with o output tokens takes part in
(o - 1) / a iterations, where a are the tokens per step. So its work is at least delta per computed prompt
token, beta per iteration, and its share of the alphas. At most n sequences share one, where n is limited by
the batch, by the KV cache, and by the ITL target: if the mean time of a token of each request is at most T,
the number of sequences in an iteration, averaged over all sequences, is at most (a x T - alpha) / beta, even
if no prompt ever delays a decoding sequence.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from controller.closedloop.scenario import Model, VariantSetup
    from controller.simulation.profile import EngineProfile
    from controller.simulation.request import Request
    from controller.sizing.records import Targets


@dataclass(frozen=True, kw_only=True, slots=True)
class WorkModel:
    """The least work of a request on one variant, in engine-seconds; infinite if it cannot be in time."""

    profile: EngineProfile
    targets: Targets
    share_per_sequence: float
    """Least share of an alpha for each sequence in an iteration."""

    share_per_token: float
    """Least share of an alpha for each token of a sequence in the KV cache."""

    def seconds(self, request: Request) -> float:
        """Return the work of a request."""
        profile, targets = self.profile, self.targets
        found = profile.found_tokens(request.request_id, prompt_tokens=request.prompt_tokens)
        computed = request.prompt_tokens - found
        prefill_ms = (profile.delta_ms + profile.gamma_ms / profile.max_num_batched_tokens) * computed
        if targets.ttft_seconds is not None and prefill_ms / 1000 > targets.ttft_seconds:
            return math.inf
        further = request.output_tokens - 1
        if not further:
            return prefill_ms / 1000
        if targets.itl_seconds is not None:
            most_ms = targets.itl_seconds * 1000 * profile.accepted_tokens_per_step
            if profile.alpha_ms + profile.beta_ms > most_ms:
                return math.inf
        cached = _cached_tokens(request)
        alphas = self.share_per_sequence + self.share_per_token * cached
        step_ms = profile.alpha_ms * alphas + profile.beta_ms + profile.context_us_per_token * cached / 1000
        return (prefill_ms + step_ms * further / profile.accepted_tokens_per_step) / 1000


def work_model(variant: VariantSetup, model: Model, requests: Sequence[Request]) -> WorkModel:
    """Return the work model of a variant.

    Sequences share an iteration by their number or by their tokens in the cache. Either is a bound for all
    requests together, and the greater one is used.
    """
    profile, targets = variant.profile, model.targets
    sequences = float(profile.max_num_seqs)
    if targets.itl_seconds is not None and profile.beta_ms:
        spare_ms = targets.itl_seconds * 1000 * profile.accepted_tokens_per_step - profile.alpha_ms
        sequences = max(1.0, min(sequences, spare_ms / profile.beta_ms))
    by_number = sum(request.output_tokens - 1 for request in requests) / sequences
    by_tokens = sum((request.output_tokens - 1) * _cached_tokens(request) for request in requests)
    is_cache_bound = by_tokens / profile.kv_tokens > by_number
    return WorkModel(
        profile=profile,
        targets=targets,
        share_per_sequence=0.0 if is_cache_bound else 1 / sequences,
        share_per_token=1 / profile.kv_tokens if is_cache_bound else 0.0,
    )


def _cached_tokens(request: Request) -> float:
    """Return the least mean number of tokens in the KV cache while a request decodes."""
    return request.prompt_tokens + (request.output_tokens - 1) / 2
