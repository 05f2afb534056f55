"""Command lines and configurations of all components."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from hack.controlplane.auditing import LOG_FILE, POLICY_FILE
from hack.controlplane.certificates import PROXY_CLIENT
from hack.controlplane.process import Probe

_CALLS_PER_SECOND = 1000
"""High enough that measurements of placements don't wait for the scheduler's client-side throttling."""


def scheduler_configuration(shipped: Path, *, kubeconfig: str) -> str:
    """Return a shipped configuration adapted to the scheduler of this instance.

    The profiles are unchanged, in addition to the default one; only the client settings are replaced.
    """
    document: dict[str, Any] = yaml.safe_load(shipped.read_text(encoding="utf-8"))
    connection = {"kubeconfig": kubeconfig, "qps": _CALLS_PER_SECOND, "burst": 2 * _CALLS_PER_SECOND}
    changed = {
        "clientConnection": connection,
        "leaderElection": {"leaderElect": False},
        "profiles": [{"schedulerName": "default-scheduler"}, *document["profiles"]],
    }
    return yaml.safe_dump(document | changed)


_META = "__meta_kubernetes_pod"


def prometheus_configuration(*, kubeconfig: str) -> str:
    """Return a configuration that scrapes Running pods annotated with `prometheus.io/scrape: "true"`.

    The port is that of the annotation `prometheus.io/port`. The series have `namespace`, `pod` and all labels
    of the pod, as in usual installations. JSON is YAML.
    """
    annotation = f"{_META}_annotation_prometheus_io"
    relabelings = [
        {"source_labels": [f"{annotation}_scrape"], "regex": "true", "action": "keep"},
        {"source_labels": [f"{_META}_phase"], "regex": "Running", "action": "keep"},
        {
            "source_labels": [f"{_META}_ip", f"{annotation}_port"],
            "separator": ":",
            "target_label": "__address__",
        },
        {"source_labels": ["__meta_kubernetes_namespace"], "target_label": "namespace"},
        {"source_labels": [f"{_META}_name"], "target_label": "pod"},
        {"regex": f"{_META}_label_(.+)", "action": "labelmap"},
    ]
    document = {
        "global": {"scrape_interval": "2s", "scrape_timeout": "2s"},
        "scrape_configs": [
            {
                "job_name": "pods",
                "kubernetes_sd_configs": [{"role": "pod", "kubeconfig_file": kubeconfig}],
                "relabel_configs": relabelings,
            }
        ],
    }
    return json.dumps(document, indent=2)


STAGES = Path(__file__).with_name("stages.yaml")
"""kwok's simulation of nodes and pods."""

SCHEDULER_CONFIGURATION = "kube-scheduler.yaml"
"""File name of kube-scheduler's configuration in an instance's directory, if there is one."""

_AUDIT_LOG_MEBIBYTES = 100_000
"""Maximum log size: it must stay one file, which is read incrementally."""

_FEATURE_GATES = "HPAScaleToZero=true"
"""Allows an HPA with `minReplicas: 0`; enabled by default from Kubernetes 1.37."""

SERVICE_CIDR = "10.96.0.0/16"
"""Cluster IPs of Services; they are not routed unless there is a real node."""

_ETCD = "unix://etcd.socket:0"
"""A socket in the instance's directory, which is the components' working directory (etcd 3.5 needs a port).

Only its owner can open it, so it needs no TLS. That would take a tenth of the CPU time of a start, because
kube-apiserver opens a connection for each resource.
"""

_ADVERTISED_ADDRESS = "192.0.2.1"
"""From a documentation range: loopback is rejected here, and without endpoints nothing connects to it."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Layout:
    """Paths and addresses of one instance."""

    binaries: Mapping[str, Path]
    directory: Path
    address: str
    """The address on which every component listens."""

    ports: Mapping[str, int]
    """The port of each component (of etcd, for its health), and of `etcd-peer`, which is unused."""

    pod_cidr: str
    node_address: str
    is_routed: bool
    """Whether pods can reach the components at `address`."""

    simulated_nodes: str
    """A label selector for kwok's nodes; empty if all nodes are kwok's."""

    admission_plugins: Sequence[str]
    """Enabled in addition to the default ones and NodeRestriction."""

    def pki(self, name: str) -> str:
        """Return the path of a key, certificate or kubeconfig."""
        return str(self.directory / "pki" / name)

    def url(self, component: str, *, scheme: str = "https") -> str:
        """Return the URL of a component."""
        return f"{scheme}://{self.address}:{self.ports[component]}"


@dataclass(frozen=True, kw_only=True, slots=True)
class Component:
    """The command line of one program and its readiness probe."""

    name: str
    command: list[str]
    probe: Probe


def etcd(layout: Layout) -> Component:
    """Return etcd, without fsync, since no data has to survive the machine."""
    unused = layout.url("etcd-peer", scheme="http")
    health = layout.url("etcd", scheme="http")
    flags = {
        "data-dir": str(layout.directory / "etcd"),
        "listen-client-urls": _ETCD,
        "advertise-client-urls": unused,
        "listen-peer-urls": unused,
        "initial-advertise-peer-urls": unused,
        "initial-cluster": f"default={unused}",
        "listen-metrics-urls": health,
        "enable-grpc-gateway": "false",
        "unsafe-no-fsync": "true",
        "log-level": "warn",
    }
    return _component("etcd", layout, flags, probe=Probe(url=f"{health}/health"))


def kube_apiserver(layout: Layout) -> Component:
    """Return the API server; it writes an audit log if there is a policy."""
    flags = {
        "advertise-address": layout.address if layout.is_routed else _ADVERTISED_ADDRESS,
        "bind-address": layout.address,
        "secure-port": str(layout.ports["kube-apiserver"]),
        "tls-cert-file": layout.pki("apiserver.crt"),
        "tls-private-key-file": layout.pki("apiserver.key"),
        "client-ca-file": layout.pki("ca.crt"),
        "authorization-mode": "Node,RBAC",
        "enable-admission-plugins": ",".join(("NodeRestriction", *layout.admission_plugins)),
        "allow-privileged": "true",
        "etcd-servers": _ETCD,
        "endpoint-reconciler-type": "lease" if layout.is_routed else "none",
        "feature-gates": _FEATURE_GATES,
        "service-cluster-ip-range": SERVICE_CIDR,
        "profiling": "false",
    }
    flags |= _service_account_flags(layout) | _aggregation_flags(layout)
    flags |= _kubelet_client_flags(layout) | _audit_flags(layout)
    probe = Probe(
        url=f"{layout.url('kube-apiserver')}/readyz",
        authority=layout.pki("ca.crt"),
        client=layout.pki("admin"),
    )
    return _component("kube-apiserver", layout, flags, probe=probe)


def _service_account_flags(layout: Layout) -> dict[str, str]:
    return {
        "service-account-issuer": "https://kubernetes.default.svc.cluster.local",
        "service-account-key-file": layout.pki("service-account.pub"),
        "service-account-signing-key-file": layout.pki("service-account.key"),
    }


def _aggregation_flags(layout: Layout) -> dict[str, str]:
    return {
        "requestheader-client-ca-file": layout.pki("front-proxy-ca.crt"),
        "requestheader-allowed-names": PROXY_CLIENT,
        "requestheader-username-headers": "X-Remote-User",
        "requestheader-group-headers": "X-Remote-Group",
        "requestheader-extra-headers-prefix": "X-Remote-Extra-",
        "proxy-client-cert-file": layout.pki("front-proxy-client.crt"),
        "proxy-client-key-file": layout.pki("front-proxy-client.key"),
    }


def _kubelet_client_flags(layout: Layout) -> dict[str, str]:
    """Return the flags for calls to kubelets by address, since no DNS resolves node names."""
    return {
        "kubelet-certificate-authority": layout.pki("ca.crt"),
        "kubelet-client-certificate": layout.pki("kubelet-client.crt"),
        "kubelet-client-key": layout.pki("kubelet-client.key"),
        "kubelet-preferred-address-types": "InternalIP",
    }


def _audit_flags(layout: Layout) -> dict[str, str]:
    policy = layout.directory / POLICY_FILE
    if not policy.exists():
        return {}
    return {
        "audit-policy-file": str(policy),
        "audit-log-path": str(layout.directory / LOG_FILE),
        "audit-log-maxsize": str(_AUDIT_LOG_MEBIBYTES),
    }


def kube_controller_manager(layout: Layout) -> Component:
    """Return the controller manager, with an HPA controller that acts within seconds.

    The downscale stabilization applies to HPAs that set none; the default of five minutes would hide
    scale-downs.
    """
    flags = {
        **_follower_flags(layout, "kube-controller-manager"),
        "use-service-account-credentials": "true",
        "service-account-private-key-file": layout.pki("service-account.key"),
        "root-ca-file": layout.pki("ca.crt"),
        "cluster-signing-cert-file": layout.pki("ca.crt"),
        "cluster-signing-key-file": layout.pki("ca.key"),
        "feature-gates": _FEATURE_GATES,
        "horizontal-pod-autoscaler-sync-period": "2s",
        "horizontal-pod-autoscaler-downscale-stabilization": "10s",
        "horizontal-pod-autoscaler-initial-readiness-delay": "1s",
        "horizontal-pod-autoscaler-cpu-initialization-period": "1s",
    }
    return _component(
        "kube-controller-manager", layout, flags, probe=_follower_probe(layout, "kube-controller-manager")
    )


def kube_scheduler(layout: Layout) -> Component:
    """Return the scheduler, with the configuration in the instance's directory if there is one."""
    configuration = layout.directory / SCHEDULER_CONFIGURATION
    if configuration.exists():
        flags = _serving_flags(layout, "kube-scheduler") | {"config": str(configuration)}
    else:
        flags = _follower_flags(layout, "kube-scheduler")
    return _component("kube-scheduler", layout, flags, probe=_follower_probe(layout, "kube-scheduler"))


def _serving_flags(layout: Layout, name: str) -> dict[str, str]:
    return {
        "bind-address": layout.address,
        "secure-port": str(layout.ports[name]),
        "tls-cert-file": layout.pki("component.crt"),
        "tls-private-key-file": layout.pki("component.key"),
    }


def _follower_flags(layout: Layout, name: str) -> dict[str, str]:
    """Return the flags that the controller manager and the scheduler have in common."""
    return _serving_flags(layout, name) | {
        "kubeconfig": layout.pki(f"{name}.kubeconfig"),
        "leader-elect": "false",
        "kube-api-qps": "200",
        "kube-api-burst": "400",
        "profiling": "false",
    }


def _follower_probe(layout: Layout, name: str) -> Probe:
    return Probe(url=f"{layout.url(name)}/healthz", authority=layout.pki("ca.crt"))


def kwok(layout: Layout) -> Component:
    """Return kwok, which simulates kubelets; pods get addresses that are local to this machine."""
    flags = {
        "kubeconfig": layout.pki("kwok.kubeconfig"),
        "config": str(STAGES),
        **(
            {"manage-nodes-with-label-selector": layout.simulated_nodes}
            if layout.simulated_nodes
            else {"manage-all-nodes": "true"}
        ),
        "cidr": layout.pod_cidr,
        "node-ip": layout.node_address,
        "node-lease-duration-seconds": "40",
        "server-address": f"{layout.address}:{layout.ports['kwok']}",
    }
    return _component("kwok", layout, flags, probe=Probe(url=f"{layout.url('kwok', scheme='http')}/healthz"))


def prometheus(layout: Layout) -> Component:
    """Return Prometheus, which scrapes annotated pods."""
    flags = {
        "config.file": str(layout.directory / "prometheus.yaml"),
        "storage.tsdb.path": str(layout.directory / "prometheus"),
        "web.listen-address": f"{layout.address}:{layout.ports['prometheus']}",
    }
    url = layout.url("prometheus", scheme="http")
    return _component("prometheus", layout, flags, probe=Probe(url=f"{url}/-/ready"))


FOLLOWERS: Mapping[str, Callable[[Layout], Component]] = {
    "kube-controller-manager": kube_controller_manager,
    "kube-scheduler": kube_scheduler,
    "kwok": kwok,
    "prometheus": prometheus,
}
"""Optional components besides etcd and kube-apiserver."""


def _component(name: str, layout: Layout, flags: Mapping[str, str], *, probe: Probe) -> Component:
    command = [str(layout.binaries[name]), *(f"--{flag}={value}" for flag, value in flags.items())]
    return Component(name=name, command=command, probe=probe)
