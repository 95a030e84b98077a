"""`BlockMask`: the blocks of an attention matrix that are computed."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import pytensorlib as pt

from ..._absent.modules import lacking

__all__ = ["BLOCK", "BlockMask", "ordered"]

BLOCK = 128
# The tensors of a mask, in the order in which it is taken apart.
TENSORS = ("kv_num_blocks", "kv_indices", "full_kv_num_blocks", "full_kv_indices")
TURNED = ("q_num_blocks", "q_indices", "full_q_num_blocks", "full_q_indices")


def ordered(dense: Any) -> tuple[Any, Any]:
    """Return how many blocks of each row are seen, and the columns, those that are seen first."""
    count = dense.sum(-1).int()
    return count, dense.int().argsort(-1, descending=True, stable=True).int()


def spread(count: Any, columns: Any) -> Any:
    """Return which blocks are seen, of the counts and columns of `ordered`."""
    seen = pt.arange(columns.shape[-1], device=columns.device) < count.unsqueeze(-1)
    return pt.zeros_like(columns, dtype=pt.int32).scatter(-1, columns.long(), seen.int())


class BlockMask:
    """Which blocks of the scores of queries and keys are seen, and a function for their elements.

    `create_block_mask` makes one.

    Parameters
    ----------
    seq_lengths : tuple of int
        Numbers of queries and of keys.
    kv_num_blocks, kv_indices : Tensor
        For each block of queries, how many blocks of keys are seen in part, and which: (B, H,
        rows) and (B, H, rows, columns), int32.
    full_kv_num_blocks, full_kv_indices : Tensor, optional
        The same of those that are seen whole.
    q_num_blocks, q_indices, full_q_num_blocks, full_q_indices : Tensor, optional
        The same by blocks of keys.
    BLOCK_SIZE : tuple of int
        Queries and keys of a block.
    mask_mod : callable
        Says of elements whether they are seen; it is asked within blocks that are seen in part.

    Examples
    --------
    >>> from pytensorlib.nn.attention.flex_attention import create_block_mask
    >>> mask = create_block_mask(lambda b, h, q, k: q >= k, 1, 1, 256, 256, device="cpu")
    >>> mask.to_dense().tolist(), mask.sparsity()
    ([[[[1, 0], [1, 1]]]], 25.0)
    """

    def __init__(
        self,
        seq_lengths: tuple[int, int],
        kv_num_blocks: Any,
        kv_indices: Any,
        full_kv_num_blocks: Any,
        full_kv_indices: Any,
        q_num_blocks: Any,
        q_indices: Any,
        full_q_num_blocks: Any,
        full_q_indices: Any,
        BLOCK_SIZE: tuple[int, int],
        mask_mod: Callable[..., Any],
    ) -> None:
        if kv_indices.dim() < 2:
            raise RuntimeError("BlockMask must have at least 2 dimensions")
        if (full_kv_num_blocks is None) != (full_kv_indices is None):
            raise AssertionError(
                "full_kv_num_blocks and full_kv_indices must be both provided or omitted"
            )
        self.seq_lengths, self.BLOCK_SIZE, self.mask_mod = seq_lengths, BLOCK_SIZE, mask_mod
        self.kv_num_blocks, self.kv_indices = kv_num_blocks, kv_indices
        self.full_kv_num_blocks, self.full_kv_indices = full_kv_num_blocks, full_kv_indices
        self.q_num_blocks, self.q_indices = q_num_blocks, q_indices
        self.full_q_num_blocks, self.full_q_indices = full_q_num_blocks, full_q_indices

    @classmethod
    def from_kv_blocks(
        cls,
        kv_num_blocks: Any,
        kv_indices: Any,
        full_kv_num_blocks: Any = None,
        full_kv_indices: Any = None,
        BLOCK_SIZE: int | tuple[int, int] = BLOCK,
        mask_mod: Callable[..., Any] | None = None,
        seq_lengths: tuple[int, int] | None = None,
        compute_q_blocks: bool = True,
    ) -> BlockMask:
        """Make a mask of the blocks of keys that each block of queries sees.

        Parameters
        ----------
        kv_num_blocks, kv_indices, full_kv_num_blocks, full_kv_indices : Tensor
            As of the class.
        BLOCK_SIZE : int or tuple of int, default 128
            Queries and keys of a block.
        mask_mod : callable, optional
            Says of elements whether they are seen; all are by default.
        seq_lengths : tuple of int, optional
            Numbers of queries and keys; those of whole blocks by default.
        compute_q_blocks : bool, default True
            Whether to find the blocks of queries that each block of keys sees.
        """
        size = (BLOCK_SIZE, BLOCK_SIZE) if isinstance(BLOCK_SIZE, int) else BLOCK_SIZE
        turned: Any = [None] * 4
        if compute_q_blocks:
            turned[:2] = ordered(spread(kv_num_blocks, kv_indices).mT)
            if full_kv_num_blocks is not None:
                turned[2:] = ordered(spread(full_kv_num_blocks, full_kv_indices).mT)
        rows, columns = kv_indices.shape[-2:]
        lengths = seq_lengths or (rows * size[0], columns * size[1])
        if mask_mod is None:
            from .flex_attention import noop_mask as mask_mod
        tensors = [kv_num_blocks, kv_indices, full_kv_num_blocks, full_kv_indices, *turned]
        arguments: list[Any] = [lengths, *tensors, size, mask_mod]
        return cls(*arguments)

    @property
    def shape(self) -> tuple[int, ...]:
        """Of the scores."""
        return (*self.kv_indices.shape[:-2], *self.seq_lengths)

    def numel(self) -> int:
        """Return the number of scores."""
        return math.prod(self.shape)

    def to_dense(self) -> Any:
        """Return which blocks are seen, in part or whole: int32, (B, H, rows, columns)."""
        partial, full = self.parts()
        return partial | full

    def parts(self) -> tuple[Any, Any]:
        """Return which blocks are seen in part, and which whole."""
        partial = spread(self.kv_num_blocks, self.kv_indices)
        if self.full_kv_num_blocks is None:
            return partial, pt.zeros_like(partial)
        return partial, spread(self.full_kv_num_blocks, self.full_kv_indices)

    def sparsity(self) -> float:
        """Return the share of blocks that are not seen, in percent."""
        dense = self.to_dense()
        return 100 * (1 - dense.sum().item() / max(dense.numel(), 1))

    def as_tuple(self, flatten: bool = True) -> tuple[Any, ...]:
        """Return what the class takes.

        Parameters
        ----------
        flatten : bool, default True
            Whether the tuples of two numbers are spread out.
        """
        tensors = [getattr(self, name) for name in (*TENSORS, *TURNED)]
        if flatten:
            return (*self.seq_lengths, *tensors, *self.BLOCK_SIZE, self.mask_mod)
        return (self.seq_lengths, *tensors, self.BLOCK_SIZE, self.mask_mod)

    def _with(self, change: Callable[[Any], Any]) -> BlockMask:
        tensors = [getattr(self, name) for name in (*TENSORS, *TURNED)]
        changed: Any = [None if t is None else change(t) for t in tensors]
        arguments: list[Any] = [self.seq_lengths, *changed, self.BLOCK_SIZE, self.mask_mod]
        return BlockMask(*arguments)

    def __getitem__(self, index: Any) -> BlockMask:
        """Return the mask of some batches, heads and blocks of queries.

        Its function still counts from the first ones, and must be replaced where that matters.
        """
        index = index if isinstance(index, tuple) else (index,)
        index = tuple(slice(i, i + 1 or None) if isinstance(i, int) else i for i in index)
        full = self.full_kv_num_blocks
        return BlockMask.from_kv_blocks(
            self.kv_num_blocks[index],
            self.kv_indices[index],
            None if full is None else full[index],
            None if full is None else self.full_kv_indices[index],
            self.BLOCK_SIZE,
            None,
            None if len(index) > 2 else self.seq_lengths,
            self.q_num_blocks is not None,
        )

    def to(self, device: Any) -> BlockMask:
        """Return the mask on a device.

        Parameters
        ----------
        device : device
            Where its tensors are.
        """
        return self._with(lambda t: t.to(device))

    def to_string(self, grid_size: int | tuple[int, int] = 20, limit: int = 4) -> str:
        """Return a picture of the first masks.

        Parameters
        ----------
        grid_size : int or tuple of int, default 20
            Rows and columns, at most; -1 for all blocks.
        limit : int, default 4
            How many masks.
        """
        dense = self.to_dense().float()
        rows, columns = dense.shape[-2:]
        size = (grid_size, grid_size) if isinstance(grid_size, int) else grid_size
        steps = [
            max(-(-n // s), 1) if s > 0 else 1 for n, s in zip((rows, columns), size, strict=True)
        ]
        pictures = []
        flat = dense.reshape(-1, rows, columns)
        for number in range(min(len(flat), limit)):
            where, rest = [], number
            for n in reversed(dense.shape[:-2]):
                where.append(rest % n)
                rest //= n
            lines = []
            for top in range(0, rows, steps[0]):
                line = ""
                for left in range(0, columns, steps[1]):
                    share = flat[number, top : top + steps[0], left : left + steps[1]].mean().item()
                    line += "██" if share == 1 else "  " if share == 0 else "░░"
                lines.append(line)
            pictures.append(f"{tuple(reversed(where))}\n" + "\n".join(lines))
        if len(flat) > limit:
            pictures.append("...")
        return "\n\n".join(pictures).rstrip()

    def __str__(self) -> str:
        about = f"BlockMask(shape={self.shape}, sparsity={self.sparsity():.2f}%, "
        return f"{about}\n{self.to_string()}\n)"

    def __repr__(self) -> str:
        shapes = {n: getattr(self, n) for n in (*TENSORS, *TURNED)}
        lines = [f"{n}={None if t is None else t.shape}" for n, t in shapes.items()]
        lines += [f"BLOCK_SIZE={self.BLOCK_SIZE}", f"shape={self.shape}"]
        lines += [f"sparsity={self.sparsity():.2f}%", f"mask_mod={self.mask_mod!r}"]
        return "BlockMask(\n    " + ",\n    ".join(lines) + "\n)"


lacking(
    BlockMask,
    "a mask is no container of tensors here; its tensors are attributes of it.",
    "_flatten _unflatten _flatten_with_keys",
)
