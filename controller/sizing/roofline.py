"""Estimate the step times and the KV cache of an engine from its model and its accelerators: a roofline.

A step reads the weights that its sequences use, and the cached values of each sequence; it takes as long as
the memory or the arithmetic needs, whichever is slower (Williams, Waterman and Patterson, Roofline, 2009).
Prompts are limited by arithmetic. The shares of the peak that engines reach, and the times around it, are
constants here, for which the published measurements in `docs/profiles.md` are met within a factor of two. An
estimate is therefore a beginning, and never a measurement.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

from controller.sizing.catalog import Accelerator, ModelShape
from controller.sizing.records import Estimate, StepParameters

ACCURACY: Final = "can be off by a factor of two"
"""How far estimates can be trusted, for messages."""

_BANDWIDTH_SHARE: Final = 0.8
"""Share of the memory bandwidth that a step reaches."""

_ARITHMETIC_SHARE: Final = 0.5
"""Share of the 16-bit arithmetic that prompts reach."""

_SHARE_OF_8BIT: Final = 0.4
_SHARE_OF_EXPERTS: Final = 0.5
"""Factor on the arithmetic for models of many experts, whose matrices are small."""

_STEP_MS: Final = 1.0
"""Time of a step beside its reads: scheduling, sampling, launches."""

_EXPERT_LAYER_MS: Final = 0.03
"""Time of a layer with experts beside its reads."""

_SEQUENCE_MS: Final = 0.015
"""Time for one more sequence beside its reads."""

_HOPS: Final = 2
"""Exchanges of each layer between accelerators that share it."""

_CONTEXT_TOKENS: Final = 1000.0
"""Mean length of a sequence whose cached values are read."""

_BATCHES: Final = (1.0, 64.0)
"""Sequences between which a line stands for the step time."""

_RESERVED_GIB: Final = 1.5
"""Memory of each accelerator for anything but weights and cache: activations, graphs, the runtime."""

_GIB: Final = float(1 << 30)
_MOST_CACHED: Final = 10**9


@dataclass(frozen=True, kw_only=True, slots=True)
class EngineSetup:
    """How an engine runs its model."""

    tensor_parallel: int = 1
    """Accelerators that share each layer."""

    pipeline_parallel: int = 1
    """Groups of accelerators that have different layers."""

    weight_bits: float = 16.0
    computes_8bit: bool = False
    """Whether it computes with 8 bits where the accelerator can."""

    cache_bits: float = 16.0
    memory_share: float = 0.9
    """Share of the accelerators' memory that the engine takes (`--gpu-memory-utilization`)."""


def estimate(model: ModelShape, accelerator: Accelerator, setup: EngineSetup, *, basis: str) -> Estimate:
    """Return the estimated step times, and tokens in the KV cache; 0 tokens if the weights do not fit.

    `basis` says what they follow from.
    """
    roof = _Roof(model, accelerator, setup)
    few, many = _BATCHES
    beta_ms = (roof.step_ms(many) - roof.step_ms(few)) / (many - few)
    return Estimate(
        parameters=StepParameters(
            alpha_ms=roof.step_ms(few) - few * beta_ms, beta_ms=beta_ms, delta_ms=roof.token_ms
        ),
        kv_tokens=roof.kv_tokens,
        basis=basis,
    )


@dataclass(frozen=True, slots=True)
class _Roof:
    model: ModelShape
    accelerator: Accelerator
    setup: EngineSetup

    def step_ms(self, sequences: float) -> float:
        """Return the time of a step without prompts."""
        model, setup = self.model, self.setup
        weights_gb = self._read_parameters(sequences) * setup.weight_bits / 8
        # Only accelerators that share each layer shorten a step: groups of a pipeline work in turn.
        reads_ms = weights_gb / (self._bandwidth * setup.tensor_parallel)
        cached_gb = _CONTEXT_TOKENS * self._cached_bytes / 1e9
        hops = _HOPS * model.layers if setup.tensor_parallel > 1 else 0
        return (
            _STEP_MS
            + hops * self.accelerator.hop_us / 1e3
            + (_EXPERT_LAYER_MS * model.layers if model.experts[0] else 0.0)
            + max(reads_ms, sequences * self.token_ms)
            + sequences * (_SEQUENCE_MS + cached_gb / self._bandwidth)
        )

    @property
    def token_ms(self) -> float:
        """The time that the arithmetic for one token takes."""
        peak = self.accelerator.arithmetic * _ARITHMETIC_SHARE
        if self.setup.computes_8bit and self.accelerator.arithmetic_8bit:
            peak = self.accelerator.arithmetic_8bit * _SHARE_OF_8BIT
        if self.model.experts[0]:
            peak *= _SHARE_OF_EXPERTS
        # A token takes a multiplication and an addition per parameter; billions by TFLOPS are milliseconds.
        return 2 * (self.model.active or self.model.parameters) / (peak * self.setup.tensor_parallel)

    @property
    def kv_tokens(self) -> int:
        """Tokens that fit beside the weights, on all accelerators together."""
        setup = self.setup
        accelerators = setup.tensor_parallel * setup.pipeline_parallel
        weights_gib = self.model.parameters * 1e9 * setup.weight_bits / 8 / _GIB / accelerators
        free_gib = self.accelerator.memory_gib * setup.memory_share - weights_gib - _RESERVED_GIB
        # Of a pipeline, each accelerator caches only its own layers, and so more tokens.
        tokens = free_gib * _GIB * setup.pipeline_parallel / self._cached_bytes
        return min(_MOST_CACHED, max(0, int(tokens)))

    @property
    def _bandwidth(self) -> float:
        """The bandwidth of one accelerator in GB/ms, which is TB/s."""
        return self.accelerator.bandwidth * _BANDWIDTH_SHARE

    @property
    def _cached_bytes(self) -> float:
        """Bytes that one accelerator caches for one token, if it has all layers."""
        return self.model.cached_values(self.setup.tensor_parallel) * self.setup.cache_bits / 8

    def _read_parameters(self, sequences: float) -> float:
        """Return the parameters that a step uses, in billions: sequences use different experts."""
        model, (experts, used) = self.model, self.model.experts
        if not experts or not model.active:
            return model.parameters
        # `active = others + share * of_experts` and `parameters = others + of_experts` give the size of the
        # experts. With experts chosen independently, n sequences leave `(1 - share)^n` of them unread.
        share = used / experts
        of_experts = (model.parameters - model.active) / (1 - share)
        return model.parameters - of_experts * math.pow(1 - share, sequences)
