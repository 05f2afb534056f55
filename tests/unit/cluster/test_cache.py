"""The cache: list and watch, with recovery from interruptions, and an index of its objects."""

from __future__ import annotations

import asyncio
import contextlib
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import pytest

from apiserver.cluster.cache import Cache, Change, GroupIndex
from apiserver.cluster.resource import CONFIG_MAPS
from apiserver.schema.json import Json

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from unit.cluster.conftest import Clock, FakeApiServer

    from apiserver.cluster.client import Cluster
    from apiserver.cluster.timing import Timing

PATH = "/api/v1/namespaces/default/configmaps"
LISTS = {"limit": "500"}


def config_map(name: str, **data: str) -> dict[str, Any]:
    """Return a ConfigMap."""
    return {"metadata": {"name": name}, "data": data}


class Changes:
    """The changes of a cache, to be awaited one by one."""

    def __init__(self, cache: Cache) -> None:
        """Subscribe to the cache."""
        self.queue: asyncio.Queue[Change] = asyncio.Queue()
        cache.subscribe(self.queue.put_nowait)

    async def next(self) -> tuple[str, object, object]:
        """Wait for a change; return its name, old data and new data."""
        async with asyncio.timeout(60):
            change = await self.queue.get()
        old, new = (obj and obj.get("data", {}) for obj in (change.old, change.new))
        return change.key[1], old, new


@asynccontextmanager
async def running(cache: Cache) -> AsyncIterator[Cache]:
    """Run a cache: enter the block when it is synced, and stop it at the end."""
    task = asyncio.create_task(cache.run())
    try:
        async with asyncio.timeout(60):
            await cache.synced.wait()
            yield cache
    finally:
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task


def lists(api: FakeApiServer) -> int:
    """Return the number of list requests so far."""
    return len([request for request in api.requests if not request.query.get("watch")])


@pytest.fixture
def cache(cluster: Cluster, timing: Timing) -> Cache:
    """Return a cache of ConfigMaps that is not running yet."""
    return Cache(cluster, CONFIG_MAPS, timing=timing)


async def test_the_first_list_fills_the_cache_in_name_order(api: FakeApiServer, cache: Cache) -> None:
    """Before it, the cache is not synced and its age is infinite."""
    api.put(PATH, config_map("b"))
    api.put(PATH, config_map("a"))
    assert not cache.synced.is_set()
    assert cache.age_seconds() == float("inf")
    async with running(cache):
        assert [item["metadata"]["name"] for item in cache.items()] == ["a", "b"]
        assert cache.get("default", "a") is cache.items()[0]
        assert cache.get("default", "c") is None


async def test_watch_events_update_the_cache(api: FakeApiServer, cache: Cache) -> None:
    """Each addition, update and deletion is reported with the object before it."""
    changes = Changes(cache)
    async with running(cache):
        api.put(PATH, config_map("a", x="1"))
        assert await changes.next() == ("a", None, {"x": "1"})
        api.put(PATH, config_map("a", x="2"))
        assert await changes.next() == ("a", {"x": "1"}, {"x": "2"})
        api.drop(f"{PATH}/a")
        assert await changes.next() == ("a", {"x": "2"}, None)
        assert cache.items() == ()


async def test_a_watch_that_ends_is_resumed(api: FakeApiServer, cache: Cache) -> None:
    """The watch continues at its last version: no second list, no lost or repeated event."""
    changes = Changes(cache)
    async with running(cache):
        api.put(PATH, config_map("a", x="1"))
        await changes.next()
        api.end_watches()
        api.put(PATH, config_map("b", x="1"))
        assert await changes.next() == ("b", None, {"x": "1"})

    assert lists(api) == 1


async def test_a_bookmark_moves_the_resume_point(api: FakeApiServer, cache: Cache) -> None:
    """A watch without events can resume although the history before its bookmark was compacted."""
    changes = Changes(cache)
    async with running(cache):
        api.put(PATH, config_map("a"))
        await changes.next()
        api.bookmark()
        api.oldest = api.version
        api.end_watches()
        api.put(PATH, config_map("b"))
        assert (await changes.next())[0] == "b"

    assert lists(api) == 1


async def test_after_410_the_cache_lists_again_and_reports_missed_deletions(
    api: FakeApiServer, cache: Cache
) -> None:
    """The history was compacted while no watch was open."""
    changes = Changes(cache)
    api.put(PATH, config_map("lost", x="1"))
    async with running(cache):
        api.put(PATH, config_map("kept", x="1"))
        assert [(await changes.next())[0] for _ in range(2)] == ["lost", "kept"]
        api.end_watches()
        api.drop(f"{PATH}/lost")
        api.put(PATH, config_map("new", x="1"))
        api.compact()
        assert await changes.next() == ("lost", {"x": "1"}, None)
        assert await changes.next() == ("new", None, {"x": "1"})
        api.put(PATH, config_map("kept", x="2"))
        assert await changes.next() == ("kept", {"x": "1"}, {"x": "2"})

    assert lists(api) == 2


async def test_a_missed_recreation_is_reported_as_a_change_with_another_uid(
    api: FakeApiServer, cache: Cache
) -> None:
    """The object was deleted and created again while no watch was open."""
    uids: list[tuple[str, str]] = []
    changes = Changes(cache)
    async with running(cache):
        api.put(PATH, config_map("a", x="1"))
        await changes.next()

        def remember(change: Change) -> None:
            if change.old and change.new:
                uids.append((change.old["metadata"]["uid"], change.new["metadata"]["uid"]))

        cache.subscribe(remember)
        api.end_watches()
        api.drop(f"{PATH}/a")
        api.put(PATH, config_map("a", x="2"))
        api.compact()
        assert await changes.next() == ("a", {"x": "1"}, {"x": "2"})

    assert len(uids) == 1
    assert uids[0][0] != uids[0][1]


@pytest.mark.parametrize(
    ("kind", "fault"),
    [
        pytest.param("GET", {"code": 500}, id="a list fails"),
        pytest.param("GET", {"code": 403}, id="a list is forbidden"),
        pytest.param("GET", {"code": 404}, id="the kind is not installed yet"),
        pytest.param("GET", {"code": 200, "body": b"{}"}, id="a response that is not a list"),
        pytest.param("WATCH", {"code": 500}, id="a watch fails"),
        pytest.param("WATCH", {"code": 403}, id="a watch is forbidden"),
        pytest.param("WATCH", {"sever": True}, id="a watch is severed"),
        pytest.param("WATCH", {"code": 200, "body": b"<html>\n"}, id="a watch returns an HTML page"),
        pytest.param("WATCH", {"code": 200, "body": b"[]\n"}, id="a watch returns a JSON list"),
        pytest.param(
            "WATCH", {"code": 200, "body": b'{"type":"ADDED","object":{}}\n'}, id="an event without metadata"
        ),
        pytest.param(
            "WATCH",
            {"code": 200, "body": b'{"type":"ADDED","object":{"metadata":{"name":"x"}}}\n'},
            id="an event without a version",
        ),
        pytest.param(
            "WATCH",
            {"code": 200, "body": b'{"type":"ERROR","object":{"code":500,"message":"etcd"}}\n'},
            id="an error event",
        ),
    ],
)
async def test_the_cache_recovers_from_faults_with_increasing_waits(
    api: FakeApiServer, cache: Cache, clock: Clock, *, kind: str, fault: dict[str, Any]
) -> None:
    """No response of the server ends the cache."""
    api.fail(kind, times=3, **fault)
    changes = Changes(cache)
    async with running(cache):
        api.put(PATH, config_map("a"))
        assert (await changes.next())[0] == "a"

    assert (
        clock.waits[:3] == [0.8, 1.6, 3.2][: len(clock.waits)]
    )  # the HTTP library retries a severed GET itself
    assert clock.waits


async def test_retry_after_of_a_429_response_is_respected(
    api: FakeApiServer, cache: Cache, clock: Clock
) -> None:
    """It replaces the cache's own delay."""
    api.fail("GET", code=429, headers={"Retry-After": "17"})
    async with running(cache):
        pass

    assert clock.waits[0] == 17.0


async def test_waits_increase_if_every_watch_ends_at_once(
    api: FakeApiServer, cache: Cache, clock: Clock
) -> None:
    """Without an error, the resource version stays valid and no second list is needed."""
    api.fail("WATCH", times=8, code=200)
    changes = Changes(cache)
    async with running(cache):
        api.put(PATH, config_map("a"))
        await changes.next()

    assert clock.waits[:8] == [0.8, 1.6, 3.2, 6.4, 12.8, 25.6, 30.0, 30.0]
    assert lists(api) == 1


async def test_age_is_the_time_since_the_last_data_from_the_server(
    api: FakeApiServer, cache: Cache, clock: Clock
) -> None:
    """Every event resets it to 0."""
    changes = Changes(cache)
    async with running(cache):
        clock.now += 70
        assert cache.age_seconds() == 70
        api.put(PATH, config_map("a"))
        await changes.next()
        assert cache.age_seconds() == 0


async def test_reduce_determines_the_stored_objects(
    api: FakeApiServer, cluster: Cluster, timing: Timing
) -> None:
    """Unchanged resource versions are still recognised after a second list."""
    api.put(PATH, config_map("a", x="1"))
    cache = Cache(cluster, CONFIG_MAPS, reduce=lambda obj: {"x": obj["data"]["x"]}, timing=timing)
    changes = Changes(cache)
    async with running(cache):
        await changes.next()
        api.end_watches()
        api.compact()
        api.version += 1
        api.put(PATH, config_map("b", x="2"))
        await changes.next()

        assert cache.items() == ({"x": "1"}, {"x": "2"})
        assert changes.queue.empty()


async def test_metadata_only_applies_to_list_and_watch(
    api: FakeApiServer, cluster: Cluster, timing: Timing
) -> None:
    """Objects have no data."""
    api.put(PATH, config_map("a", x="1"))
    cache = Cache(cluster, CONFIG_MAPS, metadata_only=True, timing=timing)
    changes = Changes(cache)
    async with running(cache):
        api.put(PATH, config_map("b", x="1"))
        await changes.next()
        await changes.next()

        assert [item.get("data") for item in cache.items()] == [None, None]


async def test_namespace_and_selectors_apply_to_list_and_watch(
    api: FakeApiServer, cluster: Cluster, timing: Timing
) -> None:
    """They are sent to the server."""
    cache = Cache(
        cluster, CONFIG_MAPS, namespace="default", label_selector="a=b", field_selector="c=d", timing=timing
    )
    changes = Changes(cache)
    async with running(cache):
        api.put(PATH, config_map("b", x="1"))
        await changes.next()

    asked = [(r.path, r.query.get("labelSelector"), r.query.get("fieldSelector")) for r in api.requests]
    assert asked == [(PATH, "a=b", "c=d")] * 2


async def test_a_late_subscriber_receives_the_existing_objects(api: FakeApiServer, cache: Cache) -> None:
    """It receives them before `subscribe` returns."""
    api.put(PATH, config_map("a", x="1"))
    seen: list[str] = []
    async with running(cache):
        cache.subscribe(lambda change: seen.append(change.key[1]))

    assert seen == ["a"]


async def test_an_exception_of_a_subscriber_ends_the_cache(api: FakeApiServer, cache: Cache) -> None:
    """It is a bug in Stowplan, so `run` raises it instead of retrying."""

    def fail(_change: Change) -> None:
        raise ZeroDivisionError

    api.put(PATH, config_map("a"))
    cache.subscribe(fail)
    with pytest.raises(ZeroDivisionError):
        await cache.run()


def item(name: str, group: str, text: str = "") -> Json:
    """Return an object of a group."""
    return {"metadata": {"name": name}, "group": group, "text": text}


def change(old: Json | None, new: Json | None) -> Change:
    """Return a change of an object."""
    return Change(key=("ns", (new or old or {})["metadata"]["name"]), old=old, new=new)


def test_objects_are_found_by_group_after_every_change() -> None:
    """An update keeps the order, as long as the object stays in its group."""
    grouped = GroupIndex(lambda value: (str(value["group"]), str(value["metadata"]["name"])))
    one, two = item("one", "a"), item("two", "a")
    for new in (one, two):
        grouped.take(change(None, new))

    changed = item("one", "a", "changed")
    grouped.take(change(one, changed))
    assert list(grouped.of("a").items()) == [("one", changed), ("two", two)]

    moved = item("one", "b")
    grouped.take(change(changed, moved))
    grouped.take(change(two, None))
    assert (grouped.of("a"), grouped.of("b")) == ({}, {"one": moved})
