"""Asks a component whether it is ready, until it is."""

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
    """A URL that answers 2xx when the component behind it is ready."""

    url: str
    authority: str | None = None
    """Path of the certificate that the server's is checked against; none for plain HTTP."""

    client: str | None = None
    """Path, without `.crt` and `.key`, of the certificate to show; none to show none."""

    def caller(self) -> Callable[[], str | None]:
        """Make a function that asks once: None when ready, else what was answered."""
        handlers: list[urllib.request.BaseHandler] = [urllib.request.ProxyHandler({})]
        if self.authority is not None:
            context = ssl.create_default_context(cafile=self.authority)
            if self.client is not None:
                context.load_cert_chain(f"{self.client}.crt", f"{self.client}.key")
            handlers.append(urllib.request.HTTPSHandler(context=context))
        opener = urllib.request.build_opener(*handlers)
        return lambda: _ask(opener, self.url)


def wait_until_ready(process: Process, probe: Probe, *, patience_seconds: float) -> None:
    """Poll the probe; raises ComponentCrashedError when the process ends, NotReadyError after `patience`."""
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
