"""Memory that operands and results share: refused where the result would depend on the order."""

from __future__ import annotations

from typing import Any

import pytest

import pytensorlib as torch

SELF = "more than one element of the written-to tensor"
OTHER = "some elements of the input tensor and the written-to tensor"
ROWS = torch.tensor([0, 1, 2])


@pytest.mark.parametrize(
    ("write", "want"),
    [
        (lambda x: x.zero_(), [[0, 0, 0]] * 3),
        (lambda x: x.fill_(2), [[2, 2, 2]] * 3),
        (lambda x: x.masked_fill_(torch.tensor([[True, False, False]] * 3), 5), [[5, 1, 1]] * 3),
        (lambda x: x.__setitem__(torch.eye(3, dtype=torch.bool), 5), [[5, 5, 5]] * 3),
        (lambda x: x.index_fill_(0, torch.tensor([0]), 5), [[5, 5, 5]] * 3),
        (lambda x: x.index_put_((torch.tensor([1]),), torch.tensor(5.0)), [[5, 5, 5]] * 3),
        (lambda x: torch.threshold_(x, 2, 5), [[5, 5, 5]] * 3),
        (lambda x: torch.nn.functional.threshold(x, 0, 5, inplace=True), [[1, 1, 1]] * 3),
        (lambda x: x.triu_(), [[0, 0, 1]] * 3),
        (lambda x: x.tril_(), [[1, 0, 0]] * 3),
    ],
)
def test_expanded_tensor_is_written_where_order_does_not_matter(write: Any, want: Any) -> None:
    x = torch.ones(1, 3).expand(3, 3)
    before = x._version
    write(x)
    assert x.tolist() == want
    assert x._version > before


def test_fill_of_overlapping_windows() -> None:
    x = torch.zeros(5)
    x.unfold(0, 2, 1).fill_(3)
    assert x.tolist() == [3, 3, 3, 3, 3]


def test_hook_may_clear_an_expanded_gradient() -> None:
    x = torch.ones(3, requires_grad=True)
    y = x * 2
    y.register_hook(lambda g: g.zero_())
    y.sum().backward()
    assert x.grad.tolist() == [0, 0, 0]


@pytest.mark.parametrize(
    "write",
    [
        lambda x: x.abs_(),
        lambda x: x.add_(1),
        lambda x: x.copy_(torch.ones(3, 3)),
        lambda x: x.normal_(),
        lambda x: x.bernoulli_(),
        lambda x: x.cumsum_(0),
        lambda x: x.scatter_(0, torch.zeros(3, 3, dtype=torch.int64), 1.0),
        lambda x: x.index_copy_(0, torch.tensor([0]), torch.ones(1, 3)),
        lambda x: x.index_add_(0, torch.tensor([0]), torch.ones(1, 3)),
        lambda x: x.masked_scatter_(torch.eye(3, dtype=torch.bool), torch.ones(9)),
        lambda x: x.put_(torch.tensor([0]), torch.ones(1)),
        lambda x: x.index_put_((torch.tensor([0]),), torch.ones(1), accumulate=True),
        lambda x: torch.mm(torch.ones(3, 3), torch.ones(3, 3), out=x),
    ],
)
def test_expanded_tensor_is_refused_elsewhere(write: Any) -> None:
    with pytest.raises(RuntimeError, match=SELF):
        write(torch.ones(1, 3).expand(3, 3))


@pytest.mark.parametrize(
    "write",
    [
        lambda x: x.index_put_((ROWS,), x),
        lambda x: x.__setitem__(ROWS, x),
        lambda x: x[:2].__setitem__(ROWS[:2], x[1:]),
        lambda x: x.__setitem__(torch.tensor([True, True, False]), x[1:]),
        lambda x: x.index_add_(0, ROWS, x),
        lambda x: x.index_copy_(0, ROWS, x),
        lambda x: x.put_(ROWS, x),
        lambda x: x.scatter_(0, ROWS, x),
        lambda x: x.scatter_(0, ROWS, x, reduce="multiply"),
        lambda x: x.scatter_add_(0, ROWS, x),
        lambda x: x.scatter_reduce_(0, ROWS, x, "sum"),
        lambda x: x.index_reduce_(0, ROWS, x, "amax"),
        lambda x: x[:2].index_add_(0, ROWS[:2], x[1:]),
        lambda x: x[1:].scatter_(0, ROWS[:2], x[:2]),
        lambda x: torch.add(x[:2], 1, out=x[1:]),
    ],
)
def test_source_in_the_memory_written_to_is_refused(write: Any) -> None:
    with pytest.raises(RuntimeError, match=OTHER):
        write(torch.arange(3.0))


@pytest.mark.parametrize(
    "write",
    [
        lambda x, v: x.index_add_(0, x, v),
        lambda x, v: x.index_copy_(0, x, v),
        lambda x, v: x.index_fill_(0, x, 0),
        lambda x, v: x.index_put_((x,), v),
        lambda x, v: x.__setitem__(x, v),
        lambda x, v: x.put_(x, v),
        lambda x, v: x.scatter_(0, x, v),
        lambda x, v: x.scatter_(0, x, 1),
        lambda x, v: x.scatter_add_(0, x, v),
        lambda x, v: x.scatter_reduce_(0, x, v, "sum"),
        lambda x, v: x.index_reduce_(0, x, v, "amax"),
    ],
)
def test_index_in_the_memory_written_to_is_refused(write: Any) -> None:
    with pytest.raises(RuntimeError, match=OTHER):
        write(torch.arange(3), torch.arange(3))


def test_number_in_the_memory_written_to_is_read_first() -> None:
    mask = torch.tensor([True, True, True])
    assert torch.arange(3.0).masked_fill_(mask, torch.arange(3.0)[2]).tolist() == [2, 2, 2]
    x = torch.arange(3.0)
    assert x.masked_fill_(mask, x[2]).tolist() == [2, 2, 2]
    x = torch.arange(3.0)
    assert x.index_fill_(0, ROWS, x[1]).tolist() == [1, 1, 1]
    x = torch.arange(3.0)
    assert x.fill_(x[1]).tolist() == [1, 1, 1]


@pytest.mark.parametrize(
    "write",
    [
        lambda x, y: torch.eq(x, x, out=y.bool()),
        lambda x, y: torch.eq(x, x, out=y),
        lambda x, y: torch.argmax(x, out=torch.tensor(0)),
        lambda x, y: torch.logical_and(x, x, out=y.bool()),
        lambda x, y: torch.bucketize(x, torch.ones(2), out=y.long()),
        lambda x, y: torch.histc(x, 3, out=y),
    ],
)
def test_out_without_a_derivative_takes_inputs_that_require_grad(write: Any) -> None:
    write(torch.ones(3, requires_grad=True), torch.zeros(3))


@pytest.mark.parametrize(
    "write",
    [
        lambda x, y: torch.add(x, 1, out=y),
        lambda x, y: torch.sum(x, 0, out=y),
        lambda x, y: torch.cat([x, x], out=y),
        lambda x, y: torch.sort(x, out=(y, y.long())),
    ],
)
def test_out_with_a_derivative_refuses_inputs_that_require_grad(write: Any) -> None:
    with pytest.raises(RuntimeError, match="don't support automatic differentiation"):
        write(torch.ones(3, requires_grad=True), torch.zeros(3))


@pytest.mark.parametrize(
    ("write", "want"),
    [
        (lambda out: torch.arange(4, out=out), [0, 1, 2, 3]),
        (lambda out: torch.linspace(0, 3, 4, out=out), [0, 1, 2, 3]),
        (lambda out: torch.logspace(0, 3, 4, out=out), [1, 10, 100, 1000]),
    ],
)
def test_row_of_numbers_fills_an_out_of_as_many_elements(write: Any, want: Any) -> None:
    x = torch.zeros(2, 3)
    part = x.narrow(1, 1, 2)
    write(part)
    assert x.tolist() == [[0, *want[:2]], [0, *want[2:]]]
    assert part.shape == (2, 2)


SQUARE = torch.tensor([[0, 1], [1, 0]])
# Functions of a 2 x 2 tensor, a result, and one for indices, that take no result in the operand's
# memory ...
SEPARATE = {
    "kthvalue": lambda x, o, i: torch.kthvalue(x, 1, 0, out=(o[0], i)),
    "mode": lambda x, o, i: torch.mode(x, 0, out=(o[0], i)),
    "topk": lambda x, o, i: torch.topk(x, 1, 0, out=(o[:1], i)),
    "max": lambda x, o, i: torch.max(x, 0, out=(o[0], i)),
    "min": lambda x, o, i: torch.min(x, 0, out=(o[0], i)),
    "aminmax": lambda x, o, i: torch.aminmax(x, dim=0, out=(o[0], torch.empty(0))),
    "cat": lambda x, o, i: torch.cat([x[:1], torch.ones(1, 2)], out=o),
    "stack": lambda x, o, i: torch.stack([x[0], torch.ones(2)], out=o),
    "vstack": lambda x, o, i: torch.vstack([x[:1], torch.ones(1, 2)], out=o),
    "column_stack": lambda x, o, i: torch.column_stack([x[0], torch.ones(2)], out=o),
    "diff": lambda x, o, i: torch.diff(x.view(-1), out=o.view(-1)[:3]),
    "gather": lambda x, o, i: torch.gather(x, 0, SQUARE, out=o),
    "take": lambda x, o, i: torch.take(x, SQUARE, out=o),
    "take_along_dim": lambda x, o, i: torch.take_along_dim(x, SQUARE, 0, out=o),
    "index_select": lambda x, o, i: torch.index_select(x, 0, SQUARE[0], out=o),
    "masked_select": lambda x, o, i: torch.masked_select(x, SQUARE == 1, out=o[0]),
    "scatter": lambda x, o, i: torch.scatter(torch.ones(2, 2), 0, SQUARE, x, out=o),
    "index_add": lambda x, o, i: torch.index_add(torch.ones(2, 2), 0, SQUARE[0], x, out=o),
}
# ... and those that take it in the same place, but not beside.
WHOLE = {
    "addmm": lambda x, o: torch.addmm(x, torch.ones(2, 1), torch.ones(1, 2), out=o),
    "addr": lambda x, o: torch.addr(x, torch.ones(2), torch.ones(2), out=o),
    "angle": lambda x, o: torch.angle(x, out=o),
    "conj_physical": lambda x, o: torch.conj_physical(x, out=o),
    "cumsum": lambda x, o: torch.cumsum(x, 0, out=o),
    "cumprod": lambda x, o: torch.cumprod(x, 0, out=o),
    "logcumsumexp": lambda x, o: torch.logcumsumexp(x, 0, out=o),
    "msort": lambda x, o: torch.msort(x, out=o),
    "sort": lambda x, o: torch.sort(x, 0, out=(o, torch.empty(0, dtype=torch.int64)))[0],
    "renorm": lambda x, o: torch.renorm(x, 2, 0, 1, out=o),
    "where": lambda x, o: torch.where(SQUARE == 1, x, torch.tensor(5.0), out=o),
    "frexp": lambda x, o: torch.frexp(x, out=(o, torch.empty(0, dtype=torch.int32)))[0],
    "scatter": lambda x, o: torch.scatter(x, 0, SQUARE, torch.ones(2, 2), out=o),
    "index_add": lambda x, o: torch.index_add(x, 0, SQUARE[0], torch.ones(2, 2), out=o),
}


@pytest.mark.parametrize("name", SEPARATE)
def test_result_in_an_operand_s_memory_is_refused(name: str) -> None:
    base = torch.arange(5.0)
    x = base[:4].view(2, 2)
    # PyTorch 2.13 refuses all of these.
    for out in (x, base[1:].view(2, 2)):
        with pytest.raises(RuntimeError, match=OTHER):
            SEPARATE[name](x, out, torch.empty(0, dtype=torch.int64))
    assert base.tolist() == [0, 1, 2, 3, 4]
    SEPARATE[name](x, torch.empty(2, 2), torch.empty(0, dtype=torch.int64))


@pytest.mark.parametrize("name", WHOLE)
def test_result_beside_an_operand_is_refused(name: str) -> None:
    base = torch.arange(5.0)
    x = base[:4].view(2, 2)
    with pytest.raises(RuntimeError, match=OTHER):
        WHOLE[name](x, base[1:].view(2, 2))
    assert base.tolist() == [0, 1, 2, 3, 4]
    want = WHOLE[name](x.clone(), torch.empty(2, 2))
    assert torch.equal(WHOLE[name](x, x), want) and torch.equal(x, want)


def test_sum_to_size_of_a_number_is_no_alias() -> None:
    x = torch.tensor(2.0)
    y = x.sum_to_size(())
    y.fill_(5)
    assert x.item() == 2


def test_index_put_of_its_own_elements_is_refused() -> None:
    x = torch.arange(4.0)
    with pytest.raises(RuntimeError, match="single memory location"):
        x.index_put_((torch.tensor([1]),), x[3])
    assert x.index_put_((torch.tensor([1]),), x[3].clone()).tolist() == [0.0, 3.0, 2.0, 3.0]
