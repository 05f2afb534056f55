"""The engine and the start-up time of an exported variant, each from the best source that knows it."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final

from apiserver.schema.json import Json
from controller.commands.simulate.history import Past, PastVariant
from controller.engines.fitting import EngineMeasurement
from controller.observe.claim import Claim
from controller.observe.expected_performance import engine_argument, expected_performance
from controller.observe.performance import start_seconds_of
from controller.observe.targets import ScaleTarget, role_of
from controller.simulation.profile import MAX_NUM_BATCHED_TOKENS, EngineProfile
from controller.simulation.workload import Workload
from controller.sizing.performance import usual_start_seconds
from controller.sizing.records import MAX_NUM_SEQS, Estimate, StepParameters
from controller.sizing.roofline import ACCURACY
from controller.sizing.step_time import ENOUGH_SAMPLES

_START_UP_SECONDS: Final = 120.0
_BLOCK_SIZE: Final = 16
_MOST_HITS: Final = 0.99


PastReader = Callable[[Sequence[PastVariant]], Past]


class Origin(StrEnum):
    """Where a number about an engine is from, best first."""

    STATED = "command line"
    MEASURED = "Prometheus"
    LEARNED = "status"
    DECLARED = "spec.variantProfile"
    ARGUMENTS = "arguments"
    PODS = "pods"
    CATALOG = "catalog"
    ASSUMED = "assumed"


@dataclass(frozen=True, kw_only=True, slots=True)
class EngineOrigins:
    """Where the numbers about the engine of one variant are from."""

    variant: str
    step_times: Origin
    kv_tokens: Origin
    start_up: Origin
    basis: str = ""
    """What an estimate of the catalog follows from; empty without one."""


@dataclass(frozen=True, kw_only=True, slots=True)
class ScenarioData:
    """Data that no object contains: requests by model, and by variant the start-up time, profile and cache.

    Requests under the empty name are those of the only model.
    """

    workloads: Mapping[str, Workload]
    start_up_seconds: Mapping[str, float] = field(default_factory=dict)
    profiles: Mapping[str, StepParameters] = field(default_factory=dict)
    kv_tokens: Mapping[str, int] = field(default_factory=dict)
    measured: Mapping[str, EngineMeasurement] = field(default_factory=dict)
    """What Prometheus shows about the engines of variants."""

    reads_past: PastReader | None = None
    """Reads both loads and measurements of the variants, which are only known when the objects are read."""


@dataclass(frozen=True, kw_only=True, slots=True)
class ChosenEngine:
    """The engine of a variant; without a profile there are problems."""

    profile: EngineProfile | None
    start_up_seconds: float = _START_UP_SECONDS
    origins: EngineOrigins | None = None
    warnings: tuple[str, ...] = ()
    problems: tuple[str, ...] = ()


def choose_engine(
    claim: Claim, spec: Json, target: ScaleTarget, pods: Sequence[Json], supplied: ScenarioData
) -> ChosenEngine:
    """Return the engine of a variant; `spec` is that of its VariantAutoscaling, and empty without one."""
    name, estimate = claim.name, expected_performance(claim, target)
    steps = next(_step_times(claim, spec, supplied, estimate), None)
    tokens = next(_kv_tokens(claim, target, supplied, estimate), None)
    problems = [*_unknown(name, estimate, has_steps=steps is not None, has_tokens=tokens is not None)]
    if steps is None or tokens is None:
        return ChosenEngine(profile=None, problems=tuple(problems))
    (parameters, steps_from), (kv_tokens, tokens_from) = steps, tokens
    start_seconds, start_from = next(_start_up(claim, pods, supplied))
    basis = estimate.basis if estimate and Origin.CATALOG in (steps_from, tokens_from) else ""
    origins = EngineOrigins(
        variant=name, step_times=steps_from, kv_tokens=tokens_from, start_up=start_from, basis=basis
    )
    try:
        profile = _profile(claim, spec, target, parameters, kv_tokens, measured=supplied.measured.get(name))
    except ValueError as error:
        return ChosenEngine(profile=None, problems=(f"{name}: {error}",))
    return ChosenEngine(
        profile=profile,
        start_up_seconds=start_seconds,
        origins=origins,
        warnings=tuple(_warnings(origins, start_seconds)),
    )


def _profile(
    claim: Claim,
    spec: Json,
    target: ScaleTarget,
    parameters: StepParameters,
    kv_tokens: int,
    *,
    measured: EngineMeasurement | None,
) -> EngineProfile:
    """Return the profile of an engine. Raises ValueError."""
    engine, role, hits = target.engine_spec, role_of(target), 0.0
    if measured and measured.lengths and not role:
        hit_share = 1 - measured.lengths.computed / measured.lengths.prompt
        hits = min(_MOST_HITS, max(0.0, hit_share))
    declared = (spec.get("variantProfile") or {}).get("maxBatchSize")
    batch = engine_argument(engine, "max-num-seqs") or declared or MAX_NUM_SEQS
    budget = engine_argument(engine, "max-num-batched-tokens") or MAX_NUM_BATCHED_TOKENS
    size = engine_argument(engine, "block-size") or _BLOCK_SIZE
    return EngineProfile(
        model_id=claim.model_id,
        alpha_ms=parameters.alpha_ms,
        beta_ms=parameters.beta_ms,
        gamma_ms=parameters.gamma_ms,
        delta_ms=parameters.delta_ms,
        num_gpu_blocks=kv_tokens // size,
        block_size=size,
        max_num_seqs=batch,
        max_num_batched_tokens=max(budget, batch),
        ranks=engine_argument(engine, "data-parallel-size") or 1,
        role=role,
        prefix_hit_share=hits,
    )


def _step_times(
    claim: Claim, spec: Json, supplied: ScenarioData, estimate: Estimate | None
) -> Iterator[tuple[StepParameters, Origin]]:
    """Yield the step times that are known, best first."""
    if stated := supplied.profiles.get(claim.name):
        yield stated, Origin.STATED
    measured = supplied.measured.get(claim.name)
    if measured and measured.parameters and measured.samples >= ENOUGH_SAMPLES:
        yield measured.parameters, Origin.MEASURED
    if claim.learned:
        yield claim.learned.parameters, Origin.LEARNED
    if declared := _declared_profile(spec):
        yield declared, Origin.DECLARED
    if measured and measured.parameters:  # few samples are better than none
        yield measured.parameters, Origin.MEASURED
    if estimate and estimate.kv_tokens:
        yield estimate.parameters, Origin.CATALOG


def _kv_tokens(
    claim: Claim, target: ScaleTarget, supplied: ScenarioData, estimate: Estimate | None
) -> Iterator[tuple[int, Origin]]:
    """Yield the sizes of the KV cache of one engine that are known, best first."""
    if stated := supplied.kv_tokens.get(claim.name):
        yield stated, Origin.STATED
    if blocks := engine_argument(target.engine_spec, "num-gpu-blocks-override"):
        size = engine_argument(target.engine_spec, "block-size") or _BLOCK_SIZE
        yield blocks * size, Origin.ARGUMENTS
    measured = supplied.measured.get(claim.name)
    if measured and measured.kv_tokens:
        yield measured.kv_tokens, Origin.MEASURED
    if claim.learned and claim.learned.kv_tokens:
        ranks = engine_argument(target.engine_spec, "data-parallel-size") or 1
        yield max(1, claim.learned.kv_tokens // ranks), Origin.LEARNED
    if estimate and estimate.kv_tokens:
        yield estimate.kv_tokens, Origin.CATALOG


def _start_up(claim: Claim, pods: Sequence[Json], supplied: ScenarioData) -> Iterator[tuple[float, Origin]]:
    """Yield the start-up times of a replica that are known, best first."""
    if claim.name in supplied.start_up_seconds:
        yield supplied.start_up_seconds[claim.name], Origin.STATED
    seen = [seconds for pod in pods if (seconds := start_seconds_of(pod)) is not None]
    if (usual := usual_start_seconds(seen)) is not None:
        yield usual, Origin.PODS
    if claim.known_start_seconds:
        yield claim.known_start_seconds, Origin.LEARNED
    yield _START_UP_SECONDS, Origin.ASSUMED


def _unknown(name: str, estimate: Estimate | None, *, has_steps: bool, has_tokens: bool) -> Iterator[str]:
    why = "the catalog does not know its model and accelerator"
    if estimate and not estimate.kv_tokens:
        why = f"the weights of {estimate.basis} do not fit into its memory"
    for is_known, what, option in (
        (has_steps, "the performance of its engine", f"--profile {name}=ALPHA,BETA,DELTA"),
        (has_tokens, "the size of its KV cache", f"--kv-tokens {name}=TOKENS"),
    ):
        if not is_known:
            yield f"{name}: {what} is unknown, and {why}: use --prometheus URL, or {option}"


def _warnings(origins: EngineOrigins, start_seconds: float) -> Iterator[str]:
    name = origins.variant
    of_catalog = {"step times": origins.step_times, "KV cache": origins.kv_tokens}
    what = " and ".join(text for text, origin in of_catalog.items() if origin is Origin.CATALOG)
    if what:
        option = "--profile" if origins.step_times is Origin.CATALOG else "--kv-tokens"
        yield (
            f"{name}: {what} are estimated for {origins.basis}, which {ACCURACY}: use --prometheus URL, or"
            f" {option} {name}=..."
        )
    if origins.start_up is Origin.ASSUMED:
        yield (
            f"{name}: the start-up time of a replica is unknown; {start_seconds:g} s are assumed; export"
            f" pods, or use --start-up {name}=SECONDS"
        )


def _declared_profile(spec: Json) -> StepParameters | None:
    """Return the profile in the spec of a VariantAutoscaling; None if it is missing or invalid."""
    parameters = (spec.get("variantProfile") or {}).get("perfParms") or {}
    decode, prefill = parameters.get("decodeParms") or {}, parameters.get("prefillParms") or {}
    try:
        return profile_of(decode["alpha"], decode["beta"], prefill["delta"], prefill.get("gamma", "0"))
    except (KeyError, ValueError):
        return None


def profile_of(alpha: str, beta: str, delta: str, gamma: str = "0") -> StepParameters:
    """Return a profile from decimal numbers as text. Raises ValueError."""
    numbers = [float(text) for text in (alpha, beta, delta, gamma)]
    if not all(math.isfinite(number) and number >= 0 for number in numbers) or not numbers[0]:
        raise ValueError("must be finite numbers of ms, alpha greater than 0 and none below 0")
    return StepParameters(alpha_ms=numbers[0], beta_ms=numbers[1], delta_ms=numbers[2], gamma_ms=numbers[3])
