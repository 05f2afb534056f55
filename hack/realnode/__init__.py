"""One real node besides kwok's: kubelet, containerd, runc, CNI and kube-proxy, running Stowplan's own image.

    python -m hack.realnode pytest tests/e2e

runs a module in its own network, mount and process namespaces, where `RealNode` works. However the module
ends, the namespaces end with it, together with all interfaces, mounts, containers and processes. No container
engine is needed.

- requirements on the machine: `prerequisites`; everything prepared in advance and passed on: `prepared`
- base image from Debian packages, with wheels by the lock file, and the build: `base`, `image`
- namespaces, and the cgroup that outlives them: `namespaces`; inside them: `network`
- files and command lines of the node: `kubelet`
- the node: `node`
"""

from hack.realnode.node import RealNode

__all__ = ["RealNode"]
