"""Log lines: one line per event, whatever its content."""

from __future__ import annotations

import io
import json
import logging
import subprocess
import sys
import warnings
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from apiserver.log import EventLogger, configure_logging, console_line, json_line

if TYPE_CHECKING:
    from collections.abc import Iterator


class Hostile:
    """An object whose `repr` fails."""

    def __repr__(self) -> str:
        raise RuntimeError("no")


def nested(depth: int) -> list[Any]:
    """Return nested lists."""
    value: list[Any] = []
    for _ in range(depth):
        value = [value]
    return value


def endless() -> dict[str, Any]:
    """Return an object that contains itself."""
    value: dict[str, Any] = {}
    value["self"] = value
    return value


HOSTILE = {
    "a forged line": 'x\n{"level":"info","event":"forged"}',
    "other line separators": "a\rb\x0bc\x0cd\x1ce\x85f\u2028g\u2029h",
    "terminal escape sequences": "\x1b[2J\x1b]0;title\x07",
    "a bidirectional control character": "\u202eabc",
    "unpaired surrogates": "\ud800 \udfff",
    "nul": "\x00",
    "bytes": b"\xff\n",
    "not a number": float("nan"),
    "infinity": [float("inf"), -float("inf")],
    "a number beyond any integer": 10**400,
    "an object without a repr": Hostile(),
    "keys that are not strings": {1: 2, None: 3, (4, "\n"): 5, Hostile(): 6},
    "a set": {1, 2},
    "very deep": nested(10_000),
    "endless": endless(),
    "very long": "x" * 5_000_000,
    "very wide": list(range(1_000_000)),
    "many keys": {str(number): number for number in range(100_000)},
    "an exception": ValueError("a\nb"),
}


@pytest.fixture
def lines() -> Iterator[io.StringIO]:
    """Return a stream that receives the log lines; restore the logging configuration afterwards."""
    stream = io.StringIO()
    root, hook = logging.getLogger(), sys.excepthook
    handlers, level = [*root.handlers], root.level
    configure_logging(format="json", stream=stream)
    yield stream
    logging.captureWarnings(capture=False)
    root.handlers, sys.excepthook = handlers, hook
    root.setLevel(level)


@pytest.mark.parametrize("what", HOSTILE)
def test_a_json_line_is_valid_for_any_value(what: str) -> None:
    """A value as content, event or name gives one line of bounded size."""
    value = HOSTILE[what]
    line = json_line({"event": value, "level": "info", str(what): value})

    assert line.isascii()
    assert len(line.splitlines()) == 1
    assert len(line) < 500_000
    assert json.loads(line)["level"] == "info"


@pytest.mark.parametrize("what", HOSTILE)
@pytest.mark.parametrize("colour", [True, False])
def test_a_console_line_is_printable_for_any_value(what: str, *, colour: bool) -> None:
    """A value can neither end the line nor send commands to the terminal."""
    line = console_line({"event": HOSTILE[what], "level": "info", "value": HOSTILE[what]}, colour=colour)
    bare = line.replace("\x1b[32m", "").replace("\x1b[1m", "").replace("\x1b[0m", "")

    assert bare.isprintable()


@given(st.recursive(st.text() | st.binary() | st.floats() | st.integers(), st.lists))
def test_random_values_give_one_line(value: object) -> None:
    """The line is valid JSON."""
    line = json_line({"event": "e", "value": value})

    assert len(line.splitlines()) == 1
    assert json.loads(line)["event"] == "e"


def test_time_level_logger_and_event_are_the_first_members(lines: io.StringIO) -> None:
    """Members of the same names do not replace them."""
    before = datetime.now(UTC)
    EventLogger("a.b").warning("it happened", z=1, time="never", level=2)
    time, *record = json.loads(lines.getvalue()).items()

    assert time[0] == "time"
    assert before <= datetime.fromisoformat(time[1]) <= datetime.now(UTC)
    assert record == [("level", "warning"), ("logger", "a.b"), ("event", "it happened"), ("z", 1)]


def test_events_below_the_level_are_not_written(lines: io.StringIO) -> None:
    """This holds for libraries, too."""
    for logger in (EventLogger("ours"), logging.getLogger("other")):
        logger.debug("quiet")
        logger.info("loud")

    assert [json.loads(line)["event"] for line in lines.getvalue().splitlines()] == ["loud"] * 2


def test_records_of_the_standard_library_have_the_same_format(
    lines: io.StringIO, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A record whose arguments do not fit its message is still written."""
    root = logging.getLogger()
    ours = [handler for handler in root.handlers if type(handler.formatter).__module__ == "apiserver.log"]
    monkeypatch.setattr(root, "handlers", ours)  # pytest's handler would raise on the second record
    logging.getLogger("aiohttp.server").error("%s of\n%s", "one", "two")
    logging.getLogger("x").error("%d", "no number")
    first, second = (json.loads(line) for line in lines.getvalue().splitlines())

    assert (first["event"], first["logger"], first["level"]) == ("one of\ntwo", "aiohttp.server", "error")
    assert second["event"] == "%d ('no number',)"


def test_a_traceback_is_a_member_of_its_event(lines: io.StringIO) -> None:
    """This holds for libraries, too; of a long traceback, the end is kept."""
    error = ValueError("x" * 100_000 + "\nthe end")
    for logger in (EventLogger("ours"), logging.getLogger("x")):
        logger.error("failed", exc_info=error)
    records = [json.loads(line) for line in lines.getvalue().splitlines()]

    assert [record["exception"][-7:] for record in records] == ["the end"] * 2
    assert all(len(record["exception"]) < 50_000 for record in records)


def test_the_exception_being_handled_is_logged(lines: io.StringIO) -> None:
    """The other members are written as well."""
    try:
        int("the reason")
    except ValueError:
        EventLogger("ours").exception("failed", uid="u")
    record = json.loads(lines.getvalue())

    assert (record["level"], record["uid"]) == ("error", "u")
    assert "the reason" in record["exception"].splitlines()[-1]


def test_python_warnings_are_logged(lines: io.StringIO) -> None:
    """The warning's text is in the event."""
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        warnings.warn("careful", stacklevel=1)

    assert "careful" in json.loads(lines.getvalue())["event"]


def test_console_lines_are_readable() -> None:
    """The event comes first, then members, quoted if necessary, and a traceback below."""
    line = console_line(
        {
            "event": "leading",
            "level": "info",
            "time": "2026-07-01T12:00:00.123456Z",
            "logger": "x",
            "lease": "a",
            "why": "two words",
            "count": 3,
        },
        "Traceback\nValueError",
        colour=False,
    )

    assert line == '12:00:00.123 info     leading lease=a why="two words" count=3\n  Traceback\n  ValueError'


@pytest.mark.parametrize(
    "program",
    [
        pytest.param("raise ValueError('a\\nb')", id="the main thread"),
        pytest.param(
            "import threading\n"
            "thread = threading.Thread(target=lambda: 1 / 0)\n"
            "thread.start()\nthread.join()\nraise SystemExit(1)",
            id="another thread",
        ),
        pytest.param(
            "import asyncio\n"
            "async def f():\n"
            "    asyncio.get_running_loop().call_soon(lambda: 1 / 0)\n"
            "    await asyncio.sleep(0)\n"
            "asyncio.run(f())\nraise SystemExit(1)",
            id="a callback of the event loop",
        ),
    ],
)
def test_an_uncaught_exception_is_logged_in_one_line(program: str) -> None:
    """The JSON line contains the traceback, whether a thread or the event loop raised it."""
    start = "from apiserver.log import configure_logging\nconfigure_logging()\n"
    done = subprocess.run(
        [sys.executable, "-c", start + program], capture_output=True, text=True, check=False
    )
    (line,) = done.stderr.splitlines()

    assert done.returncode == 1
    assert "Error" in json.loads(line)["exception"]
