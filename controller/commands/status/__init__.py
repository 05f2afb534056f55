"""`stowplan status`: the state of all models, accelerators and problems of a live cluster.

run         the entry point
reading     read everything that planning reads, with the user's permissions
fleet       the state as records
assemble    the state from what was read. Pure
text        the state as text
options     options of the command line that verbs about a live cluster share
"""
