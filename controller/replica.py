"""One of several replicas of a controller: what it is called, and how it ends when another one leads."""

from __future__ import annotations

import os
import secrets
import socket

import structlog

_log = structlog.get_logger(__name__)


def new_identity() -> str:
    """Return a name for this process in a lease that no other one has."""
    return f"{socket.gethostname()}_{secrets.token_hex(4)}"


def exit_at_once() -> None:
    """End the process: another replica may already be writing."""
    _log.error("the lease is lost: exiting")
    os._exit(1)
