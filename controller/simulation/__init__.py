"""Closed-loop simulation in virtual time: a policy scales engines, whose load responds.

With the same load on fewer engines, requests wait longer. Time is virtual (integer microseconds for engines,
so that splitting an interval differently gives a bit-identical history) and randomness is seeded: equal
scenarios have equal outcomes. The demo serves the engines on real pod addresses.

Engines under load, which know no cluster:

    profile      performance of one engine on one accelerator type
    workload     the requests of one model, from a trace or along a curve
    batch        the state of requests in an engine, its running batch, and its metrics
    engine       continuous batching, iteration by iteration, with preemption
    server       the engines of one replica, and their metrics under vLLM's names
    router       the servers of a model, and which of them gets a request
    fleet        all servers of all models, also those in pairs

The cluster around them:

    autoscaler   HorizontalPodAutoscalers
    scenario     the complete input of a run: models, variants, nodes
    manifests    the objects of a scenario and its pods
    scaling_rules  the rules of HorizontalPodAutoscalers and ScaledObjects
    cluster      nodes, Deployments and their pods

Policies and results:

    outcome      what is recorded, and how it is scored
    policies     the interface of policies; HPAs on load, constant fleets, and AutoscalingPolicies
    reconciler   the real controller
    horizontal   the autoscalers of an export
    lower_bound  the least cost that is possible
    run          simulates one scenario with one policy
"""
