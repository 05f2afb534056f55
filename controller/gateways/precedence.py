"""Order of rules for Gateways, which prefer the most specific match instead of the first one.

A Gateway prefers exact paths to prefixes, longer prefixes to shorter ones, then more headers to fewer. Only
among equals the order of the rules decides (`HTTPRouteRule.matches` of gateway.networking.k8s.io/v1). If a
Gateway would prefer a later rule to an earlier one, the earlier rule also gets a match with the conditions of
both, which is at least as specific as the later rule and comes first.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import Final

from controller.gateways.matching import Comparison, Match, Unmet, meet

MOST_MATCHES: Final = 64
"""Maximum number of matches of one rule."""

MOST_MATCHES_IN_ROUTE: Final = 128


@dataclass(frozen=True, kw_only=True, slots=True)
class Ordered:
    """The matches of each rule, and pairs of rules whose order cannot be preserved."""

    matches: tuple[tuple[Match, ...], ...]
    unkept: tuple[tuple[int, int], ...]


@functools.lru_cache(maxsize=128)  # an entry may have 300 KB of texts
def in_order(rules: tuple[Match, ...]) -> Ordered:
    """Return matches with which a Gateway selects the first rule that applies to a request.

    The result is cached, as it is the same for most names of a route and in each reconciliation.
    """
    found: list[list[Match]] = [[] for _ in rules]
    unkept: list[tuple[int, int]] = []
    # From the last rule on, so that an earlier rule also comes before combinations that later rules added.
    for position in reversed(range(len(rules))):
        own = [rules[position]]
        for later in range(position + 1, len(rules)):
            is_kept = [_stay_ahead(own, match) for match in found[later]]
            if not all(is_kept):
                unkept.append((position, later))
        found[position] = own
        if sum(map(len, found)) > MOST_MATCHES_IN_ROUTE:  # now, as each combination costs time
            pairs = tuple((first, second) for second in range(len(rules)) for first in range(second))
            return Ordered(matches=tuple((match,) for match in rules), unkept=pairs)
    return Ordered(matches=tuple(map(tuple, found)), unkept=tuple(sorted(unkept)))


def _stay_ahead(own: list[Match], later: Match) -> bool:
    """Put a rule before a match of a later one, if needed with another match; tell whether that works."""
    together = meet(own[0], later)
    if together is Unmet.APART or _is_ahead(own[0], later):
        return True
    if together is Unmet.UNKNOWN or not _is_ahead(together, later):
        return False
    if together in own:
        return True
    if len(own) == MOST_MATCHES:
        return False
    own.append(together)
    return True


def _is_ahead(some: Match, later: Match) -> bool:
    """Tell whether a Gateway certainly prefers a match to one of a later rule."""
    if some.path == later.path:
        return len(some.headers) >= len(later.headers)
    kinds = some.path.comparison, later.path.comparison
    if Comparison.EXACT in kinds:
        return some.path.comparison is Comparison.EXACT
    if Comparison.REGEX in kinds:
        return False  # the preference depends on the implementation
    return len(some.path.value) > len(later.path.value)
