"""The attained share of requests in a status, beside the promised one."""

from __future__ import annotations

from dataclasses import replace

import pytest
from support.manifests import variant
from support.status_inputs import INPUTS, NOW, stored

from apiserver.kinds.llmd import v1alpha2
from apiserver.schema.validation import validate
from controller.sizing.attainment import Attained, ServiceLevel
from controller.sizing.records import Targets
from controller.sizing.sizing import SizedVariant
from controller.variants.status import planned_status

LEVELS = {
    "most requests are late": (
        Attained(requests=2000.0, missed_ttft=100.0, missed_itl=400.0),
        ("False", "TargetsMissed"),
        "76 % of the model's 2000 requests within the last hour met TTFT 2 s and ITL 80 ms; 95 % are"
        " promised; 5 % missed the TTFT and 20 % the ITL",
    ),
    "few requests are late": (
        Attained(requests=2000.0, missed_ttft=40.0),
        ("True", "TargetsMet"),
        "98 % of the model's 2000 requests within the last hour met TTFT 2 s and ITL 80 ms; 95 % are"
        " promised",
    ),
    "too few to judge": (Attained(requests=99.0, missed_ttft=99.0), None, ""),
}


@pytest.mark.parametrize("name", LEVELS)
def test_a_condition_compares_what_was_attained_with_what_is_promised(name: str) -> None:
    """The figures are in the decision in any case."""
    attained, want, message = LEVELS[name]
    level = ServiceLevel(targets=Targets(ttft_seconds=2.0, itl_seconds=0.08), attained=attained)
    value = stored(variant("chat"))

    value["status"] = planned_status(value, replace(INPUTS, sized=SizedVariant(service_level=level)), now=NOW)

    found = [item for item in value["status"]["conditions"] if item["type"] == "AttainmentKept"]
    assert [(item["status"], item["reason"]) for item in found] == ([want] if want else [])
    assert [item["message"] for item in found] == ([message] if want else [])
    assert value["status"]["decision"]["serviceLevel"]["requests"] == attained.requests
    assert validate(v1alpha2.VariantAutoscaling, value) == []
