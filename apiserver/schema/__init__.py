"""Declarative API schemas: types, defaults, validation and documentation derived from declarations.

- declarations: `declaration`, with `markers` for one field and `rules` for several; `model`: the tree from
  which everything else is derived; `kind`: names and versions
- validation: `validation`, with `shape`, `ruling` and `metadata`; `errors` with their `paths`
- documents of settings: `document`
- defaults: `defaulting`; conversion between versions: `conversion`
- generated from declarations: `structural` for CRDs, `reference` pages, schemas of `editor`
- values: `durations`, `quantities`, `json`
"""
