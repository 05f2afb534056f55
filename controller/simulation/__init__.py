"""A load-dependent model of inference engines: with the same load on fewer engines, requests wait longer.

Everything here is pure. Time is an argument (integer microseconds, so that splitting an interval differently
gives a bit-identical history), nothing is read from a clock, a file outside the package or a socket, and the
only randomness is a seed that the caller passes. The demo serves these engines on real pod addresses;
`controller.closedloop` simulates whole clusters of them in virtual time.

Modules, from the inside out:

- **request** (`request.py`): a client's request, and its completion.
- **profile** (`profile.py`): performance of one engine on one accelerator type: iteration time, batch size,
  KV cache, prefix cache, speculative decoding, data parallelism.
- **engine** (`engine.py`): continuous batching, iteration by iteration, with preemption; `batch.py` has the
  running batch, `sequence.py` the state of a request.
- **server** (`server.py`): the engines of one replica: one for each data-parallel rank.
- **measures** (`measures.py`) and **exposition** (`exposition.py`): the engine's metrics, under vLLM's names.
- **router** (`router.py`): distributes the requests of one model over its servers; **routing**
  (`routing.py`) has the policies of routers.
- **trace** (`trace.py`): recorded real requests; `recorded.py` reads other trace formats, by `lines.py`;
  **replay** (`replay.py`) plays pieces of them.
- **workload** (`workload.py`): the requests of one model, from a trace or drawn along a **curve**
  (`curve.py`).
- **fleet** (`fleet.py`): all models with their requests and servers, advanced together.
"""
