"""A real Kubernetes control plane of plain processes, without containers.

    with ControlPlane() as control_plane:
        control_plane.kubectl("get", "nodes")

etcd, kube-apiserver, kube-controller-manager and kube-scheduler are the real ones; kwok simulates the
kubelets. Each instance has its own loopback network, so that several run side by side. Every pod has an
address on the loopback interface, so a simulated engine can listen on its pod's address and port. (The API
server rejects EndpointSlices with such addresses: find pods by pod discovery, not through Services.) A
Service of type ExternalName with a loopback address replaces a cluster IP: webhooks, conversion and
aggregation call it, and TLS still verifies the name of the Service.

- pinned Go modules of the programs: `modules`; finding and building them: `binaries`, `build`
- kinds of other projects, from their Go modules: `foreign`
- keys and kubeconfigs: `certificates`; loopback network of one instance: `network`
- command lines and configurations: `components`, `stages.yaml`
- supervision: `process`, `tether`; long work: `progress`; errors: `errors`
- built programs and files of instances: `cache`; frequent requests: `client`
- what the API server did: `auditing`
- the control plane: `controlplane`; simulated nodes: `nodes`; one in the background: `background`
"""

from hack.controlplane.controlplane import ControlPlane
from hack.controlplane.errors import ControlPlaneError

__all__ = ["ControlPlane", "ControlPlaneError"]
