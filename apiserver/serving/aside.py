"""Import of the HTTP library in parallel with the rest of a start."""

from __future__ import annotations

import importlib
import sys
import threading
from typing import Final

_LIBRARY: Final = "aiohttp.web"
_WAITS_LONG: Final = "aiohttp.connector"
"""A module that makes OpenSSL read all trusted authorities of the system, twice. This takes a sixth of a
start, without holding the GIL."""

_LOOK_SECONDS: Final = 0.002


def load_http_library_aside() -> None:
    """Import the library in a thread; return once the import no longer competes for the GIL."""
    aside = threading.Thread(target=importlib.import_module, args=(_LIBRARY,))
    aside.start()  # not a daemon: the process must not exit in the middle of the import
    while aside.is_alive() and _WAITS_LONG not in sys.modules:
        aside.join(_LOOK_SECONDS)
