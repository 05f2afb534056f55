"""The values of the chart: what each of them changes, which are rejected, and where they are described."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

import pytest
import yaml
from support.command_line import stowplan
from support.helming import Helm, deployments, pod_of, values_of
from support.monitoring import alerts

from hack.packaging.chart import chart_files
from hack.packaging.rendering import MANIFESTS

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

pytestmark = pytest.mark.controlplane

HERE = "stowplan-system"
ON_HOST_NETWORK = "eks-host-network"


def test_processes_on_the_network_of_a_node_have_different_ports(helm: Helm) -> None:
    """Ports of the containers follow the configuration, and names are resolved by the DNS of the cluster."""
    specs = deployments(helm.rendered(values_of(ON_HOST_NETWORK), namespace=HERE).values())
    on_nodes = {name: pod_of(spec) for name, spec in specs.items() if pod_of(spec).get("hostNetwork")}
    ports = [port["containerPort"] for pod in on_nodes.values() for port in pod["containers"][0]["ports"]]

    assert on_nodes.keys() == {"webhooks", "apiserver"}
    assert len({*ports}) == len(ports) == 6
    assert {pod["dnsPolicy"] for pod in on_nodes.values()} == {"ClusterFirstWithHostNet"}
    assert "dnsPolicy" not in pod_of(specs["controller"])


def test_values_of_pods_reach_all_pods_and_leave_selectors_unchanged(helm: Helm) -> None:
    """A user's label cannot replace one that a selector needs."""
    values = values_of("system-nodes") | {"scheduler": {"enabled": True}, "dnsPolicy": "Default"}
    values["podLabels"] = {"team": "platform", "app.kubernetes.io/component": "other"}
    specs = deployments(helm.rendered(values, namespace=HERE).values())
    plain = deployments(helm.rendered({"scheduler": {"enabled": True}}, namespace=HERE).values())

    for name, spec in specs.items():
        metadata, pod = spec["template"]["metadata"], pod_of(spec)
        assert spec["selector"] == plain[name]["selector"]
        assert metadata["labels"].items() >= spec["selector"]["matchLabels"].items()
        assert metadata["labels"].items() >= {"team": "platform", "cost-center": "4711"}.items()
        assert metadata["annotations"] == values["podAnnotations"]
        assert pod["priorityClassName"] == "platform-critical"
        assert pod["dnsPolicy"] == "Default"
        for field in ("nodeSelector", "tolerations", "affinity"):
            assert pod[field] == values[field]
    (spread,) = pod_of(specs["webhooks"])["topologySpreadConstraints"]
    assert spread == values["topologySpreadConstraints"][0] | {
        "labelSelector": plain["webhooks"]["selector"],
        "matchLabelKeys": ["pod-template-hash"],
    }


def test_values_of_a_process_reach_only_its_container(helm: Helm) -> None:
    """They are appended to what the manifests contain."""
    extra = values_of("prometheus-ca-and-token")["controller"]
    values = {
        "controller": extra | {"extraArgs": ["--log-level=debug", "--planning-interval-seconds=5"]},
        "webhooks": {"extraEnv": [{"name": "A", "value": "b"}]},
        "apiserver": {"serviceAccount": {"annotations": {"a": "b"}}},
        "podSecurityContext": {"runAsUser": 1000, "fsGroup": 2000},
    }
    rendered = helm.rendered(values, namespace=HERE)
    plain = deployments(helm.rendered({}, namespace=HERE).values())
    specs = deployments(rendered.values())
    (controller,) = pod_of(specs["controller"])["containers"]
    (before,) = pod_of(plain["controller"])["containers"]

    assert controller["args"] == [*before["args"], *values["controller"]["extraArgs"]]
    assert controller["volumeMounts"] == [*before["volumeMounts"], *extra["extraVolumeMounts"]]
    assert pod_of(specs["controller"])["volumes"][1:] == extra["extraVolumes"]
    for name, spec in specs.items():
        env = pod_of(spec)["containers"][0].get("env", [])
        assert env == (values["webhooks"]["extraEnv"] if name == "webhooks" else [])
        security = pod_of(plain[name])["securityContext"]
        assert pod_of(spec)["securityContext"] == security | values["podSecurityContext"]
    for name in specs:
        account = rendered["ServiceAccount", HERE, f"stowplan-{name}"]["metadata"]
        assert account.get("annotations", {}) == ({"a": "b"} if name == "apiserver" else {})


def test_runbooks_are_below_the_url_of_their_value(helm: Helm) -> None:
    """Without it, they are those of the manifests."""
    base = "https://git.corp.example/stowplan/blob/main/"
    values = {"prometheusRule": {"enabled": True, "runbookURL": base}}
    rule = helm.rendered(values, namespace=HERE)["PrometheusRule", HERE, "stowplan"]
    urls = [item["annotations"]["runbook_url"] for item in rule["spec"]["groups"][0]["rules"]]

    assert urls == [
        item["annotations"]["runbook_url"].replace("https://git.example/stowplan/", base) for item in alerts()
    ]


def test_monitors_rules_and_dashboards_have_the_labels_of_their_values(helm: Helm) -> None:
    """The user's labels are added, and override the default of the dashboard."""
    values = values_of("kube-prometheus-stack")
    values["dashboards"]["labels"] = {"grafana_dashboard": "inference"}
    rendered = helm.rendered(values, namespace=HERE)
    dashboards = rendered["ConfigMap", HERE, "stowplan-dashboards"]["metadata"]

    for kind in ("PodMonitor", "PrometheusRule"):
        assert rendered[kind, HERE, "stowplan"]["metadata"]["labels"]["release"] == "monitoring"
    assert dashboards["labels"]["grafana_dashboard"] == "inference"
    assert dashboards["annotations"] == {"grafana_folder": "Inference"}


def test_prices_and_service_classes_are_written_only_if_they_are_values(helm: Helm) -> None:
    """Each document is a text that the controller reads; without values, the data belongs to someone else."""
    values = values_of("high-availability")
    rendered = helm.rendered(values, namespace=HERE)
    plain = helm.rendered({}, namespace=HERE)

    for value, name in (
        ("acceleratorUnitCosts", "accelerator-unit-costs"),
        ("serviceClasses", "service-classes-config"),
    ):
        texts = rendered["ConfigMap", HERE, name]["data"]
        assert {key: json.loads(text) for key, text in texts.items()} == values[value]
        assert "data" not in plain["ConfigMap", HERE, name]


IMAGES: dict[str, tuple[dict[str, str], str]] = {
    "a tag": ({"repository": "r.example:5000/a/b", "tag": "v1"}, "r.example:5000/a/b:v1"),
    "a digest replaces the tag": (
        {"repository": "r/a", "tag": "v1", "digest": f"sha256:{'a' * 64}"},
        f"r/a@sha256:{'a' * 64}",
    ),
    "neither": ({"repository": "r/a", "tag": ""}, "r/a"),
}


@pytest.mark.parametrize(("image", "reference"), IMAGES.values(), ids=IMAGES)
def test_the_image_is_a_reference_of_its_parts(helm: Helm, image: dict[str, str], reference: str) -> None:
    """All processes have it."""
    specs = deployments(helm.rendered({"image": image}, namespace=HERE).values())

    assert {pod_of(spec)["containers"][0]["image"] for spec in specs.values()} == {reference}


@pytest.mark.parametrize("reference", ["r.example:5000/a/b:v1", f"r.example:5000/a@sha256:{'b' * 64}", "a:1"])
def test_a_release_has_its_image_as_the_default(helm: Helm, reference: str) -> None:
    """The parts of the reference in values.yaml and README.md are joined to the same reference again."""
    files = chart_files(helm.sources, image=reference)
    image = yaml.safe_load(files["values.yaml"])["image"]
    specs = deployments(helm.rendered({"image": image}, namespace=HERE).values())

    assert {pod_of(spec)["containers"][0]["image"] for spec in specs.values()} == {reference}
    assert f"`{json.dumps(image['repository'])}` |" in files["README.md"]


REJECTED: dict[str, tuple[dict[str, Any], str]] = {
    "a directory of the node": (
        {"controller": {"extraVolumes": [{"name": "a", "hostPath": {"path": "/"}}]}},
        "at '/controller/extraVolumes/0': additional properties 'hostPath' not allowed",
    ),
    "a price as a number": (
        {"acceleratorUnitCosts": {"H100": {"cost": 4.2}}},
        "at '/acceleratorUnitCosts/H100/cost': got number, want string",
    ),
    "a service class without a priority": (
        {"serviceClasses": {"premium": {"name": "Premium"}}},
        "at '/serviceClasses/premium': missing property 'priority'",
    ),
    "a selector of one's own": (
        {"topologySpreadConstraints": [{"labelSelector": {}}]},
        "at '/topologySpreadConstraints/0': additional properties 'labelSelector' not allowed",
    ),
    "half a digest": ({"image": {"digest": "sha256:ab"}}, "at '/image/digest'"),
    "arguments in one text": ({"webhooks": {"extraArgs": "--a --b"}}, "at '/webhooks/extraArgs'"),
    "a label that is a number": ({"podLabels": {"a": 1}}, "at '/podLabels/a': got number, want string"),
    "the former place of tolerations": ({"pods": {}}, "at '': additional properties 'pods' not allowed"),
}


@pytest.mark.parametrize(("values", "message"), REJECTED.values(), ids=REJECTED)
def test_values_that_would_have_no_effect_are_rejected(
    helm: Helm, values: dict[str, Any], message: str
) -> None:
    """The error contains the path of the mistake."""
    done = helm.run("template", "release", str(helm.chart), values=values)

    assert done.returncode != 0
    assert message in done.stderr


NOTES: dict[str, tuple[dict[str, Any], list[str]]] = {
    "the defaults": ({}, ["HorizontalPodAutoscalers read decisions", "sets no prices"]),
    "advisory mode": (values_of("advisory"), ["Mode: advisory"]),
    "advisory mode by the configuration": (
        {"controller": {"config": {"planning": {"advisory": True}}}},
        ["Mode: advisory"],
    ),
    "another owner of external metrics": ({"externalMetrics": False}, ["without external.metrics.k8s.io"]),
    "direct scaling": (
        {"scaling": {"enabled": True}, "controller": {"config": {"scaling": {"mode": "direct"}}}},
        ["The controller scales the targets"],
    ),
    "no definition": ({"crds": False}, ["run stowplan upgrade"]),
}


@pytest.mark.parametrize(("values", "sentences"), NOTES.values(), ids=NOTES)
def test_the_notes_name_the_mode_and_the_next_commands(
    helm: Helm, values: dict[str, Any], sentences: list[str]
) -> None:
    """Every command of Stowplan in them exists."""
    options = ("--dry-run=client", "--namespace=inference")
    done = helm.run("install", "release", str(helm.chart), *options, values=values)
    notes = done.stdout.partition("NOTES:\n")[2]

    assert done.returncode == 0, done.stderr
    for sentence in ("installed in the namespace inference", *sentences):
        assert sentence in notes
    verbs = re.findall(r"^  (\w+) ", stowplan("--help").out, re.MULTILINE)
    assert {*re.findall(r"\bstowplan (\w+)", notes)} <= {*verbs}
    assert "kubectl get variantautoscalings --all-namespaces" in notes


def test_the_readme_describes_every_value_with_its_default(helm: Helm) -> None:
    """A value is a member of the schema that values.yaml shows, or a section of such members."""
    rows = re.findall(r"^\| `([\w.]+)` \| (.+) \| `(.*)` \|$", helm.files["README.md"], re.MULTILINE)
    described = {name: json.loads(default) for name, _, default in rows}
    shown = yaml.safe_load(helm.files["values.yaml"])
    schema = json.loads(helm.files["values.schema.json"])
    del schema["properties"]["global"]

    assert len(described) == len(rows)
    assert described == dict(leaves(shown, described))
    assert [*missing(schema, described)] == []


@pytest.mark.parametrize("page", ["installing", "platforms"])
def test_values_named_on_pages_exist(helm: Helm, page: str) -> None:
    """This includes fields of the configuration of a process, and values that are shown as YAML."""
    schema = json.loads(helm.files["values.schema.json"])
    text = (MANIFESTS.parent / "docs" / f"{page}.md").read_text(encoding="utf-8")
    named = set(re.findall(r"`([a-z]\w+(?:\.\w+)*)\b", text))
    paths = [name.split(".") for name in sorted(named) if name.split(".")[0] in schema["properties"]]

    assert len(paths) > 5
    assert [path for path in paths if not declared(schema, path)] == []


def declared(schema: Mapping[str, Any], path: Sequence[str]) -> bool:
    """Tell whether a schema declares the value with a path."""
    for name in path:
        if name not in schema.get("properties", {}):
            return False
        schema = schema["properties"][name]
    return True


def leaves(
    values: Mapping[str, Any], described: Mapping[str, Any], prefix: str = ""
) -> Iterator[tuple[str, Any]]:
    """Yield all values that values.yaml shows, by their paths."""
    for name, value in values.items():
        path = f"{prefix}{name}"
        if any(other.startswith(f"{path}.") for other in described):
            yield from leaves(value, described, f"{path}.")
        else:
            yield path, value


def missing(schema: Mapping[str, Any], described: Mapping[str, Any], prefix: str = "") -> Iterator[str]:
    """Yield the paths of values that the schema declares and the README does not describe."""
    for name, inner in schema["properties"].items():
        path = f"{prefix}{name}"
        if path in described:
            continue
        if "properties" in inner:
            yield from missing(inner, described, f"{path}.")
        else:
            yield path
