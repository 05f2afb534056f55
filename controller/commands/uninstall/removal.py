"""Execution of the steps, one after the other. Each is idempotent and independent of the others' memory."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import Final

from apiserver.cluster.client import Cluster
from apiserver.cluster.errors import Conflict, NotFound
from apiserver.cluster.resource import (
    API_SERVICES,
    CUSTOM_RESOURCE_DEFINITIONS,
    DEPLOYMENTS,
    NAMESPACES,
    PODS,
)
from apiserver.kinds.registry import KINDS
from apiserver.schema.json import Json
from apiserver.schema.kind import Kind
from controller.commands.uninstall.cleaning import clean, forget_writers
from controller.commands.uninstall.gather import count, find, leaders, read_former
from controller.commands.uninstall.installed import ACTING_PODS, REMOVED, WEBHOOK_CONFIGURATIONS, Found
from controller.commands.uninstall.namespace_content import strangers
from controller.commands.uninstall.steps import Action, Step, without_claims, without_ownership
from controller.commands.upgrade.counting import count_text
from controller.commands.upgrade.definitions import served_versions, storage_version
from controller.commands.upgrade.gather import read_definition
from controller.commands.upgrade.ownership import PART_OF
from controller.commands.upgrade.progress import Progress
from controller.commands.upgrade.reshaping import disown
from controller.commands.upgrade.resources import resource_of
from controller.commands.upgrade.retrying import Pace, comes_true, each, retry, steadily
from controller.commands.upgrade.runs import Done, StoppedError, perform
from controller.commands.upgrade.waiting import settle, until_served
from controller.observe.external_metrics import is_ours

_PATIENCE_SECONDS: Final = 120.0
_PAUSES_SECONDS: Final = (0.1,) * 19
_KINDS: Final = {kind.crd_name: kind for kind in KINDS}


class Removal:
    """Executes steps on one cluster. `namespaces` are those of Stowplan itself."""

    def __init__(
        self,
        cluster: Cluster,
        progress: Progress,
        *,
        namespaces: Sequence[str],
        per_second: float,
        with_objects: bool,
    ) -> None:
        self._cluster = cluster
        self._progress = progress
        self._namespaces = namespaces
        self._pace = Pace(per_second=per_second, tell=progress.tell)
        self._with_objects = with_objects
        self._actions: Mapping[Action, Callable[[Step], Awaitable[str]]] = {
            Action.STOP: self._stop,
            Action.CLEAN: lambda _: clean(self._cluster, self._pace),
            Action.RETURN: self._release,
            Action.RELEASE: self._release,
            Action.UNHOOK: self._unhook,
            Action.FORGET: self._forget,
            Action.DISCLAIM: self._disclaim,
            Action.WITHDRAW: self._withdraw,
            Action.DELETE: self._delete_definition,
            Action.REMOVE: self._remove,
            Action.LEAVE: self._leave,
        }

    async def do(self, step: Step) -> Done:
        """Execute one step. Raises StoppedError and ClusterError."""
        return await perform(step, self._actions[step.action], self._progress)

    async def _stop(self, _: Step) -> str:
        """Delete the Deployments that act, and wait until their pods and leases are gone."""
        found = [item for item in await find(self._cluster, DEPLOYMENTS, self._namespaces) if item.is_acting]
        await self._delete(found)

        async def is_at_rest() -> bool:
            for namespace in self._namespaces:
                listed = await self._cluster.list(
                    PODS, namespace=namespace, label_selector=ACTING_PODS, metadata_only=True
                )
                if listed["items"]:
                    return False
            return not await leaders(self._cluster, self._namespaces)

        if not await comes_true(is_at_rest, within_seconds=_PATIENCE_SECONDS):
            holders = ", ".join(await leaders(self._cluster, self._namespaces)) or "pods"
            raise StoppedError(
                f"{holders} still exist after {_PATIENCE_SECONDS:.0f} s; run this command again"
            )
        return "none of our processes is active"

    async def _release(self, step: Step) -> str:
        """Return the APIService of external metrics to its previous owner, if known; else delete it."""

        async def attempt() -> str:
            claim = await self._cluster.get(API_SERVICES, step.subject)
            if not is_ours(claim):
                return f"{step.subject} has another owner by now"
            former = await read_former(self._cluster, self._namespaces)
            if former is None:
                await self._cluster.delete(API_SERVICES, step.subject, uid=claim["metadata"]["uid"])
                return f"{step.subject} deleted"
            labels = {
                name: value
                for name, value in (claim["metadata"].get("labels") or {}).items()
                if name != PART_OF
            }
            metadata = claim["metadata"] | {"labels": labels | former.labels}
            await self._cluster.replace(API_SERVICES, claim | {"metadata": metadata, "spec": former.spec})
            return f"{step.subject} points to {'/'.join(former.service)}"

        try:
            return await retry(attempt, Conflict, _PAUSES_SECONDS)
        except NotFound:
            return f"{step.subject} is gone"

    async def _unhook(self, _: Step) -> str:
        for resource in WEBHOOK_CONFIGURATIONS:
            await self._delete(await find(self._cluster, resource, self._namespaces))
        await settle(self._cluster)
        return "none of our webhooks is called"

    async def _withdraw(self, step: Step) -> str:
        """Serve only the stored version; without conversion, managedFields of others would be unreadable."""
        kind = _KINDS[step.subject]
        live = await read_definition(self._cluster, kind)
        if live is None:
            return f"{step.subject} is gone"
        stored = storage_version(live)
        for version in served_versions(live):
            if version != stored:
                left = f"{kind.group}/{version}"
                _, failures = await disown(self._cluster, resource_of(kind, stored), left, self._pace)
                if failures:
                    raise StoppedError(
                        f"{count_text(len(failures), 'object')} could not be written; run this command again",
                        failures,
                    )
        await self._write_definition(kind, without_conversion)
        await self._write_definition(kind, without_ownership)
        await until_served(self._cluster, kind, (stored,))
        return f"{step.subject} serves only {stored}"

    async def _disclaim(self, step: Step) -> str:
        await self._write_definition(_KINDS[step.subject], without_claims)
        return f"{step.subject} has nothing of ours"

    async def _forget(self, step: Step) -> str:
        kind = _KINDS[step.subject]
        live = await read_definition(self._cluster, kind)
        if live is None:
            return f"{step.subject} is gone"
        return await forget_writers(self._cluster, resource_of(kind, storage_version(live)), self._pace)

    async def _write_definition(self, kind: Kind, wanted: Callable[[Json], Json]) -> None:
        async def attempt() -> None:
            live = await read_definition(self._cluster, kind)
            if live is not None and (changed := wanted(live)) != live:
                await self._cluster.replace(CUSTOM_RESOURCE_DEFINITIONS, changed)

        await retry(attempt, Conflict, _PAUSES_SECONDS)

    async def _delete_definition(self, step: Step) -> str:
        kind = _KINDS[step.subject]
        live = await read_definition(self._cluster, kind)
        if live is not None:
            if not self._with_objects and await count(self._cluster, kind, live):
                raise StoppedError(
                    f"objects of {step.subject} were created in the meantime; run this command again"
                )
            await self._delete([Found(resource=CUSTOM_RESOURCE_DEFINITIONS, metadata=live["metadata"])])

        async def is_gone() -> bool:
            return await read_definition(self._cluster, kind) is None

        await self._until(is_gone, step.subject)
        return f"{step.subject} deleted"

    async def _remove(self, _: Step) -> str:
        deleted = 0
        for resource in REMOVED:
            found = await find(self._cluster, resource, self._namespaces)
            await self._delete(found)
            deleted += len(found)
        return f"{count_text(deleted, 'object')} deleted"

    async def _leave(self, step: Step) -> str:
        found = await strangers(self._cluster, step.subject, ())
        if found:
            raise StoppedError(f"{step.subject} is not deleted: it also contains {'; '.join(found)}")
        try:
            await self._cluster.delete(NAMESPACES, step.subject)
        except NotFound:
            return f"{step.subject} is gone"
        except Conflict:
            pass  # deletion is in progress

        async def is_gone() -> bool:
            listed = await self._cluster.list(NAMESPACES, field_selector=f"metadata.name={step.subject}")
            return not listed["items"]

        await self._until(is_gone, f"the namespace {step.subject}")
        return f"{step.subject} deleted"

    async def _until(self, is_gone: Callable[[], Awaitable[bool]], what: str) -> None:
        if not await comes_true(is_gone, within_seconds=_PATIENCE_SECONDS):
            raise StoppedError(f"{what} still exists after {_PATIENCE_SECONDS:.0f} s; run this command again")

    async def _delete(self, found: Sequence[Found]) -> None:
        """Delete objects of one kind."""
        if found:
            await each(found, self._delete_one, self._pace.of(found[0].resource.plural))

    async def _delete_one(self, item: Found) -> None:
        delete = partial(
            self._cluster.delete,
            item.resource,
            item.name,
            namespace=item.namespace or None,
            uid=item.metadata["uid"],
        )
        with suppress(NotFound, Conflict):  # it is gone, or replaced by a namesake
            await steadily(delete)


def without_conversion(definition: Json) -> Json:
    """Return a definition with only the stored version, which needs no conversion."""
    spec = definition["spec"]
    versions = [version for version in spec["versions"] if version["storage"]]
    return definition | {"spec": spec | {"versions": versions, "conversion": {"strategy": "None"}}}
