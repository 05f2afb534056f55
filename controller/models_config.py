"""What `stowplan models` can be told."""

from __future__ import annotations

import re
from typing import Annotated, Final, Literal

from apiserver.schema.declaration import declaration
from apiserver.schema.json import Json
from apiserver.schema.markers import Items, Length, Range
from apiserver.serving.config import ClusterConfig, ServingConfig
from controller.models.expansion import S3_IMAGE, ExpansionSettings
from controller.observe.scraping import ScrapeLimits, parse_networks

_ASK_SECONDS: Final = 3.0
_LONGEST_PAGE_BYTES: Final = 256 << 10
"""Room for the 128 adapters of a backend, with a sentence about each."""

_PODS_AT_A_TIME: Final = 32
_DIGITS: Final = re.compile("[0-9]+")
_FIRST_WITH_TOLERANCE: Final = 33
"""Minor version of Kubernetes; an earlier one refuses an object with a field that it does not have."""


@declaration()
class ModelsConfig:
    """Configuration of the controller of Models."""

    serving: ServingConfig = ServingConfig()
    """Health, metrics and logs; there is no HTTPS listener."""

    cluster: ClusterConfig = ClusterConfig()
    """The API server."""

    namespace: Annotated[str, Length(maximum=63)] = ""
    """Namespace of Stowplan itself, where the lease is. Empty: that of the pod."""

    scaling: Literal["autoscalers", "none"] = "autoscalers"
    """`autoscalers`: HorizontalPodAutoscalers act on policies. `none`: the controller of bindings scales by
    itself (its `scaling.mode` is `direct`), or something else does."""

    gateways: bool = False
    """Whether ModelRoutes that opt in are translated for Gateways with the Inference Extension. It takes the
    rights of `manifests/models-gateways`."""

    s3_image: Annotated[str, Length(1, 512)] = S3_IMAGE
    """Image with the AWS command line, which fetches weights from `s3://`."""

    pod_networks: Annotated[tuple[Annotated[str, Length(1, 64)], ...], Items(maximum=64)] = ()
    """Networks that pods may be asked in which adapters their engines have, in CIDR notation. Empty: all but
    loopback and link-local."""

    workers: Annotated[int, Range(1, 64)] = 4
    """How many Models are worked on at a time."""


def scrape_limits(config: ModelsConfig) -> ScrapeLimits:
    """Return where pods may be asked for their adapters, and how much of their time and words is taken."""
    return ScrapeLimits(
        port_names=(),
        pod_networks=parse_networks(config.pod_networks),
        timeout_seconds=_ASK_SECONDS,
        limit_bytes=_LONGEST_PAGE_BYTES,
        concurrency=_PODS_AT_A_TIME,
    )


def expansion_settings(config: ModelsConfig, version: Json) -> ExpansionSettings:
    """Return what Models become under a configuration, in a cluster of this `/version`."""
    minor = _DIGITS.match(str(version["minor"]))  # some append a sign to it
    return ExpansionSettings(
        s3_image=config.s3_image,
        has_autoscalers=config.scaling == "autoscalers",
        has_tolerance=minor is None or int(minor[0]) >= _FIRST_WITH_TOLERANCE,
    )
