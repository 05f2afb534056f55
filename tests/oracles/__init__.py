"""What releases of others demand and allow, and in what the definitions that are generated here differ.

`releases` reads what each release declares; `schemas` brings declared and generated schemas into one form;
`comparison` holds them against each other, and `differences.yaml` says which differences are deliberate.
"""
