"""Two tenants, each with all permissions in its namespace: priorities, costs, and names in messages."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pytest
import yaml
from support.command_line import stowplan
from support.manifests import Manifest, autoscaler, deployment, listed, variant
from support.polling import wait_for
from support.watching import conditions_of, watched

from hack.controlplane.nodes import KwokNode, create_nodes
from hack.installation.manifests import ROOT

if TYPE_CHECKING:
    from collections.abc import Iterator

    from hack.controlplane import ControlPlane
    from hack.installation import Installation

pytestmark = pytest.mark.controlplane

PRODUCT, TYPE = "NVIDIA-GB200", "GB200"
CLASS = {"name": "service-classes-config", "key": "tenants.yaml"}
RIGHTS = ROOT / "manifests" / "components" / "tenants" / "rbac.yaml"
SYSTEM = "--namespace=stowplan-system"
SETTINGS = {
    "service-classes-config": {"tenants.yaml": "{name: Premium, priority: 1, data: []}"},
    "accelerator-unit-costs": {TYPE: '{"device": "NVIDIA-GB200", "cost": "50.00"}'},
}


@dataclass(frozen=True)
class Team:
    """A namespace, and the account that its owner uses for everything there."""

    control_plane: ControlPlane
    namespace: str

    def kubectl(self, *arguments: str, **options: Any) -> str:
        """Run kubectl as the owner."""
        found = self.control_plane.kubectl(
            *arguments, f"--namespace={self.namespace}", f"--kubeconfig={self._kubeconfig}", **options
        )
        return found.stdout + found.stderr

    def apply(self, *manifests: Manifest, check: bool = True) -> str:
        """Apply manifests as the owner; return the output of kubectl."""
        return self.kubectl("apply", "--filename=-", input=listed(*manifests), check=check)

    def status(self, name: str) -> Manifest:
        """Return the status of a VariantAutoscaling with its conditions by type."""
        return status_of(json.loads(self.kubectl("get", "va", name, "--output=json")))

    def until(self, name: str, *, priority: int, reason: str) -> Manifest:
        """Wait until a variant has this priority in its decision, and this reason for its service class."""

        def is_so(item: Manifest) -> bool:
            status = status_of(item)
            found = status["conditions"].get("ServiceClassResolved", {}).get("reason")
            return (status["decision"].get("priority"), found) == (priority, reason)

        return status_of(watched(self.control_plane, self.namespace, f"va/{name}", is_so))

    def told(self, name: str) -> str:
        """Return all that the owner can read about a variant: the object, its events, and `explain`."""
        place = ("--kubeconfig", self._kubeconfig, "--namespace", self.namespace)
        explained = stowplan("explain", f"va/{name}", *place)
        assert explained.code == 0
        events = self.kubectl("get", "events", "--output=json")
        return explained.out + events + self.kubectl("get", "va", name, "--output=json")

    @property
    def _kubeconfig(self) -> str:
        return str(self.control_plane.directory / f"{self.namespace}.deployer.kubeconfig")


def workload(name: str, **spec: Any) -> tuple[Manifest, Manifest, Manifest]:
    """Return a Deployment of two replicas with its HPA and its variant."""
    return (
        deployment(name, product=PRODUCT, accelerators=1, replicas=2),
        autoscaler(name, least=2),
        variant(name, modelID=name, variantCost=None, **spec),
    )


def _team(control_plane: ControlPlane, name: str) -> Team:
    """Create a namespace and an account with all permissions in it, as `flux create tenant` does."""
    place = f"--namespace={name}"
    control_plane.kubectl("create", "namespace", name)
    control_plane.kubectl("create", "serviceaccount", "deployer", place)
    owner = ("--clusterrole=cluster-admin", f"--serviceaccount={name}:deployer")
    control_plane.kubectl("create", "rolebinding", "owner", *owner, place)
    control_plane.service_account_kubeconfig(name, "deployer")
    return Team(control_plane, name)


@pytest.fixture(scope="module")
def teams(control_plane: ControlPlane, installation: Installation) -> Iterator[tuple[Team, Team]]:
    """Yield two teams that share a node; one has an object that was stored without the webhooks."""
    create_nodes(control_plane, [KwokNode(name="tenants", accelerator=PRODUCT, accelerator_count=2)])
    for name, data in SETTINGS.items():
        control_plane.kubectl("patch", "cm", name, SYSTEM, f"--patch={json.dumps({'data': data})}")
    first, second = _team(control_plane, "team-red"), _team(control_plane, "team-blue")
    _store_around_admission(first, *workload("crimson", sloClassRef=CLASS))
    control_plane.kubectl("apply", f"--filename={RIGHTS}")
    before = {name: _restart(installation, control_plane, name, {"tenants": True}) for name in PROCESSES}
    yield first, second
    for name, document in before.items():
        _restart(installation, control_plane, name, document)
    control_plane.kubectl("delete", f"--filename={RIGHTS}")
    control_plane.kubectl("delete", "rolebinding", "red-classes", SYSTEM, "--ignore-not-found")
    control_plane.kubectl("delete", "namespace", first.namespace, second.namespace)
    for name, data in SETTINGS.items():
        gone = json.dumps({"data": dict.fromkeys(data)})
        control_plane.kubectl("patch", "cm", name, SYSTEM, f"--patch={gone}", "--type=merge")
    control_plane.kubectl("delete", "node", "tenants")


PROCESSES = ("webhooks", "controller")


def _restart(
    installation: Installation, control_plane: ControlPlane, name: str, settings: dict[str, Any]
) -> dict[str, Any]:
    """Restart a process with other settings; return the previous ones."""
    path = control_plane.directory / f"{name}.yaml"
    before: dict[str, Any] = yaml.safe_load(path.read_text(encoding="utf-8"))
    path.write_text(yaml.safe_dump({**before, "tenants": False, **settings}), encoding="utf-8")
    installation.processes[name].stop(patience_seconds=20.0)
    installation.start_component(name)
    return before


def _store_around_admission(team: Team, *manifests: Manifest) -> None:
    """Store objects while the webhook that records their writer excludes the namespace."""
    label = "kubernetes.io/metadata.name"
    spared = {"matchExpressions": [{"key": label, "operator": "NotIn", "values": [team.namespace]}]}
    for selector in (spared, {}):
        change = [{"op": "replace", "path": "/webhooks/0/namespaceSelector", "value": selector}]
        team.control_plane.kubectl(
            "patch",
            "mutatingwebhookconfiguration",
            "stowplan",
            "--type=json",
            f"--patch={json.dumps(change)}",
        )
        if selector:
            wait_for(
                lambda: "written-by" not in team.kubectl(*DRY_RUN, input=listed(*manifests)),
                "writes that are not recorded",
            )
            team.apply(*manifests)


DRY_RUN = ("create", "--dry-run=server", "--output=json", "--filename=-")


def test_a_service_class_and_a_cost_are_rejected_without_permission(teams: tuple[Team, Team]) -> None:
    """All permissions in the own namespace do not suffice; without both fields the object is accepted."""
    _, blue = teams
    greedy = workload("greedy", sloClassRef=CLASS)[-1]
    greedy["spec"]["variantCost"] = "0"

    refused = blue.apply(greedy, check=False)

    user = 'User "system:serviceaccount:team-blue:deployer" cannot use'
    where = 'in the namespace "stowplan-system"'
    named = 'serviceclasses.stowplan.dev "service-classes-config/tenants.yaml"'
    assert f"spec.sloClassRef: Forbidden: {user} {named} {where}" in refused
    assert f"spec.variantCost: Forbidden: {user} variantcosts.stowplan.dev {where}" in refused
    blue.apply(workload("greedy")[-1])


def test_an_object_without_a_recorded_writer_gets_its_class_by_an_explicit_permission(
    teams: tuple[Team, Team], control_plane: ControlPlane
) -> None:
    """The condition contains the command that records a writer, which only works with the permission."""
    red, _ = teams
    status = red.until("crimson", priority=100, reason="ClassNotAllowed")
    message = status["conditions"]["ServiceClassResolved"]["message"]
    assert "no writer is recorded" in message
    command = message.split(" run kubectl ")[1].split()
    assert "cannot use serviceclasses" in red.kubectl(*command, check=False)

    grant = ("--role=stowplan-service-classes", "--group=system:serviceaccounts:team-red")
    control_plane.kubectl("create", "rolebinding", "red-classes", *grant, SYSTEM)
    wait_for(lambda: "annotated" in red.kubectl(*command, check=False), "the right to annotate")
    red.until("crimson", priority=1, reason="ClassFound")


def test_no_team_sees_names_of_the_other_and_both_have_the_listed_cost(teams: tuple[Team, Team]) -> None:
    """Status, events and `explain` describe the holders of missing accelerators by priority only."""
    red, blue = teams
    red.kubectl("wait", "deploy/crimson", "--for=jsonpath={.status.readyReplicas}=2", "--timeout=60s")
    blue.apply(*workload("hungry"))
    blue.until("hungry", priority=100, reason="NoClass")
    wait_for(lambda: "in other namespaces" in blue.kubectl("events", "--for=va/hungry"), "an event")

    theirs, ours = red.told("crimson"), blue.told("hungry")

    assert "held by workloads of priority" in " ".join(ours.split())
    assert not [name for name in ("team-red", "crimson") if name in ours]
    assert not [name for name in ("team-blue", "hungry") if name in theirs]
    for team, name in ((red, "crimson"), (blue, "hungry")):
        decision = team.status(name)["decision"]
        assert (decision["costPerReplica"], decision["costSource"]) == ("50.00", "UnitCost")


def status_of(item: Manifest) -> Manifest:
    """Return the status of a VariantAutoscaling with its conditions by type."""
    status: Manifest = item.get("status") or {}
    return status | {"conditions": conditions_of(item), "decision": status.get("decision") or {}}
