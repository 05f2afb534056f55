"""Random small placement problems that use all fields of the record, and their brute-force optimum."""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import replace
from functools import cache
from itertools import product
from typing import TYPE_CHECKING

from controller.planning.pod_rules import MostPerNode, SpreadTerms
from controller.planning.problem import (
    NO_DOMAIN,
    Bin,
    CountedReplicas,
    CoverRow,
    GrowthTerms,
    Level,
    LimitKind,
    LimitRow,
    PlacementProblem,
    Stage,
    VariantTerms,
    free_after_removals,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from random import Random

    from controller.planning.problem import Solution


def small_problem(random: Random) -> PlacementProblem:
    """Return a problem of up to three models, three nodes and one pool of nodes to add."""
    free = [random.choice((1, 2, 4, 8)) for _ in range(random.randint(1, 3))]
    bins = 1 if random.random() < 0.5 else 2
    home = [random.randrange(bins) for _ in free]
    variants, rows, members = list[VariantTerms](), list[CoverRow](), list[range]()
    for model in range(random.randint(1, 3)):
        own = range(len(variants), len(variants) + random.randint(1, 2))
        members.append(own)
        variants += [_variant(random, f"{model}-{v}", free) for v in own]
        rows += _rows(random, model, own, variants)
    allowed = [[v for v, _ in enumerate(variants) if random.random() < 0.7] for _ in range(bins)]
    for v, terms in enumerate(variants):
        for nodes in terms.bound_replicas:
            for node in nodes:
                free[node] -= terms.accelerators
        if terms.accelerators and not any(v in group for group in allowed):
            allowed[random.randrange(bins)].append(v)
    users = [tuple(v for v in sorted(group) if variants[v].accelerators) for group in allowed]
    return PlacementProblem(
        variants=tuple(variants),
        free=tuple(free),
        bins=tuple(
            Bin(
                nodes=tuple(n for n, where in enumerate(home) if where == b),
                sizes=tuple(sorted({variants[v].accelerators for v in group})),
                variants=group,
            )
            for b, group in enumerate(users)
            if group
        ),
        rows=tuple(rows),
        limits=tuple(_limits(random, variants)),
        growth=(
            GrowthTerms(
                name="pool", bin=0, accelerators=random.choice((2, 4)), price=random.randint(0, 40), limit=1
            ),
        )
        if random.random() < 0.3 and users[0]
        else (),
    )


def constrained_problem(random: Random) -> PlacementProblem:
    """Return a problem in which pods are spread over zones, kept together in racks, or kept apart.

    Each bin has nodes of one zone only, like the bins that `inventory.bins` makes.
    """
    zones = random.randint(1, 3)
    zone = [*range(zones), *(random.randrange(zones) for _ in range(random.randint(0, 2)))]
    rack = [random.choice((0, 0, 1, NO_DOMAIN)) for _ in zone]
    free = [random.choice((1, 2, 2, 4)) for _ in zone]
    variants, rows = list[VariantTerms](), list[CoverRow]()
    for model in range(random.randint(1, 2)):
        own = range(len(variants), len(variants) + random.randint(1, 2))
        variants += [
            _constrained(random, _variant(random, f"{model}-{v}", free), tuple(range(zones))) for v in own
        ]
        rows += _rows(random, model, own, variants)
    for terms in variants:
        for taken in terms.bound_replicas:
            for node in taken:
                free[node] -= terms.accelerators
    allowed = [v for v, terms in enumerate(variants) if terms.accelerators]
    groups: dict[tuple[int, bool], list[int]] = defaultdict(list)
    for node, where in enumerate(zone):
        groups[where, rack[node] != NO_DOMAIN].append(node)
    bins = []
    for (_, has_rack), nodes in sorted(groups.items()):
        group = tuple(v for v in allowed if has_rack or variants[v].together is None)
        if group:
            sizes = tuple(sorted({variants[v].accelerators for v in group}))
            bins.append(Bin(nodes=tuple(nodes), sizes=sizes, variants=group))
    return PlacementProblem(
        variants=tuple(variants),
        free=tuple(free),
        bins=tuple(bins),
        rows=tuple(rows),
        limits=tuple(_limits(random, variants)),
        growth=tuple(_pools(random, bins, zone, rack)),
        topologies=(tuple(zone), tuple(rack)),
    )


def _pools(
    random: Random, bins: Sequence[Bin], zone: Sequence[int], rack: Sequence[int]
) -> Iterator[GrowthTerms]:
    """Yield up to two pools that add nodes to a bin, in its zone and, if it has racks, in any rack."""
    for number in range(random.choice((0, 0, 0, 1, 1, 2)) if bins else 0):
        b = random.randrange(len(bins))
        like = bins[b].nodes[0]
        yield GrowthTerms(
            name=f"pool-{number}",
            bin=b,
            accelerators=random.choice((2, 4)),
            price=random.randint(0, 40),
            limit=random.choice((1, 2)),
            domains=(zone[like], NO_DOMAIN if rack[like] == NO_DOMAIN else random.choice((0, 1))),
        )


def _constrained(random: Random, terms: VariantTerms, zones: tuple[int, ...]) -> VariantTerms:
    """Return the variant with a topology rule or with several pods in each replica, or unchanged."""
    kind = random.choice(("plain", "spread", "spread", "apart", "together", "pods"))
    if kind == "spread":
        skew = random.choice((1, 1, 1, 2))
        return replace(terms, spread=SpreadTerms(topology=0, max_skew=skew, domains=zones))
    if kind == "apart":
        return replace(terms, most_per_node=MostPerNode(pods=random.choice((1, 1, 2))))
    if kind == "plain" or not terms.accelerators:
        return terms
    bound = tuple(nodes * 2 for nodes in terms.bound_replicas)
    upper = min(2, terms.upper)
    together = 1 if kind == "together" else None
    return replace(
        terms,
        pods=2,
        together=together,
        bound_replicas=bound,
        upper=upper,
        lower=min(terms.lower, upper),
        accelerators=random.choice((1, 2)),
    )


def _variant(random: Random, name: str, free: Sequence[int]) -> VariantTerms:
    bound = tuple(
        random.choice((*((n,) for n in range(len(free))), ())) for _ in range(random.choice((0, 0, 1, 2)))
    )
    upper = random.randint(1, 3)
    return VariantTerms(
        name=name,
        accelerators=random.choice((0, 1, 1, 2, 2, 3, 4)),
        cost=random.randint(0, 30),
        start_price=random.choice((0, 3)),
        stop_price=random.choice((0, 2)),
        current=len(bound) + random.randint(0, 1),
        bound_replicas=bound,
        ready=random.randint(0, len(bound)),
        lower=min(len(bound), upper) if random.random() < 0.15 else 0,
        upper=upper,
    )


def _rows(random: Random, model: int, own: range, variants: Sequence[VariantTerms]) -> Iterator[CoverRow]:
    priority = random.choice((1, 10))

    def row(stage: Stage, requirement: int, terms: tuple[tuple[int, int], ...], weight: int = 1) -> CoverRow:
        return CoverRow(
            name=f"model {model}",
            stage=stage,
            priority=priority,
            model=model,
            requirement=requirement,
            terms=terms,
            weight=weight,
        )

    if random.random() < 0.6:
        yield row(Stage.MINIMUM, 1, tuple((v, 1) for v in own))
    if random.random() < 0.2:
        yield row(Stage.MINIMUM, random.randint(1, 2), ((own[0], 1),))
    amounts = tuple((v, random.choice((60, 100, 130))) for v in own)
    if random.random() < 0.9:
        yield row(Stage.DEMAND, random.randint(1, 400), amounts, random.choice((1, 1, 5)))
    if random.random() < 0.15:
        yield row(Stage.DEMAND, random.randint(1, 2), ((own[-1], 1),))
    if any(variants[v].ready for v in own) and random.random() < 0.5:
        continued = row(Stage.CONTINUITY, random.randint(1, 200), amounts)
        yield replace(continued, counted=CountedReplicas.READY)
    if random.random() < 0.4:
        load = random.randint(1, 300)
        yield row(Stage.LOAD, load, amounts, 8)
        yield replace(row(Stage.LOAD, load, amounts, 2), counted=CountedReplicas.EXISTING)


def _limits(random: Random, variants: Sequence[VariantTerms]) -> Iterator[LimitRow]:
    if random.random() < 0.25:
        chosen = [v for v in range(len(variants)) if random.random() < 0.6]
        yield LimitRow(
            name="quota",
            kind=LimitKind.QUOTA,
            limit=random.randint(0, 8),
            terms=tuple((v, variants[v].accelerators) for v in chosen if variants[v].accelerators),
        )
    if random.random() < 0.15:
        yield LimitRow(
            name="budget",
            kind=LimitKind.BUDGET,
            limit=random.randint(10, 120),
            terms=tuple((v, t.cost) for v, t in enumerate(variants)),
        )


def added_nodes(problem: PlacementProblem, solution: Solution) -> tuple[int, ...]:
    """Return how many nodes a solution adds of each growth; zeros if it does not state them."""
    return solution.added or (0,) * len(problem.growth)


def rank(problem: PlacementProblem, replicas: Sequence[int], added: Sequence[int]) -> list[int]:
    """Return the lexicographic objective of replica counts and added nodes, computed independently."""
    missing: dict[Level, int] = defaultdict(int)
    for row in problem.rows:
        have = 0
        for v, amount in row.terms:
            ready, existing = problem.variants[v].ready, len(problem.variants[v].bound_replicas)
            most = {
                CountedReplicas.ALL: replicas[v],
                CountedReplicas.EXISTING: existing,
                CountedReplicas.READY: ready,
            }[row.counted]
            have += amount * min(replicas[v], most)
        short = max(0, row.requirement - have)
        missing[row.stage, 0 if row.stage is Stage.CONTINUITY else row.priority] += row.weight * -(
            -1000 * short // row.requirement
        )
    cost = sum(growth.price * count for growth, count in zip(problem.growth, added, strict=True))
    for count, terms in zip(replicas, problem.variants, strict=True):
        cost += count * terms.cost
        cost += (
            max(0, count - terms.current) * terms.start_price
            + max(0, terms.current - count) * terms.stop_price
        )
    return [*(missing[level] for level in sorted(missing)), cost]


def is_possible(problem: PlacementProblem, replicas: Sequence[int], added: Sequence[int]) -> bool:
    """Return whether every replica fits on a node within all limits, by trying all assignments."""
    for row in problem.limits:
        untouched = sum(amount * problem.variants[v].lower for v, amount in row.terms)
        if sum(amount * replicas[v] for v, amount in row.terms) > max(row.limit, untouched):
            return False
    if problem.growth:
        problem = _grown(problem, added)
    free = free_after_removals(problem, tuple(replicas))
    where = [
        [n for bin_ in problem.bins if v in bin_.variants for n in bin_.nodes] for v in range(len(replicas))
    ]
    new = [
        v
        for v, count in enumerate(replicas)
        for _ in range(
            max(0, count - len(problem.variants[v].bound_replicas)) if problem.variants[v].accelerators else 0
        )
    ]

    if any(terms.is_topology_constrained or terms.pods > 1 for terms in problem.variants):
        return _is_placeable(problem, replicas, free, where)

    @cache
    def fits(left: tuple[int, ...], room: tuple[int, ...]) -> bool:
        if not left:
            return True
        size = problem.variants[left[0]].accelerators
        return any(
            fits(left[1:], (*room[:n], room[n] - size, *room[n + 1 :]))
            for n in where[left[0]]
            if room[n] >= size
        )

    return fits(tuple(sorted(new, key=lambda v: -problem.variants[v].accelerators)), tuple(free))


def _grown(problem: PlacementProblem, added: Sequence[int]) -> PlacementProblem:
    """Return the problem with the added nodes of each growth as existing nodes."""
    free, bins = list(problem.free), list(problem.bins)
    topologies = [list(domains) for domains in problem.topologies]
    for growth, count in zip(problem.growth, added, strict=True):
        home = bins[growth.bin]
        bins[growth.bin] = replace(home, nodes=(*home.nodes, *range(len(free), len(free) + count)))
        free += [growth.accelerators] * count
        own = growth.domains or [NO_DOMAIN] * len(topologies)
        topologies = [[*domains, *[domain] * count] for domains, domain in zip(topologies, own, strict=True)]
    return replace(
        problem,
        free=tuple(free),
        bins=tuple(bins),
        growth=(),
        topologies=tuple(tuple(domains) for domains in topologies),
    )


def _is_placeable(
    problem: PlacementProblem, replicas: Sequence[int], free: list[int], where: Sequence[Sequence[int]]
) -> bool:
    """Return whether all new pods fit on nodes under their rules, by trying all assignments."""
    waiting = [
        v
        for v, count in enumerate(replicas)
        for _ in range(max(0, count - len(problem.variants[v].bound_replicas)) * problem.variants[v].pods)
        if problem.variants[v].accelerators
    ]
    new = [Counter[int]() for _ in replicas]

    def place(turn: int, first: int) -> bool:
        if turn == len(waiting):
            return all(keeps_rules(problem, v, replicas[v], at) for v, at in enumerate(new) if at.total())
        v = waiting[turn]
        size = problem.variants[v].accelerators
        # Pods of a variant are identical, so only ascending nodes are tried.
        for index in range(first, len(where[v])):
            node = where[v][index]
            if free[node] < size:
                continue
            free[node] -= size
            new[v][node] += 1
            goes_on = turn + 1 < len(waiting) and waiting[turn + 1] == v
            found = place(turn + 1, index if goes_on else 0)
            free[node] += size
            new[v][node] -= 1
            if found:
                return True
        return False

    return place(0, 0)


def keeps_rules(problem: PlacementProblem, v: int, count: int, new: Counter[int]) -> bool:
    """Return whether a variant's new pods are where its rules allow them."""
    terms = problem.variants[v]
    pods_on_node = Counter(new)
    for nodes in terms.bound_replicas[max(0, len(terms.bound_replicas) - count) :]:
        pods_on_node.update(nodes)
    limit = terms.most_per_node
    if limit and any(pods_on_node[node] > limit.pods for node in +new):
        return False
    if terms.together is not None:
        blocks = Counter[tuple[int, int]]()
        for node, pods in new.items():
            home = next(b for b, bin_ in enumerate(problem.bins) if node in bin_.nodes)
            blocks[home, problem.topologies[terms.together][node]] += pods
        if any(pods % terms.pods for pods in blocks.values()):
            return False
    if terms.spread is None:
        return True
    spread = terms.spread
    domain_of = problem.topologies[spread.topology]
    there = {d: sum(n for node, n in pods_on_node.items() if domain_of[node] == d) for d in spread.domains}
    gaining = {domain_of[node] for node in +new}
    return all(there[d] - min(there.values()) <= spread.max_skew for d in gaining)


def best_rank(problem: PlacementProblem) -> list[int]:
    """Return the optimal objective, by enumerating all solutions."""
    counts = [range(terms.lower, terms.upper + 1) for terms in problem.variants]
    growth = [range(g.limit + 1) for g in problem.growth]
    candidates = sorted(
        (rank(problem, replicas, added), replicas, added)
        for replicas in product(*counts)
        for added in product(*growth)
    )
    return next(value for value, replicas, added in candidates if is_possible(problem, replicas, added))
