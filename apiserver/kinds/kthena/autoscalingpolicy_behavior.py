"""Defaults for the scaling behavior of a policy where the schema cannot express them.

Numbers and periods have defaults in the schema, but a schema default inside an absent parent has no effect,
and the default of a stabilization window depends on the direction. So there is one set of defaults: those of
the schema in every block, and the two windows here, which are those of a HorizontalPodAutoscaler.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from apiserver.schema.json import Json, JsonValue
from apiserver.schema.kind import Filled
from apiserver.schema.paths import FieldPath

UP_WINDOW: Final = "0s"
"""The stabilization window for scaling up: the last recommendation applies at once."""

DOWN_WINDOW: Final = "5m"
"""The stabilization window for scaling down: the highest recommendation of five minutes applies."""

_UP: Final = ("scaleUp", "stablePolicy", "stabilizationWindow")
_DOWN: Final = ("scaleDown", "stabilizationWindow")


def behavior_fill(spec: Json, path: tuple[str | int, ...]) -> Iterator[Filled]:
    """Yield the absent parts of the scaling behavior of a policy spec, located at `path` of its object.

    These are only the parts that the schema cannot express; its own defaults are filled in afterwards. The
    first item carries one warning for all of them.
    """
    behavior = spec.get("behavior")
    if behavior and _is_set(behavior, _UP) and _is_set(behavior, _DOWN):
        return
    ways = ((_UP, UP_WINDOW), (_DOWN, DOWN_WINDOW))
    absent = [(way, window) for way, window in ways if not _is_set(behavior or {}, way)]
    warning = _warning(path, dict(absent))
    if behavior is None:
        value = {way[0]: _nest(way[1:], window) for way, window in absent}
        yield Filled(path=(*path, "behavior"), value=value, warning=warning)
        return
    for way, window in absent:
        there = _depth(behavior, way)
        value = _nest(way[there + 1 :], window)
        yield Filled(path=(*path, "behavior", *way[: there + 1]), value=value, warning=warning)
        warning = ""


def _warning(path: tuple[str | int, ...], absent: dict[tuple[str, ...], str]) -> str:
    windows = " and ".join(f"{window} for {way[0]}" for way, window in absent.items())
    return f"{FieldPath((*path, 'behavior'))}: filled in stabilizationWindow {windows}"


def _is_set(behavior: Json, way: tuple[str, ...]) -> bool:
    here: JsonValue = behavior
    for name in way:
        here = here.get(name)
        if here is None:
            return False
    return True


def _depth(behavior: Json, way: tuple[str, ...]) -> int:
    """Return how many leading names of a path exist."""
    here: JsonValue = behavior
    for depth, name in enumerate(way):
        here = here.get(name)
        if here is None:
            return depth
    return len(way)


def _nest(names: tuple[str, ...], value: JsonValue) -> JsonValue:
    for name in reversed(names):
        value = {name: value}
    return value
