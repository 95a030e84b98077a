"""Recurrent layers by core operators, one step after another: a part of `_decompositions`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

__all__ = ["forms"]

Form = Callable[..., Any]


def _layers(cell: Form, states: int, sizes: Form, unbind: Form) -> Form:
    def form(
        r: Any, x: Any, hx: Any, params: Any, has_biases: bool, num_layers: int, dropout: float,
        train: bool, bidirectional: bool, batch_first: bool,
    ) -> Any:  # fmt: skip
        first = hx if isinstance(hx, (list, tuple)) else [hx]
        ways = 2 if bidirectional else 1
        each = 4 if has_biases else 2
        shape = sizes(r, x)
        length = shape[1 if batch_first else 0] if x.dim() == 3 else None
        if type(length) is not int or not length or len(params) != each * ways * num_layers:
            return NotImplemented
        if states == 2 and first[0].shape != first[1].shape:
            return NotImplemented  # projected
        x = r("permute", x, [1, 0, 2]) if batch_first else x
        starts = [unbind(r, t) for t in first]
        last: list[list[Any]] = [[] for _ in first]
        for layer in range(num_layers):
            outs = []
            for way in range(ways):
                at = layer * ways + way
                own = list(params[at * each : (at + 1) * each])
                biases = own[2:] if has_biases else [None, None]
                steps = unbind(r, r("linear", x, own[0], biases[0]))
                state = [t[at] for t in starts]
                made = []
                for given in steps[::-1] if way else steps:
                    state = cell(r, given, state, own[1], biases[1])
                    made.append(r("unsqueeze", state[0], 0))
                outs.append(r("cat", made[::-1] if way else made, 0))
                for kept, t in zip(last, state, strict=True):
                    kept.append(r("unsqueeze", t, 0))
            x = r("cat", outs, 2) if ways == 2 else outs[0]
            if dropout and train and layer < num_layers - 1:
                x = r("native_dropout", x, dropout, True)[0]
        x = r("permute", x, [1, 0, 2]) if batch_first else x
        return [x, *(r("cat", kept, 0) for kept in last)]

    return form


def _cell_lstm(r: Any, given: Any, state: Any, weight: Any, bias: Any) -> Any:
    h, c = state
    gates = r("add", r("linear", h, weight, bias), given)
    i, f, g, o = r("split_with_sizes", gates, [c.shape[-1]] * 4, 1)
    kept = r("mul", r("sigmoid", f), c)
    c = r("add", kept, r("mul", r("sigmoid", i), r("tanh", g)))
    return [r("mul", r("sigmoid", o), r("tanh", c)), c]


def _cell_gru(r: Any, given: Any, state: Any, weight: Any, bias: Any) -> Any:
    (h,) = state
    size = [h.shape[-1]] * 3
    a, b, c = r("split_with_sizes", given, size, 1)
    d, e, f = r("split_with_sizes", r("linear", h, weight, bias), size, 1)
    reset, update = r("sigmoid", r("add", d, a)), r("sigmoid", r("add", e, b))
    new = r("tanh", r("add", c, r("mul", f, reset)))
    return [r("add", r("mul", r("sub", h, new), update), new)]


def _cell_rnn(name: str) -> Form:
    def cell(r: Any, given: Any, state: Any, weight: Any, bias: Any) -> Any:
        return [r(name, r("add", r("linear", state[0], weight, bias), given))]

    return cell


def forms(sizes: Form, unbind: Form) -> dict[str, Form]:
    """Return the functions by operators, given those that tell sizes and part a tensor."""
    cells = {
        "gru.input": (_cell_gru, 1),
        "lstm.input": (_cell_lstm, 2),
        "rnn_relu.input": (_cell_rnn("relu"), 1),
        "rnn_tanh.input": (_cell_rnn("tanh"), 1),
    }
    return {name: _layers(*of, sizes, unbind) for name, of in cells.items()}
