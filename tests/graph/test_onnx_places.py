"""Operators of vision, language and sound in ONNX: places, groups, rotations, spectra."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import pytensorlib as torch
from pytensorlib import nn
from pytensorlib._higher_order_ops import map as each
from pytensorlib._higher_order_ops import scan
from pytensorlib.export import Dim
from pytensorlib.onnx import OnnxExporterError

x = torch.randn(3, 4)
index = torch.tensor([[0, 2, 1, 1], [2, 2, 0, 1]])


class Called(nn.Module):
    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__()
        self.function = function
        turned = torch.polar(torch.ones(6, 2), torch.outer(torch.arange(6.0), torch.ones(2)))
        self.register_buffer("turned", turned)

    def forward(self, *args: Any) -> Any:
        return self.function(self, *args)


def check(function: Callable[..., Any], *args: Any, shapes: Any = None, again: Any = ()) -> None:
    onnx = pytest.importorskip("onnx", reason="onnx (the extra [onnx]) is not installed")
    pytest.importorskip("onnxruntime", reason="onnxruntime (the extra [onnx]) is not installed")
    module = Called(function).eval()
    program = torch.onnx.export(module, args, dynamic_shapes=shapes)
    onnx.checker.check_model(program.model_proto, full_check=True)
    for given in (args, *again):
        want = module(*given)
        have = program(*given)
        for one, other in zip(have, want if isinstance(want, tuple) else (want,), strict=True):
            torch.testing.assert_close(one, other, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("offset", [0, 1, -2])
def test_diagonals_are_put_and_taken(offset: int) -> None:
    check(lambda m, t: torch.diag_embed(t, offset), x)
    check(lambda m, t: torch.diag_embed(t, offset, 0, 2), torch.randn(2, 3, 4))
    check(lambda m, t: torch.diag(t, offset), x[0])
    check(lambda m, t: torch.diag(t, offset), torch.randn(4, 4))
    check(lambda m, t: torch.diagflat(t, offset), x[:2, :2])
    square = torch.randn(4, 5)
    values = torch.randn(square.diagonal(offset).shape)
    check(lambda m, t, v: torch.diagonal_scatter(t, v, offset), square, values)


@pytest.mark.parametrize("wrap", [False, True])
def test_diagonal_is_filled(wrap: bool) -> None:
    check(lambda m, t: t.clone().fill_diagonal_(2.0, wrap), torch.randn(7, 3))


def test_features_of_pictures_are_put_between_those_of_words() -> None:
    words, pictures = torch.randn(2, 5, 3), torch.randn(4, 3)
    mask = torch.tensor([[0, 1, 1, 0, 0], [0, 0, 1, 0, 1]]).bool()
    more = (torch.randn(2, 5, 3), torch.tensor([[1, 1, 1, 0, 1], [0] * 5]).bool(), pictures)
    check(
        lambda m, w, k, p: w.masked_scatter(k.unsqueeze(-1), p), words, mask, pictures, again=[more]
    )


@pytest.mark.parametrize("dim", [0, 1, None])
def test_elements_are_repeated_as_often_as_a_tensor_says(dim: int | None) -> None:
    n = 12 if dim is None else x.shape[dim]
    counts = torch.arange(n) % 3
    check(
        lambda m, t, r: torch.repeat_interleave(t, r, dim=dim), x, counts, again=[(x, counts + 1)]
    )


@pytest.mark.parametrize("reduce", ["sum", "prod", "mean", "amax", "amin"])
@pytest.mark.parametrize("own", [True, False])
def test_groups_are_reduced(reduce: str, own: bool) -> None:
    source = torch.randn(2, 4)
    check(lambda m, t, s: t.scatter_reduce(0, index, s, reduce, include_self=own), x, source)
    if reduce != "sum":
        places = torch.tensor([2, 0, 2])
        check(
            lambda m, t, s: t.index_reduce(1, places, s, reduce, include_self=own),
            x, torch.randn(3, 3),
        )  # fmt: skip


def test_rows_are_shortened_to_a_norm() -> None:
    check(lambda m, t: torch.renorm(t, 2, 0, 1.0), x)


def rotated(m: Any, q: Any) -> Any:
    pairs = torch.view_as_complex(q.float().reshape(*q.shape[:-1], -1, 2))
    turned = m.turned[: q.shape[1]].unsqueeze(0).unsqueeze(2)
    return torch.view_as_real(pairs * turned).flatten(3)


def test_rotary_embedding_by_complex_numbers_is_written() -> None:
    q = torch.randn(2, 5, 3, 4)
    shapes = {"args": ({0: Dim("batch"), 1: Dim("words", max=6)},)}
    check(rotated, q, shapes=shapes, again=[(torch.randn(1, 3, 3, 4),)])


@pytest.mark.parametrize(
    "function",
    [
        lambda m, a, b: torch.complex(a, b).abs(),
        lambda m, a, b: (torch.complex(a, b) * torch.complex(b, a)).imag,
        lambda m, a, b: (torch.complex(a, b) - torch.complex(b, a).conj()).real,
        lambda m, a, b: torch.view_as_real(torch.polar(a.abs(), b) * 2),
        lambda m, a, b: torch.view_as_real(torch.complex(a, b).transpose(0, 1) / b.T),
        lambda m, a, b: torch.view_as_real(torch.cat([torch.complex(a, b)] * 2, -1)[:, 1:6]),
        lambda m, a, b: torch.fft.rfft(a).abs(),
        lambda m, a, b: torch.view_as_real(torch.fft.fft(a, dim=0)),
        lambda m, a, b: torch.fft.ifft(torch.complex(a, b)).imag,
    ],
)
def test_complex_numbers_are_pairs(function: Callable[..., Any]) -> None:
    check(function, x, torch.randn(3, 4))


@pytest.mark.parametrize("center", [True, False])
@pytest.mark.parametrize("width", [16, 12])
def test_spectrogram_is_written(center: bool, width: int) -> None:
    window = torch.hann_window(width)

    def spectrum(m: Any, sound: Any) -> Any:
        found = torch.stft(
            sound, 16, 4, width, window, center=center, return_complex=True, pad_mode="reflect"
        )
        return found.abs().square()

    check(spectrum, torch.randn(2, 64))
    check(spectrum, torch.randn(64))


def test_complex_tensors_at_the_border_are_refused_by_name() -> None:
    pytest.importorskip("onnx", reason="onnx (the extra [onnx]) is not installed")
    with pytest.raises(OnnxExporterError, match="is complex, and runtimes take and give no compl"):
        torch.onnx.export(Called(lambda m, t: torch.complex(t, t)), (x,))
    with pytest.raises(OnnxExporterError, match="aten.sqrt.default .* a tensor is complex"):
        torch.onnx.export(Called(lambda m, t: torch.complex(t, t).sqrt().real), (x,))


def nested(m: Any, t: Any) -> Any:
    def inner(t: Any) -> Any:
        return torch.cond(t.max() > 0.5, lambda t: t * 3, lambda t: t + 2, (t,))

    return torch.cond(t.sum() > 0, inner, lambda t: t.cos(), (t,))


def rows_and_turns(m: Any, t: Any) -> Any:
    def step(carry: Any, row: Any) -> Any:
        start = torch.tensor(0), row
        turned = torch.while_loop(lambda i, v: i < 2, lambda i, v: (i + 1, v * 2), start)[1]
        made = torch.cond(row.sum() > 0, lambda c, r: c + r, lambda c, r: c - r, (carry, turned))
        return made, turned

    return scan(step, torch.zeros(4), t)


@pytest.mark.parametrize(
    "function",
    [
        nested,
        rows_and_turns,
        lambda m, t: scan(lambda c, r: (c + r, c * r), t[:, 0] * 0, t, dim=1, reverse=True),
        lambda m, t: each(lambda row, s: (row * s).sum(), t, m.turned.real[0, 0]),
    ],
)
def test_branches_and_loops_in_each_other_are_written(function: Callable[..., Any]) -> None:
    more = [(-x,), (0.1 * x,), (torch.randn(5, 4),)]
    check(function, x, shapes={"args": ({0: Dim("rows", min=2)},)}, again=more)
