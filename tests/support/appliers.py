"""Two ways in which GitOps tools keep a cluster equal to a repository, despite other writers."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any, ClassVar

from hack.controlplane import ControlPlane
from support.manifests import listed

Objects = list[dict[str, Any]]


class Applier(ABC):
    """Applies the desired objects, and prunes previously applied ones that are no longer desired."""

    manager: ClassVar[str]
    """Its name in managed fields."""

    def __init__(self, plane: ControlPlane) -> None:
        self._plane = plane
        self._inventory: dict[tuple[str, str, str], dict[str, Any]] = {}

    def apply(self, objects: Objects) -> None:
        """Bring the cluster to the desired state."""
        self._plane.kubectl("apply", *self.options(), "--filename=-", input=listed(*objects))
        desired = {_identity(item): item for item in objects}
        pruned = [item for name, item in self._inventory.items() if name not in desired]
        if pruned:
            self._plane.kubectl("delete", "--wait", "--filename=-", input=listed(*pruned))
        self._inventory = desired

    def drift(self, objects: Objects, live: Mapping[str, dict[str, Any]]) -> list[str]:
        """Return the names of objects that applying would change, given the stored ones in the same order."""
        apply = ("apply", *self.options(), "--dry-run=server", "--filename=-", "--output=json")
        made = json.loads(self._plane.kubectl(*apply, input=listed(*objects)).stdout)["items"]
        pairs = zip(made, live.values(), strict=True)
        return [item["metadata"]["name"] for item, there in pairs if _content(item) != _content(there)]

    @abstractmethod
    def options(self) -> tuple[str, ...]:
        """Return the options of kubectl apply."""


class ServerSide(Applier):
    """Like Flux: server-side apply with force, under its own field manager."""

    manager = "kustomize-controller"

    def options(self) -> tuple[str, ...]:
        """Return the options; conflicts are overridden."""
        return ("--server-side", "--force-conflicts", f"--field-manager={self.manager}")


class ThreeWay(Applier):
    """Like Argo CD by default: a client-side three-way merge of last-applied, live and desired state.

    How lists are merged is read from the built-in types. The API server's document says the same, but reading
    it takes kubectl two seconds.
    """

    manager = "argocd-controller"

    def options(self) -> tuple[str, ...]:
        """Return the options; the last-applied state is kept in an annotation."""
        return (f"--field-manager={self.manager}", "--openapi-patch=false")


def _content(item: dict[str, Any]) -> dict[str, Any]:
    """Return the object without its write counters, which even a dry run changes, and its field managers."""
    left_out = {"generation", "resourceVersion", "managedFields"}
    metadata = {key: value for key, value in item["metadata"].items() if key not in left_out}
    return item | {"metadata": metadata}


def _identity(item: dict[str, Any]) -> tuple[str, str, str]:
    metadata = item["metadata"]
    return item["kind"], metadata.get("namespace", ""), metadata["name"]
