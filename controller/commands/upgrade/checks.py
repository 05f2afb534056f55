"""Preconditions of an upgrade and of a downgrade, decided from a snapshot."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import datetime, timedelta
from typing import Final

from apiserver.cluster.heartbeat import LEASE_NAME
from apiserver.kinds.llmd.variantautoscaling import VARIANT_AUTOSCALING
from apiserver.schema.json import Json
from apiserver.schema.structural import CONVERSION_SERVICE
from controller.commands.upgrade.definitions import (
    HELM_RELEASE,
    PEOPLE,
    condition,
    managers_of_our_chart,
    served_versions,
    stored_versions,
)
from controller.commands.upgrade.gather import CONFIGURATION, UPSTREAM_LEASE, UpgradeState
from controller.commands.upgrade.report import Finding, note, ok, problem
from controller.planning.wording import count

ACCEPTABLE: Final = ("owners", "controllers")
"""Checks whose problems a user may accept, since what they find can be intended."""
DELIVERY_MARKS: Final = ("argocd.argoproj.io/tracking-id", "kustomize.toolkit.fluxcd.io/name", "olm.managed")
"""Annotations and labels of objects that a delivery tool reconciles."""

_NAME: Final = VARIANT_AUTOSCALING.crd_name
_RECONCILERS: Final = ("argocd", "kustomize-controller", "helm-controller", "helm", "fleet", "olm", "catalog")
"""Prefixes of field managers that reapply what they once wrote."""
UPSTREAM_NAMES: Final = ("workload-variant-autoscaler", "llm-d-autoscaling", "inferno-autoscaler")
"""Names in the images and labels of earlier controllers."""
_OUR_MANAGER: Final = "stowplan"
_RECENT: Final = timedelta(minutes=10)
"""The age of a status write beyond which its controller counts as stopped: earlier controllers write every
minute."""
_INSTALL: Final = "kubectl apply --server-side --field-manager=stowplan -k manifests/overlays/without-crds"


def check_definition(snapshot: UpgradeState) -> Iterator[Finding]:
    """Yield whether the definition is one that can be migrated."""
    live = snapshot.live
    if live is None:
        yield ok("definition", f"{_NAME} is not installed")
        return
    served, stored = served_versions(live), stored_versions(live)
    known = {version.name for version in VARIANT_AUTOSCALING.versions}
    if unknown := {*served, *stored} - known:
        yield problem(
            "definition",
            f"{_NAME} has versions that this release does not support: {', '.join(sorted(unknown))}",
            "use a newer release of Stowplan that supports them; objects stored in these versions would"
            " become unreadable",
        )
    elif live["metadata"].get("deletionTimestamp") or condition(live, "Terminating") == "True":
        yield problem(
            "definition", f"{_NAME} is being deleted", "wait until it is deleted, then run this command again"
        )
    else:
        yield ok("definition", f"{_NAME} serves {', '.join(served)}, stored {', '.join(stored)}")


def check_owners(snapshot: UpgradeState) -> Iterator[Finding]:
    """Yield a finding for every other owner of the definition, which would revert or delete it."""
    live = snapshot.live
    if live is not None:
        yield from [*_owners(live)] or [ok("owners", f"{_NAME} has no other owner")]


def _owners(live: Json) -> Iterator[Finding]:
    metadata = live["metadata"]
    for owner in metadata.get("ownerReferences") or []:
        yield problem(
            "owners",
            f"{_NAME} and all its objects are deleted when {owner['kind']} {owner['name']} is deleted",
            f"remove the ownerReference from {_NAME} (kubectl edit crd {_NAME}), or use --accept owners",
        )
    texts = labels_and_annotations(live)
    ours = managers_of_our_chart(live)
    if release := texts.get(HELM_RELEASE):
        yield _release(release, is_our_chart=bool(ours))
    marks = [mark for mark in DELIVERY_MARKS if mark in texts]
    for mark in marks:
        yield problem(
            "owners",
            f"{_NAME} is managed by a delivery tool ({mark}), which would revert the upgrade",
            "remove the definition from what it delivers, or use --accept owners",
        )
    managers = {str(entry.get("manager", "")) for entry in metadata.get("managedFields") or []}
    yield from _managers(managers - ours, is_marked=bool(marks))


def labels_and_annotations(item: Json) -> dict[str, str]:
    """Return the labels and the annotations of an object, by which delivery tools recognize it."""
    return {**(item["metadata"].get("annotations") or {}), **(item["metadata"].get("labels") or {})}


def _release(release: str, *, is_our_chart: bool) -> Finding:
    if is_our_chart:
        return note(
            "owners",
            f"{_NAME} is of Stowplan's own chart, Helm release {release}: helm upgrade updates it, and"
            " helm uninstall keeps it",
        )
    return problem(
        "owners",
        f"{_NAME} belongs to the Helm release {release}: its next upgrade would overwrite our"
        " definition with the old one, and its removal deletes every object",
        "add the annotation helm.sh/resource-policy: keep to the chart's own template, run helm"
        " upgrade, and only then remove the definition from the chart (Helm uses the manifest of the"
        " release, not the live object); or use --accept owners",
    )


def _managers(managers: set[str], *, is_marked: bool) -> Iterator[Finding]:
    for manager in sorted(managers):
        if manager.startswith(_RECONCILERS) and not is_marked:
            yield problem(
                "owners",
                f"{_NAME} was written by {manager}, which may write it again",
                "remove the definition from what it delivers, or use --accept owners",
            )
        elif not manager.startswith((*PEOPLE, *_RECONCILERS)):
            yield note(
                "owners", f"{_NAME} was written by {manager}", "make sure that it does not write it again"
            )


def check_earlier_controllers(snapshot: UpgradeState) -> Iterator[Finding]:
    """Yield a finding for every sign of a running earlier controller, or of a second installation."""
    signs = [
        *_deployments(snapshot),
        *_leader(snapshot, UPSTREAM_LEASE, "scale its Deployment to 0"),
        *_writers(snapshot),
        *_second_installation(snapshot),
    ]
    yield from signs or [ok("controllers", "no other controller is active on the objects")]


def check_our_controller(snapshot: UpgradeState) -> Iterator[Finding]:
    """Yield whether our own controller is running, which writes what an earlier release cannot hold."""
    stop = "kubectl --namespace {namespace} scale deployment stowplan-controller --replicas=0"
    signs = [*_leader(snapshot, LEASE_NAME, stop)]
    yield from signs or [ok("controllers", "our own controller is not active")]


def _deployments(snapshot: UpgradeState) -> Iterator[Finding]:
    for deployment in snapshot.deployments:
        if deployment["spec"].get("replicas", 1) and _is_upstream(deployment):
            namespace, name = deployment["metadata"]["namespace"], deployment["metadata"]["name"]
            yield problem(
                "controllers",
                f"Deployment {namespace}/{name} looks like an earlier controller of these objects",
                f"kubectl --namespace {namespace} scale deployment {name} --replicas=0, or use --accept"
                " controllers",
            )


def _is_upstream(deployment: Json) -> bool:
    """Tell whether a Deployment is an earlier controller, by its labels and images."""
    pod = deployment["spec"]["template"]
    labels = {**(deployment["metadata"].get("labels") or {}), **(pod["metadata"].get("labels") or {})}
    words = [str(labels.get(name, "")) for name in ("app.kubernetes.io/name", "app.kubernetes.io/part-of")]
    words += [str(container.get("image", "")) for container in pod["spec"].get("containers") or []]
    return any(name in word for name in UPSTREAM_NAMES for word in words)


def _leader(snapshot: UpgradeState, lease: str, stop: str) -> Iterator[Finding]:
    for namespace, holder in holders(snapshot.leases, lease, snapshot.now):
        yield problem(
            "controllers",
            f"{holder} holds the lease {namespace}/{lease}",
            f"{stop.format(namespace=namespace)} and wait for half a minute, or use --accept controllers",
        )


def _second_installation(snapshot: UpgradeState) -> Iterator[Finding]:
    """Yield our controllers outside of the namespace to which the webhooks refer.

    All cluster-scoped objects have fixed names, and belong to the installation that was applied last.
    """
    leases = snapshot.leases if snapshot.configuration else ()
    for namespace, _ in holders(leases, LEASE_NAME, snapshot.now):
        if namespace != snapshot.namespace:
            yield problem(
                "controllers",
                f"there is a second installation in the namespace {namespace}; webhooks and permissions"
                f" belong to that in {snapshot.namespace}",
                "remove the Deployments and Services of one of them, and apply the manifests of the other"
                " again, or use --accept controllers",
            )


def holders(leases: Iterable[Json], name: str, now: datetime) -> Iterator[tuple[str, str]]:
    """Yield the namespace and the holder of each held Lease of a name."""
    for lease in leases:
        if lease["metadata"]["name"] == name and is_held(lease.get("spec") or {}, now):
            yield lease["metadata"]["namespace"], lease["spec"]["holderIdentity"]


def is_held(spec: Json, now: datetime) -> bool:
    """Tell whether the spec of a Lease has a holder whose lease has not expired."""
    if not spec.get("holderIdentity") or not spec.get("renewTime"):
        return False
    lifetime = timedelta(seconds=int(spec.get("leaseDurationSeconds") or 0))
    return bool(datetime.fromisoformat(spec["renewTime"]) + lifetime > now)


def _writers(snapshot: UpgradeState) -> Iterator[Finding]:
    """Yield recent writers of a status other than our controller and kubectl."""
    latest: dict[str, datetime] = {}
    for item in snapshot.objects:
        for entry in item["metadata"].get("managedFields") or []:
            if entry.get("subresource") == "status" and entry.get("time"):
                manager, moment = str(entry.get("manager")), datetime.fromisoformat(entry["time"])
                latest[manager] = max(moment, latest.get(manager, moment))
    for manager, moment in sorted(latest.items()):
        if not manager.startswith((_OUR_MANAGER, "kubectl")) and snapshot.now - moment < _RECENT:
            yield problem(
                "controllers",
                f"{manager} wrote a status {int((snapshot.now - moment).total_seconds())} s ago",
                f"stop it and wait for {_RECENT.seconds // 60} minutes, or use --accept controllers",
            )


def check_webhook(snapshot: UpgradeState) -> Iterator[Finding]:
    """Yield whether the conversion Service has endpoints, and whether our webhooks are reached."""
    service, place = snapshot.service, f"{snapshot.namespace}/{CONVERSION_SERVICE['name']}"
    why = f"kubectl --namespace {snapshot.namespace} describe pods shows the cause"
    if service is None:
        yield problem("webhook", f"there is no Service {place}", f"install Stowplan first: {_INSTALL}")
    elif service["spec"].get("type") == "ExternalName":
        yield note("webhook", f"Service {place} points to {service['spec']['externalName']}")
    elif snapshot.ready_pods is None:
        yield note(
            "webhook",
            f"you are not allowed to list EndpointSlices in {snapshot.namespace}, so the pods behind the"
            f" Service {place} were not counted",
            "the first read through conversion will show whether one responds",
        )
    elif not snapshot.ready_pods:
        yield problem("webhook", f"the Service {place} has no ready pod", why)
    else:
        yield ok("webhook", f"the Service {place} has {count(snapshot.ready_pods, 'ready pod')}")
    if snapshot.refusal:
        yield problem(
            "webhook",
            f"a dry run of a write did not pass our webhooks: {snapshot.refusal}",
            f"{why}; the API server must be able to call them, and to verify their certificate, which the"
            " controller issues",
        )


def check_certificates(snapshot: UpgradeState) -> Iterator[Finding]:
    """Yield whether there is a caBundle by which the API server can verify the conversion webhook."""
    if snapshot.configuration is None:
        yield problem(
            "certificates",
            f"there is no webhook configuration {CONFIGURATION!r}",
            f"install Stowplan first: {_INSTALL}",
        )
    elif not snapshot.ca_bundle:
        yield problem(
            "certificates",
            f"the webhook configuration {CONFIGURATION!r} has no caBundle",
            "the controller issues certificates and injects the caBundle: check its log",
        )
    else:
        yield ok("certificates", f"the webhook configuration {CONFIGURATION!r} has a caBundle")
