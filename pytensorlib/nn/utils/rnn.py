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
    """The permutation that undoes another.

    Parameters
    ----------
    permutation : Tensor or None
        1-d, int64; None gives None.

    Returns
    -------
    Tensor or None
        Of the same shape.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> from pytensorlib import nn
    >>> nn.utils.rnn.invert_permutation(torch.tensor([2, 0, 1]))
    tensor([1, 2, 0])
    """
    if permutation is None:
        return None
    inverse = pt.empty_like(permutation, memory_format=pt.legacy_contiguous_format)
    order = pt.arange(0, permutation.numel(), device=permutation.device, dtype=permutation.dtype)
    return inverse.scatter_(0, permutation, order)


class PackedSequence(_Packed):
    """The steps of all sequences, step by step, without padding: what recurrent layers read.

    It is made by `pack_sequence` and `pack_padded_sequence`. ``batch_sizes[i]`` counts the
    sequences that are longer than ``i``.

    Parameters
    ----------
    data : Tensor
        (sum of lengths, ...).
    batch_sizes : Tensor
        1-d, int64, on the CPU; falling.
    sorted_indices : Tensor, optional
        The order that sorts the sequences by length.
    unsorted_indices : Tensor, optional
        The order back.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> from pytensorlib import nn
    >>> packed = nn.utils.rnn.pack_sequence([torch.tensor([1, 2, 3]), torch.tensor([4])])
    >>> packed.data, packed.batch_sizes
    (tensor([1, 4, 2, 3]), tensor([2, 1, 1]))
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

    def long(self) -> Any:
        """Convert to int64."""
        return self.to(dtype=pt.int64)

    def int(self) -> Any:
        """Convert to int32."""
        return self.to(dtype=pt.int32)

    def short(self) -> Any:
        """Convert to int16."""
        return self.to(dtype=pt.int16)

    def char(self) -> Any:
        """Convert to int8."""
        return self.to(dtype=pt.int8)

    def byte(self) -> Any:
        """Convert to uint8."""
        return self.to(dtype=pt.uint8)

    def cuda(self, *args: Any, **kwargs: Any) -> Any:
        """Move the data to a CUDA device, which there is none of: it raises as a tensor's does."""
        return type(self)(self.data.cuda(*args, **kwargs), *self[1:])

    def pin_memory(self) -> Any:
        """Return the sequence itself, as `Tensor.pin_memory` does."""
        return self

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
    """Drop the padding of sequences.

    Parameters
    ----------
    input : Tensor
        (L, N, ...), or (N, L, ...) with `batch_first`.
    lengths : Tensor or sequence of int
        (N,), on the CPU; positive.
    batch_first : bool, default False
        The order of dimensions.
    enforce_sorted : bool, default True
        The lengths fall; otherwise they are sorted.

    Returns
    -------
    PackedSequence
        For a recurrent layer.

    Raises
    ------
    RuntimeError
        A length is not positive, or `enforce_sorted` is true and they do not fall.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> from pytensorlib import nn
    >>> x = torch.tensor([[1, 2, 3], [4, 0, 0]])
    >>> nn.utils.rnn.pack_padded_sequence(x, [3, 1], batch_first=True).data
    tensor([1, 4, 2, 3])
    """
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
    if steps.numel() == 0:
        raise RuntimeError("pack_padded_sequence: Cannot pack empty tensors.")
    if len(lengths) != steps.size(1):
        raise RuntimeError(
            f"pack_padded_sequence: expected {steps.size(1)} lengths, one for each sequence, got "
            f"{len(lengths)}"
        )
    if lengths and min(lengths) <= 0:
        raise RuntimeError(
            "pack_padded_sequence: Length of all samples has to be greater than 0, but found an "
            f"element in 'lengths' that is <= 0: {lengths}"
        )
    if not lengths or lengths[0] > steps.size(0):
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
    """The padded sequences and their lengths; undoes `pack_padded_sequence`.

    Parameters
    ----------
    sequence : PackedSequence
        What a recurrent layer returned.
    batch_first : bool, default False
        Return (N, L, ...).
    padding_value : float, default 0.0
        What fills up.
    total_length : int, optional
        L; the longest length by default.

    Returns
    -------
    tuple of Tensor
        (L, N, ...) and the lengths (N,), in the first order.

    Raises
    ------
    ValueError
        `total_length` is less than the longest.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> from pytensorlib import nn
    >>> packed = nn.utils.rnn.pack_sequence([torch.tensor([1, 2, 3]), torch.tensor([4])])
    >>> nn.utils.rnn.pad_packed_sequence(packed, batch_first=True)
    (tensor([[1, 2, 3],
            [4, 0, 0]]), tensor([3, 1]))
    """
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
    """Stack sequences of different lengths, filled up with a value.

    Parameters
    ----------
    sequences : list of Tensor
        (L_i, ...), of which only the first size differs.
    batch_first : bool, default False
        Return (N, L, ...).
    padding_value : float, default 0.0
        What fills up.
    padding_side : {'right', 'left'}, default 'right'
        On which side.

    Returns
    -------
    Tensor
        (L, N, ...), with the longest L.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> from pytensorlib import nn
    >>> parts = [torch.tensor([1, 2]), torch.tensor([3])]
    >>> nn.utils.rnn.pad_sequence(parts, batch_first=True)
    tensor([[1, 2],
            [3, 0]])
    """
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
    """The sequences of a padded batch, each cut to its length; undoes `pad_sequence`.

    Parameters
    ----------
    padded_sequences : Tensor
        (L, N, ...), or (N, L, ...) with `batch_first`.
    lengths : Tensor
        (N,).
    batch_first : bool, default False
        The order of dimensions.

    Returns
    -------
    list of Tensor
        (L_i, ...).

    Examples
    --------
    >>> import pytensorlib as torch
    >>> from pytensorlib import nn
    >>> x = torch.tensor([[1, 2], [3, 0]])
    >>> nn.utils.rnn.unpad_sequence(x, torch.tensor([2, 1]), batch_first=True)
    [tensor([1, 2]), tensor([3])]
    """
    rows = padded_sequences if batch_first else padded_sequences.transpose(0, 1)
    return [row[: int(length)] for row, length in zip(rows, lengths)]


def pack_sequence(sequences: list[Tensor], enforce_sorted: bool = True) -> PackedSequence:
    """Pack a list of sequences.

    Parameters
    ----------
    sequences : list of Tensor
        (L_i, ...), of which only the first size differs.
    enforce_sorted : bool, default True
        The lengths fall; otherwise they are sorted.

    Returns
    -------
    PackedSequence
        For a recurrent layer.

    Raises
    ------
    RuntimeError
        `enforce_sorted` is true and the lengths do not fall.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> from pytensorlib import nn
    >>> nn.utils.rnn.pack_sequence([torch.tensor([1, 2, 3]), torch.tensor([4])]).data
    tensor([1, 4, 2, 3])
    """
    lengths = pt.as_tensor([s.size(0) for s in sequences])
    return pack_padded_sequence(pad_sequence(sequences), lengths, enforce_sorted=enforce_sorted)


def unpack_sequence(packed_sequences: PackedSequence) -> list[Tensor]:
    """The sequences of a packed batch; undoes `pack_sequence`.

    Parameters
    ----------
    packed_sequences : PackedSequence
        The batch.

    Returns
    -------
    list of Tensor
        (L_i, ...).

    Examples
    --------
    >>> import pytensorlib as torch
    >>> from pytensorlib import nn
    >>> packed = nn.utils.rnn.pack_sequence([torch.tensor([1, 2, 3]), torch.tensor([4])])
    >>> nn.utils.rnn.unpack_sequence(packed)
    [tensor([1, 2, 3]), tensor([4])]
    """
    padded, lengths = pad_packed_sequence(packed_sequences, batch_first=True)
    return unpad_sequence(padded, lengths, batch_first=True)
