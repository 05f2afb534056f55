"""Removal of our changes from objects of others; conflicts with concurrent writers are retried."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from typing import Final

from apiserver.cluster.client import Cluster
from apiserver.cluster.errors import Conflict, Forbidden, Invalid, NotFound
from apiserver.cluster.resource import PODS, Resource
from apiserver.kinds.authorship import WRITTEN_BY
from apiserver.schema.json import Json
from controller.commands.uninstall.gather import annotated_objects, read_marked
from controller.commands.upgrade.retrying import Pace, each, steadily
from controller.commands.upgrade.runs import StoppedError
from controller.evictions.evicting import reopen
from controller.observe.leaving import marks
from controller.variants.placing import LetIn

_ROUNDS: Final = 5
"""Maximum number of rounds: objects that others change meanwhile are read again."""
_MOST_NAMED: Final = 5


async def clean(cluster: Cluster, pace: Pace) -> str:
    """Remove gates, deletion costs and taints until none is left; return a summary."""
    gates = costs = nodes = 0
    marked = await read_marked(cluster)
    for _ in range(_ROUNDS):
        if not marked:
            return (
                f"scheduling gates removed: {gates}, deletion costs removed: {costs}, taints removed: {nodes}"
            )
        gates += await _patch_all(
            cluster, PODS, [(pod, LetIn(pod=pod, node=None).patch()) for pod in marked.gated], pace
        )
        costs += await _patch_all(cluster, PODS, [(pod, _without_cost(pod)) for pod in marked.costly], pace)
        nodes += sum(await each(marked.closed, partial(_open_node, cluster), pace.of("nodes")))
        marked = await read_marked(cluster)
    raise StoppedError(
        f"objects that still have our marks are changed continuously ({marked}): run this command again"
    )


async def forget_writers(cluster: Cluster, resource: Resource, pace: Pace) -> str:
    """Remove the annotation about the writer from objects of a kind; only Stowplan writes and reads it.

    Objects that the API server refuses to write keep it and are named in the summary: without us it has no
    effect, and their definition may be one of others, under which they are invalid.
    """
    done, refused = 0, dict[str, str]()

    async def write(item: Json) -> bool:
        try:
            return await _succeeds(_patch(cluster, resource, item, _change(item, {WRITTEN_BY: None})))
        except (Forbidden, Invalid) as error:
            refused[_name(item)] = error.message
            return False

    for _ in range(_ROUNDS):
        found = [item for item in await annotated_objects(cluster, resource) if _name(item) not in refused]
        if not found:
            return f"objects changed: {done}{_refusals(refused)}"
        done += sum(await each(found, write, pace.of(resource.plural)))
    raise StoppedError(f"the annotation reappears on objects of {resource.plural}: run this command again")


def _refusals(refused: Mapping[str, str]) -> str:
    named = [f"{name} ({message})" for name, message in sorted(refused.items())[:_MOST_NAMED]]
    rest = [f"{len(refused) - _MOST_NAMED} more"] if len(refused) > _MOST_NAMED else []
    return f"; not changed, because refused: {len(refused)}: {'; '.join([*named, *rest])}" if refused else ""


def _name(item: Json) -> str:
    return f"{item['metadata']['namespace']}/{item['metadata']['name']}"


def _without_cost(pod: Json) -> Json:
    annotations = {name: value for mark in marks([pod], keep=1) for name, value in mark.annotations.items()}
    return _change(pod, annotations)


def _change(item: Json, annotations: Json) -> Json:
    return {"metadata": {"resourceVersion": item["metadata"]["resourceVersion"], "annotations": annotations}}


async def _patch_all(
    cluster: Cluster, resource: Resource, changes: Sequence[tuple[Json, Json]], pace: Pace
) -> int:
    """Apply merge patches; return the number applied, without those of objects that changed meanwhile."""

    async def write(change: tuple[Json, Json]) -> bool:
        return await _succeeds(_patch(cluster, resource, *change))

    return sum(await each(changes, write, pace.of(resource.plural)))


def _patch(cluster: Cluster, resource: Resource, item: Json, change: Json) -> Callable[[], Awaitable[object]]:
    metadata = item["metadata"]
    return partial(cluster.patch_merge, resource, metadata["name"], change, namespace=metadata["namespace"])


async def _open_node(cluster: Cluster, node: str) -> bool:
    return await _succeeds(partial(reopen, cluster, node))


async def _succeeds(write: Callable[[], Awaitable[object]]) -> bool:
    try:
        await steadily(write)
    except (Conflict, NotFound):
        return False
    return True
