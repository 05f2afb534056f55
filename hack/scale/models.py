"""`python -m hack.scale.models`: API requests and CPU time caused by many Models, phase by phase."""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final

from apiserver.schema.json import Json
from hack.bench.goals import Goal
from hack.calling.cores import cpu_seconds
from hack.controlplane import ControlPlane
from hack.controlplane.client import Client
from hack.controlplane.nodes import KwokNode, create_nodes
from hack.installation.installation import NAMESPACE
from hack.installation.manifests import ROOT
from hack.installation.models import start_models

_ACCOUNT: Final = f"system:serviceaccount:{NAMESPACE}:stowplan-models"
_MODELS: Final = "/apis/registry.volcano.sh/v1alpha1/models"
_MADE: Final = (
    "/apis/apps/v1/deployments",
    "/api/v1/services",
    "/apis/networking.volcano.sh/v1alpha1/modelservers",
    "/apis/networking.volcano.sh/v1alpha1/modelroutes",
)
"""Collections of the objects that are created for a Model without a policy."""

_NAMESPACES: Final = 10
_PODS_OF_A_NODE: Final = 80
_IDLE_SECONDS: Final = 60.0
"""Shorter than the time after which kube-apiserver closes a connection."""

_POLL_SECONDS: Final = 0.5
_QUIET_SECONDS: Final = 3.0
_PATIENCE_SECONDS: Final = 900.0
_IMAGES: Final = ("vllm/vllm-openai:v0.10.0", "vllm/vllm-openai:v0.10.1")


@dataclass(frozen=True, kw_only=True, slots=True)
class ModelsPhase:
    """Costs of one phase."""

    name: str
    seconds: float
    cpu_seconds: float
    requests: Mapping[str, int] = field(default_factory=dict)
    """Requests by verb and resource."""

    def line(self, models: int) -> str:
        """Return the figures as one line."""
        number = sum(self.requests.values())
        requests = ", ".join(f"{count} {what}" for what, count in sorted(self.requests.items())) or "none"
        return (
            f"{self.name:8} {self.seconds:5.0f} s, CPU {self.cpu_seconds:6.2f} s,"
            f" {number} requests, {number / models:.1f} per Model: {requests}"
        )


class ModelsCampaign:
    """Models in a control plane, and the process that reconciles them."""

    def __init__(self, control_plane: ControlPlane, client: Client, count: int) -> None:
        self._client = client
        self._models = [_model(number, backends=2 + number % 2) for number in range(count)]
        self._process = start_models(control_plane)
        self._log = control_plane.audit_log
        self._requests(after_seconds=_QUIET_SECONDS)  # discards the requests of its start

    def stop(self) -> None:
        """Stop the process."""
        self._process.stop(patience_seconds=20.0)

    def phase(self, name: str, act: Callable[[], None]) -> ModelsPhase:
        """Call `act`, and count the requests of the process until it is idle again."""
        began, before = time.monotonic(), cpu_seconds(self._process.pid)
        act()
        seconds, requests = time.monotonic() - began, self._requests()
        while more := self._requests(after_seconds=_QUIET_SECONDS):
            requests += more
        measured = ModelsPhase(
            name=name,
            seconds=seconds,
            cpu_seconds=cpu_seconds(self._process.pid) - before,
            requests=requests,
        )
        print(measured.line(len(self._models)), flush=True)
        return measured

    def _requests(self, *, after_seconds: float = 0.0) -> Counter[str]:
        """Return the requests of the process since the last call, without those for the lease."""
        time.sleep(after_seconds)
        records = self._log.since_of(account=_ACCOUNT)
        return Counter(item.about for item in records if item.object_ref.resource != "leases")

    def create(self) -> None:
        """Create all Models, and wait until all are active."""
        for value in self._models:
            self._client.call("POST", _path(value), value)
        self._until(lambda: all(map(_serves, self._items(_MODELS))))

    def change(self) -> None:
        """Change the image of all backends, and wait until the update of all Models is complete."""
        for stored in self._items(_MODELS):
            for backend in stored["spec"]["backends"]:
                backend["workers"][0]["image"] = _IMAGES[1]
            self._client.call("PUT", f"{_path(stored)}/{stored['metadata']['name']}", stored)
        self._until(lambda: all(map(_serves, self._items(_MODELS))))

    def delete(self) -> None:
        """Delete all Models, and wait until none of their objects is left."""
        for value in self._models:
            self._client.call("DELETE", f"{_path(value)}/{value['metadata']['name']}")
        self._until(lambda: not any(self._written_objects()))

    def waits_seconds(self) -> Sequence[float]:
        """Return the time from the creation of each Model until it became active, in whole seconds."""
        return [_wait_seconds(item) for item in self._items(_MODELS)]

    def _written_objects(self) -> Iterator[Json]:
        for path in _MADE:
            yield from self._items(f"{path}?labelSelector=stowplan.dev/model")

    def _items(self, path: str) -> Sequence[Json]:
        items: Sequence[Json] = self._client.value("GET", path)["items"]
        return items

    def _until(self, is_so: Callable[[], bool]) -> None:
        deadline = time.monotonic() + _PATIENCE_SECONDS
        while not is_so():
            if time.monotonic() > deadline:
                raise TimeoutError("the Models did not reach the expected state")
            time.sleep(_POLL_SECONDS)


def main(arguments: list[str]) -> int:
    """Print a line for each phase; return 1 if a goal is missed."""
    parser = argparse.ArgumentParser(prog="python -m hack.scale.models", description=__doc__)
    parser.add_argument(
        "--count", type=int, default=200, help="number of Models, with two or three backends (%(default)s)"
    )
    options = parser.parse_args(arguments)
    with ControlPlane(audit=True) as control_plane:
        _prepare(control_plane, options.count)
        with control_plane.client() as client:
            campaign = ModelsCampaign(control_plane, client, options.count)
            try:
                return _run(campaign)
            finally:
                campaign.stop()


def _run(campaign: ModelsCampaign) -> int:
    campaign.phase("create", campaign.create)
    waits = campaign.waits_seconds()
    print(
        f"time until a Model is active: median {statistics.median(waits):.0f} s, longest {max(waits):.0f} s"
    )
    idle = campaign.phase("idle", lambda: time.sleep(_IDLE_SECONDS))
    campaign.phase("change", campaign.change)
    campaign.phase("delete", campaign.delete)
    watches = sum(count for what, count in idle.requests.items() if what.startswith("watch"))
    goal = Goal(
        name="requests of an idle controller, without those for the Lease and restarted watches",
        value=float(sum(idle.requests.values()) - watches),
        unit="requests",
        most=0.0,
    )
    print(goal.line())
    return int(not goal.is_met)


def _prepare(control_plane: ControlPlane, count: int) -> None:
    for folder in ("kthena", "inference-extension"):
        path = ROOT / "manifests" / "crds" / folder
        control_plane.kubectl("apply", "--server-side", f"--kustomize={path}")
    for name in (NAMESPACE, *(f"models-{number}" for number in range(_NAMESPACES))):
        control_plane.kubectl("create", "namespace", name)
    number = 1 + 3 * count // _PODS_OF_A_NODE
    create_nodes(
        control_plane,
        [
            KwokNode(name=f"l4-{place}", accelerator="NVIDIA-L4", accelerator_count=110)
            for place in range(number)
        ],
    )


def _model(number: int, *, backends: int) -> Json:
    worker = {"image": _IMAGES[0], "resources": {"limits": {"nvidia.com/gpu": 1}}}
    return {
        "apiVersion": "registry.volcano.sh/v1alpha1",
        "kind": "Model",
        "metadata": {"name": f"m{number:03}", "namespace": f"models-{number % _NAMESPACES}"},
        "spec": {
            "backends": [
                {
                    "name": f"b{place}",
                    "type": "vLLM",
                    "modelURI": "hf://Qwen/Qwen2.5-0.5B-Instruct",
                    "minReplicas": 1,
                    "maxReplicas": 1,
                    "workers": [worker],
                }
                for place in range(backends)
            ]
        },
    }


def _path(value: Json) -> str:
    return f"/apis/{value['apiVersion']}/namespaces/{value['metadata']['namespace']}/models"


def _serves(value: Json) -> bool:
    """Tell whether a Model is active and not updating, according to the status of its current generation."""
    status = value.get("status") or {}
    statuses = {item["type"]: item["status"] for item in status.get("conditions") or []}
    is_seen = status.get("observedGeneration") == value["metadata"]["generation"]
    return is_seen and (statuses.get("Active"), statuses.get("Updating")) == ("True", "False")


def _wait_seconds(value: Json) -> float:
    (active,) = (item for item in value["status"]["conditions"] if item["type"] == "Active")
    since, until = value["metadata"]["creationTimestamp"], active["lastTransitionTime"]
    return (datetime.fromisoformat(until) - datetime.fromisoformat(since)).total_seconds()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
