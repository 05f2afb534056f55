"""Affinity: scheduling constraints of a pod on nodes and on other pods."""

from __future__ import annotations

from apiserver.kinds.core.nodeaffinity import NodeAffinity
from apiserver.kinds.core.podaffinity import PodAffinity, PodAntiAffinity
from apiserver.schema.declaration import UNSET, Maybe, declaration


@declaration()
class Affinity:
    """The scheduling constraints of a pod."""

    node_affinity: Maybe[NodeAffinity] = UNSET
    """The nodes that the pod must or should run on."""

    pod_affinity: Maybe[PodAffinity] = UNSET
    """The pods that the pod must or should be co-located with, in the same node or zone."""

    pod_anti_affinity: Maybe[PodAntiAffinity] = UNSET
    """The pods that the pod must or should not be co-located with, in the same node or zone."""
