"""Import of the client library without its generated modules.

Importing any part of the library executes its package, which imports about 1,200 modules of generated models
and API classes: 33 MiB and 0.3 s of CPU for code that is never used, since objects stay raw. Therefore the
three packages that do this are replaced by empty ones before the parts in use (configuration, transport,
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
    """Make `from kubernetes_asyncio.client import ApiClient, Configuration` work at low cost.

    Does nothing if the library is loaded already, whole or slim. Raises `ImportError` if it is missing.
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
    """Return the package's folder without importing it."""
    spec = importlib.util.find_spec(library)
    if spec is None or not spec.submodule_search_locations:
        raise ImportError(f"the package {library} is not installed", name=library)
    return spec.submodule_search_locations[0]


def _put(name: str, path: list[str]) -> ModuleType:
    """Install an empty package in `sys.modules`, and as an attribute of its parent."""
    module = ModuleType(name, "Put in place of a package whose own code is not wanted.")
    module.__path__ = path
    parent, _, child = name.rpartition(".")
    if parent:
        setattr(sys.modules[parent], child, module)
    sys.modules[name] = module
    return module
