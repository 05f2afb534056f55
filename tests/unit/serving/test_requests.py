"""Handling of error responses by the server."""

from __future__ import annotations

import gc
import weakref

from aiohttp import web
from support.posting import client_of

from apiserver.serving.bodies import Answer, Bodies, Reply, Room


class Held:
    """An object in a local variable of a handler, such as the body of a request."""


def application(answer: Answer) -> web.Application:
    """Return an application with one route, `/known`."""
    bodies = Bodies(arriving_bytes=4 << 20, small_bytes=1 << 20, large_bytes=2 << 20, shared=Room(2 << 20))
    made = web.Application()
    made.router.add_post("/known", bodies.handler(answer, limit_bytes=2 << 20, times=1))
    return made


async def test_a_rejected_request_holds_no_memory_while_its_connection_is_idle() -> None:
    """Otherwise many clients with one rejected request each could exhaust the memory."""
    held: list[weakref.ref[Held]] = []

    async def refuse(_: bytes) -> Reply:
        local = Held()
        held.append(weakref.ref(local))
        raise web.HTTPServiceUnavailable(headers={"Retry-After": "1"}, text="later\n")

    async with client_of(application(refuse)) as client:
        async with client.post("/known") as response:
            assert (response.status, response.headers["Retry-After"]) == (503, "1")
            assert await response.text() == "later\n"
        gc.collect()
        assert [found() for found in held] == [None]


async def test_other_paths_and_methods_are_rejected() -> None:
    """The query belongs to no path, and a client that asks whether to send the body is told to."""

    async def answer(_: bytes) -> Reply:
        return Reply(b"here")

    async with client_of(application(answer)) as client:
        async with client.post("/known?timeout=10s") as response:
            assert await response.text() == "here"
        async with client.post("/known", data=b"body", expect100=True) as response:
            assert await response.text() == "here"
        async with client.post("/known", headers={"Expect": "more"}) as response:
            assert response.status == 417
        async with client.post("/known/") as response:
            assert response.status == 404
        async with client.get("/known") as response:
            assert (response.status, response.headers["Allow"]) == (405, "POST")
