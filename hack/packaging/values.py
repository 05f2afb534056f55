"""The values of the chart: one declaration, from which the commented file and its schema are generated.

Values that the manifests contain have no default here: `values.yaml` takes them from the manifests.
"""

from __future__ import annotations

import json
import textwrap
from collections.abc import Iterator
from typing import Annotated, Final, Literal

import yaml

from apiserver.kinds.core.affinity import Affinity
from apiserver.kinds.core.names import DnsLabel
from apiserver.kinds.core.references import LocalObjectReference
from apiserver.metrics.run import MetricsConfig
from apiserver.schema.declaration import UNSET, Maybe, declaration
from apiserver.schema.editor import DIALECT, settings_schema
from apiserver.schema.json import Json
from apiserver.schema.markers import Items, Length, Range
from apiserver.schema.model import Node, node_of, summary
from controller.config import ControllerConfig
from controller.models.run import ModelsConfig
from webhooks.config import WebhooksConfig

Replicas = Annotated[int, Range(1, 100)]
Text = Annotated[str, Length(1, 1024)]

_COLUMNS: Final = 110
_GLOBAL: Final[Json] = {
    "type": "object",
    "description": "What Helm gives every chart below another one; not used.",
}


@declaration()
class Resources:
    """Requests and limits of a container."""

    requests: Maybe[dict[str, int | str]] = UNSET
    """Resources reserved for it."""

    limits: Maybe[dict[str, int | str]] = UNSET
    """Resources that it may use at most."""


@declaration()
class Webhooks:
    """The webhooks: admission and conversion."""

    replicas: Replicas = 2
    """Number of replicas. With 1, as with the component single-replica, nothing answers while a node is
    drained."""

    resources: Resources
    """Resources of each pod."""

    config: WebhooksConfig = WebhooksConfig()
    """Configuration of the process; its fields are in manifests/reference/config-webhooks.md."""


@declaration()
class Apiserver:
    """The external metrics API."""

    replicas: Replicas = 2
    """See webhooks.replicas."""

    resources: Resources
    """Resources of each pod."""

    config: MetricsConfig = MetricsConfig()
    """Configuration of the process; its fields are in manifests/reference/config-apiserver.md."""


@declaration()
class Controller:
    """The controller: one replica leads, the others are on standby."""

    replicas: Replicas = 2
    """See webhooks.replicas."""

    resources: Resources
    """Resources of each pod. The memory limit covers the solver, which has its own lower limit."""

    config: ControllerConfig = ControllerConfig()
    """Configuration of the process; its fields are in manifests/reference/config-controller.md."""


@declaration()
class Models:
    """The controller of Models (docs/models.md), which requires the kinds of Kthena."""

    enabled: bool = False
    """Whether to run it."""

    replicas: Replicas = 2
    """See webhooks.replicas."""

    resources: Resources
    """Resources of each pod."""

    config: ModelsConfig = ModelsConfig()
    """Configuration of the process; its fields are in manifests/reference/config-models.md."""


@declaration()
class ModelsGateways:
    """Permissions of the controller of Models to translate ModelRoutes for Gateways (docs/gateways.md)."""

    enabled: bool = False
    """Whether to grant it read access and define the role. Set models.config.gateways as well."""

    namespaces: Annotated[tuple[DnsLabel, ...], Items(maximum=1024)] = ()
    """Namespaces in which it gets the role."""


@declaration()
class Components:
    """The components of manifests/components, on or off."""

    advisory: bool = False
    """Publish decisions in statuses, events and metrics only; HorizontalPodAutoscalers get no number."""

    alerts: bool = False
    """Create a PrometheusRule for the Prometheus operator, which must be installed."""

    annotated: bool = False
    """Plan HorizontalPodAutoscalers and ScaledObjects of KEDA with the annotation llm-d.ai/managed
    (docs/annotated.md)."""

    cert_manager: bool = False
    """Use certificates of cert-manager, which must be installed, instead of the controller's own."""

    dashboards: bool = False
    """Create a ConfigMap with a dashboard, which the sidecar of Grafana's chart loads."""

    fail_closed: bool = False
    """Also reject writes of other projects' kinds while no webhook answers."""

    flow_control: bool = False
    """Reserve a share of the API server's capacity for these processes."""

    inference_extension: bool = False
    """Support the kinds of the Gateway API Inference Extension, and install their definitions."""

    inference_extension_without_crds: bool = False
    """The same if another project installs the definitions."""

    kthena: bool = False
    """Support the kinds of Kthena, and install their definitions."""

    kthena_without_crds: bool = False
    """The same if another project installs the definitions."""

    kthena_serving: bool = False
    """Support ModelServers and ModelRoutes of the releases of Kthena, which install the definitions."""

    metrics_service: bool = False
    """Create a Service for the metrics of all processes."""

    network_policies: bool = False
    """Create NetworkPolicies that restrict connections to the pods."""

    pod_monitor: bool = False
    """Create a PodMonitor for the Prometheus operator, which must be installed."""

    tenants: bool = False
    """Check permissions for service classes and costs, for users who don't trust each other
    (docs/tenancy.md)."""


@declaration()
class Scaling:
    """Permissions of the controller to write scales itself (config.scaling)."""

    enabled: bool = False
    """Whether to let it check who may scale, and define the role."""

    namespaces: Annotated[tuple[DnsLabel, ...], Items(maximum=1024)] = ()
    """Namespaces in which it may scale."""


@declaration()
class Scheduler:
    """A second scheduler that packs nodes (docs/scheduler.md)."""

    enabled: bool = False
    """Whether to run it, and to define priorities by size."""

    image: Text
    """Its image, with the minor version of the cluster."""


@declaration()
class PriorityClass:
    """The priority of all pods."""

    name: Text
    """Name of an existing PriorityClass."""

    quota: bool = True
    """Whether to create a ResourceQuota for it. GKE, among others, admits system-cluster-critical outside of
    kube-system only with one."""

    pods: Annotated[int, Range(1, 10_000)]
    """The number of pods that the quota admits."""


@declaration()
class Toleration:
    """A toleration of a taint."""

    key: Maybe[Text] = UNSET
    """Key of the taint. If unset, every key matches with the operator Exists."""

    operator: Maybe[Literal["Equal", "Exists", "Lt", "Gt"]] = UNSET
    """How the value of the taint is compared. Defaults to Equal."""

    value: Maybe[str] = UNSET
    """The value to compare with."""

    effect: Maybe[Literal["NoSchedule", "PreferNoSchedule", "NoExecute"]] = UNSET
    """Effect of the taint. If unset, every effect matches."""

    toleration_seconds: Maybe[int] = UNSET
    """How long the pods stay with the effect NoExecute, in seconds. If unset, they stay forever."""


@declaration()
class Pods:
    """Scheduling constraints and image pull secrets of all pods."""

    node_selector: Maybe[dict[str, str]] = UNSET
    """Labels that the nodes must have."""

    tolerations: Annotated[tuple[Toleration, ...], Items(maximum=64)] = ()
    """Taints that the pods tolerate."""

    affinity: Affinity = Affinity()
    """Node and pod affinity. The pods already spread over nodes by default."""

    image_pull_secrets: Annotated[tuple[LocalObjectReference, ...], Items(maximum=64)] = ()
    """Secrets in the namespace of the release with registry credentials."""


@declaration()
class ChartValues:
    """Values of the chart. All objects are in the namespace of the release."""

    image: Text
    """The image of all Stowplan processes: registry, repository and tag or digest, such as
    registry.example/platform/stowplan@sha256:… (build one with the Dockerfile)."""

    crds: bool = True
    """Whether to install the definition of VariantAutoscaling. It is upgraded with the release, and `helm
    uninstall` keeps it, since all objects would be deleted with it. Set it to false if the cluster has
    VariantAutoscalings of an earlier release (docs/upgrading.md)."""

    external_metrics: bool = True
    """Whether to claim external.metrics.k8s.io, which has one owner per cluster. Helm refuses to install if
    another project, such as KEDA, owns it."""

    webhooks: Webhooks
    apiserver: Apiserver
    controller: Controller
    models: Models
    models_gateways: ModelsGateways
    components: Components

    evictions: bool = False
    """Whether the controller may move running replicas (config.planning.evictions)."""

    objectives: bool = False
    """Whether the controller may read InferenceObjectives and their pools (config.planning.objectives)."""

    scaling: Scaling
    scheduler: Scheduler
    priority_class: PriorityClass
    pods: Pods


def values_file(shipped: Json) -> str:
    """Return `values.yaml`, with a comment above every value. `shipped` has the values without a default."""
    return "\n".join(_lines(node_of(ChartValues), shipped)).lstrip("\n") + "\n"


def values_schema() -> str:
    """Return `values.schema.json`, which rejects undeclared names."""
    schema = settings_schema(ChartValues)
    schema["properties"]["global"] = _GLOBAL
    return json.dumps({"$schema": DIALECT, **schema}, indent=1, ensure_ascii=False) + "\n"


def _lines(node: Node, shipped: Json, pad: str = "") -> Iterator[str]:
    for index, prop in enumerate(node.properties):
        declared = prop.node.declared
        prose = prop.description or (summary(declared) if declared is not None else "")
        if index or not pad:
            yield ""
        yield from textwrap.wrap(prose, _COLUMNS, initial_indent=f"{pad}# ", subsequent_indent=f"{pad}# ")
        if prop.name in shipped and not _is_section(prop.node):
            yield textwrap.indent(yaml.safe_dump({prop.name: shipped[prop.name]}, sort_keys=False), pad)[:-1]
        elif _is_section(prop.node):
            yield f"{pad}{prop.name}:"
            yield from _lines(prop.node, shipped.get(prop.name, {}), f"{pad}  ")
        else:  # unset fields of a configuration have the defaults of the process
            default = prop.default if prop.has_default and declared is None else {}
            yield f"{pad}{prop.name}: {json.dumps(default)}"


def _is_section(node: Node) -> bool:
    return (
        node.declared is not None and node.declared.__module__ == __name__ and node.declared is not Resources
    )
