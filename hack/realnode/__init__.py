"""One real node beside kwok's: kubelet, containerd, runc, CNI and kube-proxy, and Stowplan's own image on it.

    python -m hack.realnode pytest -m e2e

runs a command where `RealNode` works: in namespaces of its own for network, mounts and processes, which end with the
command however it ends, and take every interface, mount, container and process with them. No container engine is
needed. What the command needs is there when it starts.

- what a machine must have: `prerequisites`; programs from source: `programs`
- the base of the image out of Debian packages, wheels by the lock file, the build: `base`, `wheels`, `image`
- namespaces, and the cgroup that outlives them: `namespaces`
- in them: `network`, `mounts`; files and command lines of the node: `layout`, `identity`, `containerd`, `kubelet`
- the whole: `node`
"""

from hack.realnode.node import RealNode

__all__ = ["RealNode"]
