"""Privileges that the writer of an object needs: to use a service class, or to set a cost of their own.

Each is the verb `use` on a virtual resource that exists in RBAC rules only, in the namespace of the
installation. Service classes and unit costs are stored in that namespace, so a tenant with full rights in
their own namespaces does not have the privilege.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

GROUP: Final = "stowplan.dev"
"""The API group of the virtual resources."""

USE: Final = "use"
"""The RBAC verb."""


@dataclass(frozen=True, kw_only=True, slots=True, order=True)
class Privilege:
    """A virtual resource and the name of an object of it, as an RBAC rule names them."""

    resource: str
    name: str = ""

    def __str__(self) -> str:
        """Return `serviceclasses.stowplan.dev "CONFIGMAP/KEY"`."""
        return f"{self.resource}.{GROUP}" + (f' "{self.name}"' if self.name else "")


OWN_COST: Final = Privilege(resource="variantcosts")
"""The privilege to set a cost that differs from the unit cost of the accelerators."""


def class_privilege(config_map: str, key: str) -> Privilege:
    """Return the privilege to use a service class."""
    return Privilege(resource="serviceclasses", name=f"{config_map}/{key}")
