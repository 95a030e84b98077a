"""Every operator of the table with element types that few of them compute with."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest
from op_calls import leaves, mapped, tensors
from op_db import OPS

import pytensorlib as torch

REFUSALS = (NotImplementedError, RuntimeError, TypeError, ValueError, IndexError)
# Without these the types would be of little use.
NEEDED = """
    Tensor.contiguous Tensor.copy_ Tensor.float Tensor.to abs all any cat clone diag eq expand flip
    gather index_put index_select isfinite isnan masked_fill masked_select movedim mul narrow
    nn.functional.pad permute repeat_interleave reshape roll select split squeeze stack take tile
    transpose unbind unfold where zeros_like
""".split()


def number(t: Any) -> np.ndarray:
    wide = torch.complex128 if t.dtype.is_complex else torch.float64
    return np.array(t.detach().to(wide).tolist()).reshape(tuple(t.shape))


def outcome(function: Any, call: Any) -> Any:
    try:
        return function(*call[0], **call[1])
    except REFUSALS:
        return None


@pytest.mark.parametrize("name", ["float8_e4m3fn", "float8_e5m2", "float8_e8m0fnu", "complex32"])
def test_operators_refuse_them_or_round_what_wider_types_give(name: str) -> None:
    own = getattr(torch, name)
    wide = torch.complex64 if own.is_complex else torch.float32
    taken = set()
    for op in OPS:
        function = op.function(torch)
        for sample in op.samples():
            call = tensors(sample, "float32")
            args = mapped(
                (call.args, call.kwargs),
                lambda t: t.to(own) if t.dtype is torch.float32 else t.clone(),
            )
            if not any(t.dtype is own for t in leaves(args)):
                continue
            twin = mapped(args, lambda t: t.to(wide) if t.dtype is own else t.clone())
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                got = outcome(function, args)
                if got is None:
                    continue
                taken.add(op.name)
                want = outcome(function, twin)
            assert want is not None, op.name
            for g, w in zip(leaves(got), leaves(want), strict=True):
                assert g.dtype in (w.dtype, own if w.dtype is wide else own.to_real()), op.name
                w = w.to(g.dtype)
                if own.is_complex:  # what is made of several steps is rounded at each
                    np.testing.assert_allclose(number(g), number(w), 1e-2, 1e-2, err_msg=op.name)
                else:
                    np.testing.assert_array_equal(number(g), number(w), err_msg=op.name)
    assert not set(NEEDED) - taken
