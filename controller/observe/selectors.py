"""What a label selector selects, as the API server's own components judge it."""

from __future__ import annotations

from collections.abc import Mapping

from apiserver.schema.json import Json


def selects(selector: Json | None, labels: Mapping[str, str]) -> bool:
    """Tell whether a label selector selects labels: none selects nothing, an empty one everything."""
    if selector is None:
        return False
    wanted = selector.get("matchLabels") or {}
    return all(labels.get(key) == value for key, value in wanted.items()) and all(
        _meets(item, labels.get(item["key"])) for item in selector.get("matchExpressions") or []
    )


def selected_keys(selector: Json) -> frozenset[str]:
    """Return the labels that a selector looks at."""
    expressions = selector.get("matchExpressions") or []
    return frozenset({*(selector.get("matchLabels") or {}), *(item["key"] for item in expressions)})


def _meets(item: Json, value: str | None) -> bool:
    match item["operator"]:
        case "In":
            return value in (item.get("values") or ())
        case "NotIn":
            return value not in (item.get("values") or ())
        case "Exists":
            return value is not None
        case "DoesNotExist":
            return value is None
        case _:
            # An operator that is not known may select: that errs towards fewer evictions, and more rules.
            return True
