"""The shipped dashboard, checked by Grafana's own models of dashboards and panels, and by its layout.

The models are generated from the schema of Grafana 11.6; those of 12 accept the same dashboard. They ignore
unknown fields and do not check types, so the tests do.
"""

from __future__ import annotations

import json
import types
from collections.abc import Iterator
from enum import Enum
from itertools import combinations
from typing import Any, Literal, Protocol, Self, Union, get_args, get_origin, get_type_hints

import pytest
from grafana_foundation_sdk.cog.encoder import JSONEncoder
from grafana_foundation_sdk.cog.plugins import register_default_plugins
from grafana_foundation_sdk.models import units
from grafana_foundation_sdk.models.dashboard import Dashboard
from support.monitoring import dashboard

OLDEST_SCHEMA_VERSION = 39
"""That of Grafana 11.0. Newer ones migrate a dashboard when they load it; older ones are not downgraded."""


class Model(Protocol):
    """A generated model."""

    @classmethod
    def from_json(cls, data: Any) -> Self:  # noqa: ANN401 (as generated)
        """Read a JSON value."""


PANEL_TYPES = {"row", "stat", "table", "timeseries"}
COLUMNS = 24


def problems(value: dict[str, Any]) -> list[str]:
    """Return the fields of a dashboard that Grafana does not know, and the values of a wrong type."""
    register_default_plugins()
    try:
        return list(mismatches(value, Dashboard, "$"))
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        return [f"unreadable: {error!r}"]


def mismatches(value: object, model: type[Model], path: str) -> Iterator[str]:
    """Yield what a model loses of a JSON value, and its fields of a wrong type."""
    read = model.from_json(value)
    yield from lost(value, json.loads(json.dumps(read, cls=JSONEncoder)), path)
    yield from mistyped(read, model, path)


def lost(given: object, back: object, path: str) -> Iterator[str]:
    """Yield the paths of what a model does not have after reading; None and absent are the same."""
    if isinstance(given, dict) and isinstance(back, dict):
        for name, value in given.items():
            if value is not None and name not in back:
                yield f"{path}.{name}: unknown"
            elif value is not None:
                yield from lost(value, back[name], f"{path}.{name}")
    elif isinstance(given, list) and isinstance(back, list) and len(given) == len(back):
        for number, (one, other) in enumerate(zip(given, back, strict=True)):
            yield from lost(one, other, f"{path}[{number}]")
    elif given != back:
        yield f"{path}: {given!r} is read as {back!r}"


def mistyped(value: object, hint: object, path: str) -> Iterator[str]:
    """Yield the paths of values that do not have the declared type."""
    models = [it for it in members(hint) if isinstance(it, type) and hasattr(it, "from_json")]
    if isinstance(value, dict) and models:  # left as JSON by the model that contains it
        yield from mismatches(value, models[0], path)
    elif not any(fits(value, member) for member in members(hint)):
        yield f"{path}: {value!r} is not {hint}"
    elif hasattr(value, "from_json"):  # in a field of any type, such as a panel's options, too
        for name, inner in get_type_hints(type(value)).items():
            yield from mistyped(getattr(value, name), inner, f"{path}.{name}")
    elif isinstance(value, list | dict):
        for key, inner in value.items() if isinstance(value, dict) else enumerate(value):
            yield from mistyped(inner, element(hint), f"{path}[{key}]")


def members(hint: object) -> tuple[object, ...]:
    """Return the members of a union, or the type itself."""
    return get_args(hint) if get_origin(hint) in {Union, types.UnionType} else (hint,)


def element(hint: object) -> object:
    """Return the type of a collection's elements."""
    return next((get_args(it)[-1] for it in members(hint) if get_origin(it) in {list, dict}), object)


def fits(value: object, hint: object) -> bool:
    """Tell whether a value has a type, without looking into it."""
    kind = get_origin(hint) or hint
    if kind is Literal:
        return value in get_args(hint)
    if not isinstance(kind, type):
        return kind is Any
    if issubclass(kind, Enum):
        return value in list(kind) or value in [item.value for item in kind]
    if kind in {int, float}:
        return isinstance(value, int | kind) and not isinstance(value, bool)
    return isinstance(value, kind)


def test_grafana_knows_every_field_of_the_dashboard_and_its_type() -> None:
    """Options of panels and queries for Prometheus are included."""
    assert problems(dashboard()) == []


STACKED = {"stacking": {"mode": "up"}}
WRONG: dict[str, tuple[tuple[str | int, ...], Any]] = {
    "an unknown field of the dashboard": (("refreshed",), "30s"),
    "an unknown option of a panel": (("panels", 1, "options", "colourMode"), "value"),
    "an option outside its list": (("panels", 1, "options", "colorMode"), "bright"),
    "an unknown field of a query": (("panels", 1, "targets", 0, "expression"), "up"),
    "a query of the wrong type": (("panels", 1, "targets", 0, "expr"), 7),
    "a number as text": (("panels", 1, "gridPos", "w"), "4"),
    "a list instead of an object": (("panels", 1, "fieldConfig", "defaults"), []),
    "an unknown kind of variable": (("templating", "list", 0, "type"), "source"),
    "an unknown stacking of lines": (("panels", 10, "fieldConfig", "defaults", "custom"), STACKED),
    "an unknown field of a transformation": (("panels", 7, "transformations", 0, "option"), {}),
}


@pytest.mark.parametrize(("path", "value"), WRONG.values(), ids=WRONG.keys())
def test_what_grafana_would_ignore_is_found(path: tuple[str | int, ...], value: object) -> None:
    """Grafana would show the panel without it, or not at all."""
    changed: Any = dashboard()
    inside = changed
    for step in path[:-1]:
        inside = inside[step]
    inside[path[-1]] = value

    assert problems(changed)


def test_every_panel_has_its_place() -> None:
    """None overlaps another or exceeds the width; each has its own ID, and a text of what it shows."""
    panels = dashboard()["panels"]
    places = [(item["gridPos"], item["title"]) for item in panels]

    assert len({item["id"] for item in panels}) == len({item["title"] for item in panels}) == len(panels)
    assert [title for place, title in places if place["x"] + place["w"] > COLUMNS] == []
    assert [(one[1], two[1]) for one, two in combinations(places, 2) if overlap(one[0], two[0])] == []
    assert places == sorted(places, key=lambda it: (it[0]["y"], it[0]["x"]))
    assert [item["title"] for item in panels if item["type"] != "row" and not item["description"]] == []


def overlap(one: dict[str, int], other: dict[str, int]) -> bool:
    """Tell whether two panels share a cell of the grid."""
    return all(
        one[start] < other[start] + other[size] and other[start] < one[start] + one[size]
        for start, size in (("x", "w"), ("y", "h"))
    )


def test_panels_are_of_types_that_grafana_11_and_12_have_and_query_the_chosen_prometheus() -> None:
    """Units are those that Grafana can format; others would be shown as text behind the value."""
    shown = dashboard()
    panels = [item for item in shown["panels"] if item["type"] != "row"]
    known = {value for name, value in vars(units).items() if name[0].isupper() and isinstance(value, str)}

    assert shown["schemaVersion"] <= OLDEST_SCHEMA_VERSION
    assert {item["type"] for item in shown["panels"]} <= PANEL_TYPES
    assert {json.dumps(item["datasource"]) for item in panels} == {
        json.dumps({"type": "prometheus", "uid": "${datasource}"})
    }
    assert {it["name"] for it in shown["templating"]["list"] if it["type"] == "datasource"} == {"datasource"}
    assert {it["fieldConfig"]["defaults"].get("unit", "short") for it in panels} <= known
    assert all(len({it["refId"] for it in item["targets"]}) == len(item["targets"]) for item in panels)
