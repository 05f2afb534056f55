"""The servers as processes over TLS, asked by turns."""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final

from hack.bench.admission.cases import MODEL_CREATE, SERVER_NAME, VARIANT_CREATE, Case
from hack.bench.admission.costs import EMPTY, SERVERS, Key, OverTls, over_tls
from hack.bench.compared import OURS, STRAIGHTFORWARD
from hack.bench.connection import Connection
from hack.bench.cores import Cores
from hack.bench.load import Served, WrongAnswerError, ask, drive
from hack.bench.server_process import ServerProcess
from hack.bench.webhooks_process import running_processes

_OTHERS: Final = {
    STRAIGHTFORWARD: "hack.bench.admission.straightforward_server",
    EMPTY: "hack.bench.admission.empty_server",
}
_SECTIONS: Final = {"scaling": {"authorize": False}}  # there is no cluster to ask for leave
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
    with running_processes(cores, _OTHERS, server_name=SERVER_NAME, sections=_SECTIONS) as processes:
        yield {
            server: Target(process=process, connections=[process.connect() for _ in range(connections)])
            for server, process in processes.items()
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
