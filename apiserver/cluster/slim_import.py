"""Import of the client library without its generated modules.

Importing any part of the library executes its packages, which import about 800 modules of generated models
and API classes: 33 MiB and 0.15 s of CPU for code that is never used, since objects stay raw. An import hook
leaves this code out (docs/design/decisions/0011-client-library.md).
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder
from types import ModuleType
from typing import Final

_CLIENT: Final = "kubernetes_asyncio.client"
_WITHOUT_CODE: Final = frozenset({"kubernetes_asyncio", _CLIENT, f"{_CLIENT}.models"})


class _PackagesWithoutCode(MetaPathFinder, Loader):
    """Finds packages and does not execute their code; their submodules are found as usual."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Return the spec of one of the packages, and None for all other modules."""
        spec = PathFinder.find_spec(fullname, path, target) if fullname in _WITHOUT_CODE else None
        if spec is not None:
            spec.loader = self
        return spec

    def exec_module(self, module: ModuleType) -> None:
        """Leave a package empty, but for what the rest of the library imports from `client` itself."""
        if module.__name__ == _CLIENT:
            vars(module).update(
                Configuration=importlib.import_module(f"{_CLIENT}.configuration").Configuration,
                ApiClient=importlib.import_module(f"{_CLIENT}.api_client").ApiClient,
            )


_FINDER: Final = _PackagesWithoutCode()


def credentials_module() -> ModuleType:
    """Return `apiserver.cluster.credentials`, which imports the client library.

    A library that is loaded already is used as it is. Raises ImportError if it is missing.
    """
    # It is not removed: a thread that imports something at that time would skip the next finder.
    if _FINDER not in sys.meta_path:
        sys.meta_path.insert(0, _FINDER)
    return importlib.import_module("apiserver.cluster.credentials")
