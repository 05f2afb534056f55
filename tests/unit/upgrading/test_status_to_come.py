"""A status that is announced comes, unless somebody wrote another one meanwhile."""

from __future__ import annotations

from typing import Any

import pytest

from apiserver.upgrading.status_to_come import ANNOTATION, announcing, resumed

OLD = {"currentAlloc": {"accelerator": "H100", "numReplicas": 4}}
NEW = {"desiredOptimizedAlloc": {"accelerator": "H100"}}
WANTED = {"metadata": {"name": "a", "annotations": {"x": "y"}}, "spec": {"modelID": "m"}, "status": NEW}


def announced(status: dict[str, Any] = OLD) -> dict[str, Any]:
    """Return the object after the write of its spec, which leaves the status alone."""
    return announcing(WANTED, OLD) | {"status": status}


def test_an_interrupted_run_goes_on_with_the_status_that_was_announced() -> None:
    """Whatever the order of its members was."""
    shuffled = {"currentAlloc": {"numReplicas": 4, "accelerator": "H100"}}

    assert resumed(announced()) == resumed(announced(shuffled)) == WANTED


def test_a_status_that_somebody_else_wrote_stays() -> None:
    """As does the announced one itself; the annotation goes."""
    other = {"actuation": {"applied": False}}

    assert resumed(announced(other)) == WANTED | {"status": other}
    assert resumed(announced(NEW)) == WANTED


@pytest.mark.parametrize("text", ["", "{}", "[]", '{"status": 1}', '{"status": {}, "instead": 3}'])
def test_an_annotation_that_is_not_ours_changes_nothing(text: str) -> None:
    """It is only taken away."""
    value = WANTED | {"metadata": {"name": "a", "annotations": {ANNOTATION: text}}}

    assert resumed(value) == WANTED | {"metadata": {"name": "a"}}


def test_an_object_that_announces_nothing_is_itself() -> None:
    """Whatever its shape."""
    for value in (WANTED, {}, {"metadata": None}, {"metadata": {"annotations": []}}):
        assert resumed(value) is value
