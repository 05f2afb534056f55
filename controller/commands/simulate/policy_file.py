"""Read a file with an AutoscalingPolicy, and optionally the AutoscalingPolicyBinding with its targets."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from apiserver.kinds.kthena.autoscaling import AUTOSCALING_POLICY, AUTOSCALING_POLICY_BINDING
from apiserver.schema.json import Json, JsonValue
from controller.closedloop.bound import PolicyFile
from controller.commands.check.documents import EXTENSIONS, Source, read_documents
from controller.commands.check.tree import UnreadableError
from controller.commands.simulate.given import one_source
from controller.policies.policy import UnreadablePolicyError, read_binding, read_policy

_KINDS = {item.kind: item for item in (AUTOSCALING_POLICY, AUTOSCALING_POLICY_BINDING)}


def is_policy_file(name: str) -> bool:
    """Return whether the name of a policy is a file name."""
    return Path(name).suffix in EXTENSIONS


def read_policy_file(name: str) -> tuple[PolicyFile | None, list[str]]:
    """Return the policy in a file, with its binding if it has one; or the problems of the file."""
    source = one_source(name, what="file with an AutoscalingPolicy")
    if source.problem:
        return None, [f"{source.name}: {source.problem}"]
    documents = list(read_documents(source.data))
    if wrong := [item for item in documents if isinstance(item, UnreadableError)]:
        return None, [f"{name}:{item.line}: {item}" for item in wrong]
    objects = [
        part for item in documents if not isinstance(item, UnreadableError) for part in _parts(item.value)
    ]
    policies = [item for item in objects if _is(item, "AutoscalingPolicy")]
    bindings = [item for item in objects if _is(item, "AutoscalingPolicyBinding")]
    if len(policies) != 1 or len(bindings) > 1:
        found = f"{len(policies)} policies and {len(bindings)} bindings"
        return None, [f"{name}: must contain one AutoscalingPolicy and at most one binding, contains {found}"]
    return _read(source, policies[0], bindings[0] if bindings else None)


def _read(source: Source, policy: Json, binding: Json | None) -> tuple[PolicyFile | None, list[str]]:
    problems: list[str] = []
    read, bound = None, None
    try:
        read = read_policy(policy)
    except UnreadablePolicyError as error:
        problems += (f"{source.name}: AutoscalingPolicy: {problem}" for problem in error.problems)
    try:
        bound = None if binding is None else read_binding(binding)
    except UnreadablePolicyError as error:
        problems += (f"{source.name}: AutoscalingPolicyBinding: {problem}" for problem in error.problems)
    name = policy.get("metadata", {}).get("name")
    if bound is not None and bound.policy != name:
        problems.append(f"{source.name}: the binding names policy {bound.policy!r}, the policy is {name!r}")
    if problems or read is None:
        return None, problems
    return PolicyFile(policy=read, binding=bound), []


def _parts(value: JsonValue) -> Iterator[Json]:
    if isinstance(value, dict):
        items = value.get("items") if value.get("kind") == "List" else None
        yield from (
            [item for item in items if isinstance(item, dict)] if isinstance(items, list) else [value]
        )


def _is(value: Json, kind: str) -> bool:
    declared = _KINDS[kind]
    group = str(value.get("apiVersion", "")).rpartition("/")[0]
    return (group, value.get("kind")) == (declared.group, declared.kind)
