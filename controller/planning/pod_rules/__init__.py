"""Rules for where the pods of one variant can be, besides free accelerators and the nodes that they select.

interface   what a rule defines: the engine, the messages and the reading of nodes use nothing else
record      the rules of one variant
apart       a maximum of pods per node
spread      an even distribution over the domains of a topology

A rule contains its text, the number of new pods that it allows, its rows and its choice of nodes. The
checker verifies it separately, in `checker/rules.py`. Pods of one replica that must be in one domain are not
a rule but a unit of placement (`VariantTerms.together`).
"""
