"""The plan of an uninstallation: what stands against it, what stays, and the remaining steps.

Processes that act stop first, so that they write nothing more into objects of others; then their changes are
removed. Calls by the API server end before the pods that serve them are deleted: webhooks, then conversion.
The objects that identify our namespace go last. So no journal is needed: an interrupted run is run again.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from enum import Enum
from typing import Final

from apiserver.cluster.resource import CONFIG_MAPS, DEPLOYMENTS, MODELS, Resource
from apiserver.kinds.authorship import is_recorded
from apiserver.schema.json import Json
from apiserver.schema.kind import Kind
from controller.commands.uninstall.gather import UninstallState, has_writer
from controller.commands.uninstall.installed import (
    NAME_PREFIX,
    REMOVED,
    WEBHOOK_CONFIGURATIONS,
    is_acting,
    place_of,
)
from controller.commands.upgrade.checks import DELIVERY_MARKS
from controller.commands.upgrade.definitions import (
    HELM_RELEASE,
    is_ours,
    is_ours_still,
    storage_version,
    stored_versions,
)
from controller.commands.upgrade.report import (
    Finding,
    Run,
    Step,
    check_permissions,
    note,
    ok,
    problem,
    with_accepted,
)

ACCEPTABLE: Final = ("owners", "templates")
"""Checks whose problems users may accept."""

_MOST_NAMED: Final = 5
_HELM_NAMESPACE: Final = "meta.helm.sh/release-namespace"
_OUR_CLIENT: Final = ("stowplan", "Update", None)
"""Manager, operation and subresource of our client's writes in managedFields."""


class Action(Enum):
    """The kinds of steps, with their titles."""

    STOP = "stop the active processes: {detail}"
    CLEAN = "remove our scheduling gates and marks from pods, and our taint from nodes ({detail} now)"
    RETURN = "return {subject} to {detail}"
    RELEASE = "delete the APIService {subject}"
    UNHOOK = "delete the webhook configurations: {detail}"
    WITHDRAW = "serve {subject} only in {detail}, without conversion"
    DELETE = "delete the definition {subject}{detail}"
    DISCLAIM = "remove our label and field ownership from the definition {subject}, which is not ours"
    FORGET = "remove the annotation with the writer from objects of {subject}: {detail}"
    REMOVE = "delete the rest of the installation: {detail}"
    LEAVE = "delete the namespace {subject}"


def plan_removal(
    snapshot: UninstallState, cluster: str, *, accept: Sequence[str] = (), with_objects: bool = False
) -> Run:
    """Return the plan for a snapshot."""
    checks, steps = [check_permissions(snapshot.missing_permissions)], tuple[Step, ...]()
    if not snapshot.missing_permissions:
        checks += _checks(snapshot, with_objects=with_objects)
        steps = tuple(_steps(snapshot, with_objects=with_objects))
    return Run(verb="uninstall", cluster=cluster, checks=with_accepted(checks, accept), steps=steps)


def _is_converted(definition: Json) -> bool:
    """Tell whether the API server converts objects by a webhook."""
    return (definition["spec"].get("conversion") or {}).get("strategy") == "Webhook"


def is_owned(definition: Json) -> bool:
    """Tell whether our client owns fields of a definition."""
    return without_ownership(definition) is not definition


def without_ownership(definition: Json) -> Json:
    """Return a definition in which we own no field, so that applying manifests again causes no conflict."""
    metadata = definition["metadata"]
    entries = metadata.get("managedFields") or []
    others = [
        entry
        for entry in entries
        if (entry.get("manager"), entry.get("operation"), entry.get("subresource")) != _OUR_CLIENT
    ]
    if len(others) == len(entries):
        return definition
    return definition | {"metadata": metadata | {"managedFields": others}}


def _checks(snapshot: UninstallState, *, with_objects: bool) -> Iterator[Finding]:
    if len(snapshot.namespaces) > 1:
        yield note(
            "installations",
            f"Stowplan is installed in several namespaces, and is removed from all of them:"
            f" {', '.join(snapshot.namespaces)}",
        )
    yield from [*_owners(snapshot)] or [ok("owners", "no delivery tool would reinstall it")]
    if snapshot.dependents:
        yield problem(
            "templates",
            f"new pods would not run without Stowplan: {_some(snapshot.dependents)}",
            "remove this from their templates first, or use --accept templates",
        )
    else:
        yield ok("templates", "no pod template depends on Stowplan")
    if snapshot.former is not None:
        yield ok("claim", f"external.metrics.k8s.io returns to {'/'.join(snapshot.former.service)}")
    elif snapshot.api_service is not None:
        yield note(
            "claim",
            "external.metrics.k8s.io will have no owner: no former owner is known that still exists",
            "if there was a former owner, apply its APIService again",
        )
    yield from _objects(snapshot, with_objects=with_objects)
    yield from _losses(snapshot)


def _owners(snapshot: UninstallState) -> Iterator[Finding]:
    """Yield findings about delivery tools that have installed what is to be removed."""
    marked, releases = defaultdict[str, list[str]](list), set[tuple[str, str]]()
    for resource, item in ((resource, item) for resource, its in snapshot.installed.items() for item in its):
        annotations, labels = item["metadata"].get("annotations") or {}, item["metadata"].get("labels") or {}
        for mark in DELIVERY_MARKS:
            if mark in annotations or mark in labels:
                marked[mark].append(f"{resource.kind} {place_of(item)}")
        if release := annotations.get(HELM_RELEASE):
            releases.add((release, annotations.get(_HELM_NAMESPACE, snapshot.namespaces[0])))
    for mark, items in sorted(marked.items()):
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


def _objects(snapshot: UninstallState, *, with_objects: bool) -> Iterator[Finding]:
    """Yield findings about which definitions are deleted, and which stay with their objects."""
    has_hint = False
    for kind, live, objects in snapshot.definitions:
        also = " and everything that they expanded to" if kind.kind == MODELS.kind else ""
        text = f"with its objects{also}: {len(objects)}"
        if not objects:
            continue
        if not is_ours_still(kind, live):
            yield note("kept", f"{kind.crd_name} is not ours; it stays, {text}")
        elif with_objects:
            yield note("deleted", f"{kind.crd_name} will be deleted, {text}")
        else:
            has_hint = True
            yield note("kept", f"{kind.crd_name} stays, {text}")
            yield from _two_versions(kind, live)
    if has_hint:
        yield note("kept", "--delete-objects deletes all of our definitions that stay, with their objects")


def _two_versions(kind: Kind, live: Json) -> Iterator[Finding]:
    stored = stored_versions(live)
    if _is_converted(live) and stored != (storage_version(live),):
        yield problem(
            "definition",
            f"{kind.crd_name} may have objects in {', '.join(stored)}, and without conversion only one"
            " version can be served",
            "stowplan upgrade --apply rewrites them, stowplan downgrade restores them",
        )


def _losses(snapshot: UninstallState) -> Iterator[Finding]:
    """Yield the ConfigMaps whose data only users wrote, and the namespaces that others use, too."""
    settings = snapshot.installed.get(CONFIG_MAPS, ())
    names = [place_of(item) for item in settings if not item["metadata"]["name"].startswith(NAME_PREFIX)]
    if names:
        yield note(
            "deleted",
            f"what users wrote into ConfigMaps, such as prices and service classes, will be deleted:"
            f" {', '.join(names)}",
            "save what you need: kubectl get configmap NAME --namespace NAMESPACE --output yaml",
        )
    for namespace, content in snapshot.foreign.items():
        if content:
            yield note("kept", f"the namespace {namespace} stays, because it also contains {_some(content)}")


def _some(items: Sequence[str]) -> str:
    rest = len(items) - _MOST_NAMED
    return "; ".join(items[:_MOST_NAMED]) + (f"; and {rest} more" if rest > 0 else "")


def _steps(snapshot: UninstallState, *, with_objects: bool) -> Iterator[Step]:
    """Yield the remaining steps; none when all are done."""
    acting = filter(is_acting, snapshot.installed.get(DEPLOYMENTS, ()))
    names = dict.fromkeys([*(item["metadata"]["name"] for item in acting), *snapshot.leaders])
    if names:
        yield Step(action=Action.STOP, detail=", ".join(names))
    if names or snapshot.marks:  # processes may set marks until they stop
        marks = ", ".join(f"{what}: {number}" for what, number in snapshot.marks.items())
        yield Step(action=Action.CLEAN, detail=marks or "none")
    if snapshot.api_service is not None:
        former, action = snapshot.former, Action.RETURN if snapshot.former else Action.RELEASE
        detail = "/".join(former.service) if former else ""
        yield Step(action=action, subject=snapshot.api_service["metadata"]["name"], detail=detail)
    webhooks = [item for resource in WEBHOOK_CONFIGURATIONS for item in snapshot.installed.get(resource, ())]
    if names := dict.fromkeys(item["metadata"]["name"] for item in webhooks):
        yield Step(action=Action.UNHOOK, detail=", ".join(names))
    yield from _definition_steps(snapshot, with_objects=with_objects)
    counts = {resource.kind: len(_rest(snapshot, resource)) for resource in REMOVED}
    if total := sum(counts.values()):
        kinds = ", ".join(f"{kind}: {number}" for kind, number in counts.items() if number)
        yield Step(action=Action.REMOVE, detail=f"{total} ({kinds})")
    for namespace, content in snapshot.foreign.items():
        if not content:
            yield Step(action=Action.LEAVE, subject=namespace)


def _rest(snapshot: UninstallState, resource: Resource) -> Sequence[Json]:
    """Return our objects of one kind, without the Deployments that the first step deletes."""
    items = snapshot.installed.get(resource, ())
    return [item for item in items if not is_acting(item)] if resource is DEPLOYMENTS else items


def _definition_steps(snapshot: UninstallState, *, with_objects: bool) -> Iterator[Step]:
    forget = []
    for kind, live, objects in snapshot.definitions:
        name, is_own = kind.crd_name, is_ours_still(kind, live)
        if is_own and (with_objects or not objects):
            text = f" and its objects: {len(objects)}" if objects else ""
            yield Step(action=Action.DELETE, subject=name, detail=text)
            continue
        if is_own and (_is_converted(live) or is_owned(live)):
            yield Step(action=Action.WITHDRAW, subject=name, detail=storage_version(live))
        elif not is_own and (is_ours(live) or is_owned(live)):
            yield Step(action=Action.DISCLAIM, subject=name)
        # A later installation needs the annotation on VariantAutoscalings that stay under our definition.
        number = sum(map(has_writer, objects)) if is_recorded(kind) else 0
        if number and not (kind.has_conversion and is_own):
            forget.append(Step(action=Action.FORGET, subject=name, detail=str(number)))
    yield from forget  # no webhook is left that would write it again
