"""Updates of stored objects, including objects with errors that were stored before a rule existed."""

from __future__ import annotations

import asyncio
import copy
import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from random import Random
from typing import Final

from apiserver.kinds.judgement import complete_and_judge
from apiserver.schema.errors import FieldError
from apiserver.schema.json import Json
from apiserver.schema.kind import Kind, Version
from apiserver.schema.model import node_of
from differential import ours
from differential.compare import Tally, disputes_between, name_of
from differential.dispute import UPDATE
from differential.findings import Findings, of_error, shown
from differential.generate import case, maker_of, manifest
from differential.mutate import mutated
from differential.server import CONNECTIONS, Answer, Server
from differential.stored import pruned
from differential.twins import as_twin, twin_manifest

CHANGES: Final = 8
"""Number of updates of each stored object."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Update:
    """One update of a stored object."""

    change: str
    old: Json
    new: Json


def stored_name(number: int) -> str:
    """Return the name of the stored object with the given number."""
    return f"judged-{number}"


def first(kind: Kind, version: Version, number: int, *, is_valid: bool) -> Json:
    """Return the object to store for a number: a valid one, or the generated one, which may be invalid."""
    if is_valid:
        random = Random(f"{kind.crd_name}/{version.name}/{number}/stored")
        value = manifest(kind, version, maker_of(version.declaration).valid(random))
    else:
        value = ours.decoded(case(kind, version, number).body)
    return value | {"metadata": {"name": stored_name(number)}}


def successors(kind: Kind, version: Version, number: int, old: Json) -> Iterator[Update]:
    """Yield objects that replace a stored one, most with one change."""
    node, maker = node_of(version.declaration), maker_of(version.declaration)
    for rank in range(CHANGES):
        random = Random(f"{kind.crd_name}/{version.name}/{number}/{rank}")
        new = copy.deepcopy(old)
        changes = [mutated(node, new, random, fresh=maker.fresh) for _ in range(random.choice((1, 1, 1, 2)))]
        yield Update(change=", ".join(changes), old=old, new=new)
    yield Update(change="nothing", old=old, new=copy.deepcopy(old))


def refused(kind: Kind, version: Version, update: Update) -> list[FieldError]:
    """Return all errors of our judge for an update with defaults."""
    old, new = (as_seen(version, value) for value in (update.old, update.new))
    return complete_and_judge(kind, replace(version, fill=()), new, old).errors


def as_seen(version: Version, value: Json) -> Json:
    """Return an object as the server sends it to a webhook: with defaults, and without undeclared members."""
    kept: Json = pruned(node_of(version.declaration), value)
    head = {name: value[name] for name in ("apiVersion", "kind", "metadata")}
    return ours.completed(version, head | kept)


def findings(errors: Sequence[FieldError], layers: ours.Layers) -> tuple[Findings, Findings]:
    """Return the findings expected of the server: those of its schema, and those of its rules."""
    found = frozenset(map(of_error, errors))
    schema = found & (layers.schema | layers.keys)
    return schema, found - layers.webhook - schema


def drawn(kind: Kind, version: Version, numbers: range, *, is_valid: bool) -> Iterator[list[Update]]:
    """Yield the updates of the object of each number, which is valid or any generated one."""
    for number in numbers:
        old = first(kind, version, number, is_valid=is_valid)
        yield list(successors(kind, version, number, old))


async def compare_updates(
    server: Server, kind: Kind, version: Version, updates: Iterable[Sequence[Update]]
) -> Tally:
    """Compare our judge with an API server on updates of stored objects; each object has several updates.

    Invalid objects can be stored because the twin gets its schema later.
    """
    tally = Tally(name=f"{name_of(kind, version)} {UPDATE}")
    await server.define(loose_manifest(kind, version))
    stored: list[tuple[str, Sequence[Update]]] = []
    for several in updates:
        answer = await server.stored(kind, version, body_of(kind, version, several[0].old))
        assert answer.stored is not None, answer.text
        stored.append((answer.stored["metadata"]["resourceVersion"], several))
    await server.install(kind, version)
    waiting = iter(stored)

    async def ask() -> None:
        for resource_version, several in waiting:
            for update in several:
                body = body_of(kind, version, update.new, resource_version=resource_version)
                answer = await server.judged_update(kind, version, update.old["metadata"]["name"], body)
                _add(tally, kind, version, update, answer=answer)

    await asyncio.gather(*(ask() for _ in range(CONNECTIONS)))
    return tally


def _add(tally: Tally, kind: Kind, version: Version, update: Update, *, answer: Answer) -> None:
    new, found = as_seen(version, update.new), refused(kind, version, update)
    layers = ours.judged(version, new)
    schema, rules = findings(found, layers)
    mine = schema | (frozenset() if answer.is_unchecked else rules)
    disputes = disputes_between(
        UPDATE, version, new, ours=mine, theirs=answer.findings, text=answer.text, rules=layers.cel
    )
    told = (
        f"{update.change}\n  we: {shown(mine)}\n  they: {shown(answer.findings)}\n  {answer.text}\n"
        f"  old: {json.dumps(update.old)}\n  new: {json.dumps(update.new)}"
    )
    tally.add(list(disputes), told, is_accepted=answer.stored is not None)


def loose_manifest(kind: Kind, version: Version) -> Json:
    """Return the definition of a twin before it has a schema, which accepts any object."""
    strict = twin_manifest(kind, version)
    (served,) = strict["spec"]["versions"]
    anything = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    loose = served | {"schema": {"openAPIV3Schema": anything}}
    return strict | {"spec": strict["spec"] | {"versions": [loose]}}


def body_of(kind: Kind, version: Version, value: Json, *, resource_version: str = "") -> bytes:
    """Return an object of the twin's kind as JSON text."""
    marked = {"resourceVersion": resource_version} if resource_version else {}
    return json.dumps(as_twin(kind, version, value | {"metadata": value["metadata"] | marked})).encode()
