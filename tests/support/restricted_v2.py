"""The rules of `restricted-v2`, the SecurityContextConstraints of OpenShift for the pods of most accounts.

Source: the manifest of `restricted-v2` in openshift/cluster-kube-apiserver-operator, and the strategies of
openshift/apiserver-library-go. Ids that a pod does not set are assigned from the range of its namespace.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

Pod = Mapping[str, Any]
VOLUMES: Final = frozenset(
    {
        "configMap",
        "csi",
        "downwardAPI",
        "emptyDir",
        "ephemeral",
        "persistentVolumeClaim",
        "projected",
        "secret",
    }
)


def _contexts(pod: Pod) -> Iterator[Mapping[str, Any]]:
    """Yield the effective security context of each container."""
    of_pod = pod.get("securityContext", {})
    for container in (*pod.get("initContainers", []), *pod["containers"]):
        yield {**of_pod, **container.get("securityContext", {})}


def _every(pod: Pod, test: Callable[[Mapping[str, Any]], bool]) -> bool:
    return all(test(context) for context in _contexts(pod))


RULES: Final[Mapping[str, Callable[[Pod], bool]]] = {
    "no namespace of the host is shared": lambda pod: (
        not any(pod.get(name) for name in ("hostNetwork", "hostPID", "hostIPC"))
    ),
    "no port of the host is used": lambda pod: (
        not any(
            port.get("hostPort") for container in pod["containers"] for port in container.get("ports", [])
        )
    ),
    "only the allowed types of volumes are mounted": lambda pod: all(
        volume.keys() - {"name"} <= VOLUMES for volume in pod.get("volumes", [])
    ),
    "no user and no group of files is fixed": lambda pod: _every(
        pod, lambda context: not context.keys() & {"runAsUser", "fsGroup"}
    ),
    "the user is not root": lambda pod: _every(pod, lambda context: context.get("runAsNonRoot") is True),
    "all capabilities are dropped and at most NET_BIND_SERVICE is added": lambda pod: _every(
        pod,
        lambda context: (
            context.get("capabilities", {}).get("drop") == ["ALL"]
            and {*context["capabilities"].get("add", [])} <= {"NET_BIND_SERVICE"}
        ),
    ),
    "no container is privileged": lambda pod: _every(pod, lambda context: not context.get("privileged")),
    "privileges cannot be gained": lambda pod: _every(
        pod, lambda context: context.get("allowPrivilegeEscalation") is False
    ),
    "system calls are filtered": lambda pod: _every(
        pod, lambda context: context.get("seccompProfile") == {"type": "RuntimeDefault"}
    ),
    "the SELinux context is that of the namespace": lambda pod: _every(
        pod, lambda context: "seLinuxOptions" not in context
    ),
}
"""Whether a pod's specification satisfies each rule."""


def violations(pod: Pod) -> list[str]:
    """Return the rules that a pod's specification violates."""
    return [rule for rule, holds in RULES.items() if not holds(pod)]
