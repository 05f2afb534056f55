"""Numbers out of range, the only error that undecoded JSON text hides."""

from __future__ import annotations

import contextlib

import msgspec
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from apiserver.schema.undecoded import may_exceed_numbers

PLAIN = msgspec.json.Decoder()
UNDECODED = msgspec.json.Decoder(list[msgspec.Raw])

NUMBERS = st.from_regex(r"-?(0|[1-9][0-9]{0,400})(\.[0-9]{1,400})?([eE][+-]?[0-9]{1,5})?", fullmatch=True)
TEXTS = st.one_of(
    NUMBERS,
    st.text().map(lambda text: msgspec.json.encode(text).decode()),
    st.text(alphabet='"\\ud8f09eE+-.x'),
)


@given(st.lists(TEXTS, max_size=4))
@example(["1e999"])
@example(["1E+999"])
@example(["-1e0309"])
@example(["9" * 310])
@example(["9" * 199 + "e99"])
@example(["9" * 5000])
@example(['"\\ud800"'])
def test_text_that_passes_the_range_check_can_be_decoded(texts: list[str]) -> None:
    """If a list can be split into undecoded items, each of them can be decoded later."""
    text = f"[{','.join(texts)}]"
    with contextlib.suppress(msgspec.DecodeError):
        UNDECODED.decode(text)
        if not may_exceed_numbers(text):
            try:
                PLAIN.decode(text)
            except msgspec.DecodeError as error:
                pytest.fail(f"{text} passed: {error}")


@pytest.mark.parametrize("text", ['["20.580","0.41",128,12288]', "[1e99]", "[" + "7" * 199 + "]", ""])
def test_usual_contents_of_objects_pass_the_range_check(text: str) -> None:
    """Otherwise each object would be decoded twice."""
    assert not may_exceed_numbers(text)
