"""Where pods may run: by nodes, and by the pods that run there already."""

from __future__ import annotations

from apiserver.kinds.core.nodeaffinity import NodeAffinity
from apiserver.kinds.core.podaffinity import PodAffinity, PodAntiAffinity
from apiserver.schema.declaration import UNSET, Maybe, declaration


@declaration()
class Affinity:
    """Where a pod may run."""

    node_affinity: Maybe[NodeAffinity] = UNSET
    """Which nodes the pod must or should run on."""

    pod_affinity: Maybe[PodAffinity] = UNSET
    """Which other pods the pod must or should run near."""

    pod_anti_affinity: Maybe[PodAntiAffinity] = UNSET
    """Which other pods the pod must or should keep away from."""
