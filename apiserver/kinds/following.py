"""Whether the autoscalers of a scale target follow a decision: one check for all kinds that decide.

It depends on declarations only. Whether an autoscaler also acts is visible in the cluster alone.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from decimal import Decimal
from enum import StrEnum
from typing import Final

from apiserver.kinds.autoscalers import (
    BOUND_METRIC,
    VARIANT_METRIC,
    VARIANT_METRIC_LEGACY,
    VARIANT_RATIO,
    Autoscaler,
    MetricReading,
)
from apiserver.kinds.core.selecting import selects
from apiserver.kinds.metric_labels import TARGET_LABELS, VARIANT_LABELS, VARIANT_NAME, target_labels
from apiserver.schema.document import nearest
from apiserver.schema.json import Json

_MATCHER: Final = re.compile(r"""(\w+)\s*=\s*["']([^"']*)["']""")
_PLACES: Final = frozenset({"namespace", "exported_namespace"})
"""Labels whose values in Prometheus depend on how it was configured."""

_MOST_NAMED: Final = 3
_LIKENESS: Final = 0.85
"""The similarity from which the name of a metric is a typing error."""


class FollowingProblem(StrEnum):
    """Why autoscalers do not follow a decision. Each is the reason of a condition."""

    SCALED_BY_OTHER = "TargetScaledByOther"
    SCALED_TWICE = "TargetScaledTwice"
    MORE_METRICS = "MoreMetricsRead"
    SELECTOR_DIFFERS = "MetricSelectorDiffers"
    TARGET_DIFFERS = "MetricTargetDiffers"
    NEVER_SCALES = "AutoscalerNeverScales"


@dataclass(frozen=True, kw_only=True, slots=True)
class Problem:
    """One problem, as a reason and a sentence with its remedy."""

    reason: FollowingProblem
    message: str


@dataclass(frozen=True, kw_only=True, slots=True)
class FollowedMetric:
    """What an autoscaler should follow: the metric of one variant, or of one target of a binding."""

    metrics: tuple[str, ...]
    """Names of the external metric, the usual one first."""

    gauge: str
    """Name of the controller's own metric with the same number, which queries may read instead."""

    labels: Mapping[str, str]
    possible: AbstractSet[str]
    """All labels that such a metric can have: those that are missing now may appear."""

    remedy: Mapping[str, str]
    """The labels that select this metric and no other one of its namespace."""

    neighbours: Collection[Mapping[str, str]] = ()
    """The labels of all metrics of this name in the namespace, which may include its own."""


def variant_subject(
    labels: Mapping[str, str], neighbours: Collection[Mapping[str, str]] = ()
) -> FollowedMetric:
    """Return the metric of a VariantAutoscaling by its labels; `neighbours` are those in its namespace."""
    return FollowedMetric(
        metrics=(VARIANT_METRIC, VARIANT_METRIC_LEGACY, VARIANT_RATIO),
        gauge="stowplan_desired_replicas",
        labels=labels,
        possible=VARIANT_LABELS,
        remedy={VARIANT_NAME: labels[VARIANT_NAME]},
        neighbours=neighbours,
    )


def target_subject(binding: Json, kind: str, name: str) -> FollowedMetric:
    """Return the metric of one target of a raw binding. No other binding decides on the same target."""
    return FollowedMetric(
        metrics=(BOUND_METRIC,),
        gauge="stowplan_policy_desired_replicas",
        labels=target_labels(binding, kind, name),
        possible=TARGET_LABELS,
        remedy={"target_kind": kind, "target_name": name},
    )


def following_problems(autoscalers: Sequence[Autoscaler], subject: FollowedMetric) -> tuple[Problem, ...]:
    """Return why the autoscalers of one target do not follow a decision as it is meant; empty if they do."""
    problems = [problem for autoscaler in autoscalers for problem in _problems(autoscaler, subject)]
    if len(autoscalers) > 1:
        names = " and ".join(autoscaler.display_name for autoscaler in autoscalers)
        text = f"{names} scale it at the same time, and Kubernetes lets neither act: delete all but one"
        problems.insert(0, Problem(reason=FollowingProblem.SCALED_TWICE, message=text))
    return tuple(problems)


def _problems(autoscaler: Autoscaler, subject: FollowedMetric) -> Iterator[Problem]:
    metric, shown = subject.metrics[0], autoscaler.display_name
    own = [item for item in autoscaler.readings if _may_be(item, subject)]
    others = [item for item in autoscaler.readings if not _may_be(item, subject)]
    if autoscaler.max_replicas <= 0:
        text = f"{shown} has a maximum of {autoscaler.max_replicas} replicas: set it above 0"
        yield Problem(reason=FollowingProblem.NEVER_SCALES, message=text)
    if not own:
        read = " and ".join(item.shown for item in others) or "CPU, as it names no metric"
        text = f"{shown} scales it by {read}, and not by {metric}: let it read {metric}, or delete it"
        if close := _nearest_metric(others, subject):
            text = f"{shown} scales it by {read}: is {close} meant?"
        yield Problem(reason=FollowingProblem.SCALED_BY_OTHER, message=text)
        return
    if others:
        read = " and ".join(item.shown for item in others)
        text = (
            f"{shown} also scales it by {read}, and the greatest number applies: let it read {metric} alone"
        )
        yield Problem(reason=FollowingProblem.MORE_METRICS, message=text)
    for item in own:
        if why := _why_not_selected(item, subject):
            remedy = " and ".join(f"{name}: {text}" for name, text in subject.remedy.items())
            text = f"the selector of {metric} in {shown} {why}: select {remedy}"
            yield Problem(reason=FollowingProblem.SELECTOR_DIFFERS, message=text)
    # Of several triggers that are not known, any one may be ours.
    wrong = [(item, why) for item in own if (why := _wrong_target(item))]
    if wrong and (len(wrong) == len(own) or all(item.text is not None for item in own)):
        item, why = wrong[0]
        text = f"{shown} {why}{_remedy(autoscaler, item)}"
        yield Problem(reason=FollowingProblem.TARGET_DIFFERS, message=text)


def _nearest_metric(others: Sequence[MetricReading], subject: FollowedMetric) -> str:
    """Return the name of the subject's metric that a misspelt one most resembles; empty if none does."""
    similar = [nearest(item.name, subject.metrics, likeness=_LIKENESS) for item in others if item.name]
    return next(filter(None, similar), "")


def _may_be(item: MetricReading, subject: FollowedMetric) -> bool:
    """Tell whether a metric is the subject's, or may be: KEDA's triggers can have any query."""
    if item.name is not None:
        return item.name in subject.metrics
    return item.text is None or any(name in item.text for name in (*subject.metrics, subject.gauge))


def _why_not_selected(item: MetricReading, subject: FollowedMetric) -> str:
    """Return why a metric's selector does not select exactly the subject; empty if it does."""
    if item.name is None:
        return _mismatch(dict(_MATCHER.findall(item.text or "")), subject, ignored=_PLACES)
    selector = item.selector or {}
    required: Mapping[str, str] = selector.get("matchLabels") or {}
    if why := _mismatch(required, subject):
        return why
    unset = subject.possible - subject.labels.keys()
    expressions = [it for it in selector.get("matchExpressions") or [] if it.get("key") not in unset]
    if not selects({"matchExpressions": expressions}, subject.labels):
        return "has matchExpressions that do not match it"
    if required.keys() & {VARIANT_NAME, "target_id"}:
        return ""
    alike = [it for it in subject.neighbours if it != subject.labels and selects(selector, it)]
    if alike:
        names = [next(iter(labels[name] for name in subject.remedy)) for labels in alike[:_MOST_NAMED]]
        more = f" and {len(alike) - len(names)} more" if len(alike) > len(names) else ""
        return f"also matches {', '.join(map(repr, names))}{more}, and their numbers are added up"
    return ""


def _mismatch(
    required: Mapping[str, str], subject: FollowedMetric, ignored: AbstractSet[str] = frozenset()
) -> str:
    """Return the first required label that the subject does not have; empty if it has all of them.

    In queries, labels that no such metric has belong to something else.
    """
    for name, text in required.items():
        known = subject.labels.get(name)
        if name in ignored or known == text or (known is None and (name in subject.possible or ignored)):
            continue
        has = "no such label" if known is None else f"{name}={known}"
        return f"requires {name}={text}, and the metric of this object has {has}"
    return ""


def _wrong_target(item: MetricReading) -> str:
    """Return what is wrong with the target of a metric; empty if it results in the decided replicas."""
    if item.text is None and item.target_value is None:
        return ""
    is_ratio = item.name == VARIANT_RATIO
    right_type = "Value" if is_ratio else "AverageValue"
    read = item.name or item.shown
    if item.target_type == right_type:
        if item.target_value == Decimal(1):
            return ""
        return f"has a target of {_text(item.target_value)} for {read}, which divides the decision: set 1"
    if is_ratio:
        return f"reads {read} with a target of type {item.target_type}: use type Value with 1"
    return (
        f"reads {read} with a target of type {item.target_type}, which multiplies it by the running replicas:"
        " use type AverageValue with 1"
    )


def _remedy(autoscaler: Autoscaler, item: MetricReading) -> str:
    """Return how the target of a metric is mended; empty for triggers of KEDA, which say it by fields."""
    if autoscaler.owner:
        return f"; {autoscaler.owner} writes it and would undo a change: correct it there"
    if autoscaler.scaled_object:
        return ""
    is_ratio = item.name == VARIANT_RATIO
    target = {"type": "Value", "value": "1"} if is_ratio else {"type": "AverageValue", "averageValue": "1"}
    path = f"/spec/metrics/{autoscaler.readings.index(item)}/external/target"
    patch = json.dumps([{"op": "replace", "path": path, "value": target}])
    return f": kubectl patch hpa {autoscaler.name} --type=json --patch='{patch}'"


def _text(value: Decimal | None) -> str:
    return "an unknown value" if value is None else f"{value.normalize():f}"
