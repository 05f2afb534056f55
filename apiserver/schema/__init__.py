"""Declarative API schemas: types, defaults, validation and documentation derived from declarations.

- declarations: `declaration`, with `markers` for one field and `rules` for several; `model`: the tree from
  which everything else is derived; `kind`: names and versions
- validation: `validation`, with `shape`, `ruling`, `metadata`, `ratcheting`, and `bounding` before errors are
  listed; errors: `errors`, `paths`, `wording`
- documents of settings: `document`, with `duplicates`
- defaults: `defaulting`, `filler`; conversion: `conversion`, with `kept` fields
- generated from declarations: `structural` for CRDs, `reference` pages with `descriptions`, schemas of
  `editor`
- values: `durations`, `quantities`, `objectmeta`, `annotations`, `json` with its `depth`
"""
