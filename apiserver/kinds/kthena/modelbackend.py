"""The backends of a Model, each with the workers that make up one replica.

A backend is one way to run the Model, scaled on its own or by cost along with the others.

Decisions where the reference page does not specify the behavior:

- Types without separate prefill and decode take one worker of type server. The others take workers for each
  part, with at least one of each.
- A LoRA adapter is identified by its name.

Limits on counts and on the length of text are ours where the page has none.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Final, Literal

from apiserver.kinds.core.affinity import Affinity
from apiserver.kinds.core.containers import EnvFromSource, EnvVar, ResourceRequirements
from apiserver.kinds.core.names import LABEL_PATTERN, LABEL_SAYS
from apiserver.kinds.kthena.autoscalingpolicy import AutoscalingPolicySpec, HalfHour
from apiserver.kinds.meta import Int32
from apiserver.schema.declaration import UNSET, Maybe, declaration
from apiserver.schema.errors import REQUIRED, FieldError, required
from apiserver.schema.json import Json, JsonValue
from apiserver.schema.markers import Items, Length, MapKeys, Pattern, Range
from apiserver.schema.paths import FieldPath
from apiserver.schema.rules import Cel, CelRule, EachItem, Immutable, LessOrEqual, ValidationRule, When

Count = Annotated[Int32, Range(0, 1000000)]
"""A count of replicas or pods, which may be 0."""

_WHITESPACE: Final = frozenset(" \t\n\f\r")
"""The whitespace of `\\s` in RE2, which the API server uses."""

Image = Annotated[
    str,
    Length(maximum=512),
    Cel(
        r"!self.matches('\\s')",  # the API server's cost estimate grows with its length
        _WHITESPACE.isdisjoint,
        "must not contain whitespace",
        sentence="Without whitespace.",
    ),
]


@declaration()
class ModelWorker:
    """A type of worker: what it runs, its resources, and its count in one replica of the backend."""

    type: Literal["server", "prefill", "decode", "controller", "coordinator"] = "server"
    """The role of the worker. `server` does all the work. `prefill` and `decode` each do one part of it in a
    disaggregated backend. `controller` and `coordinator` manage these parts for MindIE. The type of the
    backend determines which roles are allowed."""

    image: Maybe[Image] = UNSET
    """The container image of the engine. A worker without an image cannot run."""

    replicas: Maybe[Count] = UNSET
    """The number of these workers in one replica of the backend. Defaults to 1. With 0 the backend cannot
    serve."""

    pods: Maybe[Count] = UNSET
    """The number of pods, each on its own node, of one worker. More than 1 is for a model that is too large
    for one node. Unset and 0 mean 1."""

    resources: Maybe[ResourceRequirements] = UNSET
    """The compute resources of each pod, including accelerators."""

    affinity: Maybe[Affinity] = UNSET
    """The scheduling constraints of the pods."""

    config: Maybe[JsonValue] = UNSET
    """Engine settings, as an object of any shape. Each member is a command line argument, such as
    `max-model-len: 8192`. An empty string makes an argument without a value. Nesting is limited to 100
    levels."""


DEFAULT_ROUTE_WEIGHT: Final = 100
"""The route weight of a backend that does not set one."""

_PARTS: Final = ("prefill", "decode")
_PARTS_OF_MINDIE: Final = ("prefill", "decode", "controller", "coordinator")
_SOURCE: Final = Pattern(
    r"^(hf://|s3://|pvc://).+",
    says="hf://, s3:// or pvc:// and a path behind it, such as hf://meta-llama/Llama-3.1-8B",
)

BackendName = Annotated[str, Length(maximum=63), Pattern(LABEL_PATTERN, says=LABEL_SAYS)]
"""The name of a backend. Objects created for it are named after the model and the backend."""


def _no_backsteps(*schemes: str) -> Cel:
    """Return the rule that a URI with one of some schemes has no `..` in its path."""
    starts = tuple(f"{scheme}://" for scheme in schemes)
    is_meant = " || ".join(f"self.startsWith('{start}')" for start in starts)
    return Cel(
        f"!({is_meant}) || !(self + '/').contains('/../')",
        lambda uri: not (uri.startswith(starts) and "/../" in f"{uri}/"),
        "must not contain '..' as a part of the path",
        sentence=f"Without `..` in a path of {' or '.join(f'`{start}`' for start in starts)}.",
    )


SourceURI = Annotated[str, Length(maximum=2048), _SOURCE, _no_backsteps("pvc")]
"""The source of weights: Hugging Face, a bucket, or a volume."""


@declaration()
class LoraAdapter:
    """A LoRA adapter, which is served under a name of its own."""

    name: Annotated[str, Length(maximum=253), Pattern(LABEL_PATTERN, says=LABEL_SAYS)]
    """The name of the adapter in requests. It must differ from the name of the model and of other
    adapters."""

    artifact_url: SourceURI
    """The source of the adapter: `hf://`, `s3://` or `pvc://`."""


def _any_of(texts: Sequence[str]) -> str:
    return " or ".join(f"'{text}'" for text in texts)


def _of_type(*types: str) -> When:
    return When(
        unless=f"!has(self.type) || !(self.type in {list(types)})",  # CEL has the literals of Python
        applies=lambda backend: backend.get("type") in types,
        words=f"when the backend's `type` is {_any_of(types)}",
    )


_WHOLE: Final = _of_type("vLLM", "SGLang", "MindIE")
_PARTED: Final = _of_type("vLLMDisaggregated", "MindIEDisaggregated")


def _roles(when: When, *roles: str) -> EachItem:
    return EachItem(
        "workers",
        "type",
        when,
        expression=f"(has(item.type) ? item.type : 'server') in {list(roles)}",
        holds=lambda worker: worker.get("type", "server") in roles,
        message=f"must be {_any_of(roles)} {when.words}",
        sentence=f"`type` of every item of `workers` is {_any_of(roles)} {when.words}.",
        default="server",
    )


def _missing_parts(backend: Json, path: FieldPath) -> Sequence[FieldError]:
    if not _PARTED.applies(backend) or "workers" not in backend:
        return ()
    roles = {worker.get("type") for worker in backend["workers"]}
    return [required(path.child("workers"), _with_part(part)) for part in _PARTS if part not in roles]


def _with_part(part: str) -> str:
    return f"must have an item with `type` '{part}' {_PARTED.words}"


@declaration(
    LessOrEqual("minReplicas", "maxReplicas"),
    Cel(
        f"{_WHOLE.unless} || !has(self.workers) || size(self.workers) <= 1",
        # The schema rejects an empty list.
        lambda backend: not _WHOLE.applies(backend) or len(backend.get("workers", ())) <= 1,
        f"must have exactly one item {_WHOLE.words}",
        sentence=f"`workers` has exactly one item {_WHOLE.words}.",
        field="workers",
        shown=lambda backend: len(backend["workers"]),
    ),
    _roles(_WHOLE, "server"),
    _roles(_of_type("vLLMDisaggregated"), *_PARTS),
    _roles(_of_type("MindIEDisaggregated"), *_PARTS_OF_MINDIE),
    ValidationRule(
        _missing_parts,
        f"`workers` has an item with `type` 'prefill' and one with 'decode' {_PARTED.words}.",
        cel=[
            CelRule(
                rule=f"{_PARTED.unless} || !has(self.workers)"
                f" || self.workers.exists(item, has(item.type) && item.type == '{part}')",
                message=_with_part(part),
                reason=REQUIRED,
                field_name="workers",
            )
            for part in _PARTS
        ],
    ),
    Immutable("env", is_map=True),
    Immutable("envFrom"),
)
class ModelBackend:
    """One way to run the model: an engine, the workers of one replica, and the number of replicas."""

    name: BackendName
    """The name of the backend in its model. Renaming it removes the backend and creates a new one."""

    type: Literal["vLLM", "vLLMDisaggregated", "SGLang", "MindIE", "MindIEDisaggregated"]
    """The engine, and whether prefill and decode run in separate workers."""

    model_uri: SourceURI
    """The source of the model: `hf://` for Hugging Face, `s3://` for a bucket, `pvc://` for a volume."""

    cache_uri: Maybe[
        Annotated[
            str,
            Length(maximum=2048),
            Pattern(
                r"^(hostpath://|pvc://).+",
                says="hostpath:// or pvc:// and a path behind it, such as pvc://models",
            ),
            _no_backsteps("hostpath", "pvc"),
        ]
    ] = UNSET
    """The cache for fetched weights: `hostpath://` for a directory of the node, `pvc://` for a volume. If
    unset, every pod fetches the weights into its own file system."""

    env_from: Maybe[Annotated[tuple[EnvFromSource, ...], Items(maximum=64)]] = UNSET
    """Sources of environment variables: ConfigMaps and Secrets whose keys become variables. If a name occurs
    more than once, the later source takes precedence, and `env` takes precedence over all sources. Immutable.
    """

    env: Maybe[Annotated[tuple[EnvVar, ...], Items(maximum=256), MapKeys("name")]] = UNSET
    """Environment variables of the containers. Some have a special meaning: `ENDPOINT` is the endpoint of the
    bucket for `s3://`, which Kthena's own controller requires. `HF_ENDPOINT` is the endpoint of Hugging Face
    (default https://huggingface.co/). The port of `RUNTIME_URL` (default http://localhost:8000) is that of
    the engine, unless `config` sets one. `RUNTIME_METRICS_PATH` (default /metrics) is the path of its
    metrics. `RUNTIME_PORT` has no effect. Immutable."""

    min_replicas: Count
    """The minimum number of replicas. 0 is only allowed with a policy of the model."""

    max_replicas: Annotated[Int32, Range(1, 1000000)]
    """The maximum number of replicas. Without any policy, it must equal `minReplicas`."""

    scaling_cost: Maybe[Annotated[Int32, Range(0)]] = UNSET
    """The cost of one replica, in a unit common to all backends. Required with a policy of the model and
    forbidden without one. 0 means free."""

    route_weight: Annotated[Int32, Range(0, 100)] = DEFAULT_ROUTE_WEIGHT
    """The relative share of requests that this backend receives. 0 sends it none."""

    scale_to_zero_grace_period: Maybe[HalfHour] = UNSET
    """How long the model must be idle before its last replica is removed. The longest period of all backends
    applies. Only allowed with a policy of the model, and defaults to 30s then."""

    workers: Annotated[tuple[ModelWorker, ...], Items(1, 1000)]
    """The workers that make up one replica."""

    lora_adapters: Maybe[Annotated[tuple[LoraAdapter, ...], Items(maximum=128), MapKeys("name")]] = UNSET
    """LoRA adapters that the engine loads in addition to the model."""

    autoscaling_policy: Maybe[AutoscalingPolicySpec] = UNSET
    """The policy that scales this backend on its own. Forbidden if the model has a policy."""
