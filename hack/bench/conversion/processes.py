"""Both servers as processes over TLS, asked by turns on one connection each."""

from __future__ import annotations

import statistics
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Final

from hack.bench.compared import STRAIGHTFORWARD
from hack.bench.connection import Answer
from hack.bench.conversion.cases import ANSWERERS, SERVERS, Case, Key, key
from hack.bench.conversion.exchange import Exchange, exchange_for
from hack.bench.conversion.reviews import SERVER_NAME, converted_objects, http_request
from hack.bench.cores import Cores
from hack.bench.load import Served, WrongAnswerError
from hack.bench.percentiles import percentile
from hack.bench.server_process import ServerProcess
from hack.bench.webhooks_process import running_processes

_OTHERS: Final = {STRAIGHTFORWARD: "hack.bench.conversion.straightforward_server"}
_OK: Final = 200
_MICRO: Final = 1e6
_ASKED: Final = (
    "legacy",
    "nothing kept",
    "written in v1alpha1",
    "written in v1alpha1, back",
)
"""What is asked over TLS: the rest differs from these only in process."""


@dataclass(frozen=True, kw_only=True, slots=True)
class OverTls:
    """One case on one server process, on one connection."""

    cpu_us: float
    """CPU time of the server process per review: median of the rounds."""
    cpu_us_by_round: tuple[float, ...]
    requests: int
    p50_us: float
    """Latency, from all rounds together."""
    p99_us: float


@dataclass(frozen=True, kw_only=True, slots=True)
class Target:
    """A running server with an open connection."""

    process: ServerProcess
    connection: Exchange


@contextmanager
def running_servers(cores: Cores) -> Iterator[Mapping[str, Target]]:
    """Run both servers on their core, each with a connection open."""
    with (
        running_processes(cores, _OTHERS, server_name=SERVER_NAME, sections={}) as processes,
        ExitStack() as stack,
    ):
        targets = {}
        for server, process in processes.items():
            connection = Exchange.open(process.port, process.context, server_name=SERVER_NAME)
            stack.callback(connection.close)
            targets[server] = Target(process=process, connection=connection)
        yield targets


def measure_processes(
    cases: Sequence[Case],
    targets: Mapping[str, Target],
    *,
    rounds: int,
    seconds: float,
    progress: Callable[[str], None],
) -> dict[Key, OverTls]:
    """Return what a case costs on both servers. Raises WrongAnswerError for a wrong answer."""
    asked = [case for case in cases if case.name in _ASKED]
    taken: dict[Key, list[Served]] = defaultdict(list)
    for number in range(rounds):
        progress(f"over TLS: round {number + 1} of {rounds}")
        for case in asked:
            for server in SERVERS[:: 1 if number % 2 == 0 else -1]:
                taken[key(case, server)].append(_turn(case, server, targets[server], seconds=seconds))
    keys = [key(case, server) for case in asked for server in SERVERS]
    return {of: _over_tls(taken[of]) for of in keys}


def _turn(case: Case, server: str, target: Target, *, seconds: float) -> Served:
    request = http_request(case.bodies[server])
    want = target.connection.ask(request)
    _check(case, server, want)
    return exchange_for(target.connection, request, want, pid=target.process.pid, seconds=seconds)


def _check(case: Case, server: str, answer: Answer) -> None:
    """Raise WrongAnswerError unless the server answers what the same function does in this process."""
    if answer.status != _OK:
        raise WrongAnswerError(f"{case.name} {case.direction}: status {answer.status}: {answer.body[:500]!r}")
    if converted_objects(answer.body) != converted_objects(ANSWERERS[server](case.bodies[server])):
        raise WrongAnswerError(f"{case.name} {case.direction}: {server} answers differently over TLS")


def _over_tls(rounds: Sequence[Served]) -> OverTls:
    waits = [wait * _MICRO for served in rounds for wait in served.latencies_seconds]
    by_round = tuple(served.cpu_per_request_seconds * _MICRO for served in rounds)
    return OverTls(
        cpu_us=statistics.median(by_round),
        cpu_us_by_round=by_round,
        requests=len(waits),
        p50_us=percentile(waits, 50),
        p99_us=percentile(waits, 99),
    )
