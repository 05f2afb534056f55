"""One real node beside kwok's: kubelet, containerd, runc, CNI and kube-proxy, and Stowplan's own image on it.

    python -m hack.realnode pytest tests/e2e

runs a module where `RealNode` works: in namespaces of its own for network, mounts and processes, which end
with it however it ends, and take every interface, mount, container and process along. No container engine is
needed.

- what a machine must have: `prerequisites`; programs from source: `programs`
- the base of the image out of Debian packages, wheels by the lock file, the build: `base`, `wheels`, `image`
- all that is made before, and handed over: `prepared`
- namespaces, and the cgroup that outlives them: `namespaces`; in them: `network`, `mounts`
- files and command lines of the node: `layout`, `identity`, `containerd`, `kubelet`
- the whole: `node`
"""

from hack.realnode.node import RealNode

__all__ = ["RealNode"]
