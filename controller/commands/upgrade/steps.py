"""The remaining steps of a migration, derived from the state of the cluster.

The order changes the storage version without losing a read or write: serve both versions with conversion,
prove it, change the storage version, rewrite the stored objects, and only then record that no old version is
stored. The state after each step determines the remaining ones, so no journal is needed: an interrupted run
is run again. Source: `k8s.io/apiextensions-apiserver`, CustomResourceDefinition versioning.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum

from apiserver.schema.json import Json
from apiserver.schema.kind import Kind
from controller.commands.upgrade.definitions import (
    is_given_back,
    says,
    served_versions,
    storage_version,
    stored_versions,
    transitional_definition,
)
from controller.commands.upgrade.ownership import is_ours
from controller.commands.upgrade.snapshot import Snapshot
from controller.commands.upgrade.status_to_come import announces


class Action(StrEnum):
    """The kind of a step."""

    INSTALL = "install"
    SERVE = "serve"
    PROVE = "prove"
    STORE = "store"
    REWRITE = "rewrite"
    PRUNE = "prune"
    FORGET = "forget"
    REHEARSE = "rehearse"
    RESHAPE = "reshape"
    DISOWN = "disown"
    WITHDRAW = "withdraw"
    SWEEP = "sweep"


@dataclass(frozen=True, kw_only=True, slots=True)
class Step:
    """A step: its action, its kind, and its version, if any."""

    action: Action
    kind: Kind
    version: str = ""

    @property
    def title(self) -> str:
        """A description of the step."""
        return _TITLES[self.action].format(name=self.kind.crd_name, version=self.version)

    def as_json(self) -> Json:
        """Return the step as JSON."""
        return {"action": self.action.value, "kind": self.kind.crd_name}


_TITLES = {
    Action.INSTALL: "install the definition {name}",
    Action.SERVE: "serve every version of {name} with conversion; {version} is stored",
    Action.PROVE: "verify the conversion of every stored object by dry run",
    Action.STORE: "store {version} from now on",
    Action.REWRITE: "rewrite every object that is not stored in {version}",
    Action.PRUNE: "record that all objects are stored in {version}",
    Action.FORGET: "remove the annotations that an interrupted downgrade left in objects",
    Action.REHEARSE: "rehearse the restore of every object by dry run",
    Action.RESHAPE: "restore every object in the requested shape, stored in {version}",
    Action.DISOWN: "remove the entries of {version} from the managedFields of every object",
    Action.WITHDRAW: "serve only {version}, without conversion",
    Action.SWEEP: "remove our annotations from every object, without any other change",
}


def upgrade_steps(snapshot: Snapshot, kinds: tuple[Kind, ...]) -> tuple[Step, ...]:
    """Return the remaining steps of an upgrade; empty if it is complete."""
    return tuple(step for kind in kinds for step in _kind_up(snapshot, kind))


def downgrade_steps(
    snapshot: Snapshot, kind: Kind, *, is_clean: bool, is_annotated: bool
) -> tuple[Step, ...]:
    """Return the remaining steps of a downgrade; empty under a definition that is not ours.

    `is_clean`: no object needs a change other than of our annotations. `is_annotated`: some object has one.
    """
    live = snapshot.definitions.get(kind.crd_name)
    if live is None or not is_given_back(kind, live):
        return ()
    return tuple(_kind_back(live, kind, is_clean=is_clean, is_annotated=is_annotated))


def _kind_up(snapshot: Snapshot, kind: Kind) -> Iterator[Step]:
    live = snapshot.definitions.get(kind.crd_name)
    hub, old = kind.storage_version.name, storage_version(live)
    trusted, namespace = snapshot.webhook.trusted, snapshot.webhook.namespace
    if live is None:
        if kind.has_conversion:  # the others are optional components
            yield Step(action=Action.INSTALL, kind=kind, version=hub)
    elif not kind.has_conversion:
        if is_ours(live) and not says(live, transitional_definition(kind, live, storage=hub, ca_bundle="")):
            yield Step(action=Action.INSTALL, kind=kind, version=hub)
    else:
        if not says(
            live, transitional_definition(kind, live, storage=old, ca_bundle=trusted, namespace=namespace)
        ):
            yield Step(action=Action.SERVE, kind=kind, version=old)
        if old != hub:
            yield Step(action=Action.PROVE, kind=kind)
            yield Step(action=Action.STORE, kind=kind, version=hub)
        if stored_versions(live) != (hub,):
            yield Step(action=Action.REWRITE, kind=kind, version=hub)
            yield Step(action=Action.PRUNE, kind=kind, version=hub)
        if any(map(announces, snapshot.objects)):
            yield Step(action=Action.FORGET, kind=kind, version=hub)


def _kind_back(live: Json, kind: Kind, *, is_clean: bool, is_annotated: bool) -> Iterator[Step]:
    oldest = kind.versions[0].name
    has_both = served_versions(live) != (oldest,)
    if not is_clean:
        yield Step(action=Action.REHEARSE, kind=kind)
    if storage_version(live) != oldest:
        yield Step(action=Action.STORE, kind=kind, version=oldest)
    if not is_clean:
        yield Step(action=Action.RESHAPE, kind=kind, version=oldest)
    if stored_versions(live) != (oldest,):
        yield Step(action=Action.REWRITE, kind=kind, version=oldest)
        yield Step(action=Action.PRUNE, kind=kind, version=oldest)
    if has_both:
        yield Step(action=Action.DISOWN, kind=kind, version=kind.storage_version.name)
        yield Step(action=Action.WITHDRAW, kind=kind, version=oldest)
    if has_both or is_annotated:
        yield Step(action=Action.SWEEP, kind=kind)
