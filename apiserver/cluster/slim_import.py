"""Loading the client library without its generated half.

Importing any part of the library executes its package, which imports about 1,200 modules of generated models
and API classes: 33 MiB and 0.3 s of CPU for things that we never use, as we keep objects raw. So the three
packages that do this are put in place empty, before the parts that we do use (configuration, transport,
credentials) are imported.
"""

from __future__ import annotations

import importlib
import importlib.util
import sys
import threading
from types import ModuleType

_LIBRARY = "kubernetes_asyncio"
_CLIENT = f"{_LIBRARY}.client"
_lock = threading.Lock()


def load_client_library() -> None:
    """Make `from kubernetes_asyncio.client import ApiClient, Configuration` work, and cheap.

    Does nothing when the library is loaded already, whole or slim. Raises `ImportError` when it is missing.
    """
    with _lock:
        if _LIBRARY in sys.modules:
            return
        folder = _folder_of(_LIBRARY)
        _put(_LIBRARY, [folder])
        client = _put(_CLIENT, [f"{folder}/client"])
        _put(f"{_CLIENT}.models", [])
        configuration = importlib.import_module(f"{_CLIENT}.configuration")
        api_client = importlib.import_module(f"{_CLIENT}.api_client")
        vars(client).update(Configuration=configuration.Configuration, ApiClient=api_client.ApiClient)


def _folder_of(library: str) -> str:
    """Find the package's folder without importing it."""
    spec = importlib.util.find_spec(library)
    if spec is None or not spec.submodule_search_locations:
        raise ImportError(f"the package {library} is not installed", name=library)
    return spec.submodule_search_locations[0]


def _put(name: str, path: list[str]) -> ModuleType:
    """Put an empty package in place, as its parent's attribute, too."""
    module = ModuleType(name, "Put in place of a package whose own code is not wanted.")
    module.__path__ = path
    parent, _, child = name.rpartition(".")
    if parent:
        setattr(sys.modules[parent], child, module)
    sys.modules[name] = module
    return module
