"""A fenced connection writes only while its process leads."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import pytest

from apiserver.cluster import errors
from apiserver.cluster.client import Cluster
from apiserver.cluster.resource import CONFIG_MAPS

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from unit.cluster.conftest import FakeApiServer

MADE: Final = {"metadata": {"name": "a", "namespace": "default"}}


async def test_a_fenced_connection_without_leadership_only_reads(
    cluster: Cluster, api: FakeApiServer
) -> None:
    """No write request is sent, and the original connection still writes."""
    leads = True
    fenced = cluster.with_fence(lambda: leads)
    made = await fenced.create(CONFIG_MAPS, MADE)
    leads = False
    sent = len(api.requests)
    writes: list[Callable[[], Awaitable[object]]] = [
        lambda: fenced.create(CONFIG_MAPS, MADE),
        lambda: fenced.replace(CONFIG_MAPS, made),
        lambda: fenced.apply(CONFIG_MAPS, made, field_manager="me"),
        lambda: fenced.patch_json(CONFIG_MAPS, "a", [], namespace="default"),
        lambda: fenced.patch_merge(CONFIG_MAPS, "a", {}, namespace="default"),
        lambda: fenced.evict("default", "p", uid="u"),
        lambda: fenced.delete(CONFIG_MAPS, "a", namespace="default"),
    ]
    for write in writes:
        with pytest.raises(errors.NotLeading, match="does not hold the lease"):
            await write()

    assert len(api.requests) == sent
    assert await fenced.get(CONFIG_MAPS, "a", namespace="default") == made
    await cluster.delete(CONFIG_MAPS, "a", namespace="default")


async def test_a_write_is_fenced_until_it_is_sent(cluster: Cluster, api: FakeApiServer) -> None:
    """Leadership is lost between the first check and the moment at which the connection is there."""
    made = await cluster.create(CONFIG_MAPS, MADE)
    answers = iter([True, False])
    fenced = cluster.with_fence(lambda: next(answers))
    sent = len(api.requests)
    with pytest.raises(errors.NotLeading, match="does not hold the lease"):
        await fenced.replace(CONFIG_MAPS, made)

    assert len(api.requests) == sent
    assert await cluster.replace(CONFIG_MAPS, made)
