"""How results lie in memory, what they share with arguments, and what is written to."""

from __future__ import annotations

from .entry import FACTORS, Accepted

MEMORY: tuple[Accepted, ...] = (
    Accepted(
        "STRIDE",
        "",
        r"stride=|'layout'|out=",
        "new results are rows in memory, but for pointwise ones of dense operands; PyTorch's "
        "iterator keeps more permutations",
    ),
    Accepted("STRIDE", FACTORS, "", "LAPACK leaves columns, ours are rows"),
    Accepted(
        "STRIDE",
        "conv_tbc|attention|unravel_index|argwhere|nonzero|^unique",
        "",
        "one of both gives a transposed view of what its kernel fills",
    ),
    Accepted(
        "STRIDE|VALUE|GRADIENT",
        r"_scatter$",
        "stride=",
        "the result is contiguous; PyTorch keeps strides, also those that make elements overlap",
    ),
    Accepted("WRITE", "^(cov|corrcoef)$", "", "PyTorch subtracts the mean in its argument"),
    Accepted("ALIAS", "sum_to_size", "int64", "a sum of one element of its type is that element"),
    Accepted(
        "ALIAS",
        "^(long|int|short|char|byte|bool|float|double|half|bfloat16|to)$",
        "memory_format",
        "what asks for contiguous memory gets it",
    ),
)
