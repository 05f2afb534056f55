"""`stowplan uninstall`: execution of the plan, one idempotent step after the other."""

from __future__ import annotations

import argparse
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from enum import Enum
from functools import partial
from typing import Final

from apiserver.cluster.client import Cluster
from apiserver.cluster.errors import Conflict, Forbidden, Invalid, NotFound
from apiserver.cluster.resource import (
    API_SERVICES,
    CUSTOM_RESOURCE_DEFINITIONS,
    DEPLOYMENTS,
    NAMESPACES,
    NODES,
    PODS,
    Resource,
)
from apiserver.kinds.authorship import WRITTEN_BY
from apiserver.kinds.identity import key_of
from apiserver.schema.json import Json
from apiserver.schema.kind import Kind
from controller.commands.uninstall.gather import (
    former_owner,
    gather,
    has_our_cost,
    has_writer,
    leaders,
    objects_of,
)
from controller.commands.uninstall.installed import (
    ACTING_PODS,
    REMOVED,
    SELECTOR,
    WEBHOOK_CONFIGURATIONS,
    find,
    foreign_content,
    is_acting,
    list_metadata,
)
from controller.commands.uninstall.plan import ACCEPTABLE, Action, plan_removal, without_ownership
from controller.commands.upgrade.calls import (
    Pace,
    StoppedError,
    change_all,
    comes_true,
    each,
    resource_of,
    retry,
    steadily,
    wait_until,
)
from controller.commands.upgrade.definitions import (
    KINDS,
    disown,
    read_definition,
    served_versions,
    settle,
    storage_version,
    until_served,
    without_label,
    write_definition,
)
from controller.commands.upgrade.report import Run, Step
from controller.commands.upgrade.run import migration_parser, run
from controller.evictions.evicting import is_closed, reopen
from controller.observe.decision_following import is_ours
from controller.observe.removal_order import marks
from controller.planning.wording import count
from controller.variants.placing import ReleasedPod, is_gated

_PATIENCE_SECONDS: Final = 120.0
_PAUSES_SECONDS: Final = (0.1,) * 19
_MOST_NAMED: Final = 5
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

If a run is interrupted, run the command again: it continues with the
remaining work.
"""


def main(arguments: Sequence[str]) -> int:
    """Print or execute the plan; return the exit code."""
    options = parser().parse_args(arguments)

    async def plan(cluster: Cluster) -> tuple[Run, Callable[[Pace], Removal]]:
        snapshot, with_objects = await gather(cluster), options.delete_objects
        report = plan_removal(snapshot, cluster.host, accept=options.accept, with_objects=with_objects)
        return report, lambda pace: Removal(
            cluster, pace, namespaces=snapshot.namespaces, with_objects=with_objects
        )

    return run(options, plan)


def parser() -> argparse.ArgumentParser:
    """Return the parser of the command line."""
    made = migration_parser("uninstall", _DESCRIPTION, _EPILOG, acceptable=ACCEPTABLE)
    made.add_argument(
        "--delete-objects",
        action="store_true",
        help="also delete definitions that have objects, these objects, and everything that Models"
        " expanded to",
    )
    return made


class Removal:
    """Executes steps on one cluster. `namespaces` are those of Stowplan itself."""

    def __init__(
        self, cluster: Cluster, pace: Pace, *, namespaces: Sequence[str], with_objects: bool
    ) -> None:
        self._cluster = cluster
        self._pace = pace
        self._namespaces = namespaces
        self._with_objects = with_objects
        self._actions: Mapping[Enum, Callable[[str], Awaitable[str]]] = {
            Action.STOP: self._stop,
            Action.CLEAN: self._clean,
            Action.RETURN: self._release,
            Action.RELEASE: self._release,
            Action.UNHOOK: self._unhook,
            Action.WITHDRAW: self._withdraw,
            Action.DELETE: self._delete_definition,
            Action.DISCLAIM: self._disclaim,
            Action.FORGET: self._forget,
            Action.REMOVE: self._remove,
            Action.LEAVE: self._leave,
        }

    async def do(self, step: Step) -> str:
        """Execute one step; return its result in one sentence. Raises StoppedError and ClusterError."""
        return await self._actions[step.action](step.subject)

    async def _stop(self, _: str) -> str:
        """Delete the Deployments that act, and wait until their pods and leases are gone."""
        deployments = await find(self._cluster, DEPLOYMENTS, self._namespaces)
        await self._delete(DEPLOYMENTS, [item for item in deployments if is_acting(item)])

        async def is_at_rest() -> bool:
            for namespace in self._namespaces:
                if await list_metadata(self._cluster, PODS, namespace, selector=ACTING_PODS):
                    return False
            return not await leaders(self._cluster, self._namespaces)

        if not await comes_true(is_at_rest, within_seconds=_PATIENCE_SECONDS):
            holders = ", ".join(await leaders(self._cluster, self._namespaces)) or "pods"
            raise StoppedError(
                f"{holders} still exist after {_PATIENCE_SECONDS:.0f} s; run this command again"
            )
        return "none of our processes is active"

    async def _clean(self, _: str) -> str:
        """Remove our changes from pods and nodes."""

        async def open_gate(pod: Json) -> None:
            namespace, name = pod["metadata"]["namespace"], pod["metadata"]["name"]
            change = ReleasedPod(pod=pod, node=None).patch()
            await self._cluster.patch_merge(PODS, name, change, namespace=namespace)

        async def remove_cost(pod: Json) -> None:
            costs = {name: value for mark in marks([pod], keep=1) for name, value in mark.annotations.items()}
            await self._annotate(PODS, pod, costs)

        async def remove_taint(node: Json) -> None:
            await reopen(self._cluster, node["metadata"]["name"])

        pace = self._pace.of("pods")
        gates = await change_all(self._cluster, PODS, is_gated, open_gate, pace)
        costs = await change_all(self._cluster, PODS, has_our_cost, remove_cost, pace)
        taints = await change_all(self._cluster, NODES, is_closed, remove_taint, self._pace.of("nodes"))
        return f"scheduling gates removed: {gates}, deletion costs removed: {costs}, taints removed: {taints}"

    async def _release(self, name: str) -> str:
        """Return the APIService of external metrics to its previous owner, if known; else delete it."""

        async def attempt() -> str:
            claim = await self._cluster.get(API_SERVICES, name)
            if not is_ours(claim):
                return f"{name} has another owner by now"
            former = await former_owner(self._cluster, self._namespaces)
            if former is None:
                await self._cluster.delete(API_SERVICES, name, uid=claim["metadata"]["uid"])
                return f"{name} deleted"
            bare = without_label(claim)
            labels = (bare["metadata"].get("labels") or {}) | former.labels
            metadata = bare["metadata"] | {"labels": labels}
            await self._cluster.replace(API_SERVICES, claim | {"metadata": metadata, "spec": former.spec})
            return f"{name} points to {'/'.join(former.service)}"

        try:
            return await retry(attempt, Conflict, _PAUSES_SECONDS)
        except NotFound:
            return f"{name} is gone"

    async def _unhook(self, _: str) -> str:
        for resource in WEBHOOK_CONFIGURATIONS:
            await self._delete(resource, await find(self._cluster, resource, self._namespaces))
        await settle(self._cluster)
        return "none of our webhooks is called"

    async def _withdraw(self, name: str) -> str:
        """Serve only the stored version; without conversion, managedFields of others would be unreadable."""
        kind = KINDS[name]
        live = await read_definition(self._cluster, kind)
        stored = storage_version(live)
        for version in served_versions(live):
            if version != stored:
                await disown(self._cluster, kind, version=version, served=stored, pace=self._pace)
        await self._change_definition(kind, without_conversion)
        await self._change_definition(kind, without_ownership)
        if live is not None:
            await until_served(self._cluster, kind, (stored,))
        return f"{name} serves only {stored}" if live else f"{name} is gone"

    async def _disclaim(self, name: str) -> str:
        await self._change_definition(KINDS[name], lambda live: without_ownership(without_label(live)))
        return f"{name} has nothing of ours"

    async def _change_definition(self, kind: Kind, change: Callable[[Json], Json]) -> None:
        await write_definition(self._cluster, kind, lambda live: None if live is None else change(live))

    async def _delete_definition(self, name: str) -> str:
        kind = KINDS[name]
        live = await read_definition(self._cluster, kind)
        if live is not None:
            if not self._with_objects and await objects_of(self._cluster, kind, live):
                raise StoppedError(f"objects of {name} were created in the meantime; run this command again")
            await self._delete(CUSTOM_RESOURCE_DEFINITIONS, [live])

        async def is_gone() -> bool:
            return await read_definition(self._cluster, kind) is None

        await wait_until(is_gone, f"{name} still exists", within_seconds=_PATIENCE_SECONDS)
        return f"{name} deleted"

    async def _forget(self, name: str) -> str:
        """Remove the annotation about the writer, which only Stowplan writes and reads.

        Objects that the API server refuses to write keep it and are named in the result: without us it has no
        effect, and their definition may be one of others, under which they are invalid.
        """
        kind, refused, done = KINDS[name], list[str](), 0
        live = await read_definition(self._cluster, kind)
        if live is None:
            return f"{name} is gone"
        resource = resource_of(kind, storage_version(live))

        async def remove(item: Json) -> None:
            nonlocal done
            try:
                await self._annotate(resource, item, {WRITTEN_BY: None})
                done += 1
            except (Forbidden, Invalid) as error:
                refused.append(f"{'/'.join(key_of(item))} ({error.message})")

        await change_all(self._cluster, resource, has_writer, remove, self._pace.of(resource.plural))
        texts = "; ".join(refused[:_MOST_NAMED])
        beside = f"; not changed, because refused: {len(refused)}: {texts}" if refused else ""
        return f"objects changed: {done}{beside}"

    async def _remove(self, _: str) -> str:
        deleted = 0
        for resource in REMOVED:
            items = await find(self._cluster, resource, self._namespaces)
            await self._delete(resource, items)
            deleted += len(items)
        return f"{count(deleted, 'object')} deleted"

    async def _leave(self, name: str) -> str:
        if content := await foreign_content(self._cluster, name):
            raise StoppedError(f"{name} is not deleted: it also contains {'; '.join(content)}")
        try:
            await self._cluster.delete(NAMESPACES, name)
        except NotFound:
            return f"{name} is gone"
        except Conflict:
            pass  # deletion is in progress

        async def is_gone() -> bool:
            ours = await list_metadata(self._cluster, NAMESPACES, selector=SELECTOR)
            return name not in [item["metadata"]["name"] for item in ours]

        complaint = f"the namespace {name} still exists"
        await wait_until(is_gone, complaint, within_seconds=_PATIENCE_SECONDS)
        return f"{name} deleted"

    async def _annotate(self, resource: Resource, item: Json, annotations: Mapping[str, str | None]) -> None:
        """Change annotations, unless the object has changed in the meantime."""
        metadata = item["metadata"]
        change = {"resourceVersion": metadata["resourceVersion"], "annotations": annotations}
        await self._cluster.patch_merge(
            resource, metadata["name"], {"metadata": change}, namespace=metadata["namespace"]
        )

    async def _delete(self, resource: Resource, items: Sequence[Json]) -> None:
        async def delete(item: Json) -> None:
            metadata = item["metadata"]
            place = {"namespace": metadata.get("namespace"), "uid": metadata["uid"]}
            call = partial(self._cluster.delete, resource, metadata["name"], **place)
            with suppress(NotFound, Conflict):  # it is gone, or replaced by a namesake
                await steadily(call)

        await each(items, delete, self._pace.of(resource.plural))


def without_conversion(definition: Json) -> Json:
    """Return a definition with only the stored version, which needs no conversion."""
    spec = definition["spec"]
    versions = [version for version in spec["versions"] if version["storage"]]
    return definition | {"spec": spec | {"versions": versions, "conversion": {"strategy": "None"}}}
