"""Gives memory back to the system after a large request.

glibc raises the size from which it asks the system for a block of its own, and then keeps what it got: a
process that once answered fifty megabytes would hold them for good, beside a container's limit. Source:
mallopt(3) and malloc_trim(3). Without glibc nothing here does anything.
"""

from __future__ import annotations

import asyncio
import ctypes
from typing import Final

LARGE_BYTES: Final = 1 << 20
"""From this size of a request or answer on it is worth the while."""

_TRIM_THRESHOLD: Final = -1
_MMAP_THRESHOLD: Final = -3
_BLOCK_BYTES: Final = 1 << 20
_AFTER_SECONDS: Final = 0.5


def ask_for_blocks() -> None:
    """Let every large allocation be a block of its own, which goes back when it is freed."""
    library = _glibc()
    if library is not None:
        library.mallopt(_MMAP_THRESHOLD, _BLOCK_BYTES)
        library.mallopt(_TRIM_THRESHOLD, _BLOCK_BYTES)


def give_back_soon() -> None:
    """Return free memory to the system once the answer at hand is on its way."""
    library = _glibc()
    if library is not None:
        asyncio.get_running_loop().call_later(_AFTER_SECONDS, library.malloc_trim, 0)


def _glibc() -> ctypes.CDLL | None:
    library = ctypes.CDLL(None)
    return library if hasattr(library, "malloc_trim") and hasattr(library, "mallopt") else None
