"""A comparison of all judges over all kinds, and its summary."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Final

from apiserver.kinds.registry import KINDS
from apiserver.schema.kind import Kind, Version
from differential.compare import Tally, compare_with_second, compare_with_server
from differential.differences import DIFFERENCES
from differential.generate import cases
from differential.server import Server

_CHUNK: Final = 1000


@dataclass(kw_only=True, slots=True)
class Run:
    """The tallies of a comparison."""

    tallies: list[Tally] = field(default_factory=list)

    @property
    def unexplained(self) -> int:
        """Return the number of objects with a difference that has no known reason."""
        return sum(len(tally.unexplained) for tally in self.tallies)

    def table(self) -> str:
        """Return the summary: a line for each version and judge, and a line for each known difference."""
        heads = (
            f"{'version':<34} {'judge':<11} {'objects':>8} {'accepted':>9} {'agreed':>8} {'explained':>10}"
        )
        lines = [f"{heads} {'unexplained':>12} {'seconds':>8}", *map(_line, self.tallies), ""]
        for item in DIFFERENCES:
            count = sum(tally.explained[item.name] for tally in self.tallies)
            lines.append(f"{count:>8}  {item.name} ({item.pair}): {item.reason}")
        return "\n".join(lines)


def versions(names: Sequence[str]) -> list[tuple[Kind, Version]]:
    """Return every version of the kinds with the given names, or of all kinds."""
    return [(kind, version) for kind in KINDS if not names or kind.kind in names for version in kind.versions]


async def judge_all(
    server: Server, chosen: Sequence[tuple[Kind, Version]], numbers: range, *, say: Callable[[str], None]
) -> Run:
    """Compare all judges on the objects with the given numbers."""
    run = Run()
    for kind, version in chosen:
        await server.install(kind, version)
        with_second, with_server = Tally(name=""), Tally(name="")
        for start in range(numbers.start, numbers.stop, _CHUNK):
            chunk = range(start, min(start + _CHUNK, numbers.stop))
            with_second = compare_with_second(kind, version, chunk).joined(with_second)
            with_server = (
                await compare_with_server(server, kind, version, cases(kind, version, chunk))
            ).joined(with_server)
            say(f"{with_server.name}: {chunk.stop - numbers.start} of {len(numbers)}")
        run.tallies += [with_second, with_server]
    return run


def _line(tally: Tally) -> str:
    version, _, judge = tally.name.partition(" ")
    explained = tally.objects - tally.agreed - len(tally.unexplained)
    return (
        f"{version:<34} {judge:<11} {tally.objects:>8} {tally.accepted:>9} {tally.agreed:>8} {explained:>10}"
        f" {len(tally.unexplained):>12} {tally.seconds:>8.1f}"
    )
