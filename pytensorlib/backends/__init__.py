"""What scripts ask of ``torch.backends``: PyTorch's own backends are not here.

Each says that it is not available. Switches keep what they are set to, so that programs that set
and restore them work; `torch.backends.cuda` and `torch.backends.cudnn` say which change something.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from . import (
    _switches,
    cpu,
    cuda,
    cudnn,
    cusparselt,
    kleidiai,
    mha,
    miopen,
    mkl,
    mkldnn,
    mps,
    nnpack,
    openmp,
    opt_einsum,
    quantized,
)

__all__ = [
    "cpu",
    "cuda",
    "cudnn",
    "cusparselt",
    "fp32_precision",
    "kleidiai",
    "mha",
    "miopen",
    "mkl",
    "mkldnn",
    "mps",
    "nnpack",
    "openmp",
    "opt_einsum",
    "quantized",
]

fp32_precision = "none"
_switches.heard(
    __name__,
    fp32_precision=lambda value: cuda._set_precision(value, ("none", "ieee", "tf32", "bf16")),
)
# Whether switches may be set outside `flags`. PyTorch's module takes it back where that is asked.
__allow_nonbracketed_mutation_flag = True


def disable_global_flags() -> None:
    """Note that switches are to be set by `flags` alone; they change nothing here in any case.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> callable(torch.backends.disable_global_flags)
    True
    """
    global __allow_nonbracketed_mutation_flag  # noqa: PLW0603
    __allow_nonbracketed_mutation_flag = False


def flags_frozen() -> bool:
    """Return whether `disable_global_flags` was called.

    Returns
    -------
    bool
        False at first.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> torch.backends.flags_frozen()
    False
    """
    return not __allow_nonbracketed_mutation_flag


@contextmanager
def __allow_nonbracketed_mutation() -> Iterator[None]:
    """Let switches be set anywhere for a block."""
    global __allow_nonbracketed_mutation_flag  # noqa: PLW0603
    before = __allow_nonbracketed_mutation_flag
    __allow_nonbracketed_mutation_flag = True
    try:
        yield
    finally:
        __allow_nonbracketed_mutation_flag = before
