"""Checks of processes: ours, those of other controllers, and what a platform needs. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from apiserver.cluster.resource import DEPLOYMENTS
from apiserver.program import version
from apiserver.schema.json import Json, as_list, as_object
from controller.commands.doctor.evidence import Evidence
from controller.commands.doctor.installation import GKE, firewall, has_label, unknown
from controller.commands.status.assemble import SILENT_SECONDS
from controller.commands.upgrade.checks import UPSTREAM_NAMES, holders
from controller.commands.upgrade.gather import UPSTREAM_LEASE
from controller.commands.upgrade.report import Finding, note, ok, problem

_KTHENA: Final = ("kthena-controller-manager", "kthena-autoscaler", "kthena-controller")
"""Names in the images of Kthena's controllers."""

_QUOTA: Final = "insufficient quota to match these scopes"
_CONSTRAINT: Final = "security context constraint"


def check_processes(seen: Evidence) -> Iterator[Finding]:
    """Yield Deployments of ours without ready pods, with the cause, and whether the controller decides."""
    if not seen.is_installed:
        return
    if not seen.live.may_read(DEPLOYMENTS):
        yield unknown("processes", "deployments.apps")
    own = [item for item in seen.live.of(DEPLOYMENTS) if item["metadata"]["namespace"] == seen.system]
    own = [item for item in own if item["metadata"]["name"].startswith("stowplan-")]
    for item in own:
        yield from _process(seen, item)
    beat = seen.live.heartbeat
    if beat is not None and (age := (seen.now - beat.time).total_seconds()) > SILENT_SECONDS:
        yield problem(
            "processes",
            f"the controller finished its last cycle {age:.0f} s ago: decisions are not served any more",
            f"kubectl -n {seen.system} logs deploy/stowplan-controller",
        )
    yield from _skew(own)


def _process(seen: Evidence, deployment: Json) -> Iterator[Finding]:
    name, status = deployment["metadata"]["name"], as_object(deployment.get("status"))
    replicas, ready = deployment["spec"].get("replicas", 1), int(status.get("readyReplicas") or 0)
    if ready >= replicas:
        yield ok("processes", f"{name}: {ready} of {replicas} replicas ready")
        return
    failure = _failure(deployment)
    if _QUOTA in failure:
        cause, remedy = (
            "the platform admits system-cluster-critical only within a ResourceQuota",
            "apply manifests/base/resource-quota.yaml in this namespace (GKE)",
        )
    elif _CONSTRAINT in failure:
        cause, remedy = failure, "leave the user ID to the platform: see 'OpenShift' in docs/platforms.md"
    else:
        cause = failure or next(filter(None, map(_why_waiting, _pods_of(seen, name))), "")
        component = name.removeprefix("stowplan-")
        remedy = f"kubectl -n {seen.system} describe pods -l app.kubernetes.io/component={component}"
    text = f"{name}: {ready} of {replicas} replicas ready" + (f": {cause}" if cause else "")
    yield (note if ready else problem)("processes", text, remedy)


def _failure(deployment: Json) -> str:
    """Return why a Deployment cannot create pods; empty if it can."""
    conditions = map(as_object, as_list(as_object(deployment.get("status")).get("conditions")))
    failed = (
        item for item in conditions if (item.get("type"), item.get("status")) == ("ReplicaFailure", "True")
    )
    return next((str(item.get("message")) for item in failed), "")


def _pods_of(seen: Evidence, deployment: str) -> Iterator[Json]:
    component = deployment.removeprefix("stowplan-")
    for pod in seen.pods or ():
        if as_object(pod["metadata"].get("labels")).get("app.kubernetes.io/component") == component:
            yield pod


def _why_waiting(pod: Json) -> str:
    status = as_object(pod.get("status"))
    for item in map(as_object, as_list(status.get("containerStatuses"))):
        waiting = as_object(as_object(item.get("state")).get("waiting"))
        if waiting.get("reason"):
            return f"{waiting['reason']} {waiting.get('message') or ''}".strip()
    for item in map(as_object, as_list(status.get("conditions"))):
        if (item.get("type"), item.get("status")) == ("PodScheduled", "False"):
            return str(item.get("message"))
    return ""


def _skew(deployments: list[Json]) -> Iterator[Finding]:
    """Yield different releases of the processes and of this command."""
    tags = {
        item["metadata"]["name"]: tag
        for item in deployments
        for container in item["spec"]["template"]["spec"].get("containers") or []
        if (tag := _tag(str(container.get("image") or "")))
    }
    if len({*tags.values()}) > 1:
        listed = ", ".join(f"{name} {tag}" for name, tag in sorted(tags.items()))
        yield problem(
            "versions",
            f"the processes are of different releases: {listed}",
            "apply all manifests of one release",
        )
    elif tags and version() not in tags.values():
        tag = next(iter(tags.values()))
        yield note(
            "versions",
            f"this command is {version()}, the cluster runs {tag}",
            "use the command of that release",
        )


def _tag(image: str) -> str:
    """Return the tag of an image if it is a version; empty otherwise."""
    tag = image.partition("@")[0].rpartition("/")[2].partition(":")[2].removeprefix("v")
    return tag if re.fullmatch(r"\d+\.\d+\.\d+\S*", tag) else ""


def check_rivals(seen: Evidence) -> Iterator[Finding]:
    """Yield other controllers that act on the same objects."""
    findings = [*_rival_deployments(seen), *_rival_leases(seen)]
    if not seen.live.may_read(DEPLOYMENTS):
        findings.append(unknown("rivals", "deployments.apps"))
    if seen.leases is None:
        findings.append(unknown("rivals", "leases.coordination.k8s.io"))
    yield from findings or [ok("rivals", "no other controller acts on the same objects")]


def _rival_deployments(seen: Evidence) -> Iterator[Finding]:
    for deployment in seen.live.of(DEPLOYMENTS):
        namespace, name = deployment["metadata"]["namespace"], deployment["metadata"]["name"]
        containers = deployment["spec"]["template"]["spec"].get("containers") or []
        images = " ".join(str(container.get("image")) for container in containers)
        if not deployment["spec"].get("replicas", 1):
            continue
        if any(part in images for part in UPSTREAM_NAMES):
            yield problem(
                "rivals",
                f"Deployment {namespace}/{name} is llm-d's own autoscaler: both decide on the same objects",
                f"kubectl -n {namespace} scale deployment {name} --replicas=0",
            )
        elif any(part in images for part in _KTHENA):
            yield note(
                "rivals",
                f"Deployment {namespace}/{name} is Kthena's: it acts on the kinds of its own definitions",
                "use components/kthena-serving: see 'The parts' in docs/installing.md",
            )


def _rival_leases(seen: Evidence) -> Iterator[Finding]:
    for namespace, holder in holders(seen.leases or (), UPSTREAM_LEASE, seen.now):
        yield problem(
            "rivals",
            f"{holder} holds the lease of llm-d's own autoscaler",
            f"kubectl -n {namespace} get pods, and scale its Deployment to 0",
        )


def check_platform(seen: Evidence) -> Iterator[Finding]:
    """Yield what a platform needs before an installation."""
    if seen.is_installed:
        return
    if "security.openshift.io" in seen.groups:
        yield note("platform", "OpenShift assigns user IDs itself", "see 'OpenShift' in docs/platforms.md")
    if has_label(seen, GKE):
        yield note("platform", "GKE: private clusters block the port 9443 of webhooks", firewall(seen))
