"""Comparisons of two judges, object by object, with counts."""

from __future__ import annotations

import asyncio
import json
import time
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Final

from apiserver.schema.json import Json
from apiserver.schema.kind import Kind, Version
from apiserver.schema.model import node_of
from differential import ours, second
from differential.differences import explanation
from differential.dispute import SECOND, SERVER, Dispute
from differential.findings import Finding, Findings, shown
from differential.generate import Case, case
from differential.server import CONNECTIONS, Server
from differential.stored import as_stored, differences
from differential.twins import as_twin

_MOST_SHOWN: Final = 20


@dataclass(kw_only=True, slots=True)
class Tally:
    """The counts of a comparison."""

    name: str
    objects: int = 0
    accepted: int = 0
    agreed: int = 0
    explained: Counter[str] = field(default_factory=Counter)
    """Objects by a difference that explains one of their disputes."""

    unexplained: list[str] = field(default_factory=list)
    seconds: float = 0.0

    def add(self, disputes: list[Dispute], told: str, *, is_accepted: bool) -> None:
        """Count one object."""
        self.objects += 1
        self.accepted += is_accepted
        names = [explanation(dispute) for dispute in disputes]
        self.explained.update({item.name for item in names if item is not None})
        open_ = [str(dispute.finding) for dispute, item in zip(disputes, names, strict=True) if item is None]
        if open_:
            self.unexplained.append(f"{', '.join(open_)}: {told}")
        self.agreed += not disputes

    def joined(self, earlier: Tally) -> Tally:
        """Return the sum of both tallies."""
        return Tally(
            name=self.name,
            objects=earlier.objects + self.objects,
            accepted=earlier.accepted + self.accepted,
            agreed=earlier.agreed + self.agreed,
            explained=earlier.explained + self.explained,
            unexplained=earlier.unexplained + self.unexplained,
            seconds=earlier.seconds + self.seconds,
        )

    def report(self) -> str:
        """Return the first unexplained disputes as text, with the data to reproduce them."""
        more = len(self.unexplained) - _MOST_SHOWN
        lines = self.unexplained[:_MOST_SHOWN] + ([f"and {more} more"] if more > 0 else [])
        return "\n".join([f"{self.name}: {len(self.unexplained)} unexplained", *lines])


def name_of(kind: Kind, version: Version) -> str:
    """Return the name of a version in reports, such as VariantAutoscaling/v1alpha1.

    It begins with that of the declaration, as two groups have kinds of one name.
    """
    return f"{version.declaration.__name__}/{version.name}"


def compare_with_second(kind: Kind, version: Version, numbers: Iterable[int]) -> Tally:
    """Compare our judge with `jsonschema` on the schema."""
    tally, started = Tally(name=f"{name_of(kind, version)} {SECOND}"), time.perf_counter()
    for number in numbers:
        item = case(kind, version, number)
        value = ours.completed(version, ours.decoded(item.body))
        mine, theirs = ours.judged(version, value).schema, second.judged(version, value)
        disputes = list(disputes_between(SECOND, version, value, ours=mine, theirs=theirs))
        tally.add(disputes, _told(item, mine, theirs), is_accepted=not mine)
    tally.seconds = time.perf_counter() - started
    return tally


async def compare_with_server(server: Server, kind: Kind, version: Version, cases: Iterable[Case]) -> Tally:
    """Compare our judge with an API server on the schema and on the rules that the server has."""
    tally = Tally(name=f"{name_of(kind, version)} {SERVER}")
    started, waiting = time.perf_counter(), iter(cases)

    async def ask() -> None:
        for item in waiting:
            await _compare_one(server, kind, version, item, tally=tally)

    await asyncio.gather(*(ask() for _ in range(CONNECTIONS)))
    tally.seconds = time.perf_counter() - started
    return tally


async def _compare_one(server: Server, kind: Kind, version: Version, item: Case, *, tally: Tally) -> None:
    raw = ours.decoded(item.body)
    answer = await server.judged(kind, version, json.dumps(as_twin(kind, version, raw)).encode())
    value = ours.completed(version, raw)
    layers = ours.judged(version, value)
    theirs = answer.findings
    mine = layers.schema | layers.keys | (frozenset() if answer.is_unchecked else layers.cel)
    if answer.stored is not None and not mine:
        theirs = _differently_stored(version, value, answer.stored)
    disputes = list(
        disputes_between(SERVER, version, value, ours=mine, theirs=theirs, text=answer.text, rules=layers.cel)
    )
    told = _told(item, mine, theirs, answer.text)
    tally.add(disputes, told, is_accepted=answer.stored is not None)


def _differently_stored(version: Version, value: Json, stored: Json) -> Findings:
    """Return as findings the members of an accepted object that the server stores differently."""
    wanted = as_stored(node_of(version.declaration), value)
    found = (
        text for name in ("spec", "status") for text in differences(wanted.get(name), stored.get(name), name)
    )
    return frozenset(Finding(text, "Stored") for text in found)


def disputes_between(
    pair: str,
    version: Version,
    value: Json,
    *,
    ours: Findings,
    theirs: Findings,
    text: str = "",
    rules: Findings = frozenset(),
) -> Iterator[Dispute]:
    """Yield each finding that only one of two judges has."""
    root = node_of(version.declaration)
    for finding in sorted(ours ^ theirs):
        yield Dispute(
            pair=pair,
            finding=finding,
            is_ours=finding in ours,
            ours=ours,
            theirs=theirs,
            text=text,
            rules=rules,
            root=root,
            value=value,
        )


def _told(item: Case, mine: Findings, theirs: Findings, text: str = "") -> str:
    return (
        f"object {item.number} of {item.version} ({item.sort}: {item.change})\n  we: {shown(mine)}\n"
        f"  they: {shown(theirs)}\n  {text}\n  {item.body.decode()}"
    )
