"""Loads the HTTP library beside everything else that a start takes."""

from __future__ import annotations

import importlib
import sys
import threading
from typing import Final

_LIBRARY: Final = "aiohttp.web"
_WAITS_LONG: Final = "aiohttp.connector"
"""It has every trusted authority of the system read, twice: a sixth of a start, without the interpreter."""

_LOOK_SECONDS: Final = 0.002


def load_http_library_aside() -> None:
    """Have a thread import the library; return once others can go on beside it instead of taking turns."""
    aside = threading.Thread(target=importlib.import_module, args=(_LIBRARY,))
    aside.start()  # no daemon: a process must not end in the middle of it
    while aside.is_alive() and _WAITS_LONG not in sys.modules:
        aside.join(_LOOK_SECONDS)
