"""The decorator that turns a class into a declaration: a frozen struct, its rules beside it."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final, TypeAlias, TypeGuard, TypeVar, dataclass_transform

import msgspec
from msgspec import UNSET, Struct, UnsetType

from apiserver.schema.paths import camel_case

if TYPE_CHECKING:
    from apiserver.schema.rules import Rule

T = TypeVar("T")

Maybe: TypeAlias = T | UnsetType
"""A field that may be absent: absent is `UNSET`, which type checkers narrow, and never `None`."""

_RULES: Final = "__stowplan_rules__"
_STRUCT_META: Final = type(Struct)


@dataclass_transform(frozen_default=True, kw_only_default=True, eq_default=True)
def declaration(*rules: Rule) -> Callable[[type[T]], type[T]]:
    """Declare an API type: fields with their markers and defaults, prose below each, rules in front.

    A field without a default is required, one of type `Maybe` is optional, any other default is written
    into the schema. Rules go to the decorator because a kind may well have a field named `rules`.
    """

    def build(cls: type[T]) -> type[T]:
        members = {key: value for key, value in vars(cls).items() if key not in {"__dict__", "__weakref__"}}
        options = {"frozen": True, "kw_only": True, "gc": False, "rename": camel_case, "omit_defaults": False}
        struct = _STRUCT_META(cls.__name__, (Struct,), members, **options)  # type: ignore[misc] # typed for subclassing only
        setattr(struct, _RULES, rules)
        return struct  # type: ignore[no-any-return] # the metaclass call above is untyped

    return build


def rules_of(declared: type) -> tuple[Rule, ...]:
    """Return the cross-field rules that a declaration was decorated with."""
    rules: tuple[Rule, ...] = getattr(declared, _RULES, ())
    return rules


def is_declaration(annotation: object) -> TypeGuard[type[Struct]]:
    """Tell whether a type is a declared one."""
    return isinstance(annotation, type) and issubclass(annotation, Struct)


__all__ = ["UNSET", "Maybe", "UnsetType", "declaration", "is_declaration", "msgspec", "rules_of"]
