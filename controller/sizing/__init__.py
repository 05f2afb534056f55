"""How much each model is asked for, and how much one replica of each variant serves within its targets.

Pure. Demand is a rate (requests per second with their lengths), never a stock: the tokens that are in flight
grow with latency, so a controller that follows them scales down a fleet because it is fast and up because it
queues. Capacity is the rate that a replica serves while it meets its latency targets, from step times that
are learned from the engines' own counters.

Nouns, from the inside out:

- **interval** (`records.py`): what one engine did between two of its answers.
- **lengths** (`lengths.py`): mean prompt and output of a model's requests, and how unequal prompts are.
- **step time** (`step_time.py`): alpha + beta * batch + delta * prompt tokens, by recursive least squares.
- **queue model** (`queue_model.py`): the same from a declared profile, before an engine has run.
- **capacity** (`capacity.py`): requests per second within TTFT, ITL and the batch.
- **estimate** (`estimate.py`): step times of a variant that never ran, from its siblings.
- **forecast** (`forecast.py`): the trend of arrivals over a start-up, with an upper bound.
- **trust** (`trust.py`): whether what is known of a model is fresh, held, a quorum's or unknown.
- **memory** (`memory.py`): what is kept from one cycle to the next.
- **sizing** (`sizing.py`): all of it for all models: a snapshot goes in, one with loads and capacities comes
  out.
"""
