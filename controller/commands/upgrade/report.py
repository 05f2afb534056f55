"""The report of a run: what was found, checked, planned and done."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from apiserver.kinds.llmd.shapes import shape_of
from apiserver.schema.json import Json
from apiserver.schema.kind import Kind
from controller.commands.upgrade.accounts import Account
from controller.commands.upgrade.definitions import served_versions, storage_version, stored_versions
from controller.commands.upgrade.ownership import is_ours
from controller.commands.upgrade.permission_checks import check_permissions
from controller.commands.upgrade.runs import Run
from controller.commands.upgrade.snapshot import Snapshot
from controller.commands.upgrade.steps import Step


@dataclass(frozen=True, kw_only=True, slots=True)
class Found:
    """The installed definition of a kind."""

    name: str
    served: tuple[str, ...]
    storage: str
    stored: tuple[str, ...]
    is_ours: bool

    def as_json(self) -> Json:
        """Return it as an entry of `definitions`."""
        return {
            "name": self.name,
            "isInstalled": bool(self.served),
            "isOurs": self.is_ours,
            "served": list(self.served),
            "storage": self.storage,
            "storedVersions": list(self.stored),
        }


@dataclass(frozen=True, kw_only=True, slots=True)
class Report(Run[Step]):
    """A run of `upgrade` or `downgrade`."""

    definitions: tuple[Found, ...]
    objects: int
    shapes: dict[str, int]
    accounts: tuple[Account, ...] = ()

    def as_json(self) -> Json:
        """Return the document that `-o json` prints."""
        return Run.as_json(self) | {
            "definitions": [item.as_json() for item in self.definitions],
            "objects": {"total": self.objects, "byShape": self.shapes},
            "changes": [item.as_json() for item in self.accounts if item.lost or item.made_up],
        }


def denied_report(verb: str, cluster: str, snapshot: Snapshot) -> Report:
    """Return the report of a run that lacks permissions: it has only that check."""
    checks = tuple(check_permissions(snapshot.denied))
    return Report(verb=verb, cluster=cluster, definitions=(), objects=0, shapes={}, checks=checks, steps=())


def found_definitions(snapshot: Snapshot, kinds: tuple[Kind, ...]) -> tuple[Found, ...]:
    """Return the installed definition of each kind."""
    return tuple(_found_definition(kind.crd_name, snapshot.definitions.get(kind.crd_name)) for kind in kinds)


def shapes_found(snapshot: Snapshot) -> dict[str, int]:
    """Return the number of objects of each shape."""
    return dict(Counter(shape_of(item).name for item in snapshot.objects))


def _found_definition(name: str, live: Json | None) -> Found:
    return Found(
        name=name,
        served=served_versions(live),
        storage=storage_version(live),
        stored=stored_versions(live),
        is_ours=live is not None and is_ours(live),
    )
