"""Hypothesis strategies derived from declarations."""

from __future__ import annotations

import string
from collections.abc import Callable
from dataclasses import dataclass

from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from apiserver.schema.json import Json, JsonValue
from apiserver.schema.model import Node, node_of

_TEXT = st.text(alphabet=string.ascii_letters + string.digits + "-./ é漢", min_size=1, max_size=12)
_LARGEST = 2**31

Override = Callable[[Node], SearchStrategy[JsonValue] | None]


@dataclass(frozen=True, slots=True)
class Drawn:
    """Additional constraints on generated objects.

    `override` gives the values of some nodes; fields in `always` are present, those in `never` absent.
    """

    override: Override = lambda _: None
    always: frozenset[str] = frozenset()
    never: frozenset[str] = frozenset()


def objects_of(declared: type, drawn: Drawn = Drawn()) -> SearchStrategy[Json]:
    """Return objects that match the schema of a declaration; cross-field rules may be violated."""
    return _object(node_of(declared), drawn)


def json_values() -> SearchStrategy[JsonValue]:
    """Return any JSON value."""
    leaves = st.none() | st.booleans() | st.integers(-_LARGEST, _LARGEST) | st.text(max_size=8)
    return st.recursive(
        leaves,
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    )


def _value(node: Node, drawn: Drawn) -> SearchStrategy[JsonValue]:
    special = drawn.override(node)
    if special is not None:
        return special
    if node.properties:
        return _object(node, drawn)
    if node.values is not None:
        least, most = node.keywords.get("minProperties", 0), min(node.keywords.get("maxProperties", 3), 3)
        return st.dictionaries(_TEXT, _value(node.values, drawn), min_size=least, max_size=most)
    if node.items is not None:
        return _list(node, node.items, drawn)
    return _scalar(node)


def _object(node: Node, drawn: Drawn) -> SearchStrategy[Json]:
    needed: dict[str, SearchStrategy[JsonValue]] = {}
    optional: dict[str, SearchStrategy[JsonValue]] = {}
    for prop in node.properties:
        if prop.is_required or prop.name in drawn.always:
            needed[prop.name] = _value(prop.node, drawn)
        elif prop.name not in drawn.never:
            optional[prop.name] = _value(prop.node, drawn)
    return st.fixed_dictionaries(needed, optional=optional)


def _list(node: Node, items: Node, drawn: Drawn) -> SearchStrategy[JsonValue]:
    keys: list[str] = node.keywords.get("x-kubernetes-list-map-keys", [])
    unique = (lambda item: tuple(item[key] for key in keys)) if keys else None
    least = node.keywords.get("minItems", 0)
    return st.lists(_value(items, drawn), min_size=least, max_size=max(2, least), unique_by=unique)


def _scalar(node: Node) -> SearchStrategy[JsonValue]:
    words = node.keywords
    if "enum" in words:
        return st.sampled_from(words["enum"])
    if "pattern" in words:
        return st.from_regex(
            words["pattern"].replace("$", r"\Z"), alphabet=st.characters(max_codepoint=126)
        ).filter(lambda text: words.get("minLength", 0) <= len(text) <= words.get("maxLength", 64))
    if words.get("format") == "date-time":
        return st.datetimes().map(lambda moment: moment.strftime("2026-%m-%dT%H:%M:%SZ"))
    by_type: dict[str, SearchStrategy[JsonValue]] = {
        "integer": st.integers(words.get("minimum", -_LARGEST), words.get("maximum", _LARGEST)),
        "boolean": st.booleans(),
        "number": st.floats(allow_nan=False, allow_infinity=False),
        "string": st.text(min_size=words.get("minLength", 0), max_size=min(words.get("maxLength", 12), 12)),
    }
    return by_type[node.type]
