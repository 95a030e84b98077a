"""Computes once what a program computes twice."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from ....._ops import ops
from ....graph import Graph
from ....graph_module import GraphModule
from ....node import Node
from ...infra.pass_base import PassBase, PassResult

__all__ = ["CSEPass", "get_CSE_banned_ops"]

_DRAWN = (
    "dropout native_dropout bernoulli multinomial normal poisson binomial rrelu rand_like rand "
    "randint randn randn_like randperm"
).split()
_WRITING = "add_ sub_ mul_ div_ pow_ lerp_ relu_ sigmoid_ tanh_".split()


def get_CSE_banned_ops() -> set[Any]:  # noqa: N802
    """Return the operators that two calls of do not share: they draw numbers, or write.

    Returns
    -------
    set
        Of ``torch.ops.aten``.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> from pytensorlib.fx.passes.dialect.common.cse_pass import get_CSE_banned_ops
    >>> torch.ops.aten.rand in get_CSE_banned_ops()
    True
    """
    aten = ops.aten
    found = (getattr(aten, name, None) for name in (*_DRAWN, *_WRITING))
    return {op for op in found if op is not None}


class CSEPass(PassBase):
    """Lets calls of one function with the same arguments be one call.

    For graphs of functions without effects, such as those of `make_fx`.

    Parameters
    ----------
    banned_ops : collection of operators, optional
        Each call of these stays.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> from pytensorlib.fx.experimental.proxy_tensor import make_fx
    >>> from pytensorlib.fx.passes.dialect.common.cse_pass import CSEPass
    >>> traced = make_fx(lambda a: a * a + a * a)(torch.ones(1))
    >>> print(CSEPass()(traced).graph_module.code.strip())
    def forward(self, a_1):
        mul = torch.ops.aten.mul.Tensor(a_1, a_1);  a_1 = None
        add = torch.ops.aten.add.Tensor(mul, mul);  mul = None
        return add
    """

    def __init__(self, banned_ops: Collection[Any] | None = None) -> None:
        self.banned_ops = banned_ops or ()

    def _is_kept(self, node: Node) -> bool:
        # An operator that holds the parameters of its call is no other call's.
        if node.op in ("placeholder", "output", "get_attr") or hasattr(node.target, "_op"):
            return True
        return getattr(node.target, "overloadpacket", node.target) in self.banned_ops

    def call(self, graph_module: Any) -> PassResult:
        """Return the module with fewer calls.

        Parameters
        ----------
        graph_module : GraphModule
            It stays as it is.

        Returns
        -------
        PassResult
            A module, and whether it has fewer.
        """
        graph = Graph()
        values: dict[Node, Node] = {}
        first: dict[Any, Node] = {}
        changed = False
        for node in graph_module.graph.nodes:
            made = graph.node_copy(node, lambda n: values[n])
            if not self._is_kept(node):
                # The texts of numbers tell 1 from 1.0 and from True.
                key = node.op, node.target, repr(made.args), repr(made.kwargs)
                known = first.setdefault(key, made)
                if known is not made:
                    graph.erase_node(made)
                    made, changed = known, True
            values[node] = made
        if not changed:
            return PassResult(graph_module, False)
        graph.set_codegen(graph_module.graph._codegen)
        return PassResult(GraphModule(graph_module, graph), True)
