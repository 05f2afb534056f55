"""The running batch: the sequences that an engine processes, and their use of the KV cache."""

from __future__ import annotations

from heapq import heappop, heappush
from typing import TYPE_CHECKING

from controller.simulation.ledger import BlockLedger

if TYPE_CHECKING:
    from controller.simulation.profile import EngineProfile
    from controller.simulation.sequence import Sequence


class Batch:
    """Sequences in order of admission, the iteration count, and the block ledger.

    `iteration` is the number of the next iteration. A sequence is either prefilling or decoding; all decoding
    sequences gain one token per iteration.
    """

    def __init__(self, profile: EngineProfile) -> None:
        self.iteration = 0
        self.ledger = BlockLedger(total_blocks=profile.num_gpu_blocks, block_size=profile.block_size)
        self.prefilling: list[Sequence] = []
        self.decodes = 0
        self._max_num_seqs = profile.max_num_seqs
        self._sequences: dict[int, Sequence] = {}
        self._finishing: list[tuple[int, int, Sequence]] = []

    def __len__(self) -> int:
        return len(self._sequences)

    def __contains__(self, sequence: Sequence) -> bool:
        return self._sequences.get(sequence.request.request_id) is sequence

    def sequences(self) -> list[Sequence]:
        """Return all sequences, in order of admission."""
        return list(self._sequences.values())

    def has_room(self, sequence: Sequence) -> bool:
        """Return whether the sequence may enter now, with its whole context in the cache."""
        blocks = self.ledger.blocks(sequence.context_tokens)
        return len(self._sequences) < self._max_num_seqs and blocks <= self.ledger.free_blocks

    def admit(self, sequence: Sequence) -> None:
        """Admit the sequence, to be prefilled."""
        self._sequences[sequence.request.request_id] = sequence
        self.ledger.take(sequence.context_tokens)
        sequence.uncomputed_tokens = sequence.context_tokens
        self.prefilling.append(sequence)

    def start_decoding(self, sequence: Sequence) -> None:
        """Move a sequence to the decoding ones, after its prefill produced a token."""
        self.prefilling.remove(sequence)
        sequence.decode_iteration = self.iteration
        self.decodes += 1
        self.ledger.start_growing(sequence.cached_tokens(self.iteration), iteration=self.iteration)
        heappush(self._finishing, (sequence.last_iteration, sequence.request.request_id, sequence))

    def remove(self, sequence: Sequence) -> None:
        """Remove the sequence, finished or not, and free its blocks."""
        tokens = sequence.cached_tokens(self.iteration)
        if sequence.decode_iteration is None:
            self.prefilling.remove(sequence)
        else:
            self.ledger.stop_growing(tokens, iteration=self.iteration)
            self.decodes -= 1
        self.ledger.release(tokens)
        del self._sequences[sequence.request.request_id]

    def preempt(self) -> Sequence:
        """Preempt the sequence admitted last; it keeps its tokens and loses its cache."""
        victim = next(reversed(self._sequences.values()))
        self.remove(victim)
        if victim.decode_iteration is not None:
            victim.generated_tokens += self.iteration - victim.decode_iteration
            victim.decode_iteration = None
        return victim

    def next_finish(self) -> int:
        """Return the next iteration in which a sequence gets its last token; some must be decoding."""
        while not self._is_due(*self._finishing[0]):
            heappop(self._finishing)
        return self._finishing[0][0]

    def pop_finished(self) -> list[Sequence]:
        """Remove and return all sequences that got their last token before the next iteration."""
        finished = []
        while self.decodes and self.next_finish() < self.iteration:
            sequence = heappop(self._finishing)[2]
            self.remove(sequence)
            finished.append(sequence)
        return finished

    def _is_due(self, last_iteration: int, request_id: int, sequence: Sequence) -> bool:
        # A preempted sequence leaves its heap entry behind; when it decodes again, it ends in a later
        # iteration.
        is_decoding = sequence.decode_iteration is not None and request_id in self._sequences
        return is_decoding and sequence.last_iteration == last_iteration
