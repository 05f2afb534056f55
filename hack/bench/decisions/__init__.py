"""`make bench-decisions`: cost and missed requests in a closed loop, compared with other policies.

The rows, their rivals and their goals are in `hack.decisions`.

- what Stowplan learns about engines: `engines`
- CPU time of sizing: `sizing_cost`
"""
