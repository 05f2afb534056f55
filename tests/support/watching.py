"""Read objects, and wait for them by a watch: polling takes CPU time from the processes under test."""

from __future__ import annotations

import json
import re
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import pytest

from hack.controlplane.client import collection_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from apiserver.schema.json import Json
    from hack.controlplane import ControlPlane

PATIENCE_SECONDS: Final = 60.0

_KINDS: Final = {
    "asp": ("registry.volcano.sh/v1alpha1", "AutoscalingPolicy"),
    "aspb": ("registry.volcano.sh/v1alpha1", "AutoscalingPolicyBinding"),
    "configmap": ("v1", "ConfigMap"),
    "deployment": ("apps/v1", "Deployment"),
    "hpa": ("autoscaling/v2", "HorizontalPodAutoscaler"),
    "httproute": ("gateway.networking.k8s.io/v1", "HTTPRoute"),
    "infobj": ("inference.networking.x-k8s.io/v1alpha2", "InferenceObjective"),
    "infpool": ("inference.networking.k8s.io/v1", "InferencePool"),
    "lease": ("coordination.k8s.io/v1", "Lease"),
    "lws": ("leaderworkerset.x-k8s.io/v1", "LeaderWorkerSet"),
    "model": ("registry.volcano.sh/v1alpha1", "Model"),
    "modelroute": ("networking.volcano.sh/v1alpha1", "ModelRoute"),
    "modelserver": ("networking.volcano.sh/v1alpha1", "ModelServer"),
    "modelroute.networking.serving.volcano.sh": ("networking.serving.volcano.sh/v1alpha1", "ModelRoute"),
    "modelserver.networking.serving.volcano.sh": ("networking.serving.volcano.sh/v1alpha1", "ModelServer"),
    "pdb": ("policy/v1", "PodDisruptionBudget"),
    "pod": ("v1", "Pod"),
    "service": ("v1", "Service"),
    "sts": ("apps/v1", "StatefulSet"),
    "va": ("llmd.ai/v1alpha2", "VariantAutoscaling"),
}
"""The API version and the kind by a name that kubectl accepts, too."""

_STEP: Final = re.compile(r"\.((?:[^.\[\\]|\\.)+)|\[(\d+)\]")
"""A step of a JSON path: a member, or the position in a list."""


def path_of(namespace: str, what: str) -> str:
    """Return the path of `KIND/NAME` or of all objects of `KIND`."""
    kind, slash, name = what.partition("/")
    return f"{collection_of(*_KINDS[kind], namespace)}{slash}{name}"


def watched(plane: ControlPlane, namespace: str, what: str, is_so: Callable[[Json], bool] = bool) -> Json:
    """Return `KIND/NAME` once a condition holds for it, by default that it exists; {} if it was deleted.

    Fails with the last state after a minute.
    """
    collection, _, name = path_of(namespace, what).rpartition("/")
    last: Json = {}
    with plane.client() as client:
        for last in client.watch(collection, name, seconds=PATIENCE_SECONDS):
            if is_so(last):
                return last
    pytest.fail(f"not within {PATIENCE_SECONDS:.0f} s: {what} is {json.dumps(last, indent=1)}")


def conditions_of(item: Json) -> dict[str, Json]:
    """Return the conditions of an object by their types."""
    return {one["type"]: one for one in item.get("status", {}).get("conditions", [])}


class Place:
    """One namespace of a real cluster: objects are written and read without kubectl, a process per call."""

    def __init__(self, control_plane: ControlPlane, namespace: str) -> None:
        self.control_plane = control_plane
        self.namespace = namespace

    def kubectl(self, *arguments: str, **options: Any) -> str:
        """Run kubectl in the namespace."""
        return self.control_plane.kubectl(*arguments, f"--namespace={self.namespace}", **options).stdout

    def apply(self, *manifests: Json) -> None:
        """Apply objects."""
        self.control_plane.apply(*manifests, namespace=self.namespace)

    def get(self, what: str) -> Json:
        """Return the object `KIND/NAME`, or the list of all objects of `KIND`."""
        with self.control_plane.client() as client:
            return client.value("GET", path_of(self.namespace, what))

    def names(self, kind: str) -> list[str]:
        """Return the names of all objects of a kind."""
        return [item["metadata"]["name"] for item in self.get(kind)["items"]]

    def living_pods(self) -> list[Json]:
        """Return the pods that are not being deleted: a replica count excludes those that are."""
        return [pod for pod in self.get("pod")["items"] if "deletionTimestamp" not in pod["metadata"]]

    def watched(self, what: str, is_so: Callable[[Json], bool] = bool) -> Json:
        """Return `KIND/NAME` once a condition holds for it, as the function `watched`."""
        return watched(self.control_plane, self.namespace, what, is_so)

    def wait(self, what: str, condition: str) -> Json:
        """Return `KIND/NAME` once it exists and meets a condition of `kubectl wait`, without filters."""
        sort, _, wanted = condition.partition("=")
        return self.watched(what, partial(_CHECKS[sort], wanted))

    def wait_until_deleted(self, what: str) -> None:
        """Wait until there is no `KIND/NAME`; a watch does not tell that an object did not exist before."""
        self.kubectl("wait", what, "--for=delete", f"--timeout={PATIENCE_SECONDS:.0f}s")


def _has_condition(wanted: str, item: Json) -> bool:
    """Tell whether a condition has a status, and was set for the current generation."""
    type_, _, status = wanted.partition("=")
    found, generation = conditions_of(item).get(type_, {}), item.get("metadata", {}).get("generation", 0)
    seen = found.get("observedGeneration", item.get("status", {}).get("observedGeneration", generation))
    return bool(found.get("status") == (status or "True") and seen >= generation)


def _has_value(wanted: str, item: Json) -> bool:
    """Tell whether the value at a JSON path is a text, or is any if there is none to compare."""
    path, _, text = wanted.removeprefix("{").partition("}")
    found: Any = item
    try:
        for member, position in _STEP.findall(path):
            found = found[member.replace("\\", "")] if member else found[int(position)]
    except (KeyError, IndexError):
        return False
    shown = found if isinstance(found, str) else json.dumps(found)
    return shown == text[1:] if text else bool(shown)


_CHECKS: Final = {"condition": _has_condition, "jsonpath": _has_value}
