"""References to other objects. Length limits are ours where the API server has none."""

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
    """A reference to an object in the same namespace.

    The name is required. The upstream type allows an empty one, but an object with such a reference has no
    effect.
    """

    name: DnsSubdomain
    """The name of the object."""


@declaration()
class ObjectReference:
    """A reference to an object. The referring kind determines which fields are required."""

    api_version: Maybe[ApiVersion] = UNSET
    """The API version of the object, such as `apps/v1`."""

    kind: Maybe[KindNameOrEmpty] = UNSET
    """The kind of the object, such as `Deployment`."""

    namespace: Maybe[DnsLabelOrEmpty] = UNSET
    """The namespace of the object. Defaults to the namespace of the referring object."""

    name: Maybe[DnsSubdomainOrEmpty] = UNSET
    """The name of the object."""

    uid: Maybe[Annotated[str, Length(maximum=64)]] = UNSET
    """The UID of the object, which differs from that of a later object with the same name."""

    resource_version: Maybe[Annotated[str, Length(maximum=64)]] = UNSET
    """The resource version of the object."""

    field_path: Maybe[Annotated[str, Length(maximum=1024)]] = UNSET
    """The part of the object that is referred to, such as `spec.containers{engine}`."""
