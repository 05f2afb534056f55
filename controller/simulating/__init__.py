"""`stowplan simulate`: what would have been, with these settings and those requests.

`declared` is the scenario file, `scenario_file` and `exported` make scenarios of it and of a live cluster's
objects; `text` and `document` show the results; `run` is the verb.
"""
