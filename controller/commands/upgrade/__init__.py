"""`stowplan upgrade` and `stowplan downgrade`: migration of a live cluster to our definitions, and back.

snapshot, gather       the state of the cluster, read once; everything below depends on it alone
definitions            the CustomResourceDefinition at each stage of a migration; `ownership`: our label,
                       and what Helm wrote for our chart
controller_checks      preconditions; also `owner_checks`, `permission_checks` and `webhook_checks`; their
                       results: `findings`
steps                  the remaining steps, derived from the state: an interrupted run is simply run again
execution              execution of the steps: `proving`, `reshaping`, `waiting`
status_to_come         two writes of a downgrade: spec and status; `accounts`: its effect on each object
reaching, retrying     calls: whether conversion answers, rate limits and polling
comparison             of two readings of an object
resources              resource types that only these subcommands use
report                 the output as JSON; `progress` of a run; `counting`: numbers in sentences
verb, runs, options    the common frame: connect, read, plan, execute; `stowplan uninstall` uses it, too
upgrade, downgrade     the two subcommands
"""
