"""How long a binding waits before its last replica goes, where an annotation says so."""

from __future__ import annotations

import pytest

from apiserver.schema.json import Json
from controller.observe.binding_conditions import annotations_finding, grace_seconds

ANNOTATION = "stowplan.dev/scale-to-zero-grace-period"


def binding(text: str | None) -> Json:
    """Return a binding with the annotation, or without any."""
    return {"metadata": {"annotations": {} if text is None else {ANNOTATION: text}}}


@pytest.mark.parametrize(
    ("text", "seconds"), [(None, 60.0), ("0s", 0.0), ("90s", 90.0), ("30m", 1800.0), ("1m30s", 90.0)]
)
def test_the_annotation_goes_before_the_setting(text: str | None, seconds: float) -> None:
    """Without it the setting counts."""
    assert grace_seconds(binding(text), 60.0) == seconds
    assert annotations_finding(binding(text))[0]


@pytest.mark.parametrize("text", ["31m", "-1s", "soon", "", "60"])
def test_what_is_not_understood_changes_nothing(text: str) -> None:
    """The setting counts, and the condition says what is allowed."""
    holds, reason, message = annotations_finding(binding(text))

    assert grace_seconds(binding(text), 60.0) == 60.0
    assert (holds, reason) == (False, "AnnotationNotUnderstood")
    assert message == f"metadata.annotations[{ANNOTATION}]: must be a duration from 0s to 30m, such as 30s"
