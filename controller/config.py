"""What `stowplan controller` can be told."""

from __future__ import annotations

from ipaddress import ip_network
from pathlib import Path
from typing import Annotated

from apiserver.schema.declaration import declaration
from apiserver.schema.markers import Items, Length, Range
from apiserver.serving.config import ClusterConfig, ServingConfig
from controller.config_planning import PlanningConfig, planning_problems


@declaration()
class PrometheusConfig:
    """A Prometheus that already scrapes the engines."""

    url: Annotated[str, Length(maximum=2048)] = ""
    """Base address, such as `https://prometheus.monitoring:9090`. Empty: the pods are scraped directly."""

    ca_file: Annotated[str, Length(maximum=4096)] = ""
    """Certificates to trust beyond the system's."""

    token_file: Annotated[str, Length(maximum=4096)] = ""
    """File with a bearer token, read anew for every query."""


@declaration()
class EnginesConfig:
    """How the pods of an inference engine are asked for their state."""

    port_names: Annotated[tuple[Annotated[str, Length(1, 63)], ...], Items(1, 16)] = ("metrics", "http")
    """Names of the container port that serves `/metrics`, in order of preference."""

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
class ControllerConfig:
    """Configuration of the controller."""

    serving: ServingConfig = ServingConfig()
    """Health, metrics and logs; there is no HTTPS listener."""

    cluster: ClusterConfig = ClusterConfig()
    """The API server."""

    namespace: Annotated[str, Length(1, 63)] = "stowplan-system"
    """Namespace of Stowplan itself: its lease, secrets and ConfigMaps."""

    prometheus: PrometheusConfig = PrometheusConfig()
    """Where engine metrics come from, if not from the pods."""

    engines: EnginesConfig = EnginesConfig()
    """How pods are asked."""

    planning: PlanningConfig = PlanningConfig()
    """How decisions are taken."""

    names: NamesConfig = NamesConfig()
    """ConfigMaps that are read."""

    certificates: CertificatesConfig = CertificatesConfig()
    """Who issues certificates."""


def config_problems(config: ControllerConfig) -> list[str]:
    """Return what is wrong with values that only a look beyond the schema can judge."""
    problems = [
        f"engines.podNetworks.{position}: {text!r} is no network in CIDR notation: {why}"
        for position, text in enumerate(config.engines.pod_networks)
        if (why := _network_problem(text))
    ]
    prometheus = config.prometheus
    if prometheus.url and not prometheus.url.startswith(("http://", "https://")):
        problems.append(f"prometheus.url: {prometheus.url!r} must begin with http:// or https://")
    for name, path in (("caFile", prometheus.ca_file), ("tokenFile", prometheus.token_file)):
        if path and not Path(path).is_file():
            problems.append(f"prometheus.{name}: there is no file {path}")
    return problems + planning_problems(config.planning)


def _network_problem(text: str) -> str:
    try:
        ip_network(text)
    except ValueError as error:
        return str(error)
    return ""
