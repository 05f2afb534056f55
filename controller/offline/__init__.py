"""`stowplan plan`: what would be decided, from files alone, drawn for people and written down for programs.

`reading` makes objects of files and `gathering` a snapshot of objects; `changes` makes it what somebody asks
about; `layout` lays the plan out on the nodes; `text`, `page` and `document` show it; `run` is the verb.
"""
