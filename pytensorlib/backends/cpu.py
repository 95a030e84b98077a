"""The instruction set that the CPU's kernels use."""

from __future__ import annotations

from .. import _C

__all__ = ["get_cpu_capability"]


def get_cpu_capability() -> str:
    """Return the instruction set in use, as PyTorch calls it.

    Returns
    -------
    str
        "AVX512", "AVX2", or "DEFAULT" for code that any processor runs.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> torch.backends.cpu.get_cpu_capability() in {"AVX512", "AVX2", "DEFAULT"}
    True
    """
    return {"avx512": "AVX512", "avx2": "AVX2"}.get(_C._machine()["level"], "DEFAULT")
