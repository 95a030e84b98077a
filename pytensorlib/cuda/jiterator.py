"""Elementwise functions of CUDA C++: not here."""

from __future__ import annotations

from .._absent.modules import fill

__all__: list[str] = []

fill(
    globals(),
    "there is no compiler for CUDA C++ here; torch.wgpu.elementwise takes a function of WGSL, and "
    "torch.compile joins elementwise operators of Python.",
    "_create_jit_fn _create_multi_output_jit_fn",
)
