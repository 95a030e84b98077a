"""Single calls that raise, and the class of the error that PyTorch raises."""

from __future__ import annotations

import pytest

import pytensorlib as torch
import pytensorlib.nn.functional as F


@pytest.mark.parametrize(
    ("error", "call"),
    [
        (IndexError, lambda: torch.zeros(0).put_(torch.tensor(0), torch.zeros(0))),
        (IndexError, lambda: torch.kthvalue(torch.zeros(2, 0), 1)),
        (IndexError, lambda: torch.tensor(1.0)[0:1]),
        (RuntimeError, lambda: torch.zeros(3).index_fill(0, torch.zeros(1, 1).long(), 1)),
        (ValueError, lambda: torch.pixel_shuffle(torch.zeros(1, 4, 1, 1), 2**40)),
        (torch.linalg.LinAlgError, lambda: torch.linalg.tensorinv(torch.zeros(4, 2, 2), ind=1)),
        (RuntimeError, lambda: torch.linalg.tensorinv(torch.tensor(1.0), ind=2)),
        (RuntimeError, lambda: torch.unique(torch.zeros(0, 0, 2), dim=0)),
        (RuntimeError, lambda: torch.unique(torch.zeros(3, 0), dim=0)),
    ],
)
def test_error_has_pytorchs_class(error: type[Exception], call: object) -> None:
    with pytest.raises(error) as caught:
        call()  # type: ignore[operator]
    assert type(caught.value) is error


def test_unique_along_a_dimension_wants_one() -> None:
    for f in (torch.unique, torch.unique_consecutive):
        assert f(torch.tensor(1.0)).tolist() == [1]
        with pytest.raises(IndexError, match="no dimensions"):
            f(torch.tensor(1.0), dim=-1)


W = torch.arange(8.0).reshape(4, 2)

Z, I2, B = torch.tensor([1j]), torch.ones(2, 2, dtype=torch.int64), torch.tensor([True])

NN = torch._C._nn

ERRORS = [
    (RuntimeError, lambda: torch.embedding_bag(I2, torch.tensor([0]), torch.tensor([0]))),
    (RuntimeError, lambda: torch.embedding_bag(W, torch.tensor([0.0]), torch.tensor([0]))),
    (
        RuntimeError,
        lambda: torch.embedding_bag(W, *[torch.tensor([0], dtype=torch.uint8)] * 2),
    ),
    (
        RuntimeError,
        lambda: torch.convolution(
            torch.ones(1, 4), torch.ones(1, 1, 2), None, [1], [0], [1], False, [0], 1
        ),
    ),
    (
        RuntimeError,
        lambda: torch.conv_tbc(torch.ones(2, 1, 2), torch.ones(4, 2, 4), torch.ones(4)),
    ),
    (RuntimeError, lambda: F.threshold(torch.tensor([1], dtype=torch.uint8), 3, 500)),
    (RuntimeError, lambda: F.threshold(torch.tensor([1], dtype=torch.int8), 300, 5)),
    (RuntimeError, lambda: F.threshold(torch.tensor([1.0]), 3, 1e40)),
    (RuntimeError, lambda: +B),
    (RuntimeError, lambda: torch.slice_copy(W, 0, 0, 2, 0)),
    (RuntimeError, lambda: torch.slice_scatter(W, W, 0, 0, 2, -1)),
    (IndexError, lambda: torch.slice_copy(torch.tensor(1.0))),
    (IndexError, lambda: torch.slice_scatter(torch.tensor(1.0), torch.tensor(1.0))),
    (ValueError, lambda: W[::-1]),
    (IndexError, lambda: torch.rot90(W, 1, [0, 2])),
    (IndexError, lambda: torch.rot90(W, 1, [3, 3])),
    (RuntimeError, lambda: torch.rot90(W, 1, [0, -2])),
    (NotImplementedError, lambda: torch.repeat_interleave(W[0], torch.tensor([1.0, 2.0]))),
    (NotImplementedError, lambda: torch.repeat_interleave(B)),
    (TypeError, lambda: ~W),
    (TypeError, lambda: ~Z),
    (NotImplementedError, lambda: torch.bitwise_not(W)),
    (RuntimeError, lambda: torch.maximum(Z, Z)),
    (RuntimeError, lambda: torch.minimum(Z, W[0])),
    (RuntimeError, lambda: torch.fmax(Z, Z)),
    (RuntimeError, lambda: torch.fmin(Z, Z)),
    (RuntimeError, lambda: torch.heaviside(Z, Z)),
    (RuntimeError, lambda: torch.isposinf(Z)),
    (RuntimeError, lambda: torch.isneginf(Z)),
    (RuntimeError, lambda: torch.deg2rad(Z)),
    (RuntimeError, lambda: torch.rad2deg(Z)),
    (NotImplementedError, lambda: torch.sign(Z)),
    (RuntimeError, lambda: torch.frexp(I2)),
    (RuntimeError, lambda: torch.frexp(Z)),
    (RuntimeError, lambda: NN.nll_loss(torch.ones(3, 2), torch.tensor([0, 1]))),
    (ValueError, lambda: NN.nll_loss(torch.ones(2), torch.tensor([0, 1]))),
    (ValueError, lambda: F.nll_loss(torch.ones(3, 2), torch.tensor([0, 1]))),
    (
        RuntimeError,
        lambda: NN.nll_loss2d(torch.ones(3, 2, 2, 2), torch.zeros(2, 2, 2, dtype=torch.int64)),
    ),
    (RuntimeError, lambda: F.scaled_dot_product_attention(I2, I2, I2)),
    (IndexError, lambda: torch.group_norm(torch.ones(4), 2)),
    (RuntimeError, lambda: F.group_norm(torch.ones(4), 2)),
    (IndexError, lambda: F.unfold(W, 1)),
    (RuntimeError, lambda: F.unfold(torch.ones(1, 1, 1, 2, 2), 1)),
]


@pytest.mark.parametrize("case", range(len(ERRORS)))
def test_error_class(case: int) -> None:
    kind, call = ERRORS[case]
    with pytest.raises(kind) as raised:
        call()
    # NotImplementedError is a RuntimeError as well.
    assert raised.type is kind


def test_rot90_of_a_dimension_that_is_not_there_is_an_index_error() -> None:
    with pytest.raises(IndexError, match="Dimension out of range"):
        torch.rot90(torch.ones(3, 3), 1, (1, 5))
