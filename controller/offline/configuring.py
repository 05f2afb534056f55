"""The controller's own configuration file, as far as plans depend on it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

import yaml

from apiserver.schema.json import Json
from apiserver.serving.config import ConfigurationError, load
from controller.config import ControllerConfig, NamesConfig
from controller.config_planning import budgets_of, planning_problems, pools_of, settings_of
from controller.observe.gather import NO_TERMS, Terms
from controller.offline.reading import Problem
from controller.planning.inputs import PlanningInputs
from controller.planning.settings import Settings

_KEY: Final = "config.yaml"


@dataclass(frozen=True, kw_only=True, slots=True)
class Configuring:
    """What the controller was told, or why nobody can tell."""

    settings: Settings = Settings()  # noqa: RUF009 (frozen)
    terms: Terms = NO_TERMS
    names: NamesConfig = NamesConfig()  # noqa: RUF009 (frozen)
    namespace: str = ""
    """Where the ConfigMaps with prices and service classes are; empty where it does not say."""

    scales_to_zero: bool = False
    is_given: bool = False
    problems: tuple[Problem, ...] = ()

    def over(self, inputs: PlanningInputs) -> PlanningInputs:
        """Return a saved decision's inputs with this configuration in the place of its own."""
        if not self.is_given:
            return inputs
        terms = self.terms
        snapshot = replace(inputs.snapshot, pools=terms.pools, budgets=terms.budgets)
        return replace(inputs, snapshot=snapshot, settings=self.settings)


def configured(path: Path | None) -> Configuring:
    """Return what a configuration file, or a ConfigMap that holds one, says; without a file the defaults."""
    if path is None:
        return Configuring()
    try:
        config = load(ControllerConfig, _document(path))
    except ConfigurationError as error:
        return _refused(path, error.problems)
    if problems := planning_problems(config.planning):
        return _refused(path, problems)
    planning = config.planning
    return Configuring(
        settings=settings_of(planning),
        terms=Terms(
            pools=pools_of(planning),
            budgets=budgets_of(planning),
            steers_removal=planning.pod_deletion_cost,
        ),
        names=config.names,
        namespace=config.namespace,
        scales_to_zero=planning.scale_to_zero,
        is_given=True,
    )


def _document(path: Path) -> Json:
    """Read the file; of a ConfigMap, what is under its key. Raises ConfigurationError."""
    try:
        document = yaml.safe_load(path.read_text(encoding="utf-8")) or {}
        if isinstance(document, dict) and document.get("kind") == "ConfigMap":
            document = yaml.safe_load((document.get("data") or {}).get(_KEY, "")) or {}
    except OSError as error:
        raise ConfigurationError([f"cannot be read: {error.strerror or error}"]) from error
    except (UnicodeDecodeError, yaml.YAMLError) as error:
        raise ConfigurationError([" ".join(str(error).split())]) from error
    if not isinstance(document, dict):
        raise ConfigurationError(
            ["must hold one YAML mapping: the controller's configuration or its ConfigMap"]
        )
    return document


def _refused(path: Path, problems: Sequence[str]) -> Configuring:
    return Configuring(problems=tuple(Problem(file=str(path), line=0, text=text) for text in problems))
