"""The values of the chart: one declaration, from which `values.yaml`, its schema and README are generated.

Values that the manifests contain have no default here: `values.yaml` takes them from the manifests.
"""

from __future__ import annotations

from typing import Annotated, Literal

from apiserver.kinds.core.affinity import Affinity
from apiserver.kinds.core.containers import EnvVar
from apiserver.kinds.core.names import DnsLabel, DnsSubdomainOrEmpty
from apiserver.kinds.meta import LocalObjectReference
from apiserver.kinds.settings import PriceDocument, ServiceClassDocument
from apiserver.metrics.run import MetricsConfig
from apiserver.schema.declaration import UNSET, Maybe, declaration
from apiserver.schema.markers import Items, Length, Pattern, Range
from controller.config import ControllerConfig
from controller.models.run import ModelsConfig
from hack.packaging.pod_values import (
    Image,
    PodSecurityContext,
    Resources,
    Text,
    Toleration,
    TopologySpreadConstraint,
    Volume,
    VolumeMount,
)
from webhooks.config import WebhooksConfig

Replicas = Annotated[int, Range(1, 100)]
RUNBOOKS = "https://git.example/stowplan/"
"""The URL below which the manifests name runbooks: a placeholder, since this project publishes no site."""

Labels = Maybe[dict[str, str]]


@declaration()
class ServiceAccount:
    """The service account of a process. Its name is fixed: admission policies restrict it by name."""

    annotations: Labels = UNSET
    """Annotations of the service account, such as eks.amazonaws.com/role-arn."""


@declaration()
class Process:
    """What all processes have."""

    replicas: Replicas = 2
    """Number of replicas. With 1, as with the component single-replica, nothing answers while a node is
    drained."""

    resources: Resources
    """Resources of each pod."""

    extra_args: Annotated[tuple[Text, ...], Items(maximum=256)] = ()
    """Further arguments, such as --log-level=debug. They override the configuration. Ports must be set in
    the configuration instead."""

    extra_env: Annotated[tuple[EnvVar, ...], Items(maximum=256)] = ()
    """Environment variables of the container."""

    extra_volumes: Annotated[tuple[Volume, ...], Items(maximum=64)] = ()
    """Further volumes of the pods. hostPath and other types that the Pod Security Standard `restricted`
    forbids are not accepted."""

    extra_volume_mounts: Annotated[tuple[VolumeMount, ...], Items(maximum=64)] = ()
    """Where these volumes are mounted in the container."""

    service_account: ServiceAccount


@declaration(extends=Process)
class Controller:
    """The controller: one replica leads, the others are on standby."""

    config: ControllerConfig = ControllerConfig()
    """Configuration of the process, such as prometheus.url; its fields are in
    manifests/reference/config-controller.md."""


@declaration(extends=Process)
class Webhooks:
    """The webhooks: admission and conversion."""

    host_network: bool = False
    """Whether the pods use the network of the node, for clusters whose control plane cannot reach pods
    (docs/platforms.md). On a node, the ports of config.serving must then be free."""

    config: WebhooksConfig = WebhooksConfig()
    """Configuration of the process; its fields are in manifests/reference/config-webhooks.md. The container
    ports are those of config.serving."""


@declaration(extends=Process)
class Apiserver:
    """The external metrics API."""

    host_network: bool = False
    """See webhooks.hostNetwork. If both are true, set other ports here."""

    config: MetricsConfig = MetricsConfig()
    """Configuration of the process; its fields are in manifests/reference/config-apiserver.md."""


@declaration(extends=Process)
class Models:
    """The controller of Models (docs/models.md), which requires the kinds of Kthena."""

    enabled: bool = False
    """Whether to run it."""

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

    annotated: bool = False
    """Plan HorizontalPodAutoscalers and ScaledObjects of KEDA with the annotation llm-d.ai/managed
    (docs/annotated.md)."""

    cert_manager: bool = False
    """Use certificates of cert-manager, which must be installed, instead of the controller's own."""

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

    image: Image
    """Its image; set the tag to a release with the minor version of the cluster."""

    pod_security_context: PodSecurityContext
    """User, because the image has none. Where the platform assigns it, as OpenShift does, set it to null."""


@declaration()
class PodMonitor:
    """A PodMonitor of all processes for the Prometheus operator, which must be installed."""

    enabled: bool = False
    """Whether to create it."""

    labels: Labels = UNSET
    """Labels that the Prometheus selects, such as release with kube-prometheus-stack."""


@declaration()
class PrometheusRule:
    """A PrometheusRule with alerts for the Prometheus operator, which must be installed (docs/metrics.md)."""

    enabled: bool = False
    """Whether to create it."""

    labels: Labels = UNSET
    """Labels that the Prometheus selects, such as release with kube-prometheus-stack."""

    runbook_url: Annotated[
        str, Length(maximum=2048), Pattern(r"^https?://.*/$", says="an http or https URL that ends in /")
    ] = RUNBOOKS
    """URL at which your users read the files of this project, such as docs/troubleshooting.md; alerts link to
    them."""


@declaration()
class Dashboards:
    """A ConfigMap with a dashboard, which the sidecar of Grafana's chart loads."""

    enabled: bool = False
    """Whether to create it."""

    labels: Labels = UNSET
    """Labels that the sidecar selects, if it is not grafana_dashboard: "1"."""

    annotations: Labels = UNSET
    """Annotations, such as grafana_folder."""


@declaration()
class ResourceQuota:
    """A ResourceQuota for the priority class."""

    enabled: bool = True
    """Whether to create it. GKE, among others, admits system-cluster-critical outside of kube-system only
    with one."""

    pods: Annotated[int, Range(1, 10_000)]
    """The number of pods that it admits."""


@declaration()
class ChartValues:
    """Values of the chart. All objects are in the namespace of the release."""

    image: Image
    """The image of all processes of Stowplan. Build one with the Dockerfile."""

    image_pull_secrets: Annotated[tuple[LocalObjectReference, ...], Items(maximum=64)] = ()
    """Secrets in the namespace of the release with registry credentials."""

    crds: bool = True
    """Whether to install the definition of VariantAutoscaling. It is upgraded with the release, and `helm
    uninstall` keeps it, since all objects would be deleted with it. Set it to false if the cluster has
    VariantAutoscalings of an earlier release (docs/upgrading.md)."""

    external_metrics: bool = True
    """Whether to claim external.metrics.k8s.io, which has one owner per cluster. Helm refuses to install if
    another project, such as KEDA, owns it."""

    accelerator_unit_costs: Maybe[dict[str, PriceDocument]] = UNSET
    """Price of one accelerator per hour, by type, such as H100: {cost: "4.20"} (docs/settings.md). If empty,
    the ConfigMap is created without data, and prices that are written to it by other means stay."""

    service_classes: Maybe[dict[str, ServiceClassDocument]] = UNSET
    """Service classes by key (docs/settings.md), each with name, priority and data: [{model, slo-ttft,
    slo-tpot}]. If empty, the same applies as to prices."""

    controller: Controller
    webhooks: Webhooks
    apiserver: Apiserver
    models: Models
    models_gateways: ModelsGateways
    components: Components
    pod_monitor: PodMonitor
    prometheus_rule: PrometheusRule
    dashboards: Dashboards

    evictions: bool = False
    """Whether the controller may move running replicas (config.planning.evictions)."""

    objectives: bool = False
    """Whether the controller may read InferenceObjectives and their pools (config.planning.objectives)."""

    fleet_page: bool = False
    """Whether to run the page about the fleet in the cluster (docs/fleet.md)."""

    scaling: Scaling
    scheduler: Scheduler

    common_labels: Labels = UNSET
    """Labels of all objects and pods. They do not change selectors."""

    pod_labels: Labels = UNSET
    """Labels of all pods."""

    pod_annotations: Labels = UNSET
    """Annotations of all pods."""

    pod_security_context: PodSecurityContext
    """User and group of files of all pods. By default, the user is that of the image (65532), or the one that
    the platform assigns."""

    priority_class_name: DnsSubdomainOrEmpty
    """Name of an existing PriorityClass for all pods; empty for none."""

    resource_quota: ResourceQuota

    node_selector: Labels = UNSET
    """Labels that the nodes of all pods must have."""

    tolerations: Annotated[tuple[Toleration, ...], Items(maximum=64)] = ()
    """Taints that the pods tolerate."""

    affinity: Affinity = Affinity()
    """Node and pod affinity of all pods."""

    topology_spread_constraints: Annotated[tuple[TopologySpreadConstraint, ...], Items(maximum=16)] = ()
    """How the replicas of each process are spread. If empty, two of them share a node only if no other node
    accepts them. With one replica, there are none."""

    dns_policy: Literal["", "ClusterFirst", "ClusterFirstWithHostNet", "Default"] = ""
    """DNS policy of all pods. If empty, the default of Kubernetes, and ClusterFirstWithHostNet on the
    network of the node."""
