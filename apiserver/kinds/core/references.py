"""References to other objects. Bounds on lengths are ours where the API server has none."""

from __future__ import annotations

from typing import Annotated

from apiserver.kinds.core.names import (
    ApiVersion,
    DnsLabelOrEmpty,
    DnsSubdomain,
    DnsSubdomainOrEmpty,
    KindNameOrEmpty,
)
from apiserver.schema.declaration import UNSET, Maybe, declaration
from apiserver.schema.markers import Length


@declaration()
class LocalObjectReference:
    """The name of an object in the same namespace.

    The name is required: upstream took a reference without one, and whatever held it did nothing.
    """

    name: DnsSubdomain
    """Name of the object."""


@declaration()
class ObjectReference:
    """Enough to find an object. What must be set depends on who refers."""

    api_version: Maybe[ApiVersion] = UNSET
    """Group and version of the object, such as `apps/v1`."""

    kind: Maybe[KindNameOrEmpty] = UNSET
    """Kind of the object, such as `Deployment`."""

    namespace: Maybe[DnsLabelOrEmpty] = UNSET
    """Namespace of the object. Without it: the one of the object that refers."""

    name: Maybe[DnsSubdomainOrEmpty] = UNSET
    """Name of the object."""

    uid: Maybe[Annotated[str, Length(maximum=64)]] = UNSET
    """Identifier of exactly that object, which one of the same name that is made later does not have."""

    resource_version: Maybe[Annotated[str, Length(maximum=64)]] = UNSET
    """The stored state of the object that is meant."""

    field_path: Maybe[Annotated[str, Length(maximum=1024)]] = UNSET
    """The part of the object that is meant, such as `spec.containers{engine}`."""
