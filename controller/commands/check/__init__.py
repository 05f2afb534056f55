"""`stowplan check`: admission offline, with the same messages and the line numbers of the file.

- the verb: `run`; its output: `result`
- objects of a file: `judge`, with `matching` for their kinds, namespaces and undeclared fields
- files as kubectl reads them: `documents`, into values with lines: `tree`; scalars and output as YAML:
  `yaml_values`
"""
