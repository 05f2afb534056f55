"""`stowplan upgrade` and `stowplan downgrade`: a live cluster to our definitions, and back.

snapshot, gather       what is there, read once; everything below decides on it alone
definitions            the CustomResourceDefinition at each stage of the way
*_checks               what must be in order first
steps                  what is left to do, from what is there: so a run that was cut off is simply run again
execution              doing it, one step after the other: proving, rewriting, reshaping, waiting
report, text           what is said, as JSON or for people
verb, runs, options    the frame: connect, look, plan, do; `stowplan uninstall` has the same
upgrade, downgrade     the two verbs
"""
