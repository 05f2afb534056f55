"""The API and the processes that serve it.

`schema` is the framework for declarations, independent of any kind; `kinds` declares the kinds, data only.
`serving` is the runtime of HTTPS processes, `cluster` the Kubernetes client; neither depends on the other.
`metrics` is the external metrics API, `cli` the command line.

- the table of subcommands: `cli`; name of the command, and how subcommands end: `program`; completion of the
  command line in shells: `completion`
- loggers for our own events, and log output of one line per event: `log`
"""
