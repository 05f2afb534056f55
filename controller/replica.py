"""Identity of one replica of a controller, and its exit when it loses the lease."""

from __future__ import annotations

import os
import secrets
import socket

from apiserver.log import EventLogger

_log = EventLogger(__name__)


def new_identity() -> str:
    """Return a unique holder identity for this process in a lease."""
    return f"{socket.gethostname()}_{secrets.token_hex(4)}"


def exit_at_once() -> None:
    """Exit the process at once, because another replica may already be writing."""
    _log.error("the lease is lost: exiting")
    os._exit(1)
