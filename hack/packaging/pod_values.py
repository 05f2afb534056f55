"""The types of values that become fields of pods."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from apiserver.kinds.core.names import DnsLabel
from apiserver.schema.declaration import UNSET, Maybe, declaration
from apiserver.schema.markers import Items, Length, Pattern, Range

Text = Annotated[str, Length(1, 1024)]
UnixId = Annotated[int, Range(0, 2**31 - 1)]


@declaration()
class Image:
    """A container image."""

    repository: Text
    """Registry and repository, such as registry.example/platform/stowplan."""

    tag: Annotated[str, Length(maximum=128)] = ""
    """Tag of the image."""

    digest: Annotated[str, Pattern(r"^(sha256:[0-9a-f]{64})?$", says="sha256: and 64 hexadecimal digits")] = (
        ""
    )
    """Digest of the image, such as sha256:…; it replaces the tag."""

    pull_policy: Literal["", "Always", "IfNotPresent", "Never"] = ""
    """When the image is pulled. If empty, the default of Kubernetes."""


@declaration()
class Resources:
    """Requests and limits of a container."""

    requests: Maybe[dict[str, int | str]] = UNSET
    """Resources reserved for it."""

    limits: Maybe[dict[str, int | str]] = UNSET
    """Resources that it may use at most."""


@declaration()
class PodSecurityContext:
    """User of a pod, and group of its files."""

    run_as_user: Maybe[UnixId] = UNSET
    """User ID of the process."""

    fs_group: Maybe[UnixId] = UNSET
    """Group ID of files in volumes."""


@declaration()
class Toleration:
    """A toleration of a taint."""

    key: Maybe[Text] = UNSET
    """Key of the taint. If unset, every key matches with the operator Exists."""

    operator: Maybe[Literal["Equal", "Exists", "Lt", "Gt"]] = UNSET
    """How the value of the taint is compared. Defaults to Equal."""

    value: Maybe[str] = UNSET
    """The value to compare with."""

    effect: Maybe[Literal["NoSchedule", "PreferNoSchedule", "NoExecute"]] = UNSET
    """Effect of the taint. If unset, every effect matches."""

    toleration_seconds: Maybe[int] = UNSET
    """How long the pods stay with the effect NoExecute, in seconds. If unset, they stay forever."""


@declaration()
class TopologySpreadConstraint:
    """How the replicas of each process are spread. Their labels are filled in as the selector."""

    max_skew: Annotated[int, Range(1, 100)]
    """Maximum difference of the numbers of replicas in two domains."""

    topology_key: Text
    """Node label whose values are the domains, such as topology.kubernetes.io/zone."""

    when_unsatisfiable: Literal["DoNotSchedule", "ScheduleAnyway"]
    """What happens to a pod that no node can satisfy."""

    min_domains: Maybe[Annotated[int, Range(1, 1000)]] = UNSET
    """Minimum number of domains."""

    node_affinity_policy: Maybe[Literal["Honor", "Ignore"]] = UNSET
    """Whether nodes that the pod does not select count."""

    node_taints_policy: Maybe[Literal["Honor", "Ignore"]] = UNSET
    """Whether nodes with taints that the pod does not tolerate count."""

    match_label_keys: Maybe[Annotated[tuple[Text, ...], Items(maximum=16)]] = UNSET
    """Labels that must be equal, too. Defaults to pod-template-hash: replicas of one revision."""


@declaration()
class Volume:
    """A volume. Other types are forbidden by the Pod Security Standard `restricted`."""

    name: DnsLabel
    """Name of the volume."""

    config_map: Maybe[dict[str, Any]] = UNSET
    """Files from a ConfigMap."""

    csi: Maybe[dict[str, Any]] = UNSET
    """A volume of a CSI driver, such as that of the Secrets Store."""

    downward_api: Maybe[dict[str, Any]] = UNSET
    """Files with fields of the pod."""

    empty_dir: Maybe[dict[str, Any]] = UNSET
    """An empty directory."""

    ephemeral: Maybe[dict[str, Any]] = UNSET
    """A volume that exists as long as the pod."""

    persistent_volume_claim: Maybe[dict[str, Any]] = UNSET
    """An existing volume."""

    projected: Maybe[dict[str, Any]] = UNSET
    """Files from several sources, such as tokens of service accounts."""

    secret: Maybe[dict[str, Any]] = UNSET
    """Files from a Secret."""


@declaration()
class VolumeMount:
    """A directory or file of a volume in the container."""

    name: DnsLabel
    """Name of the volume."""

    mount_path: Text
    """Path in the container."""

    sub_path: Maybe[Text] = UNSET
    """Path in the volume. With it, changes of a ConfigMap or Secret do not arrive."""

    read_only: Maybe[bool] = UNSET
    """Whether it is read-only."""
