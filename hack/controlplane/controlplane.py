"""A real Kubernetes control plane of plain processes, as a context manager."""

from __future__ import annotations

import shutil
import subprocess
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from hack.controlplane import components
from hack.controlplane.auditing import LOG_FILE, POLICY, POLICY_FILE, AuditLog
from hack.controlplane.binaries import provide_binaries
from hack.controlplane.cache import Workspace
from hack.controlplane.certificates import write_pki, write_token_kubeconfig
from hack.controlplane.client import Client
from hack.controlplane.components import Component, Layout, prometheus_configuration, scheduler_configuration
from hack.controlplane.errors import KubectlFailedError
from hack.controlplane.foreign import Definition, definition_file
from hack.controlplane.network import LoopbackNetwork, Network, free_port
from hack.controlplane.process import Probe, Process, kept_environment, wait_until_ready
from hack.controlplane.progress import ProgressLine

_READY_SECONDS = 90.0
_WATCH_SECONDS = 0.2
_CREDENTIAL_LIFE_SECONDS = 24 * 60 * 60
_SERVED_SECONDS = 60.0
_DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
_DEFAULT_ACCOUNT = "/api/v1/namespaces/default/serviceaccounts/default"
_LISTENERS = (
    "etcd",
    "etcd-peer",
    "kube-apiserver",
    "kube-controller-manager",
    "kube-scheduler",
    "kwok",
    "prometheus",
)


class ControlPlane:
    """Components from `start` to `stop`: etcd, kube-apiserver, and the requested others.

    All methods block; asynchronous code must call them in a thread (any thread will do). Nothing is left
    running after the block, or after this process has ended in any way. Missing programs are built at
    `start`. With `audit`, kube-apiserver logs every request. `scheduler_profiles` is a
    KubeSchedulerConfiguration whose profiles the scheduler has in addition to the default one.
    `admission_plugins` are enabled in addition to the default ones. `simulated_nodes` is a label selector for
    kwok's nodes, if there are others.
    """

    def __init__(
        self,
        *,
        controller_manager: bool = True,
        scheduler: bool = True,
        kwok: bool = True,
        prometheus: bool = False,
        audit: bool = False,
        scheduler_profiles: Path | None = None,
        admission_plugins: Sequence[str] = (),
        network: Callable[[], Network] = LoopbackNetwork,
        simulated_nodes: str = "",
        progress: ProgressLine | None = None,
    ) -> None:
        self._enabled = {
            "kube-controller-manager": controller_manager,
            "kube-scheduler": scheduler,
            "kwok": kwok,
            "prometheus": prometheus,
        }
        self._audit = audit
        self._scheduler_profiles = scheduler_profiles
        self._admission_plugins = admission_plugins
        self._make_network = network
        self._simulated_nodes = simulated_nodes
        self._progress = progress if progress is not None else ProgressLine()
        self._processes: dict[str, Process] = {}
        self._probes: dict[str, Probe] = {}

    def start(self) -> None:
        """Build what is missing, start everything and wait until it is ready.

        Raises ControlPlaneError after stopping everything: ComponentCrashedError or NotReadyError with the
        tail of a log, ToolchainMissingError or BuildFailedError, NoFreeNetworkError.
        """
        binaries = provide_binaries(self._progress, prometheus=self._enabled["prometheus"])
        self._network = self._make_network()
        self._workspace = Workspace()
        try:
            self._layout = self._lay_out(binaries)
            self._cluster = write_pki(
                self.directory / "pki",
                server=self._layout.url("kube-apiserver"),
                address=self._layout.address,
            )
            self._start_components()
        except BaseException:
            self.stop(keep_directory=True)
            raise

    def stop(self, *, keep_directory: bool = False) -> None:
        """Kill everything in reverse order, and remove the directory unless it should be kept.

        Nothing has to end in good order, since the data is not kept.
        """
        try:
            for process in reversed(self._processes.values()):
                process.stop(patience_seconds=0.0)
        finally:
            self._processes = {}
            if keep_directory:
                self._workspace.abandon()
            else:
                self._workspace.remove()
            self._network.release()

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop(keep_directory=isinstance(error, Exception))  # keep the logs, except after Ctrl-C

    @property
    def server(self) -> str:
        """The URL of kube-apiserver."""
        return self._cluster.server

    @property
    def kubeconfig(self) -> Path:
        """A kubeconfig with all permissions."""
        return self.directory / "pki" / "admin.kubeconfig"

    @property
    def directory(self) -> Path:
        """The files of this instance: `pki/`, `NAME.log`, data."""
        return self._workspace.directory

    @property
    def pod_cidr(self) -> str:
        """Address range of pods; all addresses are on the loopback interface and can be bound."""
        return self._network.pod_cidr

    @property
    def audit_log(self) -> AuditLog:
        """The requests to kube-apiserver, if auditing is enabled."""
        return AuditLog(self.directory / LOG_FILE)

    @property
    def processes(self) -> Mapping[str, Process]:
        """The running components by name, in the order in which they were started."""
        return self._processes

    @property
    def prometheus_url(self) -> str:
        """URL of Prometheus, if requested."""
        return self._layout.url("prometheus", scheme="http")

    def restart(self, component: str) -> None:
        """Stop a running component and start it again in place; the others keep running in any case.

        Raises ComponentCrashedError if a component had ended by itself, NotReadyError if this one does not
        become ready, and KeyError if it was not requested.
        """
        self.check()
        self._processes[component].stop()
        self._processes[component].start()
        self._wait_for(component)

    def kubectl(
        self,
        *arguments: str,
        input: str | None = None,  # noqa: A002 (as in subprocess.run)
        check: bool = True,
        editor: str = "",
    ) -> subprocess.CompletedProcess[str]:
        """Run kubectl as administrator. With `check`, raises KubectlFailedError unless it exits with 0.

        `kubectl edit` runs `editor` with a file name as its argument.
        """
        environment = kept_environment() | {
            "HOME": str(self.directory),
            "KUBECONFIG": str(self.kubeconfig),
            "KUBE_EDITOR": editor,
        }
        finished = subprocess.run(
            [self._layout.binaries["kubectl"], *arguments],
            input=input,
            env=environment,
            capture_output=True,
            text=True,
            check=False,
        )
        if check and finished.returncode != 0:
            self.check()  # a crashed component explains more than kubectl's error
            raise KubectlFailedError(f"kubectl {' '.join(arguments)}: {finished.stderr.strip()}")
        return finished

    def client(self) -> closing[Client]:
        """Return a context with a connection as administrator, for one thread."""
        return closing(Client(self.server, self.directory / "pki"))

    def apply(self, *manifests: dict[str, Any], namespace: str = "default") -> list[dict[str, Any]]:
        """Apply objects server-side, by force, and return the stored ones. Raises RefusedError.

        `namespace` is for objects that name none.
        """
        with self.client() as client:
            return [client.apply(manifest, namespace=namespace) for manifest in manifests]

    def wait_until_established(self, *names: str, selector: str = "") -> None:
        """Wait until definitions are served: those with some names, and those that a label selector matches.

        Raises NotReadyError after a minute for one of them, and RefusedError.
        """
        with self.client() as client:
            definitions = client.value("GET", f"{_DEFINITIONS}?labelSelector={selector}") if selector else {}
            for name in (*names, *(item["metadata"]["name"] for item in definitions.get("items", []))):
                there = client.wait_until_true("Established", _DEFINITIONS, name, seconds=_SERVED_SECONDS)
                client.wait_until_served(there, seconds=_SERVED_SECONDS)
        # Some commands of kubectl, such as `events`, do not look again for a kind that is not in its cache.
        shutil.rmtree(self.directory / ".kube" / "cache" / "discovery", ignore_errors=True)

    def define(self, *definitions: Definition) -> None:
        """Install definitions of other projects. Raises the errors of `definition_file` and `kubectl`."""
        files = [f"--filename={definition_file(definition)}" for definition in definitions]
        applied = self.kubectl("apply", "--server-side", "--output=name", *files).stdout.split()
        self.wait_until_established(*(name.partition("/")[2] for name in applied))

    def service_account_kubeconfig(self, namespace: str, name: str) -> Path:
        """Write a kubeconfig for an existing service account, with a token that is valid for a day."""
        collection = f"/api/v1/namespaces/{namespace}/serviceaccounts"
        request = {"spec": {"expirationSeconds": _CREDENTIAL_LIFE_SECONDS}}
        with self.client() as client:
            token = client.value("POST", f"{collection}/{name}/token", request)["status"]["token"]
        path = self.directory / f"{namespace}.{name}.kubeconfig"
        write_token_kubeconfig(path, self._cluster, token=token, namespace=namespace)
        return path

    def allocate_address(self) -> str:
        """Return a new loopback address for a service of ours, which nothing else uses."""
        return self._network.allocate_address()

    def check(self) -> None:
        """Raise ComponentCrashedError if a component has ended by itself."""
        for process in self._processes.values():
            process.check()

    def watch(self, stop: threading.Event) -> None:
        """Wait for `stop`. Raises ComponentCrashedError as soon as a component ends by itself."""
        while not stop.wait(_WATCH_SECONDS):
            self.check()

    def _start_components(self) -> None:
        started_time = time.monotonic()
        self._start_and_wait(components.etcd(self._layout))
        if self._audit:
            (self.directory / POLICY_FILE).write_bytes(POLICY)
        self._start_and_wait(components.kube_apiserver(self._layout))
        if self._enabled["prometheus"]:
            configuration = prometheus_configuration(kubeconfig=str(self.kubeconfig))
            (self.directory / "prometheus.yaml").write_text(configuration)
        if self._scheduler_profiles is not None:
            kubeconfig = self._layout.pki("kube-scheduler.kubeconfig")
            configuration = scheduler_configuration(self._scheduler_profiles, kubeconfig=kubeconfig)
            (self.directory / components.SCHEDULER_CONFIGURATION).write_text(configuration)
        followers = (make for name, make in components.FOLLOWERS.items() if self._enabled[name])
        self._start_and_wait(*(make(self._layout) for make in followers))
        if self._enabled["kube-controller-manager"]:
            # All components are ready before pods can be created in the default namespace.
            there = replace(self._probes["kube-apiserver"], url=f"{self.server}{_DEFAULT_ACCOUNT}")
            manager = self._processes["kube-controller-manager"]
            wait_until_ready(manager, there, patience_seconds=_READY_SECONDS)
        self._progress.say(f"control plane ready at {self.server} in {time.monotonic() - started_time:.1f} s")

    def _start_and_wait(self, *started: Component) -> None:
        for component in started:
            process = Process(component.name, component.command, directory=self.directory)
            self._processes[component.name] = process
            self._probes[component.name] = component.probe
            process.start()
        for component in started:
            self._wait_for(component.name)

    def _wait_for(self, component: str) -> None:
        wait_until_ready(self._processes[component], self._probes[component], patience_seconds=_READY_SECONDS)

    def _lay_out(self, binaries: Mapping[str, Path]) -> Layout:
        (self.directory / "pki").mkdir(mode=0o700)
        address = self._network.allocate_address()
        return Layout(
            binaries=binaries,
            directory=self.directory,
            address=address,
            ports={name: free_port(address) for name in _LISTENERS},
            pod_cidr=self._network.pod_cidr,
            node_address=self._network.node_address,
            is_routed=self._network.is_routed,
            simulated_nodes=self._simulated_nodes,
            admission_plugins=self._admission_plugins,
        )
