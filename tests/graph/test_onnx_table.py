"""The operator table in ONNX: every row's operator is written and equal, or refused."""

from __future__ import annotations

import numpy as np
import op_db
import pytest

import pytensorlib as torch
from pytensorlib import nn
from pytensorlib.onnx import OnnxExporterError
from pytensorlib.utils import _pytree as pytree

TOLERANCE = 1e-4  # of float32 sums and powers in another order

# What ONNX's operators cannot say for at least one of the row's samples: some special functions,
# factorisations, complex numbers, and results that need a value while the program is recorded.
REFUSED = set(
    """
    Tensor.bfloat16 Tensor.cdouble Tensor.cfloat Tensor.nonzero_numpy allclose bincount cholesky
    cholesky_inverse cholesky_solve complex equal gcd geqrf histogram igamma igammac inverse lcm
    linalg.cholesky linalg.cholesky_ex linalg.cond linalg.eig linalg.eigh linalg.eigvals
    linalg.eigvalsh linalg.householder_product linalg.inv linalg.inv_ex linalg.ldl_factor
    linalg.ldl_factor_ex linalg.ldl_solve linalg.lstsq linalg.lu linalg.lu_factor
    linalg.lu_factor_ex linalg.lu_solve linalg.matrix_exp linalg.matrix_norm linalg.matrix_power
    linalg.matrix_rank linalg.norm linalg.pinv linalg.qr linalg.solve linalg.solve_ex
    linalg.solve_triangular linalg.svd linalg.svdvals linalg.tensorinv linalg.tensorsolve lu_solve
    lu_unpack matrix_exp nextafter nn.functional.ctc_loss nn.functional.gaussian_nll_loss
    nuclear_norm orgqr ormqr pinverse polar qr special.airy_ai special.bessel_j0 special.bessel_j1
    special.bessel_y0 special.bessel_y1 special.chebyshev_polynomial_t
    special.chebyshev_polynomial_u special.chebyshev_polynomial_v special.chebyshev_polynomial_w
    special.hermite_polynomial_h special.hermite_polynomial_he special.laguerre_polynomial_l
    special.legendre_polynomial_p special.modified_bessel_k0 special.modified_bessel_k1
    special.scaled_modified_bessel_k0 special.scaled_modified_bessel_k1
    special.shifted_chebyshev_polynomial_t special.shifted_chebyshev_polynomial_u
    special.shifted_chebyshev_polynomial_v special.shifted_chebyshev_polynomial_w
    special.spherical_bessel_j0 svd triangular_solve view_as_complex
    """.split()
)


class Called(nn.Module):
    """A call whose tensors are inputs."""

    def __init__(self, function, leaves, spec):
        super().__init__()
        self.function, self.leaves, self.spec = function, leaves, spec
        self.places = [i for i, leaf in enumerate(leaves) if isinstance(leaf, torch.Tensor)]

    def forward(self, *tensors):
        leaves = list(self.leaves)
        for i, t in zip(self.places, tensors, strict=True):
            leaves[i] = t
        args, kwargs = pytree.tree_unflatten(leaves, self.spec)
        return self.function(*args, **kwargs)


def float32(value):
    if not isinstance(value, np.ndarray):
        return value
    t = torch.from_numpy(np.ascontiguousarray(value))
    narrow = {torch.float64: torch.float32, torch.complex128: torch.complex64}
    return t.to(narrow.get(t.dtype, t.dtype))


def is_equal(a, b):
    return a.dtype is b.dtype and torch.allclose(
        a.double(), b.double(), rtol=TOLERANCE, atol=TOLERANCE, equal_nan=True
    )


def calls(op):
    """Return some calls of a row that compute; the last is often the oddest."""
    samples = op.samples()
    for sample in [*[s for s in samples if s.elements() > 1][:3], samples[-1]]:
        leaves, spec = pytree.tree_flatten((sample.args, sample.kwargs))
        module = Called(op.function(torch), [float32(leaf) for leaf in leaves], spec)
        tensors = tuple(module.leaves[i] for i in module.places)
        try:
            torch.manual_seed(0)
            want = pytree.tree_leaves(module(*tensors))
        except Exception:  # noqa: S112  (not of float32: other tests have it)
            continue
        yield module, tensors, [t for t in want if isinstance(t, torch.Tensor)]


@pytest.mark.parametrize("op", op_db.OPS, ids=str)
def test_operator_is_written_and_equal_or_refused(op):
    onnx = pytest.importorskip("onnx", reason="onnx (the extra [onnx]) is not installed")
    pytest.importorskip("onnxruntime", reason="onnxruntime (the extra [onnx]) is not installed")
    if op.name in ("nn.functional.dropout", "Tensor.bfloat16"):
        pytest.skip("it draws numbers, or NumPy has no such type")
    refused = 0
    for module, tensors, want in calls(op):
        try:
            program = torch.onnx.export(module, tensors)
            onnx.checker.check_model(program.model_proto, full_check=True)
        except (
            OnnxExporterError,
            NotImplementedError,
            RuntimeError,
            onnx.shape_inference.InferenceError,
        ):
            refused += 1
            continue
        have = program(*tensors)
        assert len(have) == len(want)
        assert all(is_equal(a, b) for a, b in zip(have, want, strict=True))
    assert bool(refused) == (op.name in REFUSED)
