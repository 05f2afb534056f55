"""Reads API references row by row, and compares them with the declarations of kinds.

- the rows of a reference: `rows`, from its `pages`; the place of each in a declaration: `places`
- what differs: `findings`, and which `differences` are decided; `proofs` that each promise is kept
"""
