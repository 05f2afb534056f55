"""Metric endpoints of bindings, and the policy metrics that pods expose there."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from prometheus_client import Metric

from apiserver.kinds.identity import key_of
from apiserver.schema.json import Json
from controller.engines.exposition import UnreadableMetricsError, families_in
from controller.engines.metrics import Series
from controller.policies.measuring import Exposed, Look, exposed_values, name_of

MOST_NAMES: Final = 500
"""Maximum number of metrics, counted with their label matchers, that bindings may name at one endpoint."""

_MOST_ENDPOINTS: Final = 8
"""Maximum number of endpoints of one pod: each is a request in every cycle."""

TOO_MANY_ENDPOINTS: Final = f"it is not read: bindings name more of this pod than {_MOST_ENDPOINTS} endpoints"
"""Why an endpoint beyond this number is not read."""

_SUFFIXES: Final = ("_total", "_count", "_sum", "_bucket")
_BUCKET: Final = "_bucket"
_TYPE: Final = "# TYPE "
_NAME: Final = re.compile(r"[a-zA-Z_:][a-zA-Z0-9_:]*")


class Endpoint(NamedTuple):
    """One metrics path of one pod."""

    namespace: str
    pod: str
    port: int
    path: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Question:
    """An endpoint of a pod, and the metrics requested from it; questions are compared by endpoint."""

    endpoint: Endpoint
    pod: Json = field(compare=False)
    names: frozenset[str] = field(compare=False)
    optional: frozenset[str] = field(default=frozenset(), compare=False)
    """Metrics that count as 0 if the page lacks them: series that appear with the first event."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Exposures:
    """Exposed values of the endpoints that responded, and the errors of the others."""

    looks: Mapping[Endpoint, Look] = field(default_factory=dict)
    failures: Mapping[Endpoint, str] = field(default_factory=dict)


def question(
    pod: Json, *, port: int, path: str, names: Collection[str], optional: Collection[str] = ()
) -> Question:
    """Return the question for a pod."""
    endpoint = Endpoint(*key_of(pod), port, path)
    return Question(endpoint=endpoint, pod=pod, names=frozenset(names), optional=frozenset(optional))


def first_of_each_pod(endpoints: Iterable[Endpoint]) -> set[Endpoint]:
    """Return the endpoints that are read: the first of each pod, by port and path."""
    read: dict[tuple[str, str], list[Endpoint]] = defaultdict(list)
    for endpoint in sorted(endpoints):
        of_pod = read[endpoint.namespace, endpoint.pod]
        if len(of_pod) < _MOST_ENDPOINTS:
            of_pod.append(endpoint)
    return {endpoint for of_pod in read.values() for endpoint in of_pod}


def exposed_in(text: str, names: Collection[str]) -> Mapping[str, Exposed]:
    """Return the values of the given names in an exposition.

    Raises UnreadableMetricsError for invalid text, and for too many names.
    """
    if len(names) > MOST_NAMES:
        raise UnreadableMetricsError(f"bindings name {len(names)} metrics of it, of at most {MOST_NAMES}")
    stems = tuple(_stem(name_of(name)) for name in names)
    heads = (*stems, *(f"{_TYPE}{stem}" for stem in stems))
    return exposed_values(families_in(text, heads), names)


def series_names(names: Collection[str]) -> list[str]:
    """Return the series names to query from a source without types; invalid names are omitted."""
    usable = sorted({name for name in map(name_of, names) if _NAME.fullmatch(name)})
    return [series for name in usable for series in (name, f"{name}{_BUCKET}")]


def exposed_series(series: Sequence[Series], names: Collection[str]) -> Mapping[str, Exposed]:
    """Return the values of series without types: counters are recognized by name, histograms by buckets."""
    families = []
    by_name: dict[str, list[Series]] = defaultdict(list)
    for item in series:
        by_name[item.name].append(item)
    for name in dict.fromkeys(map(name_of, names)):
        buckets, plain = by_name.get(f"{name}{_BUCKET}", []), by_name.get(name, [])
        kind = "histogram" if buckets else "counter" if name.endswith(_SUFFIXES) else "gauge"
        stem = name.removesuffix("_total") if kind == "counter" else name
        family = Metric(stem or name, "", kind)
        for item in buckets or plain:
            family.add_sample(item.name, dict(item.labels), item.value)
        families.append(family)
    return exposed_values(families, names)


def _stem(name: str) -> str:
    for suffix in _SUFFIXES:
        if name.endswith(suffix):
            return name.removesuffix(suffix)
    return name
