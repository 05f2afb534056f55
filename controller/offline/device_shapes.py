"""What planning reads of Dynamic Resource Allocation (`resource.k8s.io`): devices, and claims to them.

Members of requests and devices stand where `v1` has them, or where `v1beta1` had them.
"""

from __future__ import annotations

from typing import Annotated

from apiserver.schema.declaration import UNSET, Maybe, declaration
from apiserver.schema.markers import Range
from controller.offline.pod_shapes import Metadata


@declaration()
class Attribute:
    """What a driver says of a device: a text, or a value of another type, which is not read."""

    string: Maybe[str] = UNSET


@declaration()
class DeviceTaint:
    """A refusal of claims."""

    effect: str


@declaration()
class BasicDevice:
    """What stood apart from the name in `v1beta1`."""

    attributes: Maybe[dict[str, Attribute]] = UNSET


@declaration()
class Device:
    """A device that can be claimed."""

    name: str
    attributes: Maybe[dict[str, Attribute]] = UNSET
    basic: Maybe[BasicDevice] = UNSET
    taints: Maybe[tuple[DeviceTaint, ...]] = UNSET


@declaration()
class Pool:
    """Which devices belong together, and how often they were described anew."""

    name: str
    generation: Maybe[int] = UNSET
    resource_slice_count: Maybe[int] = UNSET


@declaration()
class SliceSpec:
    """Devices of one driver, of one node or of many."""

    driver: str
    node_name: Maybe[str] = UNSET
    pool: Pool
    devices: Maybe[tuple[Device, ...]] = UNSET


@declaration()
class ResourceSlice:
    """A ResourceSlice."""

    metadata: Metadata
    spec: SliceSpec


@declaration()
class ExactRequest:
    """A request for devices of one class."""

    device_class_name: Maybe[str] = UNSET
    allocation_mode: Maybe[str] = UNSET
    count: Maybe[Annotated[int, Range(1)]] = UNSET
    admin_access: Maybe[bool] = UNSET


@declaration()
class Request:
    """A request for devices of one class, or of the first of several that can be had."""

    name: str
    exactly: Maybe[ExactRequest] = UNSET
    first_available: Maybe[tuple[ExactRequest, ...]] = UNSET
    device_class_name: Maybe[str] = UNSET
    allocation_mode: Maybe[str] = UNSET
    count: Maybe[Annotated[int, Range(1)]] = UNSET
    admin_access: Maybe[bool] = UNSET


@declaration()
class Requests:
    """What a claim is for."""

    requests: Maybe[tuple[Request, ...]] = UNSET


@declaration()
class ClaimSpec:
    """What a claim asks for."""

    devices: Maybe[Requests] = UNSET


@declaration()
class AllocatedDevice:
    """A device that a claim holds."""

    driver: str
    pool: str
    device: str
    admin_access: Maybe[bool] = UNSET


@declaration()
class AllocatedDevices:
    """The devices that a claim holds."""

    results: Maybe[tuple[AllocatedDevice, ...]] = UNSET


@declaration()
class Allocation:
    """What a claim was given."""

    devices: Maybe[AllocatedDevices] = UNSET


@declaration()
class ClaimStatus:
    """Whether a claim was given anything."""

    allocation: Maybe[Allocation] = UNSET


@declaration()
class ResourceClaim:
    """A ResourceClaim."""

    metadata: Metadata
    spec: Maybe[ClaimSpec] = UNSET
    status: Maybe[ClaimStatus] = UNSET


@declaration()
class TemplateSpec:
    """What claims are made of."""

    spec: Maybe[ClaimSpec] = UNSET


@declaration()
class ResourceClaimTemplate:
    """A ResourceClaimTemplate."""

    metadata: Metadata
    spec: TemplateSpec


@declaration()
class Expression:
    """A condition in CEL."""

    expression: Maybe[str] = UNSET


@declaration()
class DeviceSelector:
    """Which devices are of a class."""

    cel: Maybe[Expression] = UNSET


@declaration()
class DeviceClassSpec:
    """Which devices are of a class."""

    selectors: Maybe[tuple[DeviceSelector, ...]] = UNSET


@declaration()
class DeviceClass:
    """A DeviceClass."""

    metadata: Metadata
    spec: Maybe[DeviceClassSpec] = UNSET
