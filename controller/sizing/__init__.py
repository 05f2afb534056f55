"""Estimate the load of each model, and the rate that one replica of each variant serves within its targets.

Pure functions. Demand is a rate (requests per second with their lengths), never a stock: tokens in flight
grow with latency, so a controller that follows them scales a fleet down because it is fast, and up because it
queues. Capacity is the rate that a replica serves while it meets its latency targets. It follows from step
times that are learned from the engines' own counters.

Modules, from the inside out:

- **interval** (`records.py`): what one engine counted between two of its responses.
- **lengths** (`lengths.py`): mean prompt and output length of a model's requests, and the variability of
  prompts.
- **step time** (`step_time.py`): alpha + beta * batch + delta * prompt tokens, by recursive least squares;
  and the time of requests with one result, such as those of embeddings.
- **attainment** (`attainment.py`): which share of requests met the targets, and the utilization at which the
  promised share does.
- **catalog** (`catalog.py`) and **roofline** (`roofline.py`): dimensions of models, data of accelerators, and
  the step times that are estimated from both.
- **capacity** (`capacity.py`): requests per second within TTFT, ITL and the batch.
- **performance** (`performance.py`): the step times that count for a variant: its own, declared or former
  ones, or those of a sibling.
- **arrivals** (`arrivals.py`): the arrival rate of a model's requests, from counters, and its forecast over a
  start-up, with an upper bound.
- **demand** (`demand.py`): the load of a model, the capacity that it requires, and whether the data about it
  is fresh, held, from a quorum or unknown.
- **memory** (`memory.py`): the state that is carried from one cycle to the next.
- **sizing** (`sizing.py`): the entry point, which adds loads and capacities of all models to a snapshot.
"""
