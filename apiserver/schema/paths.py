"""Where a field is: the path as Kubernetes prints it, and the one rule that names fields in JSON."""

from __future__ import annotations

from typing import Final

import msgspec

_UPPER_WORDS: Final = frozenset({"id", "uri", "url"})


class FieldPath(msgspec.Struct, frozen=True, gc=False):
    """A path from the root of an object, built while descending.

    Printed the way `k8s.io/apimachinery/pkg/util/validation/field` prints one: `spec.rules[0].name`,
    `metadata.labels[app]`, and `<nil>` for the whole object.
    """

    parts: tuple[str | int, ...] = ()

    def child(self, *names: str) -> FieldPath:
        """Return the path of a member of the object here."""
        return FieldPath((*self.parts, *names))

    def index(self, position: int) -> FieldPath:
        """Return the path of an item of the list here."""
        return FieldPath((*self.parts, position))

    def key(self, name: str) -> FieldPath:
        """Return the path of an entry of the map here: the name stands in brackets."""
        return FieldPath((*self.parts, f"[{name}]"))

    @property
    def parent(self) -> FieldPath:
        """Return the path of what holds the value here; the root holds itself."""
        return FieldPath(self.parts[:-1])

    @staticmethod
    def member(part: str) -> str:
        """Return the JSON name that a part of a path stands for."""
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

    One rule for every field of every kind: words after the first begin upper-case, and `id`, `uri` and
    `url` are upper-cased whole unless they come first.
    """
    first, *rest = name.rstrip("_").split("_")
    return first + "".join(word.upper() if word in _UPPER_WORDS else word.capitalize() for word in rest)
