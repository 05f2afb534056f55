"""Our webhooks process and the servers that it is compared with, on the servers' core, with connections."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

import yaml

from apiserver.schema.json import Json
from hack.bench.compared import OURS
from hack.calling.connection import Answer, Connection
from hack.calling.cores import Cores
from hack.calling.load import WrongAnswerError, ask
from hack.calling.server_process import ADDRESS, Server, new_identity, serving
from hack.controlplane.network import free_port

_PYTHON: Final = (sys.executable, "-m")
_OK: Final = 200


@dataclass(frozen=True, kw_only=True, slots=True)
class Target:
    """A running server with its open connections."""

    process: Server
    connections: Sequence[Connection]

    def first(self, request: bytes, check: Callable[[bytes], None] | None = None) -> Answer:
        """Send a request once; return the response that all later ones have to equal.

        Raises WrongAnswerError if the status is not 200; `check` may raise it, too.
        """
        answer = ask(self.connections[0], request)
        if answer.status != _OK:
            raise WrongAnswerError(f"{request[:40]!r}: status {answer.status}: {answer.body[:500]!r}")
        if check is not None:
            check(answer.body)
        return answer


@contextmanager
def running_servers(
    cores: Cores,
    others: Mapping[str, Sequence[str]],
    *,
    server_name: str,
    sections: Json,
    connections: int = 1,
) -> Iterator[Mapping[str, Target]]:
    """Run our webhooks process with these configuration sections, and other servers by name.

    Each other server is given as a module with handlers and the event loop to serve them with.
    """
    with TemporaryDirectory(prefix="stowplan-bench-") as name, ExitStack() as stack:
        directory = Path(name)
        context = new_identity(directory, server_name=server_name)
        commands = {OURS: _webhooks(directory, sections)}
        commands |= {server: answering(*module, directory=name) for server, module in others.items()}
        targets = {}
        for server, command in commands.items():
            port = free_port(ADDRESS)
            process = stack.enter_context(
                serving(
                    [*command, str(port)],
                    name=server,
                    directory=directory,
                    port=port,
                    context=context,
                    server_name=server_name,
                )
            )
            cores.pin_server(process.pid)
            opened = [process.connect() for _ in range(connections)]
            for connection in opened:
                stack.callback(connection.close)
            targets[server] = Target(process=process, connections=opened)
        yield targets


def answering(module: str, loop: str, *, directory: str) -> list[str]:
    """Return the command of a server with a module's handlers; the port has to be appended."""
    return [*_PYTHON, "hack.bench.answering_server", module, loop, directory]


def _webhooks(directory: Path, sections: Json) -> list[str]:
    configuration = directory / "webhooks.yaml"
    serving = {
        "bindAddress": ADDRESS,
        "metricsPort": 0,
        "healthPort": 0,
        "certificateDirectory": str(directory),
        "logFormat": "json",
        "drainSeconds": 0,
    }
    configuration.write_text(yaml.safe_dump({"serving": serving} | sections), encoding="utf-8")
    return [*_PYTHON, "apiserver.cli", "webhooks", "--config", str(configuration), "--port"]
