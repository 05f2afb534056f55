"""Environment variables of containers, as in the Pod API.

Rules: `ValidateEnv` and `ValidateEnvFrom` of `k8s.io/kubernetes/pkg/apis/core/validation/validation.go`, as
of 1.36. Length limits are ours where the API server has none.
"""

from __future__ import annotations

from typing import Annotated

from apiserver.kinds.core.envsource import EnvVarSource
from apiserver.kinds.core.names import DnsSubdomain, VariableName
from apiserver.schema.declaration import UNSET, Maybe, declaration
from apiserver.schema.errors import FORBIDDEN
from apiserver.schema.markers import Length, Pattern
from apiserver.schema.rules import Cel, ExactlyOneOf


@declaration(
    Cel(
        "!has(self.valueFrom) || !has(self.value) || size(self.value) == 0",
        lambda variable: "valueFrom" not in variable or not variable.get("value"),
        "may not be set when `value` is not empty",
        sentence="`valueFrom` may not be set when `value` is not empty.",
        field="valueFrom",
        reason=FORBIDDEN,
    )
)
class EnvVar:
    """An environment variable of a container."""

    name: VariableName
    """The name of the variable."""

    value: Maybe[Annotated[str, Length(maximum=32768)]] = UNSET
    """The value of the variable. References of the form `$(NAME)` are expanded with the variables declared
    before it. Defaults to the empty string."""

    value_from: Maybe[EnvVarSource] = UNSET
    """The source of the value. May not be set if `value` is not empty."""


@declaration()
class ConfigMapEnvSource:
    """A ConfigMap in the same namespace whose keys become variables."""

    name: DnsSubdomain
    """The name of the ConfigMap."""

    optional: Maybe[bool] = UNSET
    """Whether the ConfigMap may be missing."""


@declaration()
class SecretEnvSource:
    """A Secret in the same namespace whose keys become variables."""

    name: DnsSubdomain
    """The name of the Secret."""

    optional: Maybe[bool] = UNSET
    """Whether the Secret may be missing."""


@declaration(ExactlyOneOf(("configMapRef", "secretRef")))
class EnvFromSource:
    """A ConfigMap or a Secret whose keys become variables."""

    prefix: Maybe[
        Annotated[
            str,
            Length(maximum=1024),
            Pattern(r"^[ -<>-~]*$", says="printable ASCII characters other than '='"),
        ]
    ] = UNSET
    """The text that is prepended to each key to form the name of the variable."""

    config_map_ref: Maybe[ConfigMapEnvSource] = UNSET
    """The ConfigMap whose keys become variables."""

    secret_ref: Maybe[SecretEnvSource] = UNSET
    """The Secret whose keys become variables."""
