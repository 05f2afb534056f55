"""What a kind is beyond its fields: names, versions, printer columns. Data only."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

import msgspec

from apiserver.schema.json import Json, JsonValue
from apiserver.schema.paths import FieldPath


@dataclass(frozen=True, kw_only=True, slots=True)
class Column:
    """One column of `kubectl get`; priority above 0 shows in `-o wide` only."""

    name: str
    type: str
    json_path: str
    description: str
    priority: int = 0


class Filled(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """A default that a schema cannot say because it depends on other fields: webhook only.

    Where the parent of `path` (JSON names and positions from the root) is there and nothing stands at it,
    `value` is filled in and belongs to the object from then on; the `warning` is shown to the requester when
    it is not empty.
    """

    path: tuple[str | int, ...]
    value: JsonValue
    warning: str = ""


class Reference(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """Another object that an object names, by the path of the field that does.

    It is in the same namespace, or in that of the installation (`is_settings`), where prices and service
    classes are kept. `is_scaled` tells that its number of replicas is changed on behalf of the writer.
    """

    path: FieldPath
    group: str
    kind: str
    name: str
    key: str = ""
    """Key of a ConfigMap; empty where the object as a whole is meant."""
    is_scaled: bool = False
    bounds: tuple[int, ...] = ()
    """Within which it is scaled, where the writer says so: changing them takes the same permission."""
    is_settings: bool = False


def _no_references(_: Json) -> Iterable[Reference]:
    return ()


@dataclass(frozen=True, kw_only=True, slots=True)
class Version:
    """One version of a kind: the root declaration has `spec` and `status`."""

    name: str
    declaration: type
    columns: tuple[Column, ...]
    is_storage: bool = False
    deprecation_warning: str = ""
    fill: tuple[Callable[[Json], Iterable[Filled]], ...] = ()
    """Functions from a raw object, whose schema defaults are there and whose types are right, to what else
    is filled in."""
    advise: tuple[Callable[[Json], list[str]], ...] = ()
    """Functions from a valid raw object to warnings: legal, but probably not what the author wants."""
    references: Callable[[Json], Iterable[Reference]] = _no_references
    """From a raw object whose types are right to the other objects that it names."""

    @property
    def names_others(self) -> bool:
        """Tell whether objects of this version name any others."""
        return self.references is not _no_references


@dataclass(frozen=True, kw_only=True, slots=True)
class Kind:
    """One namespaced kind with all its served versions, oldest first."""

    group: str
    kind: str
    plural: str
    singular: str
    short_names: tuple[str, ...]
    categories: tuple[str, ...]
    versions: tuple[Version, ...]
    has_conversion: bool = False

    def version(self, name: str) -> Version:
        """Return the version of that name. Raises KeyError for a version that is not served."""
        for version in self.versions:
            if version.name == name:
                return version
        raise KeyError(f"{self.kind}.{self.group} has no version {name!r}")

    @property
    def storage_version(self) -> Version:
        """Return the version that is stored, through which all others convert."""
        return next(version for version in self.versions if version.is_storage)

    @property
    def crd_name(self) -> str:
        """Return the name of the CustomResourceDefinition."""
        return f"{self.plural}.{self.group}"
