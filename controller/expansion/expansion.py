"""The expansion of a Model: all objects made for it, and notes about fields without effect. Pure.

`stowplan expand` prints the result. Equal Models give equal objects, in the order of creation: objects that
run come before those that route requests to them.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from apiserver.kinds.kthena.autoscalingpolicybinding import MOST_TARGET_REPLICAS
from apiserver.kinds.kthena.groups import NETWORKING
from apiserver.kinds.kthena.modelroute import MOST_TARGETS
from apiserver.schema.json import Json
from controller.expansion.parts import ENGINES, Note, Part, backend_name, parts_of, variable
from controller.expansion.routing import backends_without_requests, model_routes, model_server, weight_of
from controller.expansion.scaling import autoscaler, backend_scaling, bounds, is_scaled, model_scaling
from controller.expansion.weights import weights_of
from controller.expansion.workloads import adapter_list, ignored_settings, service, workload

_LOCAL: Final = ("localhost", "127.0.0.1", "[::1]", "0.0.0.0")  # noqa: S104 (as written by users)

S3_IMAGE: Final = "amazon/aws-cli:2.31.0"
"""Image that contains the AWS command line."""


@dataclass(frozen=True, kw_only=True, slots=True)
class ExpansionSettings:
    """User settings of the expansion."""

    s3_image: str = S3_IMAGE
    """Image with the AWS command line, which downloads from `s3://`."""

    has_autoscalers: bool = True
    """Whether HorizontalPodAutoscalers apply the policies; otherwise the controller or another component
    does."""

    routing_group: str = NETWORKING
    """API group of the ModelServers and ModelRoutes."""

    has_tolerance: bool = True
    """Whether the API of HorizontalPodAutoscalers has `tolerance`, as from Kubernetes 1.33. It has an effect
    from 1.35, or before with the feature gate HPAConfigurableTolerance."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Expansion:
    """The objects made for a Model."""

    objects: tuple[Json, ...]
    notes: tuple[Note, ...]
    taken_names: frozenset[str] = frozenset()
    """Backends whose workload name is taken by an object that is not the Model's."""

    @property
    def is_whole(self) -> bool:
        """Whether every backend can be created."""
        return not (self.taken_names or any(note.prevents for note in self.notes))


def expand(
    model: Json,
    settings: ExpansionSettings | None = None,
    unloaded: Collection[tuple[str, str]] = frozenset(),
    taken_names: frozenset[str] = frozenset(),
    resting: frozenset[str] = frozenset(),
) -> Expansion:
    """Return the expansion of a valid Model with its defaults.

    No route targets `unloaded` adapters, given as pairs of backend and adapter name. No object routes
    requests to backends of `taken_names` or scales them: a workload of their name belongs to someone else.
    Routes give no weight to `resting` backends, which have no endpoints, while others of the rule have some.
    """
    settings = settings or ExpansionSettings()
    notes: list[Note] = []
    parts_of_backends: list[tuple[Json, tuple[Part, ...]]] = []
    for position, backend in enumerate(model["spec"]["backends"]):
        path = f"spec.backends[{position}]"
        obstacles = [*_obstacles(model, backend, path)]
        notes += obstacles or _ineffective(model, backend, path)
        if not obstacles:
            parts_of_backends.append((backend, tuple(parts_of(model, backend, path))))
    notes += _without_requests(model, [backend for backend, _ in parts_of_backends])
    objects = [item for _, parts in parts_of_backends for item in _workloads(parts, settings)]
    parts_of_backends = [
        (backend, parts) for backend, parts in parts_of_backends if backend["name"] not in taken_names
    ]
    for _, parts in parts_of_backends:
        objects += [*map(service, parts), model_server(parts, settings.routing_group)]
    loaded = [_as_loaded(backend, unloaded) for backend, _ in parts_of_backends]
    routes = [*model_routes(model, loaded, settings.routing_group, resting)]
    notes += _overwritten(model, routes)
    objects += routes
    objects += _scaling_objects(model, [parts for _, parts in parts_of_backends], settings)
    return Expansion(objects=tuple(objects), notes=tuple(notes), taken_names=taken_names)


def _workloads(parts: Sequence[Part], settings: ExpansionSettings) -> Iterator[Json]:
    weighed = [(part, weights_of(part, s3_image=settings.s3_image)) for part in parts]
    if parts[0].loads_adapters:
        yield adapter_list(*weighed[0])
    for part, weights in weighed:
        yield workload(part, weights, replicas=_first_replicas(part, settings))


def _first_replicas(part: Part, settings: ExpansionSettings) -> int:
    """Return the replicas with which a workload is created.

    An autoscaler never starts a workload that was created without replicas; it can scale it to 0 later.
    """
    low, high = bounds(part)
    return max(low, min(high, 1)) if is_scaled(part) and settings.has_autoscalers else low


def _as_loaded(backend: Json, unloaded: Collection[tuple[str, str]]) -> Json:
    adapters = [
        item for item in backend.get("loraAdapters", []) if (backend["name"], item["name"]) not in unloaded
    ]
    return {**backend, "loraAdapters": adapters}


def _scaling_objects(
    model: Json, backends: Sequence[Sequence[Part]], settings: ExpansionSettings
) -> Iterator[Json]:
    scaled = [part for parts in backends for part in parts if is_scaled(part)]
    for parts in backends:
        yield from backend_scaling(parts)
    yield from model_scaling(model, scaled)
    if settings.has_autoscalers:
        for part in scaled:
            yield autoscaler(part, has_tolerance=settings.has_tolerance)


def _obstacles(model: Json, backend: Json, path: str) -> Iterator[Note]:
    """Yield the reasons why a backend cannot be created."""
    if backend["type"] not in ENGINES:
        known = ", ".join(ENGINES)
        yield _prevents(f"{path}.type", f"{backend['type']} is not supported; supported types are {known}")
        return
    roles: set[str] = set()
    for part in parts_of(model, backend, path):
        if part.role in roles:
            text = f"there is another {part.role} worker before it, and their workloads would have one name"
            yield _prevents(f"{part.path}.type", text)
        roles.add(part.role)
        if not part.worker.get("image"):
            yield _prevents(f"{part.path}.image", "an engine needs an image: there is none to run")
        if not part.workers:
            yield _prevents(f"{part.path}.replicas", "a replica without this worker cannot serve")


def _ineffective(model: Json, backend: Json, path: str) -> list[Note]:
    """Return notes about the fields of a backend that have no or another effect."""
    notes = [*_variables(backend, path)]
    for part in parts_of(model, backend, path):
        if part.url_port not in (None, part.port):
            text = f"the port of RUNTIME_URL has no effect: {part.path}.config says {part.port}"
            notes.append(Note(path=_variable_path(backend, path, "RUNTIME_URL"), text=text))
        notes += [
            Note(path=f"{part.path}.config[{name}]", text="has no effect: modelURI specifies the weights")
            for name in ignored_settings(part)
        ]
        if part.worker.get("pods") == 0:
            notes.append(Note(path=f"{part.path}.pods", text="0 counts as 1"))
        if backend["maxReplicas"] * part.workers > MOST_TARGET_REPLICAS:
            text = f"ends at {MOST_TARGET_REPLICAS} engines: maxReplicas of the backend times this is more"
            notes.append(Note(path=f"{part.path}.replicas", text=text))
        if part.worker.get("config") is not None and not isinstance(part.worker["config"], dict):
            notes.append(Note(path=f"{part.path}.config", text="has no effect: it is not an object"))
    is_split = "autoscalingPolicy" in model["spec"] and backend["type"] == "vLLMDisaggregated"
    if is_split:
        text = (
            "the policy of the model does not scale prefill and decode workers, since it counts one kind of"
            f" replica for each backend: {backend_name(model, backend)} keeps minReplicas"
        )
        notes.append(Note(path=f"{path}.type", text=text))
    return notes


def _without_requests(model: Json, backends: Sequence[Json]) -> Iterator[Note]:
    """Yield notes about backends and adapters that get no requests."""
    if backends and not any(map(weight_of, backends)):
        yield Note(path="spec.backends", text="there is no ModelRoute: no created backend has a routeWeight")
        return
    places = {backend["name"]: place for place, backend in enumerate(model["spec"]["backends"])}
    for backend, adapter in backends_without_requests(backends):
        path = f"spec.backends[{places[backend['name']]}]"
        if adapter:
            text = f"requests for {adapter} are not served: routeWeight of all backends that have it is 0"
            yield Note(path=f"{path}.loraAdapters", text=text)
        else:
            many = f"a rule of a ModelRoute leads to {MOST_TARGETS} backends"
            yield Note(path=path, text=f"gets no requests: {many}, and others are before it")


def _overwritten(model: Json, routes: Sequence[Json]) -> Iterator[Note]:
    """Yield a note if rules replace the model's own condition on the request body."""
    body = (model["spec"].get("modelMatch") or {}).get("body")
    rules = [rule for route in routes for rule in route["spec"]["rules"]]
    if body and any(rule["modelMatch"]["body"] != body for rule in rules):
        text = "has no effect: backends have different adapters, and each rule asks for one name in the body"
        yield Note(path="spec.modelMatch.body", text=text)


def _variables(backend: Json, path: str) -> Iterator[Note]:
    if any(item["name"] == "RUNTIME_PORT" for item in backend.get("env", [])):
        yield Note(
            path=_variable_path(backend, path, "RUNTIME_PORT"),
            text="RUNTIME_PORT has no effect: metrics are read from the engine, without a runtime beside it",
        )
    host = variable(backend, "RUNTIME_URL").partition("://")[2].rpartition(":")[0]
    if host and host not in _LOCAL:
        yield Note(
            path=_variable_path(backend, path, "RUNTIME_URL"),
            text=f"only the port of RUNTIME_URL has an effect: the engine is in the pod, not on {host}",
        )


def _variable_path(backend: Json, path: str, name: str) -> str:
    """Return the path of an environment variable that is set."""
    names = [item["name"] for item in backend["env"]]
    return f"{path}.env[{names.index(name)}]"


def _prevents(path: str, text: str) -> Note:
    return Note(path=path, text=text, prevents=True)
