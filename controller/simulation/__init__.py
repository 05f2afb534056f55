"""A load-coupled model of inference engines: the same load on fewer engines waits longer.

Everything here is pure. Time is an argument (whole microseconds, so that chopping an interval differently
gives bit for bit the same history), nothing is read from a clock, a file outside the package or a socket,
and the only randomness is a seed that the caller passes. The demo serves these engines on real pod
addresses; `controller.closedloop` plays whole clusters of them in virtual time.

Nouns, from the inside out:

- **request** (`request.py`): what a client asks for, and what became of it.
- **profile** (`profile.py`): what one engine on one accelerator can do: iteration time, batch size, KV cache.
- **ledger** (`ledger.py`): the blocks of the KV cache.
- **engine** (`engine.py`): continuous batching, one iteration after the other, with preemption.
- **measures** (`measures.py`) and **exposition** (`exposition.py`): what the engine counts, in vLLM's words.
- **router** (`router.py`): spreads the requests of one model over its engines; **ranking** (`ranking.py`)
  finds the one that comes first without asking all.
- **trace** (`trace.py`): real requests, recorded once; `recorded.py` reads those of others; **replay**
  (`replay.py`) plays pieces of them.
- **workload** (`workload.py`): the requests of one model, of a trace or drawn along a **curve** (`curve.py`).
- **fleet** (`fleet.py`): all models, their replays and their engines, advanced together.
"""
