"""Polls a component's readiness."""

from __future__ import annotations

import ssl
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from dataclasses import dataclass

from hack.controlplane.errors import NotReadyError
from hack.controlplane.process import Process

_POLL_SECONDS = 0.05
_ANSWER_SECONDS = 2.0


@dataclass(frozen=True, kw_only=True, slots=True)
class Probe:
    """A URL that returns 2xx when the component is ready."""

    url: str
    authority: str | None = None
    """Path of the CA certificate; None for plain HTTP."""

    client: str | None = None
    """Path of the client certificate, without `.crt` and `.key`; None for no client certificate."""

    def caller(self) -> Callable[[], str | None]:
        """Return a function that probes once: it returns None if ready, else the response."""
        handlers: list[urllib.request.BaseHandler] = [urllib.request.ProxyHandler({})]
        if self.authority is not None:
            context = ssl.create_default_context(cafile=self.authority)
            if self.client is not None:
                context.load_cert_chain(f"{self.client}.crt", f"{self.client}.key")
            handlers.append(urllib.request.HTTPSHandler(context=context))
        opener = urllib.request.build_opener(*handlers)
        return lambda: _ask(opener, self.url)


def wait_until_ready(process: Process, probe: Probe, *, patience_seconds: float) -> None:
    """Poll the probe. Raises ComponentCrashedError if the process ends, NotReadyError after a timeout."""
    deadline = time.monotonic() + patience_seconds
    ask = probe.caller()
    while (answer := ask()) is not None:
        process.check()
        if time.monotonic() > deadline:
            raise NotReadyError(
                f"{process.name} is not ready after {patience_seconds:.0f} s ({probe.url}: {answer}); "
                f"{process.log_tail()}"
            )
        time.sleep(_POLL_SECONDS)
    process.check()


def _ask(opener: urllib.request.OpenerDirector, url: str) -> str | None:
    try:
        with opener.open(url, timeout=_ANSWER_SECONDS):
            return None
    except urllib.error.HTTPError as error:
        with error:
            return f"{error.code} {error.read(200).decode(errors='replace')}"
    except OSError as error:
        return str(error)
