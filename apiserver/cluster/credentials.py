"""Address and credentials of the API server, from a kubeconfig or the pod's service account.

Only `Cluster.connect` imports this module, lazily, and after `slim_import`.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import yaml
from kubernetes_asyncio.client import ApiClient, Configuration
from kubernetes_asyncio.config import ConfigException, load_incluster_config, load_kube_config

from apiserver.cluster.errors import NotConfigured

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["ApiClient", "Configuration", "Credentials"]

_HOME_KUBECONFIG = Path("~/.kube/config")


class Credentials:
    """The source of the server's address and credentials, which can be read repeatedly.

    In the usual order: the given file, `KUBECONFIG`, the pod's service account, `~/.kube/config`.
    """

    def __init__(
        self, kubeconfig: Path | str | None, context: str | None, *, environ: Mapping[str, str]
    ) -> None:
        self._context = context or None
        named = str(kubeconfig or environ.get("KUBECONFIG", ""))
        self._in_cluster = not named and not context and bool(environ.get("KUBERNETES_SERVICE_HOST"))
        self._files = named or str(_HOME_KUBECONFIG.expanduser())

    async def load(self) -> Configuration:
        """Read the configuration anew. Raises `NotConfigured`, which names the source and the problem."""
        configuration = Configuration()
        try:
            if self._in_cluster:
                load_incluster_config(client_configuration=configuration)  # type: ignore[no-untyped-call]  # theirs
            else:
                await self._load_files(configuration)
        except _UNREADABLE as error:
            where = "the pod's service account" if self._in_cluster else f"kubeconfig {self._files}"
            raise NotConfigured(f"cannot use {where}: {_reason(error)}") from error
        _strip_token(configuration)
        return configuration

    async def _load_files(self, configuration: Configuration) -> None:
        if not _any_exists(self._files):
            raise NotConfigured(
                f"no cluster is configured: there is no kubeconfig at {self._files}, and this process does"
                " not run in a pod; specify a file with --kubeconfig or KUBECONFIG"
            )
        await load_kube_config(
            config_file=self._files,
            context=self._context,
            client_configuration=configuration,
            persist_config=False,
        )


_EXPLAINED = (ConfigException, OSError, yaml.YAMLError)
"""Errors whose text is about the file."""

# For a malformed file, the loader raises whatever Python error occurs first.
_UNREADABLE = (*_EXPLAINED, ValueError, TypeError, AttributeError, KeyError, AssertionError)


def _reason(error: Exception) -> str:
    text = " ".join(str(error).split())
    if isinstance(error, UnicodeDecodeError):
        return "it is not UTF-8 text"
    if isinstance(error, _EXPLAINED) and text:
        return text
    return "it does not have the structure of a kubeconfig: check it with kubectl config view"


def _any_exists(files: str) -> bool:
    return any(Path(file).expanduser().is_file() for file in files.split(os.pathsep) if file)


def _strip_token(configuration: Configuration) -> None:
    """Strip the newline at the end of a token, which would fail every request as header injection."""
    token = configuration.api_key.get("BearerToken")
    if token:
        configuration.api_key["BearerToken"] = token.strip()
