"""What decisions are worth in closed loop: cost and missed requests of Stowplan beside all rivals.

A **row** is a load on a fleet (`rows.py`, over `fleet.py`); a **point** is one policy that
plays one row with one seed (`points.py`), in a process of its own (`running.py`). For each row `sweeping.py`
looks for the best setting of every rival, by the rules of `choosing.py`. Beside that stand what sizing itself
costs (`sizing_cost.py`) and what a cycle asks of pods (`asking.py`).
"""
