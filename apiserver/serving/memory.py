"""Release of memory to the operating system after a large request.

glibc raises its threshold for allocating a block by mmap, and then keeps freed memory: a process that once
sent a response of fifty megabytes would hold them for good, against its container's limit. Source: mallopt(3)
and malloc_trim(3). Without glibc these functions do nothing.
"""

from __future__ import annotations

import asyncio
import ctypes
from typing import Final

LARGE_BYTES: Final = 1 << 20
"""The size of a request or response from which releasing memory is worthwhile, in bytes."""

_TRIM_THRESHOLD: Final = -1
_MMAP_THRESHOLD: Final = -3
_BLOCK_BYTES: Final = 1 << 20
_AFTER_SECONDS: Final = 0.5


def ask_for_blocks() -> None:
    """Make every large allocation a separate block, which is released when freed."""
    library = _glibc()
    if library is not None:
        library.mallopt(_MMAP_THRESHOLD, _BLOCK_BYTES)
        library.mallopt(_TRIM_THRESHOLD, _BLOCK_BYTES)


def give_back_soon() -> None:
    """Release free memory to the operating system once the current response is being sent."""
    library = _glibc()
    if library is not None:
        asyncio.get_running_loop().call_later(_AFTER_SECONDS, library.malloc_trim, 0)


def _glibc() -> ctypes.CDLL | None:
    library = ctypes.CDLL(None)
    return library if hasattr(library, "malloc_trim") and hasattr(library, "mallopt") else None
