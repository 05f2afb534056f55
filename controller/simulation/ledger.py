"""The blocks of an engine's KV cache.

All decoding sequences grow together, by as many tokens each, so a clock of tokens is common to them: a
sequence opens a new block every `block_size` ticks, always in the same residue class. Counting sequences per
class makes the growth by a token a single lookup, however many sequences run.
"""

from __future__ import annotations


class BlockLedger:
    """The number of used blocks, and of blocks that the next tokens will open."""

    def __init__(self, *, total_blocks: int, block_size: int) -> None:
        self.total_blocks = total_blocks
        self.block_size = block_size
        self.used_blocks = 0
        self._growing = [0] * block_size
        self._growing_sequences = 0

    @property
    def free_blocks(self) -> int:
        """Number of unused blocks."""
        return self.total_blocks - self.used_blocks

    @property
    def usage(self) -> float:
        """Used share of all blocks, 0.0 to 1.0."""
        return self.used_blocks / self.total_blocks

    def blocks(self, tokens: int) -> int:
        """Return the number of blocks that hold this many tokens."""
        return -(-tokens // self.block_size)

    def take(self, tokens: int) -> None:
        """Take the blocks of a sequence that enters with this many tokens."""
        self.used_blocks += self.blocks(tokens)

    def release(self, tokens: int) -> None:
        """Release the blocks of a sequence that leaves with this many tokens."""
        self.used_blocks -= self.blocks(tokens)

    def start_growing(self, tokens: int, *, clock: int) -> None:
        """Record that a sequence of `tokens` gains one token at `clock` and at each later tick."""
        self._growing[(clock - tokens) % self.block_size] += 1
        self._growing_sequences += 1

    def stop_growing(self, tokens: int, *, clock: int) -> None:
        """Undo `start_growing`; `tokens` is what the sequence would hold before `clock`."""
        self._growing[(clock - tokens) % self.block_size] -= 1
        self._growing_sequences -= 1

    def growth(self, clock: int, *, ticks: int = 1) -> int:
        """Return the blocks that growing sequences open in `ticks` ticks from `clock` on."""
        size, growing = self.block_size, self._growing
        first = clock % size
        if ticks == 1:
            return growing[first]
        rounds, rest = divmod(ticks, size)
        opened = sum(growing[first : first + rest]) + sum(growing[: max(0, first + rest - size)])
        return rounds * self._growing_sequences + opened

    def safe_ticks(self) -> int:
        """Return a number of ticks that fit for all residue classes; 0 if the next one may not."""
        if not self._growing_sequences:
            return 0
        return self.free_blocks // self._growing_sequences * self.block_size
