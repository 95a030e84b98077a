"""Functions of `torch` with an underscore, which libraries and PyTorch's tests call."""

from __future__ import annotations

import math
from typing import Any

import pytest

import pytensorlib as torch
from pytensorlib._ops import private as _private

T = torch.tensor
X = torch.arange(6.0).view(2, 3) - 2
INF = math.inf

# Calls, and what PyTorch 2.13 returned.
RETURNED: list[tuple[str, Any]] = [
    ("_add_relu(X, X, alpha=2)", [[0.0, 0.0, 0.0], [3.0, 6.0, 9.0]]),
    ("_addmm_activation(torch.zeros(2, 2), X, X.T)", [[5.0, 0.0], [0.0, 14.0]]),
    (
        "_addmm_activation(torch.zeros(2, 2), X, X.T, use_gelu=True)",
        [[5.0, -1.2648e-04], [-1.2648e-04, 14.0]],
    ),
    ("_aminmax(X)", (-2.0, 3.0)),
    ("_aminmax(X, 0)", ([-2.0, -1.0, 0.0], [1.0, 2.0, 3.0])),
    ("_cast_Byte(X)", [[254, 255, 0], [1, 2, 3]]),
    ("_compute_linear_combination(X, T([[1.0, 2], [3, 4]]))", [[0.0, 3, 6], [-2.0, 5, 12]]),
    ("_convert_indices_from_coo_to_csr(T([0, 0, 2]), 4)", [0, 2, 2, 3, 3]),
    ("_convert_indices_from_csr_to_coo(T([0, 1, 3]), T([0, 0, 1]))", [[0, 1, 1], [0, 0, 1]]),
    (
        "_convert_indices_from_csr_to_coo(T([0, 1, 3]), T([0, 0, 1]), transpose=True)",
        [[0, 0, 1], [0, 1, 1]],
    ),
    (
        "_convolution(torch.ones(1, 1, 3), torch.ones(1, 1, 2), None, [1], [0], [1], False, [0], "
        "1, False, False, True, True)",
        [[[2.0, 2.0]]],
    ),
    (
        "_convolution_mode(torch.ones(1, 1, 3), torch.ones(1, 1, 2), None, [1], 'same', [1], 1)",
        [[[2.0, 2.0, 1.0]]],
    ),
    ("_debug_has_internal_overlap(X)", 0),
    ("_debug_has_internal_overlap(X[:1].expand(4, 3))", 1),
    ("_debug_has_internal_overlap(torch.as_strided(X, (2, 2), (1, 1)))", 2),
    ("_dim_arange(X, 1)", [0, 1, 2]),
    ("_efficientzerotensor((2,))", [0.0, 0.0]),
    ("_embedding_bag(torch.eye(3), T([0, 1, 2]), T([0, 2]))[0]", [[1.0, 1, 0], [0.0, 0, 1]]),
    ("_euclidean_dist(X, X)", [[0.0, 5.1962], [5.1962, 0.0]]),
    ("_fft_r2c(X, [1], 0, True)", [[-3 + 0j, -1.5 + 0.8660j], [6 + 0j, -1.5 + 0.8660j]]),
    (
        "_fft_r2c(X, [1], 0, False)",
        [[-3 + 0j, -1.5 + 0.8660j, -1.5 - 0.8660j], [6 + 0j, -1.5 + 0.8660j, -1.5 - 0.8660j]],
    ),
    (
        "_fft_c2c(X.cfloat(), [0, 1], 1, True)",
        [[1.2247 + 0j, -1.2247 + 0.7071j, -1.2247 - 0.7071j], [-3.6742 + 0j, 0j, 0j]],
    ),
    ("_fft_c2c(X.cfloat(), [0], 2, False).real", [[-0.5, 0.5, 1.5], [-1.5, -1.5, -1.5]]),
    ("_fft_c2r(torch._fft_r2c(X, [1], 0, True), [1], 2, 3)", [[-2.0, -1, 0], [1.0, 2, 3]]),
    ("_fused_rms_norm(X, [3], None, 1e-5)[1]", [[0.7746], [0.4629]]),
    (
        "_grid_sampler_2d_cpu_fallback(torch.ones(1,1,2,2), torch.zeros(1,1,1,2), 0, 0, False)",
        [[[[1.0]]]],
    ),
    ("_has_compatible_shallow_copy_type(X, X.to_sparse())", False),
    ("_index_put_impl_(torch.zeros(3), [T([1])], T(2.0))", [0.0, 2.0, 0.0]),
    ("_int_mm(torch.ones(2, 3).char(), torch.ones(3, 2).char())", [[3, 3], [3, 3]]),
    ("_is_zerotensor(X)", False),
    ("_linalg_det(torch.eye(2) * 2)", (4.0, [[2.0, 0.0], [0.0, 2.0]], [1, 2])),
    ("_linalg_svd(torch.eye(2))[1]", [1.0, 1.0]),
    ("_log_softmax_backward_data(torch.ones(2), T([0.5, 0.5]), 0, torch.float32)", [-2.2974] * 2),
    ("_softmax_backward_data(torch.ones(2), T([0.5, 0.5]), 0, torch.float32)", [0.0, 0.0]),
    ("_lu_with_info(torch.eye(2))", ([[1.0, 0.0], [0.0, 1.0]], [1, 2], 0)),
    (
        "_masked_softmax(torch.ones(1, 1, 2, 2), T([[False, True], [False, False]]), 3, 0)",
        [[[[1.0, 0.0], [0.5, 0.5]]]],
    ),
    ("_masked_softmax(X, X > 5, 1)[0]", [0.0900, 0.2447, 0.6652]),
    (
        "_pack_padded_sequence(X.T[..., None], T([3, 2]), False)",
        ([[-2.0], [1.0], [-1.0], [2.0], [0.0]], [2, 2, 1]),
    ),
    (
        "_pad_packed_sequence(torch.arange(5.0)[:, None], T([2, 2, 1]), False, 0.0, 3)",
        ([[[0.0], [1.0]], [[2.0], [3.0]], [[4.0], [0.0]]], [3, 2]),
    ),
    ("_prelu_kernel(X, T(0.5))", [[-1.0, -0.5, 0.0], [1.0, 2.0, 3.0]]),
    ("_reshape_from_tensor(X, T([3, 2]))", [[-2.0, -1.0], [0.0, 1.0], [2.0, 3.0]]),
    ("_safe_softmax(T([[-INF, -INF], [0.0, 0.0]]), 1)", [[0.0, 0.0], [0.5, 0.5]]),
    (
        "_scaled_dot_product_attention_math(X[None], X[None], X[None])[1]",
        [[[9.9449e-01, 5.5073e-03], [3.0667e-05, 9.9997e-01]]],
    ),
    ("_segment_reduce(T([1.0, 2, 3]), 'sum', lengths=T([1, 2]))", [1.0, 5.0]),
    ("_shape_as_tensor(X)", [2, 3]),
    ("_stack([X, X], 1)[0, 1]", [-2.0, -1.0, 0.0]),
    (
        "_transform_bias_rescale_qkv(torch.ones(1, 2, 6), torch.ones(6), 2)[0]",
        [[[[2.0], [2.0]], [[2.0], [2.0]]]],
    ),
    ("_unique(T([2, 1, 2]))", ([1, 2], [])),
    ("_unique(T([2, 1, 2]), True, True)", ([1, 2], [1, 0, 1])),
    ("_unique2(T([2, 1, 2]), True, True, True)", ([1, 2], [1, 0, 1], [1, 2])),
    ("_unsafe_index(X, [T([1, 0])])", [[1.0, 2, 3], [-2.0, -1, 0]]),
    ("_weight_norm(X, torch.ones(2, 1), 0)", [[-0.8944, -0.4472, 0], [0.2673, 0.5345, 0.8018]]),
    ("_weight_norm_interface(X, torch.ones(2, 1), 0)[1]", [[2.2361], [3.7417]]),
]


@pytest.mark.parametrize(("call", "want"), RETURNED, ids=lambda v: v if isinstance(v, str) else "")
def test_private_function_returns_what_pytorch_returned(call: str, want: Any) -> None:
    got = eval(f"torch.{call}", {"torch": torch, "T": T, "X": X, "INF": INF})
    pairs = zip(got, want, strict=True) if isinstance(want, tuple) else [(got, want)]
    for g, w in pairs:
        if isinstance(g, torch.Tensor):
            torch.testing.assert_close(g, T(w, dtype=g.dtype), rtol=1e-4, atol=5e-5)
        else:
            assert g == w


# One-dimensional: kernels of (1, 1, 2), no padding.
FORM = "[1], [0], [1], False, [0], 1"
# Operators that give gradients, and what PyTorch 2.13 returned.
GRADIENTS: list[tuple[str, Any]] = [
    (
        "convolution_backward(torch.arange(4.0).view(1, 1, 2, 2), torch.arange(9.0).view(1, 1, 3, "
        "3), torch.ones(1, 1, 2, 2), [1], [1, 1], [0, 0], [1, 1], False, [0, 0], 1, [True] * 3)",
        (
            [[[[0.0, 1.0, 1.0], [2.0, 6.0, 4.0], [2.0, 5.0, 3.0]]]],
            [[[[19.0, 25.0], [37.0, 43.0]]]],
            [6.0],
        ),
    ),
    (
        "convolution_backward(torch.ones(1, 1, 5), torch.arange(3.0).view(1, 1, 3), torch.ones(1, "
        "1, 3), None, [2], [1], [1], True, [0], 1, [False, True, False])",
        (None, [[[3.0, 3.0, 1.0]]], None),
    ),
    (
        "_convolution_double_backward(torch.ones(1, 1, 3), torch.ones(1, 1, 2), torch.ones(1), "
        f"torch.arange(2.0).view(1, 1, 2), T([[[0.0, 1.0]]]), T([[[0.0, 1, 2]]]), {FORM}, "
        "[True] * 3)",
        ([[[3.0, 5.0]]], [[[0.0, 1.0, 1.0]]], [[[1.0, 1.0]]]),
    ),
    (
        "embedding_dense_backward(torch.arange(6.0).view(3, 2), T([2, 0, 2]), 3, -1, True)",
        [[2.0, 3.0], [0.0, 0.0], [2.0, 3.0]],
    ),
    ("gelu_backward(torch.ones(2), T([-1.0, 2.0]))", [-0.083315, 1.085232]),
    (
        "gelu_backward(torch.ones(2), T([-1.0, 2.0]), approximate='tanh')",
        [-0.082964, 1.086099],
    ),
    ("silu_backward(T([1.0, 2.0]), T([-1.0, 2.0]))", [0.072329, 2.181569]),
    ("sigmoid_backward(T([1.0, 2.0]), T([0.25, 0.5]))", [0.1875, 0.5]),
    ("tanh_backward(T([1 + 1j]), T([1 - 2j]))", [8.0 + 0.0j]),
    ("threshold_backward(T([1.0, 2.0, 3.0]), T([-1.0, 0.0, 2.0]), 0)", [0.0, 0.0, 3.0]),
    (
        "native_layer_norm_backward(T([[1.0, 2.0, 4.0]]), T([[0.0, 1.0, 5.0]]), [3], T([[2.0]]), "
        "T([[0.5]]), T([1.0, 2.0, 3.0]), torch.zeros(3), [True] * 3)",
        ([[0.166667, 0.416667, -0.583333]], [-1.0, -1.0, 6.0], [1.0, 2.0, 4.0]),
    ),
]


@pytest.mark.parametrize(("call", "want"), GRADIENTS)
def test_operator_of_a_gradient_returns_what_pytorch_returned(call: str, want: Any) -> None:
    test_private_function_returns_what_pytorch_returned(f"ops.aten.{call}", want)


def test_gradient_of_a_convolution_is_differentiable() -> None:
    x = torch.randn(1, 2, 5, dtype=torch.float64, requires_grad=True)
    w = torch.randn(3, 2, 3, dtype=torch.float64, requires_grad=True)
    g = torch.randn(1, 3, 3, dtype=torch.float64, requires_grad=True)

    def gradients(g: torch.Tensor, x: torch.Tensor, w: torch.Tensor) -> Any:
        form = ([1], [0], [1], False, [0], 1)
        return torch.ops.aten.convolution_backward(g, x, w, [3], *form, [True] * 3)

    assert torch.autograd.gradcheck(gradients, (g, x, w))


def test_private_function_raises_what_pytorch_raised() -> None:
    with pytest.raises(RuntimeError, match="Expected Tensor with single nonzero value, but got"):
        torch._assert_async(T(0))
    with pytest.raises(RuntimeError, match="^mine$"):
        torch._assert_async(T(False), "mine")
    with pytest.raises(RuntimeError, match="with more than one value is ambiguous"):
        torch._assert_async(T([1, 1]))
    torch._assert_async(T(1))
    with pytest.raises(RuntimeError, match="^mine$"):
        torch._assert_scalar(False, "mine")
    torch._assert_tensor_metadata(X, [2, 3], None, torch.float32)
    for given in (([2, 4],), (None, [1, 1]), (None, None, torch.float64)):
        with pytest.raises(RuntimeError, match="Tensor .* mismatch! Expected: "):
            torch._assert_tensor_metadata(X, *given)


def test_trilinear_sums_a_product_of_three() -> None:
    # bilinear's: x1[b, i], weight[o, i, j], x2[b, j].
    x, w, y = torch.randn(3, 4), torch.randn(5, 4, 2), torch.randn(3, 2)
    got = torch._trilinear(x, w, y, [1, 3], [0], [1, 2], [2, 3])
    torch.testing.assert_close(got, torch.einsum("bi,oij,bj->bo", x, w, y))


def test_private_functions_are_found_on_vf_too() -> None:
    assert torch._VF.lstm is torch.lstm
    assert torch._C._VariableFunctions.split is torch.split
    assert torch._VF._unique2 is _private._unique2
    with pytest.raises(AttributeError):
        _ = torch._VF.no_such_name
    with pytest.raises(AttributeError):
        _ = torch._C._VariableFunctions.nn


@pytest.mark.parametrize("name", ["eig", "symeig", "matrix_rank", "solve", "lstsq"])
def test_function_that_pytorch_removed_names_what_took_its_place(name: str) -> None:
    places = [torch] if name == "matrix_rank" else [torch, torch.Tensor]
    for place in places:
        with pytest.raises(
            RuntimeError, match="deprecated since version 1.9 and is now removed.*linalg"
        ):
            getattr(place, name)(X, X)


def test_reading_every_name_changes_no_function_elsewhere() -> None:
    """A name that is made when it is first read tells the module of its own functions alone."""
    places = (torch.nn.functional, torch.nn, torch.optim, torch.linalg, torch.fft, torch.special)
    objects = [(place, name) for place in places for name in dir(place)]
    before = [getattr(getattr(place, name), "__module__", None) for place, name in objects]
    for name in dir(torch):
        getattr(torch, name)
    after = [getattr(getattr(place, name), "__module__", None) for place, name in objects]
    assert after == before
