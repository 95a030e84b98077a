"""Writes to views within mapped derivatives, where what is written has slices that the rest lacks.

The reference is a loop over the slices.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import pytensorlib as torch
from pytensorlib.func import grad, hessian, jacfwd, jacrev, jvp, vmap


def placed(x: Any) -> Any:
    y = torch.zeros(4) + x.sum()
    y[1:3] = x[:2].sin()
    return y


def scaled(x: Any) -> Any:
    y = torch.zeros(4) + x.sum()
    y[0].mul_(x[0])
    return y


def first(x: Any) -> Any:
    y = x.sin()
    y[0].mul_(x[0])
    return y


def region(x: Any) -> Any:
    y = x.sin()
    y[:2].mul_(x[1:])
    y[1:].exp_()
    return y


def turned(x: Any) -> Any:
    y = torch.outer(x, x)
    y.t()[0] = x.cos()
    y.diagonal().mul_(x)
    return y


def rows(x: Any) -> Any:
    y = torch.zeros(3, 3) + x
    for i in range(3):
        y[i] = x * x[i] + (y[i - 1] if i else 0)
    return y


def square(f: Callable[..., Any]) -> Callable[..., Any]:
    return lambda x: f(x).pow(2).sum()


TRANSFORMS: dict[str, Callable[..., Any]] = {
    "jacrev": jacrev,
    "jacfwd": jacfwd,
    "grad": lambda f: grad(square(f)),
    "hessian": lambda f: hessian(square(f)),
    "twice": lambda f: jacrev(jacrev(f)),
    "mixed": lambda f: jacrev(jacfwd(f)),
    "jvp": lambda f: lambda x: jvp(f, (x,), (x.cos(),))[1],
}


@pytest.mark.parametrize("transform", TRANSFORMS)
@pytest.mark.parametrize("function", [placed, scaled, first, region, turned, rows])
def test_mapped_derivatives(function: Callable[..., Any], transform: str) -> None:
    torch.manual_seed(0)
    derived = TRANSFORMS[transform](function)
    xs = torch.randn(2, 3)
    want = torch.stack([derived(x) for x in xs])
    torch.testing.assert_close(vmap(derived)(xs), want)
    twice = vmap(vmap(derived))(torch.stack([xs, xs + 1]))
    torch.testing.assert_close(twice[0], want)


def test_what_is_written_has_slices_of_another_level() -> None:
    x, values = torch.randn(2, 4), torch.randn(3, 2)
    places = (torch.tensor([0, 2]),)

    def function(x: Any) -> Any:
        return vmap(lambda v: x.index_put(places, v))(values)

    want = torch.stack([torch.stack([t.index_put(places, v) for v in values]) for t in x])
    torch.testing.assert_close(vmap(function)(x), want)
