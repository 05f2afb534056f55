"""Values of flags in the command lines of inference engines."""

from __future__ import annotations

from typing import Any

import pytest

from controller.observe.performance import engine_argument


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
        "flag=value",
        "flag and value separate, with underscores",
        "in a shell script",
        "flag without a value",
        "another argument",
        "no arguments",
        "neither args nor command",
    ],
)
def test_engine_argument_returns_the_value_of_a_flag(container: dict[str, Any], want: int | None) -> None:
    """A missing flag or value gives None."""
    assert engine_argument({"containers": [{"name": "engine", **container}]}, "max-num-seqs") == want
