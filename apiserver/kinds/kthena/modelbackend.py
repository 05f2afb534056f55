"""The backends of a Model: each is one way to run it, scaled on its own or by cost against the others.

Decisions where the reference page is silent:

- Types that have no prefill and decode of their own take one worker, a server; the others take workers for
  the parts, and need one of each.
- A LoRA adapter is told apart by its name.

Bounds on counts and on the length of text are ours where the page has none.
"""

from __future__ import annotations

from typing import Annotated, Final, Literal

from apiserver.kinds.core.env import EnvFromSource, EnvVar
from apiserver.kinds.core.names import LABEL_PATTERN, LABEL_SAYS
from apiserver.kinds.kthena.autoscalingpolicy import AutoscalingPolicySpec, HalfHour
from apiserver.kinds.kthena.modelworker import Count, ModelWorker
from apiserver.kinds.meta import Int32
from apiserver.schema.comparison import LessOrEqual
from apiserver.schema.composition import Chosen, ItemOfEachWhen, ItemsAmongWhen, OneItemWhen
from apiserver.schema.declaration import UNSET, Maybe, declaration
from apiserver.schema.markers import Items, Length, MapKeys, Pattern, Range
from apiserver.schema.texts import NoBacksteps
from apiserver.schema.transitions import Immutable

DEFAULT_ROUTE_WEIGHT: Final = 100
"""Of a backend that does not say."""

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
"""The name of a backend; what is made for it is called by the model's name and this one."""

SourceURI = Annotated[str, Length(maximum=2048), _SOURCE, NoBacksteps(("pvc",))]
"""Where weights are fetched from: Hugging Face, a bucket, or a volume."""


@declaration()
class LoraAdapter:
    """A LoRA adapter: a small change to the model that is served under a name of its own."""

    name: Annotated[str, Length(maximum=253), Pattern(LABEL_PATTERN, says=LABEL_SAYS)]
    """What requests call it; neither the name of the model nor of another adapter."""

    artifact_url: SourceURI
    """Where it is fetched from: `hf://`, `s3://` or `pvc://`."""


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
    """One way to run the model: an engine, the workers that a replica of it has, and how many replicas."""

    name: BackendName
    """Name of the backend in its model. Another name is another backend: the old one is removed, a new one is
    made."""

    type: Literal["vLLM", "vLLMDisaggregated", "SGLang", "MindIE", "MindIEDisaggregated"]
    """Engine, and whether prompts are processed (prefill) apart from answers (decode)."""

    model_uri: SourceURI
    """Where the model is fetched from: `hf://` for Hugging Face, `s3://` for a bucket, `pvc://` for a
    volume."""

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
    """Where the fetched model is kept: `hostpath://` for a folder of the node, `pvc://` for a volume. Without
    it: in the pod, so that every pod fetches it anew."""

    env_from: Maybe[Annotated[tuple[EnvFromSource, ...], Items(maximum=64)]] = UNSET
    """Further variables: one for each key of some ConfigMaps and Secrets. Of two with one name the later one
    holds, and `env` before both. It cannot be changed."""

    env: Maybe[Annotated[tuple[EnvVar, ...], Items(maximum=256), MapKeys("name")]] = UNSET
    """Variables of the containers. Some have a meaning: `ENDPOINT` is that of the bucket, required for
    `s3://`; `HF_ENDPOINT` that of Hugging Face (https://huggingface.co/); `RUNTIME_URL` is where the engine
    answers (http://localhost:8000), `RUNTIME_PORT` (8100) and `RUNTIME_METRICS_PATH` (/metrics) where the
    runtime beside it tells its metrics. It cannot be changed."""

    min_replicas: Count
    """Fewest replicas. Scaling stays above; 0 takes a policy of the model."""

    max_replicas: Annotated[Int32, Range(1, 1000000)]
    """Most replicas. Without any policy it equals `minReplicas`: that many run."""

    scaling_cost: Maybe[Annotated[Int32, Range(0)]] = UNSET
    """What one replica costs, in any unit that all backends share. Required with a policy of the model, which
    goes by it, and forbidden without. 0 counts as free."""

    route_weight: Annotated[Int32, Range(0, 100)] = DEFAULT_ROUTE_WEIGHT
    """Share of the requests that this backend gets, relative to the weights of the others. 0 sends none."""

    scale_to_zero_grace_period: Maybe[HalfHour] = UNSET
    """How long there must be no requests before the last replica is removed. Only with a policy of the model;
    without it: 30s."""

    workers: Annotated[tuple[ModelWorker, ...], Items(1, 1000)]
    """The workers that make up one replica."""

    lora_adapters: Maybe[Annotated[tuple[LoraAdapter, ...], Items(maximum=128), MapKeys("name")]] = UNSET
    """LoRA adapters that the engine loads beside the model."""

    autoscaling_policy: Maybe[AutoscalingPolicySpec] = UNSET
    """Scales this backend on its own. Forbidden where the model has a policy."""
