"""Released definitions of other projects, and their differences from the generated definitions.

`releases` reads what each release declares; `schemas` converts declared and generated schemas to one form;
`comparison` compares them, and `differences.yaml` lists the deliberate differences.
"""
