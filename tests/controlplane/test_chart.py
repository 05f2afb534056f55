"""The Helm chart: the same objects as kustomize, validated values, and reproducible files."""

from __future__ import annotations

import hashlib
import json
import re
import subprocess
import tarfile
from io import BytesIO
from typing import TYPE_CHECKING, Any

import pytest
import yaml
from support.helming import Helm, by_name
from support.kustomizing import CLUSTER_SCOPED
from support.manifests import Manifest

from hack.packaging.chart import (
    NAMESPACE,
    OPTIONS,
    SECTIONS,
    SINGLE_REPLICA,
    Sources,
    chart_files,
    parts,
    switch,
)
from hack.packaging.release import SUMS, release_files
from hack.packaging.rendering import COMPONENTS, MANIFESTS, installation, project
from hack.packaging.substitution import PROCESSES

if TYPE_CHECKING:
    from collections.abc import Mapping

    from hack.packaging.rendering import Name

pytestmark = pytest.mark.controlplane

ELSEWHERE = "inference"
IMAGE = f"registry.example/platform/stowplan@sha256:{'a' * 64}"
BARE = {"externalMetrics": False}
FAMILIES = ("components/kthena", "components/inference-extension")
TOGETHER = {
    f"{COMPONENTS}fail-closed": (*FAMILIES, f"{COMPONENTS}fail-closed"),  # alone it changes nothing
    "models-gateways": ("models", "models-gateways"),  # it grants more to the account of this part
}
LABELS = {
    "app.kubernetes.io/instance": "release",
    "app.kubernetes.io/managed-by": "Helm",
    "app.kubernetes.io/name": "stowplan",
    "app.kubernetes.io/part-of": "stowplan",
    "app.kubernetes.io/version": project()["version"],
    "helm.sh/chart": f"stowplan-{project()['version']}",
}
"""Labels that Helm's objects have in addition."""
ALL = tuple(part for part in parts() if not part.endswith("-without-crds"))


def switched_on(*some: str) -> dict[str, Any]:
    """Return the values that switch the given parts on."""
    values: dict[str, Any] = {"externalMetrics": False}
    for part in some:
        if part == SINGLE_REPLICA:
            for process in PROCESSES:
                values.setdefault(process, {})["replicas"] = 1
            continue
        *above, last = switch(part).removeprefix("$.Values.").split(".")
        inside = values
        for name in above:
            inside = inside.setdefault(name, {})
        inside[last] = True
    return values


def moved(kustomized: Mapping[Name, Manifest]) -> list[Manifest]:
    """Return what kustomize rendered for the chart, in the requested namespace."""
    objects: list[Manifest] = json.loads(json.dumps([*kustomized.values()]).replace(NAMESPACE, ELSEWHERE))
    return objects


def compare(helm: Helm, values: Mapping[str, Any], kustomized: list[dict[str, Any]]) -> None:
    """Check that the chart renders the same objects as kustomize, in the requested namespace."""
    rendered = helm.rendered(values, namespace=ELSEWHERE)
    wanted = by_name(kustomized)
    for objects in (rendered, wanted):
        assert "stowplan-system" not in str(objects)
        assert [it for it in objects if it[1] != ("" if it[0] in CLUSTER_SCOPED else ELSEWHERE)] == []
    # Helm stores the release in its namespace, so the namespace cannot be an object of the release.
    del wanted["Namespace", "", ELSEWHERE]
    assert rendered.keys() == wanted.keys()
    for name, item in wanted.items():
        if name[0] == "CustomResourceDefinition":
            annotations = rendered[name]["metadata"]["annotations"]
            assert annotations.pop("helm.sh/resource-policy") == "keep"
            item["metadata"].setdefault("annotations", {})
        for labelled in (item, item["spec"]["template"]) if name[0] == "Deployment" else (item,):
            labelled["metadata"]["labels"] = LABELS | labelled["metadata"].get("labels", {})
        assert rendered[name] == item


@pytest.mark.parametrize("part", [*parts(), ""], ids=lambda part: part or "the base without options")
def test_every_part_renders_the_same_objects_as_kustomize(helm: Helm, part: str) -> None:
    """Names, labels and content are equal, and both renderings are moved to the same namespace."""
    if some := TOGETHER.get(part):
        kustomized = list(installation(helm.kubectl, some, namespace=ELSEWHERE).values())
    else:
        some = (part,) if part else ()
        kustomized = moved(helm.sources.alone[part] if part else helm.sources.base)
    compare(helm, switched_on(*some), kustomized)


def test_all_parts_together_render_the_same_objects_as_kustomize(helm: Helm) -> None:
    """The image has a digest, and the names of ConfigMaps contain a hash of their settings."""
    config = "config.yaml=planning:\n  advisoryNamespaces: []\n  intervalSeconds: 5"
    generated = {"name": "stowplan-controller-config", "namespace": "stowplan-system", "behavior": "merge"}
    name, _, digest = IMAGE.partition("@")
    kustomized = installation(
        helm.kubectl,
        ALL,
        namespace=ELSEWHERE,
        images=[{"name": "stowplan", "newName": name, "digest": digest}],
        configMapGenerator=[generated | {"literals": [config]}],
    )
    values = switched_on(*ALL) | {"image": {"repository": name, "digest": digest}}
    values["controller"] |= {"config": {"planning": {"intervalSeconds": 5, "advisoryNamespaces": []}}}
    compare(helm, values, list(kustomized.values()))


def test_without_crds_all_other_objects_are_rendered(helm: Helm) -> None:
    """The result equals the overlay without-crds, for clusters that already have VariantAutoscalings."""
    kept = [item for item in moved(helm.sources.base) if item["kind"] != "CustomResourceDefinition"]
    compare(helm, BARE | {"crds": False}, kept)


def test_values_without_an_equivalent_in_kustomize_are_rendered(helm: Helm) -> None:
    """They set resources, the priority class and its quota, and the namespaces to scale in."""
    secrets = [{"name": "registry"}]
    values = switched_on("scaling", "scheduler") | {
        "webhooks": {"resources": {"limits": {"memory": "1Gi"}}, "replicas": 3},
        "priorityClassName": "ours",
        "resourceQuota": {"pods": 40},
        "imagePullSecrets": secrets,
        "global": {"of": "a chart above"},
    }
    values["scaling"]["namespaces"] = ["chat", "123"]
    rendered = helm.rendered(values, namespace=ELSEWHERE)
    deployments = {name[2]: item["spec"] for name, item in rendered.items() if name[0] == "Deployment"}
    (container,) = deployments["stowplan-webhooks"]["template"]["spec"]["containers"]
    quota = rendered["ResourceQuota", ELSEWHERE, "stowplan-critical-pods"]["spec"]

    assert container["resources"] == {
        "limits": {"memory": "1Gi"},
        "requests": {"cpu": "100m", "memory": "96Mi"},
    }
    assert [spec["replicas"] for spec in deployments.values()] == [2, 2, 1, 3]
    assert {spec["template"]["spec"]["priorityClassName"] for spec in deployments.values()} == {"ours"}
    for spec in deployments.values():
        assert spec["template"]["spec"]["imagePullSecrets"] == secrets
    assert quota["hard"] == {"pods": "40"}
    assert quota["scopeSelector"]["matchExpressions"][0]["values"] == ["ours"]
    command = ("rolebinding", "stowplan-controller-scaling", "--clusterrole=stowplan-controller-scaling")
    for namespace in ("chat", "123"):
        binding = rendered["RoleBinding", namespace, "stowplan-controller-scaling"]
        assert binding["metadata"].pop("labels") == LABELS
        assert binding == _created(
            helm, *command, f"--serviceaccount={ELSEWHERE}:stowplan-controller", f"--namespace={namespace}"
        )
    for values in ({"resourceQuota": {"enabled": False}}, {"priorityClassName": ""}):
        without = helm.rendered(BARE | values, namespace=ELSEWHERE)
        assert not [name for name in without if name[0] == "ResourceQuota"]
    assert "priorityClassName" not in str(without)


@pytest.mark.parametrize(
    ("values", "told"),
    {
        "a misspelled value": ({"replica": 3}, "at '': additional properties 'replica' not allowed"),
        "a misspelled component": (
            {"components": {"kthenas": True}},
            "at '/components': additional properties 'kthenas' not allowed",
        ),
        "a misspelled setting of a process": (
            {"controller": {"config": {"planning": {"intervalSecond": 5}}}},
            "at '/controller/config/planning': additional properties 'intervalSecond' not allowed",
        ),
        "a setting outside its bounds": (
            {"apiserver": {"config": {"staleAfterSeconds": 0}}},
            "at '/apiserver/config/staleAfterSeconds': minimum:",
        ),
        "an unknown taint effect": (
            {"tolerations": [{"effect": "NoRun"}]},
            "at '/tolerations/0/effect': value must be one of",
        ),
        "no replicas": ({"webhooks": {"replicas": 0}}, "at '/webhooks/replicas': minimum:"),
        "a string for a boolean": ({"evictions": "yes"}, "at '/evictions': got string, want boolean"),
    }.values(),
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_invalid_values_are_rejected(helm: Helm, values: dict[str, Any], told: str) -> None:
    """The error contains the path of the mistake, and nothing is installed."""
    done = helm.run("template", "release", str(helm.chart), values=values)

    assert done.returncode != 0
    assert told in done.stderr


def test_the_chart_is_complete(helm: Helm) -> None:
    """`helm lint` reports nothing, and every directory of manifests that can be applied has a value."""
    linted = helm.run("lint", "--strict", str(helm.chart))
    elsewhere = {*OPTIONS, *SECTIONS, SINGLE_REPLICA}
    folders = {part.removeprefix(COMPONENTS) for part in parts() if part not in elsewhere}

    assert linted.returncode == 0, linted.stdout
    assert {path.parent.name for path in MANIFESTS.glob("*/kustomization.yaml")} == {"base", *OPTIONS}
    components = json.loads(helm.files["values.schema.json"])["properties"]["components"]["properties"]
    assert {*components} == {re.sub(r"-(.)", lambda match: match[1].upper(), folder) for folder in folders}


def test_two_releases_are_equal_byte_for_byte(helm: Helm) -> None:
    """This includes the YAML files and the chart; their checksums match, and the image is the given one."""
    first, second = (
        release_files(helm.kubectl, chart=chart, image=IMAGE, built_time=1_790_000_000)
        for chart in (chart_files(sources, image=IMAGE) for sources in (helm.sources, Sources(helm.kubectl)))
    )
    sums = (line.split("  ") for line in first[SUMS].decode().splitlines())

    assert first == second
    assert {name: digest for digest, name in sums} == {
        name: hashlib.sha256(content).hexdigest() for name, content in first.items() if name != SUMS
    }
    (chart,) = (content for name, content in first.items() if name.endswith(".tgz"))
    with tarfile.open(fileobj=BytesIO(chart)) as opened:
        packed = opened.extractfile("stowplan/values.yaml")
        assert packed is not None
        image = yaml.load(packed, Loader=yaml.CSafeLoader)["image"]
        assert f"{image['repository']}@{image['digest']}" == IMAGE
    for name in ("install.yaml", "every-kind.yaml", "without-crds.yaml"):
        deployments = [
            item
            for item in yaml.load_all(first[name], Loader=yaml.CSafeLoader)
            if item["kind"] == "Deployment"
        ]
        images = {item["spec"]["template"]["spec"]["containers"][0]["image"] for item in deployments}
        assert images == {IMAGE}


def _created(helm: Helm, *arguments: str) -> dict[str, Any]:
    command = [str(helm.kubectl), "create", *arguments, "--dry-run=client", "--output=json"]
    created: dict[str, Any] = json.loads(
        subprocess.run(command, capture_output=True, text=True, check=True).stdout
    )
    return created
