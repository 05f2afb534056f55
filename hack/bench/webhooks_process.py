"""Our webhooks process and the servers beside it, each on the servers' core."""

from __future__ import annotations

import ssl
import sys
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

import yaml

from apiserver.schema.json import Json
from hack.bench.compared import OURS
from hack.bench.cores import Cores
from hack.bench.server_process import ADDRESS, ServerProcess, new_identity
from hack.controlplane.network import free_port

_PYTHON: Final = (sys.executable, "-m")


@contextmanager
def running_processes(
    cores: Cores, others: Mapping[str, str], *, server_name: str, sections: Json
) -> Iterator[Mapping[str, ServerProcess]]:
    """Run our webhooks process, with sections of its configuration, and other servers' modules by name."""
    with TemporaryDirectory(prefix="stowplan-bench-") as name, ExitStack() as stack:
        directory = Path(name)
        context = new_identity(directory, server_name=server_name)
        commands = {OURS: _webhooks(directory, sections)}
        commands |= {server: [*_PYTHON, module, name] for server, module in others.items()}
        processes = {}
        for server, command in commands.items():
            process = _process(command, directory / f"{server}.log", context, server_name=server_name)
            processes[server] = stack.enter_context(process)
            cores.pin_server(process.pid)
        yield processes


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


def _process(command: list[str], log: Path, context: ssl.SSLContext, *, server_name: str) -> ServerProcess:
    """Return a server of a command that ends where its port belongs."""
    port = free_port(ADDRESS)
    return ServerProcess(
        [*command, str(port)],
        port=port,
        log=log,
        context=context,
        server_name=server_name,
        environment={"HOME": str(log.parent)},
    )
