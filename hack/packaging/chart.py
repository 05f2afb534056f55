"""The Helm chart: kustomize's rendering, with templates for parts and values.

The base is rendered with all parts, and once more with each component that contains patches. Where the two
differ, a template tests for the component. Other objects are conditional on the parts that contain them.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path
from typing import Final

import yaml

from apiserver.schema.json import Json
from apiserver.schema.paths import camel_case
from hack.controlplane.modules import OLDEST_KUBERNETES
from hack.packaging.rendering import COMPONENTS, MANIFESTS, Name, installation, project
from hack.packaging.substitution import labels, optional_forms, shipped_values, with_expressions
from hack.packaging.templating import Expression, template
from hack.packaging.values_files import readme, values_file, values_schema

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
    "fleet-page": "$.Values.fleetPage",
}
"""Folders besides the base, with the values that enable them."""

SECTIONS: Final = {
    f"{COMPONENTS}pod-monitor": "$.Values.podMonitor.enabled",
    f"{COMPONENTS}alerts": "$.Values.prometheusRule.enabled",
    f"{COMPONENTS}dashboards": "$.Values.dashboards.enabled",
}
"""Components with a section of values of their own, with the values that enable them."""

NAMESPACE: Final = "namespace-of-the-release"
_SCALING: Final = "stowplan-controller-scaling"
_GATEWAYS: Final = "stowplan-models-gateways"
_STATIC: Final = Path(__file__).with_name("templates")


def parts() -> tuple[str, ...]:
    """Return all parts of the chart, as folders of `manifests`; those with patches come last."""
    components = (f"{COMPONENTS}{path.name}" for path in (MANIFESTS / COMPONENTS).iterdir())
    return (*OPTIONS, *sorted(components, key=lambda part: (is_patching(part), part)))


def is_patching(part: str) -> bool:
    """Tell whether a part patches objects of other parts."""
    text = (MANIFESTS / part / "kustomization.yaml").read_text(encoding="utf-8")
    return "patches" in yaml.safe_load(text)


def chart_files(sources: Sources, *, image: str = "") -> Mapping[str, str]:
    """Return the text of every file of the chart by its path; `image` replaces the reference in it."""
    templates: dict[str, str] = defaultdict(str)
    values = shipped_values(sources.shipped, image=image)
    for name in sources.shipped:
        templates[f"templates/{name[0].lower()}.yaml"] += sources.template(name)
    return {
        "Chart.yaml": _description(),
        "README.md": readme(values, project()),
        "values.yaml": values_file(values),
        "values.schema.json": values_schema(),
        **{f"templates/{path.name}": path.read_text(encoding="utf-8") for path in sorted(_STATIC.iterdir())},
        **templates,
        "templates/scaling-in-namespaces.yaml": _in_namespaces("scaling", _SCALING, "stowplan-controller"),
        "templates/models-gateways-in-namespaces.yaml": _in_namespaces(
            "modelsGateways", _GATEWAYS, "stowplan-models"
        ),
    }


def switch(part: str) -> str:
    """Return the template expression of the value that enables a part."""
    if value := (OPTIONS | SECTIONS).get(part):
        return value
    return f"$.Values.components.{camel_case(part.removeprefix(COMPONENTS).replace('-', '_'))}"


class Sources:
    """Renderings by kustomize in the namespace NAMESPACE, and templates derived from their differences.

    `base` has no part, and `alone` has the base with each part, by the part.
    """

    def __init__(self, kubectl: Path) -> None:
        patching = [part for part in parts() if is_patching(part)]
        # Components of families contain the same as their variants without definitions.
        adding = [part for part in parts() if part not in patching and not part.endswith("-without-crds")]

        def render(*some: str) -> Mapping[Name, Json]:
            return installation(kubectl, some, namespace=NAMESPACE)

        self.base = render()
        self.alone = {part: render(part) for part in parts()}
        everything = render(*adding)
        added = [objects for part, objects in self.alone.items() if part in patching]
        self.shipped = {name: item for objects in (*added, everything) for name, item in objects.items()}
        self.shipped = {name: self.shipped[name] for name in sorted(self.shipped) if name[0] != "Namespace"}
        self._patched = {part: render(*adding, part) for part in patching}

    def template(self, name: Name) -> str:
        """Return the template of one object, which is rendered if one of its conditions holds."""
        variants = {
            _when(part, name): with_expressions(objects[name])
            for part, objects in self._patched.items()
            if name in objects
        } | optional_forms(self.shipped[name])
        text = "---\n" + _in_namespace(template(with_expressions(self.shipped[name]), variants))
        condition = self._condition(name)
        return f"{{{{- if {condition} }}}}\n{text}{{{{- end }}}}\n" if condition else text

    def _condition(self, name: Name) -> str:
        if name not in self.base:
            switches = [switch(part) for part, objects in self.alone.items() if name in objects]
            return f"or {' '.join(switches)}" if len(switches) > 1 else switches[0]
        return {
            "CustomResourceDefinition": "$.Values.crds",
            "ResourceQuota": "and $.Values.resourceQuota.enabled $.Values.priorityClassName",
        }.get(name[0], "")


def _in_namespace(text: str) -> str:
    """Replace the namespace; a value that consists of it is quoted, since it may look like a number."""
    whole = text.replace(f" {NAMESPACE}\n", " {{ toJson $.Release.Namespace }}\n")
    return whole.replace(NAMESPACE, "{{ $.Release.Namespace }}")


def _when(part: str, name: Name) -> str:
    if part != SINGLE_REPLICA:
        return switch(part)
    return f"eq 1 (int $.Values.{name[1].removeprefix('stowplan-')}.replicas)"


def _in_namespaces(value: str, role: str, account: str) -> str:
    """Return the RoleBindings that `kubectl create rolebinding` would make in every opted-in namespace."""
    binding = {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "RoleBinding",
        "metadata": {"name": role, "namespace": Expression("toJson ."), "labels": labels({})},
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
