"""`make bench-placement`: the quality of placements and their CPU cost, compared with other engines.

Every engine places the same generated fleet (`hack.fleets`) in a separate process (`child`). Independent code
evaluates the answers: feasibility, unmet demand by priority, and cost over the proven bound. Our engine is
compared with the heuristics of other autoscalers, and with HiGHS on a plain mixed-integer program (`highs`).

F8 and F10 are clusters fragmented by churn (`fragments`); measured are the number of evictions that make
room, and the time to find them (`moving`). `planning` measures whole plans, from snapshot to messages, each
of which starts from the state of the previous one; their steps are timed within (`watching`).

- `engines`: what is compared; `result`: input and output of a process; `report` and `goals`: results
"""
