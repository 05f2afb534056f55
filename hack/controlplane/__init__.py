"""A real Kubernetes control plane out of plain processes, without containers.

    with ControlPlane() as control_plane:
        control_plane.kubectl("get", "nodes")

etcd, kube-apiserver, kube-controller-manager and kube-scheduler are the real ones; kwok plays the kubelets.
Each copy has a loopback network of its own, so that copies run side by side, and every pod has an address
on the loopback interface: a simulated engine really listens on its pod's address and port. (The API server
refuses EndpointSlices of such pods: find them by pod discovery, not through Services.) A Service of type
ExternalName to a loopback address stands in for a cluster IP: webhooks, conversion and aggregation call
there, and TLS still checks the name of the Service.

- which Go modules pin the programs: `modules`; finding and building them: `binaries`, `build`, `toolchain`
- kinds of other projects, out of their Go modules: `foreign`
- keys and kubeconfigs: `certificates`, `pki`, `kubeconfig`
- the loopback network and the folder of one copy: `network`, `workspace`
- what is started, and how: `components`, `scraping`, `scheduling`, `stages.yaml`
- keeping it running: `process`, `tether`, `readiness`
- the whole: `controlplane`; nodes to play with: `nodes`; one in the background: `background`
"""

from hack.controlplane.controlplane import ControlPlane
from hack.controlplane.errors import ControlPlaneError

__all__ = ["ControlPlane", "ControlPlaneError"]
