"""The grace period before a binding's last replica is removed, as set by an annotation."""

from __future__ import annotations

import pytest

from apiserver.schema.json import Json
from controller.observe.binding_conditions import annotations_finding, grace_seconds

ANNOTATION = "stowplan.dev/scale-to-zero-grace-period"


def binding(text: str | None) -> Json:
    """Return a binding, with the annotation if a text is given."""
    return {"metadata": {"annotations": {} if text is None else {ANNOTATION: text}}}


@pytest.mark.parametrize(
    ("text", "seconds"), [(None, 60.0), ("0s", 0.0), ("90s", 90.0), ("30m", 1800.0), ("1m30s", 90.0)]
)
def test_the_annotation_takes_precedence_over_the_setting(text: str | None, seconds: float) -> None:
    """Without the annotation, the setting applies."""
    assert grace_seconds(binding(text), 60.0) == seconds
    assert annotations_finding(binding(text))[0]


@pytest.mark.parametrize("text", ["31m", "-1s", "soon", "", "60"])
def test_an_invalid_annotation_is_ignored_and_reported(text: str) -> None:
    """The setting applies, and the condition gives the allowed values."""
    holds, reason, message = annotations_finding(binding(text))

    assert grace_seconds(binding(text), 60.0) == 60.0
    assert (holds, reason) == (False, "AnnotationNotUnderstood")
    assert message == f"metadata.annotations[{ANNOTATION}]: must be a duration from 0s to 30m, such as 30s"
