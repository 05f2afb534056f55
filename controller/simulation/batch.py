"""The running batch: which sequences an engine works on, and what their tokens take of the KV cache."""

from __future__ import annotations

from heapq import heappop, heappush
from typing import TYPE_CHECKING

from controller.simulation.ledger import BlockLedger

if TYPE_CHECKING:
    from controller.simulation.profile import EngineProfile
    from controller.simulation.sequence import Sequence


class Batch:
    """Sequences in the order of their admission, the iteration count, and the block ledger.

    `iteration` is the number of the coming iteration. A sequence is either prefilling or decoding; all
    decoding sequences gain one token in every iteration.
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

    def sequences(self) -> list[Sequence]:
        """All sequences, in the order of admission."""
        return list(self._sequences.values())

    def has_room(self, sequence: Sequence) -> bool:
        """Tell whether the sequence may enter now, with its whole context in the cache."""
        blocks = self.ledger.blocks(sequence.context_tokens)
        return len(self._sequences) < self._max_num_seqs and blocks <= self.ledger.free_blocks

    def admit(self, sequence: Sequence) -> None:
        """Let the sequence in, to be prefilled."""
        self._sequences[sequence.request.request_id] = sequence
        self.ledger.take(sequence.context_tokens)
        sequence.uncomputed_tokens = sequence.context_tokens
        self.prefilling.append(sequence)

    def start_decoding(self, sequence: Sequence) -> None:
        """Move a sequence whose prefill gave it a token to the decoding ones, from now on."""
        self.prefilling.remove(sequence)
        sequence.decode_iteration = self.iteration
        self.decodes += 1
        self.ledger.start_growing(sequence.cached_tokens(self.iteration), iteration=self.iteration)
        heappush(self._finishing, (sequence.last_iteration, sequence.request.request_id, sequence))

    def remove(self, sequence: Sequence) -> None:
        """Take the sequence out, finished or not, and free its blocks."""
        tokens = sequence.cached_tokens(self.iteration)
        if sequence.decode_iteration is None:
            self.prefilling.remove(sequence)
        else:
            self.ledger.stop_growing(tokens, iteration=self.iteration)
            self.decodes -= 1
        self.ledger.release(tokens)
        del self._sequences[sequence.request.request_id]

    def preempt(self) -> Sequence:
        """Throw out the sequence admitted last; it keeps its tokens and loses its cache."""
        victim = next(reversed(self._sequences.values()))
        self.remove(victim)
        if victim.decode_iteration is not None:
            victim.generated_tokens += self.iteration - victim.decode_iteration
            victim.decode_iteration = None
        victim.preemptions += 1
        return victim

    def next_finish(self) -> int:
        """Return the earliest iteration that gives a decoding sequence its last token; some must be."""
        while not self._is_due(*self._finishing[0]):
            heappop(self._finishing)
        return self._finishing[0][0]

    def pop_finished(self) -> list[Sequence]:
        """Take out all sequences that got their last token before the coming iteration."""
        finished = []
        while self.decodes and self.next_finish() < self.iteration:
            sequence = heappop(self._finishing)[2]
            self.remove(sequence)
            finished.append(sequence)
        return finished

    def _is_due(self, last_iteration: int, request_id: int, sequence: Sequence) -> bool:
        # A preempted sequence leaves its entry behind; once it decodes again, it ends in a later iteration.
        is_decoding = sequence.decode_iteration is not None and request_id in self._sequences
        return is_decoding and sequence.last_iteration == last_iteration
