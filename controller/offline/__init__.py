"""`stowplan plan`: plans made from files alone, without a cluster, shown to users or written for programs.

`reading` parses files into objects, and `gathering` makes a snapshot of them. `configuring` reads the
controller's configuration, whose lines are found by `yaml_text`. `changes` applies hypothetical changes.
`layout` assigns accelerators of the nodes; `text`, `page` and `document` render the plan; `run` is the entry
point.
"""
