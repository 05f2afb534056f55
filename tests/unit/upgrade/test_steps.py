"""The remaining steps of an upgrade or a downgrade, derived from the state of the cluster."""

from __future__ import annotations

import re
from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Any

import pytest
from support.memory_cluster import MemoryCluster

from apiserver.kinds.kthena.routing import MODEL_ROUTE
from apiserver.kinds.llmd.shapes import RELEASES
from apiserver.kinds.llmd.variantautoscaling import VARIANT_AUTOSCALING
from controller.commands.upgrade.calls import Pace
from controller.commands.upgrade.definitions import transitional_definition, withdrawn_definition
from controller.commands.upgrade.downgrade import downgrade_steps
from controller.commands.upgrade.gather import UpgradeState
from controller.commands.upgrade.report import Step
from controller.commands.upgrade.steps import MigrationSteps
from controller.commands.upgrade.upgrade import upgrade_steps

PACE = Pace(per_second=1.0, tell=lambda *_: None)
STEPS = MigrationSteps(MemoryCluster([]), PACE, namespace="stowplan-system")
NOW = datetime(2026, 1, 1, tzinfo=UTC)
BUNDLE = "Y2E="
OLD, NEW = "v1alpha1", "v1alpha2"
Definition = dict[str, Any]


def foreign(*, stored: tuple[str, ...] = (OLD,)) -> Definition:
    """Return the definition of an earlier release."""
    version = {
        "name": OLD,
        "served": True,
        "storage": True,
        "schema": {"openAPIV3Schema": {"type": "object"}},
    }
    return {
        "metadata": {"name": VARIANT_AUTOSCALING.crd_name, "annotations": {"theirs": "kept"}},
        "spec": {"group": "llmd.ai", "versions": [version], "conversion": {"strategy": "None"}},
        "status": {"storedVersions": list(stored)},
    }


def both(*, storage: str, stored: tuple[str, ...]) -> Definition:
    """Return our definition with both versions, as the API server returns it."""
    found = transitional_definition(
        VARIANT_AUTOSCALING, foreign(stored=stored), storage=storage, ca_bundle=BUNDLE
    )
    return found | {"spec": found["spec"] | {"preserveUnknownFields": False}}


def alone() -> Definition:
    """Return our definition with only the oldest version."""
    return withdrawn_definition(VARIANT_AUTOSCALING, foreign())


def labelled(live: Definition) -> Definition:
    """Return a definition with our label."""
    return live | {"metadata": live["metadata"] | {"labels": {"app.kubernetes.io/part-of": "stowplan"}}}


def snapshot(live: Definition | None) -> UpgradeState:
    """Return the snapshot of a cluster with this definition."""
    definitions = {VARIANT_AUTOSCALING.crd_name: live} if live else {}
    configuration = {"webhooks": [{"clientConfig": {"caBundle": BUNDLE}}]}
    return UpgradeState(
        now=NOW, namespace="stowplan-system", definitions=definitions, configuration=configuration
    )


def words(steps: Iterable[Step]) -> str:
    """Return the actions of steps with their versions, such as `serve v1alpha1, prove`."""
    version = re.compile(r" v1alpha\d")
    return ", ".join(step.action + "".join(version.findall(step.title)) for step in steps)


REWRITE = f"rewrite {NEW}, prune {NEW}"
PROVE = f"prove, store {NEW}, {REWRITE}"
UP = {
    "nothing is installed": (None, f"install {NEW}"),
    "an earlier release is installed": (foreign(), f"serve {OLD}, {PROVE}"),
    "interrupted after both versions were served": (both(storage=OLD, stored=(OLD,)), PROVE),
    "interrupted after the storage version was changed": (both(storage=NEW, stored=(OLD, NEW)), REWRITE),
    "done": (both(storage=NEW, stored=(NEW,)), ""),
    "after a downgrade": (alone(), f"serve {OLD}, {PROVE}"),
    "a downgrade was interrupted after the storage version was changed": (
        both(storage=OLD, stored=(NEW, OLD)),
        PROVE,
    ),
}


@pytest.mark.parametrize(("live", "want"), UP.values(), ids=UP.keys())
def test_an_upgrade_continues_from_every_state(live: Definition | None, want: str) -> None:
    """Each state that an interrupted run can leave leads to the final one."""
    assert words(upgrade_steps(snapshot(live), STEPS, (VARIANT_AUTOSCALING,))) == want


CLEAN, BARE = {"is_clean": True, "is_bare": False}, {"is_clean": True, "is_bare": True}
RESHAPED = {"is_clean": False, "is_bare": False}
"""The remaining changes of objects: only annotations, none, or more than annotations."""

WITHDRAW = f"disown {NEW}, withdraw {OLD}, sweep"
BACK: dict[str, tuple[Definition | None, dict[str, bool], str]] = {
    "nothing is installed": (None, RESHAPED, ""),
    "upgraded": (
        both(storage=NEW, stored=(NEW,)),
        RESHAPED,
        f"rehearse, store {OLD}, reshape {OLD}, rewrite {OLD}, prune {OLD}, {WITHDRAW}",
    ),
    "upgraded, and every object already has the shape": (
        both(storage=NEW, stored=(NEW,)),
        CLEAN,
        f"store {OLD}, rewrite {OLD}, prune {OLD}, {WITHDRAW}",
    ),
    "interrupted after all objects were stored in the old version": (
        both(storage=OLD, stored=(OLD,)),
        BARE,
        WITHDRAW,
    ),
    "interrupted before our annotations were removed": (alone(), CLEAN, "sweep"),
    "likewise, with the label that a downgrade left earlier": (labelled(alone()), CLEAN, "sweep"),
    "done, and another shape is requested": (alone(), RESHAPED, f"rehearse, reshape {OLD}, sweep"),
    "done, and other objects were created": (
        alone(),
        {"is_clean": False, "is_bare": True},
        f"rehearse, reshape {OLD}",
    ),
    "done": (alone(), BARE, ""),
    "an earlier release is installed": (foreign(), BARE, ""),
    "an earlier release is installed, and another shape is requested": (foreign(), RESHAPED, ""),
    "done, and an earlier release was applied over our label": (labelled(foreign()), RESHAPED, ""),
}


@pytest.mark.parametrize(("live", "left", "want"), BACK.values(), ids=BACK.keys())
def test_a_downgrade_continues_from_every_state(
    live: Definition | None, left: dict[str, bool], want: str
) -> None:
    """Each state leads to the final one, and nothing is reshaped where it would be pruned."""
    assert words(downgrade_steps(live, STEPS, RELEASES["v0.4.2"], **left)) == want


def test_a_definition_of_another_owner_is_not_changed() -> None:
    """Kinds of other projects are updated if their definition is ours, but never installed."""
    wanted = transitional_definition(MODEL_ROUTE, None, storage="v1alpha1", ca_bundle="")
    old = wanted | {"spec": wanted["spec"] | {"versions": []}}
    theirs = old | {"metadata": {"name": MODEL_ROUTE.crd_name}}
    cases: dict[str, tuple[dict[str, Definition], str]] = {
        "ours": ({MODEL_ROUTE.crd_name: old}, "install v1alpha1"),
        "theirs": ({MODEL_ROUTE.crd_name: theirs}, ""),
        "current": ({MODEL_ROUTE.crd_name: wanted}, ""),
        "missing": ({}, ""),
    }
    for name, (definitions, want) in cases.items():
        state = UpgradeState(now=NOW, namespace="stowplan-system", definitions=definitions)
        assert words(upgrade_steps(state, STEPS, (MODEL_ROUTE,))) == want, name


def test_the_second_version_is_served_together_with_conversion_and_its_ca_bundle() -> None:
    """They are part of one write, which keeps other metadata."""
    found = transitional_definition(VARIANT_AUTOSCALING, foreign(), storage=OLD, ca_bundle=BUNDLE)

    assert [(item["name"], item["storage"]) for item in found["spec"]["versions"]] == [
        (OLD, True),
        (NEW, False),
    ]
    assert found["spec"]["conversion"]["webhook"]["clientConfig"]["caBundle"] == BUNDLE
    assert found["metadata"]["annotations"] == {"theirs": "kept"}


def test_the_definition_after_a_downgrade_does_not_depend_on_stowplan() -> None:
    """It has one stored version, no conversion, no deprecation warning, and not our label."""
    left = withdrawn_definition(VARIANT_AUTOSCALING, both(storage=OLD, stored=(OLD,)))
    (version,) = left["spec"]["versions"]

    assert (version["name"], version["storage"], version["served"]) == (OLD, True, True)
    assert "deprecationWarning" not in version
    assert left["spec"]["conversion"] == {"strategy": "None"}
    assert left["metadata"] == {
        "name": VARIANT_AUTOSCALING.crd_name,
        "annotations": {"theirs": "kept"},
        "labels": {},
    }
