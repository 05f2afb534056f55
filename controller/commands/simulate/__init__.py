"""`stowplan simulate`: simulate what policies would have done with given settings and requests.

run            the command
arguments      its command line
declared       the scenario file; `scenario_file` builds scenarios from it
history        reads loads and step times from Prometheus; `request_sampling` draws requests
engines        the engine and the start-up time of an exported variant
exported       builds scenarios from the objects of a live cluster
recorded       reads recorded requests and metrics
policy_file    reads AutoscalingPolicies
results        the results, in JSON and in words; `text` for terminals, `page` for browsers, of `chart`
replay         decides on recorded metrics instead
"""
