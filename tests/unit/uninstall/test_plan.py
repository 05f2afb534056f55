"""The plan of an uninstallation: its steps and checks, derived from the state of the cluster."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from apiserver.cluster.resource import (
    CONFIG_MAPS,
    DEPLOYMENTS,
    VALIDATING_WEBHOOK_CONFIGURATIONS,
    Resource,
)
from apiserver.kinds.kthena.autoscaling import AUTOSCALING_POLICY_BINDING
from apiserver.kinds.kthena.models import MODEL
from apiserver.kinds.llmd.variantautoscaling import VARIANT_AUTOSCALING
from apiserver.schema.json import Json
from apiserver.schema.kind import Kind
from apiserver.schema.structural import crd_manifest
from controller.certificates.certificates import FORMER_CLAIM, FormerClaim, former_claim
from controller.commands.uninstall.gather import UninstallState
from controller.commands.uninstall.installed import CLUSTER_ROLE_BINDINGS, is_for_us
from controller.commands.uninstall.plan import Action, is_owned, plan_removal, without_ownership
from controller.commands.uninstall.uninstall import without_conversion
from controller.commands.upgrade.definitions import withdrawn_definition
from controller.commands.upgrade.report import Run, Verdict

Installed = dict[Resource, Sequence[Json]]
VARIANTS = VARIANT_AUTOSCALING.crd_name
POLICIES = AUTOSCALING_POLICY_BINDING.crd_name


WRITTEN = {"stowplan.dev/written-by": "{}"}


def objects(number: int, annotations: dict[str, str] | None = None) -> list[Json]:
    """Return the metadata of a number of objects."""
    return [{"metadata": {"name": f"o{position}", "annotations": annotations}} for position in range(number)]


def definition(*, stored: tuple[str, ...] = ("v1alpha2",)) -> dict[str, Any]:
    """Return our definition as the cluster stores it."""
    return crd_manifest(VARIANT_AUTOSCALING) | {"status": {"storedVersions": list(stored)}}


def deployments(*components: str, **metadata: Any) -> Installed:
    """Return our Deployments of these processes."""
    return {DEPLOYMENTS: [deployment(component, **metadata) for component in components]}


def deployment(component: str, **metadata: Any) -> Json:
    """Return one of our Deployments."""
    labels = {"app.kubernetes.io/component": component}
    metadata = {"name": f"stowplan-{component}", "namespace": "stowplan-system", "labels": labels} | metadata
    return {"metadata": metadata}


def released() -> dict[str, Any]:
    """Return the definition of an earlier release, with our label."""
    live = definition(stored=("v1alpha1",))
    version = live["spec"]["versions"][0] | {"storage": True}
    return live | {"spec": live["spec"] | {"versions": [version], "conversion": {"strategy": "None"}}}


THEIRS = crd_manifest(AUTOSCALING_POLICY_BINDING) | {"metadata": {"name": POLICIES}}
CLAIM = {"metadata": {"name": "v1beta1.external.metrics.k8s.io"}, "spec": {}}
FORMER = FormerClaim(labels={}, spec={"service": {"namespace": "keda", "name": "adapter"}})
WEBHOOKS: Installed = {VALIDATING_WEBHOOK_CONFIGURATIONS: [{"metadata": {"name": "stowplan"}}]}
NOTHING = UninstallState(namespaces=("stowplan-system",))


def defined(kind: Kind, live: Json, items: Sequence[Json] = ()) -> UninstallState:
    """Return a cluster where only a definition is left, with its objects."""
    return replace(NOTHING, definitions=[(kind, live, items)])


ALL = UninstallState(
    namespaces=("stowplan-system",),
    installed={**deployments("controller", "webhooks"), **WEBHOOKS},
    marks={"taints of nodes": 1},
    definitions=[
        (VARIANT_AUTOSCALING, definition(), objects(2)),
        (AUTOSCALING_POLICY_BINDING, THEIRS, objects(1, WRITTEN)),
        (MODEL, crd_manifest(MODEL), ()),
    ],
    api_service=CLAIM,
    foreign={"stowplan-system": ()},
)


def actions(run: Run) -> str:
    """Return the actions of a plan in their order."""
    return " ".join(step.action.name.lower() for step in run.steps)


PLANS: dict[str, tuple[UninstallState, str]] = {
    "nothing is installed": (NOTHING, ""),
    "everything is installed": (
        ALL,
        "stop clean release unhook withdraw delete forget remove leave",
    ),
    "a leader that none of our Deployments runs": (
        replace(NOTHING, leaders=("stowplan-models",)),
        "stop clean",
    ),
    "a run was interrupted after the controllers had stopped": (
        replace(ALL, installed={**deployments("webhooks"), **WEBHOOKS}),
        "clean release unhook withdraw delete forget remove leave",
    ),
    "the former owner of external metrics is known": (
        replace(NOTHING, api_service=CLAIM, former=FORMER),
        "return",
    ),
    "others have an object in our namespace": (
        replace(NOTHING, foreign={"stowplan-system": ("ConfigMap theirs",)}),
        "",
    ),
    "only a definition with objects is left, without conversion": (
        defined(VARIANT_AUTOSCALING, without_conversion(definition()), objects(2)),
        "",
    ),
    "a definition of another owner has objects": (
        defined(AUTOSCALING_POLICY_BINDING, THEIRS, objects(3)),
        "",
    ),
    "a definition of another owner has our label, and its objects have records of their writers": (
        defined(VARIANT_AUTOSCALING, released(), objects(2, WRITTEN)),
        "disclaim forget",
    ),
    "a definition that a downgrade has left": (
        defined(VARIANT_AUTOSCALING, withdrawn_definition(VARIANT_AUTOSCALING, definition())),
        "",
    ),
}


@pytest.mark.parametrize(("snapshot", "want"), PLANS.values(), ids=PLANS.keys())
def test_the_steps_depend_on_the_state_of_the_cluster(snapshot: UninstallState, want: str) -> None:
    """Controllers stop first; what the API server calls is deleted when it is no longer called."""
    assert actions(plan_removal(snapshot, "https://cluster")) == want


def test_objects_are_not_changed_before_they_are_deleted() -> None:
    """Objects of another owner's definition are not deleted, but changed in any case."""
    own, theirs = (
        defined(AUTOSCALING_POLICY_BINDING, live, objects(5, WRITTEN)) for live in (definition(), THEIRS)
    )
    plans = [plan_removal(snapshot, "https://cluster", with_objects=True) for snapshot in (own, theirs)]

    assert [*map(actions, plans)] == ["delete", "forget"]


def test_objects_are_deleted_only_on_request() -> None:
    """The plan states their number in either case."""
    kept, deleted = (plan_removal(ALL, "https://cluster", with_objects=asked) for asked in (False, True))

    assert [step.subject for step in deleted.steps if step.action is Action.DELETE] == [
        VARIANTS,
        MODEL.crd_name,
    ]
    assert "withdraw" not in actions(deleted)
    assert f"{VARIANTS} stays, with its objects: 2" in [item.message for item in kept.checks]
    assert f"{VARIANTS} will be deleted, with its objects: 2" in [item.message for item in deleted.checks]


def config_map(name: str) -> Json:
    """Return one of our ConfigMaps."""
    return {"metadata": {"name": name, "namespace": "stowplan-system"}}


def test_the_plan_states_what_is_deleted_and_once_how_to_delete_objects() -> None:
    """It counts objects by kind, without those of the first step, and names settings of users."""
    settings = [config_map(name) for name in ("stowplan-webhooks-config-x", "accelerator-unit-costs")]
    ours = (AUTOSCALING_POLICY_BINDING, definition(), objects(1))
    definitions = [*ALL.definitions[:1], ours, *ALL.definitions[2:]]
    snapshot = replace(ALL, installed={**ALL.installed, CONFIG_MAPS: settings}, definitions=definitions)
    kept, deleted = (plan_removal(snapshot, "https://cluster", with_objects=asked) for asked in (False, True))

    (rest,) = (step.detail for step in kept.steps if step.action is Action.REMOVE)
    assert rest == "3 (Deployment: 1, ConfigMap: 2)"
    for report, said in ((kept, 1), (deleted, 0)):
        assert sum("--delete-objects" in f"{item.message} {item.remedy}" for item in report.checks) == said
        (prices,) = (item.message for item in report.checks if "prices" in item.message)
        assert prices.endswith("will be deleted: stowplan-system/accelerator-unit-costs")


PROBLEMS: dict[str, tuple[UninstallState, str, str]] = {
    "pod templates that depend on Stowplan": (
        replace(ALL, dependents=("Deployment a/b: the scheduling gate stowplan.dev/placement",)),
        "templates",
        "new pods would not run without Stowplan: Deployment a/b",
    ),
    "a delivery tool": (
        replace(
            ALL,
            installed=deployments("webhooks", annotations={"argocd.argoproj.io/tracking-id": "x"}),
        ),
        "owners",
        "would reinstall Deployment stowplan-system/stowplan-webhooks",
    ),
    "objects stored in another version": (
        replace(
            ALL,
            definitions=[
                (VARIANT_AUTOSCALING, definition(stored=("v1alpha1", "v1alpha2")), objects(2)),
            ],
        ),
        "definition",
        "may have objects in v1alpha1, v1alpha2",
    ),
    "a missing permission": (
        replace(NOTHING, missing_permissions=("delete secrets",)),
        "permissions",
        "not allowed to delete",
    ),
}


@pytest.mark.parametrize(("snapshot", "check", "words"), PROBLEMS.values(), ids=PROBLEMS.keys())
def test_problems_are_found_before_any_change(snapshot: UninstallState, check: str, words: str) -> None:
    """Only those of owners and templates can be accepted."""
    report = plan_removal(snapshot, "https://cluster")
    accepted = plan_removal(snapshot, "https://cluster", accept=("owners", "templates"))

    (found,) = report.problems
    assert found.check == check
    assert words in found.message
    assert bool(accepted.problems) == (check not in {"owners", "templates"})


def test_a_helm_release_is_a_note_and_not_a_problem() -> None:
    """Helm does not reinstall anything, but keeps a record of the release."""
    installed = deployments("webhooks", annotations={"meta.helm.sh/release-name": "plan"})
    checks = plan_removal(replace(ALL, installed=installed), "").checks
    (owner,) = (item for item in checks if item.check == "owners")

    assert owner.verdict is Verdict.NOTE
    assert "helm uninstall plan --namespace stowplan-system" in owner.remedy


def test_each_helm_release_is_named_with_its_own_namespace() -> None:
    """An earlier installation may belong to another release."""
    webhooks = [
        deployment(
            "webhooks",
            annotations={"meta.helm.sh/release-name": "plan", "meta.helm.sh/release-namespace": place},
        )
        for place in ("inference", "stowplan-system")
    ]
    snapshot = replace(ALL, installed={DEPLOYMENTS: webhooks}, namespaces=("inference", "stowplan-system"))
    checks = plan_removal(snapshot, "").checks

    assert [item.remedy.partition("helm ")[2] for item in checks if item.check == "owners"] == [
        "uninstall plan --namespace inference",
        "uninstall plan --namespace stowplan-system",
    ]
    (both,) = (item.message for item in checks if item.check == "installations")
    assert both.endswith("removed from all of them: inference, stowplan-system")


def test_the_json_document_has_the_members_of_other_commands() -> None:
    """Each step has an action, a subject and a title."""
    document = plan_removal(ALL, "https://cluster").as_json()

    assert {"verb", "cluster", "outcome", "checks", "steps", "done", "error", "failures"} <= document.keys()
    assert document["steps"][2] == {
        "action": "release",
        "subject": "v1beta1.external.metrics.k8s.io",
        "title": "delete the APIService v1beta1.external.metrics.k8s.io",
    }


def account(name: str = "stowplan-controller", namespace: str = "stowplan-system") -> dict[str, str]:
    """Return a subject of a role binding."""
    return {"kind": "ServiceAccount", "name": name, "namespace": namespace}


BINDINGS = {
    "for our account": ([account()], True),
    "without subjects": ([], False),
    "for our account and another one": ([account(), account("theirs")], False),
    "for a namesake in another namespace": ([account(namespace="tenant")], False),
    "for a user": ([{"kind": "User", "name": "stowplan-controller"}], False),
}


@pytest.mark.parametrize(("subjects", "want"), BINDINGS.values(), ids=BINDINGS.keys())
def test_only_role_bindings_of_our_accounts_alone_are_deleted(
    subjects: list[dict[str, str]], want: bool
) -> None:
    """They may be in any namespace."""
    assert is_for_us({"subjects": subjects}, ("stowplan-system",)) is want
    assert not CLUSTER_ROLE_BINDINGS.namespaced


@pytest.mark.parametrize("text", ["", "{", "[]", "{}", '{"labels": 1, "spec": {}}', "[" * 9000])
def test_an_invalid_record_of_a_former_claim_is_ignored(text: str) -> None:
    """Clients that may write the Lease can write any text there."""
    assert former_claim({"metadata": {"annotations": {FORMER_CLAIM: text}}}) is None


def test_a_recorded_claim_is_read_with_its_labels() -> None:
    """Labels are recorded because our labels are removed together with our claim."""
    said = {"labels": {"app.kubernetes.io/part-of": "keda"}, "spec": FORMER.spec}
    lease = {"metadata": {"annotations": {FORMER_CLAIM: json.dumps(said)}}}

    assert former_claim(lease) == FormerClaim(labels=said["labels"], spec=FORMER.spec)
    assert former_claim({"metadata": {}}) is None


def test_a_definition_that_stays_has_no_conversion_and_no_field_of_ours() -> None:
    """It has only the stored version, and other field managers can apply it without conflicts."""
    entries = [
        {"manager": "kubectl", "operation": "Apply"},
        {"manager": "stowplan", "operation": "Update"},
        {"manager": "stowplan", "operation": "Update", "subresource": "status"},
    ]
    live = without_conversion(definition())
    left = without_ownership(live | {"metadata": live["metadata"] | {"managedFields": entries}})

    assert [version["name"] for version in left["spec"]["versions"]] == ["v1alpha2"]
    assert left["spec"]["conversion"] == {"strategy": "None"}
    assert left["metadata"]["managedFields"] == [entries[0], entries[2]]
    assert not is_owned(left)
