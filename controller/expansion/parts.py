"""The parts of a Model: each kind of worker of each backend becomes one workload.

A backend whose engine does prefill and decode has one part. A disaggregated backend has one part for each,
which are scaled separately and paired by a label.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final
from urllib.parse import urlsplit

from apiserver.kinds.annotations import PREFIX
from apiserver.schema.json import Json, JsonValue

MODEL_LABEL: Final = f"{PREFIX}model"
BACKEND_LABEL: Final = f"{PREFIX}backend"
ROLE_LABEL: Final = f"{PREFIX}role"
GROUP_LABEL: Final = f"{PREFIX}group"
"""The value is the same for prefill and decode pods that may be paired."""

ENGINE_LABEL: Final = "inference.networking.k8s.io/engine-type"
"""Label by which an endpoint picker of the Inference Extension identifies a pod's engine; vLLM if absent."""

MANAGED_BY: Final = {"app.kubernetes.io/managed-by": "stowplan"}

VLLM: Final = "vLLM"
SGLANG: Final = "SGLang"
DISAGGREGATED: Final = "vLLMDisaggregated"
ENGINES: Final[Mapping[str, str]] = {VLLM: VLLM, DISAGGREGATED: VLLM, SGLANG: SGLANG}
"""The engine of each supported type of backend."""

_ALLOWS_LOADING: Final = "VLLM_ALLOW_RUNTIME_LORA_UPDATING"
_ADAPTER_SETTINGS: Final = ("enable-lora", "max-lora-rank", "lora-target-modules")

DEFAULT_PORT: Final = 8000
_HIGHEST_PORT: Final = 65535
_DEFAULT_METRICS_PATH: Final = "/metrics"


@dataclass(frozen=True, kw_only=True, slots=True)
class Note:
    """A field of a Model without its usual effect, or a reason why a backend cannot be created."""

    path: str
    text: str
    prevents: bool = False
    """Whether it prevents the creation of the backend."""

    def __str__(self) -> str:
        return f"{self.path}: {self.text}"


@dataclass(frozen=True, kw_only=True, slots=True)
class Part:
    """One kind of worker of one backend. `model` is a whole, valid object with its defaults."""

    model: Json
    backend: Json
    worker: Json
    path: str
    """Path of the worker in the Model."""

    @property
    def name(self) -> str:
        """Name of its workload and of its Service."""
        whole = backend_name(self.model, self.backend)
        return f"{whole}-{self.role}" if self.is_disaggregated else whole

    @property
    def role(self) -> str:
        """`server`, `prefill` or `decode`."""
        return str(self.worker.get("type", "server"))

    @property
    def engine(self) -> str:
        """`vLLM` or `SGLang`."""
        return ENGINES[self.backend["type"]]

    @property
    def is_disaggregated(self) -> bool:
        """Whether prefill and decode run in separate pods."""
        return bool(self.backend["type"] == DISAGGREGATED)

    @property
    def pods(self) -> int:
        """Pods per engine; more than 1 if the engine spans nodes."""
        return max(1, int(self.worker.get("pods", 1)))

    @property
    def workers(self) -> int:
        """Engines of this part per replica of the backend."""
        return int(self.worker.get("replicas", 1))

    @property
    def config(self) -> Json:
        """Arguments of the engine by name; empty if the config is no object."""
        config = self.worker.get("config")
        return config if isinstance(config, dict) else {}

    @property
    def labels(self) -> Mapping[str, str]:
        """Labels that select exactly its pods."""
        labels = {
            MODEL_LABEL: str(self.model["metadata"]["name"]),
            BACKEND_LABEL: str(self.backend["name"]),
            ROLE_LABEL: self.role,
        }
        if self.is_disaggregated:
            labels[GROUP_LABEL] = backend_name(self.model, self.backend)
        return labels

    @property
    def engine_labels(self) -> Mapping[str, str]:
        """Labels that identify the engine, on its pods and on the ModelServer that selects them."""
        return {} if self.engine == VLLM else {ENGINE_LABEL: self.engine.lower()}

    @property
    def environment(self) -> Json:
        """The environment of the engine, as members of a container."""
        return {name: self.backend[name] for name in ("env", "envFrom") if self.backend.get(name)}

    @property
    def port(self) -> int:
        """Port of the engine: `config.port`, else the port of `RUNTIME_URL`, else 8000."""
        return _port(self.setting("port")) or self.url_port or DEFAULT_PORT

    @property
    def url_port(self) -> int | None:
        """The port of `RUNTIME_URL`."""
        return _url_port(variable(self.backend, "RUNTIME_URL"))

    @property
    def metrics_path(self) -> str:
        """Path of the engine's metrics."""
        path = variable(self.backend, "RUNTIME_METRICS_PATH") or _DEFAULT_METRICS_PATH
        return path if path.startswith("/") else f"/{path}"

    @property
    def loads_adapters(self) -> bool:
        """Whether the engines of its backend load and unload adapters at run time."""
        parts = parts_of(self.model, self.backend, "")
        return bool(self.backend.get("loraAdapters")) and all(map(_may_load, parts))

    def setting(self, name: str) -> JsonValue:
        """Return an argument of the engine, written with dashes or underscores; None if it is not set."""
        return next((value for key, value in self.config.items() if key.replace("_", "-") == name), None)


def made_metadata(source: Json, name: str, labels: Mapping[str, str]) -> Json:
    """Return the metadata of an object made for another one, in its namespace."""
    metadata: Json = {"name": name, "labels": {**MANAGED_BY, **labels}}
    if namespace := source.get("namespace"):
        metadata["namespace"] = namespace
    return metadata


def owned_metadata(owner: Json, name: str, labels: Mapping[str, str]) -> Json:
    """Return the metadata of an object made for `owner`, with an owner reference if `owner` has a uid."""
    source = owner["metadata"]
    metadata = made_metadata(source, name, labels)
    if uid := source.get("uid"):
        metadata["ownerReferences"] = [
            {
                "apiVersion": owner["apiVersion"],
                "kind": owner["kind"],
                "name": source["name"],
                "uid": uid,
                "controller": True,
                "blockOwnerDeletion": True,
            }
        ]
    return metadata


def backend_name(model: Json, backend: Json) -> str:
    """Return the name of a backend's objects, without dots, which a Service name must not contain."""
    return f"{model['metadata']['name']}-{backend['name']}".replace(".", "-")


def served_name(model: Json) -> str:
    """Return the model name in requests."""
    return str((model.get("spec") or {}).get("name") or model["metadata"]["name"])


def engine_name(model: Json, backend: Json) -> str:
    """Return the model name in a backend's engines: `served-model-name` if a worker sets it."""
    for part in parts_of(model, backend, ""):
        name = part.setting("served-model-name")
        if part.role in ("server", "decode") and isinstance(name, str) and name:
            return name
    return served_name(model)


def _may_load(part: Part) -> bool:
    """Tell whether an engine may load adapters at run time, which must be enabled.

    vLLM has an environment variable for it, and supports it with one API server process only. SGLang needs
    the dimensions of adapters before it has any. An engine that spans nodes reads adapters on each node.
    """
    if part.pods > 1:
        return False
    if part.engine == SGLANG:
        return all(part.setting(name) not in (None, False) for name in _ADAPTER_SETTINGS)
    is_allowed = variable(part.backend, _ALLOWS_LOADING).strip().lower() in ("1", "true")
    return is_allowed and part.setting("api-server-count") is None


def parts_of(model: Json, backend: Json, path: str) -> Iterator[Part]:
    """Yield the parts of the backend at `path`."""
    for position, worker in enumerate(backend["workers"]):
        yield Part(model=model, backend=backend, worker=worker, path=f"{path}.workers[{position}]")


def variable(backend: Json, name: str) -> str:
    """Return the value of a backend's environment variable; empty if it is unset or set by reference."""
    for item in backend.get("env", []):
        if item["name"] == name:
            return str(item.get("value") or "")
    return ""


def _url_port(url: str) -> int | None:
    try:
        return _port(urlsplit(url).port)
    except ValueError:
        return None


def _port(value: JsonValue) -> int | None:
    text = str(value)
    if isinstance(value, bool) or not text.isascii() or not text.isdigit() or len(text) > len("65535"):
        return None
    return int(text) if 1 <= int(text) <= _HIGHEST_PORT else None
