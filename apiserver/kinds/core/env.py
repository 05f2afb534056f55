"""Environment variables of containers, as a Pod declares them.

Rules: `ValidateEnv` and `ValidateEnvFrom` of `k8s.io/kubernetes/pkg/apis/core/validation/validation.go`,
as of 1.36. Bounds on lengths of text are ours where the API server has none.
"""

from __future__ import annotations

from typing import Annotated

from apiserver.kinds.core.envsource import EnvVarSource
from apiserver.kinds.core.names import DnsSubdomain, VariableName
from apiserver.schema.choices import ForbiddenBesideText
from apiserver.schema.declaration import UNSET, Maybe, declaration
from apiserver.schema.markers import Length, Pattern
from apiserver.schema.presence import ExactlyOneOf


@declaration(ForbiddenBesideText("valueFrom", "value"))
class EnvVar:
    """One environment variable."""

    name: VariableName
    """Name of the variable."""

    value: Maybe[Annotated[str, Length(maximum=32768)]] = UNSET
    """Its value. `$(NAME)` stands for the value of a variable above. Without it: empty."""

    value_from: Maybe[EnvVarSource] = UNSET
    """Source of the value, where it is not written here."""


@declaration()
class ConfigMapEnvSource:
    """A ConfigMap in the same namespace whose keys become variables."""

    name: DnsSubdomain
    """Name of the ConfigMap."""

    optional: Maybe[bool] = UNSET
    """Whether the pod starts without the ConfigMap."""


@declaration()
class SecretEnvSource:
    """A Secret in the same namespace whose keys become variables."""

    name: DnsSubdomain
    """Name of the Secret."""

    optional: Maybe[bool] = UNSET
    """Whether the pod starts without the Secret."""


@declaration(ExactlyOneOf(("configMapRef", "secretRef")))
class EnvFromSource:
    """A ConfigMap or a Secret of which each key becomes a variable."""

    prefix: Maybe[
        Annotated[
            str,
            Length(maximum=1024),
            Pattern(r"^[ -<>-~]*$", says="printable ASCII characters other than '='"),
        ]
    ] = UNSET
    """What is put before each key to name the variable."""

    config_map_ref: Maybe[ConfigMapEnvSource] = UNSET
    """The ConfigMap whose keys become variables."""

    secret_ref: Maybe[SecretEnvSource] = UNSET
    """The Secret whose keys become variables."""
