"""`stowplan plan`: plans made from files alone, without a cluster, shown to users or written for programs.

`reading` parses files into objects, and `gathering` makes a snapshot of them. `changes` applies hypothetical
changes. `layout` assigns accelerators of the nodes, and draws them; `text` and `page` render the plan; `run`
is the entry point.

- command line: `arguments`; the controller's configuration: `configuring`
- fields that are read of objects: `shapes`; statuses: `statuses`; variants without objects: `assumptions`
- warnings about missing information: `gaps`; output to a terminal: `terminal`
"""
