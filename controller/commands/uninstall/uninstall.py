"""`stowplan uninstall`: for each part of an installation, what its removal means, and the steps to it.

Processes that act stop first, so that they write nothing more into objects of others; then their changes are
removed. Calls by the API server end before the pods that serve them are deleted: webhooks, then conversion.
The objects that identify our namespace go last. So no journal is needed: an interrupted run is run again.
"""

from __future__ import annotations

import argparse
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from functools import partial
from itertools import product
from typing import Final

from apiserver.cluster.client import Cluster
from apiserver.cluster.errors import Conflict, NotFound
from apiserver.cluster.heartbeat import LEASE_NAME
from apiserver.cluster.resource import (
    API_SERVICES,
    AUTOSCALING_POLICY_BINDINGS,
    CONFIG_MAPS,
    CUSTOM_RESOURCE_DEFINITIONS,
    DEPLOYMENTS,
    LEADER_WORKER_SETS,
    LEASES,
    NAMESPACES,
    NODES,
    PODS,
    SERVICES,
    STATEFUL_SETS,
    VARIANT_AUTOSCALINGS,
    Resource,
)
from apiserver.kinds.registry import DEFINED
from apiserver.schema.json import Json
from controller.certificates.certificates import FormerClaim, former_claim
from controller.commands.uninstall.definitions import definition_parts
from controller.commands.uninstall.installed import (
    ACTING_PODS,
    NAME_PREFIX,
    REMOVED,
    SELECTOR,
    WEBHOOK_CONFIGURATIONS,
    Parts,
    Removal,
    annotations_patch,
    foreign_content,
    has_our_name,
    installations,
    is_acting,
    name_of,
    place_of,
    read_ours,
)
from controller.commands.upgrade.calls import (
    CONFLICT_PAUSES_SECONDS,
    Pace,
    StoppedError,
    change_all,
    delete_all,
    get_if_present,
    list_metadata,
    list_where,
    missing_permissions,
    resource_of,
    retry,
    wait_out,
)
from controller.commands.upgrade.checks import DELIVERY_MARKS, is_held, labels_and_annotations
from controller.commands.upgrade.definitions import HELM_RELEASE, settle, without_label
from controller.commands.upgrade.report import (
    Finding,
    Run,
    Step,
    check_permissions,
    note,
    ok,
    plan_run,
    problem,
)
from controller.commands.upgrade.run import migration_parser, run
from controller.evictions.evicting import is_closed, other_taints
from controller.observe import decision_following
from controller.observe.removal_order import OURS as OUR_COST
from controller.observe.removal_order import marks
from controller.planning.wording import count
from controller.variants.placing import GATE, ReleasedPod, is_gated

_MOST_NAMED: Final = 5
_HELM_NAMESPACE: Final = "meta.helm.sh/release-namespace"
_SCHEDULER: Final = "stowplan-packed"
_PRIORITIES: Final = "stowplan-accelerators-"
_DELETED: Final = (*REMOVED, *WEBHOOK_CONFIGURATIONS, CUSTOM_RESOURCE_DEFINITIONS, API_SERVICES, NAMESPACES)
_NEEDED: Final = (
    *product(("list", "delete"), _DELETED),
    *product(("get", "list", "patch"), (PODS, NODES, AUTOSCALING_POLICY_BINDINGS, VARIANT_AUTOSCALINGS)),
    *product(("get", "update"), (CUSTOM_RESOURCE_DEFINITIONS, API_SERVICES)),
    *product(("get",), (LEASES, SERVICES)),
    *product(("list",), (STATEFUL_SETS, LEADER_WORKER_SETS, *(resource_of(kind, "") for kind in DEFINED))),
    *product(("update",), (resource_of(kind, "") for kind in DEFINED if kind.has_conversion)),
)
_DESCRIPTION: Final = """\
Remove Stowplan from a cluster: remove scheduling gates, marks and taints from
pods and nodes, restore external.metrics.k8s.io to its former owner, and delete
what the manifests installed. Definitions that have objects stay, with these
objects. Prints the plan; --apply executes it.
"""
_EPILOG: Final = """\
examples:
  stowplan uninstall                            print what goes and what stays
  stowplan uninstall --apply                    execute it
  stowplan uninstall --apply --delete-objects   delete all objects, too
"""


def main(arguments: Sequence[str]) -> int:
    """Print or execute the plan; return the exit code."""
    options = parser().parse_args(arguments)
    return run(options, partial(plan_removal, accept=options.accept, with_objects=options.delete_objects))


def parser() -> argparse.ArgumentParser:
    """Return the parser of the command line."""
    made = migration_parser("uninstall", _DESCRIPTION, _EPILOG, acceptable=("owners", "templates"))
    made.add_argument(
        "--delete-objects",
        action="store_true",
        help="also delete definitions that have objects, these objects, and everything that Models"
        " expanded to",
    )
    return made


async def plan_removal(
    cluster: Cluster, pace: Pace, *, accept: Sequence[str] = (), with_objects: bool = False
) -> Run:
    """Read a cluster and return the plan for it. Raises ClusterError if a read fails."""
    needed = (f"{verb} {resource.full_name.removesuffix('.')}" for verb, resource in _NEEDED)
    missing = await missing_permissions(cluster, needed)
    parts: list[Finding | Step] = [check_permissions(missing)]
    if not missing:
        namespaces = await installations(cluster)
        resources = (*REMOVED, *WEBHOOK_CONFIGURATIONS)
        objects = {resource: await read_ours(cluster, resource, namespaces) for resource in resources}
        removal = Removal(
            cluster=cluster, pace=pace, with_objects=with_objects, namespaces=namespaces, objects=objects
        )
        for part in (
            _owners,
            _templates,
            _processes,
            _claim,
            _webhooks,
            definition_parts,
            _rest,
            _namespaces,
        ):
            parts += [item async for item in part(removal)]
    return plan_run("uninstall", cluster.host, parts, accept=accept)


async def _owners(removal: Removal) -> Parts:
    """Yield in which namespaces Stowplan is, and who else has installed what is to be removed."""
    if len(removal.namespaces) > 1:
        message = "Stowplan is installed in several namespaces, and is removed from all of them: "
        yield note("installations", message + ", ".join(removal.namespaces))
    marked, releases = defaultdict[str, list[str]](list), set[tuple[str, str]]()
    for resource, item in ((resource, item) for resource, its in removal.objects.items() for item in its):
        texts = labels_and_annotations(item)
        for mark in texts.keys() & DELIVERY_MARKS:
            marked[mark].append(f"{resource.kind} {place_of(item)}")
        if release := texts.get(HELM_RELEASE):
            releases.add((release, texts.get(_HELM_NAMESPACE, removal.namespaces[0])))
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
    if not marked and not releases:
        yield ok("owners", "no delivery tool would reinstall it")


async def _templates(removal: Removal) -> Parts:
    """Yield the workloads of others whose new pods would not run without Stowplan."""
    texts = list[str]()
    for resource in (DEPLOYMENTS, STATEFUL_SETS, LEADER_WORKER_SETS):
        with suppress(NotFound):  # LeaderWorkerSets may not be installed
            for item in await list_where(removal.cluster, resource, lambda item: any(_needs(item))):
                texts += [f"{resource.kind} {place_of(item)}: {', '.join(dict.fromkeys(_needs(item)))}"]
    if texts:
        message = f"new pods would not run without Stowplan: {_some(texts)}"
        yield problem(
            "templates", message, "remove this from their templates first, or use --accept templates"
        )
    else:
        yield ok("templates", "no pod template depends on Stowplan")


def _needs(workload: Json) -> Iterator[str]:
    """Yield the features of Stowplan that the pods of a workload need."""
    spec = workload["spec"]
    group = spec.get("leaderWorkerTemplate") or {}
    for template in (spec.get("template"), group.get("leaderTemplate"), group.get("workerTemplate")):
        pod = (template or {}).get("spec") or {}
        if any(gate["name"] == GATE for gate in pod.get("schedulingGates") or []):
            yield f"the scheduling gate {GATE}"
        if pod.get("schedulerName") == _SCHEDULER:
            yield f"the scheduler {_SCHEDULER}"
        if str(pod.get("priorityClassName") or "").startswith(_PRIORITIES):
            yield f"the priority class {pod['priorityClassName']}"


async def _processes(removal: Removal) -> Parts:
    """Yield the steps that stop what writes objects of others, and that remove what it wrote there."""
    acting = map(name_of, filter(is_acting, removal.objects[DEPLOYMENTS]))
    names = dict.fromkeys([*acting, *await _leaders(removal)])
    if names:
        title = f"stop the active processes: {', '.join(names)}"
        yield Step(action="stop", title=title, act=partial(_stop, removal))
    present = [(what, await list_where(removal.cluster, kind, is_due)) for what, kind, is_due, _ in _MARKS]
    counts = ", ".join(f"{what}: {len(items)}" for what, items in present if items)
    if names or counts:  # processes may set marks until they stop
        title = "remove our scheduling gates and marks from pods, and our taint from nodes"
        title += f" ({counts or 'none'} now)"
        yield Step(action="clean", title=title, act=partial(_clean, removal))


async def _leaders(removal: Removal) -> list[str]:
    """Return the names of our Leases that are held now."""
    names = list[str]()
    for namespace in removal.namespaces:
        leases = (await removal.cluster.list(LEASES, namespace=namespace))["items"]
        names += [name_of(it) for it in leases if is_held(it.get("spec") or {}, datetime.now(UTC))]
    return [name for name in names if has_our_name(LEASES, name)]


async def _stop(removal: Removal) -> str:
    async def remainder() -> str:
        names = await _leaders(removal)
        for namespace in removal.namespaces:
            pods = await list_metadata(removal.cluster, PODS, namespace, labels=ACTING_PODS)
            names += map(name_of, pods)
        return f"{', '.join(names)} still exist" if names else ""

    await removal.delete(DEPLOYMENTS, is_acting)
    await wait_out(remainder)
    return "none of our processes is active"


def _has_our_cost(pod: Json) -> bool:
    return OUR_COST in (pod["metadata"].get("annotations") or {})


_MARKS: Final[tuple[tuple[str, Resource, Callable[[Json], bool], Callable[[Json], Json]], ...]] = (
    ("scheduling gates", PODS, is_gated, lambda pod: ReleasedPod(pod=pod, node=None).patch()),
    (
        "deletion costs",
        PODS,
        _has_our_cost,
        lambda pod: annotations_patch(marks([pod], keep=1)[0].annotations),
    ),
    ("taints", NODES, is_closed, lambda node: {"spec": {"taints": other_taints(node)}}),
)
"""Our changes of objects of others: which kind has them, what recognizes them, and the patch against them."""


async def _clean(removal: Removal) -> str:
    texts = []
    for what, resource, is_due, patch_for in _MARKS:
        change, pace = partial(removal.patch, resource, patch_for), removal.pace.of(resource.plural)
        number = await change_all(removal.cluster, resource, is_due, change, pace)
        texts.append(f"{what} removed: {number}")
    return ", ".join(texts)


async def _claim(removal: Removal) -> Parts:
    """Yield the step that returns the APIService of external metrics to its previous owner, or deletes it."""
    cluster, name = removal.cluster, decision_following.API_SERVICE
    claim = await get_if_present(cluster, API_SERVICES, name)
    if claim is None or not decision_following.is_ours(claim):
        return

    async def attempt() -> str:
        now = await get_if_present(cluster, API_SERVICES, name)
        if now is None or not decision_following.is_ours(now):
            return f"{name} is not ours any more"
        former = await _former_owner(removal)
        if former is None:
            await cluster.delete(API_SERVICES, name, uid=now["metadata"]["uid"])
            return f"{name} deleted"
        metadata = without_label(now)["metadata"]
        labels = (metadata.get("labels") or {}) | former.labels
        await cluster.replace(
            API_SERVICES, now | {"metadata": metadata | {"labels": labels}, "spec": former.spec}
        )
        return f"{name} points to {'/'.join(former.service)}"

    act = partial(retry, attempt, (Conflict, NotFound), CONFLICT_PAUSES_SECONDS)
    if former := await _former_owner(removal):
        owner = "/".join(former.service)
        yield ok("claim", f"external.metrics.k8s.io returns to {owner}")
        yield Step(action="return", subject=name, title=f"return {name} to {owner}", act=act)
    else:
        message = "external.metrics.k8s.io will have no owner: no former owner is known that still exists"
        yield note("claim", message, "if there was a former owner, apply its APIService again")
        yield Step(action="release", subject=name, title=f"delete the APIService {name}", act=act)


async def _former_owner(removal: Removal) -> FormerClaim | None:
    """Return the previous owner of external metrics, if it is known and its Service still exists."""
    for namespace in removal.namespaces:
        lease = await get_if_present(removal.cluster, LEASES, LEASE_NAME, namespace)
        former = former_claim(lease) if lease else None
        if former is not None:
            place, name = former.service
            if await get_if_present(removal.cluster, SERVICES, name, place):
                return former
    return None


async def _webhooks(removal: Removal) -> Parts:
    """Yield the step that deletes the webhook configurations."""

    async def unhook() -> str:
        for resource in WEBHOOK_CONFIGURATIONS:
            await removal.delete(resource)
        await settle(removal.cluster)
        return "none of our webhooks is called"

    items = [item for resource in WEBHOOK_CONFIGURATIONS for item in removal.objects[resource]]
    if names := dict.fromkeys(map(name_of, items)):
        title = f"delete the webhook configurations: {', '.join(names)}"
        yield Step(action="unhook", title=title, act=unhook)


async def _rest(removal: Removal) -> Parts:
    """Yield the step that deletes all else, and the ConfigMaps whose data only users wrote."""

    async def remove() -> str:
        number = sum([await removal.delete(resource) for resource in REMOVED])
        return f"{count(number, 'object')} deleted"

    settings = removal.objects[CONFIG_MAPS]
    if names := [place_of(item) for item in settings if not name_of(item).startswith(NAME_PREFIX)]:
        yield note(
            "deleted",
            f"what users wrote into ConfigMaps, such as prices and service classes, will be deleted:"
            f" {', '.join(names)}",
            "save what you need: kubectl get configmap NAME --namespace NAMESPACE --output yaml",
        )
    counts = {resource.kind: len(removal.objects[resource]) for resource in REMOVED}
    counts[DEPLOYMENTS.kind] -= len([*filter(is_acting, removal.objects[DEPLOYMENTS])])  # the first step
    if total := sum(counts.values()):
        kinds = ", ".join(f"{kind}: {number}" for kind, number in counts.items() if number)
        title = f"delete the rest of the installation: {total} ({kinds})"
        yield Step(action="remove", title=title, act=remove)


async def _namespaces(removal: Removal) -> Parts:
    """Yield the steps that delete the namespaces that our manifests created and nobody else uses.

    After everything in it is deleted, such a namespace is recognized by its label and by being empty.
    """
    ours = {item["metadata"]["uid"] for items in removal.objects.values() for item in items}
    for item in await list_metadata(removal.cluster, NAMESPACES, labels=SELECTOR):
        name = name_of(item)
        content = await foreign_content(removal.cluster, name, ours)
        if not content:
            act = partial(_leave, removal, item)
            yield Step(action="leave", subject=name, title=f"delete the namespace {name}", act=act)
        elif name in removal.namespaces:
            yield note("kept", f"the namespace {name} stays, because it also contains {_some(content)}")


async def _leave(removal: Removal, item: Json) -> str:
    name = name_of(item)
    if content := await foreign_content(removal.cluster, name, ours=()):
        raise StoppedError(f"{name} is not deleted: it also contains {'; '.join(content)}")
    await delete_all(removal.cluster, NAMESPACES, [item], removal.pace, waits=True)
    return f"{name} deleted"


def _some(items: Sequence[str]) -> str:
    rest = len(items) - _MOST_NAMED
    return "; ".join(items[:_MOST_NAMED]) + (f"; and {rest} more" if rest > 0 else "")
