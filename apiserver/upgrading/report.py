"""What a run found, checked, planned and did: one record, for people and for programs."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from enum import StrEnum

from apiserver.kinds.llmd.shapes import shape_of
from apiserver.schema.json import Json
from apiserver.schema.kind import Kind
from apiserver.upgrading.accounts import Account
from apiserver.upgrading.definitions import is_ours, served_versions, storage_version, stored_versions
from apiserver.upgrading.execution import Done
from apiserver.upgrading.findings import Failure, Finding, Verdict
from apiserver.upgrading.snapshot import Snapshot
from apiserver.upgrading.steps import Step


class Outcome(StrEnum):
    """How a run ended."""

    NOTHING_TO_DO = "nothing to do"
    PLANNED = "planned"
    DONE = "done"
    STOPPED = "stopped"


@dataclass(frozen=True, kw_only=True, slots=True)
class Found:
    """What is installed of one kind."""

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
class Report:
    """One run."""

    verb: str
    cluster: str
    definitions: tuple[Found, ...]
    objects: int
    shapes: dict[str, int]
    checks: tuple[Finding, ...]
    steps: tuple[Step, ...]
    accounts: tuple[Account, ...] = ()
    outcome: Outcome = Outcome.PLANNED
    done: tuple[Done, ...] = ()
    error: str = ""
    failures: tuple[Failure, ...] = ()
    advice: tuple[str, ...] = field(default=())
    """What to do next, one command or sentence each."""

    @property
    def problems(self) -> tuple[Finding, ...]:
        """What stops the run before it begins."""
        return tuple(item for item in self.checks if item.verdict is Verdict.PROBLEM)

    def as_json(self) -> Json:
        """Return the document that `-o json` prints."""
        return {
            "verb": self.verb,
            "cluster": self.cluster,
            "outcome": self.outcome.value,
            "definitions": [item.as_json() for item in self.definitions],
            "objects": {"total": self.objects, "byShape": self.shapes},
            "checks": [item.as_json() for item in self.checks],
            "steps": [
                {"action": step.action.value, "kind": step.kind.crd_name, "title": step.title}
                for step in self.steps
            ],
            "changes": [item.as_json() for item in self.accounts if item.lost or item.made_up],
            "done": [item.as_json() for item in self.done],
            "error": self.error,
            "failures": [item.as_json() for item in self.failures],
            "advice": list(self.advice),
        }


def denied_report(verb: str, cluster: str, checks: tuple[Finding, ...]) -> Report:
    """Return the report of a run that may not look: there is nothing in it but what is denied."""
    return Report(verb=verb, cluster=cluster, definitions=(), objects=0, shapes={}, checks=checks, steps=())


def found_definitions(snapshot: Snapshot, kinds: tuple[Kind, ...]) -> tuple[Found, ...]:
    """Return what is installed of each kind."""
    return tuple(_found(kind.crd_name, snapshot.definitions.get(kind.crd_name)) for kind in kinds)


def shapes_found(snapshot: Snapshot) -> dict[str, int]:
    """Return how many objects there are of each shape."""
    return dict(Counter(shape_of(item).name for item in snapshot.objects))


def _found(name: str, live: Json | None) -> Found:
    return Found(
        name=name,
        served=served_versions(live),
        storage=storage_version(live),
        stored=stored_versions(live),
        is_ours=live is not None and is_ours(live),
    )
