"""`make bench-decisions`: cost and missed requests in a closed loop, compared with other policies.

A **row** is a load on a fleet (`row`, `rows`, `shortages`, with the fleets of `fleet`). A **point** is the
simulation of one policy on one row with one seed (`points`), in a pool of processes (`running`). Results of
**rivals** are kept in `rivals.json` (`rivals`), and `capacity` finds the sizes of constant fleets.

- a run: `measuring`; results: `results`, `report`, `goals`
- what Stowplan learns about engines: `engines`
- CPU time of sizing: `sizing_cost`; requests to pods in a cycle: `asking`
"""
