"""Resource types of the API and their URL paths, and selections of objects of a resource."""

from __future__ import annotations

from dataclasses import dataclass, replace
from urllib.parse import quote

from apiserver.cluster.errors import Invalid

JSON_TYPE = "application/json"


@dataclass(frozen=True, kw_only=True, slots=True)
class Resource:
    """A resource type of one API version, with its path elements and kind."""

    group: str
    """The API group; empty for the core group."""
    version: str
    plural: str
    kind: str
    namespaced: bool = True

    @property
    def api_version(self) -> str:
        """`group/version`, or only the version for the core group."""
        return f"{self.group}/{self.version}" if self.group else self.version

    @property
    def full_name(self) -> str:
        """`plural.group`, as in the name of a definition."""
        return f"{self.plural}.{self.group}"

    def path(
        self, namespace: str | None = None, name: str | None = None, *, subresource: str | None = None
    ) -> str:
        """Return the path of the collection, of one object, or of one of its subresources.

        Without a namespace it is the collection over all namespaces. Raises `Invalid` for a name that would
        change the path, since names come from users' objects, and for a namespaced object without a
        namespace.
        """
        if name is not None and self.namespaced and not namespace:
            raise Invalid(f"a {self.kind} is namespaced: specify the namespace of {name!r}")
        parts = ["apis", self.group, self.version] if self.group else ["api", self.version]
        if self.namespaced and namespace:
            parts += ["namespaces", _segment("namespace", namespace)]
        parts.append(self.plural)
        if name is not None:
            parts.append(_segment("name", name))
        if subresource is not None:
            parts.append(subresource)
        return "/" + "/".join(parts)


def _segment(what: str, value: str) -> str:
    """Return `value` as one path segment, by the API server's rule for names."""
    if value in {"", ".", ".."} or "/" in value or "%" in value:
        raise Invalid(f"{what} {value!r}: must not be empty, '.' or '..', nor contain '/' or '%'")
    return quote(value, safe=":@")


PODS = Resource(group="", version="v1", plural="pods", kind="Pod")
NODES = Resource(group="", version="v1", plural="nodes", kind="Node", namespaced=False)
CONFIG_MAPS = Resource(group="", version="v1", plural="configmaps", kind="ConfigMap")
SECRETS = Resource(group="", version="v1", plural="secrets", kind="Secret")
SERVICES = Resource(group="", version="v1", plural="services", kind="Service")
NAMESPACES = Resource(group="", version="v1", plural="namespaces", kind="Namespace", namespaced=False)
DEPLOYMENTS = Resource(group="apps", version="v1", plural="deployments", kind="Deployment")
STATEFUL_SETS = Resource(group="apps", version="v1", plural="statefulsets", kind="StatefulSet")
DISRUPTION_BUDGETS = Resource(
    group="policy", version="v1", plural="poddisruptionbudgets", kind="PodDisruptionBudget"
)
LEADER_WORKER_SETS = Resource(
    group="leaderworkerset.x-k8s.io", version="v1", plural="leaderworkersets", kind="LeaderWorkerSet"
)
HORIZONTAL_POD_AUTOSCALERS = Resource(
    group="autoscaling", version="v2", plural="horizontalpodautoscalers", kind="HorizontalPodAutoscaler"
)
SCALED_OBJECTS = Resource(group="keda.sh", version="v1alpha1", plural="scaledobjects", kind="ScaledObject")
EVENTS = Resource(group="events.k8s.io", version="v1", plural="events", kind="Event")
LEASES = Resource(group="coordination.k8s.io", version="v1", plural="leases", kind="Lease")
CUSTOM_RESOURCE_DEFINITIONS = Resource(
    group="apiextensions.k8s.io",
    version="v1",
    plural="customresourcedefinitions",
    kind="CustomResourceDefinition",
    namespaced=False,
)
MUTATING_WEBHOOK_CONFIGURATIONS = Resource(
    group="admissionregistration.k8s.io",
    version="v1",
    plural="mutatingwebhookconfigurations",
    kind="MutatingWebhookConfiguration",
    namespaced=False,
)
VALIDATING_WEBHOOK_CONFIGURATIONS = Resource(
    group="admissionregistration.k8s.io",
    version="v1",
    plural="validatingwebhookconfigurations",
    kind="ValidatingWebhookConfiguration",
    namespaced=False,
)
API_SERVICES = Resource(
    group="apiregistration.k8s.io", version="v1", plural="apiservices", kind="APIService", namespaced=False
)
SUBJECT_ACCESS_REVIEWS = Resource(
    group="authorization.k8s.io",
    version="v1",
    plural="subjectaccessreviews",
    kind="SubjectAccessReview",
    namespaced=False,
)
TOKEN_REVIEWS = Resource(
    group="authentication.k8s.io", version="v1", plural="tokenreviews", kind="TokenReview", namespaced=False
)
AUTOSCALING_POLICIES = Resource(
    group="registry.volcano.sh", version="v1alpha1", plural="autoscalingpolicies", kind="AutoscalingPolicy"
)
AUTOSCALING_POLICY_BINDINGS = Resource(
    group="registry.volcano.sh",
    version="v1alpha1",
    plural="autoscalingpolicybindings",
    kind="AutoscalingPolicyBinding",
)
MODELS = Resource(group="registry.volcano.sh", version="v1alpha1", plural="models", kind="Model")
MODEL_SERVERS = Resource(
    group="networking.volcano.sh", version="v1alpha1", plural="modelservers", kind="ModelServer"
)
MODEL_ROUTES = Resource(
    group="networking.volcano.sh", version="v1alpha1", plural="modelroutes", kind="ModelRoute"
)
SERVING_MODEL_SERVERS = replace(MODEL_SERVERS, group="networking.serving.volcano.sh")
SERVING_MODEL_ROUTES = replace(MODEL_ROUTES, group="networking.serving.volcano.sh")
INFERENCE_OBJECTIVES = Resource(
    group="inference.networking.x-k8s.io",
    version="v1alpha2",
    plural="inferenceobjectives",
    kind="InferenceObjective",
)
INFERENCE_POOLS = Resource(
    group="inference.networking.k8s.io", version="v1", plural="inferencepools", kind="InferencePool"
)
FORMER_INFERENCE_POOLS = Resource(
    group="inference.networking.x-k8s.io", version="v1alpha2", plural="inferencepools", kind="InferencePool"
)
MODEL_REWRITES = Resource(
    group="inference.networking.x-k8s.io",
    version="v1alpha2",
    plural="inferencemodelrewrites",
    kind="InferenceModelRewrite",
)
HTTP_ROUTES = Resource(group="gateway.networking.k8s.io", version="v1", plural="httproutes", kind="HTTPRoute")
VARIANT_AUTOSCALINGS = Resource(
    group="llmd.ai", version="v1alpha2", plural="variantautoscalings", kind="VariantAutoscaling"
)


@dataclass(frozen=True, kw_only=True, slots=True)
class Selection:
    """A subset of a resource; all its objects unless a namespace or selector is set."""

    resource: Resource
    namespace: str | None = None
    label_selector: str | None = None
    field_selector: str | None = None
    metadata_only: bool = False
    """Whether to request `PartialObjectMetadata`: `metadata` without spec and status."""

    @property
    def path(self) -> str:
        """The path of the collection."""
        return self.resource.path(self.namespace)

    def query(self) -> dict[str, str]:
        """Return the selectors as query parameters."""
        selectors = {"labelSelector": self.label_selector, "fieldSelector": self.field_selector}
        return {name: value for name, value in selectors.items() if value}

    def accept(self, *, as_list: bool) -> str:
        """Return the `Accept` header; plain JSON is the fallback for servers without partial metadata."""
        if not self.metadata_only:
            return JSON_TYPE
        kind = "PartialObjectMetadataList" if as_list else "PartialObjectMetadata"
        return f"{JSON_TYPE};as={kind};g=meta.k8s.io;v=v1,{JSON_TYPE}"
