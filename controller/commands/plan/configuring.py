"""The controller's configuration, as far as plans depend on it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from apiserver.kinds.settings_names import NamesConfig
from apiserver.schema.json import Json, JsonValue
from apiserver.serving.config import ConfigurationError, load
from controller.commands.check.tree import UnreadableDocumentError
from controller.commands.plan.reading import InputProblem, documents_of, with_lines
from controller.config import ControllerConfig, further_accelerators
from controller.config_planning import (
    budgets_of,
    objectives_of,
    planning_problems,
    pools_of,
    settings_of,
    sizing_of,
)
from controller.observe.devices import resource_problems
from controller.observe.gather import NO_TERMS, PlanningTerms
from controller.observe.objectives import OBJECTIVES_IGNORED, ObjectiveRules
from controller.planning.inputs import PlanningInputs, Settings
from controller.planning.inventory import with_addable_nodes
from controller.planning.wording import first_of
from controller.sizing.records import SizingSettings

_KEY: Final = "config.yaml"
_CONFIG_MAP: Final = "stowplan-controller"
_GENERATED: Final = re.compile(rf"{_CONFIG_MAP}(-config(-[a-z0-9]{{10}})?)?")
"""Matches the controller's ConfigMap in the shipped manifests: kustomize appends a hash of its content."""

_MOST_NAMED: Final = 5
_EXPECTED: Final = (
    "must be one YAML mapping: the controller's configuration, or the ConfigMap that contains it"
)


@dataclass(frozen=True, kw_only=True, slots=True)
class ConfigurationResult:
    """The controller's configuration, or the problems with it."""

    settings: Settings = Settings()  # noqa: RUF009 (frozen)
    sizing: SizingSettings = SizingSettings()  # noqa: RUF009 (frozen)
    terms: PlanningTerms = NO_TERMS
    names: NamesConfig = NamesConfig()  # noqa: RUF009 (frozen)
    namespace: str = ""
    """Namespace of the ConfigMaps with prices and service classes; empty if not configured."""

    objectives: ObjectiveRules = OBJECTIVES_IGNORED
    scales_to_zero: bool = False
    grace_seconds: float = 0.0
    """Time in seconds for which a model keeps its last replica after its last request."""

    is_given: bool = False
    problems: tuple[InputProblem, ...] = ()

    def over(self, inputs: PlanningInputs) -> PlanningInputs:
        """Return the inputs of a saved decision, with this configuration instead of the saved one.

        Node pools with other names are kept, because Karpenter's are not in any configuration.
        """
        if not self.is_given:
            return inputs
        saved, declared = inputs.snapshot, {pool.name for pool in self.terms.pools}
        own_pools = (with_addable_nodes(pool, saved.nodes) for pool in self.terms.pools)
        snapshot = replace(
            saved,
            pools=(*own_pools, *(pool for pool in saved.pools if pool.name not in declared)),
            budgets=self.terms.budgets,
            variants=tuple(
                replace(variant, may_scale_to_zero=self.scales_to_zero) for variant in saved.variants
            ),
        )
        return replace(inputs, snapshot=snapshot, settings=self.settings)


def read_configuration(path: Path | None) -> ConfigurationResult:
    """Return the settings from a configuration file or its ConfigMap; without a file, the defaults."""
    if path is None:
        return ConfigurationResult()
    try:
        data = path.read_bytes()
        documents = documents_of(data)
    except OSError as error:
        return ConfigurationResult(
            problems=with_lines(str(path), b"", [f"cannot be read: {error.strerror or error}"])
        )
    except UnreadableDocumentError as error:
        return ConfigurationResult(
            problems=(InputProblem(file=str(path), line=error.line, text=error.message),)
        )
    # Lines within a ConfigMap are not those of the file.
    lines = b"" if any(_config_maps(document) for document in documents) else data
    try:
        config = load(ControllerConfig, _document(documents))
    except ConfigurationError as error:
        return ConfigurationResult(problems=with_lines(str(path), lines, error.problems))
    if problems := [*resource_problems(config.accelerators.resources), *planning_problems(config.planning)]:
        return ConfigurationResult(problems=with_lines(str(path), lines, problems))
    return _configuration_result(config)


def configuration_in_cluster(config_maps: Sequence[Json]) -> ConfigurationResult:
    """Return the controller's settings from ConfigMaps of its namespace; the defaults without valid ones."""
    config, _ = controller_config(config_maps)
    return ConfigurationResult() if config is None else _configuration_result(config)


def controller_config(config_maps: Sequence[Json]) -> tuple[ControllerConfig | None, Sequence[str]]:
    """Return the controller's configuration from ConfigMaps of its namespace, and what is wrong with it."""
    ours = [item for item in config_maps if _GENERATED.fullmatch(_name(item))]
    if not ours:
        return None, ()
    # kustomize leaves earlier ones behind.
    newest = max(ours, key=lambda item: str(item["metadata"].get("creationTimestamp")))
    try:
        return load(ControllerConfig, _configuration_in(newest)), ()
    except ConfigurationError as error:
        return None, error.problems


def _configuration_result(config: ControllerConfig) -> ConfigurationResult:
    planning = config.planning
    return ConfigurationResult(
        settings=settings_of(planning),
        sizing=sizing_of(planning),
        terms=PlanningTerms(
            pools=pools_of(planning),
            budgets=budgets_of(planning),
            further=further_accelerators(config),
            steers_removal=planning.pod_deletion_cost,
        ),
        names=config.names,
        namespace=config.namespace,
        objectives=objectives_of(planning),
        scales_to_zero=planning.scale_to_zero,
        grace_seconds=float(planning.scale_to_zero_grace_seconds),
        is_given=True,
    )


def _document(documents: Sequence[JsonValue]) -> Json:
    """Return the configuration in a file or in its ConfigMap. Raises ConfigurationError."""
    config_maps = [item for document in documents for item in _config_maps(document)]
    if config_maps:
        return _configuration_in(_choose(config_maps))
    if any(isinstance(item, dict) and "kind" in item for item in documents):
        raise ConfigurationError(["contains no ConfigMap with the controller's configuration"])
    if not documents:
        return {}
    if len(documents) > 1:
        raise ConfigurationError([f"contains {len(documents)} YAML documents and no ConfigMap: {_EXPECTED}"])
    return _as_mapping(documents[0], "the document")


def _config_maps(document: JsonValue) -> list[Json]:
    """Return the ConfigMap in a document, or those in its list."""
    if not isinstance(document, dict):
        return []
    kind, items = document.get("kind"), document.get("items")
    if kind in {"List", "ConfigMapList"} and isinstance(items, list):
        objects = [item for item in items if isinstance(item, dict)]
        return [item for item in objects if item.get("kind", "ConfigMap") == "ConfigMap"]
    return [document] if kind == "ConfigMap" else []


def _choose(config_maps: Sequence[Json]) -> Json:
    """Return the only ConfigMap, or the controller's of several. Raises ConfigurationError."""
    if len(config_maps) == 1:
        return config_maps[0]
    ours = [item for item in config_maps if _GENERATED.fullmatch(_name(item))]
    if len(ours) == 1:
        return ours[0]
    names = first_of([*map(_name, config_maps)], _MOST_NAMED)
    how_many = "more than one is" if ours else "none is"
    text = (
        f"of the ConfigMaps {names}, {how_many} named {_CONFIG_MAP} or {_CONFIG_MAP}-config-HASH: keep only"
        " the controller's ConfigMap in the file"
    )
    raise ConfigurationError([text])


def _name(config_map: Json) -> str:
    metadata = config_map.get("metadata")
    return str(metadata.get("name", "")) if isinstance(metadata, dict) else ""


def _configuration_in(config_map: Json) -> Json:
    """Return the configuration in a ConfigMap. Raises ConfigurationError."""
    data = config_map.get("data")
    members = data if isinstance(data, dict) else {}
    where = f"ConfigMap {_name(config_map)}: data[{_KEY}]"
    text = members.get(_KEY)
    if not isinstance(text, str):
        there_are = f"there are {', '.join(map(str, members))}" if members else "there is no key"
        raise ConfigurationError([f"{where}: must be the controller's configuration as text; {there_are}"])
    try:
        documents = documents_of(text.encode())
    except UnreadableDocumentError as error:
        raise ConfigurationError([f"{where}: line {error.line}: {error.message}"]) from error
    if len(documents) > 1:
        raise ConfigurationError([f"{where}: contains {len(documents)} YAML documents: must be one"])
    return _as_mapping(documents[0], where) if documents else {}


def _as_mapping(document: JsonValue, where: str) -> Json:
    if not isinstance(document, dict):
        raise ConfigurationError([f"{where}: contains a {_kind(document)}: {_EXPECTED}"])
    return document


def _kind(document: JsonValue) -> str:
    names = {bool: "truth value", list: "list", str: "text", int: "number", float: "number"}
    return names.get(type(document), "value")
