"""What is left to do, from what is there."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest

from apiserver.kinds.kthena.routing import MODEL_ROUTE
from apiserver.kinds.llmd.variantautoscaling import VARIANT_AUTOSCALING
from apiserver.upgrading.definitions import staged, withdrawn
from apiserver.upgrading.snapshot import Snapshot, Webhook
from apiserver.upgrading.steps import Action, downgrade_steps, upgrade_steps

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
    """Return our definition with both versions, as the server gives it back."""
    found = staged(VARIANT_AUTOSCALING, foreign(stored=stored), storage=storage, ca_bundle=BUNDLE)
    return found | {"spec": found["spec"] | {"preserveUnknownFields": False}}


def alone() -> Definition:
    """Return our definition with the oldest version alone."""
    return withdrawn(VARIANT_AUTOSCALING, foreign())


def labelled(live: Definition) -> Definition:
    """Return a definition with our label."""
    return live | {"metadata": live["metadata"] | {"labels": {"app.kubernetes.io/part-of": "stowplan"}}}


def snapshot(live: Definition | None) -> Snapshot:
    """Return a cluster with this definition."""
    definitions = {VARIANT_AUTOSCALING.crd_name: live} if live else {}
    return Snapshot(
        now=NOW, definitions=definitions, webhook=Webhook(namespace="stowplan-system", trusted=BUNDLE)
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
    "cut off after both versions were served": (
        both(storage=OLD, stored=(OLD,)),
        [(Action.PROVE, ""), (Action.STORE, NEW), (Action.REWRITE, NEW), (Action.PRUNE, NEW)],
    ),
    "cut off after storage was changed": (
        both(storage=NEW, stored=(OLD, NEW)),
        [(Action.REWRITE, NEW), (Action.PRUNE, NEW)],
    ),
    "done": (both(storage=NEW, stored=(NEW,)), []),
    "after the way back": (
        alone(),
        [
            (Action.SERVE, OLD),
            (Action.PROVE, ""),
            (Action.STORE, NEW),
            (Action.REWRITE, NEW),
            (Action.PRUNE, NEW),
        ],
    ),
    "a way back was cut off after storage was changed": (
        both(storage=OLD, stored=(NEW, OLD)),
        [(Action.PROVE, ""), (Action.STORE, NEW), (Action.REWRITE, NEW), (Action.PRUNE, NEW)],
    ),
}


@pytest.mark.parametrize(("live", "want"), UP.values(), ids=UP.keys())
def test_what_is_left_on_the_way_up(live: Definition | None, want: list[tuple[Action, str]]) -> None:
    """Each state that a run can leave leads on to the end."""
    steps = upgrade_steps(snapshot(live), (VARIANT_AUTOSCALING,))

    assert [(step.action, step.version) for step in steps] == want


def test_what_an_interrupted_way_back_left_is_taken_out_on_the_way_up() -> None:
    """Even where nothing else is left to do."""
    left = {"metadata": {"name": "x", "annotations": {"llmd.ai/status-to-come": "{}"}}}
    done = replace(snapshot(both(storage=NEW, stored=(NEW,))), objects=(left,))

    assert [step.action for step in upgrade_steps(done, (VARIANT_AUTOSCALING,))] == [Action.FORGET]


CLEAN, BARE = {"is_clean": True, "is_annotated": True}, {"is_clean": True, "is_annotated": False}
RESHAPED = {"is_clean": False, "is_annotated": True}
"""What is left to change: nothing but annotations, nothing at all, more than annotations."""

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
    "upgraded, and every object has the shape already": (
        both(storage=NEW, stored=(NEW,)),
        CLEAN,
        [Action.STORE, Action.REWRITE, Action.PRUNE, Action.DISOWN, Action.WITHDRAW, Action.SWEEP],
    ),
    "cut off after all is stored in the old version": (
        both(storage=OLD, stored=(OLD,)),
        BARE,
        [Action.DISOWN, Action.WITHDRAW, Action.SWEEP],
    ),
    "cut off before our annotations were taken out": (alone(), CLEAN, [Action.SWEEP]),
    "cut off likewise, with the label that we once left": (labelled(alone()), CLEAN, [Action.SWEEP]),
    "done, and another shape is asked for": (
        alone(),
        RESHAPED,
        [Action.REHEARSE, Action.RESHAPE, Action.SWEEP],
    ),
    "done, and other objects came": (
        alone(),
        {"is_clean": False, "is_annotated": False},
        [Action.REHEARSE, Action.RESHAPE],
    ),
    "done": (alone(), BARE, []),
    "an earlier release is installed": (foreign(), BARE, []),
    "an earlier release is installed, and another shape is asked for": (foreign(), RESHAPED, []),
    "done, and an earlier release was applied over our label": (labelled(foreign()), RESHAPED, []),
}


@pytest.mark.parametrize(("live", "left", "want"), BACK.values(), ids=BACK.keys())
def test_what_is_left_on_the_way_back(
    live: Definition | None, left: dict[str, bool], want: list[Action]
) -> None:
    """Each state that a run can leave leads on to the end; nothing is reshaped where it would be pruned."""
    steps = downgrade_steps(snapshot(live), VARIANT_AUTOSCALING, **left)

    assert [step.action for step in steps] == want


def test_a_definition_of_somebody_else_is_left_alone() -> None:
    """Kinds of others are updated where their definition is ours, and never installed."""
    wanted = staged(MODEL_ROUTE, None, storage="v1alpha1", ca_bundle="")
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
            Snapshot(
                now=NOW,
                definitions=definitions,
                webhook=Webhook(namespace="stowplan-system"),
            ),
            (MODEL_ROUTE,),
        )
        for name, definitions in cases.items()
    }

    assert {name: [step.action for step in steps] for name, steps in found.items()} == {
        "ours": [Action.INSTALL],
        "theirs": [],
        "current": [],
        "missing": [],
    }


def test_trust_comes_with_the_version_that_needs_it() -> None:
    """One write serves the second version, names the converter and trusts it; the rest of metadata stays."""
    found = staged(VARIANT_AUTOSCALING, foreign(), storage=OLD, ca_bundle=BUNDLE)

    assert [(item["name"], item["storage"]) for item in found["spec"]["versions"]] == [
        (OLD, True),
        (NEW, False),
    ]
    assert found["spec"]["conversion"]["webhook"]["clientConfig"]["caBundle"] == BUNDLE
    assert found["metadata"]["annotations"] == {"theirs": "kept"}


def test_what_is_left_behind_needs_none_of_us() -> None:
    """One stored version, without conversion, a warning that leads nowhere, or a label to delete us by."""
    left = withdrawn(VARIANT_AUTOSCALING, both(storage=OLD, stored=(OLD,)))
    (version,) = left["spec"]["versions"]

    assert (version["name"], version["storage"], version["served"]) == (OLD, True, True)
    assert "deprecationWarning" not in version
    assert left["spec"]["conversion"] == {"strategy": "None"}
    assert left["metadata"] == {
        "name": VARIANT_AUTOSCALING.crd_name,
        "annotations": {"theirs": "kept"},
        "labels": {},
    }
