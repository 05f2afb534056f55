"""`stowplan status`: the state of all models, accelerators and problems of a live cluster.

run         the entry point
reading     read everything that planning reads, with the user's permissions
fleet       the state as records
assemble    the state from what was read. Pure
text        the state as text
options     what verbs about a live cluster share: options, and how they end without an answer
"""
