"""The annotation that names where requests are visible for a workload without replicas.

Without replicas no pod reports metrics, but a component in front of them does, such as a router or an
endpoint picker. `stowplan.dev/activity: app=router:9090/metrics queue_size{model="llama"}` selects its pods
by labels, port and path, and a series that is above 0 while requests arrive or wait.
`stowplan.dev/activity: "prometheus: sum(queue_size)"` is an expression that the controller's Prometheus
evaluates.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, TypeAlias

from apiserver.schema.json import Json

ANNOTATION: Final = "stowplan.dev/activity"
"""The name of the annotation."""

_LABEL: Final = r"[A-Za-z0-9][A-Za-z0-9._/-]{0,316}=[A-Za-z0-9._-]{1,63}"
_PATH: Final = r"/(?:\.*[A-Za-z0-9_~-][A-Za-z0-9._~-]*(?:/\.*[A-Za-z0-9_~-][A-Za-z0-9._~-]*)*)?"
_MATCHER: Final = r'[a-zA-Z_][a-zA-Z0-9_]*="[^"\\]{0,256}"'
_SERIES: Final = rf"[a-zA-Z_:][a-zA-Z0-9_:]*(?:\{{{_MATCHER}(?:,{_MATCHER})*\}})?"
_WHOLE: Final = re.compile(
    rf"(?P<labels>{_LABEL}(?:,{_LABEL})*):(?P<port>[0-9]{{1,5}})(?P<path>{_PATH}) +(?P<series>{_SERIES})\Z"
)
_QUERY: Final = re.compile(r"prometheus: *(?P<expression>[^\x00-\x1f\x7f ][^\x00-\x1f\x7f]*)\Z")
_MOST_CHARACTERS: Final = 2048
_MOST_PORT: Final = 65535
_ALLOWED: Final = (
    'must be LABEL=VALUE:PORT/PATH SERIES, such as app=router:9090/metrics queue_size{model="llama"}, or'
    ' prometheus: EXPRESSION, such as prometheus: sum(queue_size{model="llama"}), of at most 2048 characters'
)
_SHOWN_CHARACTERS: Final = 80


@dataclass(frozen=True, kw_only=True, slots=True)
class ActivitySeries:
    """A time series exposed by pods in the namespace of the annotated object."""

    labels: Mapping[str, str] = field(default_factory=dict)
    port: int
    path: str
    series: str
    """The name of the series, optionally with label matchers."""


@dataclass(frozen=True, kw_only=True, slots=True)
class ActivityQuery:
    """An expression for the controller's Prometheus. Any value above 0 is a request."""

    expression: str


ActivitySource: TypeAlias = ActivitySeries | ActivityQuery


def activity_source(value: Json) -> ActivitySource | None:
    """Return the source that a raw object's annotation names; None if it is missing or invalid."""
    text = _text(value) or ""
    if len(text) > _MOST_CHARACTERS:
        return None
    if query := _QUERY.match(text):
        return ActivityQuery(expression=query["expression"].strip())
    match = _WHOLE.match(text)
    if match is None or not 0 < int(match["port"]) <= _MOST_PORT:
        return None
    labels = dict(part.split("=", 1) for part in match["labels"].split(","))
    return ActivitySeries(labels=labels, port=int(match["port"]), path=match["path"], series=match["series"])


def activity_problems(value: Json) -> list[str]:
    """Return a sentence if the annotation is present but invalid."""
    text = _text(value)
    if text is None or activity_source(value) is not None:
        return []
    shown = text if len(text) <= _SHOWN_CHARACTERS else f"{text[:_SHOWN_CHARACTERS]}…"
    return [f"metadata.annotations[{ANNOTATION}]: {_ALLOWED}; was {shown!r}, and is ignored"]


def _text(value: Json) -> str | None:
    text = ((value.get("metadata") or {}).get("annotations") or {}).get(ANNOTATION)
    return text if isinstance(text, str) else None
