"""What `stowplan models` can be told."""

from __future__ import annotations

from typing import Annotated, Literal

from apiserver.schema.declaration import declaration
from apiserver.schema.markers import Length, Range
from apiserver.serving.config import ClusterConfig, ServingConfig
from controller.models.expansion import S3_IMAGE, ExpansionSettings


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

    workers: Annotated[int, Range(1, 64)] = 4
    """How many Models are worked on at a time."""


def expansion_settings(config: ModelsConfig) -> ExpansionSettings:
    """Return what Models become under a configuration."""
    return ExpansionSettings(s3_image=config.s3_image, has_autoscalers=config.scaling == "autoscalers")
