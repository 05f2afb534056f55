"""When and how urgently the status of a binding is written."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from apiserver.schema.json import Json
from controller.bindings.status import REFRESH_SECONDS, binding_news
from controller.variants.publishing import News

NOW = datetime(2026, 11, 25, 12, tzinfo=UTC)
BOUND = {"type": "ScalingActive", "status": "True", "reason": "Scaling", "message": "3 replicas"}
UNREAD = {
    "type": "TargetsResolved",
    "status": "False",
    "reason": "NotReadable",
    "message": "the scale of Deployment/llm was not read yet",
}
FORBIDDEN = UNREAD | {"message": "the scale of Deployment/llm may not be read"}
THEIRS = {"type": "Healthy", "status": "False", "reason": "Busy", "message": "it is busy"}
LATE = UNREAD | {"message": "the scale of Deployment/llm was not read for 12 s"}
LATER = UNREAD | {"message": "the scale of Deployment/llm was not read for 27 s"}


def _status(*conditions: Json, age_seconds: float = 5.0, **more: object) -> Json:
    written = (NOW - timedelta(seconds=age_seconds)).isoformat()
    return {"conditions": list(conditions), "history": "h", "lastDecisionTime": written} | more


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        pytest.param(_status(BOUND), _status(BOUND), None, id="nothing changed"),
        pytest.param(
            _status(THEIRS, BOUND), _status(BOUND), None, id="a condition of another controller, which stays"
        ),
        pytest.param(_status(BOUND, age_seconds=-90.0), _status(BOUND), News.URGENT, id="a time to come"),
        pytest.param(_status(BOUND) | {"lastDecisionTime": None}, _status(BOUND), News.URGENT, id="no time"),
        pytest.param(
            _status(UNREAD), _status(UNREAD | {"reason": "NotFound"}), News.URGENT, id="another reason"
        ),
        pytest.param(
            _status(UNREAD), _status(FORBIDDEN), News.ORDINARY, id="another cause of the same reason"
        ),
        pytest.param(_status(LATE), _status(LATER), None, id="another number in the same cause"),
        pytest.param(
            _status(BOUND),
            _status(BOUND | {"message": "4 replicas, within a window"}),
            None,
            id="another message of a condition that holds",
        ),
        pytest.param(_status(BOUND), _status(BOUND, history="i"), None, id="figures of a recent status"),
        pytest.param(
            _status(BOUND, age_seconds=REFRESH_SECONDS),
            _status(BOUND, history="i"),
            News.ORDINARY,
            id="figures of an old status",
        ),
    ],
)
def test_a_status_is_written_if_its_content_changed(old: Json, new: Json, expected: News | None) -> None:
    """It is written at once, in turn or not at all, depending on what differs."""
    assert binding_news(old, new, now=NOW) is expected
