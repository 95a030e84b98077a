"""Limited-memory BFGS."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import pytensorlib as pt

from .optimizer import Optimizer, check_lr, number

__all__ = ["LBFGS"]


class LBFGS(Optimizer):
    """Limited-memory BFGS (Nocedal and Wright, Numerical Optimization, chapter 7).

    A step calls `closure` several times, so it must be given.

    Parameters
    ----------
    params : iterable of Tensor
        One group only.
    lr : float or Tensor, default 1
        First length of a step.
    max_iter, max_eval : int
        Bounds of a step's iterations and calls of `closure` (default ``max_iter * 5 // 4``).
    tolerance_grad, tolerance_change : float
        Stop when the largest gradient, or the change, is no larger.
    history_size : int, default 100
        How many past updates shape the direction.
    line_search_fn : {"strong_wolfe"}, optional
        Without one each step has length `lr`.

    Raises
    ------
    ValueError
        There is more than one group.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> from pytensorlib import optim
    >>> w = torch.tensor([1.0, -2.0], requires_grad=True)
    >>> optimizer = optim.LBFGS([w], line_search_fn="strong_wolfe")
    >>> def closure():
    ...     optimizer.zero_grad()
    ...     loss = w.square().sum()
    ...     loss.backward()
    ...     return loss
    >>> optimizer.step(closure).item()
    5.0
    >>> w.abs().max().item() < 1e-6
    True
    """

    def __init__(
        self,
        params: Iterable[Any],
        lr: Any = 1,
        max_iter: int = 20,
        max_eval: int | None = None,
        tolerance_grad: float = 1e-7,
        tolerance_change: float = 1e-9,
        history_size: int = 100,
        line_search_fn: str | None = None,
    ) -> None:
        check_lr(lr)
        super().__init__(
            params,
            {
                "lr": lr,
                "max_iter": max_iter,
                "max_eval": max_iter * 5 // 4 if max_eval is None else max_eval,
                "tolerance_grad": tolerance_grad,
                "tolerance_change": tolerance_change,
                "history_size": history_size,
                "line_search_fn": line_search_fn,
            },
        )
        if len(self.param_groups) != 1:
            raise ValueError(
                "LBFGS doesn't support per-parameter options (parameter groups): got "
                f"{len(self.param_groups)} groups"
            )
        self._params = self.param_groups[0]["params"]

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        self._params = self.param_groups[0]["params"]

    def _flat_grad(self) -> Any:
        parts = []
        for p in self._params:
            g = pt.zeros_like(p) if p.grad is None else p.grad
            parts.append((pt.view_as_real(g) if g.is_complex() else g).reshape(-1))
        return pt.cat(parts, 0)

    def _move(self, length: Any, direction: Any) -> None:
        offset = 0
        for p in self._params:
            real = pt.view_as_real(p) if p.is_complex() else p
            n = real.numel()
            real.add_(direction[offset : offset + n].view_as(real), alpha=number(length))
            offset += n

    def _direction(self, g: Any, state: dict[str, Any], group: dict[str, Any]) -> Any:
        """Return the descent direction, after learning from the last move."""
        if state["n_iter"] == 1:
            state.update(old_dirs=[], old_stps=[], ro=[], H_diag=1)
            return g.neg()
        ys_list, s_list, ro = state["old_dirs"], state["old_stps"], state["ro"]
        y, s = g.sub(state["prev_flat_grad"]), state["d"].mul(number(state["t"]))
        ys = y.dot(s)
        if ys > 1e-10:
            if len(ys_list) == group["history_size"]:
                for past in (ys_list, s_list, ro):
                    past.pop(0)
            ys_list.append(y)
            s_list.append(s)
            ro.append(1.0 / ys)
            state["H_diag"] = ys / y.dot(y)
        alphas: list[Any] = [None] * group["history_size"]
        d = g.neg()
        for i in reversed(range(len(ys_list))):
            alphas[i] = s_list[i].dot(d) * ro[i]
            d.add_(ys_list[i], alpha=-number(alphas[i]))
        d = d.mul(state["H_diag"])
        for i in range(len(ys_list)):
            d.add_(s_list[i], alpha=number(alphas[i] - ys_list[i].dot(d) * ro[i]))
        state["al"] = alphas
        return d

    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Minimise for at most `max_iter` iterations; returns the loss at the start."""
        if closure is None:
            raise TypeError("LBFGS.step: a closure that reevaluates the loss is needed, got None")
        with pt.no_grad():
            return self._minimise(pt.enable_grad()(closure))

    def _minimise(self, closure: Callable[[], Any]) -> Any:
        group, state = self.param_groups[0], self.state[self._params[0]]
        change = group["tolerance_change"]
        state.setdefault("func_evals", 0)
        state.setdefault("n_iter", 0)
        first = closure()
        loss = float(number(first))
        calls = 1
        state["func_evals"] += 1
        g = self._flat_grad()
        done = g.abs().max() <= group["tolerance_grad"]
        if done:
            return first
        iteration = 0
        while iteration < group["max_iter"]:
            iteration += 1
            state["n_iter"] += 1
            d = self._direction(g, state, group)
            state["d"], state["prev_flat_grad"], state["prev_loss"] = d, g.clone(), loss
            t = group["lr"]
            if state["n_iter"] == 1:
                t = min(1.0, number(1.0 / g.abs().sum())) * t
            slope = g.dot(d)
            if slope > -change:
                state["t"] = t
                break
            used = 0
            if group["line_search_fn"] is not None:
                if group["line_search_fn"] != "strong_wolfe":
                    raise RuntimeError(
                        "LBFGS: only 'strong_wolfe' is supported as line_search_fn, got "
                        f"{group['line_search_fn']!r}"
                    )
                start = [p.clone() for p in self._params]

                def at(length: Any, start: list[Any] = start, d: Any = d) -> tuple[float, Any]:
                    self._move(length, d)
                    value = float(number(closure()))
                    gradient = self._flat_grad()
                    for p, old in zip(self._params, start, strict=True):
                        p.copy_(old)
                    return value, gradient

                loss, g, t, used = strong_wolfe(
                    at, number(t), d, loss, g, slope, group["max_eval"] - calls
                )
                self._move(t, d)
                done = g.abs().max() <= group["tolerance_grad"]
            else:
                self._move(t, d)
                if iteration != group["max_iter"]:
                    loss = float(number(closure()))
                    g = self._flat_grad()
                    done = g.abs().max() <= group["tolerance_grad"]
                    used = 1
            state["t"] = t
            calls += used
            state["func_evals"] += used
            if (
                iteration == group["max_iter"]
                or calls >= group["max_eval"]
                or done
                or d.mul(number(t)).abs().max() <= change
                or abs(loss - state["prev_loss"]) < change
            ):
                break
        return first


def cubic_minimum(
    x1: float, f1: float, g1: Any, x2: float, f2: float, g2: Any, low: float, high: float
) -> float:
    """Return the minimum within [low, high] of the cubic with these values and slopes."""
    d1 = number(g1 + g2) - 3 * (f1 - f2) / (x1 - x2)
    square = d1**2 - number(g1 * g2)
    if not square >= 0:
        return (low + high) / 2.0
    d2 = square**0.5
    if x1 <= x2:
        x = x2 - (x2 - x1) * ((number(g2) + d2 - d1) / (number(g2 - g1) + 2 * d2))
    else:
        x = x1 - (x1 - x2) * ((number(g1) + d2 - d1) / (number(g1 - g2) + 2 * d2))
    return min(max(x, low), high)


def strong_wolfe(
    at: Callable[[Any], tuple[float, Any]],
    t: float,
    d: Any,
    f0: float,
    g0: Any,
    slope0: Any,
    max_calls: int = 25,
    tolerance_change: float = 1e-9,
    c1: float = 1e-4,
    c2: float = 0.9,
) -> tuple[float, Any, float, int]:
    """Search along `d` for a length that satisfies the strong Wolfe conditions.

    ``at(t)`` gives loss and gradient there. Returns loss, gradient, length, number of calls.
    """
    scale = d.abs().max()
    f, g = at(t)
    calls = 1
    slope = g.dot(d)
    t_prev, f_prev, g_prev, slope_prev = 0.0, f0, g0, slope0
    # Points of the bracket: (length, loss, gradient, slope).
    bracket: list[tuple[float, float, Any, Any]] = []
    done = False
    tries = 0
    while tries < max_calls:
        here = (t, f, g.clone(), slope)
        before = (t_prev, f_prev, g_prev, slope_prev)
        if f > f0 + c1 * t * slope0 or (tries > 1 and f >= f_prev):
            bracket = [before, here]
            break
        if abs(slope) <= -c2 * slope0:
            bracket = [here]
            done = True
            break
        if slope >= 0:
            bracket = [before, here]
            break
        low, high = t + 0.01 * (t - t_prev), t * 10
        t_next = cubic_minimum(t_prev, f_prev, slope_prev, t, f, slope, low, high)
        t_prev, f_prev, g_prev, slope_prev = here
        t = t_next
        f, g = at(t)
        calls += 1
        slope = g.dot(d)
        tries += 1
    if tries == max_calls:
        bracket = [(0.0, f0, g0, slope0), (t, f, g, slope)]

    stuck = False
    low_at, high_at = (0, 1) if bracket[0][1] <= bracket[-1][1] else (1, 0)
    while not done and tries < max_calls:
        ends = [bracket[0][0], bracket[1][0]]
        left, right = min(ends), max(ends)
        if (right - left) * scale < tolerance_change:
            break
        t = cubic_minimum(
            bracket[0][0], bracket[0][1], bracket[0][3],
            bracket[1][0], bracket[1][1], bracket[1][3], left, right,
        )  # fmt: skip
        # A point too close to an end brings little: the second time, step inside.
        margin = 0.1 * (right - left)
        if min(right - t, t - left) < margin:
            if stuck or t >= right or t <= left:
                t = right - margin if abs(t - right) < abs(t - left) else left + margin
                stuck = False
            else:
                stuck = True
        else:
            stuck = False
        f, g = at(t)
        calls += 1
        slope = g.dot(d)
        tries += 1
        here = (t, f, g.clone(), slope)
        if f > f0 + c1 * t * slope0 or f >= bracket[low_at][1]:
            bracket[high_at] = here
            low_at, high_at = (0, 1) if bracket[0][1] <= bracket[1][1] else (1, 0)
        else:
            if abs(slope) <= -c2 * slope0:
                done = True
            elif slope * (bracket[high_at][0] - bracket[low_at][0]) >= 0:
                bracket[high_at] = bracket[low_at]
            bracket[low_at] = here
    t, f, g, _ = bracket[low_at] if len(bracket) > 1 else bracket[0]
    return f, g, t, calls
