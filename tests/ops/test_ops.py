"""Laws that hold for every row of the operator table."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from op_calls import (
    differentiable_calls,
    gradients,
    has_wgpu,
    leaves,
    mapped,
    named,
    scalars_fit,
    tensors,
)
from op_db import OPS
from op_row import FLOATS, TOLERANCE, Op, Sample

import pytensorlib as torch

# Gradients are checked where the Jacobian is small.


def pairs() -> list[Any]:
    return [
        pytest.param(op.values[0], dtype, id=f"{op.id}-{dtype}")
        for op in named(OPS)
        for dtype in op.values[0].dtypes
    ]


def to_array(tensor: Any) -> np.ndarray:
    tensor = tensor.detach()
    if tensor.dtype in (torch.float16, torch.bfloat16, torch.float32):
        tensor = tensor.to(torch.float64)
    return np.array(tensor.tolist(), dtype=tensor.numpy().dtype).reshape(tuple(tensor.shape))


def agree(op: Op, got: Any, want: Any, dtype: str) -> None:
    got = list(leaves(got))
    want = list(leaves(want if isinstance(want, (list, tuple)) else np.asarray(want)))
    assert len(got) == len(want)
    rtol, atol = (op.scale * t for t in TOLERANCE.get(dtype, (1e-6, 1e-6)))
    for g, w in zip(got, want, strict=True):
        assert tuple(g.shape) == np.shape(w)
        np.testing.assert_allclose(to_array(g), w, rtol=rtol, atol=atol)


def result_dtype(op: Op, dtype: str) -> Any:
    if op.result not in ("same", "float", "complex"):
        return getattr(torch, op.result)
    if op.result == "complex":
        return torch.complex64 if dtype == "float32" else torch.complex128
    floating = dtype.startswith(("float", "bfloat"))
    return torch.float32 if op.result == "float" and not floating else getattr(torch, dtype)


@pytest.mark.parametrize(("op", "dtype"), pairs())
def test_value_agrees_with_reference(op: Op, dtype: str) -> None:
    function = op.function(torch)
    for sample in op.samples():
        if not scalars_fit(sample, dtype):
            continue
        call = tensors(sample, dtype)
        before = [t.clone() for t in leaves((call.args, call.kwargs))]
        got = function(*call.args, **call.kwargs)
        exact = Sample(mapped(call.args, to_array), mapped(call.kwargs, to_array))
        agree(op, got, op.ref(*exact.args, **exact.kwargs), dtype)
        if any(a.dtype == np.float64 for a in leaves((sample.args, sample.kwargs))):
            assert next(leaves(got)).dtype == result_dtype(op, dtype)
        for t, old in zip(leaves((call.args, call.kwargs)), before, strict=True):
            same = torch.equal(t, old) or torch.equal(t.nan_to_num(1e9), old.nan_to_num(1e9))
            assert same, "an argument was changed"


def transposed(t: Any) -> Any:
    return t.transpose(0, -1).contiguous().transpose(0, -1) if t.dim() > 1 else t.clone()


def sliced(t: Any) -> Any:
    wide = torch.zeros((*t.shape[:-1], 2 * t.shape[-1] + 1), dtype=t.dtype)
    part = wide[..., 1::2]
    part.copy_(t)
    return part


def offset(t: Any) -> Any:
    flat = torch.zeros(t.numel() + 3, dtype=t.dtype)
    part = flat[3:].view(t.shape)
    part.copy_(t)
    return part


def reversed_rows(t: Any) -> Any:
    wide = torch.zeros((2 * t.shape[0], *t.shape[1:]), dtype=t.dtype)
    part = wide[::2]
    part.copy_(t)
    return part


def expanded(t: Any) -> Any:
    """Repeat the first row by a stride of zero; the values change, alike for both sides."""
    return t[:1].expand(t.shape) if t.shape[0] > 0 else t


LAYOUT_MATTERS = (
    "as_strided",
    "as_strided_scatter",
    "Tensor.view",
    "Tensor.view_as",
    "linalg.solve_triangular",
)
LAYOUTS = [transposed, sliced, offset, reversed_rows, expanded]


@pytest.mark.filterwarnings("ignore:.*non-contiguous")
@pytest.mark.parametrize("layout", LAYOUTS, ids=lambda f: f.__name__)
@pytest.mark.parametrize("op", named(OPS))
def test_layout_does_not_change_the_result(op: Op, layout: Callable[[Any], Any]) -> None:
    if op.name in LAYOUT_MATTERS:
        pytest.skip("the meaning depends on the layout, or on the exact values")
    if layout is expanded and op.regular:
        pytest.skip("equal rows make the matrix singular")
    if layout is expanded and op.name == "median":
        pytest.skip("which of several equal elements is found is left open")
    function = op.function(torch)

    def change(t: Any) -> Any:
        # Positions with repeats may not be well defined.
        movable = t.dim() > 0 and (layout is not expanded or t.is_floating_point())
        return layout(t) if movable else t

    for sample in op.samples():
        call = tensors(sample, "float64")
        args, kwargs = mapped(call.args, change), mapped(call.kwargs, change)
        same = Sample(mapped(args, torch.clone), mapped(kwargs, torch.clone))
        same = Sample(
            mapped(same.args, lambda t: t.contiguous()),
            mapped(same.kwargs, lambda t: t.contiguous()),
        )
        got = list(leaves(function(*args, **kwargs)))
        want = list(leaves(function(*same.args, **same.kwargs)))
        for g, w in zip(got, want, strict=True):
            torch.testing.assert_close(g, w, rtol=1e-12, atol=1e-12, equal_nan=True)


@pytest.mark.parametrize("op", named([op for op in OPS if op.differentiable]))
def test_gradient_agrees_with_finite_differences(op: Op) -> None:
    calls = list(differentiable_calls(op))
    assert calls
    for function, inputs in calls:
        many = sum(t.numel() for t in inputs) > 16
        assert torch.autograd.gradcheck(function, inputs, fast_mode=many)


@pytest.mark.parametrize("op", named([op for op in OPS if op.differentiable and op.twice]))
def test_tangent_agrees_with_finite_differences(op: Op) -> None:
    for function, inputs in differentiable_calls(op):
        assert torch.autograd.gradcheck(
            function, inputs, check_forward_ad=True, check_backward_ad=False, fast_mode=True
        )


@pytest.mark.parametrize("op", named([op for op in OPS if op.differentiable and op.twice]))
def test_second_gradient_agrees_with_finite_differences(op: Op) -> None:
    for function, inputs in differentiable_calls(op):
        outputs = function(*inputs)
        grads = torch.autograd.grad(
            [o for o in outputs if o.requires_grad] or outputs,
            inputs,
            [torch.ones_like(o) for o in outputs if o.requires_grad],
            create_graph=True,
            allow_unused=True,
        )
        if any(g is not None and g.requires_grad for g in grads):
            assert torch.autograd.gradgradcheck(function, inputs, fast_mode=True)


@pytest.mark.parametrize("op", named([op for op in OPS if op.differentiable]))
def test_gradient_of_one_input_alone_is_the_one_among_all(op: Op) -> None:
    for function, inputs in differentiable_calls(op):
        if len(inputs) == 1:
            continue
        all_of_them = gradients(function, inputs, list(inputs))
        for i, t in enumerate(inputs):
            alone = tuple(x if x is t else x.detach() for x in inputs)
            for got in gradients(function, alone, [t]):
                torch.testing.assert_close(got, all_of_them[i])


@pytest.mark.parametrize("op", named([op for op in OPS if op.differentiable]))
def test_gradient_after_a_change_of_an_input_is_the_one_before_or_an_error(op: Op) -> None:
    for function, inputs in differentiable_calls(op):
        want = gradients(function, inputs, list(inputs))
        for i in range(len(inputs)):
            given = tuple(t.detach().clone().requires_grad_() for t in inputs)
            try:
                got = gradients(function, given, list(given), change=given[i])
            except RuntimeError as e:
                assert "been modified" in str(e)  # noqa: PT017
                continue
            torch.testing.assert_close(got, want)


@pytest.mark.parametrize("op", named([op for op in OPS if not op.differentiable]))
def test_without_derivative_the_result_does_not_require_grad(op: Op) -> None:
    if op.result in ("same", "complex"):
        pytest.skip("a floating result may carry a derivative of zero")
    for sample in op.samples():
        call = tensors(sample, "float64")
        inputs = mapped(call.args, lambda t: t.requires_grad_() if t.is_floating_point() else t)
        results = op.function(torch)(*inputs, **call.kwargs)
        assert not any(r.requires_grad for r in leaves(results))


@pytest.mark.parametrize("op", named([op for op in OPS if op.inplace]))
def test_inplace_equals_functional_and_returns_self(op: Op) -> None:
    inplace = op.in_place(torch)
    for sample in op.samples():
        call = tensors(sample, "float64")
        want = op.function(torch)(*call.args, **call.kwargs)
        x, *rest = call.args
        if want.shape != x.shape:
            with pytest.raises(RuntimeError):
                inplace(x.clone(), *rest, **call.kwargs)
            continue
        target = x.clone()
        version = target._version
        got = inplace(target, *rest, **call.kwargs)
        assert got is target
        assert target._version > version
        torch.testing.assert_close(target, want.to(x.dtype), rtol=0, atol=0, equal_nan=True)


@pytest.mark.parametrize("op", named([op for op in OPS if op.out]))
def test_out_equals_functional_and_returns_out(op: Op) -> None:
    for sample in op.samples():
        call = tensors(sample, "float64")
        want = op.function(torch)(*call.args, **call.kwargs)
        out = torch.empty_like(want)
        got = op.function(torch)(*call.args, **call.kwargs, out=out)
        assert got is out
        torch.testing.assert_close(out, want, rtol=0, atol=0, equal_nan=True)
        strided = sliced(torch.zeros_like(want)) if want.dim() else torch.zeros_like(want)
        op.function(torch)(*call.args, **call.kwargs, out=strided)
        torch.testing.assert_close(strided, want, rtol=1e-12, atol=1e-12, equal_nan=True)


@pytest.mark.parametrize("op", named([op for op in OPS if op.method]))
def test_method_equals_function(op: Op) -> None:
    for sample in op.samples():
        call = tensors(sample, "float64")
        want = list(leaves(op.function(torch)(*call.args, **call.kwargs)))
        x, *rest = call.args
        got = list(leaves(getattr(x, op.name)(*rest, **call.kwargs)))
        for g, w in zip(got, want, strict=True):
            torch.testing.assert_close(g, w, rtol=0, atol=0, equal_nan=True)


SPECIAL = [np.nan, np.inf, -np.inf, 0.0, -0.0, 1.0, -1.0, 1e-300, 1e300, 0.5]


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize(
    "name",
    [
        "abs",
        "neg",
        "exp",
        "expm1",
        "log",
        "log1p",
        "sqrt",
        "sin",
        "tanh",
        "sigmoid",
        "erf",
        "floor",
        "ceil",
        "trunc",
        "sign",
        "atan",
        "relu",
        "isnan",
        "isinf",
        "isfinite",
    ],
)
def test_special_values_agree_with_ieee(name: str, dtype: str) -> None:
    op = next(op for op in OPS if op.name == name)
    # More than a vector's worth, so that both the wide loop and its tail meet them.
    x = torch.tensor(SPECIAL * 4, dtype=getattr(torch, dtype))
    got = to_array(op.function(torch)(x))
    with np.errstate(all="ignore"):
        want = op.ref(to_array(x))
        if dtype == "float32" and want.dtype == np.float64:
            want = want.astype(np.float32).astype(np.float64)
    np.testing.assert_allclose(got, want, rtol=TOLERANCE[dtype][0], equal_nan=True)


@pytest.mark.parametrize("name", ["sum", "mean", "amax", "amin", "max", "softmax", "logsumexp"])
def test_nan_reaches_the_result_of_a_reduction(name: str) -> None:
    for position in (0, 7, 40, 64):
        x = torch.zeros(65)
        x[position] = float("nan")
        y = getattr(torch, name)(x, 0)
        assert bool(torch.isnan(next(leaves(y))).any())


@pytest.mark.parametrize("op", named([op for op in OPS if "float32" in op.dtypes]))
def test_wgpu_equals_cpu(op: Op, record_property: Any) -> None:
    if not has_wgpu():
        pytest.skip("no GPU adapter")
    before = torch.wgpu.fallbacks()
    for sample in op.samples():
        call = tensors(sample, "float32")
        want = list(leaves(op.function(torch)(*call.args, **call.kwargs)))
        args, kwargs = (mapped(v, lambda t: t.to("wgpu")) for v in (call.args, call.kwargs))
        with warnings.catch_warnings():
            # Ops without a GPU kernel say so; they have to be right all the same.
            warnings.filterwarnings("ignore", "wgpu: .* runs on the CPU")
            got = list(leaves(op.function(torch)(*args, **kwargs)))
        rtol, atol = (4 * op.scale * t for t in TOLERANCE["float32"])
        for g, w in zip(got, want, strict=True):
            assert g.device.type == "wgpu"
            torch.testing.assert_close(g.cpu(), w, rtol=rtol, atol=atol, equal_nan=True)
    # What of it ran on the CPU, for those that read the report.
    ran = [name for name, n in torch.wgpu.fallbacks().items() if n > before.get(name, 0)]
    record_property("fallbacks", " ".join(sorted(ran)))


def with_phase(x: Any) -> Any:
    """Make a complex number of each of a tensor of float64."""
    return torch.complex(x, 0.3 * (x.flip(0) if x.dim() else x)) if x.dtype == torch.float64 else x


@pytest.mark.parametrize("op", named([op for op in OPS if "float64" in op.dtypes]))
def test_wgpu_computes_in_no_narrower_type(op: Op) -> None:
    if not has_wgpu():
        pytest.skip("no GPU adapter")
    function, samples = op.function(torch), op.samples()
    for sample, convert in [(s, c) for c in (lambda x: x, with_phase) for s in samples]:
        call = tensors(sample, "float64")
        args, kwargs = (mapped(v, convert) for v in (call.args, call.kwargs))
        with warnings.catch_warnings():
            # Of what runs on the CPU, of imaginary parts that are lost, of defaults.
            warnings.simplefilter("ignore")
            try:
                want = list(leaves(function(*args, **kwargs)))
            except (RuntimeError, TypeError, ValueError, NotImplementedError):
                if convert is with_phase:
                    continue  # it takes no complex numbers
                raise
            args, kwargs = (mapped(v, lambda t: t.to("wgpu")) for v in (args, kwargs))
            got = list(leaves(function(*args, **kwargs)))
        for g, w in zip(got, want, strict=True):
            torch.testing.assert_close(g.cpu(), w, rtol=1e-10, atol=1e-10, equal_nan=True)


ERRORS = [
    ("add", lambda: torch.ones(3) + torch.ones(4), RuntimeError, "size of tensor"),
    ("matmul", lambda: torch.ones(2, 3) @ torch.ones(2, 3), RuntimeError, "shapes|size"),
    ("mm", lambda: torch.mm(torch.ones(3), torch.ones(3)), RuntimeError, "2D|matrices|matrix"),
    ("softmax", lambda: torch.softmax(torch.ones(2), 3), IndexError, "out of range"),
    ("sum", lambda: torch.ones(2, 3).sum(2), IndexError, "out of range"),
    ("sum-twice", lambda: torch.ones(2, 3).sum((0, 0)), RuntimeError, "multiple times"),
    ("reshape", lambda: torch.ones(6).reshape(4, 2), RuntimeError, "invalid for input of size"),
    ("view", lambda: torch.ones(2, 3).t().view(6), RuntimeError, "view size is not compatible"),
    ("cat", lambda: torch.cat([torch.ones(2, 2), torch.ones(3, 3)]), RuntimeError, "match"),
    ("stack", lambda: torch.stack([torch.ones(2), torch.ones(3)]), RuntimeError, "equal size"),
    ("gather", lambda: torch.gather(torch.ones(3), 0, torch.tensor([5])), RuntimeError, "bounds"),
    (
        "index_select",
        lambda: torch.index_select(torch.ones(3), 0, torch.tensor([5])),
        IndexError,
        "out of range",
    ),
    ("argmax-empty", lambda: torch.empty(0).argmax(), IndexError, "reduction dim|non-zero size"),
    ("max-empty", lambda: torch.empty(0).max(), RuntimeError, "numel\\(\\) == 0|non-zero|dim"),
    ("topk", lambda: torch.topk(torch.ones(3), 5), RuntimeError, "out of range"),
    ("chunk", lambda: torch.ones(3).chunk(0), RuntimeError, "greater than 0"),
    ("expand", lambda: torch.ones(3).expand(4), RuntimeError, "expanded size"),
    (
        "inplace-dtype",
        lambda: torch.ones(2, dtype=torch.int64).add_(1.5),
        RuntimeError,
        "can't be cast",
    ),
    ("bool-sub", lambda: torch.tensor([True]) - torch.tensor([True]), RuntimeError, "Subtraction"),
    ("item", lambda: torch.ones(2).item(), RuntimeError, "cannot be converted to Scalar"),
    (
        "linear",
        lambda: torch.nn.functional.linear(torch.ones(2, 3), torch.ones(4, 5)),
        RuntimeError,
        "shape|size",
    ),
    (
        "conv2d",
        lambda: torch.conv2d(torch.ones(1, 3, 5, 5), torch.ones(2, 4, 3, 3)),
        RuntimeError,
        "channels",
    ),
]


@pytest.mark.parametrize(
    ("call", "kind", "text"), [pytest.param(*row[1:], id=row[0]) for row in ERRORS]
)
def test_bad_input_raises(call: Callable[[], Any], kind: type[Exception], text: str) -> None:
    with pytest.raises(kind, match=text):
        call()
