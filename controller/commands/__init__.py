"""The verbs of `stowplan` that are no processes, one package each, with the verb's name.

`check`, `convert` and `migrate` need no cluster and import no other part of the controller. `plan`, `expand`
and `simulate` need no cluster either, and read files as `check` does. `explain`, `upgrade` (also `downgrade`)
and `uninstall` connect to a cluster.
"""
