"""What an object has only if its writer may: a service class, and a cost of one's own.

The right is the verb `use` on resources that exist in rules of RBAC only, in the namespace of the
installation. That is where classes and prices are kept, and a tenant who may do everything in the namespaces
of his own has no right there.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

GROUP: Final = "stowplan.dev"
"""API group of the resources."""

USE: Final = "use"
"""The verb."""


@dataclass(frozen=True, kw_only=True, slots=True, order=True)
class Privilege:
    """A resource, and an object of it, as a rule of RBAC names them."""

    resource: str
    name: str = ""

    def __str__(self) -> str:
        """Return `serviceclasses.stowplan.dev "CONFIGMAP/KEY"`."""
        return f"{self.resource}.{GROUP}" + (f' "{self.name}"' if self.name else "")


OWN_COST: Final = Privilege(resource="variantcosts")
"""A cost that is not the listed price of the accelerators."""


def class_privilege(config_map: str, key: str) -> Privilege:
    """Return the privilege of a service class."""
    return Privilege(resource="serviceclasses", name=f"{config_map}/{key}")
