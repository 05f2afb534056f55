"""What the behaviour of a policy is where its author left it open.

Numbers and periods have defaults in the schema, but a schema default inside an absent parent does nothing,
and the default of a window depends on its direction. So there is one set of defaults: those of the schema in
every block, and the two windows here, which are those that a HorizontalPodAutoscaler has.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from apiserver.schema.json import Json, JsonValue
from apiserver.schema.kind import Filled
from apiserver.schema.paths import FieldPath

UP_WINDOW: Final = "0s"
"""Scaling up follows the last recommendation at once."""

DOWN_WINDOW: Final = "5m"
"""Scaling down follows the highest recommendation of the last five minutes."""

_UP: Final = ("scaleUp", "stablePolicy", "stabilizationWindow")
_DOWN: Final = ("scaleDown", "stabilizationWindow")


def behavior_fill(spec: Json, path: tuple[str | int, ...]) -> Iterator[Filled]:
    """Yield what is absent of the behaviour of a policy spec, which stands at a path of its object.

    Only what the schema cannot say: its own defaults are filled in around that afterwards. One warning for
    all of it goes with the first.
    """
    behavior = spec.get("behavior")
    ways = ((_UP, UP_WINDOW), (_DOWN, DOWN_WINDOW))
    absent = [(way, window) for way, window in ways if not _is_set(behavior or {}, way)]
    warning = _warning(path, dict(absent))
    if behavior is None:
        value = {way[0]: _nested(way[1:], window) for way, window in absent}
        yield Filled(path=(*path, "behavior"), value=value, warning=warning)
        return
    for way, window in absent:
        there = _depth(behavior, way)
        value = _nested(way[there + 1 :], window)
        yield Filled(path=(*path, "behavior", *way[: there + 1]), value=value, warning=warning)
        warning = ""


def _warning(path: tuple[str | int, ...], absent: dict[tuple[str, ...], str]) -> str:
    windows = " and ".join(f"{window} for {way[0]}" for way, window in absent.items())
    return f"{FieldPath((*path, 'behavior'))}: filled in stabilizationWindow {windows}"


def _is_set(behavior: Json, way: tuple[str, ...]) -> bool:
    return _depth(behavior, way) == len(way)


def _depth(behavior: Json, way: tuple[str, ...]) -> int:
    """Return how many names of a way down are there."""
    here: JsonValue = behavior
    for depth, name in enumerate(way):
        here = here.get(name)
        if here is None:
            return depth
    return len(way)


def _nested(names: tuple[str, ...], value: JsonValue) -> JsonValue:
    for name in reversed(names):
        value = {name: value}
    return value
