"""What the API server adds to an object."""

from __future__ import annotations

from hack.bench.received import owned_fields


def test_a_manager_owns_the_fields_that_it_applied() -> None:
    """Items of list maps by name, other lists as a whole."""
    applied = {"spec": {"backends": [{"name": "a", "workers": [{}]}], "owner": "x"}}

    assert owned_fields(applied) == {
        "f:spec": {
            "f:backends": {'k:{"name":"a"}': {".": {}, "f:name": {}, "f:workers": {}}},
            "f:owner": {},
        }
    }
