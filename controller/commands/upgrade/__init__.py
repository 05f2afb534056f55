"""`stowplan upgrade` and `stowplan downgrade`: migration of a live cluster to our definitions, and back.

upgrade, downgrade     the two subcommands: their checks and their remaining steps, derived from the state
gather                 the state of the cluster, read once
checks                 preconditions, decided from the state
definitions            the CustomResourceDefinition at each stage of a migration: whose it is, and writes
steps                  the steps, and the changes of objects in them
proving                proof that every object survives conversion
calls                  retries, rate limits, polling, and changes and deletion of many objects
report, run            checks, steps and results as text and JSON, and the frame: connect, plan, execute

`stowplan uninstall` uses the last two lines, and `definitions`.
"""
