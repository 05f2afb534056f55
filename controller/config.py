"""What `stowplan controller` can be told."""

from __future__ import annotations

from collections.abc import Sequence
from ipaddress import ip_network
from pathlib import Path
from typing import Annotated, Literal

from apiserver.kinds.core.names import DnsLabel
from apiserver.schema.declaration import declaration
from apiserver.schema.markers import Items, Length, Range
from apiserver.serving.config import ClusterConfig, ServingConfig
from controller.config_planning import PlanningConfig, planning_problems

FileName = Annotated[str, Length(maximum=4096)]
"""Path of a file; empty for none."""


@declaration()
class CredentialsConfig:
    """Whom to trust, and as whom to ask. Files may be replaced while the controller runs."""

    ca_file: FileName = ""
    """Certificates to trust instead of the system's."""

    certificate_file: FileName = ""
    """Client certificate with its chain."""

    key_file: FileName = ""
    """Its key; empty where it stands in the same file."""

    server_name: Annotated[str, Length(maximum=253)] = ""
    """Name that the other side's certificate must be for; empty for the name or address that is asked."""

    insecure_skip_verify: bool = False
    """Whether certificates are not checked: whoever takes over an address can then invent figures."""

    token_file: FileName = ""
    """File with a bearer token. Needs TLS; for engines `podNetworks`, too."""

    insecure_token: bool = False
    """Whether the token may be sent all the same where others can read it."""


@declaration()
class PrometheusConfig:
    """A Prometheus that already scrapes the engines."""

    url: Annotated[str, Length(maximum=2048)] = ""
    """Base address, such as `https://prometheus.monitoring:9090`. Empty: the pods are scraped directly."""

    credentials: CredentialsConfig = CredentialsConfig()
    """How it is asked."""


@declaration()
class EnginesConfig:
    """How the pods of an inference engine are asked for their state."""

    port_names: Annotated[tuple[Annotated[str, Length(1, 63)], ...], Items(1, 16)] = ("metrics", "http")
    """Names of the container port that serves `/metrics`, in order of preference."""

    scheme: Literal["http", "https"] = "http"
    """Whether that port speaks TLS."""

    credentials: CredentialsConfig = CredentialsConfig()
    """How they are asked."""

    pod_networks: Annotated[tuple[Annotated[str, Length(1, 64)], ...], Items(maximum=64)] = ()
    """Networks that pods may be asked in, in CIDR notation. Empty: all but loopback and link-local."""

    timeout_seconds: Annotated[int, Range(1, 60)] = 2
    """Longest wait for one pod."""

    limit_bytes: Annotated[int, Range(1 << 10, 1 << 26)] = 2 << 20
    """Longest answer of one pod that is read."""

    concurrency: Annotated[int, Range(1, 1024)] = 32
    """Most pods asked at a time."""


@declaration()
class NamesConfig:
    """Names of the ConfigMaps with prices and service classes, in the controller's own namespace."""

    unit_costs: Annotated[str, Length(1, 253)] = "accelerator-unit-costs"
    """Cost per hour of one accelerator of each type."""

    service_classes: Annotated[str, Length(1, 253)] = "service-classes-config"
    """Service classes for models whose VariantAutoscalings name none. A class that is named by reference
    may be in any ConfigMap of the namespace."""


@declaration()
class CertificatesConfig:
    """The controller's own authority for webhooks and API, unless another one is in charge."""

    enabled: bool = True
    """Whether to issue certificates and inject their authority; false where cert-manager does."""

    leaf_hours: Annotated[int, Range(1, 8760)] = 720
    """Life of a serving certificate; it is renewed after two thirds."""

    authority_hours: Annotated[int, Range(2, 87600)] = 8760
    """Life of the authority; old and new are trusted side by side while it rotates."""


@declaration()
class ScalingConfig:
    """Who brings the targets of AutoscalingPolicyBindings to the replicas that were decided."""

    mode: Literal["published", "direct"] = "published"
    """`published`: HorizontalPodAutoscalers that read the external metric. `direct`: the controller writes
    the scales itself, in every namespace that gives it the right. Needs the permissions of
    `manifests/scaling`."""

    direct_namespaces: Annotated[tuple[DnsLabel, ...], Items(maximum=1024)] = ()
    """Namespaces in which the mode is `direct` in any case."""


@declaration()
class ControllerConfig:
    """Configuration of the controller."""

    serving: ServingConfig = ServingConfig()
    """Health, metrics and logs; there is no HTTPS listener."""

    cluster: ClusterConfig = ClusterConfig()
    """The API server."""

    namespace: Annotated[str, Length(maximum=63)] = ""
    """Namespace of Stowplan itself: its lease, secrets and ConfigMaps. Empty: that of the pod."""

    prometheus: PrometheusConfig = PrometheusConfig()
    """Where engine metrics come from, if not from the pods."""

    engines: EnginesConfig = EnginesConfig()
    """How pods are asked."""

    planning: PlanningConfig = PlanningConfig()
    """How decisions are taken."""

    scaling: ScalingConfig = ScalingConfig()
    """How decisions on AutoscalingPolicyBindings are carried out."""

    names: NamesConfig = NamesConfig()
    """ConfigMaps that are read."""

    tenants: bool = False
    """Whether a service class or a cost of its own only counts for an object whose writer may use it, and no
    cost is below the price list: for clusters whose users don't trust each other (docs/tenancy.md). Needs the
    permissions of `manifests/components/tenants`. Set it for the webhooks, too."""

    certificates: CertificatesConfig = CertificatesConfig()
    """Who issues certificates."""


def config_problems(config: ControllerConfig) -> list[str]:
    """Return what is wrong with values that only a look beyond the schema can judge."""
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
    return problems + planning_problems(config.planning)


def network_problems(where: str, texts: Sequence[str]) -> list[str]:
    """Return which of some texts are no networks in CIDR notation."""
    return [
        f"{where}.{position}: {text!r} must be a network in CIDR notation: {why}"
        for position, text in enumerate(texts)
        if (why := _network_problem(text))
    ]


def credential_problems(section: str, config: CredentialsConfig, lacks: Sequence[str]) -> list[str]:
    """Return what is wrong with credentials; `lacks` is what keeps a token from being safe there."""
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
