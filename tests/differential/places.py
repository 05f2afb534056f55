"""Fields and items of an object: their values, their declarations, and changes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from apiserver.schema.json import Json, JsonValue
from apiserver.schema.model import SchemaNode
from apiserver.schema.paths import FieldPath

_NOWHERE: Final = FieldPath()


@dataclass(frozen=True, kw_only=True, slots=True)
class Place:
    """A member of an object, an entry of a map or an item of a list."""

    holder: Json | list[JsonValue]
    part: str | int
    """The member's name without brackets, or the index."""

    node: SchemaNode
    path: FieldPath
    is_required: bool

    @property
    def value(self) -> JsonValue:
        """Return the value, which must exist."""
        return self.holder[self.part]  # type: ignore[index] # part fits the holder by construction

    @property
    def found(self) -> JsonValue:
        """Return the value, or None if it is absent."""
        return self.holder.get(str(self.part)) if isinstance(self.holder, dict) else self.value

    def siblings(self) -> list[JsonValue]:
        """Return the other numbers or texts in the same object or list, if of the same type."""
        beside = self.holder.values() if isinstance(self.holder, dict) else self.holder
        if not isinstance(self.found, int | str):
            return []
        return [item for item in beside if type(item) is type(self.found) and item != self.found]

    @property
    def can_go(self) -> bool:
        """Tell whether the value exists and the schema does not require it."""
        if isinstance(self.holder, list):
            return True
        return self.part in self.holder and not self.is_required

    def put(self, value: JsonValue) -> None:
        """Set the value."""
        self.holder[self.part] = value  # type: ignore[index] # as above

    def remove(self) -> None:
        """Remove the value, if it exists."""
        if isinstance(self.holder, list):
            self.holder.pop(int(self.part))
        else:
            self.holder.pop(str(self.part), None)


def each(node: SchemaNode, value: JsonValue, path: FieldPath = _NOWHERE) -> Iterator[Place]:
    """Yield every declared place of a well-typed value, parents first."""
    if isinstance(value, dict):
        for name in value:
            place = _member(node, value, name, path)
            if place is not None:
                yield place
                yield from each(place.node, value[name], place.path)
    elif isinstance(value, list) and node.items is not None:
        for position, item in enumerate(value):
            below = path.index(position)
            yield Place(holder=value, part=position, node=node.items, path=below, is_required=False)
            yield from each(node.items, item, below)


def find(node: SchemaNode, value: JsonValue, path: FieldPath) -> Place | None:
    """Return the place of a path, whether or not it has a value; None for the whole object."""
    place: Place | None = None
    here, below = FieldPath(), value
    for part in path.parts:
        place = _step(node, below, part, here)
        if place is None:
            return None
        node, here = place.node, place.path
        below = _inside(below, place.part)
    return place


def _step(node: SchemaNode, value: JsonValue, part: str | int, path: FieldPath) -> Place | None:
    if isinstance(part, int):
        if node.items is None or not isinstance(value, list) or part >= len(value):
            return None
        return Place(holder=value, part=part, node=node.items, path=path.index(part), is_required=False)
    return _member(node, value, FieldPath.member(part), path) if isinstance(value, dict) else None


def _member(node: SchemaNode, value: Json, name: str, path: FieldPath) -> Place | None:
    if node.values is not None:
        return Place(holder=value, part=name, node=node.values, path=path.key(name), is_required=False)
    prop = node.property(name)
    if prop is None:
        return None
    return Place(holder=value, part=name, node=prop.node, path=path.child(name), is_required=prop.is_required)


def _inside(value: JsonValue, part: str | int) -> JsonValue:
    if isinstance(value, dict):
        return value.get(str(part))
    return value[int(part)]
