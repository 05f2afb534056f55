"""One namespace of a real cluster with bindings, and operations of tests in it."""

from __future__ import annotations

import re
from contextlib import ExitStack
from typing import Any

from support.manifests import Manifest, autoscaler, listed
from support.polling import wait_for
from support.stub_engine import StubEngine
from support.watching import Place, conditions_of, watched

WAITING = "vllm:num_requests_waiting"


class Bench(Place):
    """One namespace, and operations of tests in it."""

    def told(self, *manifests: Manifest) -> str:
        """Apply manifests with kubectl; return its output, including warnings."""
        found = self.control_plane.kubectl(
            "apply", f"--namespace={self.namespace}", "--filename=-", input=listed(*manifests)
        )
        return found.stdout + found.stderr

    def binding(self, name: str) -> Manifest:
        """Read a binding."""
        return self.get(f"aspb/{name}")

    def row(self, name: str, *arguments: str) -> dict[str, str]:
        """Return what `kubectl get` prints about a binding, by column."""
        header, line = self.kubectl("get", "aspb", name, *arguments).splitlines()
        heads = list(re.finditer(r"\S+(?: \S+)*", header))
        ends = [*(head.start() for head in heads[1:]), None]
        return {head[0]: line[head.start() : end].strip() for head, end in zip(heads, ends, strict=True)}

    def until(self, name: str, **want: Any) -> Manifest:
        """Wait until the status of a binding has these fields, or conditions with these reasons."""

        def is_so(item: Manifest) -> bool:
            status = item.get("status") or {}
            reasons = {type_: one["reason"] for type_, one in conditions_of(item).items()}
            known = status | reasons | (status.get("decision") or {})
            return all(known.get(key) == value for key, value in want.items())

        found = self.watched(f"aspb/{name}", is_so)
        status: Manifest = found.get("status") or {}
        return status

    def wait_for_metric(self, target: str, text: str) -> None:
        """Wait until the metrics API returns a text for a target; it learns of a status by its own watch."""
        wait_for(lambda: text in self._metric(target), lambda: f"{text} in {self._metric(target)}")

    def _metric(self, target: str) -> str:
        """Read the published metric through the aggregation layer."""
        path = f"/apis/external.metrics.k8s.io/v1beta1/namespaces/{self.namespace}/policy_desired_replicas"
        found = self.control_plane.kubectl(
            "get", "--raw", f"{path}?labelSelector=target_name%3D{target}", check=False
        )
        return found.stdout + found.stderr

    def wait_for_beats(self, count: int) -> None:
        """Wait until the controller has finished that many further cycles."""
        seen = set()

        def is_so(lease: Manifest) -> bool:
            seen.add(lease["metadata"].get("annotations", {}).get("stowplan.dev/last-cycle"))
            return len(seen) > count

        watched(self.control_plane, "stowplan-system", "lease/stowplan-controller", is_so)

    def engines(self, **waiting: int) -> ExitStack:
        """Return engines on the pods of some Deployments, each with a number of waiting requests."""
        stack = ExitStack()
        for pod in self.living_pods():
            name = pod["metadata"]["labels"]["app"]
            if name in waiting and pod["status"].get("podIP"):
                engine = StubEngine(
                    pod["status"]["podIP"], model="m", usage=0.5, waiting=waiting[name], port=8100
                )
                stack.enter_context(engine)
        return stack


def policy(name: str, **spec: Any) -> Manifest:
    """Return a policy that follows waiting requests without delay."""
    at_once = {"period": "0s", "stabilizationWindow": "0s"}
    return {
        "apiVersion": "registry.volcano.sh/v1alpha1",
        "kind": "AutoscalingPolicy",
        "metadata": {"name": name},
        "spec": {
            "metrics": [{"metricName": WAITING, "targetValue": "10"}],
            "tolerancePercent": 0,
            "behavior": {"scaleUp": {"stablePolicy": at_once}, "scaleDown": at_once},
        }
        | spec,
    }


def bound(name: str, target: str = "chat", **metadata: Any) -> Manifest:
    """Return a binding of one Deployment."""
    reference = {"apiVersion": "apps/v1", "kind": "Deployment", "name": target}
    return {
        "apiVersion": "registry.volcano.sh/v1alpha1",
        "kind": "AutoscalingPolicyBinding",
        "metadata": {"name": name} | metadata,
        "spec": {
            "policyRef": {"name": "waiting"},
            "scalingConfiguration": {"minReplicas": 1, "maxReplicas": 6, "target": {"targetRef": reference}},
        },
    }


def follower(name: str) -> Manifest:
    """Return an HPA that reads the decision for a target."""
    made = autoscaler(name)
    (metric,) = made["spec"]["metrics"]
    metric["external"]["metric"] = {
        "name": "policy_desired_replicas",
        "selector": {"matchLabels": {"target_name": name}},
    }
    return made
