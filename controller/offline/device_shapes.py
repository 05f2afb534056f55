"""The fields that planning reads of Dynamic Resource Allocation (`resource.k8s.io`).

Fields of requests and devices are accepted in the structure of `v1` and in that of `v1beta1`.
"""

from __future__ import annotations

from typing import Annotated

from apiserver.schema.declaration import UNSET, Maybe, declaration
from apiserver.schema.markers import Range
from controller.offline.pod_shapes import Metadata


@declaration()
class Attribute:
    """An attribute of a device: a string, or a value of another type, which is ignored."""

    string: Maybe[str] = UNSET


@declaration()
class DeviceTaint:
    """A taint of a device."""

    effect: str


@declaration()
class BasicDevice:
    """The fields of a device that `v1beta1` nests under `basic`."""

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
    """The pool of a slice's devices, with its generation and number of slices."""

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
    """A request for devices of one class, or for the first available of several alternatives."""

    name: str
    exactly: Maybe[ExactRequest] = UNSET
    first_available: Maybe[tuple[ExactRequest, ...]] = UNSET
    device_class_name: Maybe[str] = UNSET
    allocation_mode: Maybe[str] = UNSET
    count: Maybe[Annotated[int, Range(1)]] = UNSET
    admin_access: Maybe[bool] = UNSET


@declaration()
class Requests:
    """The device requests of a claim."""

    requests: Maybe[tuple[Request, ...]] = UNSET


@declaration()
class ClaimSpec:
    """The specification of a claim."""

    devices: Maybe[Requests] = UNSET


@declaration()
class AllocatedDevice:
    """A device that is allocated to a claim."""

    driver: str
    pool: str
    device: str
    admin_access: Maybe[bool] = UNSET


@declaration()
class AllocatedDevices:
    """The devices that are allocated to a claim."""

    results: Maybe[tuple[AllocatedDevice, ...]] = UNSET


@declaration()
class Allocation:
    """The allocation of a claim."""

    devices: Maybe[AllocatedDevices] = UNSET


@declaration()
class ClaimStatus:
    """The status of a claim, with its allocation if any."""

    allocation: Maybe[Allocation] = UNSET


@declaration()
class ResourceClaim:
    """A ResourceClaim."""

    metadata: Metadata
    spec: Maybe[ClaimSpec] = UNSET
    status: Maybe[ClaimStatus] = UNSET


@declaration()
class TemplateSpec:
    """The template of claims."""

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
    """A selector of devices."""

    cel: Maybe[Expression] = UNSET


@declaration()
class DeviceClassSpec:
    """The selectors of a device class."""

    selectors: Maybe[tuple[DeviceSelector, ...]] = UNSET


@declaration()
class DeviceClass:
    """A DeviceClass."""

    metadata: Metadata
    spec: Maybe[DeviceClassSpec] = UNSET
