"""Preconditions of an uninstallation, and findings about what stays."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from typing import Final

from apiserver.cluster.resource import CONFIG_MAPS, MODELS
from apiserver.kinds.registry import KINDS
from apiserver.schema.kind import Kind
from controller.commands.uninstall.installed import NAME_PREFIX
from controller.commands.uninstall.snapshot import Snapshot
from controller.commands.uninstall.steps import goes, is_converted
from controller.commands.upgrade.definitions import storage_version, stored_versions
from controller.commands.upgrade.findings import Finding, note, ok, problem
from controller.commands.upgrade.owner_checks import DELIVERY_MARKS
from controller.commands.upgrade.ownership import HELM_RELEASE
from controller.commands.upgrade.permission_checks import check_permissions

ACCEPTABLE: Final = ("owners", "templates")
"""Checks whose problems users may accept."""

_MOST_NAMED: Final = 5
_HELM_NAMESPACE: Final = "meta.helm.sh/release-namespace"


def uninstall_checks(snapshot: Snapshot, *, with_objects: bool) -> tuple[Finding, ...]:
    """Return the findings of all checks."""
    found = [*check_permissions(snapshot.denied)]
    if not snapshot.denied:
        found += _installations(snapshot)
        found += _owners(snapshot)
        found += _templates(snapshot)
        found += _claim(snapshot)
        for kind in KINDS:
            found += _objects(snapshot, kind, with_objects=with_objects)
        found += _hint(snapshot, with_objects=with_objects)
        found += _settings(snapshot)
        found += _namespace(snapshot)
    return tuple(found)


def _installations(snapshot: Snapshot) -> Iterator[Finding]:
    if len(snapshot.namespaces) > 1:
        yield note(
            "installations",
            f"Stowplan is installed in several namespaces, and is removed from all of them:"
            f" {', '.join(snapshot.namespaces)}",
        )


def _owners(snapshot: Snapshot) -> Iterator[Finding]:
    """Yield findings about delivery tools that have installed what is to be removed."""
    kept, releases = defaultdict[str, list[str]](list), set[tuple[str, str]]()
    for item in (*snapshot.found, *snapshot.webhooks):
        annotations, labels = item.metadata.get("annotations") or {}, item.metadata.get("labels") or {}
        for mark in DELIVERY_MARKS:
            if mark in annotations or mark in labels:
                kept[mark].append(str(item))
        if HELM_RELEASE in annotations:
            namespace = annotations.get(_HELM_NAMESPACE, snapshot.namespaces[0])
            releases.add((annotations[HELM_RELEASE], namespace))
    for mark, items in sorted(kept.items()):
        yield problem(
            "owners",
            f"a delivery tool ({mark}) would reinstall {_some(items)}",
            "remove them from what it delivers, without pruning, or use --accept owners",
        )
    for release, namespace in sorted(releases):
        yield note(
            "owners",
            f"Helm installed this as release {release}, and keeps a record of it",
            f"afterwards, run helm uninstall {release} --namespace {namespace}",
        )
    if not kept and not releases:
        yield ok("owners", "no delivery tool would reinstall it")


def _templates(snapshot: Snapshot) -> Iterator[Finding]:
    if snapshot.dependents:
        yield problem(
            "templates",
            f"new pods would not run without Stowplan: {_some(list(snapshot.dependents))}",
            "remove this from their templates first, or use --accept templates",
        )
    else:
        yield ok("templates", "no pod template depends on Stowplan")


def _claim(snapshot: Snapshot) -> Iterator[Finding]:
    if snapshot.api_service is None:
        return
    if snapshot.former is not None:
        yield ok("claim", f"external.metrics.k8s.io returns to {'/'.join(snapshot.former.service)}")
    else:
        yield note(
            "claim",
            "external.metrics.k8s.io will have no owner: no former owner is known that still exists",
            "if there was a former owner, apply its APIService again",
        )


def _objects(snapshot: Snapshot, kind: Kind, *, with_objects: bool) -> Iterator[Finding]:
    """Yield findings about whether the objects of a kind are deleted, if there are any."""
    count, definition = snapshot.objects.get(kind.crd_name, 0), snapshot.definitions.get(kind.crd_name)
    if not count:
        return
    also = " and everything that they expanded to" if kind.kind == MODELS.kind else ""
    if definition is None:
        yield note("kept", f"{kind.crd_name} is not ours; it stays, with its objects{also}: {count}")
    elif goes(snapshot, kind.crd_name, with_objects=with_objects):
        yield note("deleted", f"{kind.crd_name} will be deleted, with its objects{also}: {count}")
    else:
        yield note("kept", f"{kind.crd_name} stays, with its objects{also}: {count}")
        if is_converted(definition) and stored_versions(definition) != (storage_version(definition),):
            yield problem(
                "definition",
                f"{kind.crd_name} may have objects in {', '.join(stored_versions(definition))}, and without"
                " conversion only one version can be served",
                "stowplan upgrade --apply rewrites them, stowplan downgrade restores them",
            )


def _hint(snapshot: Snapshot, *, with_objects: bool) -> Iterator[Finding]:
    if any(not goes(snapshot, name, with_objects=with_objects) for name in snapshot.definitions):
        yield note("kept", "--delete-objects deletes all of our definitions that stay, with their objects")


def _settings(snapshot: Snapshot) -> Iterator[Finding]:
    """Yield the ConfigMaps whose data only users wrote; those of our processes have our prefix."""
    names = [
        f"{item.namespace}/{item.name}"
        for item in snapshot.found
        if item.resource is CONFIG_MAPS and not item.name.startswith(NAME_PREFIX)
    ]
    if names:
        yield note(
            "deleted",
            f"what users wrote into ConfigMaps, such as prices and service classes, will be deleted:"
            f" {', '.join(names)}",
            "save what you need: kubectl get configmap NAME --namespace NAMESPACE --output yaml",
        )


def _namespace(snapshot: Snapshot) -> Iterator[Finding]:
    for namespace, content in snapshot.strangers.items():
        if content:
            yield note(
                "kept", f"the namespace {namespace} stays, because it also contains {_some(list(content))}"
            )


def _some(items: list[str]) -> str:
    rest = len(items) - _MOST_NAMED
    return "; ".join(items[:_MOST_NAMED]) + (f"; and {rest} more" if rest > 0 else "")
