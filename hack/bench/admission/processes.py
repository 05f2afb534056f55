"""The servers as processes over TLS, asked by turns."""

from __future__ import annotations

import itertools
import sys
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

import yaml

from hack.bench.admission.cases import MODEL_CREATE, VARIANT_CREATE, Case
from hack.bench.admission.costs import EMPTY, OURS, SERVERS, STRAIGHTFORWARD, Key, OverTls, over_tls
from hack.bench.connection import Connection
from hack.bench.cores import Cores
from hack.bench.load import Served, WrongAnswerError, ask, drive
from hack.bench.server_process import ADDRESS, ServerProcess, new_identity
from hack.controlplane.network import free_port

_SERVER_NAME: Final = "stowplan-webhooks.stowplan-system.svc"
_OK: Final = 200
_EMPTY_CASES: Final = ((MODEL_CREATE, "mutate"), (VARIANT_CREATE, "mutate"))
"""What an empty handler is asked: one large and one small request tell enough."""

_WARM_UP: Final = 0.25
_ALONE: Final = 0.5
"""Parts of the time of a round that go, besides, into a warm-up and into one connection alone."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Target:
    """A running server with its open connections."""

    process: ServerProcess
    connections: Sequence[Connection]


@contextmanager
def running_servers(cores: Cores, *, connections: int) -> Iterator[Mapping[str, Target]]:
    """Run the servers on their core, each with so many connections open."""
    with TemporaryDirectory(prefix="stowplan-bench-") as name, ExitStack() as stack:
        directory = Path(name)
        context = new_identity(directory, server_name=_SERVER_NAME)
        targets = {}
        for server, command in _commands(directory).items():
            port = free_port(ADDRESS)
            process = ServerProcess(
                [*command, str(port)],
                port=port,
                log=directory / f"{server}.log",
                context=context,
                server_name=_SERVER_NAME,
                environment={"HOME": name},
            )
            stack.enter_context(process)
            cores.pin_server(process.pid)
            opened = [process.connect() for _ in range(connections)]
            targets[server] = Target(process=process, connections=opened)
        yield targets


def _commands(directory: Path) -> Mapping[str, list[str]]:
    configuration = directory / "webhooks.yaml"
    serving = {
        "bindAddress": ADDRESS,
        "metricsPort": 0,
        "healthPort": 0,
        "certificateDirectory": str(directory),
        "logFormat": "json",
        "drainSeconds": 0,
    }
    document = {"serving": serving, "scaling": {"authorize": False}}  # there is no cluster to ask for leave
    configuration.write_text(yaml.safe_dump(document), encoding="utf-8")
    python = [sys.executable, "-m"]
    return {
        OURS: [*python, "apiserver.cli", "webhooks", "--config", str(configuration), "--port"],
        STRAIGHTFORWARD: [*python, "hack.bench.admission.straightforward_server", str(directory)],
        EMPTY: [*python, "hack.bench.admission.empty_server", str(directory)],
    }


def measure_processes(
    cases: Sequence[Case],
    targets: Mapping[str, Target],
    *,
    rounds: int,
    seconds: float,
    progress: Callable[[str], None],
) -> dict[Key, OverTls]:
    """Return what every case costs on every server; raises WrongAnswerError for a wrong answer."""
    busy: dict[Key, list[Served]] = defaultdict(list)
    lone: dict[Key, list[Served]] = defaultdict(list)
    for number in range(rounds):
        progress(f"over TLS: round {number + 1} of {rounds}")
        for case in cases:
            requests = case.requests()
            for server in _asked(case)[:: 1 if number % 2 == 0 else -1]:
                check = None if server == EMPTY else case.check
                crowd, alone = _turn(case, targets[server], check, requests=requests, seconds=seconds)
                busy[case.name, case.verb, server].append(crowd)
                lone[case.name, case.verb, server].append(alone)
    return {key: over_tls(busy[key], lone[key]) for key in _sorted(busy, cases)}


def _asked(case: Case) -> Sequence[str]:
    return SERVERS if (case.name, case.verb) in _EMPTY_CASES else (OURS, STRAIGHTFORWARD)


def _turn(
    case: Case,
    target: Target,
    check: Callable[[bytes], None] | None,
    *,
    requests: Sequence[bytes],
    seconds: float,
) -> tuple[Served, Served]:
    want = ask(target.connections[0], requests[0])
    if want.status != _OK:
        raise WrongAnswerError(f"{case.name} on /{case.verb}: status {want.status}: {want.body[:500]!r}")
    if check is not None:
        check(want.body)

    following = itertools.cycle(requests)

    def run(connections: Sequence[Connection], share: float) -> Served:
        return drive(connections, following, want, pid=target.process.pid, seconds=seconds * share)

    run(target.connections, _WARM_UP)
    return run(target.connections, 1), run(target.connections[:1], _ALONE)


def _sorted(taken: Mapping[Key, object], cases: Sequence[Case]) -> list[Key]:
    keys = [(case.name, case.verb, server) for case in cases for server in SERVERS]
    return [key for key in keys if key in taken]
