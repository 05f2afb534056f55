"""The values of the chart: one declaration, and the file with its comments and the schema read off it.

What the manifests say already has no default here: `values.yaml` gets it from them.
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
from apiserver.metrics.config import MetricsConfig
from apiserver.schema.declaration import UNSET, Maybe, declaration
from apiserver.schema.descriptions import summary
from apiserver.schema.editor import DIALECT, settings_schema
from apiserver.schema.json import Json
from apiserver.schema.markers import Items, Length, Range
from apiserver.schema.model import Node, node_of
from controller.config import ControllerConfig
from controller.models_config import ModelsConfig
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
    """What is kept free for it."""

    limits: Maybe[dict[str, int | str]] = UNSET
    """What it may use at most."""


@declaration()
class Webhooks:
    """The webhooks: admission and conversion."""

    replicas: Replicas = 2
    """With 1, as with the component single-replica, nothing answers while a node is drained."""

    resources: Resources
    """Of each pod."""

    config: WebhooksConfig = WebhooksConfig()
    """Configuration of the process, by the fields of manifests/reference/config-webhooks.md."""


@declaration()
class Apiserver:
    """The external metrics API."""

    replicas: Replicas = 2
    """See webhooks.replicas."""

    resources: Resources
    """Of each pod."""

    config: MetricsConfig = MetricsConfig()
    """Configuration of the process, by the fields of manifests/reference/config-apiserver.md."""


@declaration()
class Controller:
    """The controller: one replica decides, the others stand by."""

    replicas: Replicas = 2
    """See webhooks.replicas."""

    resources: Resources
    """Of each pod. The limit of memory holds the solver's, which has a limit of its own below it."""

    config: ControllerConfig = ControllerConfig()
    """Configuration of the process, by the fields of manifests/reference/config-controller.md."""


@declaration()
class Models:
    """The controller of Models (docs/models.md), which needs the kinds of Kthena."""

    enabled: bool = False
    """Run it."""

    replicas: Replicas = 2
    """See webhooks.replicas."""

    resources: Resources
    """Of each pod."""

    config: ModelsConfig = ModelsConfig()
    """Configuration of the process, by the fields of manifests/reference/config-models.md."""


@declaration()
class ModelsGateways:
    """The right of the controller of Models to translate ModelRoutes for Gateways (docs/gateways.md)."""

    enabled: bool = False
    """Let it read what it needs, and define the role. Set models.config.gateways as well."""

    namespaces: Annotated[tuple[DnsLabel, ...], Items(maximum=1024)] = ()
    """Namespaces that give it the right."""


@declaration()
class Components:
    """The components of manifests/components, on or off."""

    advisory: bool = False
    """Decisions are told in statuses, events and metrics, and HorizontalPodAutoscalers get no number."""

    cert_manager: bool = False
    """Certificates by cert-manager, which must be installed, instead of the controller's own."""

    fail_closed: bool = False
    """Refuse writes of the kinds of other projects, too, while no webhook answers."""

    flow_control: bool = False
    """A share of the API server for these processes."""

    inference_extension: bool = False
    """The kinds of the Gateway API Inference Extension, with their definitions."""

    inference_extension_without_crds: bool = False
    """The same where another project installs the definitions."""

    kthena: bool = False
    """The kinds of Kthena, with their definitions."""

    kthena_without_crds: bool = False
    """The same where another project installs the definitions."""

    metrics_service: bool = False
    """A Service for the metrics of all processes."""

    network_policies: bool = False
    """Who may connect to the pods."""

    pod_monitor: bool = False
    """A PodMonitor for the Prometheus operator, which must be installed."""

    tenants: bool = False
    """Service classes and costs by right, for users who don't trust each other (docs/tenancy.md)."""


@declaration()
class Scaling:
    """The right of the controller to write scales itself (config.scaling)."""

    enabled: bool = False
    """Let it ask who may scale, and define the role."""

    namespaces: Annotated[tuple[DnsLabel, ...], Items(maximum=1024)] = ()
    """Namespaces that give it the right to scale."""


@declaration()
class Scheduler:
    """A second scheduler that packs nodes (docs/scheduler.md)."""

    enabled: bool = False
    """Run it, and define priorities by size."""

    image: Text
    """Its image, of the minor version of the cluster."""


@declaration()
class PriorityClass:
    """The priority of all pods."""

    name: Text
    """An existing PriorityClass."""

    quota: bool = True
    """Bring a ResourceQuota for it: GKE, among others, admits system-cluster-critical outside of kube-system
    only with one."""

    pods: Annotated[int, Range(1, 10_000)]
    """How many pods the quota admits."""


@declaration()
class Toleration:
    """A taint of nodes that does not keep the pods away."""

    key: Maybe[Text] = UNSET
    """Key of the taint; without one, every key with the operator Exists."""

    operator: Maybe[Literal["Equal", "Exists", "Lt", "Gt"]] = UNSET
    """How the value of the taint is compared; Equal without one."""

    value: Maybe[str] = UNSET
    """The value that is compared with."""

    effect: Maybe[Literal["NoSchedule", "PreferNoSchedule", "NoExecute"]] = UNSET
    """Effect of the taint; every one without it."""

    toleration_seconds: Maybe[int] = UNSET
    """How long the pods stay, with the effect NoExecute; for ever without it."""


@declaration()
class Pods:
    """Where all pods run, and how their images are pulled."""

    node_selector: Maybe[dict[str, str]] = UNSET
    """Labels of the nodes."""

    tolerations: Annotated[tuple[Toleration, ...], Items(maximum=64)] = ()
    """Taints of nodes that do not keep them away."""

    affinity: Affinity = Affinity()
    """Nodes and pods that they must or should be near or away from. Spread over nodes they are already."""

    image_pull_secrets: Annotated[tuple[LocalObjectReference, ...], Items(maximum=64)] = ()
    """Secrets in the namespace of the release with the credentials of the registry."""


@declaration()
class ChartValues:
    """Values of the chart. All objects are in the namespace of the release."""

    image: Text
    """The image of all processes of Stowplan: registry, repository and tag or digest, such as
    registry.example/platform/stowplan@sha256:… (build one with the Dockerfile)."""

    crds: bool = True
    """The definition of VariantAutoscaling. It is upgraded with the release, and `helm uninstall` leaves it,
    since all objects would go with it. Set it to false where VariantAutoscalings of an earlier release are
    (docs/upgrading.md)."""

    external_metrics: bool = True
    """Claim external.metrics.k8s.io, which has one owner in a cluster. Helm refuses to install where another
    one, such as KEDA, has it."""

    webhooks: Webhooks
    apiserver: Apiserver
    controller: Controller
    models: Models
    models_gateways: ModelsGateways
    components: Components

    evictions: bool = False
    """Let the controller move replicas that run (config.planning.evictions)."""

    objectives: bool = False
    """Let the controller read InferenceObjectives and their pools (config.planning.objectives)."""

    scaling: Scaling
    scheduler: Scheduler
    priority_class: PriorityClass
    pods: Pods


def values_file(shipped: Json) -> str:
    """Return `values.yaml`: every value below what it means. `shipped` holds those without a default."""
    return "\n".join(_lines(node_of(ChartValues), shipped)).lstrip("\n") + "\n"


def values_schema() -> str:
    """Return `values.schema.json`, which refuses every name that is not declared."""
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
        else:  # what a configuration leaves out has the defaults of the process
            default = prop.default if prop.has_default and declared is None else {}
            yield f"{pad}{prop.name}: {json.dumps(default)}"


def _is_section(node: Node) -> bool:
    return (
        node.declared is not None and node.declared.__module__ == __name__ and node.declared is not Resources
    )
