"""Our webhooks process and the servers that it is compared with; CPU time of their handlers.

`python -m hack.bench.servers MODULE LOOP DIRECTORY PORT` serves a module's handlers with aiohttp on a
loopback port, over TLS with `tls.crt` and `tls.key` of the directory. LOOP is `asyncio`, or `uvloop` as in
our processes, which also disables the access log.
"""

from __future__ import annotations

import gc
import importlib
import itertools
import ssl
import sys
import time
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final, TypeVar

import uvloop
import yaml
from aiohttp import web

from apiserver.schema.json import Json
from hack.bench.run import OURS, STRAIGHTFORWARD
from hack.calling.connection import Connection, HttpResponse
from hack.calling.cores import Cores
from hack.calling.load import WrongAnswerError, ask
from hack.calling.server_process import ADDRESS, ServerProcess, new_identity, run_server
from hack.controlplane.network import free_port

T = TypeVar("T")
Answerer = Callable[[bytes], bytes]
"""A handler, from request bytes to response bytes."""

Key = tuple[Any, ...]
"""The attributes of a case; the last one is the server."""

_PYTHON: Final = (sys.executable, "-m")
_OK: Final = 200
_LIMIT_BYTES: Final = 64 << 20
_BATCH_SECONDS: Final = 0.002


def by_turns(plan: Mapping[Key, Callable[[], T]], rounds: int) -> dict[Key, list[T]]:
    """Run every entry once per round, every other round in reverse order; return the results of each."""
    samples: dict[Key, list[T]] = {key: [] for key in plan}
    for number in range(rounds):
        for key in list(plan)[:: 1 if number % 2 == 0 else -1]:
            samples[key].append(plan[key]())
    return samples


def pairs(costs: Mapping[Key, T]) -> Iterator[tuple[Key, T, T]]:
    """Yield the attributes of each case without the server, our cost, and the straightforward server's."""
    for (*case, server), ours in costs.items():
        if server == OURS:
            yield (*case,), ours, costs[*case, STRAIGHTFORWARD]


@contextmanager
def frozen_heap() -> Iterator[None]:
    """Exclude existing objects from garbage collection: the cases are not part of a server's heap."""
    gc.collect()
    gc.freeze()
    try:
        yield
    finally:
        gc.unfreeze()


def cpu_per_call_seconds(handle: Answerer, bodies: Iterator[bytes], *, seconds: float) -> float:
    """Call a handler with consecutive bodies for `seconds` of CPU time; return the mean per call."""
    clock = time.thread_time
    began = clock()
    handle(next(bodies))
    batch = max(int(_BATCH_SECONDS / max(clock() - began, 1e-6)), 1)
    calls, began = 0, clock()
    while True:
        for body in itertools.islice(bodies, batch):
            handle(body)
        calls += batch
        if (spent := clock() - began) >= seconds:
            return spent / calls


@dataclass(frozen=True, kw_only=True, slots=True)
class LoadTarget:
    """A running server with its open connections."""

    process: ServerProcess
    connections: Sequence[Connection]

    def first(self, request: bytes) -> HttpResponse:
        """Send a request once; return the response. Raises WrongAnswerError unless the status is 200."""
        answer = ask(self.connections[0], request)
        if answer.status != _OK:
            raise WrongAnswerError(f"{request[:40]!r}: status {answer.status}: {answer.body[:500]!r}")
        return answer


@contextmanager
def running_servers(
    cores: Cores,
    others: Mapping[str, str],
    *,
    server_name: str,
    sections: Json,
    connections: int = 1,
) -> Iterator[Mapping[str, LoadTarget]]:
    """Run our webhooks process with these configuration sections, and servers with handlers of modules."""
    with TemporaryDirectory(prefix="stowplan-bench-") as name, ExitStack() as stack:
        directory = Path(name)
        context = new_identity(directory, server_name=server_name)
        commands = {OURS: _webhooks(directory, sections)}
        commands |= {server: server_command(module, "asyncio", name) for server, module in others.items()}
        targets = {}
        for server, command in commands.items():
            port = free_port(ADDRESS)
            running = run_server(
                [*command, str(port)],
                name=server,
                directory=directory,
                port=port,
                context=context,
                server_name=server_name,
            )
            process = stack.enter_context(running)
            cores.pin_server(process.pid)
            opened = [process.connect() for _ in range(connections)]
            for connection in opened:
                stack.callback(connection.close)
            targets[server] = LoadTarget(process=process, connections=opened)
        yield targets


def server_command(module: str, loop: str, directory: str) -> list[str]:
    """Return the command of a server with a module's handlers; the port has to be appended."""
    return [*_PYTHON, "hack.bench.servers", module, loop, directory]


def _webhooks(directory: Path, sections: Json) -> list[str]:
    configuration = directory / "webhooks.yaml"
    section = {
        "bindAddress": ADDRESS,
        "metricsPort": 0,
        "healthPort": 0,
        "certificateDirectory": str(directory),
        "logFormat": "json",
        "drainSeconds": 0,
    }
    configuration.write_text(yaml.safe_dump({"serving": section} | sections), encoding="utf-8")
    return [*_PYTHON, "apiserver.cli", "webhooks", "--config", str(configuration), "--port"]


def _handler(answer: Answerer) -> Callable[[web.Request], Awaitable[web.Response]]:
    async def handle(request: web.Request) -> web.Response:
        return web.Response(body=answer(await request.read()), content_type="application/json")

    return handle


def main(module: str, loop: str, directory: str, port: str) -> None:
    """Serve the handlers that the module's `answers()` returns by path, until SIGTERM."""
    answers: Mapping[str, Answerer] = importlib.import_module(module).answers()
    app = web.Application(client_max_size=_LIMIT_BYTES)
    for path, answer in answers.items():
        app.router.add_post(path, _handler(answer))
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(Path(directory) / "tls.crt", Path(directory) / "tls.key")
    options: dict[str, Any] = {"host": ADDRESS, "port": int(port), "ssl_context": context, "print": None}
    if loop == "uvloop":
        options |= {"access_log": None, "loop": uvloop.new_event_loop()}
    web.run_app(app, **options)


if __name__ == "__main__":
    main(*sys.argv[1:])
