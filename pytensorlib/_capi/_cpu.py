"""`torch._C._cpu`: what the processor can do."""

from __future__ import annotations

from typing import Any

from .. import _C

__all__: list[str] = []


def _capability() -> str:
    return _C._get_cpu_capability()


def _is_avx2_supported() -> bool:
    """Return whether kernels use AVX2, or more."""
    return _capability() in ("AVX2", "AVX512")


def _is_avx512_supported() -> bool:
    """Return whether kernels use AVX-512."""
    return _capability() == "AVX512"


def _flags() -> set[str]:
    """Return the processor's features, as Linux tells them."""
    try:
        with open("/proc/cpuinfo", encoding="ascii", errors="replace") as file:
            for line in file:
                name, _, value = line.partition(":")
                if name.strip() in ("flags", "Features"):
                    return set(value.split())
    except OSError:
        pass
    return set()


def _is_avx512_vnni_supported() -> bool:
    """Return whether the processor has sums of products of 8-bit integers."""
    return "avx512_vnni" in _flags()


_is_vnni_supported = _is_avx512_vnni_supported


def _is_avx512_bf16_supported() -> bool:
    """Return whether the processor has sums of products of bfloat16."""
    return "avx512_bf16" in _flags()


def _is_amx_tile_supported() -> bool:
    """Return whether the processor has matrix tiles."""
    return "amx_tile" in _flags()


def _is_amx_fp16_supported() -> bool:
    """Return whether the processor has matrix tiles of float16."""
    return "amx_fp16" in _flags()


def get_capabilities() -> dict[str, Any]:
    """Return what the processor can do, by name.

    Returns
    -------
    dict
        A truth value for each feature, and the architecture.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> "architecture" in torch.cpu.get_capabilities()
    True
    """
    import platform

    names = {
        "sse2": "sse2", "sse4_1": "sse4_1", "sse4_2": "sse4_2", "avx": "avx", "avx2": "avx2",
        "fma3": "fma", "bmi": "bmi1", "bmi2": "bmi2", "avx512_f": "avx512f",
        "avx512_bw": "avx512bw", "avx512_dq": "avx512dq", "avx512_vl": "avx512vl",
        "avx512_vnni": "avx512_vnni", "avx512_bf16": "avx512_bf16", "avx512_fp16": "avx512_fp16",
        "avx_vnni": "avx_vnni", "amx_tile": "amx_tile", "amx_int8": "amx_int8",
        "amx_bf16": "amx_bf16", "amx_fp16": "amx_fp16", "neon": "asimd", "sve": "sve",
    }  # fmt: skip
    flags = _flags()
    return {"architecture": platform.machine(), **{k: v in flags for k, v in names.items()}}
