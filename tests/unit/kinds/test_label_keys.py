"""Label keys: a name with an optional domain as prefix, each with its own length limit."""

from __future__ import annotations

import pytest

from apiserver.kinds.core.affinity import PodAffinityTerm
from apiserver.kinds.kthena.modelserver import PDGroup
from apiserver.schema.json import Json
from apiserver.schema.validation import validate

LONGEST_DOMAIN = ".".join(["a" * 63] * 3 + ["a" * 61])
TOO_LONG = "prefix part must be no more than 253 characters"


def group(key: str) -> Json:
    """Return a group with this key."""
    return {"groupKey": key, "prefillLabels": {"role": "prefill"}, "decodeLabels": {"role": "decode"}}


def test_the_domain_has_its_own_length_limit() -> None:
    """A short name does not allow a longer domain."""
    assert not validate(PDGroup, group(f"{LONGEST_DOMAIN}/group"))

    (error,) = validate(PDGroup, group(f"{LONGEST_DOMAIN}a/group"))

    assert str(error).startswith("groupKey: Invalid value: ")
    assert str(error).endswith(TOO_LONG)


@pytest.mark.parametrize("field", ["matchLabelKeys", "mismatchLabelKeys"])
def test_the_length_of_a_key_in_a_list_is_limited_as_well(field: str) -> None:
    """The error names the item."""
    term = {"labelSelector": {}, "topologyKey": "zone", field: [f"{LONGEST_DOMAIN}a/group"]}

    (error,) = validate(PodAffinityTerm, term)

    assert str(error).startswith(f"{field}[0]: ")
    assert error.body.endswith(TOO_LONG)


def test_a_key_beyond_the_total_limit_gets_no_error_about_its_domain() -> None:
    """It is reported as too long; only the pattern that it violates may be reported as well."""
    errors = validate(PDGroup, group(f"{'a' * 400}/{'b' * 10}"))

    assert [error.body for error in errors if TOO_LONG in error.body] == []
    assert any(error.reason == "FieldValueTooLong" for error in errors)
