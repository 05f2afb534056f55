"""Configuration of `stowplan models`."""

from __future__ import annotations

import re
from typing import Annotated, Final, Literal

from apiserver.schema.declaration import declaration
from apiserver.schema.json import Json
from apiserver.schema.markers import Items, Length, Range
from apiserver.serving.config import ClusterConfig, ServingConfig
from controller.models.expansion import S3_IMAGE, ExpansionSettings
from controller.observe.scraping import ScrapeLimits, parse_networks
from controller.reconcilers.model_adapters import PODS_AT_A_TIME

_ASK_SECONDS: Final = 3.0
_LONGEST_PAGE_BYTES: Final = 256 << 10
"""Size in bytes for the 128 adapters of a backend, with a sentence about each."""

_DIGITS: Final = re.compile("[0-9]+")
_FIRST_WITH_TOLERANCE: Final = 33
"""Minor version of Kubernetes; earlier ones reject objects with that field."""


@declaration()
class ModelsConfig:
    """Configuration of the controller of Models."""

    serving: ServingConfig = ServingConfig()
    """Health, metrics and logs; there is no HTTPS listener."""

    cluster: ClusterConfig = ClusterConfig()
    """Connection to the API server."""

    namespace: Annotated[str, Length(maximum=63)] = ""
    """Namespace of Stowplan itself, which contains the lease. Empty: the namespace of the pod."""

    scaling: Literal["autoscalers", "none"] = "autoscalers"
    """What scales the workloads. `autoscalers`: HorizontalPodAutoscalers apply the policies. `none`: the
    controller of bindings scales directly (its `scaling.mode` is `direct`), or something else does."""

    gateways: bool = False
    """Whether ModelRoutes that opt in are translated for Gateways with the Inference Extension. Needs the
    permissions of `manifests/models-gateways`."""

    s3_image: Annotated[str, Length(1, 512)] = S3_IMAGE
    """Image with the AWS command line, which downloads weights from `s3://`."""

    pod_networks: Annotated[tuple[Annotated[str, Length(1, 64)], ...], Items(maximum=64)] = ()
    """Networks in which pods may be queried for the adapters of their engines, in CIDR notation. Empty: all
    but loopback and link-local."""

    workers: Annotated[int, Range(1, 64)] = 4
    """The number of Models that are reconciled concurrently."""


def scrape_limits(config: ModelsConfig) -> ScrapeLimits:
    """Return the limits for querying pods for their adapters: networks, timeout, size and concurrency."""
    return ScrapeLimits(
        port_names=(),
        pod_networks=parse_networks(config.pod_networks),
        timeout_seconds=_ASK_SECONDS,
        limit_bytes=_LONGEST_PAGE_BYTES,
        concurrency=PODS_AT_A_TIME * config.workers,
    )


def expansion_settings(config: ModelsConfig, version: Json) -> ExpansionSettings:
    """Return the settings for expanding Models, under a configuration and a cluster's `/version`."""
    minor = _DIGITS.match(str(version["minor"]))  # some distributions append "+"
    return ExpansionSettings(
        s3_image=config.s3_image,
        has_autoscalers=config.scaling == "autoscalers",
        has_tolerance=minor is None or int(minor[0]) >= _FIRST_WITH_TOLERANCE,
    )
