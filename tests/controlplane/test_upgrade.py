"""`stowplan upgrade` and `downgrade` of old objects on a real control plane with real webhooks."""

from __future__ import annotations

import asyncio
import copy
import json
from collections.abc import Sequence
from pathlib import Path

import pytest
import yaml
from support.polling import wait_for
from support.upgrade_rig import (
    CRD,
    NAMESPACE,
    NEW,
    OLD,
    Follower,
    Manifest,
    Point,
    Traffic,
    annotations_of,
    apply,
    apply_definition,
    converted,
    copies,
    definition,
    enter,
    fill,
    items,
    killed,
    read,
    request,
    running,
    samples,
    stowplan,
    without_admission,
)

from hack.controlplane import ControlPlane
from hack.controlplane.client import collection_of
from hack.installation import Installation
from hack.installation.manifests import ROOT

pytestmark = [pytest.mark.controlplane, pytest.mark.usefixtures("old_installation")]

ERAS = ("v0.0.1", "v0.0.5", "v0.4.2", "pull-233", "v0.5.1", "v0.7.0")
BUSY = "busy"
UP = ("serve every", "verify", "store", "rewrite", "record")
BACK = ("rehearse", "store", "restore", "rewrite", "record", "serve only", "remove")
"""The beginnings of the titles of steps."""


KTHENA = sorted((ROOT / "manifests" / "crds" / "kthena").glob("*volcano.sh.yaml"))
"""The definitions of the kinds of Kthena."""

APPLY_PATCH = "application/apply-patch+yaml"


def busy_one(era: str) -> Manifest:
    """Return one more object of a release, which is written all the time."""
    (made, *_) = copy.deepcopy(samples(era))
    made["metadata"]["name"] = BUSY
    return made


def settled(objects: dict[str, Manifest]) -> dict[str, Manifest]:
    """Return all objects but the one that is written all the time."""
    return {name: item for name, item in objects.items() if name != BUSY}


async def ownership(plane: ControlPlane) -> dict[str, Manifest]:
    """Return the fields of each object by manager, operation, subresource and version.

    A scale target counts as a whole: in releases 0.6 to 0.8, each of its fields has its own managers.
    """
    return {
        item["metadata"]["name"]: {
            " ".join(
                str(entry.get(name)) for name in ("manager", "operation", "subresource", "apiVersion")
            ): _with_whole_target(entry["fieldsV1"])
            for entry in item["metadata"]["managedFields"]
        }
        for item in await items(plane, OLD)
    }


def _with_whole_target(fields: Manifest) -> Manifest:
    spec = fields.get("f:spec", {})
    return fields | {"f:spec": spec | {"f:scaleTargetRef": {}}} if "f:scaleTargetRef" in spec else fields


async def write_everywhere(plane: ControlPlane) -> None:
    """Change spec and status of every object in both versions by dry run, and check the results."""
    for where in (OLD, NEW):
        for item in (item for item in await items(plane, where) if item["metadata"]["name"] != BUSY):
            changed, path = copy.deepcopy(item), where.path(NAMESPACE, item["metadata"]["name"])
            changed["spec"]["modelID"] += "-changed"
            written = await request(plane, "PUT", f"{path}?dryRun=All", changed)
            if where is NEW:  # the default cost is set where nothing implies one
                changed["spec"].setdefault("variantCost", written["spec"].get("variantCost"))
            assert written["spec"] == {name: it for name, it in changed["spec"].items() if it is not None}
            changed["status"] = item.get("status", {}) | {"actuation": {"applied": False}}
            written = await request(plane, "PUT", f"{path}/status?dryRun=All", changed)
            assert written["status"] == changed["status"]


@pytest.mark.parametrize("era", ERAS)
async def test_objects_of_every_earlier_schema_survive_upgrade_and_downgrade(
    old_plane: ControlPlane, era: str
) -> None:
    """No data is lost, no request fails, no watch breaks; the downgrade restores what was stored before."""
    await asyncio.to_thread(enter, old_plane, era)
    manifests = samples(era)
    before = settled(await fill(old_plane, [*manifests, busy_one(era)]))
    owned = manifests[0] | {"metadata": manifests[0]["metadata"] | {"namespace": NAMESPACE}}
    owned.pop("status", None)
    theirs = f"{OLD.path(NAMESPACE, owned['metadata']['name'])}?fieldManager=their-team"
    await request(old_plane, "PATCH", f"{theirs}&force=true", owned, media_type=APPLY_PATCH)
    owners = settled(await ownership(old_plane))
    people, watcher = Traffic(old_plane, OLD, BUSY), Follower(old_plane, OLD)
    newer_people, newer_watcher = Traffic(old_plane, NEW, BUSY), Follower(old_plane, NEW)

    async with running(watcher):
        async with running(people):
            async with running(newer_watcher):
                up = await stowplan(old_plane, "upgrade", "--apply")
                assert up.returncode == 0, up.stdout
                async with running(newer_people):
                    assert settled(await read(old_plane, OLD)) == before
                    assert settled(await ownership(old_plane)) == owners
                    await request(old_plane, "PATCH", theirs, owned, media_type=APPLY_PATCH)  # no conflict
                    assert settled(await ownership(old_plane)) == owners
                    await write_everywhere(old_plane)
                    applied = await asyncio.to_thread(apply, old_plane, manifests)
                    assert settled(await read(old_plane, OLD)) == before
                    await newer_people.has_called(times=11)
                assert await newer_watcher.has_caught_up()
            back = await stowplan(old_plane, "downgrade", "--to-release", era, "--apply")
            assert back.returncode == 0, back.stdout
            assert "app.kubernetes.io/part-of" not in definition(old_plane)["metadata"].get("labels", {})
            assert settled(await read(old_plane, OLD)) == before
            await asyncio.to_thread(apply_definition, old_plane, era)
            await people.has_called(times=101)
        assert await watcher.has_caught_up()

    assert "is deprecated; use llmd.ai/v1alpha2" in applied.stderr
    assert settled(newer_watcher.objects).keys() == before.keys()
    assert [*people.failures, *newer_people.failures, *watcher.broken, *newer_watcher.broken] == []
    assert people.calls > 100
    assert newer_people.calls > 10
    assert settled(await read(old_plane, OLD)) == before
    assert definition(old_plane)["status"]["storedVersions"] == ["v1alpha1"]


def points(steps: Sequence[str]) -> list[Point]:
    """Return the start and the middle of each step."""
    return [(step, state) for step in steps for state in ("begins", "on its way")]


def amid(kills: Sequence[Point]) -> set[str]:
    """Return the steps that were killed when only some of their objects were done."""
    return {step for step, state in kills if state == "on its way"}


async def test_a_command_that_is_killed_repeatedly_has_the_same_result(
    old_plane: ControlPlane, old_installation: Installation
) -> None:
    """After SIGKILL at the start and in the middle of steps, the objects equal those of pure conversion."""
    await asyncio.to_thread(enter, old_plane, "v0.4.2")
    before = await fill(old_plane, copies(samples("v0.4.2"), 10))
    stored = await items(old_plane, OLD)
    up = ("upgrade", "--apply", "--rate", "7")
    back = ("downgrade", "--to-release", "v0.5.1", "--apply", "--rate", "7")

    kills, finished = await killed(old_plane, *up, points=points(UP))
    assert amid(kills) == {"verify", "rewrite"}
    old_installation.processes["webhooks"].stop()
    stored_anew = await read(old_plane, NEW)  # the stored version, as conversion is down
    old_installation.start_component("webhooks")
    assert finished.returncode == 0, finished.stdout
    assert stored_anew == converted(stored, "--to", "v1alpha2")
    assert await read(old_plane, OLD) == before
    assert definition(old_plane)["status"]["storedVersions"] == ["v1alpha2"]

    kills, finished = await killed(old_plane, *back, points=points(BACK))
    assert amid(kills) == {"rehearse", "restore", "rewrite"}
    assert finished.returncode == 0, finished.stdout
    want = converted(stored, "--to", "v1alpha1", "--shape", "v0.5.1")
    for item in want.values():
        item["spec"] = {"variantCost": "10.0"} | item["spec"]  # the default of that release
    assert await read(old_plane, OLD) == want
    assert definition(old_plane)["status"]["storedVersions"] == ["v1alpha1"]


async def test_a_problem_stops_the_upgrade_before_any_change(
    old_plane: ControlPlane, old_installation: Installation
) -> None:
    """A CRD of another Helm release, or missing webhooks: the exit code is 1, and the CRD is unchanged."""
    await asyncio.to_thread(enter, old_plane, "v0.5.1")
    await fill(old_plane, samples("v0.5.1"))
    old_plane.kubectl("annotate", "crd", CRD, "meta.helm.sh/release-name=wva")
    owned = await stowplan(old_plane, "upgrade", "--apply")
    old_plane.kubectl("annotate", "crd", CRD, "meta.helm.sh/release-name-")
    old_installation.processes["webhooks"].stop()
    down = await stowplan(old_plane, "upgrade", "--apply")
    old_installation.start_component("webhooks")

    assert owned.returncode == down.returncode == 1
    assert "belongs to the Helm release wva" in owned.stdout
    assert "a dry run of a write did not pass our webhooks" in down.stdout
    assert [item["name"] for item in definition(old_plane)["spec"]["versions"]] == ["v1alpha1"]


async def test_the_new_version_is_withdrawn_if_the_conversion_webhook_is_unreachable(
    old_plane: ControlPlane, old_installation: Installation
) -> None:
    """The objects are as before, and the upgrade succeeds once the webhook is reachable."""
    await asyncio.to_thread(enter, old_plane, "v0.5.1")
    before = await fill(old_plane, samples("v0.5.1"))
    service = ("patch", "service", "stowplan-conversion", "--namespace=stowplan-system", "--patch")
    there = old_installation.address("webhooks")
    old_plane.kubectl(*service, json.dumps({"spec": {"externalName": old_plane.allocate_address()}}))
    old_installation.processes["webhooks"].stop()  # ends the connections that the API server keeps
    old_installation.start_component("webhooks")
    stopped = await stowplan(old_plane, "upgrade", "--apply")
    versions = [item["name"] for item in definition(old_plane)["spec"]["versions"]]
    old_plane.kubectl(*service, json.dumps({"spec": {"externalName": there}}))

    assert stopped.returncode == 1
    assert "the version that needs conversion is no longer served" in stopped.stdout
    assert versions == definition(old_plane)["status"]["storedVersions"] == ["v1alpha1"]
    assert await read(old_plane, OLD) == before
    assert (await stowplan(old_plane, "upgrade", "--apply")).returncode == 0


async def test_an_object_that_cannot_be_converted_is_named(old_plane: ControlPlane) -> None:
    """Fields that do not fit into annotations stop the upgrade before anything is stored anew."""
    await asyncio.to_thread(enter, old_plane, "v0.4.2")
    large = copy.deepcopy(samples("v0.4.2")[0])
    large["metadata"]["name"] = "large"
    (entry, *_) = large["spec"]["modelProfile"]["accelerators"]
    large["spec"]["modelProfile"]["accelerators"] = [
        entry | {"acc": f"{number:03}-{'x' * 200}", "maxBatchSize": number + 1} for number in range(800)
    ]
    await fill(old_plane, samples("v0.4.2"), created=[large])
    stopped = await stowplan(old_plane, "upgrade", "--apply", "--output=json")
    report = json.loads(stopped.stdout)

    assert stopped.returncode == 1
    (found,) = (item for item in report["checks"] if item["verdict"] == "problem")
    assert f"{NAMESPACE}/large" in found["message"]
    assert "does not fit into annotations" in found["message"]
    assert [item["name"] for item in definition(old_plane)["spec"]["versions"]] == ["v1alpha1"]


async def test_a_deeply_nested_object_stops_neither_an_upgrade_nor_a_downgrade(
    old_plane: ControlPlane,
) -> None:
    """API servers accept ten thousand levels in the managed fields, and any text in annotations."""
    await asyncio.to_thread(enter, old_plane, "v0.5.1")
    before = await fill(old_plane, samples("v0.5.1"))
    deep = copy.deepcopy(samples("v0.5.1")[0])
    entry = {"manager": "m", "operation": "Update", "apiVersion": OLD.api_version, "fieldsType": "FieldsV1"}
    deep["metadata"] |= {
        "name": "deep",
        "annotations": {"stowplan.dev/written-by": "[" * 5000 + "]" * 5000},
        "managedFields": [entry | {"fieldsV1": "HERE"}],
    }
    with old_plane.client() as client:
        async with without_admission(old_plane):
            body = json.dumps(deep).replace('"HERE"', '{"f:a":' * 1500 + "{}" + "}" * 1500)
            client.call("POST", collection_of(OLD.api_version, OLD.kind, NAMESPACE), body.encode())

        up = await stowplan(old_plane, "upgrade", "--apply")
        back = await stowplan(old_plane, "downgrade", "--to-release", "v0.5.1", "--apply")

    assert up.returncode == 0, up.stdout
    assert back.returncode == 0, back.stdout
    after = await read(old_plane, OLD)
    assert after.pop("deep")["spec"] == before[samples("v0.5.1")[0]["metadata"]["name"]]["spec"]
    assert after == before


async def test_an_object_without_a_spec_can_be_labelled_and_deleted_after_the_upgrade(
    old_plane: ControlPlane,
) -> None:
    """No earlier schema required a spec; the upgrade names the object and succeeds."""
    await asyncio.to_thread(enter, old_plane, "v0.5.1")
    metadata = {"name": "bare", "namespace": NAMESPACE, "finalizers": ["example.com/held"]}
    bare = {"apiVersion": "llmd.ai/v1alpha1", "kind": "VariantAutoscaling", "metadata": metadata}
    await fill(old_plane, samples("v0.5.1"), created=[bare])
    upgraded = await stowplan(old_plane, "upgrade", "--apply")
    where = (f"--namespace={NAMESPACE}", "va", "bare")
    old_plane.kubectl("label", *where, "seen=again")
    old_plane.kubectl("delete", *where, "--wait=false")
    old_plane.kubectl("patch", *where, "--type=merge", '--patch={"metadata": {"finalizers": []}}')

    assert upgraded.returncode == 0, upgraded.stdout
    assert f"{NAMESPACE}/bare has no spec" in upgraded.stdout
    assert "bare" not in await read(old_plane, NEW)
    refused = old_plane.kubectl("create", "--filename=-", input=json.dumps(bare), check=False)
    assert "spec: Required value" in refused.stderr


@pytest.mark.parametrize("path", KTHENA, ids=lambda path: str(path.stem))
def test_an_object_of_kthena_without_a_spec_can_be_labelled_and_deleted(
    old_plane: ControlPlane, path: Path
) -> None:
    """The released CRDs of Kthena did not require a spec, either."""
    ours = yaml.safe_load(path.read_text(encoding="utf-8"))
    name, spec = ours["metadata"]["name"], ours["spec"]
    released = copy.deepcopy(ours)
    del released["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["x-kubernetes-validations"]
    apply = ("apply", "--server-side", "--force-conflicts", "--filename=-")
    old_plane.kubectl(*apply, input=json.dumps(released))
    old_plane.wait_until_established(name)
    metadata = {"name": "bare", "finalizers": ["example.com/held"]}
    api_version = f"{spec['group']}/{spec['versions'][0]['name']}"
    bare = {"apiVersion": api_version, "kind": spec["names"]["kind"], "metadata": metadata}
    old_plane.kubectl("create", "--namespace=default", "--filename=-", input=json.dumps(bare))
    old_plane.kubectl(*apply, input=json.dumps(ours))
    where = ("--namespace=default", name, "bare")
    wait_for(lambda: _is_refused(old_plane, bare | {"metadata": {"name": "other"}}), "our definition")

    old_plane.kubectl("label", *where, "seen=again")
    old_plane.kubectl("delete", *where, "--wait=false")
    old_plane.kubectl("patch", *where, "--type=merge", '--patch={"metadata": {"finalizers": []}}')
    old_plane.kubectl("wait", *where[:1], f"{where[1]}/bare", "--for=delete", "--timeout=60s")
    old_plane.kubectl("delete", f"crd/{name}")


def _is_refused(plane: ControlPlane, value: Manifest) -> bool:
    arguments = ("create", "--dry-run=server", "--namespace=default", "--filename=-")
    return "spec: Required value" in plane.kubectl(*arguments, input=json.dumps(value), check=False).stderr


async def test_the_controller_and_an_upgrade_do_not_conflict(
    old_plane: ControlPlane, old_installation: Installation
) -> None:
    """The controller watches the new version once it is served, and finds its CA bundle in the CRD."""
    await asyncio.to_thread(enter, old_plane, "v0.4.2")
    await fill(old_plane, samples("v0.4.2"))
    owners = await ownership(old_plane)
    old_installation.start_component("controller")
    try:
        assert (await stowplan(old_plane, "upgrade", "--apply")).returncode == 0
        upgraded = definition(old_plane)["metadata"]["resourceVersion"]
        old_plane.kubectl(
            "wait", f"--namespace={NAMESPACE}", "va", "--all", "--for=condition=TargetResolved=False"
        )
        assert definition(old_plane)["metadata"]["resourceVersion"] == upgraded
        refused = await stowplan(old_plane, "downgrade", "--to-release", "v0.4.2", "--apply")
    finally:
        old_installation.processes["controller"].stop()

    assert refused.returncode == 1
    assert "holds the lease stowplan-system/stowplan-controller" in refused.stdout
    assert (await stowplan(old_plane, "downgrade", "--to-release", "v0.4.2", "--apply")).returncode == 0
    assert all("decision" not in (item["status"] or {}) for item in (await read(old_plane, OLD)).values())
    assert {
        name for item in await annotations_of(old_plane) for name in item if "kubectl" not in name
    } == set()
    # With its version: kubectl may have cached another preferred version.
    kind = "variantautoscalings.v1alpha1.llmd.ai"
    old_plane.kubectl("label", f"--namespace={NAMESPACE}", kind, "--all", "seen=again")
    left = await ownership(old_plane)
    assert {name: set(owners[name]) - set(left[name]) for name in owners} == {name: set() for name in owners}
    assert not any("v1alpha2" in entry for entries in left.values() for entry in entries)
