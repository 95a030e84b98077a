"""Counting the multiplications and additions of matrix products, convolutions and attention."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from itertools import pairwise
from math import isqrt, prod
from typing import Any

import pytensorlib as pt

from .. import _C
from .._ops import ops
from ..autograd.profiler import operator_name

__all__ = ["FlopCounterMode", "count", "register_flop_formula"]

Shape = Sequence[int]
Shapes = Sequence[Shape]


def product_flops(x: Shapes, y: Shapes) -> int:
    """Count a product of matrices: of the sizes alone, whichever way they lie.

    With a batch of size b, the operands and the result have b i k, b k j and b i j elements.
    """
    (a, b), out = x[-2:], y[0]
    batch = 1
    if len(a) == len(b) == len(out) > 2 and a[:-2] == b[:-2] == out[:-2]:
        batch = prod(out[:-2])
    return 2 * isqrt(prod(a) * prod(b) * prod(out) // batch) if batch else 0


def conv_flops(x: Shapes, y: Shapes) -> int:
    """Count a convolution, or a transposed one: each element of the smaller side meets a kernel."""
    (a, weight), out = x[:2], y[0]
    channels = weight[0]
    at = max(len(a) - len(weight) + 1, 0) if len(a) == len(weight) else 0
    if a[at] == channels and out[at] != channels:
        side = prod(a)
    elif out[at] == channels and a[at] != channels:
        side = prod(out)
    else:
        side = min(prod(a), prod(out))
    return 2 * side * prod(weight) // channels if channels else 0


def conv_weight_flops(x: Shapes, y: Shapes) -> int:
    """Count the gradient of a convolution's weight."""
    return 2 * prod(x[1]) * prod(y[0]) // y[0][0] if y[0][0] else 0


def attention_flops(x: Shapes, y: Shapes) -> int:
    """Count attention: scores and their product with the values; in backward five products."""
    backward = len(y) > 2
    q, k, v = y[:3] if backward else x[:3]
    heads = prod(q[:-2])
    scores, values = q[-2] * k[-2] * q[-1], q[-2] * k[-2] * v[-1]
    return 2 * heads * (3 * scores + 2 * values if backward else scores + values)


def recurrent_flops(x: Shapes, y: Shapes) -> int:
    """Count a recurrent layer: two products in each step, in backward twice that."""
    first = x[0]
    for a, b in pairwise(x[1:]):
        gates = a[0] // b[1] if len(a) == len(b) == 2 and b[1] else 0
        if gates in (1, 3, 4) and a[0] == b[0] == gates * b[1] and a[1] == first[-1]:
            steps = prod(first[:-1])
            return 2 * steps * (prod(a) + prod(b))
    return 0


PRODUCTS = ("mm", "bmm", "mv", "dot", "addmm", "baddbmm", "addmv", "linear")
flop_registry: dict[Any, Callable[[Shapes, Shapes], int]] = {
    **{f"aten::{name}": product_flops for name in PRODUCTS},
    "aten::convolution": conv_flops,
    "aten::convolution_backward": conv_weight_flops,
    "aten::scaled_dot_product_flash_attention_for_cpu": attention_flops,
    **{f"aten::{name}": recurrent_flops for name in ("lstm", "gru", "rnn_tanh", "rnn_relu", "rnn")},
    "aten::rnn_backward": lambda x, y: 2 * recurrent_flops(x, y),
}


def count(name: str, x: Shapes, y: Shapes) -> int | None:
    """Return the multiplications and additions of a call.

    Parameters
    ----------
    name : str
        The operator, ``"aten::mm"``.
    x, y : sequence of shapes
        Of what it read and made.

    Returns
    -------
    int or None
        None where it is not counted.

    Examples
    --------
    >>> from pytensorlib.utils.flop_counter import count
    >>> count("aten::mm", [(3, 4), (4, 5)], [(3, 5)])
    120
    """
    formula = flop_registry.get(name)
    return None if formula is None else formula(x, y)


def register_flop_formula(targets: Any, get_raw: bool = False) -> Callable[[Any], Any]:
    """Return a decorator that lets a function count calls of operators.

    Parameters
    ----------
    targets : operator, str or list of them
        Such as ``torch.ops.aten.add`` or ``"aten::add"``.
    get_raw : bool, default False
        Not supported: operators are known by shapes.

    Returns
    -------
    callable
        Its function takes the shapes of the inputs, and ``out_shape`` by name.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> from pytensorlib.utils import flop_counter
    >>> @flop_counter.register_flop_formula("aten::sum")
    ... def sums(x, *args, out_shape=None, **kwargs):
    ...     return x[0]
    >>> with flop_counter.FlopCounterMode(display=False) as counter:
    ...     _ = torch.ones(5).sum()
    >>> counter.get_total_flops()
    5
    >>> _ = flop_counter.flop_registry.pop("aten::sum")
    """
    if get_raw:
        raise NotImplementedError("register_flop_formula(get_raw=True): calls have shapes only")

    def register(formula: Any) -> Any:
        for target in targets if isinstance(targets, (list, tuple)) else [targets]:
            flop_registry[_name_of(target)] = _of_shapes(formula)
        return formula

    return register


def _of_shapes(formula: Any) -> Callable[[Shapes, Shapes], int]:
    def counted(x: Shapes, y: Shapes) -> int:
        out: Any = [tuple(s) for s in y]
        return formula(*(tuple(s) for s in x), out_shape=out[0] if len(out) == 1 else tuple(out))

    return counted


def _name_of(target: Any) -> str:
    return target if isinstance(target, str) else target._qualified_op_name


def _shown(name: str) -> Any:
    """Return the operator of a name, or the name with a dot."""
    return getattr(ops.aten, name.rpartition("::")[2], None) or name.replace("::", ".")


class FlopCounterMode:
    """Counts multiplications and additions in a block, module by module.

    Matrix products, convolutions, recurrent layers and attention count, in forward and in backward.

    Parameters
    ----------
    mods : Module or list of Module, optional
        Not used: modules are seen when they are called.
    depth : int, default 2
        How deep the table goes into modules.
    display : bool, default True
        Whether to print the table at the end.
    custom_mapping : dict, optional
        Functions that count calls of more operators, as of `register_flop_formula`.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> net = torch.nn.Linear(4, 5)
    >>> with torch.utils.flop_counter.FlopCounterMode(display=False) as counter:
    ...     net(torch.ones(3, 4)).sum().backward()
    >>> counter.get_total_flops()
    240
    """

    def __init__(
        self,
        mods: Any = None,
        depth: int = 2,
        display: bool = True,
        custom_mapping: dict[Any, Any] | None = None,
    ) -> None:
        self.depth, self.display = depth, display
        self.formulas = dict(flop_registry)
        for target, formula in (custom_mapping or {}).items():
            self.formulas[_name_of(target)] = _of_shapes(formula)
        self.flop_counts: dict[str, dict[str, int]] = {}
        self._recorder = _C._Profile()
        self._names: dict[int, str] = {}
        self._inside: list[str] = []
        self._handles: list[Any] = []

    def __enter__(self) -> FlopCounterMode:
        from ..nn.modules import module as hooks

        self.flop_counts = {"Global": defaultdict(int)}
        self._handles = [
            hooks.register_module_forward_pre_hook(self._enter),
            hooks.register_module_forward_hook(self._leave, always_call=True),
        ]
        self._recorder.start()
        return self

    def __exit__(self, *exc: Any) -> None:
        self._count()
        self._recorder.stop()
        for handle in self._handles:
            handle.remove()
        self._inside.clear()
        if self.display:
            print(self.get_table(self.depth))

    def _name(self, module: Any) -> str:
        if id(module) not in self._names:
            root = type(module).__name__
            for path, inner in module.named_modules():
                self._names.setdefault(id(inner), f"{root}.{path}" if path else root)
        return self._names[id(module)]

    def _enter(self, module: Any, args: Any) -> None:
        name = self._name(module)
        self._count()
        self._inside.append(name)
        for tensor in _tensors(args):
            if tensor.requires_grad and pt.is_grad_enabled():
                tensor.register_hook(lambda grad: self._in_backward(name, leaves=True))

    def _leave(self, module: Any, args: Any, result: Any) -> None:
        self._count()
        name = self._inside.pop()
        for tensor in _tensors(result):
            if tensor.requires_grad and tensor.grad_fn is not None:
                tensor.register_hook(lambda grad: self._in_backward(name, leaves=False))

    def _in_backward(self, name: str, leaves: bool) -> None:
        """Note that backward comes to a module's results, or to its inputs."""
        self._count()
        if leaves:
            while name in self._inside:
                self._inside.pop()
        else:
            # Modules without inputs that need gradients are left where the next begins; one whose
            # result is that of a module inside it comes after that.
            within = [n for n in self._inside if n.startswith(name + ".")]
            above = [n for n in self._inside if name.startswith(n + ".")]
            self._inside = [*above, name, *within]

    def _count(self) -> None:
        for node, _, _, x, y, *_ in self._recorder.take():
            name = operator_name(node)
            formula = self.formulas.get(name)
            if formula is None:
                continue
            flops = formula([s for s, _, _ in x], [s for s, _, _ in y])
            for place in {"Global", *self._inside}:
                self.flop_counts.setdefault(place, defaultdict(int))[name] += flops

    def get_total_flops(self) -> int:
        """Return the count of all."""
        self._count()
        return sum(self.flop_counts.get("Global", {}).values())

    def get_flop_counts(self) -> dict[str, dict[Any, int]]:
        """Return the counts by module and operator; "Global" has all."""
        self._count()
        return {
            place: {_shown(name): n for name, n in counts.items()}
            for place, counts in self.flop_counts.items()
        }

    def get_table(self, depth: int | None = None) -> str:
        """Return a table for people.

        Parameters
        ----------
        depth : int, optional
            How deep it goes into modules.
        """
        depth = self.depth if depth is None else depth
        total = self.get_total_flops()
        rows = [("Module", "FLOP", "% Total")]
        for place in sorted(self.flop_counts):
            level = 0 if place == "Global" else place.count(".") + 1
            if level > depth:
                continue
            counts = self.flop_counts[place]
            for name, n in ((place, sum(counts.values())), *counts.items()):
                shown = name if name == place else f" - {name.replace('::', '.')}"
                part = 100 * n / total if total else 0.0
                rows.append((" " * level + shown, f"{n:,}", f"{part:.2f}%"))
        widths = [max(len(row[i]) for row in rows) for i in range(3)]
        rows.insert(1, ("-" * widths[0], "-" * widths[1], "-" * widths[2]))
        return "\n".join(
            f"{a:<{widths[0]}}  {b:>{widths[1]}}  {c:>{widths[2]}}" for a, b, c in rows
        )


def _tensors(value: Any) -> list[Any]:
    from ._pytree import tree_leaves

    return [leaf for leaf in tree_leaves(value) if isinstance(leaf, pt.Tensor)]
