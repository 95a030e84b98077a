"""Rows of ONNX that few models use: special functions, order, places, losses and statistics."""

from __future__ import annotations

import math
from typing import Any

import pytest

import pytensorlib as torch
from pytensorlib import nn
from pytensorlib.nn import functional as F  # noqa: N812
from pytensorlib.onnx import OnnxExporterError

onnx = pytest.importorskip("onnx", reason="onnx (the extra [onnx]) is not installed")
pytest.importorskip("onnxruntime", reason="onnxruntime (the extra [onnx]) is not installed")


class Of(nn.Module):
    def __init__(self, f: Any) -> None:
        super().__init__()
        self.f = f

    def forward(self, *args: Any) -> Any:
        return self.f(*args)


def run(function: Any, *args: Any, opset: int = 20, **options: Any) -> Any:
    program = torch.onnx.export(Of(function), args, opset_version=opset, **options)
    onnx.checker.check_model(program.model_proto, full_check=True)
    return program


def check(function: Any, *args: Any, opset: int = 20) -> None:
    want = function(*args)
    want = want if isinstance(want, (tuple, list)) else [want]
    have = run(function, *args, opset=opset)(*args)
    torch.testing.assert_close(list(have), list(want), atol=2e-5, rtol=2e-5, equal_nan=True)


wide = torch.tensor([-math.inf, -30.5, -3.0, -1.25, -0.0, 0.0, 0.3, 1.0, 2.0, 7.5, 90.0, math.inf])
inside = torch.tensor([-1.5, -1.0, -0.999, -0.3, 0.0, 0.5, 0.9999, 1.0, math.nan])


@pytest.mark.parametrize("opset", [18, 22])
@pytest.mark.parametrize(
    ("name", "x"),
    [
        ("erfinv", inside),
        ("special.ndtri", inside),
        ("lgamma", wide),
        ("digamma", torch.tensor([-2.5, -1.0, -0.0, 0.0, 0.25, 1.0, 3.0, 50.0, 1e6])),
        ("i0", wide[1:-1] / 2),
        ("special.i1", wide[1:-1] / 2),
        ("special.i0e", torch.tensor([-3e3, -250.0, -199.0, 0.0, 1.0, 201.0, 1e5])),
        ("special.i1e", torch.tensor([-3e3, -250.0, -199.0, 0.0, 1.0, 201.0, 1e5])),
        ("angle", wide),
        ("special.log_ndtr", torch.tensor([-40.0, -9.0, -2.1, -1.9, 0.0, 1.9, 2.1, 9.0, math.nan])),
        ("special.erfcx", torch.tensor([-4.0, -1.0, 0.0, 1.4, 1.5, 6.0, 1e4, math.inf, math.nan])),
        ("frexp", torch.tensor([0.0, -0.0, 1.0, 0.5, 0.75, -8.0, 1e-30, 3e38, math.inf, math.nan])),
    ],
)
def test_special_functions_hold_at_edges_too(name: str, x: Any, opset: int) -> None:
    home = torch.special if name.startswith("special") else torch
    check(getattr(home, name.rpartition(".")[2]), x, opset=opset)


@pytest.mark.parametrize("n", [0, 1, 2, 3, 7])
@pytest.mark.parametrize(
    "name",
    [
        *(f"{s}chebyshev_polynomial_{k}" for s in ("", "shifted_") for k in "tuvw"),
        "hermite_polynomial_h",
        "hermite_polynomial_he",
        "laguerre_polynomial_l",
        "legendre_polynomial_p",
    ],
)
def test_polynomials_of_a_degree_that_is_a_number(name: str, n: int) -> None:
    check(lambda x: getattr(torch.special, name)(x, n), torch.linspace(-0.9, 0.9, 7))


def test_polynomial_of_a_degree_that_is_a_tensor_is_refused_by_name() -> None:
    with pytest.raises(OnnxExporterError, match=r"chebyshev_polynomial_t.*its degree is a tensor"):
        run(torch.special.chebyshev_polynomial_t, torch.ones(2), torch.tensor([1, 2]))


@pytest.mark.parametrize("how", ["linear", "lower", "higher", "midpoint", "nearest"])
@pytest.mark.parametrize("function", [torch.quantile, torch.nanquantile])
def test_quantiles_of_numbers_and_tensors(function: Any, how: str) -> None:
    torch.manual_seed(0)
    x = torch.randn(4, 9)
    x[0, 3], x[2, :] = math.nan, math.nan
    for q in (0.0, 0.37, torch.tensor([0.25, 0.5, 1.0]), torch.tensor(0.75)):
        for dim, keepdim in ((None, False), (1, False), (0, True), (-1, True), (None, True)):
            check(
                lambda x, q=q, dim=dim, keepdim=keepdim: function(
                    x, q, dim, keepdim, interpolation=how
                ),
                x,
            )


@pytest.mark.parametrize("reduction", ["none", "mean", "sum"])
@pytest.mark.parametrize("smoothing", [0.0, 0.2])
@pytest.mark.parametrize("weighted", [False, True])
def test_cross_entropy_of_labels_and_of_probabilities(
    weighted: bool, smoothing: float, reduction: str
) -> None:
    torch.manual_seed(0)
    weight = torch.rand(4) + 0.5 if weighted else None

    def loss(x: Any, y: Any) -> Any:
        return F.cross_entropy(
            x, y, weight, ignore_index=2, reduction=reduction, label_smoothing=smoothing
        )

    check(loss, torch.randn(5, 4), torch.tensor([0, 2, 3, 1, 2]))
    check(loss, torch.randn(2, 4, 3), torch.tensor([[0, 2, 3], [1, 1, 2]]))
    check(
        lambda x, y: F.cross_entropy(x, y, weight, reduction=reduction, label_smoothing=smoothing),
        torch.randn(5, 4),
        torch.rand(5, 4),
    )


@pytest.mark.parametrize("reduction", ["none", "mean", "sum"])
def test_losses_of_margins(reduction: str) -> None:
    torch.manual_seed(0)
    x, y, w = torch.randn(3, 4), torch.tensor([0, 3, 1]), torch.rand(4)
    check(lambda x, y: F.multi_margin_loss(x, y, reduction=reduction), x, y)
    check(lambda x, y: F.multi_margin_loss(x, y, 2, 0.5, w, reduction=reduction), x, y)
    check(lambda x, y: F.multi_margin_loss(x, y, reduction=reduction), x[0], y[0])
    labels = torch.tensor([[1, 3, -1, 0], [-1, 0, 0, 0], [0, 1, 2, 3]])
    check(lambda x, y: F.multilabel_margin_loss(x, y, reduction=reduction), x, labels)


@pytest.mark.parametrize(
    ("function", "shape"),
    [
        (lambda x: torch.histc(x, 5), (40,)),
        (lambda x: torch.histc(x, 5, -1, 1), (4, 10)),
        (lambda x: torch.histc(x.mul(0), 3), (4,)),
        (lambda x: x.nanmedian(1), (3, 6)),
        (lambda x: x.nanmedian(), (3, 6)),
        (lambda x: x.mul(2).round().mode(1), (3, 9)),
        (lambda x: x.mul(2).round().mode(0, True), (9, 2)),
        (lambda x: torch.as_strided(x, (3, 2), (2, 1), 1), (3, 4)),
        (lambda x: torch.as_strided_scatter(x, x[:2, :2], (2, 2), (4, 2), 1), (3, 4)),
        (lambda x: torch.combinations(x, 3, with_replacement=True), (4,)),
        (lambda x: torch.gradient(x, spacing=0.5, dim=1, edge_order=2), (3, 5)),
        (lambda x: torch.gradient(x), (3, 2)),
        (lambda x: F.pdist(x, 1.0), (4, 3)),
        (lambda x: x.mul(1.5).round().unique_consecutive(), (12,)),
        (lambda x: x.mul(1).round().unique_consecutive(True, True), (2, 6)),
        (lambda x: torch.nonzero_static(x > 0, size=9, fill_value=-7), (3, 4)),
        (lambda x: F.batch_norm(x, None, None, training=True), (4, 3, 5)),
        (lambda x: torch.native_layer_norm(x, (5,), None, None, 1e-5), (4, 5)),
        (lambda x: torch.native_group_norm(x, None, None, 4, 6, 5, 3, 1e-5), (4, 6, 5)),
        (lambda x: F.adaptive_max_pool2d(x, (3, 2), return_indices=True), (2, 3, 7, 5)),
    ],
)
@pytest.mark.parametrize("opset", [18, 22])
def test_functions_of_one_tensor(function: Any, shape: tuple[int, ...], opset: int) -> None:
    torch.manual_seed(0)
    check(function, torch.randn(shape), opset=opset)


def test_places_are_put_and_unravelled() -> None:
    x, index = torch.randn(3, 4), torch.tensor([[0, -1], [5, 7]])
    check(lambda x, i: x.put(i, torch.ones(2, 2)), x, index)
    check(lambda x, i: x.put(i.mul(0), torch.ones(2, 2), accumulate=True), x, index)
    check(lambda i: torch.unravel_index(i, (3, 2, 4)), torch.tensor([[0, 23], [11, 7]]))
    check(lambda i: i >> 2, torch.tensor([-9, -1, 0, 5, 1024]))


def test_strided_view_of_a_view_is_refused() -> None:
    with pytest.raises(OnnxExporterError, match=r"as_strided.*its tensor is a view"):
        run(lambda x: torch.as_strided(x.t(), (3, 2), (1, 3)), torch.randn(3, 4))


def test_statistics_of_a_batch_beside_running_ones_are_refused() -> None:
    with pytest.raises(OnnxExporterError, match=r"batch_norm.*statistics of its batch"):
        run(
            lambda x, m, v: F.batch_norm(x, m, v, training=True),
            torch.randn(4, 3),
            torch.zeros(3),
            torch.ones(3),
        )


def test_rows_hold_for_an_open_batch() -> None:
    batch = torch.export.Dim("batch")
    for function, shape in (
        (lambda x: torch.special.i0(x).sum(1), (3, 4)),
        (lambda x: torch.nn.functional.batch_norm(x, None, None, training=True), (3, 4)),
        (lambda x: x.nanmedian(1).values, (3, 4)),
    ):
        program = run(function, torch.randn(shape), dynamic_shapes=(({0: batch},),))
        x = torch.randn(7, *shape[1:])
        torch.testing.assert_close(program(x)[0], function(x), atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("how", ["sum", "mean", "max", "min", "prod"])
def test_segments_of_lengths_and_of_offsets(how: str) -> None:
    torch.manual_seed(0)
    x, lengths = torch.randn(6, 2), torch.tensor([2, 0, 3, 1])
    check(lambda x, n: torch.segment_reduce(x, how, lengths=n), x, lengths)
    check(lambda x, n: torch.segment_reduce(x, how, lengths=n, initial=0.5), x, lengths)
    check(lambda x, n: torch.segment_reduce(x, how, offsets=n), x, torch.tensor([0, 2, 2, 6]))
