"""Lists of objects that are as large as the API server accepts."""

from __future__ import annotations

from typing import TYPE_CHECKING

from apiserver.cluster.resource import CONFIG_MAPS

if TYPE_CHECKING:
    from apiserver.cluster.client import Cluster

    from .conftest import FakeApiServer


async def test_a_page_of_large_objects_is_read_in_smaller_ones(cluster: Cluster, api: FakeApiServer) -> None:
    """Five hundred objects of a megabyte would take all memory; later pages have the usual size again."""
    for number in range(100):
        text = "x" * (800_000 if number < 40 else 1)
        made = {"metadata": {"name": f"c{number:03}"}, "data": {"text": text}}
        api.put(f"/api/v1/namespaces/default/configmaps/c{number:03}", made)
    listed = await cluster.list(CONFIG_MAPS, page_size=64)

    assert [item["metadata"]["name"] for item in listed["items"]] == [f"c{n:03}" for n in range(100)]
    limits = [request.query["limit"] for request in api.requests]
    assert (limits[:2], limits[-1]) == (["64", "8"], "64")
