"""Translation of the ModelRoutes in files for Gateways."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from apiserver.kinds.annotations import PARENT_REFS
from apiserver.schema.json import Json
from controller.gateways.annotations import is_opted_in, parent_refs
from controller.gateways.installed import Installed
from controller.gateways.translation import translate
from controller.models.parts import Note


@dataclass(frozen=True, kw_only=True, slots=True)
class Translated:
    """The translation of one route, with its origin and notes."""

    place: int
    """Index of the object that the route is or was made for."""

    route: str
    objects: Sequence[Json]
    notes: Sequence[Note]
    is_understood: bool
    """Whether its Gateways are valid."""


def translations(objects: Sequence[tuple[int, Json]], gateways: str) -> Iterator[Translated]:
    """Yield the translations of the ModelRoutes among some objects, with each pool once.

    `gateways` are those of routes that name none; empty for none. Each object comes with an index.
    """
    servers = {
        (_namespace(item), item["metadata"]["name"]): item
        for _, item in objects
        if item["kind"] == "ModelServer"
    }
    namespace = {"metadata": {"annotations": {PARENT_REFS: gateways}}}
    said: set[tuple[str, str]] = set()
    for place, route in objects:
        if route["kind"] != "ModelRoute" or not is_opted_in(route, namespace):
            continue
        name = route["metadata"]["name"]
        parents, unread = parent_refs(route, namespace)
        if unread:
            yield Translated(place=place, route=name, objects=(), notes=unread, is_understood=False)
            continue
        here = {server: item for (where, server), item in servers.items() if where == _namespace(route)}
        found = translate(route, here, parents, Installed())
        new = [item for server, item in found.pools.items() if (_namespace(route), server) not in said]
        said |= {(_namespace(route), server) for server in found.pools}
        yield Translated(
            place=place,
            route=name,
            objects=(*new, *found.objects),
            notes=found.notes,
            is_understood=True,
        )


def _namespace(item: Json) -> str:
    return str(item["metadata"].get("namespace", ""))
