"""Valid ModelRoutes whose translation would take much time."""

from __future__ import annotations

import time
from random import Random

from support.routes import route, rule, server, translated

from apiserver.schema.json import Json
from controller.gateways.matching import in_order
from controller.gateways.reporting import Surroundings, steps


def overlapping(random: Random) -> Json:
    """Return a route with rules that overlap with all others, of which each applies to some of its names."""
    names = [f"a{number}" for number in range(10)]
    rules = []
    for number in range(16):
        headers: Json = {f"h{place}": {"exact": "x"} for place in random.sample(range(15), 4)}
        some = "|".join(name for name in names if random.random() < 0.8)
        headers["x-gateway-model-name"] = {"regex": f"^({some})$"}
        rules.append(rule(headers=headers, uri={"prefix": "/" + "a/" * number}))
    return route(*rules, loraAdapters=names)


def test_rules_that_all_overlap_take_a_limited_time() -> None:
    """There are up to a thousand combinations for each of ten names, of which an HTTPRoute has 128."""
    random = Random(1)
    values = [overlapping(random) for _ in range(10)]
    in_order.cache_clear()
    began = time.process_time()
    for value in values:
        translated(value)
    assert time.process_time() - began < 1.5


def test_many_routes_to_many_pools_take_a_limited_time() -> None:
    """Each pool is owned by all routes that target it."""
    names = [f"s{number:03}" for number in range(256)]
    made = route(*(rule(*names[start : start + 16]) for start in range(0, 256, 16)))
    routes = [
        {**made, "metadata": {"name": f"r{number}", "namespace": "ns", "uid": f"u{number}"}}
        for number in range(600)
    ]
    servers = {name: server(name) for name in names}
    around = Surroundings(sharing=routes, servers=servers, children={})
    translation = translated(routes[0], *servers.values())
    began = time.process_time()
    found = steps(routes[0], translation, around)

    assert time.process_time() - began < 2.0
    pools = [item for item in found.apply if item["kind"] == "InferencePool"]
    assert [len(item["metadata"]["ownerReferences"]) for item in pools] == [600] * 256
