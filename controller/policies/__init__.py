"""Evaluate AutoscalingPolicies: from metrics, a history and the time to replicas and the reasons.

Pure functions: no clock, no I/O.

sharing       the decision for a binding, and its sentence: combined replicas of its targets, and of each
deciding      the decision for a target, with reasons and the updated history
recommending  the replicas that metrics ask for, and limits on one step: windows, rates, panic mode
splitting     a required capacity over different targets
policy        a policy in numbers and seconds, a binding with its ordered targets, and observed values
history       the state between decisions
measuring     the values that decisions use, from what pods expose
"""
