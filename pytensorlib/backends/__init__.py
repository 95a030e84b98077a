"""What scripts ask of ``torch.backends``: PyTorch's own backends are not here.

Each says that it is not available. Switches keep what they are set to, so that programs that set
and restore them work; they change nothing.
"""

from __future__ import annotations

from . import (
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
