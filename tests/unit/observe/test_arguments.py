"""What command lines say of an engine, and that those who say nothing are no error."""

from __future__ import annotations

from typing import Any

import pytest

from controller.observe.arguments import engine_argument


@pytest.mark.parametrize(
    ("container", "want"),
    [
        ({"args": ["--max-num-seqs=64"]}, 64),
        ({"args": ["--max_num_seqs", "64"]}, 64),
        ({"command": ["sh", "-c", "exec vllm serve m --max-num-seqs 64"]}, 64),
        ({"args": ["--max-num-seqs"]}, None),
        ({"args": ["serve"]}, None),
        ({"args": []}, None),
        ({}, None),
    ],
    ids=[
        "with =",
        "apart, with underscores",
        "in a script",
        "without its value",
        "something else",
        "no words",
        "nothing",
    ],
)
def test_engine_argument(container: dict[str, Any], want: int | None) -> None:
    """The number that a flag is given, or nothing."""
    assert engine_argument({"containers": [{"name": "engine", **container}]}, "max-num-seqs") == want
