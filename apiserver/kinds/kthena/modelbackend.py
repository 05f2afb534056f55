"""The backends of a Model, each with the workers that make up one replica.

A backend is one way to run the Model, scaled on its own or by cost along with the others.

Decisions where the reference page does not specify the behavior:

- Types without separate prefill and decode take one worker of type server. The others take workers for each
  part, with at least one of each.
- A LoRA adapter is identified by its name.

Limits on counts and on the length of text are ours where the page has none.
"""

from __future__ import annotations

from typing import Annotated, Final, Literal

from apiserver.kinds.core.affinity import Affinity
from apiserver.kinds.core.env import EnvFromSource, EnvVar
from apiserver.kinds.core.names import LABEL_PATTERN, LABEL_SAYS
from apiserver.kinds.core.resources import ResourceRequirements
from apiserver.kinds.kthena.autoscalingpolicy import AutoscalingPolicySpec, HalfHour
from apiserver.kinds.meta import Int32
from apiserver.schema.comparison import LessOrEqual
from apiserver.schema.conditions import Chosen
from apiserver.schema.declaration import UNSET, Maybe, declaration
from apiserver.schema.items import ItemOfEachWhen, ItemsAmongWhen, OneItemWhen
from apiserver.schema.json import JsonValue
from apiserver.schema.markers import Items, Length, MapKeys, Pattern, Range
from apiserver.schema.texts import NoBacksteps, NoWhitespace
from apiserver.schema.transitions import Immutable

Count = Annotated[Int32, Range(0, 1000000)]
"""A count of replicas or pods, which may be 0."""


@declaration()
class ModelWorker:
    """A type of worker: what it runs, its resources, and its count in one replica of the backend."""

    type: Literal["server", "prefill", "decode", "controller", "coordinator"] = "server"
    """The role of the worker. `server` does all the work. `prefill` and `decode` each do one part of it in a
    disaggregated backend. `controller` and `coordinator` manage these parts for MindIE. The type of the
    backend determines which roles are allowed."""

    image: Maybe[Annotated[str, Length(maximum=512), NoWhitespace()]] = UNSET
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

_WHOLE: Final = Chosen("type", ("vLLM", "SGLang", "MindIE"), "the backend's ")
_PARTED_VLLM: Final = Chosen("type", ("vLLMDisaggregated",), "the backend's ")
_PARTED_MINDIE: Final = Chosen("type", ("MindIEDisaggregated",), "the backend's ")
_PARTED: Final = Chosen("type", ("vLLMDisaggregated", "MindIEDisaggregated"), "the backend's ")
_PARTS: Final = ("prefill", "decode")
_PARTS_OF_MINDIE: Final = ("prefill", "decode", "controller", "coordinator")
_SOURCE: Final = Pattern(
    r"^(hf://|s3://|pvc://).+",
    says="hf://, s3:// or pvc:// and a path behind it, such as hf://meta-llama/Llama-3.1-8B",
)

BackendName = Annotated[str, Length(maximum=63), Pattern(LABEL_PATTERN, says=LABEL_SAYS)]
"""The name of a backend. Objects created for it are named after the model and the backend."""

SourceURI = Annotated[str, Length(maximum=2048), _SOURCE, NoBacksteps(("pvc",))]
"""The source of weights: Hugging Face, a bucket, or a volume."""


@declaration()
class LoraAdapter:
    """A LoRA adapter, which is served under a name of its own."""

    name: Annotated[str, Length(maximum=253), Pattern(LABEL_PATTERN, says=LABEL_SAYS)]
    """The name of the adapter in requests. It must differ from the name of the model and of other
    adapters."""

    artifact_url: SourceURI
    """The source of the adapter: `hf://`, `s3://` or `pvc://`."""


@declaration(
    LessOrEqual("minReplicas", "maxReplicas"),
    OneItemWhen("workers", _WHOLE),
    ItemsAmongWhen("workers", "type", ("server",), "server", _WHOLE),
    ItemsAmongWhen("workers", "type", _PARTS, "server", _PARTED_VLLM),
    ItemsAmongWhen("workers", "type", _PARTS_OF_MINDIE, "server", _PARTED_MINDIE),
    ItemOfEachWhen("workers", "type", _PARTS, _PARTED),
    Immutable("env", empty="[]", is_map=True),
    Immutable("envFrom", empty="[]"),
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
            NoBacksteps(("hostpath", "pvc")),
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
