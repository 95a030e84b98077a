"""The steps of `einsum` in graphs compute what NumPy's does."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import pytensorlib as torch
from pytensorlib.fx.experimental.proxy_tensor import make_fx

SIZES = dict(zip("abcdij", (2, 3, 4, 5, 3, 1), strict=True))


class Product(torch.nn.Module):
    def __init__(self, equation: str) -> None:
        super().__init__()
        self.equation = equation

    def forward(self, *operands: Any) -> Any:
        return torch.einsum(self.equation, *operands)


@pytest.mark.parametrize(
    "equation",
    """ab,bc->ac ab,bc ab,bc->ca abc,abd->acd abc,adc->abd abc,cd->abd abc,abc->a abc,abc-> a,b->ba
    ab,ab->ab abcd,bd->ac abj,jc->abc abc,d->abcd ab,c->b ab->ba ab->a ab->
    abcd,acbd->ac""".split(),
)  # fmt: skip
def test_steps_give_numpys_numbers(equation: str) -> None:
    rng = np.random.default_rng(0)
    given = equation.partition("->")[0].split(",")
    arrays = [rng.standard_normal([SIZES[c] for c in p]) for p in given]
    want = np.einsum(equation, *arrays)
    operands = tuple(torch.from_numpy(a) for a in arrays)
    graph = make_fx(Product(equation))(*operands)
    np.testing.assert_allclose(graph(*operands).numpy(), want, atol=1e-12)
    program = torch.export.export(Product(equation), operands).run_decompositions()
    np.testing.assert_allclose(program.module()(*operands).numpy(), want, atol=1e-12)
    for nodes in (graph.graph.nodes, program.graph.nodes):
        assert not [n for n in nodes if "einsum" in str(n.target)]
