"""Warnings about a valid ModelRoute that is probably a mistake."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Final

from apiserver.kinds.kthena.modelmatch_advice import covers, match_advice, matches_everything
from apiserver.kinds.kthena.modelroute import DEFAULT_WEIGHT
from apiserver.schema.json import Json

_SHORT_PROMPT_TOKENS: Final = 64
"""The smallest plausible limit on prompt tokens: a prompt longer than the limit is always rejected."""


def route_advice(value: Json) -> list[str]:
    """Return a warning for each part of a valid route that is probably a mistake."""
    spec: Json = value["spec"]
    return [*_name_advice(spec), *_rules_advice(spec), *_limit_advice(spec.get("rateLimit"))]


def _name_advice(spec: Json) -> Iterator[str]:
    adapters: Sequence[str] = spec.get("loraAdapters", ())
    for position, name in enumerate(adapters):
        if name in adapters[:position]:
            yield f"spec.loraAdapters[{position}]: listed before"


def _rules_advice(spec: Json) -> Iterator[str]:
    if not spec["rules"]:
        yield "spec.rules: empty: every request is answered with 404"
    answers_to = {spec.get("modelName", ""), *spec.get("loraAdapters", ())} - {""}
    for position, rule in enumerate(spec["rules"]):
        path = f"spec.rules[{position}]"
        match: Json = rule.get("modelMatch") or {}
        yield from match_advice(match, f"{path}.modelMatch")
        if match.get("body", {}).get("model", next(iter(answers_to))) not in answers_to:
            yield f"{path}.modelMatch.body.model: never matches: neither modelName nor one of loraAdapters"
        yield from _target_advice(rule["targetModels"], f"{path}.targetModels")
    yield from _shadow_advice(spec["rules"])
    yield from _duplicate_advice(spec["rules"])


def _target_advice(targets: Sequence[Json], path: str) -> Iterator[str]:
    weights = [target.get("weight", DEFAULT_WEIGHT) for target in targets]
    names = [target["modelServerName"] for target in targets]
    for position, weight in enumerate(weights):
        if names[position] in names[:position]:
            yield f"{path}[{position}]: the same server as targetModels[{names.index(names[position])}]"
        if weight == DEFAULT_WEIGHT and any(0 < other < DEFAULT_WEIGHT for other in weights):
            share = round(100 * weight / sum(weights))
            yield f"{path}[{position}].weight: weights are relative: {weight} of {sum(weights)} is {share} %"


def _shadow_advice(rules: Sequence[Json]) -> Iterator[str]:
    matches: list[Json] = [rule.get("modelMatch") or {} for rule in rules]
    for later, match in enumerate(matches):
        position = next((place for place in range(later) if covers(matches[place], match)), None)
        if position is None:
            continue
        why = "applies to whatever it applies to"
        if matches_everything(matches[position]):
            why = "applies to every request"
        elif matches[position] == match:
            why = "has the same modelMatch"
        yield f"spec.rules[{later}]: never used: spec.rules[{position}] {why}"


def _duplicate_advice(rules: Sequence[Json]) -> Iterator[str]:
    seen: Counter[str] = Counter()
    for position, rule in enumerate(rules):
        name = rule.get("name", "")
        if name and seen[name]:
            yield f"spec.rules[{position}].name: an earlier rule has the same name"
        seen[name] += 1


def _limit_advice(limit: Json | None) -> Iterator[str]:
    if limit is None:
        return
    path = "spec.rateLimit"
    if "inputTokensPerUnit" not in limit and "outputTokensPerUnit" not in limit:
        yield f"{path}: limits nothing; set inputTokensPerUnit or outputTokensPerUnit"
    most = limit.get("inputTokensPerUnit", _SHORT_PROMPT_TOKENS)
    if most < _SHORT_PROMPT_TOKENS:
        yield f"{path}.inputTokensPerUnit: a prompt of more than {most} tokens is always refused"
    if "global" in limit and "redis" not in limit["global"]:
        yield f"{path}.global: without redis, each router counts separately"
