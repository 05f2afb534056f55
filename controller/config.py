"""Configuration of `stowplan controller`."""

from __future__ import annotations

from collections.abc import Sequence
from ipaddress import ip_network
from pathlib import Path
from typing import Annotated, Literal

from apiserver.kinds.core.names import DnsLabel
from apiserver.kinds.settings_names import NamesConfig
from apiserver.schema.declaration import declaration
from apiserver.schema.markers import Items, Length, Range
from apiserver.serving.config import ClusterConfig, ServingConfig
from controller.config_planning import PlanningConfig, planning_problems
from controller.engines.requests import CredentialsConfig
from controller.observe.devices import FurtherAccelerators, resource_problems


@declaration()
class PrometheusConfig:
    """A Prometheus server that already scrapes the engines."""

    url: Annotated[str, Length(maximum=2048)] = ""
    """Base URL, such as `https://prometheus.monitoring:9090`. Empty: the controller scrapes the pods
    itself."""

    credentials: CredentialsConfig = CredentialsConfig()
    """TLS settings and credentials for Prometheus."""

    trusted_jobs: Annotated[tuple[Annotated[str, Length(1, 512)], ...], Items(maximum=64)] = ()
    """Jobs whose series may have the label `namespace` of other pods, with `tenants`: those of exporters that
    no tenant controls. `*` stands for all, for servers whose configuration cannot be read."""


@declaration()
class EnginesConfig:
    """How the pods of inference engines are scraped."""

    port_names: Annotated[tuple[Annotated[str, Length(1, 63)], ...], Items(1, 16)] = ("metrics", "http")
    """Names of the container port that serves `/metrics`, in order of preference."""

    scheme: Literal["http", "https"] = "http"
    """Whether that port uses TLS."""

    credentials: CredentialsConfig = CredentialsConfig()
    """TLS settings and credentials for the pods."""

    pod_networks: Annotated[tuple[Annotated[str, Length(1, 64)], ...], Items(maximum=64)] = ()
    """Networks in which pods may be scraped, in CIDR notation. Empty: all but loopback and link-local."""

    timeout_seconds: Annotated[int, Range(1, 60)] = 2
    """Timeout for one pod, in seconds."""

    limit_bytes: Annotated[int, Range(1 << 10, 1 << 26)] = 2 << 20
    """Maximum size of one pod's response, in bytes."""

    concurrency: Annotated[int, Range(1, 1024)] = 32
    """Maximum number of pods scraped at the same time, half of them in one namespace. As many more may be
    scraped that answered late before."""


@declaration()
class AcceleratorsConfig:
    """Accelerators that planning counts in addition to those that it knows."""

    resources: Annotated[tuple[Annotated[str, Length(1, 317)], ...], Items(maximum=64)] = ()
    """Names of further extended resources that count as accelerators, such as `aws.amazon.com/neuron`. A unit
    of it is one accelerator."""

    node_labels: Annotated[tuple[Annotated[str, Length(1, 317)], ...], Items(maximum=64)] = ()
    """Node labels that name the type of accelerators, in order of preference, for nodes without a label that
    is known."""


@declaration()
class CertificatesConfig:
    """The controller's own certificate authority (CA) for the webhooks and the API."""

    enabled: bool = True
    """Whether to issue certificates and inject the CA. Set false if cert-manager does this."""

    leaf_hours: Annotated[int, Range(1, 8760)] = 720
    """Lifetime of a serving certificate in hours; it is renewed after two thirds of it."""

    authority_hours: Annotated[int, Range(2, 87600)] = 8760
    """Lifetime of the CA in hours. During a rotation the old and the new CA are both trusted."""


@declaration()
class ScalingConfig:
    """How the targets of AutoscalingPolicyBindings are scaled to the decided replicas."""

    mode: Literal["published", "direct"] = "published"
    """What scales the workloads. `published`: HorizontalPodAutoscalers, by the external metric. `direct`: the
    controller writes the scale subresources itself, in every namespace that grants it the permission. Needs
    the permissions of `manifests/scaling`."""

    direct_namespaces: Annotated[tuple[DnsLabel, ...], Items(maximum=1024)] = ()
    """Namespaces in which the mode is always `direct`."""


@declaration()
class ControllerConfig:
    """Configuration of the controller."""

    serving: ServingConfig = ServingConfig()
    """Health, metrics and logs; there is no HTTPS listener."""

    cluster: ClusterConfig = ClusterConfig()
    """Connection to the API server."""

    namespace: Annotated[str, Length(maximum=63)] = ""
    """Namespace of Stowplan itself, with its lease, Secrets and ConfigMaps. Empty: the namespace of the
    pod."""

    prometheus: PrometheusConfig = PrometheusConfig()
    """The source of engine metrics, if the pods are not scraped directly."""

    engines: EnginesConfig = EnginesConfig()
    """How pods are scraped."""

    accelerators: AcceleratorsConfig = AcceleratorsConfig()
    """What counts as an accelerator."""

    planning: PlanningConfig = PlanningConfig()
    """How decisions are made."""

    scaling: ScalingConfig = ScalingConfig()
    """How decisions on AutoscalingPolicyBindings are applied."""

    names: NamesConfig = NamesConfig()
    """Names of the ConfigMaps to read."""

    tenants: bool = False
    """Whether a service class or a cost set in an object counts only if its writer may use it, and costs are
    never below the price list: for clusters whose users don't trust each other (docs/tenancy.md). Needs the
    permissions of `manifests/components/tenants`. Set it for the webhooks, too."""

    annotated: bool = False
    """Whether HorizontalPodAutoscalers and ScaledObjects of KEDA with the annotation
    `llm-d.ai/managed: "true"` are planned like VariantAutoscalings (docs/annotated.md). Needs the permissions
    of `manifests/components/annotated`. Set it for the apiserver, too."""

    certificates: CertificatesConfig = CertificatesConfig()
    """How certificates are issued."""


def config_problems(config: ControllerConfig) -> list[str]:
    """Return the problems that the schema cannot detect."""
    problems = network_problems("engines.podNetworks", config.engines.pod_networks)
    prometheus = config.prometheus
    if prometheus.url and not prometheus.url.startswith(("http://", "https://")):
        problems.append(f"prometheus.url: {prometheus.url!r} must begin with http:// or https://")
    lacks = {
        "prometheus": [] if prometheus.url.startswith("https://") else ["a url with https"],
        "engines": ([] if config.engines.scheme == "https" else ["scheme: https"])
        + ([] if config.engines.pod_networks else ["podNetworks"]),
    }
    problems += credential_problems("prometheus", prometheus.credentials, lacks["prometheus"])
    problems += credential_problems("engines", config.engines.credentials, lacks["engines"])
    return problems + resource_problems(config.accelerators.resources) + planning_problems(config.planning)


def further_accelerators(config: ControllerConfig) -> FurtherAccelerators:
    """Return the declared accelerators as a record."""
    return FurtherAccelerators(
        resources=config.accelerators.resources, node_labels=config.accelerators.node_labels
    )


def network_problems(where: str, texts: Sequence[str]) -> list[str]:
    """Return one problem for each text that is no network in CIDR notation."""
    return [
        f"{where}[{position}]: {text!r} must be a network in CIDR notation: {why}"
        for position, text in enumerate(texts)
        if (why := _network_problem(text))
    ]


def credential_problems(section: str, config: CredentialsConfig, lacks: Sequence[str]) -> list[str]:
    """Return the problems of credentials; `lacks` lists what a token needs there to be sent safely."""
    where = f"{section}.credentials"
    files = {
        "caFile": config.ca_file,
        "certificateFile": config.certificate_file,
        "keyFile": config.key_file,
        "tokenFile": config.token_file,
    }
    problems = [
        f"{where}.{name}: there is no file {path}"
        for name, path in files.items()
        if path and not Path(path).is_file()
    ]
    if config.key_file and not config.certificate_file:
        problems.append(f"{where}.keyFile: requires certificateFile")
    if config.token_file and not config.insecure_token:
        needs = [*lacks, *(["insecureSkipVerify: false"] if config.insecure_skip_verify else [])]
        if needs:
            problems.append(
                f"{where}.tokenFile: requires {' and '.join(needs)}, otherwise others could read the"
                " token; insecureToken: true overrides this"
            )
    return problems


def _network_problem(text: str) -> str:
    try:
        ip_network(text)
    except ValueError as error:
        return str(error)
    return ""
