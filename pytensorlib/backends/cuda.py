"""CUDA's switches; where GPUs do not answer as "cuda" they are kept and change nothing.

``matmul.allow_tf32`` and ``matmul.fp32_precision`` choose the precision of float32 products, as
`torch.set_float32_matmul_precision` does; convolutions follow it. Attention is computed by one
kernel here, whichever of PyTorch's is asked for.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any, NamedTuple

import pytensorlib as pt

from .._absent.modules import fill
from .._absent.table import NO_CUDA
from ..cuda._kind import GPU

__all__ = [
    "SDPAParams",
    "allow_fp16_bf16_reduction_math_sdp",
    "can_use_cudnn_attention",
    "can_use_efficient_attention",
    "can_use_flash_attention",
    "cuBLASModule",
    "cuFFTPlanCache",
    "cuFFTPlanCacheAttrContextProp",
    "cuFFTPlanCacheManager",
    "cudnn_sdp_enabled",
    "cufft_plan_cache",
    "enable_cudnn_sdp",
    "enable_flash_sdp",
    "enable_math_sdp",
    "enable_mem_efficient_sdp",
    "flash_sdp_enabled",
    "fp16_bf16_reduction_math_sdp_allowed",
    "is_built",
    "is_ck_sdpa_available",
    "is_flash_attention_available",
    "math_sdp_enabled",
    "matmul",
    "mem_efficient_sdp_enabled",
    "preferred_blas_library",
    "preferred_linalg_library",
    "sdp_kernel",
]


_PRECISIONS = ("none", "ieee", "tf32")


def _set_precision(value: Any, known: tuple[str, ...] = _PRECISIONS) -> None:
    """Let products of GPUs that answer as "cuda" have the precision of a word."""
    if value not in known:
        raise RuntimeError(f"Unknown precision: {value}; take one of {', '.join(known)}")
    word = "high" if value in ("tf32", "bf16") else "highest"
    # A switch of CUDA's takes no digit from the CPU's products.
    pt.set_float32_matmul_precision(word if GPU.is_available() else "highest")
    pt._precision = word


class cuFFTPlanCache:
    """Plans of Fourier transforms that are kept: none are.

    Parameters
    ----------
    device_index : int
        Of a GPU.
    """

    size = max_size = 0

    def __init__(self, device_index: int = 0) -> None:
        self.device_index = device_index

    def clear(self) -> None:
        """Do nothing: no plan is kept."""


class cuFFTPlanCacheManager(cuFFTPlanCache):
    """The plans of all GPUs: by their numbers, and of the current one."""

    def __getitem__(self, device: Any) -> cuFFTPlanCache:
        return cuFFTPlanCache(GPU.index(device, "cufft_plan_cache"))


class cuFFTPlanCacheAttrContextProp:
    """A property of a class, made of two functions.

    Parameters
    ----------
    getter, setter : callable
        What gives its value, and what takes one.
    """

    def __init__(self, getter: Any, setter: Any) -> None:
        self.getter, self.setter = getter, setter

    def __get__(self, obj: Any, objtype: Any) -> Any:
        return self.getter()

    def __set__(self, obj: Any, val: Any) -> None:
        if isinstance(self.setter, str):
            raise RuntimeError(self.setter)
        self.setter(val)


class cuBLASModule:
    """The switches of products."""

    _kept = {
        "allow_tf32": False,
        "fp32_precision": "none",
        "allow_fp16_reduced_precision_reduction": True,
        "allow_bf16_reduced_precision_reduction": True,
        "allow_fp16_accumulation": False,
    }

    def __getattr__(self, name: str) -> Any:
        if name not in self._kept:
            raise AttributeError(f"Unknown attribute {name}")
        kept = self._kept[name]
        quick = pt.get_float32_matmul_precision() != "highest"
        if name == "allow_tf32":
            return quick
        if name == "fp32_precision":
            return "tf32" if quick else "ieee" if kept == "tf32" else kept
        return kept

    def __setattr__(self, name: str, value: Any) -> None:
        if name not in self._kept:
            raise AttributeError(f"Unknown attribute {name}")
        if name == "allow_tf32":
            _set_precision("tf32" if value else "ieee")
            self._kept["fp32_precision"] = "tf32" if value else "ieee"
        elif name == "fp32_precision":
            _set_precision(value)
            self._kept["allow_tf32"] = value == "tf32"
        self._kept[name] = value


matmul = cuBLASModule()
cufft_plan_cache = cuFFTPlanCacheManager()
_sdp = {"flash": True, "mem_efficient": True, "math": True, "cudnn": True, "reduction": False}

fill(
    globals(),
    NO_CUDA,
    "blas_workspace_size cublas_workspace_size cublaslt_workspace_size",
)


class SDPAParams(NamedTuple):
    """What attention would be called with: the `can_use_...` functions are asked about it.

    Parameters
    ----------
    query, key, value : Tensor
        As of `scaled_dot_product_attention`.
    attn_mask : Tensor, optional
        The mask.
    dropout : float
        The probability.
    is_causal : bool
        Whether later positions are hidden.
    enable_gqa : bool, default False
        Whether groups of heads share keys.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> q = torch.ones(1, 2, 3, 4)
    >>> params = torch.backends.cuda.SDPAParams(q, q, q, None, 0.0, True, False)
    >>> torch.backends.cuda.can_use_flash_attention(params)
    False
    """

    query: Any
    key: Any
    value: Any
    attn_mask: Any
    dropout: float
    is_causal: bool
    enable_gqa: bool = False


def is_built() -> bool:
    """Return whether GPUs answer as "cuda", if there are any."""
    return GPU.is_named()


def flash_sdp_enabled() -> bool:
    """Return what `enable_flash_sdp` set; at first True."""
    return _sdp["flash"]


def enable_flash_sdp(enabled: bool) -> None:
    """Keep whether PyTorch's flash attention may be used; nothing changes."""
    _sdp["flash"] = bool(enabled)


def mem_efficient_sdp_enabled() -> bool:
    """Return what `enable_mem_efficient_sdp` set; at first True."""
    return _sdp["mem_efficient"]


def enable_mem_efficient_sdp(enabled: bool) -> None:
    """Keep whether PyTorch's memory-efficient attention may be used; nothing changes."""
    _sdp["mem_efficient"] = bool(enabled)


def math_sdp_enabled() -> bool:
    """Return what `enable_math_sdp` set; at first True."""
    return _sdp["math"]


def enable_math_sdp(enabled: bool) -> None:
    """Keep whether PyTorch's plain attention may be used; nothing changes."""
    _sdp["math"] = bool(enabled)


def cudnn_sdp_enabled() -> bool:
    """Return what `enable_cudnn_sdp` set; at first True."""
    return _sdp["cudnn"]


def enable_cudnn_sdp(enabled: bool) -> None:
    """Keep whether cuDNN's attention may be used; nothing changes."""
    _sdp["cudnn"] = bool(enabled)


def allow_fp16_bf16_reduction_math_sdp(enabled: bool) -> None:
    """Keep whether plain attention may sum in half types; nothing changes."""
    _sdp["reduction"] = bool(enabled)


def fp16_bf16_reduction_math_sdp_allowed() -> bool:
    """Return what `allow_fp16_bf16_reduction_math_sdp` set; at first False."""
    return _sdp["reduction"]


def is_flash_attention_available() -> bool:
    """Return whether there is a GPU that answers as "cuda", where scores are kept in tiles."""
    return GPU.is_available()


def is_ck_sdpa_available() -> bool:
    """Return False: PyTorch's kernel of that name is not here."""
    return False


def can_use_flash_attention(params: Any, debug: bool = False) -> bool:
    """Return whether attention keeps scores in tiles: for all tensors on a GPU."""
    return bool(params.query.is_cuda)


can_use_efficient_attention = can_use_flash_attention


def can_use_cudnn_attention(params: Any, debug: bool = False) -> bool:
    """Return False: there is no cuDNN."""
    return False


def preferred_linalg_library(backend: Any = None) -> str:
    """Return the library that factorises matrices on CUDA devices: none is chosen."""
    return "default"


preferred_blas_library = preferred_rocm_fa_library = preferred_linalg_library


@contextlib.contextmanager
def sdp_kernel(
    enable_flash: bool = True,
    enable_math: bool = True,
    enable_mem_efficient: bool = True,
    enable_cudnn: bool = True,
) -> Iterator[None]:
    """Keep for a block which of PyTorch's attentions may be used; nothing changes."""
    old = dict(_sdp)
    _sdp.update(
        flash=enable_flash, math=enable_math, mem_efficient=enable_mem_efficient, cudnn=enable_cudnn
    )
    try:
        yield
    finally:
        _sdp.update(old)
