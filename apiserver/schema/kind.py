"""What a kind is beyond its fields: names, versions, printer columns. Data only."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from apiserver.schema.json import Json, JsonValue


@dataclass(frozen=True, kw_only=True, slots=True)
class Column:
    """One column of `kubectl get`; priority above 0 shows in `-o wide` only."""

    name: str
    type: str
    json_path: str
    description: str
    priority: int = 0


@dataclass(frozen=True, kw_only=True, slots=True)
class ObjectDefault:
    """A default that a schema cannot say because it depends on other fields: webhook only.

    `applies` gets the whole raw object; where it holds and nothing stands at `path` (JSON names from the
    root), `value` is filled in and `warning` is shown to the requester when it is not empty.
    """

    path: tuple[str, ...]
    value: JsonValue
    applies: Callable[[Json], bool]
    warning: str = ""


@dataclass(frozen=True, kw_only=True, slots=True)
class Version:
    """One version of a kind: the root declaration has `spec` and `status`."""

    name: str
    declaration: type
    columns: tuple[Column, ...]
    is_storage: bool = False
    deprecation_warning: str = ""
    defaults: tuple[ObjectDefault, ...] = ()
    advise: tuple[Callable[[Json], list[str]], ...] = ()
    """Functions from a valid raw object to warnings: legal, but probably not what the author wants."""


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
