"""The remaining steps of an upgrade or a downgrade, derived from the state of the cluster."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from apiserver.kinds.kthena.routing import MODEL_ROUTE
from apiserver.kinds.llmd.variantautoscaling import VARIANT_AUTOSCALING
from controller.commands.upgrade.definitions import transitional_definition, withdrawn_definition
from controller.commands.upgrade.downgrade import downgrade_steps
from controller.commands.upgrade.execution import Action
from controller.commands.upgrade.gather import UpgradeState
from controller.commands.upgrade.upgrade import upgrade_steps

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


UP = {
    "nothing is installed": (None, [(Action.INSTALL, NEW)]),
    "an earlier release is installed": (
        foreign(),
        [
            (Action.SERVE, OLD),
            (Action.PROVE, ""),
            (Action.STORE, NEW),
            (Action.REWRITE, NEW),
            (Action.PRUNE, NEW),
        ],
    ),
    "interrupted after both versions were served": (
        both(storage=OLD, stored=(OLD,)),
        [(Action.PROVE, ""), (Action.STORE, NEW), (Action.REWRITE, NEW), (Action.PRUNE, NEW)],
    ),
    "interrupted after the storage version was changed": (
        both(storage=NEW, stored=(OLD, NEW)),
        [(Action.REWRITE, NEW), (Action.PRUNE, NEW)],
    ),
    "done": (both(storage=NEW, stored=(NEW,)), []),
    "after a downgrade": (
        alone(),
        [
            (Action.SERVE, OLD),
            (Action.PROVE, ""),
            (Action.STORE, NEW),
            (Action.REWRITE, NEW),
            (Action.PRUNE, NEW),
        ],
    ),
    "a downgrade was interrupted after the storage version was changed": (
        both(storage=OLD, stored=(NEW, OLD)),
        [(Action.PROVE, ""), (Action.STORE, NEW), (Action.REWRITE, NEW), (Action.PRUNE, NEW)],
    ),
}


@pytest.mark.parametrize(("live", "want"), UP.values(), ids=UP.keys())
def test_an_upgrade_continues_from_every_state(
    live: Definition | None, want: list[tuple[Action, str]]
) -> None:
    """Each state that an interrupted run can leave leads to the final one."""
    steps = upgrade_steps(snapshot(live), (VARIANT_AUTOSCALING,))

    assert [(step.action, step.detail) for step in steps] == want


CLEAN, BARE = {"is_clean": True, "is_bare": False}, {"is_clean": True, "is_bare": True}
RESHAPED = {"is_clean": False, "is_bare": False}
"""The remaining changes of objects: only annotations, none, or more than annotations."""

BACK: dict[str, tuple[Definition | None, dict[str, bool], list[Action]]] = {
    "nothing is installed": (None, RESHAPED, []),
    "upgraded": (
        both(storage=NEW, stored=(NEW,)),
        RESHAPED,
        [
            Action.REHEARSE,
            Action.STORE,
            Action.RESHAPE,
            Action.REWRITE,
            Action.PRUNE,
            Action.DISOWN,
            Action.WITHDRAW,
            Action.SWEEP,
        ],
    ),
    "upgraded, and every object already has the shape": (
        both(storage=NEW, stored=(NEW,)),
        CLEAN,
        [Action.STORE, Action.REWRITE, Action.PRUNE, Action.DISOWN, Action.WITHDRAW, Action.SWEEP],
    ),
    "interrupted after all objects were stored in the old version": (
        both(storage=OLD, stored=(OLD,)),
        BARE,
        [Action.DISOWN, Action.WITHDRAW, Action.SWEEP],
    ),
    "interrupted before our annotations were removed": (alone(), CLEAN, [Action.SWEEP]),
    "likewise, with the label that a downgrade left earlier": (labelled(alone()), CLEAN, [Action.SWEEP]),
    "done, and another shape is requested": (
        alone(),
        RESHAPED,
        [Action.REHEARSE, Action.RESHAPE, Action.SWEEP],
    ),
    "done, and other objects were created": (
        alone(),
        {"is_clean": False, "is_bare": True},
        [Action.REHEARSE, Action.RESHAPE],
    ),
    "done": (alone(), BARE, []),
    "an earlier release is installed": (foreign(), BARE, []),
    "an earlier release is installed, and another shape is requested": (foreign(), RESHAPED, []),
    "done, and an earlier release was applied over our label": (labelled(foreign()), RESHAPED, []),
}


@pytest.mark.parametrize(("live", "left", "want"), BACK.values(), ids=BACK.keys())
def test_a_downgrade_continues_from_every_state(
    live: Definition | None, left: dict[str, bool], want: list[Action]
) -> None:
    """Each state leads to the final one, and nothing is reshaped where it would be pruned."""
    steps = downgrade_steps(live, **left)

    assert [step.action for step in steps] == want


def test_a_definition_of_another_owner_is_not_changed() -> None:
    """Kinds of other projects are updated if their definition is ours, but never installed."""
    wanted = transitional_definition(MODEL_ROUTE, None, storage="v1alpha1", ca_bundle="")
    old = wanted | {"spec": wanted["spec"] | {"versions": []}}
    theirs = old | {"metadata": {"name": MODEL_ROUTE.crd_name}}
    cases = {
        "ours": {MODEL_ROUTE.crd_name: old},
        "theirs": {MODEL_ROUTE.crd_name: theirs},
        "current": {MODEL_ROUTE.crd_name: wanted},
        "missing": {},
    }
    found = {
        name: upgrade_steps(
            UpgradeState(now=NOW, namespace="stowplan-system", definitions=definitions), (MODEL_ROUTE,)
        )
        for name, definitions in cases.items()
    }

    assert {name: [step.action for step in steps] for name, steps in found.items()} == {
        "ours": [Action.INSTALL],
        "theirs": [],
        "current": [],
        "missing": [],
    }


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
