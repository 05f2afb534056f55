"""The profile of engines: from the cluster, Prometheus, a URL or saved pages, and as YAML with comments."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final

import aiohttp

from apiserver.cluster.client import Cluster
from apiserver.schema.json import Json, as_object
from controller.commands.check.documents import Source
from controller.commands.check.yaml_values import as_yaml
from controller.commands.explain.evidence import OWNERS, claimant_named
from controller.commands.plan.terminal import harmless
from controller.engines.exposition import UnreadableMetricsError
from controller.engines.fitting import COUNTED, EngineMeasurement, measure, readings_over_time, selector
from controller.engines.metrics import no_engine
from controller.engines.prometheus_history import PrometheusHistory
from controller.engines.readings import Reading, parse_exposition, reading_of
from controller.engines.requests import CredentialsConfig, cause_of, read_bounded
from controller.observe.claim import OwnerKind
from controller.observe.performance import learned_of
from controller.sizing.lengths import Lengths
from controller.sizing.records import MAX_NUM_SEQS, StepParameters

_OK: Final = 200
_PAGE_BYTES: Final = 16 << 20
_PAGE_SECONDS: Final = 10.0
_MOST_PODS: Final = 12
"""Pods of Prometheus from which step times are learned: the busiest ones."""

_NOT_LEARNED: Final = (
    "the published decision has no step times: the controller has not seen the engines under load yet;"
    " see the condition MetricsAvailable, or use --prometheus or --url"
)
_MOST_RAW_SECONDS: Final = 6 * 3600.0
"""Time over which single scrapes are read."""


@dataclass(frozen=True, kw_only=True, slots=True)
class ProfileFindings:
    """What is known about the engines of one variant."""

    origin: str
    """Where it was read, and from how much, in words."""

    parameters: StepParameters | None
    max_batch_size: int | None = None
    """None if it is unknown."""

    kv_tokens: int | None = None
    start_seconds: float | None = None
    lengths: Lengths | None = None
    doubts: tuple[str, ...] = ()


async def learned_by_controller(
    cluster: Cluster, kind: OwnerKind, *, namespace: str, name: str, max_batch_size: int | None = None
) -> ProfileFindings:
    """Return what the controller learned, as it published it about the variant of an object.

    Raises NoSuchObjectError, and ClusterError.
    """
    unread: list[str] = []
    claimant = await claimant_named(cluster, OWNERS[kind], name, namespace, unread)
    published = as_object(as_object(claimant.status.get("decision")).get("performance"))
    learned, start = learned_of(published), published.get("startSeconds")
    declared = as_object(as_object(claimant.value.get("spec")).get("variantProfile")).get("maxBatchSize")
    batch = max_batch_size or (declared if isinstance(declared, int) else None)
    label = f"{kind} {namespace}/{name}"
    if learned is None:
        return ProfileFindings(
            origin=f"{label}: nothing learned",
            parameters=None,
            doubts=(*unread, _NOT_LEARNED),
        )
    return ProfileFindings(
        origin=f"{label}: learned by the controller from {learned.samples:.0f} intervals of its engines",
        parameters=learned.parameters,
        max_batch_size=batch,
        kv_tokens=learned.kv_tokens,
        start_seconds=float(start) if isinstance(start, int | float) and start > 0 else None,
    )


async def measure_by_prometheus(
    url: str,
    *,
    credentials: CredentialsConfig,
    namespace: str,
    pods: str,
    last_seconds: float,
) -> EngineMeasurement:
    """Return what engines showed in the last time. Raises UnreadableMetricsError."""
    async with PrometheusHistory(url, credentials=credentials) as history:
        return await measure_pods(
            history, namespace=namespace, pods=pods, end_seconds=time.time(), last_seconds=last_seconds
        )


async def measure_pods(
    history: PrometheusHistory,
    *,
    namespace: str,
    pods: str,
    end_seconds: float,
    last_seconds: float,
) -> EngineMeasurement:
    """Return what some pods with equal engines showed: the busiest of them. Raises UnreadableMetricsError."""
    last_seconds = min(last_seconds, _MOST_RAW_SECONDS)
    generated = selector(_GENERATED, namespace=namespace, pods=pods)
    busiest = await history.at(
        f"topk({_MOST_PODS}, sum by (namespace, pod) (increase({generated}[{last_seconds:.0f}s])))",
        seconds=end_seconds,
    )
    names = sorted({item.labels.get("pod", "") for item in busiest} - {""})
    if not names:
        return EngineMeasurement(doubts=(_no_series(namespace, pods),))
    chosen = "|".join(name.replace(".", r"\.") for name in names)
    courses = await history.samples(
        selector(COUNTED, namespace=namespace, pods=chosen),
        end_seconds=end_seconds,
        last_seconds=last_seconds,
    )
    readings, problems = await asyncio.to_thread(readings_over_time, courses)
    known = await asyncio.to_thread(measure, readings)
    return known if readings else EngineMeasurement(doubts=problems or known.doubts)


_GENERATED: Final = tuple(name for name in COUNTED if name.endswith(":generation_tokens_total"))


def _no_series(namespace: str, pods: str) -> str:
    where = f" of namespace {namespace}" if namespace else ""
    which = f" that match {pods}" if pods else ""
    return (
        f"Prometheus has no series of vLLM or SGLang of pods{where}{which} in that time; series must have the"
        " labels namespace and pod"
    )


async def read_pages(url: str, *, interval_seconds: float, watch_seconds: float) -> list[Reading]:
    """Return readings of an engine's page over some time. Raises UnreadableMetricsError."""
    readings: list[Reading] = []
    timeout = aiohttp.ClientTimeout(total=_PAGE_SECONDS)
    end_seconds = time.monotonic() + watch_seconds
    async with aiohttp.ClientSession(timeout=timeout, trust_env=False) as session:
        while True:
            readings.append(reading_of_page(await _page(session, url), time_seconds=time.monotonic()))
            if time.monotonic() + interval_seconds > end_seconds:
                return readings
            await asyncio.sleep(interval_seconds)


async def _page(session: aiohttp.ClientSession, url: str) -> bytes:
    try:
        async with session.get(url, allow_redirects=False) as response:
            if response.status != _OK:
                raise UnreadableMetricsError(f"{url}: HTTP {response.status}")
            return await read_bounded(response, _PAGE_BYTES)
    except (aiohttp.ClientError, TimeoutError, OSError) as error:
        raise UnreadableMetricsError(f"{url}: {cause_of(error)}") from error


def reading_of_page(content: bytes, *, time_seconds: float) -> Reading:
    """Return the reading of a page. Raises UnreadableMetricsError."""
    text = content.decode(errors="replace")
    series = parse_exposition(text)
    if not series:
        raise UnreadableMetricsError(no_engine(text))
    # The pages are in order, whatever timestamps their samples have.
    return reading_of([replace(item, time_seconds=None) for item in series], time_seconds=time_seconds)


def readings_of_files(
    sources: Sequence[Source], *, interval_seconds: float
) -> tuple[list[Reading], list[str]]:
    """Return the readings of saved pages in order, and the problems of the others."""
    readings: list[Reading] = []
    problems: list[str] = []
    for number, source in enumerate(sources):
        try:
            if source.problem:
                raise UnreadableMetricsError(source.problem)  # noqa: TRY301 (one handler for all problems)
            readings.append(reading_of_page(source.data, time_seconds=number * interval_seconds))
        except UnreadableMetricsError as error:
            problems.append(f"{source.name}: {error}")
    return readings, problems


def document(profile: ProfileFindings) -> Json:
    """Return it as JSON, with `spec` only if step times are known."""
    lengths = profile.lengths
    return {
        "origin": profile.origin,
        **({"spec": _spec(profile.parameters, profile.max_batch_size)} if profile.parameters else {}),
        "kvCacheTokens": profile.kv_tokens,
        "startSeconds": profile.start_seconds,
        "promptTokens": round(lengths.prompt, 1) if lengths else None,
        "computedPromptTokens": round(lengths.computed, 1) if lengths else None,
        "answerTokens": round(lengths.output, 1) if lengths else None,
        "unknown": list(profile.doubts),
    }


def yaml_text(profile: ProfileFindings) -> str:
    """Return it as YAML with comments."""
    comments = "".join(f"# {harmless(line)}\n" for line in _comments(profile))
    if profile.parameters is None:
        return comments
    return comments + as_yaml({"spec": _spec(profile.parameters, profile.max_batch_size)})


def _spec(known: StepParameters, max_batch_size: int | None) -> Json:
    parameters = {
        "decodeParms": {"alpha": _decimal(known.alpha_ms), "beta": _decimal(known.beta_ms)},
        "prefillParms": {"gamma": _decimal(known.gamma_ms), "delta": _decimal(known.delta_ms)},
    }
    return {"variantProfile": {"maxBatchSize": max_batch_size or MAX_NUM_SEQS, "perfParms": parameters}}


def _decimal(number: float) -> str:
    """Return a number with four digits and without an exponent."""
    text = f"{number:.12f}" if abs(number) < 1 else f"{number:.4g}"
    if abs(number) < 1 and number:
        digits = len(text) - len(text.lstrip("0.")) - 2
        text = f"{number:.{max(0, digits) + 4}f}".rstrip("0").rstrip(".")
    elif not number:
        text = "0"
    return text if "e" not in text else f"{number:.0f}"


def _comments(profile: ProfileFindings) -> Iterator[str]:
    yield profile.origin
    if profile.parameters:
        yield "a step takes alpha + beta x sequences + delta x prompt tokens, in ms"
        if profile.max_batch_size is None:
            yield "maxBatchSize is vLLM's default: replace it by the engine's --max-num-seqs, if that differs"
    if profile.kv_tokens:
        yield f"KV cache of an engine: {profile.kv_tokens} tokens"
    if profile.start_seconds:
        yield f"start-up of a replica: {profile.start_seconds:.0f} s"
    if profile.lengths:
        prompt, computed, output = profile.lengths.prompt, profile.lengths.computed, profile.lengths.output
        hits = f", {1 - computed / prompt:.0%} of it found in the prefix cache" if computed < prompt else ""
        yield f"mean request: a prompt of {prompt:.0f} tokens{hits}, and an answer of {output:.0f}"
    for doubt in profile.doubts:
        yield f"not known: {doubt}"
