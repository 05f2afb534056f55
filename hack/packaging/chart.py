"""The Helm chart: kustomize's rendering, with templates for parts and values.

The base is rendered with all parts, and once more with each component that contains patches. Where the two
differ, a template tests for the component. Other objects are conditional on the parts that contain them.
"""

from __future__ import annotations

import copy
import re
from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path
from typing import Final

import yaml

from apiserver.schema.json import Json, JsonValue
from apiserver.schema.model import node_of
from apiserver.schema.paths import camel_case
from hack.controlplane.modules import OLDEST_KUBERNETES
from hack.packaging.rendering import COMPONENTS, MANIFESTS, Name, installation, project
from hack.packaging.templating import Expression, template
from hack.packaging.values import Pods, values_file, values_schema

PROCESSES: Final = ("webhooks", "apiserver", "controller", "models")
SINGLE_REPLICA: Final = f"{COMPONENTS}single-replica"
"""Replaced by a number of replicas in the chart."""

OPTIONS: Final = {
    "external-metrics": "$.Values.externalMetrics",
    "evictions": "$.Values.evictions",
    "models": "$.Values.models.enabled",
    "objectives": "$.Values.objectives",
    "models-gateways": "$.Values.modelsGateways.enabled",
    "scaling": "$.Values.scaling.enabled",
    "scheduler": "$.Values.scheduler.enabled",
}
"""Folders besides the base, with the values that enable them."""

NAMESPACE: Final = "namespace-of-the-release"
_KEEP: Final = {"helm.sh/resource-policy": "keep"}
_CONFIG_NAME: Final = re.compile(rf"stowplan-({'|'.join(PROCESSES)})-config-\w{{10}}")
_SCALING: Final = "stowplan-controller-scaling"
_GATEWAYS: Final = "stowplan-models-gateways"

_HELPERS: Final = """\
{{/* Name a ConfigMap by its content, as kustomize does: a change rolls the pods. */}}
{{- define "stowplan.config" -}}
{{- $data := dict "config.yaml" (toYaml .config) -}}
{{- $sum := dict "kind" "ConfigMap" "name" "" "data" $data | toJson | sha256sum | trunc 10 -}}
{{- $sum = $sum | replace "0" "g" | replace "1" "h" | replace "3" "k" | replace "a" "m" -}}
{{ .name }}-{{ $sum | replace "e" "t" }}
{{- end }}
"""


def parts() -> tuple[str, ...]:
    """Return all parts of the chart, as folders of `manifests`; those with patches come last."""
    components = (f"{COMPONENTS}{path.name}" for path in (MANIFESTS / COMPONENTS).iterdir())
    return (*OPTIONS, *sorted(components, key=lambda part: (is_patching(part), part)))


def is_patching(part: str) -> bool:
    """Tell whether a part patches objects of other parts."""
    text = (MANIFESTS / part / "kustomization.yaml").read_text(encoding="utf-8")
    return "patches" in yaml.safe_load(text)


def chart_files(sources: Sources) -> Mapping[str, str]:
    """Return the text of every file of the chart by its path."""
    templates: dict[str, str] = defaultdict(str)
    for name in sources.shipped:
        templates[f"templates/{name[0].lower()}.yaml"] += sources.template(name)
    return {
        "Chart.yaml": _description(),
        "values.yaml": values_file(_shipped_values(sources.shipped)),
        "values.schema.json": values_schema(),
        "templates/_helpers.tpl": _HELPERS,
        **templates,
        "templates/scaling-in-namespaces.yaml": _in_namespaces("scaling", _SCALING, "stowplan-controller"),
        "templates/models-gateways-in-namespaces.yaml": _in_namespaces(
            "modelsGateways", _GATEWAYS, "stowplan-models"
        ),
    }


def switch(part: str) -> str:
    """Return the template expression of the value that enables a part."""
    if part in OPTIONS:
        return OPTIONS[part]
    return f"$.Values.components.{camel_case(part.removeprefix(COMPONENTS).replace('-', '_'))}"


class Sources:
    """Renderings by kustomize in the namespace NAMESPACE, and templates derived from their differences.

    `base` has no part, and `alone` has the base with each part, by the part.
    """

    def __init__(self, kubectl: Path) -> None:
        patching = [part for part in parts() if is_patching(part)]
        # Components of families contain the same as their variants without definitions.
        adding = [part for part in parts() if part not in patching and not part.endswith("-without-crds")]

        def rendered(*some: str) -> Mapping[Name, Json]:
            return installation(kubectl, some, namespace=NAMESPACE)

        self.base = rendered()
        self.alone = {part: rendered(part) for part in parts()}
        everything = rendered(*adding)
        added = [objects for part, objects in self.alone.items() if part in patching]
        self.shipped = {name: item for objects in (*added, everything) for name, item in objects.items()}
        self.shipped = {name: self.shipped[name] for name in sorted(self.shipped) if name[0] != "Namespace"}
        self._patched = {part: rendered(*adding, part) for part in patching}

    def template(self, name: Name) -> str:
        """Return the template of one object, which is rendered if one of its conditions holds."""
        variants = {
            _when(part, name): _with_expressions(objects[name])
            for part, objects in self._patched.items()
            if name in objects
        } | _with_every_value(self.shipped[name])
        text = "---\n" + _in_namespace(template(_with_expressions(self.shipped[name]), variants))
        condition = self._condition(name)
        return f"{{{{- if {condition} }}}}\n{text}{{{{- end }}}}\n" if condition else text

    def _condition(self, name: Name) -> str:
        if name not in self.base:
            switches = [switch(part) for part, objects in self.alone.items() if name in objects]
            return f"or {' '.join(switches)}" if len(switches) > 1 else switches[0]
        return {
            "CustomResourceDefinition": "$.Values.crds",
            "ResourceQuota": "$.Values.priorityClass.quota",
        }.get(name[0], "")


def _with_every_value(item: Json) -> dict[str, Json]:
    """Return variants of a Deployment with each value set that its pods have no field for."""
    if item["kind"] != "Deployment":
        return {}
    forms = {}
    for prop in node_of(Pods).properties:
        value = f"$.Values.pods.{prop.name}"
        forms[value] = _with_expressions(item)
        forms[value]["spec"]["template"]["spec"][prop.name] = _value(value)
    return forms


def _in_namespace(text: str) -> str:
    """Replace the namespace; a value that consists of it is quoted, since it may look like a number."""
    whole = text.replace(f" {NAMESPACE}\n", " {{ toJson $.Release.Namespace }}\n")
    return whole.replace(NAMESPACE, "{{ $.Release.Namespace }}")


def _when(part: str, name: Name) -> str:
    if part != SINGLE_REPLICA:
        return switch(part)
    return f"eq 1 (int $.Values.{name[1].removeprefix('stowplan-')}.replicas)"


def _with_expressions(item: Json) -> Json:
    """Return an object with template expressions in the place of configurable values."""
    item = _with_config_names(copy.deepcopy(item))
    kind, name = item["kind"], item["metadata"]["name"]
    if kind == "CustomResourceDefinition":
        item["metadata"].setdefault("annotations", {}).update(_KEEP)
    if kind == "ResourceQuota":
        item["spec"]["hard"]["pods"] = _value("toString (int $.Values.priorityClass.pods)")
        item["spec"]["scopeSelector"]["matchExpressions"][0]["values"] = [
            _value("$.Values.priorityClass.name")
        ]
    if kind == "ConfigMap" and isinstance(name, Expression) and "config.yaml" in item["data"]:
        (process,) = (it for it in PROCESSES if f".{it}." in name.text)
        item["data"]["config.yaml"] = _value(f"toYaml $.Values.{process}.config")
    if kind == "Deployment":
        _express_deployment(item["spec"], name.removeprefix("stowplan-"))
    return item


def _express_deployment(spec: Json, process: str) -> None:
    pod = spec["template"]["spec"]
    (container,) = pod["containers"]
    pod["priorityClassName"] = _value("$.Values.priorityClass.name")
    if process in PROCESSES:
        container["image"] = _value("$.Values.image")
        container["resources"] = _value(f"$.Values.{process}.resources")
        spec["replicas"] = _value(f"int $.Values.{process}.replicas")
    else:
        container["image"] = _value("$.Values.scheduler.image")


def _with_config_names(value: JsonValue) -> JsonValue:
    """Replace the names of the processes' ConfigMaps, which end in a hash of their content."""
    if isinstance(value, dict):
        return {key: _with_config_names(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [_with_config_names(inner) for inner in value]
    if isinstance(value, str) and (match := _CONFIG_NAME.fullmatch(value)):
        names = f'"name" "stowplan-{match[1]}-config" "config" $.Values.{match[1]}.config'
        return _value(f'include "stowplan.config" (dict {names})')
    return value


def _value(text: str) -> Expression:
    return Expression(f"toJson ({text})")


def _shipped_values(shipped: Mapping[Name, Json]) -> Json:
    """Return the default values, from the manifests."""

    def pod(name: str) -> Json:
        pod_spec: Json = shipped["Deployment", f"stowplan-{name}"]["spec"]["template"]["spec"]
        return pod_spec

    quota = shipped["ResourceQuota", "stowplan-critical-pods"]["spec"]
    return {
        "image": pod("controller")["containers"][0]["image"],
        **{name: {"resources": pod(name)["containers"][0]["resources"]} for name in PROCESSES},
        "scheduler": {"image": pod("scheduler")["containers"][0]["image"]},
        "priorityClass": {
            "name": pod("controller")["priorityClassName"],
            "pods": int(quota["hard"]["pods"]),
        },
    }


def _in_namespaces(value: str, role: str, account: str) -> str:
    """Return the RoleBindings that `kubectl create rolebinding` would make in every opted-in namespace."""
    binding = {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "RoleBinding",
        "metadata": {"name": role, "namespace": Expression("toJson .")},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": role},
        "subjects": [
            {
                "kind": "ServiceAccount",
                "name": account,
                "namespace": Expression("toJson $.Release.Namespace"),
            }
        ],
    }
    each = f"{{{{- range $.Values.{value}.namespaces }}}}\n---\n{template(binding, {})}{{{{- end }}}}\n"
    return f"{{{{- if $.Values.{value}.enabled }}}}\n{each}{{{{- end }}}}\n"


def _description() -> str:
    oldest = OLDEST_KUBERNETES.version(OLDEST_KUBERNETES.binaries[0])
    metadata = project()
    chart = {
        "apiVersion": "v2",
        "name": metadata["name"],
        "description": metadata["description"],
        "type": "application",
        "version": metadata["version"],
        "appVersion": metadata["version"],
        "kubeVersion": f">={oldest[: oldest.rindex('.')]}.0-0",
        "keywords": metadata["keywords"],
    }
    return yaml.safe_dump(chart, sort_keys=False, width=110)
