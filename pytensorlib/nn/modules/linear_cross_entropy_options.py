"""How a loss over many classes is to save memory."""

from __future__ import annotations

import dataclasses
import re
from typing import Any

import pytensorlib as pt

__all__ = ["LinearCrossEntropyOptions"]


@dataclasses.dataclass(slots=True, frozen=True)
class LinearCrossEntropyOptions:
    """How PyTorch's `linear_cross_entropy` is to save memory; the loss does not depend on it.

    The loss is computed whole here: backward may run again, and second derivatives exist.

    Parameters
    ----------
    allow_retain_graph : bool, default False
        Whether backward may run again.
    batch_chunk_size : int, optional
        How many rows at once.
    chunking_method : str, optional
        "auto", "aspect_ratio", or "aspect_ratio:N".
    acc_policy : {"auto", "accurate", "balanced", "compact"}, default "auto"
        Which sums are kept in `acc_dtype`.
    acc_dtype : dtype, optional
        A floating type in which is summed.

    Raises
    ------
    ValueError
        A value is none of these.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> options = torch.nn.LinearCrossEntropyOptions(batch_chunk_size=64)
    >>> loss = torch.nn.functional.linear_cross_entropy
    >>> loss(torch.ones(1, 2), torch.eye(2), torch.tensor([0]), options=options)
    tensor(0.6931)
    """

    allow_retain_graph: bool = False
    batch_chunk_size: int | None = None
    chunking_method: str | None = "auto"
    acc_policy: str = "auto"
    acc_dtype: Any = None

    def __post_init__(self) -> None:
        if self.acc_policy not in ("auto", "accurate", "balanced", "compact"):
            raise ValueError(f"invalid acc_policy: {self.acc_policy!r}")
        method = self.chunking_method
        if method is not None and not re.fullmatch(r"auto|aspect_ratio(:0*[1-9]\d*)?", method):
            raise ValueError(f"invalid chunking_method: {method!r}")
        rows = self.batch_chunk_size
        if rows is not None and not (isinstance(rows, int) and rows > 0):
            raise ValueError(f"batch_chunk_size must be positive int or None, got {rows!r}")
        kinds = (None, pt.float16, pt.bfloat16, pt.float32, pt.float64)
        if self.acc_dtype not in kinds:
            raise ValueError(f"acc_dtype must be one of {set(kinds)}, got {self.acc_dtype!r}")
