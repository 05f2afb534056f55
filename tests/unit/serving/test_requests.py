"""Handling of error responses by the server."""

from __future__ import annotations

import gc
import weakref

from aiohttp import web
from support.posting import client_of, post_of

from apiserver.serving.bodies import Reply


class Held:
    """An object in a local variable of a handler, such as the body of a request."""


async def test_a_rejected_request_holds_no_memory_while_its_connection_is_idle() -> None:
    """Otherwise many clients with one rejected request each could exhaust the memory."""
    held: list[weakref.ref[Held]] = []

    async def refuse(_: bytes) -> Reply:
        local = Held()
        held.append(weakref.ref(local))
        raise web.HTTPServiceUnavailable(headers={"Retry-After": "1"}, text="later\n")

    async with client_of({"/": post_of(refuse)}) as client:
        async with client.post("/") as response:
            assert (response.status, response.headers["Retry-After"]) == (503, "1")
            assert await response.text() == "later\n"
        gc.collect()
        assert [found() for found in held] == [None]


async def test_a_server_of_post_requests_rejects_other_paths_and_methods() -> None:
    """As the HTTP library's own routing does; the query belongs to no path."""

    async def answer(_: bytes) -> Reply:
        return Reply(b"here")

    async with client_of({"/known": post_of(answer)}) as client:
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
