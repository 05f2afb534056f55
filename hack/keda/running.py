"""Installs KEDA on a running control plane and runs its operator and its metrics adapter."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self

import yaml

from apiserver.schema.json import Json
from hack.controlplane import ControlPlane
from hack.controlplane.certificates import Authority, write_secret
from hack.controlplane.process import Probe, Process, wait_until_ready
from hack.controlplane.progress import ProgressLine
from hack.installation.manifests import EXTERNAL_METRICS, documents, registration
from hack.keda.programs import provide_keda

NAMESPACE: Final = "keda"
_ACCOUNT: Final = "keda-operator"
_ADAPTER: Final = "keda-metrics-apiserver"
_FOLDERS: Final = ("crd/bases", "rbac", "service_account", "metrics-server")
_APPLIED: Final = frozenset(
    {
        "ClusterRole",
        "ClusterRoleBinding",
        "CustomResourceDefinition",
        "Role",
        "RoleBinding",
        "ServiceAccount",
    }
)
_PATIENCE_SECONDS: Final = 60.0


class Keda:
    """KEDA from `start` to `stop`. Its external metrics API is registered separately, by `take_over`."""

    def __init__(self, control_plane: ControlPlane, *, authorities: bytes = b"") -> None:
        """Create it; `authorities` (PEM) are trusted by its scalers in addition to those of the system."""
        self._control_plane = control_plane
        self._directory = control_plane.directory / "keda"
        self._authorities = authorities
        self._authority = Authority.create("keda")
        self._processes: list[Process] = []
        self._address = control_plane.allocate_address()

    def __enter__(self) -> Self:
        try:
            self.start()
        except BaseException:
            self.stop()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def start(self) -> None:
        """Build, install and run KEDA; wait until it is ready. Raises ControlPlaneError."""
        programs = provide_keda(ProgressLine())
        control_plane = self._control_plane
        control_plane.kubectl("create", "namespace", NAMESPACE)
        manifests = list(_manifests(programs / "config"))
        apply = ("apply", "--server-side", "--force-conflicts", "--field-manager=keda", "--filename=-")
        control_plane.kubectl(*apply, input=documents(manifests))
        names = [item["metadata"]["name"] for item in manifests if item["kind"] == "CustomResourceDefinition"]
        control_plane.wait_until_established(*names)
        self._write_certificates()
        for name, port in (("operator", 8081), ("adapter", 6443)):
            process = self._process(programs / name)
            self._processes.append(process)
            process.start()
            url = f"{'http' if name == 'operator' else 'https'}://{self._address}:{port}/readyz"
            probe = Probe(url=url, authority=str(self._certificates / "ca.crt"))
            wait_until_ready(process, probe, patience_seconds=_PATIENCE_SECONDS)

    def stop(self) -> None:
        """Kill its processes; its objects stay."""
        for process in reversed(self._processes):
            process.stop(patience_seconds=0.0)

    def take_over(self) -> None:
        """Register the external metrics API for its adapter, as its manifests do, whoever has it."""
        service: Json = {
            "apiVersion": "v1",
            "kind": "Service",
            "metadata": {"name": _ADAPTER, "namespace": NAMESPACE},
            "spec": {"type": "ExternalName", "externalName": self._address, "ports": [{"port": 6443}]},
        }
        reference = {"name": _ADAPTER, "namespace": NAMESPACE, "port": 6443}
        authorities = self._authority.pair.certificate
        claim = registration(*EXTERNAL_METRICS, reference, authorities=authorities)
        self._control_plane.apply(service, claim)

    @property
    def _certificates(self) -> Path:
        return self._directory / "certificates"

    def _write_certificates(self) -> None:
        """Write what KEDA's own rotation would: one pair, with which both programs serve and call."""
        names = (f"{_ADAPTER}.{NAMESPACE}.svc", self._address)
        pair = self._authority.server(_ACCOUNT, names=names, is_client=True)
        trusted = self._directory / "trusted"
        for folder in (self._certificates, trusted):
            folder.mkdir(parents=True)
        (self._certificates / "ca.crt").write_bytes(self._authority.pair.certificate)
        (self._certificates / "tls.crt").write_bytes(pair.certificate)
        write_secret(self._certificates / "tls.key", pair.key)
        (trusted / "ca.crt").write_bytes(self._authorities)

    def _process(self, program: Path) -> Process:
        kubeconfig = self._control_plane.service_account_kubeconfig(NAMESPACE, _ACCOUNT)
        env = shutil.which("env")
        assert env is not None
        variables = [f"KUBECONFIG={kubeconfig}", "WATCH_NAMESPACE=", f"POD_NAMESPACE={NAMESPACE}"]
        variables += [f"KEDA_CLUSTER_OBJECT_NAMESPACE={NAMESPACE}", "KEDA_HTTP_DEFAULT_TIMEOUT=3000"]
        is_operator = program.name == "operator"
        values = self._operator_flags() if is_operator else self._adapter_flags(str(kubeconfig))
        flags = [f"--{name}={value}" for name, value in values.items()]
        command = [env, *variables, str(program), *flags]
        return Process(f"keda-{program.name}", command, directory=self._control_plane.directory)

    def _operator_flags(self) -> dict[str, Any]:
        return {
            "metrics-bind-address": "0",
            "health-probe-bind-address": f"{self._address}:8081",
            "metrics-service-bind-address": f"{self._address}:9666",
            "cert-dir": self._certificates,
            "ca-dir": self._directory / "trusted",
            "enable-webhook-patching": "false",
            "enable-apiservice-patching": "false",
            "zap-log-level": "info",
        }

    def _adapter_flags(self, kubeconfig: str) -> dict[str, Any]:
        return {
            "bind-address": self._address,
            "secure-port": 6443,
            "metrics-service-address": f"{self._address}:9666",
            "port": 8082,
            "client-ca-file": self._certificates / "ca.crt",
            "tls-cert-file": self._certificates / "tls.crt",
            "tls-private-key-file": self._certificates / "tls.key",
            "cert-dir": self._certificates,
            "lister-kubeconfig": kubeconfig,
            "authentication-kubeconfig": kubeconfig,
            "authorization-kubeconfig": kubeconfig,
        }


def _manifests(config: Path) -> Iterator[Json]:
    """Yield KEDA's definitions, accounts and rights, of all its manifests."""
    for folder in _FOLDERS:
        for file in sorted((config / folder).glob("*.yaml")):
            for item in yaml.load_all(file.read_text(encoding="utf-8"), Loader=yaml.CSafeLoader):
                if item and item.get("kind") in _APPLIED:
                    yield item
