"""Paths of fields as Kubernetes prints them, and the rule that maps Python names to JSON names."""

from __future__ import annotations

from typing import Final

import msgspec

_UPPER_WORDS: Final = frozenset({"id", "uri", "url"})


class FieldPath(msgspec.Struct, frozen=True, gc=False):
    """A path from the root of an object, built while descending.

    It is printed as by `k8s.io/apimachinery/pkg/util/validation/field`: `spec.rules[0].name`,
    `metadata.labels[app]`, and `<nil>` for the whole object.
    """

    parts: tuple[str | int, ...] = ()

    def child(self, *names: str) -> FieldPath:
        """Return the path of a member of the object at this path."""
        return FieldPath((*self.parts, *names))

    def index(self, position: int) -> FieldPath:
        """Return the path of an item of the list at this path."""
        return FieldPath((*self.parts, position))

    def key(self, name: str) -> FieldPath:
        """Return the path of an entry of the map at this path, with the key in brackets."""
        return FieldPath((*self.parts, f"[{name}]"))

    @property
    def parent(self) -> FieldPath:
        """Return the path of the parent; the root is its own parent."""
        return FieldPath(self.parts[:-1])

    @staticmethod
    def member(part: str) -> str:
        """Return the JSON name that a part of a path denotes."""
        return part[1:-1] if part.startswith("[") else part

    def __str__(self) -> str:
        text = "" if self.parts else "<nil>"
        for part in self.parts:
            if isinstance(part, int):
                text += f"[{part}]"
            elif part.startswith("["):
                text += part
            else:
                text += f".{part}" if text else part
        return text


def camel_case(name: str) -> str:
    """Return the JSON name of a Python field: `model_id` is `modelID`, `global_` is `global`.

    One rule applies to every field of every kind: words after the first are capitalized, and `id`, `uri` and
    `url` are in upper case unless they come first.
    """
    first, *rest = name.rstrip("_").split("_")
    return first + "".join(word.upper() if word in _UPPER_WORDS else word.capitalize() for word in rest)
