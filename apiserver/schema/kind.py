"""The description of a kind apart from its fields: names, versions, printer columns. Data only."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

import msgspec

from apiserver.schema.json import Json, JsonValue
from apiserver.schema.paths import FieldPath


@dataclass(frozen=True, slots=True)
class Column:
    """A printer column of `kubectl get`. A priority above 0 shows it in `-o wide` only."""

    name: str
    type: str
    json_path: str
    description: str
    priority: int = 0


class ComputedDefault(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """A default that depends on other fields, so that only the webhook can fill it in.

    If the parent of `path` (declared names and positions from the root) exists and the member is unset,
    `value` is filled in and becomes part of the object. A `warning` that is not empty is returned to the
    requester.
    """

    path: tuple[str | int, ...]
    value: JsonValue
    warning: str = ""


class Reference(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """A reference from an object to another one, located by the path of the referring field.

    The referenced object is in the same namespace or, with `is_settings`, in the namespace of the
    installation, which holds prices and service classes. With `is_scaled`, its number of replicas is changed
    on behalf of the writer.
    """

    path: FieldPath
    group: str
    kind: str
    name: str
    key: str = ""
    """The key of a ConfigMap; empty if the whole object is referenced."""
    is_scaled: bool = False
    bounds: tuple[int, ...] = ()
    """The replica bounds set by the writer, if any. Changing them requires the same permission."""
    is_settings: bool = False


def no_references(_: Json) -> Iterable[Reference]:
    """Return the references of an object of a kind that has none."""
    return ()


@dataclass(frozen=True, kw_only=True, slots=True)
class Version:
    """One version of a kind. Its root declaration has `spec` and `status`."""

    name: str
    declaration: type
    columns: tuple[Column, ...]
    is_storage: bool = False
    deprecation_warning: str = ""
    fill: tuple[Callable[[Json], Iterable[ComputedDefault]], ...] = ()
    """Functions that return further defaults of a raw object. Their input has the schema defaults and valid
    types."""
    advise: tuple[Callable[[Json], list[str]], ...] = ()
    """Functions that return warnings about a valid raw object: legal, but probably not intended."""
    references: Callable[[Json], Iterable[Reference]] = no_references
    """A function that returns the references of a raw object with valid types."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Kind:
    """A namespaced kind with all its served versions, oldest first."""

    group: str
    kind: str
    plural: str
    short_names: tuple[str, ...]
    categories: tuple[str, ...]
    versions: tuple[Version, ...]
    has_conversion: bool = False

    @property
    def storage_version(self) -> Version:
        """Return the storage version, through which all others convert."""
        return next(version for version in self.versions if version.is_storage)

    @property
    def singular(self) -> str:
        """Return the name of one object in command lines."""
        return self.kind.lower()

    @property
    def crd_name(self) -> str:
        """Return the name of the CustomResourceDefinition."""
        return f"{self.plural}.{self.group}"
