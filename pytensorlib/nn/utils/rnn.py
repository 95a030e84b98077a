"""Sequences of different lengths."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise
from typing import Any, NamedTuple

import pytensorlib as pt

from ... import Tensor
from ..functional import _pad_sequence


class _Packed(NamedTuple):
    data: Any
    batch_sizes: Any
    sorted_indices: Any
    unsorted_indices: Any


def invert_permutation(permutation: Tensor | None) -> Tensor | None:
    """The permutation that undoes ``permutation``."""
    if permutation is None:
        return None
    inverse = pt.empty_like(permutation, memory_format=pt.legacy_contiguous_format)
    order = pt.arange(0, permutation.numel(), device=permutation.device, dtype=permutation.dtype)
    return inverse.scatter_(0, permutation, order)


class PackedSequence(_Packed):
    """The steps of all sequences, step by step, without padding.

    ``batch_sizes[t]`` says how many sequences are longer than ``t``.
    Made by ``pack_padded_sequence`` and ``pack_sequence``.
    """

    def __new__(
        cls,
        data: Tensor,
        batch_sizes: Tensor | None = None,
        sorted_indices: Tensor | None = None,
        unsorted_indices: Tensor | None = None,
    ) -> Any:
        if batch_sizes is None:
            if not isinstance(data, (list, tuple)) or len(data) != 2:
                raise AssertionError("expected data and batch_sizes, or a pair of them")
            data, batch_sizes = data
        if unsorted_indices is None:
            unsorted_indices = invert_permutation(sorted_indices)
        if batch_sizes.device.type != "cpu":
            raise ValueError(
                "batch_sizes should always be on CPU. Instances of PackedSequence should never "
                "be created manually. They should be instantiated by functions like "
                "pack_sequence and pack_padded_sequences in nn.utils.rnn."
            )
        return super().__new__(cls, data, batch_sizes, sorted_indices, unsorted_indices)

    def to(self, *args: Any, **kwargs: Any) -> Any:
        """Move or convert the data; the indices follow its device."""
        data = self.data.to(*args, **kwargs)
        if data is self.data:
            return self
        indices = [None if i is None else i.to(data.device) for i in self[2:]]
        return type(self)(data, self.batch_sizes, *indices)

    def cpu(self) -> Any:
        """Move the data to the CPU."""
        return self.to(device="cpu")

    def double(self) -> Any:
        """Convert to float64."""
        return self.to(dtype=pt.float64)

    def float(self) -> Any:
        """Convert to float32."""
        return self.to(dtype=pt.float32)

    def half(self) -> Any:
        """Convert to float16."""
        return self.to(dtype=pt.float16)

    @property
    def is_cuda(self) -> bool:
        """Whether the data is on a CUDA device."""
        return self.data.is_cuda

    def is_pinned(self) -> bool:
        """Whether the data is in pinned memory."""
        return self.data.is_pinned()


def pack_padded_sequence(
    input: Tensor, lengths: Any, batch_first: bool = False, enforce_sorted: bool = True
) -> PackedSequence:
    """Drop the padding of ``input``; ``lengths`` must fall unless ``enforce_sorted`` is off."""
    if not isinstance(lengths, Tensor):
        lengths = pt.as_tensor(lengths, dtype=pt.int64, device="cpu")
    order = None
    if not enforce_sorted:
        lengths, order = pt.sort(lengths, descending=True)
        order = order.to(input.device)
        input = input.index_select(0 if batch_first else 1, order)
    data, batch_sizes = _pack(input.transpose(0, 1) if batch_first else input, lengths.tolist())
    return PackedSequence(data, batch_sizes, order, None)


def _pack(steps: Tensor, lengths: list[int]) -> tuple[Tensor, Tensor]:
    """Join what each step holds of the sequences that reach it; time is the first dimension."""
    if len(lengths) != steps.size(1):
        raise RuntimeError(
            f"pack_padded_sequence: expected {steps.size(1)} lengths, one for each sequence, got "
            f"{len(lengths)}"
        )
    if not lengths or lengths[-1] <= 0 or lengths[0] > steps.size(0):
        raise RuntimeError(
            "pack_padded_sequence: Length of all samples has to be greater than 0 and at most "
            f"{steps.size(0)}, got {lengths}"
        )
    if any(a < b for a, b in pairwise(lengths)):
        raise RuntimeError(
            "`lengths` array must be sorted in decreasing order when `enforce_sorted` is True. You "
            "can pass `enforce_sorted=False` to pack_padded_sequence"
        )
    counts = [sum(n > t for n in lengths) for t in range(lengths[0])]
    return pt.cat([steps[t, :n] for t, n in enumerate(counts)]), pt.tensor(counts)


def pad_packed_sequence(
    sequence: PackedSequence,
    batch_first: bool = False,
    padding_value: Any = 0.0,
    total_length: int | None = None,
) -> tuple[Tensor, Tensor]:
    """The padded sequences and their lengths; undoes ``pack_padded_sequence``."""
    longest = sequence.batch_sizes.size(0)
    if total_length is not None:
        if total_length < longest:
            raise ValueError(
                "Expected total_length to be at least the length of the longest sequence in "
                f"input, but got total_length={total_length} and max sequence length being "
                f"{longest}"
            )
        longest = total_length
    counts = sequence.batch_sizes.tolist()
    batch, rest = counts[0], sequence.data.shape[1:]
    steps = []
    for part in sequence.data.split(counts):
        missing = batch - part.size(0)
        blank = part.new_full((missing, *rest), padding_value)
        steps.append(pt.cat([part, blank]) if missing else part)
    blank = sequence.data.new_full((batch, *rest), padding_value)
    padded = pt.stack(steps + [blank] * (longest - len(steps)))
    lengths = pt.tensor([sum(i < n for n in counts) for i in range(batch)])
    if batch_first:
        padded = padded.transpose(0, 1)
    back = sequence.unsorted_indices
    if back is not None:
        padded = padded.index_select(0 if batch_first else 1, back)
        return padded, lengths[back.cpu()]
    return padded, lengths


def pad_sequence(
    sequences: Any,
    batch_first: bool = False,
    padding_value: Any = 0.0,
    padding_side: str = "right",
) -> Tensor:
    """Stack sequences of different lengths, filled up with ``padding_value``."""
    if isinstance(sequences, Tensor):
        sequences = sequences.unbind(0)
    elif not isinstance(sequences, Iterable):
        raise RuntimeError(
            "pad_sequence: Expected iterable for input sequences, but got arg of type: "
            f"{type(sequences)}"
        )
    return _pad_sequence(list(sequences), batch_first, padding_value, padding_side)


def unpad_sequence(
    padded_sequences: Tensor, lengths: Tensor, batch_first: bool = False
) -> list[Tensor]:
    """The sequences of a padded batch, each cut to its length."""
    rows = padded_sequences if batch_first else padded_sequences.transpose(0, 1)
    return [row[: int(length)] for row, length in zip(rows, lengths)]


def pack_sequence(sequences: list[Tensor], enforce_sorted: bool = True) -> PackedSequence:
    """Pack a list of sequences."""
    lengths = pt.as_tensor([s.size(0) for s in sequences])
    return pack_padded_sequence(pad_sequence(sequences), lengths, enforce_sorted=enforce_sorted)


def unpack_sequence(packed_sequences: PackedSequence) -> list[Tensor]:
    """The sequences of a packed batch."""
    padded, lengths = pad_packed_sequence(packed_sequences, batch_first=True)
    return unpad_sequence(padded, lengths, batch_first=True)
