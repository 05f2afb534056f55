"""Prices and service classes of an administrator, what is wrong with them, and privileges of writers.

`controller.observe.settings_reading` reads prices and classes; the API server is asked for privileges
elsewhere.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from decimal import Decimal

import msgspec

from apiserver.kinds.authorship import taking_over
from apiserver.kinds.privileges import Privilege
from apiserver.schema.json import Json
from controller.observe.accelerators import short_name
from controller.observe.claim import Claim, Place
from controller.sizing.records import ATTAINMENT


@dataclass(frozen=True, kw_only=True, slots=True)
class ServiceClass:
    """A service class: priority from 1, served first, to 100; latency targets in ms by model."""

    name: str
    priority: int
    ttft_ms: Mapping[str, int]
    tpot_ms: Mapping[str, int]
    attainment: float = ATTAINMENT
    """Promised share of requests within both targets."""

    def covers(self, model_id: str) -> bool:
        """Return whether the class lists a model."""
        return model_id in self.ttft_ms or model_id in self.tpot_ms


@dataclass(frozen=True, kw_only=True, slots=True)
class SettingsProblem:
    """What is wrong with a ConfigMap of settings or one of its keys, and what applies instead."""

    config_map: str
    key: str = ""
    """Empty for the whole ConfigMap."""

    text: str
    since: datetime | None = None
    """When it was first seen; None if settings are read only once."""

    def __str__(self) -> str:
        at = f", key {self.key}" if self.key else ""
        since = f" (since {self.since:%Y-%m-%dT%H:%M:%SZ})" if self.since else ""
        return f"ConfigMap {self.config_map}{at}: {self.text}{since}"


@dataclass(frozen=True, kw_only=True, slots=True)
class Policies:
    """The administrator's policies, and what is wrong with them."""

    unit_costs: Mapping[str, Decimal] = field(default_factory=dict)
    """Cost per hour of one accelerator, by normalized type."""

    classes: Mapping[Place, ServiceClass] = field(default_factory=dict)
    """Service classes by where they are defined."""

    price_list: str = ""
    """ConfigMap of the prices."""

    default_classes: str = ""
    """ConfigMap whose classes apply to models without a reference; empty for all ConfigMaps."""

    problems: tuple[SettingsProblem, ...] = ()
    missing: Mapping[str, str] = field(default_factory=dict)
    """Messages about configured ConfigMaps that do not exist, by name; optional without a cluster."""

    grants: Grants | None = None
    """With tenants, who may use which class and set a cost; None if everyone may."""

    def class_problem(self, place: Place) -> SettingsProblem | None:
        """Return what is wrong with a service class or its whole ConfigMap."""
        return next((item for item in self.problems if _is_about(item, place)), None)

    def unread_class(self) -> SettingsProblem | None:
        """Return what is wrong with a class that is in force in no form; it may list any model."""
        ours = (item for item in self.problems if item.config_map == self.default_classes and item.key)
        return next((item for item in ours if (item.config_map, item.key) not in self.classes), None)

    def price_problem(self, accelerator: str) -> SettingsProblem | None:
        """Return what is wrong with the price of an accelerator type or the whole price list."""
        ours = (item for item in self.problems if item.config_map == self.price_list)
        return next((item for item in ours if not item.key or short_name(item.key) == accelerator), None)


def _is_about(problem: SettingsProblem, place: Place) -> bool:
    return problem.config_map == place[0] and problem.key in {"", place[1]}


@dataclass(frozen=True, kw_only=True, slots=True, order=True)
class PrivilegeQuestion:
    """The question whether a user has a privilege."""

    record: str
    """The user, as recorded on an object by its writer."""

    privilege: Privilege

    @property
    def user(self) -> Json:
        """The user, in the form of `userInfo` in an admission request."""
        user: Json = msgspec.json.decode(self.record)
        return user


@dataclass(frozen=True, kw_only=True, slots=True)
class Grants:
    """The questions that were answered with yes."""

    allowed: frozenset[PrivilegeQuestion]
    namespace: str
    """Namespace of the installation, in which the right is checked."""

    def refusal(self, claim: Claim, privilege: Privilege) -> str:
        """Return why the writer of an object lacks a privilege, and what to do; empty if it is granted."""
        question = question_of(claim, privilege)
        if question in self.allowed:
            return ""
        kind, namespace, name = claim.owner
        if claim.is_annotated:
            return f"no writer of a {kind} is recorded: declare it in a VariantAutoscaling instead"
        command = (
            f"a user who has it must run {taking_over(f'{kind.short_name} {name}', namespace=namespace)}"
        )
        right = f"use {privilege} in namespace {self.namespace!r}"
        if question is None:
            return f"no writer is recorded, so no user's permission to {right} applies: {command}"
        return (
            f"user {question.user['username']!r}, who wrote it, is not allowed to {right}: grant this"
            f" permission, or {command}"
        )


def question_of(claim: Claim, privilege: Privilege) -> PrivilegeQuestion | None:
    """Return the question for the writer of an object; None if no writer is recorded."""
    return None if claim.writer is None else PrivilegeQuestion(record=claim.writer, privilege=privilege)
