"""Every sample that we ship is valid by our own judge, and every counter-example is refused in its words."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml
from support.samples import REFUSED, SAMPLES, VALID, refusal_text

from apiserver.kinds.judgement import judged
from apiserver.kinds.registry import KINDS, find_version


def name_of(path: Path) -> str:
    """Return the name under which a file is tested."""
    return str(path.relative_to(SAMPLES))


@pytest.mark.parametrize("path", VALID, ids=name_of)
def test_a_sample_has_no_errors(path: Path) -> None:
    """Manifests of our kinds are valid; others are none of our business."""
    for manifest in yaml.load_all(path.read_text(encoding="utf-8"), Loader=yaml.CSafeLoader):
        found = find_version(manifest["apiVersion"], manifest["kind"])
        if found is not None:
            assert judged(*found, manifest) == []


@pytest.mark.parametrize("path", REFUSED, ids=name_of)
def test_a_counter_example_is_refused_in_the_words_beside_it(path: Path) -> None:
    """What kubectl prints stands in the text file of the same name."""
    manifest = yaml.load(path.read_text(encoding="utf-8"), Loader=yaml.CSafeLoader)
    found = find_version(manifest["apiVersion"], manifest["kind"])

    assert found is not None
    errors = [str(error) for error in judged(*found, manifest)]
    assert refusal_text(manifest, errors) == path.with_suffix(".txt").read_text(encoding="utf-8")


def test_every_kind_has_samples_and_counter_examples() -> None:
    """A new kind comes with both."""
    kinds = {kind.kind for kind in KINDS}

    for paths in (VALID, REFUSED):
        texts = [path.read_text(encoding="utf-8") for path in paths]
        assert kinds <= {
            manifest["kind"]
            for text in texts
            for manifest in yaml.load_all(text, Loader=yaml.CSafeLoader)
            if manifest
        }
