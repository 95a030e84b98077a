"""The part of `gradcheck` that compares tangents with finite differences."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from .. import _C
from . import forward_ad

__all__ = ["check_batched", "check_projected", "check_whole"]

Tangents = dict[int, Any]


def _is_tensor(value: Any) -> bool:
    return isinstance(value, _C.Tensor)


def _places(inputs: Sequence[Any]) -> list[int]:
    """Return where the inputs are that are checked."""
    return [i for i, x in enumerate(inputs) if _is_tensor(x) and x.requires_grad]


def _along(func: Callable[..., Any], inputs: tuple[Any, ...], tangents: Tangents) -> list[Any]:
    """Return the tangent of each output that is a tensor; zeros of those that have none."""
    with forward_ad.dual_level():
        given = [
            forward_ad.make_dual(x.detach(), tangents[i])
            if i in tangents
            else x.detach()
            if _is_tensor(x)
            else x
            for i, x in enumerate(inputs)
        ]
        raw = func(*given)
        outputs = [o for o in (raw if isinstance(raw, (tuple, list)) else (raw,)) if _is_tensor(o)]
        pairs = [forward_ad.unpack_dual(o) for o in outputs]
        return [
            _C.zeros_like(p.primal) if p.tangent is None else p.tangent.detach().clone()
            for p in pairs
        ]


def check_whole(
    func: Callable[..., Any],
    inputs: tuple[Any, ...],
    numerical: list[list[Any]],
    places: list[int],
    close: Callable[[Any, Any], bool],
    mismatch: Callable[..., Exception],
) -> None:
    """Compare the Jacobian of outputs at some places for each input, column by column."""
    for number, place in enumerate(_places(inputs)):
        x = inputs[place]
        zeros = {i: _C.zeros_like(inputs[i].detach()) for i in _places(inputs)}
        columns = []
        for element in range(x.numel()):
            one = _C.zeros(x.numel(), dtype=x.dtype, device=x.device)
            one[element] = 1
            columns.append(_along(func, inputs, {**zeros, place: one.view(x.shape)}))
        for output in places:
            expected = numerical[number][output]
            found = (
                _C.stack([c[output].reshape(-1).to(expected.dtype) for c in columns])
                if columns
                else _C.zeros_like(expected)
            )
            if not close(found, expected):
                raise mismatch(found, expected, output, number, "computed with forward mode ")


def check_projected(
    func: Callable[..., Any],
    inputs: tuple[Any, ...],
    directions: list[Any],
    slopes: list[list[Any]],
    places: list[int],
    close: Callable[[Any, Any], bool],
) -> bool:
    """Return whether the tangents along one direction of each input are the slopes."""
    for number, place in enumerate(_places(inputs)):
        found = _along(func, inputs, {place: directions[number]})
        pairs = [(found[i].reshape(-1), slopes[number][i]) for i in places]
        if not all(close(t.to(slope.dtype), slope) for t, slope in pairs):
            return False
    return True


def check_batched(
    func: Callable[..., Any], inputs: tuple[Any, ...], close: Callable[[Any, Any], bool]
) -> tuple[int, Any, Any] | None:
    """Return an input for which tangents of a batch differ from single ones, with both."""
    from ..func import vmap

    for place in _places(inputs):
        batch = _C.stack([_C.randn_like(inputs[place].detach()) for _ in range(2)])

        def tangents(t: Any, place: int = place) -> Any:
            return tuple(_along(func, inputs, {place: t}))

        apart = [_C.stack(column) for column in zip(*map(tangents, batch), strict=True)]
        together = vmap(tangents)(batch)
        for a, b in zip(together, apart, strict=True):
            if not close(a, b):
                return place, a, b
    return None
