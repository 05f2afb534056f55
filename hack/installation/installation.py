"""Installs Stowplan on a running control plane and runs its processes."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self

import yaml

from apiserver.schema.json import Json
from hack.controlplane import ControlPlane
from hack.controlplane.errors import NotReadyError
from hack.controlplane.process import Probe, Process, wait_until_ready
from hack.installation.manifests import ROOT, adapt, documents, kustomization
from hack.installation.mounts import SecretMount

NAMESPACE: Final = "stowplan-system"
COMPONENTS: Final = ("controller", "webhooks", "apiserver")
"""In the order of starting: the controller issues the certificates that the others wait for."""

_SERVICES: Final = {
    "stowplan-webhooks": "webhooks",
    "stowplan-conversion": "webhooks",
    "stowplan-apiserver": "apiserver",
}
_HEALTH_PORT: Final = 8081
_METRICS_PORT: Final = 8080
_PATIENCE_SECONDS: Final = 30.0
_POLL_SECONDS: Final = 0.1


class Installation:
    """Stowplan from `start` to `stop`; each process can be killed and restarted separately.

    `manifests` is the folder installed into `namespace`, with `components`. `settings` are merged into
    the configuration documents, by process; those of components must be repeated there. `apply` applies the
    manifests instead of kubectl. `without_definitions` leaves the definitions to `stowplan upgrade`; the
    controller is not ready before that. `source` is the tree with the manifests and the code, and
    `certificates` the name pattern of the processes' Secrets.
    """

    def __init__(
        self,
        control_plane: ControlPlane,
        *,
        manifests: str = "overlays/every-kind",
        namespace: str = NAMESPACE,
        settings: Mapping[str, dict[str, Any]] | None = None,
        components: Sequence[str] = (),
        apply: Callable[[list[Json]], object] | None = None,
        without_definitions: bool = False,
        source: Path = ROOT,
        certificates: str = "stowplan-{}-certificate",
    ) -> None:
        self._control_plane = control_plane
        self._manifests = "overlays/without-crds" if without_definitions else manifests
        self._namespace = namespace
        self._settings = settings or {}
        self._components = components
        self._apply_with = apply
        self._without_definitions = without_definitions
        self._source = source
        self._certificates = certificates
        self._processes: dict[str, Process] = {}
        self._mounts: dict[str, SecretMount] = {}
        self._addresses: dict[str, str] = {}

    def start(self, *, without: frozenset[str] = frozenset()) -> None:
        """Apply the manifests, start all components but those in `without`, and wait until they are ready.

        Raises ControlPlaneError with the tail of a log if one of them does not become ready.
        """
        self._addresses = {name: self._control_plane.allocate_address() for name in COMPONENTS}
        self._apply()
        for name in COMPONENTS:
            self._prepare(name)
        components = [name for name in COMPONENTS if name not in without]
        for name in components:
            self._begin(name)
        for name in components:  # together, as the controller needs the webhooks for conversion
            self._wait_until_ready(name)
        if "apiserver" not in without:
            self._wait_for_api()

    def stop(self) -> None:
        """Stop the processes together, as each of them drains; objects in the API server stay."""
        with ThreadPoolExecutor() as pool:
            stopping = [
                pool.submit(process.stop, patience_seconds=20.0) for process in self._processes.values()
            ]
        for stopped in stopping:
            stopped.result()
        for mount in self._mounts.values():
            mount.stop()

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

    @property
    def processes(self) -> Mapping[str, Process]:
        """Our processes by component."""
        return self._processes

    def metrics_url(self, component: str) -> str:
        """Return the URL of a component's own metrics."""
        return f"http://{self._addresses[component]}:{_METRICS_PORT}/metrics"

    def address(self, component: str) -> str:
        """Return the loopback address on which a component listens."""
        return self._addresses[component]

    def start_component(self, name: str) -> None:
        """Start one component and wait until it is ready."""
        self._begin(name)
        self._wait_until_ready(name)

    def _begin(self, name: str) -> None:
        if name in self._mounts:
            self._wait_for_mount(name)
        self._processes[name].start()

    def _wait_until_ready(self, name: str) -> None:
        if name == "controller" and self._without_definitions:
            return
        probe = Probe(url=f"http://{self._addresses[name]}:{_HEALTH_PORT}/readyz")
        wait_until_ready(self._processes[name], probe, patience_seconds=_PATIENCE_SECONDS)

    def _apply(self) -> None:
        kubectl = self._control_plane.kubectl
        folder = self._control_plane.directory / "kustomization"
        kustomization(
            folder,
            manifests=self._manifests,
            namespace=self._namespace,
            source=self._source,
            components=self._components,
        )
        rendered = kubectl("kustomize", str(folder)).stdout
        addresses = {service: self._addresses[name] for service, name in _SERVICES.items()}
        manifests = adapt(rendered, addresses)
        if self._apply_with is not None:
            self._apply_with(manifests)
            return
        claims = [item for item in manifests if item["kind"] == "APIService"]
        apply = ("apply", "--server-side", "--field-manager=stowplan", "--filename=-")
        others = [item for item in manifests if item["kind"] != "APIService"]
        kubectl(*apply, "--force-conflicts", input=documents(others))
        if not self._without_definitions:
            self._control_plane.wait_until_established(selector="app.kubernetes.io/part-of=stowplan")
        kubectl(*apply, input=documents(claims))  # without force: it may belong to others

    def _prepare(self, name: str) -> None:
        control_plane = self._control_plane
        document: dict[str, Any] = {
            "serving": {"bindAddress": self._addresses[name], "logFormat": "json", "drainSeconds": 1},
            "cluster": {
                "kubeconfig": str(
                    control_plane.service_account_kubeconfig(self._namespace, f"stowplan-{name}")
                )
            },
        }
        if name != "controller":
            mount = SecretMount(
                control_plane, namespace=self._namespace, name=self._certificates.format(name)
            )
            mount.start()
            self._mounts[name] = mount
            document["serving"]["certificateDirectory"] = str(mount.directory)
        self._processes[name] = process_of(
            name,
            _merge(document, self._settings.get(name, {})),
            control_plane.directory / f"{name}.yaml",
            log=f"stowplan-{name}",
            source=self._source,
        )

    def _wait_for_mount(self, name: str) -> None:
        deadline = time.monotonic() + _PATIENCE_SECONDS
        while not self._mounts[name].is_filled():
            self._processes["controller"].check()
            if time.monotonic() > deadline:
                raise NotReadyError(f"no certificate for {name} was issued; {self._log_tail('controller')}")
            time.sleep(_POLL_SECONDS)

    def _wait_for_api(self) -> None:
        self._control_plane.kubectl(
            "wait", "--for=condition=Available", "apiservice/v1beta1.external.metrics.k8s.io", "--timeout=60s"
        )

    def _log_tail(self, name: str) -> str:
        process = self._processes[name]
        return process.log_tail() if process.log.exists() else f"{name} was not started"


def process_of(
    verb: str, document: Mapping[str, Any], configuration: Path, *, log: str, source: Path = ROOT
) -> Process:
    """Write the configuration of a process of ours, and return the process, which is not started.

    `log` is the name of its log, next to the configuration; `source` is the tree with the code.
    """
    configuration.write_text(yaml.safe_dump(document), encoding="utf-8")
    command = [sys.executable, "-m", "apiserver.cli", verb, "--config", str(configuration)]
    return Process(log, command, directory=configuration.parent, working_directory=source)


def _merge(base: dict[str, Any], extra: dict[str, Any]) -> dict[str, Any]:
    merged = dict(base)
    for key, value in extra.items():
        inner = merged.get(key)
        merged[key] = _merge(inner, value) if isinstance(inner, dict) and isinstance(value, dict) else value
    return merged
