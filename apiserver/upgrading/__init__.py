"""`stowplan upgrade` and `stowplan downgrade`: migration of a live cluster to our definitions, and back.

snapshot, gather       the state of the cluster, read once; everything below depends on it alone
definitions            the CustomResourceDefinition at each stage of a migration; ownership: our label
*_checks               preconditions; own_chart: what tells our Helm chart from that of others
steps                  the remaining steps, derived from the state: an interrupted run is simply run again
execution              execution of the steps: proving, rewriting, reshaping, waiting
report, text           the output, as JSON or text; counting: numbers in its sentences
verb, runs, options    the common frame: connect, read, plan, execute; `stowplan uninstall` uses it, too
upgrade, downgrade     the two subcommands
"""
