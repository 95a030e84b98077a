"""Activations: what they give at NaN and infinity, and what they draw."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import pytensorlib as torch
import pytensorlib.nn.functional as F
from pytensorlib.fx.experimental.proxy_tensor import make_fx
from pytensorlib.profiler import profile
from pytensorlib.utils._python_dispatch import TorchDispatchMode

inf, nan = float("inf"), float("nan")


def test_hardtanh_passes_the_gradient_of_nan_everywhere() -> None:
    # PyTorch's vector code stops it, its code for the last elements does not.
    x = torch.full((99,), nan, requires_grad=True)
    F.hardtanh(x).sum().backward()
    assert x.grad is not None
    assert x.grad.eq(1).all()


INF, NAN = math.inf, math.nan


def values(t: torch.Tensor) -> list[float]:
    return t.detach().reshape(-1).tolist()


@pytest.mark.parametrize("bounds", [(NAN, 1.0), (-1.0, NAN)])
def test_hardtanh_of_a_bound_that_is_nan_is_nan(bounds: tuple[float, float]) -> None:
    assert all(map(math.isnan, values(F.hardtanh(torch.tensor([1.0, -2.0, INF]), *bounds))))


def test_rrelu_draws_a_number_for_each_element_below_zero_only() -> None:
    torch.manual_seed(0)
    x = torch.tensor([1.0, -1.0, 2.0, -1.0, -1.0], requires_grad=True)
    y = F.rrelu(x, training=True)
    want = [1.0, -0.3271, 2.0, -0.2725, -0.2207]  # PyTorch 2.13 under this seed
    torch.testing.assert_close(y.detach(), torch.tensor(want), rtol=0, atol=1e-4)
    y.sum().backward()
    slopes = [1.0, 0.3271, 1.0, 0.2725, 0.2207]
    torch.testing.assert_close(x.grad, torch.tensor(slopes), rtol=0, atol=1e-4)


def steps_between(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Return how many numbers of 16 bits lie between those with these bits."""
    ordered = [np.where(t & 0x8000, 0x8000 - t, t) for t in (a.astype(int), b.astype(int))]
    return np.abs(ordered[0] - ordered[1])


def test_softsign_has_the_bits_of_the_three_operations_in_float32_and_float64() -> None:
    rng = np.random.default_rng(0)
    for dtype in (np.float32, np.float64):
        x = (rng.standard_normal(1003) * 10.0 ** rng.integers(-30, 30, 1003)).astype(dtype)
        got = F.softsign(torch.from_numpy(x)).numpy()
        np.testing.assert_array_equal(got, x / (np.abs(x) + dtype(1)))
        np.testing.assert_array_equal(F.softsign(torch.from_numpy(x)[::3]).numpy(), got[::3])
    ends = F.softsign(torch.tensor([0.0, -0.0, INF, -INF, NAN]))
    np.testing.assert_array_equal(ends.numpy(), [0, -0.0, NAN, NAN, NAN])
    assert math.copysign(1, ends[1].item()) == -1


def test_softsign_of_every_half_is_one_step_from_pytorch_at_most() -> None:
    # PyTorch rounds |x| + 1 before it divides.
    bits = np.arange(1 << 16, dtype=np.uint16)
    x = bits.view(np.float16)
    with np.errstate(all="ignore"):
        want = x / (np.abs(x) + np.float16(1))
    got = F.softsign(torch.from_numpy(x)).numpy()
    np.testing.assert_array_equal(np.isnan(got), np.isnan(want))
    there = ~np.isnan(want)
    steps = steps_between(got.view(np.uint16)[there], want.view(np.uint16)[there])
    assert steps.max() == 1
    wide = x[there].astype(np.float64)
    np.testing.assert_array_equal(got[there], (wide / (np.abs(wide) + 1)).astype(np.float16))


def test_softsign_of_bfloat16_is_rounded_once() -> None:
    x = torch.linspace(-9, 9, 777, dtype=torch.bfloat16)
    wide = x.double()
    torch.testing.assert_close(F.softsign(x), (wide / (wide.abs() + 1)).bfloat16(), rtol=0, atol=0)


def test_softsign_of_integers_overflows_as_pytorch() -> None:
    got = F.softsign(torch.tensor([0, 3, 255], dtype=torch.uint8))
    assert got.dtype is torch.float32
    assert values(got) == [0, 0.75, INF]  # 255 + 1 is 0
    assert values(F.softsign(torch.tensor([-(2**31), 1], dtype=torch.int32)))[1] == 0.5
    with pytest.raises(NotImplementedError, match="abs_cpu"):
        F.softsign(torch.tensor([True]))


def test_softsign_of_complex_numbers_has_pytorchs_gradient() -> None:
    x = torch.tensor([3 + 4j, 1 - 1j, 0j], requires_grad=True)
    y = F.softsign(x)
    y.sum().abs().backward()
    got = torch.view_as_real(torch.stack([y.detach(), x.grad]))
    want = [  # PyTorch 2.13
        [[0.5, 0.6667], [0.4142, -0.4142], [0.0, 0.0]],
        [[0.0947, -0.0436], [0.3146, 0.1949], [0.9639, 0.2662]],
    ]
    torch.testing.assert_close(got, torch.tensor(want), rtol=0, atol=1e-4)


def test_softsign_has_a_slope_where_the_difference_of_its_parts_cancels() -> None:
    x = torch.tensor([0.0, -0.5, 3.0, -1e4, 1e6], requires_grad=True)
    wide = x.detach().double()
    (g,) = torch.autograd.grad(F.softsign(x).sum(), x, create_graph=True)
    want = 1 / (1 + wide.abs()) ** 2
    torch.testing.assert_close(g.detach().double(), want, rtol=1e-6, atol=0)
    (h,) = torch.autograd.grad(g.sum(), x)
    want = -2 * wide.sign() / (1 + wide.abs()) ** 3
    torch.testing.assert_close(h.double(), want, rtol=1e-6, atol=0)
    far = torch.tensor([INF, -INF], requires_grad=True)
    (ends,) = torch.autograd.grad(F.softsign(far).sum(), far)
    assert values(ends) == [0, 0]
    with torch.no_grad():
        _, tangent = torch.func.jvp(F.softsign, (x,), (torch.full((5,), 2.0),))
    torch.testing.assert_close(tangent, 2 * g.detach())
    rows = torch.func.vmap(torch.func.grad(lambda x: F.softsign(x).sum()))(x.detach().repeat(2, 1))
    torch.testing.assert_close(rows, g.detach().repeat(2, 1))


def test_softsign_is_one_operation_and_three_for_those_who_call_by_name() -> None:
    x = torch.randn(3)
    with profile() as p:
        F.softsign(x)
    assert [e.count for e in p.key_averages()] == [1]
    seen = []

    class Names(TorchDispatchMode):
        def __torch_dispatch__(
            self, func: Any, types: Any, args: Any = (), kwargs: Any = None
        ) -> Any:
            seen.append(str(func))
            return func(*args, **(kwargs or {}))

    with Names():
        F.softsign(x)
    three = ["aten.abs.default", "aten.add.Tensor", "aten.div.Tensor"]
    assert seen == three
    graphs = [make_fx(F.softsign)(x).graph]

    class Softsign(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return F.softsign(x)

    graphs.append(torch.export.export(Softsign(), (x,)).graph)
    for graph in graphs:
        assert [str(n.target) for n in graph.nodes if n.op == "call_function"] == three
    (node,) = (n for n in torch.fx.symbolic_trace(Softsign()).graph.nodes if n.name == "softsign")
    assert node.target is F.softsign
