"""The decorator that turns a class into a declaration: a frozen struct with rules."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final, TypeAlias, TypeGuard, TypeVar, dataclass_transform

from msgspec import UNSET, Struct, UnsetType

from apiserver.schema.paths import camel_case

if TYPE_CHECKING:
    from apiserver.schema.rules import ValidationRule

T = TypeVar("T")

Maybe: TypeAlias = T | UnsetType
"""An optional field. If absent it is `UNSET`, which type checkers can narrow, and never `None`."""

_RULES: Final = "__stowplan_rules__"
_STRUCT_META: Final = type(Struct)


@dataclass_transform(frozen_default=True, kw_only_default=True, eq_default=True)
def declaration(*rules: ValidationRule, extends: type | None = None) -> Callable[[type[T]], type[T]]:
    """Declare an API type: fields with markers and defaults, each documented by the docstring below it.

    A field without a default is required, one of type `Maybe` is optional, and any other default becomes the
    default in the schema. Rules are arguments of the decorator because a kind may have a field named `rules`.

    With `extends`, the declaration also has the fields and rules of another one, except fields that it
    declares itself, which keep their description if they have none. This is for the same kind in another API
    group, not for versions of a kind.
    """

    def build(cls: type[T]) -> type[T]:
        members = {key: value for key, value in vars(cls).items() if key not in {"__dict__", "__weakref__"}}
        options = {"frozen": True, "kw_only": True, "gc": False, "rename": camel_case, "omit_defaults": False}
        struct = _STRUCT_META(cls.__name__, (extends or Struct,), members, **options)  # type: ignore[misc] # typed for subclassing only
        setattr(struct, _RULES, (*rules_of(extends or Struct), *rules))
        return struct  # type: ignore[no-any-return] # the metaclass call above is untyped

    return build


def rules_of(declared: type) -> tuple[ValidationRule, ...]:
    """Return the cross-field rules of a declaration."""
    rules: tuple[ValidationRule, ...] = getattr(declared, _RULES, ())
    return rules


def is_declaration(annotation: object) -> TypeGuard[type[Struct]]:
    """Tell whether a type is a declaration."""
    return isinstance(annotation, type) and issubclass(annotation, Struct)


__all__ = ["UNSET", "Maybe", "declaration", "is_declaration", "rules_of"]
