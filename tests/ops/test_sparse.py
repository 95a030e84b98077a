"""Sparse tensors of coordinates; what is expected is PyTorch's answer unless said otherwise."""

from __future__ import annotations

import contextlib
import copy
import io
import pickle
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from op_calls import leaves, tensors
from op_db import OPS

import pytensorlib as torch
from pytensorlib._serialization.machine import CorruptCheckpointError

INDICES = [[0, 1, 1], [2, 0, 0]]
DENSE = [[0.0, 0.0, 3.0], [9.0, 0.0, 0.0]]
REFUSED = (NotImplementedError, RuntimeError, TypeError, ValueError, IndexError, AttributeError)
REFUSED += (BufferError,)


def sample(**options: Any) -> Any:
    """Return a tensor of shape (2, 3) that has one coordinate twice."""
    return torch.sparse_coo_tensor(INDICES, [3.0, 4.0, 5.0], (2, 3), **options)


def parts(x: Any) -> Any:
    return x._indices().tolist(), x._values().tolist(), tuple(x.shape), x.is_coalesced()


def test_sparse_tensor_knows_its_parts_and_facts() -> None:
    x = sample(dtype=torch.float64)
    assert parts(x) == (INDICES, [3.0, 4.0, 5.0], (2, 3), False)
    assert (x._nnz(), x.sparse_dim(), x.dense_dim(), x.dim(), x.numel(), len(x)) == (
        3,
        2,
        0,
        2,
        6,
        2,
    )
    assert x.is_sparse and x.layout is torch.sparse_coo and x.layout != torch.strided
    assert str(x.layout) == "torch.sparse_coo" and x.dtype == torch.float64
    assert (x.stride(), x.is_contiguous(), x.storage_offset()) == ((0, 0), False, 0)
    assert x.is_same_size(torch.zeros(2, 3)) and x.device == torch.device("cpu")
    dense = torch.ones(2)
    assert (dense.sparse_dim(), dense.dense_dim(), dense.is_sparse) == (0, 1, False)


def test_sparse_tensor_shares_memory_with_its_values() -> None:
    values = torch.tensor([1.0, 2.0])
    x = torch.sparse_coo_tensor([[0, 1]], values)
    values[0] = 5
    assert x.to_dense().tolist() == [5.0, 2.0]


def test_sparse_coo_tensor_reads_what_it_is_given() -> None:
    hybrid = torch.sparse_coo_tensor([[0, 1]], [[1, 2], [3, 4]])
    assert parts(hybrid) == ([[0, 1]], [[1, 2], [3, 4]], (2, 2), False)
    assert hybrid.dtype == torch.int64 and (hybrid.sparse_dim(), hybrid.dense_dim()) == (1, 1)
    assert parts(torch.sparse_coo_tensor((2, 3))) == ([[], []], [], (2, 3), True)
    assert sample(requires_grad=True).requires_grad
    ordered = torch.sparse_coo_tensor([[0, 2]], [1.0, 2.0], (3,), is_coalesced=True)
    assert ordered.is_coalesced()
    assert torch.sparse_coo_tensor(torch.tensor(INDICES), np.ones(3)).dtype == torch.float64
    assert parts(torch.zeros(2, 3, layout=torch.sparse_coo)) == ([[], []], [], (2, 3), True)


@pytest.mark.parametrize(
    ("args", "text"),
    [
        (([[0, -1]], [1.0, 2.0]), "found negative index -1 for dim 0"),
        # PyTorch reads and writes out of bounds where it is not told to check.
        (
            ([[0, 5]], [1.0, 2.0], (3,)),
            "size is inconsistent with indices: for dim 0, size is 3 but",
        ),
        (([[0, 5]], [1.0, 2.0, 3.0], (3,)), "indices and values must have same nnz"),
        (([[0, 1]], [1.0, 2.0], (3, 3)), "'len(size) == sparse_dim + dense_dim' is not satisfied"),
        (
            ([[0, 1]], [[1.0], [2.0]], (3, 3)),
            "values has incorrect size, expected [2, 3], got [2, 1]",
        ),
        ((torch.zeros(2, 2, 2, dtype=torch.int64), [1.0, 2.0]), "indices must be sparse_dim x nnz"),
    ],
)
def test_coordinates_that_do_not_fit_raise(args: Any, text: str) -> None:
    with pytest.raises(RuntimeError) as error:
        torch.sparse_coo_tensor(*args)
    assert text in str(error.value)


def test_is_coalesced_is_checked() -> None:
    with pytest.raises(RuntimeError, match="cannot set is_coalesced to true"):
        torch.sparse_coo_tensor([[0, 0]], [1.0, 2.0], (3,), is_coalesced=True)


def test_dense_and_back() -> None:
    x = sample()
    assert x.to_dense().tolist() == DENSE
    assert x.to_dense(dtype=torch.float64).dtype == torch.float64
    assert parts(x.coalesce()) == ([[0, 1], [2, 0]], [3.0, 9.0], (2, 3), True)
    assert x.coalesce().coalesce().is_coalesced()
    y = torch.tensor(DENSE)
    assert parts(y.to_sparse()) == ([[0, 1], [2, 0]], [3.0, 9.0], (2, 3), True)
    assert parts(y.to_sparse(1)) == ([[0, 1]], DENSE, (2, 3), True)
    assert parts(y.to_sparse_coo()) == parts(y.to_sparse(layout=torch.sparse_coo))
    assert parts(y.to_sparse(dense_dim=1)) == parts(y.to_sparse(1))
    assert x.to_sparse() is x and y.to_dense() is y
    assert parts(torch.tensor(5.0).to_sparse()) == ([], [5.0], (), True)
    assert torch.tensor(5.0).to_sparse().to_dense().item() == 5.0
    assert torch.tensor(0.0).to_sparse()._nnz() == 0
    with pytest.raises(RuntimeError, match="sparse_dim argument must be in >0"):
        y.to_sparse(0)
    with pytest.raises(RuntimeError, match=r"sparse_dim argument must be in \[0,2\] range, but 3"):
        y.to_sparse(3)
    with pytest.raises(RuntimeError, match=r"sparse_dim argument !=self.sparse_dim\(\) is not"):
        x.to_sparse(1)


@pytest.mark.parametrize(
    "dtype", "bool uint8 int16 int64 float16 bfloat16 float64 complex64".split()
)
@pytest.mark.parametrize("lead", [1, 2, 3])
def test_dense_and_back_keeps_every_type(dtype: str, lead: int) -> None:
    x = torch.tensor([[[0, 1], [0, 0]], [[0, 0], [0, 0]], [[1, 0], [1, 1]]])
    x = x.to(getattr(torch, dtype))
    y = x.to_sparse(lead)
    assert y.dtype == x.dtype and y.sparse_dim() == lead
    assert torch.equal(y.to_dense(), x)
    twice = torch.sparse_coo_tensor(
        torch.cat([y.indices()] * 2, 1), torch.cat([y.values()] * 2), x.shape
    )
    want = x if dtype == "bool" else x + x
    assert torch.equal(twice.to_dense(), want)
    assert torch.equal(twice.coalesce().to_dense(), want)
    assert torch.equal(twice.coalesce().indices(), y.indices())


@pytest.mark.parametrize("shape", [(0,), (2, 0), (0, 3), (0, 0, 2)])
def test_tensors_without_elements(shape: tuple[int, ...]) -> None:
    x = torch.zeros(shape).to_sparse()
    assert x._nnz() == 0 and x.shape == shape
    assert x.to_dense().shape == shape and x.coalesce().shape == shape
    assert (x + x).shape == shape and x.sum().item() == 0


def test_indices_and_values_are_of_coalesced_tensors() -> None:
    x = sample()
    for name in ("indices", "values"):
        with pytest.raises(RuntimeError, match=f"Cannot get {name} on an uncoalesced tensor"):
            getattr(x, name)()
    assert x.coalesce().indices().tolist() == [[0, 1], [2, 0]]
    for name in "indices values coalesce is_coalesced _indices _values _nnz".split():
        with pytest.raises(RuntimeError, match="expected sparse coordinate tensor layout"):
            getattr(torch.ones(2), name)()


def test_sparse_tensor_prints_as_in_pytorch() -> None:
    x = sample()
    assert repr(x) == (
        "tensor(indices=tensor([[0, 1, 1],\n"
        "                       [2, 0, 0]]),\n"
        "       values=tensor([3., 4., 5.]),\n"
        "       size=(2, 3), nnz=3, layout=torch.sparse_coo)"
    )
    assert repr(torch.tensor(5.0).to_sparse()) == (
        "tensor(indices=tensor([], size=(0, 1)),\n"
        "       values=tensor([5.]),\n"
        "       size=(), nnz=1, layout=torch.sparse_coo)"
    )
    assert repr(x.to(torch.float64)).endswith(
        "nnz=3, dtype=torch.float64, layout=torch.sparse_coo)"
    )
    values = torch.tensor([3.0, 4.0, 5.0], requires_grad=True)
    assert repr(torch.sparse_coo_tensor(INDICES, values, (2, 3))).endswith(
        "       size=(2, 3), nnz=3, layout=torch.sparse_coo,\n"
        "       grad_fn=<SparseCooTensorWithDimsAndTensorsBackward0>)"
    )
    assert repr(sample(requires_grad=True)).endswith("layout=torch.sparse_coo, requires_grad=True)")


def test_sparse_mask_takes_values_at_coordinates() -> None:
    mask = sample()
    ones = torch.arange(6.0).reshape(2, 3)
    assert parts(ones.sparse_mask(mask)) == (INDICES, [2.0, 3.0, 3.0], (2, 3), False)
    other = torch.sparse_coo_tensor([[0, 1], [0, 0]], [7.0, 8.0], (2, 3))
    assert other.sparse_mask(mask.coalesce()).to_dense().tolist() == [[0, 0, 0], [8, 0, 0]]
    with pytest.raises(RuntimeError, match="operands have incompatible sizes"):
        torch.ones(2, 2).sparse_mask(mask)
    with pytest.raises(RuntimeError, match="expected mask to be sparse"):
        torch.ones(2, 2).sparse_mask(torch.ones(2, 2))


def test_copies_and_conversions() -> None:
    x = sample()
    y = x.clone()
    y._values()[0] = 100
    assert parts(x)[1] == [3.0, 4.0, 5.0]
    assert x.double().dtype == x.to(torch.float64).dtype == torch.float64
    assert x.to("cpu") is x and x.to(torch.float32) is x
    assert x.to(torch.float32, copy=True) is not x
    assert x.type_as(torch.ones(1, dtype=torch.float16)).dtype == torch.float16
    shared = x.detach()
    shared._values()[0] = 100
    assert x._values()[0] == 100


def test_copies_from_other_calls() -> None:
    x = sample()
    assert torch.as_tensor(x) is x and torch.asarray(x) is x
    with pytest.warns(UserWarning, match="copy construct"):
        assert parts(torch.tensor(x, dtype=torch.float64)) == parts(x)
    assert torch.ones(2).to(sample(dtype=torch.float64)).dtype == torch.float64


def test_classes_from_before_layouts() -> None:
    i, v = torch.tensor(INDICES), torch.tensor([3.0, 4.0, 5.0])
    x = torch.sparse.FloatTensor(i, v, torch.Size([2, 3]))
    assert parts(x) == parts(sample())
    assert x.type() == "torch.sparse.FloatTensor" and isinstance(x, torch.sparse.FloatTensor)
    assert not isinstance(x, torch.FloatTensor) and not isinstance(v, torch.sparse.FloatTensor)
    assert x.type(torch.DoubleTensor).type() == "torch.sparse.DoubleTensor"
    assert x.type("torch.sparse.DoubleTensor").dtype == torch.float64
    assert parts(torch.sparse.LongTensor(2, 3)) == ([[], []], [], (2, 3), True)
    assert torch.sparse.FloatTensor().shape == (0,)


def test_diagonals_make_sparse_matrices() -> None:
    rows = torch.arange(1.0, 9.0).reshape(2, 4)
    x = torch.sparse.spdiags(rows, torch.tensor([0, 2]), (3, 5))
    assert x.to_dense().tolist() == [[1, 0, 7, 0, 0], [0, 2, 0, 8, 0], [0, 0, 3, 0, 0]]
    below = torch.sparse.spdiags(torch.ones(3), torch.tensor([-1]), (3, 3))
    assert below._indices().tolist() == [[1, 2], [0, 1]]
    with pytest.raises(RuntimeError, match="duplicate"):
        torch.sparse.spdiags(torch.ones(2, 3), torch.tensor([1, 1]), (3, 3))
    with pytest.raises(RuntimeError, match="Number of diagonals"):
        torch.sparse.spdiags(torch.ones(2, 3), torch.tensor([1]), (3, 3))


def test_modules_keep_sparse_buffers() -> None:
    module = torch.nn.Module()
    module.register_buffer("graph", sample())
    state = written(module.double().state_dict(), torch.save, torch.load)
    assert state["graph"].dtype == torch.float64
    other = torch.nn.Module()
    other.register_buffer("graph", torch.zeros_like(sample()))
    other.load_state_dict(state)
    assert parts(other.graph) == parts(sample())
    assert parts(copy.deepcopy(module).graph) == parts(sample())


def test_sparse_tensors_are_written_to_in_place() -> None:
    x = sample()
    seen = x.detach()
    assert x.mul_(2) is x
    assert seen.to_dense().tolist() == (2 * torch.tensor(DENSE)).tolist()
    x.add_(sample())
    assert x.to_dense().tolist() == (3 * torch.tensor(DENSE)).tolist()
    assert x.copy_(sample()) is x and parts(seen) == parts(sample())
    assert x.zero_()._nnz() == 0 and seen._nnz() == 0
    assert x.sparse_resize_((4, 4), 2, 0) is x and x.shape == (4, 4)
    y = sample().sparse_resize_((3, 3), 2, 0)
    assert parts(y) == (INDICES, [3.0, 4.0, 5.0], (3, 3), False)
    with pytest.raises(
        RuntimeError, match=r"shrinking the size of sparse dimensions \(from \[3, 3"
    ):
        y.sparse_resize_((1, 3), 2, 0)
    with pytest.raises(
        RuntimeError, match=r"changing the number of dense dimensions \(from 0 to 1"
    ):
        y.sparse_resize_((3, 3, 2), 2, 1)
    with pytest.raises(
        RuntimeError, match=r"changing the number of sparse dimensions \(from 2 to 3"
    ):
        y.sparse_resize_((3, 3, 2), 3, 0)
    assert parts(y.sparse_resize_and_clear_((1,), 1, 0)) == ([[]], [], (1,), True)
    with pytest.raises(RuntimeError, match="between dense and sparse"):
        sample().copy_(torch.ones(2, 3))
    with pytest.raises(RuntimeError, match="a leaf Variable that requires grad"):
        sample(requires_grad=True).mul_(2)


def test_resize_as_sparse_takes_a_size() -> None:
    x = torch.eye(3).to_sparse()
    assert x.resize_as_sparse_(sample()) is x and parts(x) == ([[], []], [], (2, 3), True)
    y = sample().coalesce()
    assert torch.equal(torch.values_copy(y), y.values())
    assert torch.equal(torch.indices_copy(y), y.indices())


def test_zeros_like_is_sparse() -> None:
    x = sample()
    assert parts(torch.zeros_like(x)) == parts(torch.empty_like(x)) == ([[], []], [], (2, 3), True)
    assert not torch.zeros_like(x, layout=torch.strided).is_sparse
    assert torch.zeros_like(torch.ones(2), layout=torch.sparse_coo).is_sparse


def test_sizes_alone_make_a_tensor_without_entries() -> None:
    for x in (torch.sparse_coo_tensor(size=(2, 3)), torch.sparse_coo_tensor((2, 3))):
        assert parts(x) == ([[], []], [], (2, 3), True)
    with pytest.raises(TypeError, match="received an invalid combination of arguments"):
        torch.sparse_coo_tensor()
    x = sample()
    assert parts(torch.zeros(3, 4, out=x)) == ([[], []], [], (3, 4), True) and x.shape == (3, 4)
    x = sample(dtype=torch.float64)
    for y in (x.new_empty((4, 2)), x.new_zeros((4, 2)), x.new(4, 2)):
        assert parts(y) == ([[], []], [], (4, 2), True) and y.dtype == torch.float64
    assert x.new_zeros((2,), dtype=torch.int64).dtype == torch.int64
    made = x.new(torch.tensor([[0], [1]]), torch.tensor([5.0], dtype=torch.float64), (2, 2))
    assert made.to_dense().tolist() == [[0.0, 5.0], [0.0, 0.0]]
    with pytest.raises(NotImplementedError, match="full|fill_"):
        x.new_full((2,), 1.0)


def test_a_number_stands_for_one_entry() -> None:
    assert parts(torch.sparse_coo_tensor(([0],), 2.0, (1,)))[1] == [2.0]
    scalar = torch.sparse_coo_tensor(torch.zeros(0, 1), 12.5, [])
    assert (scalar.shape, scalar.item(), scalar.is_nonzero()) == ((), 12.5, True)


def test_one_element_is_a_number() -> None:
    def one(values: Any, indices: Any = ([0],)) -> Any:
        return torch.sparse_coo_tensor(indices, values, (1,))

    assert one(1.0).is_nonzero() and not one(0.0).is_nonzero()
    assert not one((-1.0, 1.0), ([0, 0],)).is_nonzero() and one(2.3 - 4.5j).is_nonzero()
    assert float(one((1.5, 1.0), ([0, 0],))) == 2.5 and bool(one(1.0))
    with pytest.raises(RuntimeError, match="Boolean value of Tensor with no values is ambiguous"):
        torch.sparse_coo_tensor(([0, 1],), torch.empty(2, 0), (4, 0)).is_nonzero()
    with pytest.raises(RuntimeError, match="Boolean value of Tensor with more than one value"):
        sample().is_nonzero()


def test_any_asks_the_entries() -> None:
    indices = [[0, 0], [2, 0]]
    assert torch.sparse_coo_tensor(indices, [False, True]).any().item() is True
    assert torch.sparse_coo_tensor(indices, [False, False]).any().item() is False
    assert torch.any(torch.sparse_coo_tensor(size=(2, 3))).item() is False


def test_indices_take_slices_of_sparse_tensors() -> None:
    x = sample()
    assert parts(x[:, 1]) == ([[]], [], (2,), False)
    assert parts(x[:, 0])[:3] == ([[1, 1]], [4.0, 5.0], (2,))
    assert parts(x[..., 2])[:3] == ([[0]], [3.0], (2,))
    assert x[1, 0].item() == 9.0 and x[None].shape == (1, 2, 3) and x[:, None].shape == (2, 1, 3)
    assert [row.to_dense().tolist() for row in x] == DENSE
    assert [c.to_dense().tolist() for c in x.unbind(1)] == [[0.0, 9.0], [0.0, 0.0], [3.0, 0.0]]
    with pytest.raises(TypeError, match="Cannot assign to a sparse tensor"):
        x[0] = 100
    with pytest.raises(IndexError, match="out of bounds"):
        x[2]


def test_dimensions_change_places_in_place() -> None:
    for change in (
        lambda x: x.t_(),
        lambda x: x.transpose_(0, 1),
        lambda x: x.swapaxes_(0, -1),
        lambda x: x.swapdims_(0, 1),
    ):
        x = sample()
        assert change(x) is x and x.shape == (3, 2)
        assert x.to_dense().tolist() == torch.tensor(DENSE).t().tolist()
    empty = torch.sparse_coo_tensor(size=(0, 3)).t_()
    assert empty.shape == (3, 0)


def test_narrow_copy_takes_entries_of_a_range() -> None:
    x, d = sample(), torch.tensor(DENSE)
    for args in ((0, 0, 1), (0, 1, 1), (1, 1, 2), (1, 0, 0), (0, 0, 2)):
        assert torch.equal(x.narrow_copy(*args).to_dense(), d.narrow(*args))
        assert torch.equal(d.to_sparse(1).narrow_copy(*args).to_dense(), d.narrow(*args))
    with pytest.raises(RuntimeError, match=r"Dimension -1 out of range. Expecting 0 <= dim < 2"):
        x.narrow_copy(-1, 0, 3)
    text = (
        r"Invalid range to narrow. range\(start, start\+length\) must be a subset of range\(0, 2\)"
    )
    for args in ((0, 3, 1), (0, 1, 2), (0, -1, 1)):
        with pytest.raises(RuntimeError, match=text):
            x.narrow_copy(*args)


def test_copies_between_sparse_tensors_take_type_and_refuse_dense_ones() -> None:
    x = sample()
    assert parts(x.copy_(torch.ones(2, 3, dtype=torch.float64).to_sparse()))[3] is True
    assert x.dtype == torch.float32 and x.to_dense().tolist() == [[1.0] * 3] * 2
    text = (
        "copy_\\(\\) between dense and sparse Tensors is not implemented! Found self type = torch.F"
    )
    with pytest.raises(RuntimeError, match=text):
        torch.ones(2, 3).copy_(x)


def test_checks_of_coordinates_can_be_switched() -> None:
    switch = torch.sparse.check_sparse_tensor_invariants

    def wrong(**options: Any) -> Any:
        return torch.sparse_coo_tensor([[0], [3]], [1.0], (2, 2), **options)

    text = "size is inconsistent with indices: for dim 1, size is 2 but found index 3"
    assert not switch.is_enabled()
    assert wrong(check_invariants=False).layout is torch.sparse_coo
    with switch():
        assert switch.is_enabled()
        with pytest.raises(RuntimeError, match=text):
            wrong()
        wrong(check_invariants=False)
        with switch(False):
            assert not switch.is_enabled()
            unchecked = wrong()
            with pytest.raises(RuntimeError, match=text):
                wrong(check_invariants=True)
        assert switch.is_enabled()
    # Each use looks at them again.
    with pytest.raises(IndexError, match="out of bounds"):
        unchecked.to_dense()

    @switch(False)
    def made() -> Any:
        return wrong()

    assert made()._nnz() == 1 and not switch.is_enabled()
    once = switch(True)
    with once, pytest.raises(RuntimeError, match="This context manager instance is already activ"):
        once.__enter__()
    assert not switch.is_enabled()
    with pytest.raises(RuntimeError, match="size is inconsistent with indices"):
        torch._validate_sparse_coo_tensor_args(torch.tensor([[5]]), torch.ones(1), (2,))
    indices = torch.tensor([[1, 0]])
    with pytest.raises(RuntimeError, match="cannot set is_coalesced to true"):
        torch._validate_sparse_coo_tensor_args(indices, torch.ones(2), (2,), is_coalesced=True)
    assert torch._validate_sparse_coo_tensor_args(indices, torch.ones(2), (2,)) is None


def test_calls_of_older_names() -> None:
    x = torch.sparse_coo_tensor([[1, 0, 1]], [1.0, 2.0, 3.0])
    assert parts(torch._coalesce(x)) == ([[0, 1]], [2.0, 4.0], (2,), True)
    starts = torch._convert_indices_from_coo_to_csr(torch.tensor([0, 0, 1]), 3)
    assert starts.tolist() == [0, 2, 3, 3]
    back = torch._convert_indices_from_csr_to_coo(torch.tensor([0, 2, 3]), torch.tensor([0, 1, 1]))
    assert back.tolist() == [[0, 0, 1], [0, 1, 1]]


def written(x: Any, save: Callable[..., Any], load: Callable[..., Any]) -> Any:
    file = io.BytesIO()
    save(x, file)
    file.seek(0)
    return load(file)


def test_sparse_tensors_are_pickled_and_copied() -> None:
    for x in (sample(), sample().coalesce(), torch.ones(2, 2).to_sparse(1)):
        got = written({"x": x}, torch.save, torch.load)["x"]
        assert parts(got) == parts(x) and got.layout == torch.sparse_coo
        assert parts(pickle.loads(pickle.dumps(x))) == parts(x)
        again = copy.deepcopy(x)
        assert parts(again) == parts(x)
        again._values().zero_()
        assert x._values().sum() > 0
    assert pickle.loads(pickle.dumps(torch.sparse_coo)) is torch.sparse_coo
    leaf = sample(requires_grad=True)
    assert copy.deepcopy(leaf).requires_grad


def test_files_with_sparse_tensors_hold_what_pytorch_writes() -> None:
    import pickletools
    import zipfile

    file = io.BytesIO()
    torch.save(sample(), file)
    data = zipfile.ZipFile(file).read("archive/data.pkl")
    names = [
        arg for op, arg, _ in pickletools.genops(data) if op.name in ("GLOBAL", "STACK_GLOBAL")
    ]
    assert names[:2] == ["torch._utils _rebuild_sparse_tensor", "torch.serialization _get_layout"]


SGD = dict.fromkeys(["weight_decay", "momentum", "lr", "dampening"], 0.5)
SGD |= dict.fromkeys(["nesterov", "maximize", "is_first_step"], False)


def test_workers_of_a_loader_give_sparse_batches() -> None:
    class Graphs(torch.utils.data.Dataset):
        def __len__(self) -> int:
            return 4

        def __getitem__(self, i: int) -> Any:
            return sample() * i

    loader = torch.utils.data.DataLoader(Graphs(), batch_size=2, num_workers=1)
    batches = list(loader)
    assert [b.shape for b in batches] == [(2, 2, 3)] * 2 and all(b.is_sparse for b in batches)
    sums = torch.cat(batches).sum((1, 2)).to_dense()
    assert sums.tolist() == [0.0, 12.0, 24.0, 36.0]


@pytest.mark.parametrize("legacy", [False, True])
def test_coordinates_of_a_file_are_checked(legacy: bool) -> None:
    for sizes in ((2, 3), (2, 2)):
        x = sample()
        if sizes == (2, 2):
            x = torch._C._sparse_coo_tensor(
                x._indices(), x._values(), sizes, check_invariants=False
            )
        file = io.BytesIO()
        torch.save(x, file, _use_new_zipfile_serialization=not legacy)
        file.seek(0)
        if sizes == (2, 3):
            assert parts(torch.load(file)) == parts(x)
            continue
        with pytest.raises(CorruptCheckpointError, match="size is inconsistent with indices"):
            torch.load(file)
        # Each use looks at them, too.
        with pytest.raises(IndexError):
            x.to_dense()
        with pytest.raises(IndexError):
            x @ torch.ones(2, 2)


MEMORY: dict[str, Callable[[Any], Any]] = {
    "data_ptr": lambda x: x.data_ptr(),
    "numpy": lambda x: x.numpy(),
    "array": np.asarray,
    "storage": lambda x: x.untyped_storage(),
    "typed storage": lambda x: x.storage(),
    "tolist": lambda x: x.tolist(),
    "item": lambda x: x[:, :1].item(),
    "dlpack": lambda x: torch.from_dlpack(x),
    "nbytes": lambda x: x.nbytes,
    "view": lambda x: x.view(6),
    "reshape": lambda x: x.reshape(6),
    "as_strided": lambda x: x.as_strided((2,), (1,)),
    "slice": lambda x: x[:1],
    "mask": lambda x: x[x.to_dense() > 0],
    "assignment": lambda x: x.__setitem__(0, 1.0),
    "assigned": lambda x: torch.zeros(2, 3).__setitem__(..., x),
    "eq": lambda x: x == x,
    "exp": torch.exp,
    "exp_": lambda x: x.exp_(),
    "cos out": lambda x: torch.cos(torch.ones(2, 3), out=x),
    "number": lambda x: x + 1,
    "copy_": lambda x: torch.ones(2, 3).copy_(x),
    "set_": lambda x: torch.ones(2).set_(x),
    "resize_": lambda x: x.resize_(7),
    "where": lambda x: torch.where(torch.ones(2, 3) > 0, x, x),
    "share": lambda x: x.share_memory_(),
    "bits": lambda x: x.view(torch.int32),
    "real": lambda x: torch.view_as_real(x.to(torch.complex64)),
    "normal_": lambda x: x.normal_(),
    "fill_": lambda x: x.fill_(1),
    "fused": lambda x: torch._C._fused_sgd_([x], [x], [], **SGD),
    "foreach": lambda x: torch._foreach_exp([x]),
    "einsum": lambda x: torch.einsum("ij->ji", x),
    "loss": lambda x: torch.nn.functional.mse_loss(x, x),
}


@pytest.mark.parametrize("name", MEMORY)
def test_what_needs_memory_refuses(name: str) -> None:
    x = sample()
    with pytest.raises(REFUSED) as error:
        MEMORY[name](x)
    text = str(error.value).lower()
    words = ("sparse", "to_dense", "storage", "boolean", "layout other than torch.strided")
    assert any(word in text for word in words), text
    assert parts(x) == parts(sample())


def test_refusals_are_of_pytorchs_class() -> None:
    x = sample()
    with pytest.raises(NotImplementedError, match="Could not run 'aten::exp'.*SparseCPU"):
        torch.exp(x)
    with pytest.raises(NotImplementedError, match=r"to_dense\(\)"):
        x > 1  # noqa: B015
    with pytest.raises(RuntimeError, match="doesn't have storage"):
        x.data_ptr()
    with pytest.raises(TypeError, match="can't convert Sparse layout tensor to numpy"):
        x.numpy()
    with pytest.raises(RuntimeError, match="only Tensors of floating point dtype can require grad"):
        x.long().requires_grad_()
    with pytest.raises(NotImplementedError):
        x.untyped_storage()


METHODS = [name for name in dir(torch.Tensor) if not name.startswith("_")]
METHODS = [name for name in METHODS if callable(getattr(torch.Tensor, name, None))]


@pytest.mark.parametrize("name", METHODS)
def test_no_method_of_a_sparse_tensor_panics(name: str) -> None:
    for args in ((), (1,), (torch.ones(2, 3),), (sample(),), (0, 1)):
        # A panic is no `Exception`.
        with contextlib.suppress(Exception), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            getattr(sample(), name)(*args)


SPARSE_FIRST = [row for row in OPS if "out" not in row.name]


@pytest.mark.parametrize("row", SPARSE_FIRST, ids=str)
def test_every_operator_refuses_sparse_arguments_or_gives_what_it_gives_of_dense_ones(
    row: Any,
) -> None:
    for given in row.samples()[:1]:
        call = tensors(given, "float64")
        if not any(isinstance(a, torch.Tensor) and a.dim() for a in call.args):
            continue
        args = [a.to_sparse() if isinstance(a, torch.Tensor) and a.dim() else a for a in call.args]
        try:
            got = row.function(torch)(*args, **call.kwargs)
        except REFUSED:
            continue
        want = row.function(torch)(*call.args, **call.kwargs)
        for g, w in zip(leaves(got), leaves(want), strict=True):
            if isinstance(w, torch.Tensor):
                torch.testing.assert_close(g.to_dense(), w, equal_nan=True)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
@pytest.mark.parametrize("width", [(), (3,)])
def test_equal_coordinates_of_half_types_are_summed_before_they_are_rounded(dtype, width):
    at = torch.zeros(1, 1000, dtype=torch.int64)
    x = torch.sparse_coo_tensor(at, torch.ones(1000, *width, dtype=dtype), (2, *width))
    # bfloat16 has no 257: one after the other the sum would stay at 256.
    assert x.coalesce().values().unique().tolist() == [1000.0]
    assert x.to_dense()[0].unique().tolist() == [1000.0]
    table = torch.nn.EmbeddingBag(4, 2, mode="sum", sparse=True, dtype=dtype)
    dense = torch.nn.EmbeddingBag(4, 2, mode="sum", dtype=dtype)
    ids = torch.zeros(50, 20, dtype=torch.int64)
    for bags in (table, dense):
        bags(ids).sum().backward()
    assert torch.equal(table.weight.grad.to_dense(), dense.weight.grad)
