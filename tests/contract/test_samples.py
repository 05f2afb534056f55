"""Shipped samples are valid, and counterexamples are rejected with the messages beside them."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml
from support.samples import REFUSED, SAMPLES, VALID, refusal_text

from apiserver.kinds.judgement import complete_and_judge, errors_of
from apiserver.kinds.registry import KINDS, find_version
from apiserver.schema.json import JsonValue


def name_of(path: Path) -> str:
    """Return the parameter ID of a file."""
    return str(path.relative_to(SAMPLES))


@pytest.mark.parametrize("path", VALID, ids=name_of)
def test_a_sample_has_no_errors(path: Path) -> None:
    """Only manifests of Stowplan's kinds are checked."""
    for manifest in yaml.load_all(path.read_text(encoding="utf-8"), Loader=yaml.CSafeLoader):
        found = find_version(manifest["apiVersion"], manifest["kind"])
        if found is not None:
            assert errors_of(*found, manifest) == []


def changed_lists(before: JsonValue, after: JsonValue, path: str = "") -> Iterator[str]:
    """Yield the paths of lists that differ."""
    if isinstance(before, dict) and isinstance(after, dict):
        for name, value in before.items():
            yield from changed_lists(value, after[name], f"{path}.{name}")
    elif isinstance(before, list) and before != after:
        yield path


@pytest.mark.parametrize("path", VALID, ids=name_of)
def test_defaults_change_no_list_of_a_sample(path: Path) -> None:
    """Appliers compare and own whole lists: a default within one is drift, or a conflict, in each apply."""
    for manifest in yaml.load_all(path.read_text(encoding="utf-8"), Loader=yaml.CSafeLoader):
        found = find_version(manifest["apiVersion"], manifest["kind"])
        if found is not None:
            value = copy.deepcopy(manifest)
            complete_and_judge(*found, value)
            assert not list(changed_lists(manifest, value))


@pytest.mark.parametrize("path", REFUSED, ids=name_of)
def test_a_counterexample_is_rejected_with_the_message_beside_it(path: Path) -> None:
    """The text file of the same name contains the output of kubectl."""
    manifest = yaml.load(path.read_text(encoding="utf-8"), Loader=yaml.CSafeLoader)
    found = find_version(manifest["apiVersion"], manifest["kind"])

    assert found is not None
    errors = [str(error) for error in errors_of(*found, manifest)]
    assert refusal_text(manifest, errors) == path.with_suffix(".txt").read_text(encoding="utf-8")


def test_every_kind_has_samples_and_counterexamples() -> None:
    """A new kind needs both."""
    kinds = {kind.kind for kind in KINDS}

    for paths in (VALID, REFUSED):
        texts = [path.read_text(encoding="utf-8") for path in paths]
        assert kinds <= {
            manifest["kind"]
            for text in texts
            for manifest in yaml.load_all(text, Loader=yaml.CSafeLoader)
            if manifest
        }
