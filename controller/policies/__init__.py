"""Evaluate AutoscalingPolicies: from metrics, a history and the time to replicas and the reasons.

Pure functions: no clock, no I/O.

sharing       the decision for a binding: combined replicas of its targets, and the replicas of each
deciding      the decision for a target, with reasons and the updated history
recommending  the replicas that metrics ask for
correcting    limits on one step: windows, rates, panic mode
splitting     a required capacity over different targets
policy        a policy, in numbers and seconds
binding       a binding, with its ordered targets
observation   the observed values of a target
history       the state between decisions
exposed       the metrics of a policy in what one pod exposes
measuring     the values that decisions use, from these
histograms    quantiles of histograms
wording       a decision in one sentence
"""
