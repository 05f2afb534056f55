"""The plan of an uninstallation: its steps and checks, derived from the state of the cluster."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest
from support.memory_installation import FORMER, PACE, Stored, acting, defined, named, ours
from support.memory_store import MemoryStore

from apiserver.cluster.resource import (
    API_SERVICES,
    AUTOSCALING_POLICY_BINDINGS,
    CONFIG_MAPS,
    CUSTOM_RESOURCE_DEFINITIONS,
    DEPLOYMENTS,
    NAMESPACES,
    NODES,
    SERVICES,
    VALIDATING_WEBHOOK_CONFIGURATIONS,
    VARIANT_AUTOSCALINGS,
)
from apiserver.kinds.kthena.autoscaling import AUTOSCALING_POLICY_BINDING
from apiserver.kinds.kthena.models import MODEL
from apiserver.kinds.llmd.variantautoscaling import VARIANT_AUTOSCALING
from apiserver.schema.json import Json
from apiserver.schema.structural import crd_manifest
from controller.certificates.certificates import FORMER_CLAIM, FormerClaim, former_claim
from controller.commands.uninstall.definitions import is_owned, without_conversion, without_ownership
from controller.commands.uninstall.installed import CLUSTER_ROLE_BINDINGS, SERVICE_ACCOUNTS, is_for_us
from controller.commands.uninstall.uninstall import plan_removal
from controller.commands.upgrade.definitions import withdrawn_definition
from controller.commands.upgrade.report import Run, Verdict
from controller.observe.decision_following import API_SERVICE, TARGET

PLACE = "stowplan-system"
VARIANTS = VARIANT_AUTOSCALING.crd_name
POLICIES = AUTOSCALING_POLICY_BINDING.crd_name
WRITTEN = {"stowplan.dev/written-by": "{}"}


def variants(number: int, annotations: dict[str, str] | None = None) -> list[Stored]:
    """Return VariantAutoscalings."""
    metadata = {"annotations": annotations}
    return [(VARIANT_AUTOSCALINGS, named(f"o{i}", "tenant", metadata=metadata)) for i in range(number)]


def bindings(number: int, annotations: dict[str, str] | None = None) -> list[Stored]:
    """Return AutoscalingPolicyBindings."""
    metadata = {"annotations": annotations}
    return [(AUTOSCALING_POLICY_BINDINGS, named(f"o{i}", "tenant", metadata=metadata)) for i in range(number)]


def definition(*, stored: tuple[str, ...] = ("v1alpha2",)) -> dict[str, Any]:
    """Return our definition as the cluster stores it."""
    return crd_manifest(VARIANT_AUTOSCALING) | {"status": {"storedVersions": list(stored)}}


def stored_definition(live: Json) -> Stored:
    """Return a definition with its kind."""
    return CUSTOM_RESOURCE_DEFINITIONS, live


def webhooks(place: str = PLACE, **annotations: str) -> Stored:
    """Return the Deployment of our webhooks."""
    item = ours("stowplan-webhooks", place, spec={"template": {}})
    return DEPLOYMENTS, item | {"metadata": item["metadata"] | {"annotations": annotations}}


def released() -> dict[str, Any]:
    """Return the definition of an earlier release, with our label."""
    live = definition(stored=("v1alpha1",))
    version = live["spec"]["versions"][0] | {"storage": True}
    return live | {"spec": live["spec"] | {"versions": [version], "conversion": {"strategy": "None"}}}


THEIRS = crd_manifest(AUTOSCALING_POLICY_BINDING) | {"metadata": {"name": POLICIES}}
CLAIM: Stored = (
    API_SERVICES,
    named(API_SERVICE, spec={"service": {"namespace": PLACE, "name": TARGET}}),
)
WEBHOOKS: Stored = (VALIDATING_WEBHOOK_CONFIGURATIONS, ours("stowplan", "", webhooks=[]))
INTERRUPTED: list[Stored] = [
    webhooks(),
    WEBHOOKS,
    (NODES, named("n1", spec={"taints": [{"key": "stowplan.dev/moving", "effect": "NoSchedule"}]})),
    defined(VARIANT_AUTOSCALING),
    *variants(2),
    stored_definition(THEIRS),
    *bindings(1, WRITTEN),
    defined(MODEL),
    CLAIM,
    (NAMESPACES, ours(PLACE, "")),
]
ALL = [*acting("controller", PLACE), *INTERRUPTED]


def plan(objects: list[Stored], *accept: str, with_objects: bool = False) -> Run:
    """Return the plan for a cluster with these objects."""
    return asyncio.run(plan_removal(MemoryStore(objects), PACE, accept=accept, with_objects=with_objects))


def actions(run: Run) -> str:
    """Return the actions of a plan in their order."""
    return " ".join(step.action for step in run.steps)


PLANS: dict[str, tuple[list[Stored], str]] = {
    "nothing is installed": ([], ""),
    "everything is installed": (ALL, "stop clean release unhook withdraw delete forget remove leave"),
    "a leader that none of our Deployments runs": (acting("models", PLACE)[1:], "stop clean remove"),
    "a run was interrupted after the controllers had stopped": (
        INTERRUPTED,
        "clean release unhook withdraw delete forget remove leave",
    ),
    "the former owner of external metrics is known": (
        [CLAIM, *acting("controller", PLACE), (SERVICES, named("adapter", "keda"))],
        "stop clean return remove",
    ),
    "the Service of the former owner is gone": (
        [CLAIM, *acting("controller", PLACE)],
        "stop clean release remove",
    ),
    "others have an object in our namespace": (
        [(NAMESPACES, ours(PLACE, "")), (CONFIG_MAPS, named("theirs", PLACE))],
        "",
    ),
    "only a definition with objects is left, without conversion": (
        [stored_definition(without_conversion(definition())), *variants(2)],
        "",
    ),
    "a definition of another owner has objects": ([stored_definition(THEIRS), *bindings(3)], ""),
    "a definition of another owner has our label, and its objects have records of their writers": (
        [stored_definition(released()), *variants(2, WRITTEN)],
        "disclaim forget",
    ),
    "a definition that a downgrade has left": (
        [stored_definition(withdrawn_definition(VARIANT_AUTOSCALING, definition()))],
        "",
    ),
}


@pytest.mark.parametrize(("objects", "want"), PLANS.values(), ids=PLANS.keys())
def test_the_steps_depend_on_the_state_of_the_cluster(objects: list[Stored], want: str) -> None:
    """Controllers stop first; what the API server calls is deleted when it is no longer called."""
    assert actions(plan(objects)) == want


def test_objects_are_not_changed_before_they_are_deleted() -> None:
    """Objects of another owner's definition are not deleted, but changed in any case."""
    own, theirs = defined(AUTOSCALING_POLICY_BINDING), stored_definition(THEIRS)
    plans = [plan([live, *bindings(5, WRITTEN)], with_objects=True) for live in (own, theirs)]

    assert [*map(actions, plans)] == ["delete", "forget"]


def test_objects_are_deleted_only_on_request() -> None:
    """The plan states their number in either case."""
    kept, deleted = (plan(ALL, with_objects=with_objects) for with_objects in (False, True))

    assert [step.subject for step in deleted.steps if step.action == "delete"] == [VARIANTS, MODEL.crd_name]
    assert "withdraw" not in actions(deleted)
    assert f"{VARIANTS} stays, with its objects: 2" in [item.message for item in kept.checks]
    assert f"{VARIANTS} will be deleted, with its objects: 2" in [item.message for item in deleted.checks]


def test_the_plan_states_what_is_deleted_and_once_how_to_delete_objects() -> None:
    """It counts objects by kind, without those of the first step, and names settings of users."""
    settings = [
        (CONFIG_MAPS, ours(name, PLACE)) for name in ("stowplan-webhooks-config-x", "accelerator-unit-costs")
    ]
    objects = [*ALL, *settings, defined(AUTOSCALING_POLICY_BINDING)]
    kept, deleted = (plan(objects, with_objects=with_objects) for with_objects in (False, True))

    (rest,) = (step.title for step in kept.steps if step.action == "remove")
    assert rest == "delete the rest of the installation: 4 (Deployment: 1, ConfigMap: 2, Lease: 1)"
    for report, said in ((kept, 1), (deleted, 0)):
        assert sum("--delete-objects" in f"{item.message} {item.remedy}" for item in report.checks) == said
        (prices,) = (item.message for item in report.checks if "prices" in item.message)
        assert prices.endswith("will be deleted: stowplan-system/accelerator-unit-costs")


GATED = named(
    "b", "a", spec={"template": {"spec": {"schedulingGates": [{"name": "stowplan.dev/placement"}]}}}
)
PROBLEMS: dict[str, tuple[list[Stored], str, str]] = {
    "pod templates that depend on Stowplan": (
        [*ALL, (DEPLOYMENTS, GATED)],
        "templates",
        "new pods would not run without Stowplan: Deployment a/b: the scheduling gate",
    ),
    "a delivery tool": (
        [webhooks(**{"argocd.argoproj.io/tracking-id": "x"})],
        "owners",
        "would reinstall Deployment stowplan-system/stowplan-webhooks",
    ),
    "objects stored in another version": (
        [stored_definition(definition(stored=("v1alpha1", "v1alpha2"))), *variants(2)],
        "definition",
        "may have objects in v1alpha1, v1alpha2",
    ),
}


@pytest.mark.parametrize(("objects", "check", "words"), PROBLEMS.values(), ids=PROBLEMS.keys())
def test_problems_are_detected_before_any_change(objects: list[Stored], check: str, words: str) -> None:
    """Only those of owners and templates can be accepted."""
    accepted = plan(objects, "owners", "templates")

    (only,) = plan(objects).problems
    assert only.check == check
    assert words in only.message
    assert bool(accepted.problems) == (check not in {"owners", "templates"})


def test_a_helm_release_is_a_note_and_not_a_problem() -> None:
    """Helm does not reinstall anything, but keeps a record of the release."""
    checks = plan([webhooks(**{"meta.helm.sh/release-name": "plan"})]).checks
    (owner,) = (item for item in checks if item.check == "owners")

    assert owner.verdict is Verdict.NOTE
    assert "helm uninstall plan --namespace stowplan-system" in owner.remedy


def test_each_helm_release_is_named_with_its_own_namespace() -> None:
    """An earlier installation may belong to another release."""
    objects: list[Stored] = []
    for place in ("inference", PLACE):
        release = {"meta.helm.sh/release-name": "plan", "meta.helm.sh/release-namespace": place}
        objects += [(SERVICE_ACCOUNTS, ours("stowplan-webhooks", place)), webhooks(place, **release)]
    checks = plan(objects).checks

    assert [item.remedy.partition("helm ")[2] for item in checks if item.check == "owners"] == [
        "uninstall plan --namespace inference",
        "uninstall plan --namespace stowplan-system",
    ]
    (both,) = (item.message for item in checks if item.check == "installations")
    assert both.endswith("removed from all of them: inference, stowplan-system")


def test_the_json_document_has_the_members_of_other_commands() -> None:
    """Each step has an action, a subject and a title."""
    document = plan(ALL).as_json()

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
    lease = {"metadata": {"annotations": {FORMER_CLAIM: json.dumps(FORMER)}}}

    assert former_claim(lease) == FormerClaim(**FORMER)
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
