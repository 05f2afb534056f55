"""`stowplan simulate`: simulate what policies would have done with given settings and requests.

run            the command
arguments      its command line
scenario_file  builds scenarios from files, whose fields `scenario_fields` declares
history        reads loads and step times from Prometheus, and draws requests like them
engines        the engine and the start-up time of an exported variant
export         builds scenarios from the objects of a live cluster
recordings     reads recorded requests and metrics
policy_file    reads AutoscalingPolicies
results        the results in JSON and as text; `page` for browsers, of `chart`
replay         decides on recorded metrics instead
"""
