"""`make bench-decisions`: cost and missed requests in a closed loop, compared with other policies.

A **row** is a load on a fleet (`rows.py`, with the fleets of `fleet.py`). A **point** is the simulation of
one policy on one row with one seed (`points.py`), in a pool of processes (`running.py`). For each row,
`sweeping.py` searches the best setting of every rival, by the rules of `choosing.py`. Also measured are the
CPU time of sizing (`sizing_cost.py`), and the requests to pods in a cycle (`asking.py`).

- a run: `measuring`; results: `report`, `goals`
"""
