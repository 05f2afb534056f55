"""The rules of HorizontalPodAutoscalers and ScaledObjects, as far as simulated engines have their metrics.

A rule reads one gauge of the engines: through the metric of an HPA, whose name may be that of an adapter, or
through a query of a ScaledObject. Queries are not evaluated by a Prometheus: sums of aggregated gauges are
understood, with matchers by namespace, pod and model.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final, Literal, NamedTuple

import re2

from apiserver.kinds.autoscalers import DECISION_METRICS, KEDA_MOST_REPLICAS
from apiserver.schema.json import Json, as_list, as_object
from apiserver.schema.quantities import amount
from controller.planning.wording import listing
from controller.simulation.autoscaler import Behaviour, behaviour_of

Gauge = Literal["waiting", "running", "kv_usage"]
Aggregation = Literal["sum", "avg", "max", "min"]
Comparison = Literal["=", "!=", "=~", "!~"]

_GAUGES: Final[Mapping[str, Gauge]] = {
    "num_requests_waiting": "waiting",
    "num_requests_running": "running",
    "gpu_cache_usage_perc": "kv_usage",
    "kv_cache_usage_perc": "kv_usage",
    "num_queue_reqs": "waiting",
    "num_running_reqs": "running",
    "token_usage": "kv_usage",
}
"""Gauges by the names that vLLM and SGLang give them, without prefix."""

SUPPORTED: Final = (
    "vllm:num_requests_waiting, vllm:num_requests_running, vllm:kv_cache_usage_perc,"
    " vllm:gpu_cache_usage_perc and those of SGLang"
)
_NO_METRIC: Final = "no metric"
_KNOWN_LABELS: Final = frozenset({"namespace", "pod", "model_name"})
_LONGEST_QUERY: Final = 4096
_MOST_TERMS: Final = 8

_NAME: Final = r"[a-zA-Z_:][a-zA-Z0-9_:]*"
_TERM: Final = re.compile(
    rf"(?:(?P<aggregation>sum|avg|max|min)\s*\(\s*)?(?P<name>{_NAME})\s*"
    r"(?:\{(?P<matchers>[^{}]*)\}\s*)?(?P<close>\))?\s*\Z"
)
_MATCHER: Final = re.compile(
    r'\s*(?P<label>[a-zA-Z_][a-zA-Z0-9_]*)\s*(?P<comparison>=~|!~|!=|=)\s*"(?P<value>(?:[^"\\]|\\.)*)"\s*(?:,|\Z)'
)
_PLUS: Final = re.compile(r"\+(?![^{]*\})")
"""Matches a plus sign that is not within braces."""

_OR_ZERO: Final = re.compile(r"\s+or\s+vector\(\s*0\s*\)\s*\Z")


class UnsupportedRuleError(ValueError):
    """A metric that simulated engines do not have; the message is a reason without its subject."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Matcher:
    """A condition on a label of a series."""

    label: str
    comparison: Comparison
    value: str

    def holds(self, labels: Mapping[str, str]) -> bool:
        """Return whether labels match; a label that is missing is empty."""
        own = labels.get(self.label, "")
        if self.comparison in ("=", "!="):
            return (own == self.value) == (self.comparison == "=")
        return bool(re2.fullmatch(self.value, own)) == (self.comparison == "=~")


@dataclass(frozen=True, kw_only=True, slots=True)
class Term:
    """A gauge of the pods whose labels match, aggregated."""

    gauge: Gauge
    aggregation: Aggregation = "sum"
    matchers: tuple[Matcher, ...] = ()
    is_own: bool = False
    """Whether only pods of the scaled variant count."""


@dataclass(frozen=True, kw_only=True, slots=True)
class ScalingMetric:
    """One metric of an autoscaler with its target."""

    shown: str
    terms: tuple[Term, ...]
    """The value is their sum."""

    target: float
    kind: Literal["pods", "average", "value"]
    """A mean over pods, a total per replica, or a value as a whole."""

    is_zero_without_series: bool = False


@dataclass(frozen=True, kw_only=True, slots=True)
class Scaler:
    """One autoscaler of a variant."""

    shown: str
    rules: tuple[ScalingMetric, ...]
    min_replicas: int
    max_replicas: int
    behaviour: Behaviour
    starts_from_zero: bool = False
    """Whether it scales up a target without replicas, as only KEDA does."""

    remarks: tuple[str, ...] = ()
    """What is simulated in another way, in sentences."""

    refused: tuple[Refusal, ...] = ()
    """Its metrics that are not simulated."""


class Refusal(NamedTuple):
    """A metric of an autoscaler that is not simulated."""

    place: str
    """The autoscaler and the number of its metric."""

    reason: str


def refusal_text(refusals: Iterable[Refusal]) -> str:
    """Return each reason once with its places, and once the metrics that are supported; or nothing."""
    places: dict[str, list[str]] = defaultdict(list)
    for item in refusals:
        places[item.reason].append(item.place)
    parts = [f"{reason} ({listing(names)})" for reason, names in places.items()]
    if any(_NO_METRIC in reason for reason in places):
        parts.append(f"only {SUPPORTED} are simulated")
    return "; ".join(parts)


def scaler_of(
    autoscaler: Json | None, scaled_object: Json | None
) -> tuple[Scaler | None, tuple[Refusal, ...]]:
    """Return the autoscaler of a variant, or why there is none: the metrics that cannot be simulated.

    A ScaledObject takes precedence over the HorizontalPodAutoscaler that KEDA creates for it. Some of the
    metrics may be unsupported: then the others scale.
    """
    value = scaled_object or autoscaler
    if value is None:
        return None, ()
    shown = f"{value['kind']} {value['metadata']['name']!r}"
    spec = as_object(value.get("spec"))
    rules, refused = [], []
    for number, item in enumerate(as_list(spec.get("triggers" if scaled_object else "metrics"))):
        try:
            rules.append(_trigger_rule(as_object(item)) if scaled_object else _metric_rule(as_object(item)))
        except UnsupportedRuleError as error:
            place = f"{'trigger' if scaled_object else 'metric'} {number + 1} of {shown}"
            refused.append(Refusal(place=place, reason=str(error)))
    if not rules:
        return None, tuple(refused) or (Refusal(place=shown, reason="an autoscaler without metrics"),)
    remarks: list[str] = []
    if scaled_object:
        least = int(spec.get("minReplicaCount") or 0)
        remarks += [] if least else ["KEDA's scaling to zero is not simulated: one replica stays"]
        bounds = max(1, least), int(spec.get("maxReplicaCount", KEDA_MOST_REPLICAS))
        behaviour = behaviour_of(
            as_object(as_object(spec.get("advanced")).get("horizontalPodAutoscalerConfig"))
        )
    else:
        fewest = spec.get("minReplicas")
        bounds = 1 if fewest is None else int(fewest), int(spec["maxReplicas"])
        behaviour = behaviour_of(spec)
    remarks += [f"{shown}: {text}" for rule in rules for text in _label_remarks(rule)]
    return (
        Scaler(
            shown=shown,
            rules=tuple(rules),
            min_replicas=bounds[0],
            max_replicas=bounds[1],
            behaviour=behaviour,
            starts_from_zero=scaled_object is not None,
            remarks=tuple(remarks),
            refused=tuple(refused),
        ),
        (),
    )


def _metric_rule(item: Json) -> ScalingMetric:
    kind = str(item.get("type") or "")
    if kind in ("Resource", "ContainerResource"):
        resource = as_object(item.get("resource") or item.get("containerResource")).get("name")
        raise UnsupportedRuleError(f"{resource} is {_NO_METRIC} of engines")
    source = as_object(item.get("pods" if kind == "Pods" else "external" if kind == "External" else ""))
    metric, target = as_object(source.get("metric")), as_object(source.get("target"))
    name = str(metric.get("name") or "")
    if kind not in ("Pods", "External"):
        raise UnsupportedRuleError(f"metrics of type {kind} are not simulated: only Pods and External are")
    gauge = _gauge(name)
    average, whole = _positive(target.get("averageValue")), _positive(target.get("value"))
    if average is None and whole is None:
        raise UnsupportedRuleError(f"the target of {name} is no positive quantity")
    if kind == "Pods":
        terms = (Term(gauge=gauge, is_own=True),)
        return ScalingMetric(shown=name, terms=terms, target=average or whole or 1.0, kind="pods")
    selector = as_object(metric.get("selector"))
    matchers = tuple(
        Matcher(label=str(label), comparison="=", value=str(value))
        for label, value in as_object(selector.get("matchLabels")).items()
    )
    return ScalingMetric(
        shown=name,
        terms=(_term(gauge, "sum", matchers),),
        target=average or whole or 1.0,
        kind="average" if average else "value",
    )


def _trigger_rule(trigger: Json) -> ScalingMetric:
    kind, metadata = str(trigger.get("type") or ""), as_object(trigger.get("metadata"))
    if kind != "prometheus":
        raise UnsupportedRuleError(f"triggers of type {kind!r} are not simulated: only prometheus is")
    query, threshold = str(metadata.get("query") or ""), _positive(metadata.get("threshold"))
    if threshold is None:
        raise UnsupportedRuleError("its threshold is no positive number")
    is_value = trigger.get("metricType") == "Value"
    is_zero = str(metadata.get("ignoreNullValues", "true")).lower() != "false"
    return ScalingMetric(
        shown=query,
        terms=terms_of(query),
        target=threshold,
        kind="value" if is_value else "average",
        is_zero_without_series=is_zero,
    )


def terms_of(query: str) -> tuple[Term, ...]:
    """Return the terms of a query. Raises UnsupportedRuleError for one that is not understood."""
    if len(query) > _LONGEST_QUERY:
        raise UnsupportedRuleError(f"its query has {len(query)} characters, of at most {_LONGEST_QUERY}")
    parts = _PLUS.split(_OR_ZERO.sub("", query.strip()))
    if len(parts) > _MOST_TERMS:
        raise UnsupportedRuleError(f"its query has {len(parts)} terms, of at most {_MOST_TERMS}")
    return tuple(_query_term(part) for part in parts)


def _query_term(text: str) -> Term:
    match = _TERM.match(text.strip())
    if match is None or bool(match["aggregation"]) != bool(match["close"]):
        raise UnsupportedRuleError(
            f"the query {text.strip()!r} is not understood: sums such as"
            ' sum(vllm:num_requests_waiting{pod=~"chat-.*"}) are'
        )
    if not match["aggregation"]:
        raise UnsupportedRuleError(
            f"the query {text.strip()!r} has a value for each pod: use sum() or another one"
        )
    aggregation: Aggregation = match["aggregation"]  # type: ignore[assignment]
    return _term(_gauge(match["name"]), aggregation, tuple(_matchers(match["matchers"] or "")))


def _matchers(text: str) -> Iterator[Matcher]:
    place, text = 0, text.strip()
    while place < len(text):
        match = _MATCHER.match(text, place)
        if match is None:
            raise UnsupportedRuleError(f"the matchers {text!r} are not understood")
        value = match["value"].replace("\\\\", "\\").replace('\\"', '"')
        comparison: Comparison = match["comparison"]  # type: ignore[assignment]
        if comparison in ("=~", "!~"):
            try:
                re2.compile(value)
            except re2.error as error:
                raise UnsupportedRuleError(f"{value!r} is no regular expression") from error
        yield Matcher(label=match["label"], comparison=comparison, value=value)
        place = match.end()


def _term(gauge: Gauge, aggregation: Aggregation, matchers: tuple[Matcher, ...]) -> Term:
    """Return a term; with labels that simulated series do not have, those of the own variant are meant."""
    metric_matchers = tuple(item for item in matchers if item.label in _KNOWN_LABELS)
    has_pod = any(item.label == "pod" for item in metric_matchers)
    return Term(
        gauge=gauge,
        aggregation=aggregation,
        matchers=metric_matchers,
        is_own=len(metric_matchers) < len(matchers) and not has_pod,
    )


def _label_remarks(rule: ScalingMetric) -> Iterator[str]:
    if rule.kind != "pods" and any(term.is_own for term in rule.terms):
        yield (
            f"{rule.shown} selects series by labels other than {', '.join(sorted(_KNOWN_LABELS))}: they are"
            " taken for those of its own pods"
        )


def _gauge(name: str) -> Gauge:
    if name in DECISION_METRICS:
        raise UnsupportedRuleError(f"{name} is a decision of Stowplan: simulate the policy stowplan instead")
    plain = name.lower().replace(":", "_")
    for prefix in ("vllm_", "sglang_"):
        plain = plain.removeprefix(prefix)
    if plain not in _GAUGES:
        raise UnsupportedRuleError(f"{name!r} is {_NO_METRIC} of simulated engines")
    return _GAUGES[plain]


def _positive(quantity: object) -> float | None:
    if isinstance(quantity, bool) or not isinstance(quantity, str | int | float):
        return None
    number = amount(quantity)
    return float(number) if number is not None and 0 < number <= 10**12 else None
