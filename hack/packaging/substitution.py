"""Objects of the manifests with template expressions in the place of configurable values."""

from __future__ import annotations

import copy
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from apiserver.kinds.settings_names import NamesConfig
from apiserver.schema.json import Json, JsonValue
from apiserver.schema.model import node_of
from hack.packaging.pod_values import PodSecurityContext
from hack.packaging.rendering import Name
from hack.packaging.templating import Each, Expression
from hack.packaging.values import RUNBOOKS

PROCESSES: Final = ("webhooks", "apiserver", "controller", "models")
_PAGE: Final = "dashboard"
"""The process without a configuration of its own."""

_KEEP: Final = {"helm.sh/resource-policy": "keep"}
_CONFIG_NAME: Final = re.compile(rf"stowplan-({'|'.join(PROCESSES)})-config-\w{{10}}")
_POD_FIELDS: Final = ("priorityClassName", "nodeSelector", "tolerations", "affinity", "imagePullSecrets")
"""Fields of all pods that have the name of their value, and are left out if it is empty."""
_PORTS: Final = {"https": "port", "metrics": "metricsPort", "health": "healthPort"}
"""The setting in `serving` of the port with each name."""
_ON_HOST_NETWORK: Final = ("webhooks", "apiserver")
_SETTINGS: Final = {
    NamesConfig().unit_costs: "acceleratorUnitCosts",
    NamesConfig().service_classes: "serviceClasses",
}
"""The value with the content of each ConfigMap of settings."""
_SECTIONS: Final = {
    ("PodMonitor", "stowplan"): "podMonitor",
    ("PrometheusRule", "stowplan"): "prometheusRule",
    ("ConfigMap", "stowplan-dashboards"): "dashboards",
}
"""Objects whose labels can be set, with the section of values for it."""
_IDS: Final = tuple(prop.name for prop in node_of(PodSecurityContext).properties)


def with_expressions(item: Json) -> Json:
    """Return an object with template expressions in the place of values that it always has."""
    item = _with_config_names(copy.deepcopy(item))
    kind, name = item["kind"], item["metadata"]["name"]
    item["metadata"]["labels"] = labels(item["metadata"].get("labels", {}), _SECTIONS.get((kind, name)))
    if kind == "CustomResourceDefinition":
        item["metadata"].setdefault("annotations", {}).update(_KEEP)
    if kind == "ResourceQuota":
        item["spec"]["hard"]["pods"] = _value("toString (int $.Values.resourceQuota.pods)")
        item["spec"]["scopeSelector"]["matchExpressions"][0]["values"] = [
            _value("$.Values.priorityClassName")
        ]
    if kind == "ConfigMap" and isinstance(name, Expression) and "config.yaml" in item["data"]:
        (process,) = (it for it in PROCESSES if f".{it}." in name.text)
        item["data"]["config.yaml"] = _value(f"toYaml $.Values.{process}.config")
    if kind == "PrometheusRule":
        for rule in (rule for group in item["spec"]["groups"] for rule in group["rules"]):
            page = json.dumps(rule["annotations"]["runbook_url"].removeprefix(RUNBOOKS))
            url = f'printf "%s%s" $.Values.prometheusRule.runbookURL {page}'
            rule["annotations"]["runbook_url"] = _value(url)
    if kind == "Deployment":
        _express_deployment(item["spec"], _process(name))
    return item


def optional_forms(item: Json) -> dict[str, Json]:
    """Return variants of an object by their conditions, each with one field that a value adds or replaces."""
    forms = {}
    for condition, path, value in _optional_fields(item):
        forms[condition] = inside = with_expressions(item)
        for step in path[:-1]:
            inside = inside[step]  # type: ignore[index] # a step into a list is a position
        inside[path[-1]] = value  # type: ignore[index] # the last step is the name of a member
    return forms


def labels(own: Json, section: str | None = None) -> Expression:
    """Return the labels of an object; those of its section of values override its own."""
    mine = f"mergeOverwrite {_literal(own)} $.Values.{section}.labels" if section else _literal(own)
    return _labels(mine, "dict")


def shipped_values(shipped: Mapping[Name, Json], *, image: str = "") -> Json:
    """Return the default values, from the manifests; `image` replaces the reference in them."""

    def pod(name: str) -> Json:
        pod_spec: Json = shipped["Deployment", f"stowplan-{name}"]["spec"]["template"]["spec"]
        return pod_spec

    quota = shipped["ResourceQuota", "stowplan-critical-pods"]["spec"]
    scheduler = pod("scheduler")
    return {
        "image": _image(image or pod("controller")["containers"][0]["image"]),
        **{name: {"resources": pod(name)["containers"][0]["resources"]} for name in PROCESSES},
        "scheduler": {
            "image": _image(scheduler["containers"][0]["image"]),
            "podSecurityContext": _ids(scheduler["securityContext"]),
        },
        "priorityClassName": pod("controller")["priorityClassName"],
        "resourceQuota": {"pods": int(quota["hard"]["pods"])},
    }


def _optional_fields(item: Json) -> Iterator[tuple[str, Sequence[str | int], Expression]]:
    """Yield the condition, path and value of every field that exists only if a value is set."""
    kind, name = item["kind"], item["metadata"]["name"]
    process = _process(name)
    if kind == "ServiceAccount" and process in PROCESSES:
        annotations = f"$.Values.{process}.serviceAccount.annotations"
        yield annotations, ("metadata", "annotations"), _value(annotations)
    if kind == "ConfigMap" and name in _SETTINGS:
        documents = f"$.Values.{_SETTINGS[name]}"
        yield documents, ("data",), Expression(f'include "stowplan.texts" {documents}')
    if _SECTIONS.get((kind, name)) == "dashboards":
        yield (
            "$.Values.dashboards.annotations",
            ("metadata", "annotations"),
            _value("$.Values.dashboards.annotations"),
        )
    if kind == "Deployment":
        yield from _optional_pod_fields(item["spec"], process)


def _optional_pod_fields(spec: Json, process: str) -> Iterator[tuple[str, Sequence[str | int], Expression]]:
    template: Final = ("spec", "template")
    container: Final = (*template, "spec", "containers", 0)
    yield "$.Values.podAnnotations", (*template, "metadata", "annotations"), _value("$.Values.podAnnotations")
    for field in _POD_FIELDS[process == _PAGE :]:  # whose pod is not critical
        yield f"$.Values.{field}", (*template, "spec", field), _value(f"$.Values.{field}")
    has_dns_policy = "$.Values.dnsPolicy"
    if process in _ON_HOST_NETWORK:
        host_network = f"$.Values.{process}.hostNetwork"
        has_dns_policy = f"or $.Values.dnsPolicy {host_network}"
        yield host_network, (*template, "spec", "hostNetwork"), _value(host_network)
    policy = _value('default "ClusterFirstWithHostNet" $.Values.dnsPolicy')
    yield has_dns_policy, (*template, "spec", "dnsPolicy"), policy
    image = "$.Values.image" if process in (*PROCESSES, _PAGE) else f"$.Values.{process}.image"
    yield f"{image}.pullPolicy", (*container, "imagePullPolicy"), _value(f"{image}.pullPolicy")
    if process in PROCESSES:
        environment = f"$.Values.{process}.extraEnv"
        yield environment, (*container, "env"), _value(environment)
        constraints = "$.Values.topologySpreadConstraints"
        selected = f'dict "constraints" {constraints} "labels" {_literal(spec["selector"]["matchLabels"])}'
        spread = Expression(f'include "stowplan.spread" ({selected})')
        yield constraints, (*template, "spec", "topologySpreadConstraints"), spread


def _express_deployment(spec: Json, process: str) -> None:
    template = spec["template"]
    template["metadata"]["labels"] = _labels(_literal(template["metadata"]["labels"]), "$.Values.podLabels")
    pod = template["spec"]
    (container,) = pod["containers"]
    pod.pop("priorityClassName", None)
    security = pod["securityContext"]
    if process == _PAGE:
        pod["securityContext"] = _value(f"mergeOverwrite {_literal(security)} $.Values.podSecurityContext")
        container["image"] = Expression('include "stowplan.image" $.Values.image')
        return
    if process not in PROCESSES:
        container["image"] = Expression('include "stowplan.image" $.Values.scheduler.image')
        rest = {name: value for name, value in security.items() if name not in _IDS}
        ids = "$.Values.scheduler.podSecurityContext"
        pod["securityContext"] = _value(f"mergeOverwrite {_literal(rest)} {ids}")
        return
    values = f"$.Values.{process}"
    spec["replicas"] = _value(f"int {values}.replicas")
    pod["securityContext"] = _value(f"mergeOverwrite {_literal(security)} $.Values.podSecurityContext")
    pod["volumes"].append(Each(f"{values}.extraVolumes"))
    container["image"] = Expression('include "stowplan.image" $.Values.image')
    container["resources"] = _value(f"{values}.resources")
    container["args"].append(Each(f"{values}.extraArgs"))
    container["volumeMounts"].append(Each(f"{values}.extraVolumeMounts"))
    for port in container["ports"]:
        setting = _PORTS[port["name"]]
        configured = f'dig "serving" "{setting}" {port["containerPort"]} {values}.config'
        port["containerPort"] = _value(f"int ({configured})")


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


def _process(name: JsonValue) -> str:
    return name.removeprefix("stowplan-") if isinstance(name, str) else ""


def _image(reference: str) -> Json:
    """Return the parts of a reference; a colon in front of the last slash belongs to a port."""
    name, _, digest = reference.partition("@")
    folder, slash, last = name.rpartition("/")
    last, _, tag = last.partition(":")
    return {"repository": f"{folder}{slash}{last}", "tag": "" if digest else tag, "digest": digest}


def _ids(security: Json) -> Json:
    return {name: value for name, value in security.items() if name in _IDS}


def _labels(own: str, extra: str) -> Expression:
    return Expression(f'include "stowplan.labels" (dict "root" $ "own" ({own}) "extra" ({extra}))')


def _value(text: str) -> Expression:
    return Expression(f"toJson ({text})")


def _literal(value: Json) -> str:
    return f"(fromJson `{json.dumps(value)}`)"
