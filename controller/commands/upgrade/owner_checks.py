"""Checks for other owners of the definition, which would revert or delete it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from apiserver.schema.json import Json
from apiserver.schema.kind import Kind
from controller.commands.upgrade.definitions import condition, served_versions, stored_versions
from controller.commands.upgrade.findings import Finding, note, ok, problem
from controller.commands.upgrade.ownership import HELM_RELEASE, PEOPLE, managers_of_our_chart
from controller.commands.upgrade.snapshot import Snapshot

_RECONCILERS: Final = ("argocd", "kustomize-controller", "helm-controller", "helm", "fleet", "olm", "catalog")
"""Prefixes of field managers that reapply what they once wrote."""
DELIVERY_MARKS: Final = ("argocd.argoproj.io/tracking-id", "kustomize.toolkit.fluxcd.io/name", "olm.managed")
"""Annotations and labels of objects that a delivery tool reconciles."""
_CHECK: Final = "owners"


def check_definition(snapshot: Snapshot, kind: Kind) -> Iterator[Finding]:
    """Yield whether the definition is one that can be migrated."""
    live = snapshot.definitions.get(kind.crd_name)
    if live is None:
        yield ok("definition", f"{kind.crd_name} is not installed")
        return
    known = {version.name for version in kind.versions}
    unknown = [name for name in (*served_versions(live), *stored_versions(live)) if name not in known]
    if unknown:
        yield problem(
            "definition",
            f"{kind.crd_name} has versions that this release does not support:"
            f" {', '.join(sorted(set(unknown)))}",
            "use a newer release of Stowplan that supports them; objects stored in these versions would"
            " become unreadable",
        )
    elif live["metadata"].get("deletionTimestamp") or condition(live, "Terminating") == "True":
        yield problem(
            "definition",
            f"{kind.crd_name} is being deleted",
            "wait until it is deleted, then run this command again",
        )
    elif condition(live, "NamesAccepted") == "False":
        yield problem(
            "definition",
            f"the names of {kind.crd_name} are taken by another definition",
            f"kubectl describe crd {kind.crd_name} shows which one",
        )
    else:
        yield ok(
            "definition",
            f"{kind.crd_name} serves {', '.join(served_versions(live))},"
            f" stored {', '.join(stored_versions(live))}",
        )


def check_owners(snapshot: Snapshot, kind: Kind) -> Iterator[Finding]:
    """Yield a finding for every other owner of the definition."""
    live = snapshot.definitions.get(kind.crd_name)
    if live is None:
        return
    found = [*_owners(live, kind.crd_name)]
    yield from found or [ok(_CHECK, f"{kind.crd_name} has no other owner")]


def _owners(live: Json, name: str) -> Iterator[Finding]:
    for owner in live["metadata"].get("ownerReferences") or []:
        yield problem(
            _CHECK,
            f"{name} and all its objects are deleted when {owner['kind']} {owner['name']} is deleted",
            f"remove the ownerReference from {name} (kubectl edit crd {name}), or use --accept {_CHECK}",
        )
    ours = managers_of_our_chart(live)
    yield from _releases(live, name, is_our_chart=bool(ours))
    marks = [mark for mark in DELIVERY_MARKS if mark in _marks(live)]
    for mark in marks:
        yield problem(
            _CHECK,
            f"{name} is managed by a delivery tool ({mark}), which would revert the upgrade",
            f"remove the definition from what it delivers, or use --accept {_CHECK}",
        )
    yield from _writers(_managers(live) - ours, name, is_marked=bool(marks))


def _releases(live: Json, name: str, *, is_our_chart: bool) -> Iterator[Finding]:
    release = _marks(live).get(HELM_RELEASE)
    if not release:
        return
    if is_our_chart:
        yield note(
            _CHECK,
            f"{name} is of Stowplan's own chart, Helm release {release}: helm upgrade updates it, and"
            " helm uninstall keeps it",
        )
        return
    yield problem(
        _CHECK,
        f"{name} belongs to the Helm release {release}: its next upgrade would overwrite our"
        " definition with the old one, and its removal deletes every object",
        "add the annotation helm.sh/resource-policy: keep to the chart's own template, run helm"
        " upgrade, and only then remove the definition from the chart (Helm uses the manifest of the"
        f" release, not the live object); or use --accept {_CHECK}",
    )


def _writers(managers: set[str], name: str, *, is_marked: bool) -> Iterator[Finding]:
    for manager in sorted(managers):
        if manager.startswith(_RECONCILERS) and not is_marked:
            yield problem(
                _CHECK,
                f"{name} was written by {manager}, which may write it again",
                f"remove the definition from what it delivers, or use --accept {_CHECK}",
            )
        elif not manager.startswith((*PEOPLE, *_RECONCILERS)):
            yield note(
                _CHECK, f"{name} was written by {manager}", "make sure that it does not write it again"
            )


def _marks(live: Json) -> Json:
    metadata = live["metadata"]
    return {**(metadata.get("annotations") or {}), **(metadata.get("labels") or {})}


def _managers(live: Json) -> set[str]:
    return {str(entry.get("manager", "")) for entry in live["metadata"].get("managedFields") or []}
