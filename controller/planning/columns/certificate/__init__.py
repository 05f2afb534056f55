"""How far an answer is from the best over every replica mix, and the mixes that columns lack.

levels         keeps what is proven of each level, and makes columns of mixes that were missed: the entry.
certify        one bound at some prices, and the mixes that come of it.
rows, covers   what each model must cover at a level.
costs          what replicas cost by themselves, in pieces.
models, boxes  models side by side, and the parts of their mixes that branch and bound looks at.
bounds, tree   what a part can cost at least, and the search over parts.
"""
