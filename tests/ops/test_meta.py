"""Tensors on ``meta``: a shape, strides, a dtype and a device, and no memory."""

from __future__ import annotations

import copy
import io
import pickle
import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import pytensorlib as torch
from pytensorlib import nn

META = torch.device("meta")
NO_DATA = "Cannot copy out of meta tensor; no data!"

FACTORIES: list[tuple[str, Callable[..., Any], tuple[int, ...], str]] = [
    ("empty", lambda **k: torch.empty(2, 3, **k), (2, 3), "float32"),
    ("zeros", lambda **k: torch.zeros(2, 3, dtype=torch.int8, **k), (2, 3), "int8"),
    ("ones", lambda **k: torch.ones(2, dtype=torch.complex64, **k), (2,), "complex64"),
    ("full", lambda **k: torch.full((4,), 7, **k), (4,), "int64"),
    ("arange", lambda **k: torch.arange(1, 10, 2, **k), (5,), "int64"),
    ("linspace", lambda **k: torch.linspace(0, 1, 11, **k), (11,), "float32"),
    ("logspace", lambda **k: torch.logspace(0, 1, 3, **k), (3,), "float32"),
    ("eye", lambda **k: torch.eye(3, 4, **k), (3, 4), "float32"),
    ("tril_indices", lambda **k: torch.tril_indices(3, 3, **k), (2, 6), "int64"),
    ("rand", lambda **k: torch.rand(3, **k), (3,), "float32"),
    ("randn", lambda **k: torch.randn(3, dtype=torch.float64, **k), (3,), "float64"),
    ("randint", lambda **k: torch.randint(5, (2, 2), **k), (2, 2), "int64"),
    ("randperm", lambda **k: torch.randperm(6, **k), (6,), "int64"),
    ("tensor", lambda **k: torch.tensor([[1, 2], [3, 4]], **k), (2, 2), "int64"),
    ("as_tensor", lambda **k: torch.as_tensor(np.ones(3), **k), (3,), "float64"),
    ("asarray", lambda **k: torch.asarray([1.0, 2.0], **k), (2,), "float32"),
    ("scalar_tensor", lambda **k: torch.scalar_tensor(3, **k), (), "float32"),
    ("hann_window", lambda **k: torch.hann_window(5, **k), (5,), "float32"),
    ("fftfreq", lambda **k: torch.fft.fftfreq(5, **k), (5,), "float32"),
    ("empty_strided", lambda **k: torch.empty_strided((2, 3), (1, 2), **k), (2, 3), "float32"),
]


@pytest.mark.parametrize(
    ("make", "shape", "dtype"), [row[1:] for row in FACTORIES], ids=[row[0] for row in FACTORIES]
)
def test_factories_make_tensors_on_meta(
    make: Callable[..., Any], shape: tuple[int, ...], dtype: str
) -> None:
    state = torch.get_rng_state()
    with torch.device("meta"):
        inside = make()
    for x in (make(device="meta"), make(device=META), inside):
        assert x.is_meta
        assert x.device == META
        assert not x.is_cpu
        assert tuple(x.shape) == shape
        assert x.dtype == getattr(torch, dtype)
        assert x.stride() == make().stride()
    assert not make().is_meta
    with torch.device("meta"):
        assert not make(device="cpu").is_meta
    torch.set_rng_state(state)
    make(device="meta")
    assert torch.equal(torch.get_rng_state(), state)


def test_what_is_made_like_a_tensor_is_where_that_is() -> None:
    x, y = torch.empty(2, 3, device="meta"), torch.empty(2, 3)
    for made in (
        torch.empty_like(x),
        torch.zeros_like(x),
        torch.rand_like(x),
        torch.randint_like(x, 4),
        torch.full_like(x, 2.0),
        x.new_zeros(2, 3),
        x.new_empty((2, 3)),
        x.new_full((2, 3), 1),
        x.new_tensor(np.ones((2, 3))),
        torch.ones_like(y, device="meta"),
        y.new_ones((2, 3), device="meta"),
        y.to("meta"),
        y.to(x),
    ):
        assert made.is_meta
        assert made.shape == (2, 3)
    assert not torch.zeros_like(x, device="cpu").is_meta
    with torch.device("meta"):
        assert not torch.zeros_like(y).is_meta
        assert torch.as_tensor(y).is_meta
        assert torch.asarray(y).is_meta
        assert torch.as_tensor(y, device="cpu") is y


def test_no_memory_is_taken() -> None:
    huge = torch.empty(1 << 20, 1 << 20, device="meta") + torch.randn(1 << 20, device="meta")
    assert (huge @ huge).shape == (1 << 20, 1 << 20)
    assert torch.arange(1 << 50, device="meta").shape == (1 << 50,)
    assert torch.eye(1 << 25, device="meta").numel() == 1 << 50
    assert huge.untyped_storage().nbytes() == 1 << 42
    with pytest.raises(RuntimeError, match="Storage size calculation overflowed"):
        torch.empty(1 << 62, device="meta")


def test_default_device_is_meta_for_this_thread() -> None:
    torch.set_default_device("meta")
    try:
        assert torch.get_default_device() == META
        assert torch.zeros(1).is_meta
        seen: list[Any] = []
        thread = threading.Thread(target=lambda: seen.append(torch.zeros(1).device))
        thread.start()
        thread.join()
        assert seen == [torch.device("cpu")]
        with torch.device("cpu"):
            assert torch.zeros(1).is_cpu
        assert torch.zeros(1).is_meta
    finally:
        torch.set_default_device(None)
    assert torch.zeros(1).is_cpu


def test_storages_of_files_stay_on_the_host_while_meta_is_the_default() -> None:
    for legacy in (False, True):
        file = io.BytesIO()
        torch.save([torch.arange(4)], file, _use_new_zipfile_serialization=not legacy)
        with torch.device("meta"):
            (read,) = torch.load(io.BytesIO(file.getvalue()))
        assert read.tolist() == [0, 1, 2, 3]


def test_devices_on_meta_have_names() -> None:
    assert META.type == "meta"
    assert META.index is None
    assert str(META) == "meta"
    assert repr(META) == "device(type='meta')"
    x = torch.empty(2, device="meta")
    assert x.get_device() == -1
    assert x.type() == "torch.meta.FloatTensor"
    assert x.data_ptr() == 0
    assert x.untyped_storage().data_ptr() == 0
    assert x.untyped_storage().device == META


PRINTED = [
    (lambda t: t.empty(2, 3, device="meta"), "tensor(..., device='meta', size=(2, 3))"),
    (
        lambda t: t.empty((), dtype=t.int64, device="meta"),
        "tensor(..., device='meta', size=(), dtype=torch.int64)",
    ),
    (
        lambda t: t.empty(2, device="meta", requires_grad=True),
        "tensor(..., device='meta', size=(2,), requires_grad=True)",
    ),
    (
        lambda t: t.empty(2, device="meta", requires_grad=True) * 2,
        "tensor(..., device='meta', size=(2,), grad_fn=<MulBackward0>)",
    ),
    (
        lambda t: t.nn.Parameter(t.empty(0, 2, device="meta")),
        "Parameter containing:\ntensor(..., device='meta', size=(0, 2), requires_grad=True)",
    ),
]


@pytest.mark.parametrize(("make", "text"), PRINTED)
def test_text_shows_the_shape_and_no_elements(make: Callable[[Any], Any], text: str) -> None:
    assert repr(make(torch)) == text


READS: list[tuple[Callable[[Any], Any], type[Exception]]] = [
    (lambda x: x.item(), RuntimeError),
    (lambda x: x.tolist(), NotImplementedError),
    (lambda x: float(x), RuntimeError),
    (lambda x: bool(x), RuntimeError),
    (lambda x: int(x), RuntimeError),
    (lambda x: x.numpy(), TypeError),
    (lambda x: np.asarray(x), TypeError),
    (lambda x: x.cpu(), NotImplementedError),
    (lambda x: x.to("cpu"), NotImplementedError),
    (lambda x: x.to(torch.device("cpu"), torch.float64), NotImplementedError),
    (lambda x: torch.zeros(1).copy_(x), NotImplementedError),
    (lambda x: x.numpy(force=True), NotImplementedError),
    (lambda x: torch.nonzero(x), NotImplementedError),
    (lambda x: torch.unique(x), NotImplementedError),
    (lambda x: x[x > 0], NotImplementedError),
    (lambda x: torch.masked_select(x, x > 0), NotImplementedError),
    (lambda x: torch.where(x > 0), NotImplementedError),
    (lambda x: torch.bincount(x.long()), NotImplementedError),
    (lambda x: torch.equal(x, x.clone()), NotImplementedError),
    (lambda x: torch.allclose(x, x), (NotImplementedError, RuntimeError)),
    (lambda x: x.repeat_interleave(x.long()), RuntimeError),
    (lambda x: 1.0 in x, RuntimeError),
    (lambda x: x.untyped_storage()[0], NotImplementedError),
    (lambda x: bytes(x.untyped_storage()), (NotImplementedError, TypeError)),
    (lambda x: x.__dlpack__(), (BufferError, ValueError, RuntimeError)),
    (lambda x: torch.ones(3)[x.long()[0]], RuntimeError),
]


@pytest.mark.parametrize(("read", "kind"), READS)
def test_what_reads_elements_raises(read: Callable[[Any], Any], kind: Any) -> None:
    with pytest.raises(kind):
        read(torch.empty(1, device="meta"))


def test_copies_go_to_meta_and_not_back() -> None:
    x = torch.empty(2, 3, device="meta")
    with pytest.raises(NotImplementedError, match=NO_DATA):
        x.cpu()
    assert x.copy_(torch.ones(3)) is x
    assert torch.empty(0, device="meta").to("meta").is_meta
    with pytest.raises(NotImplementedError, match=NO_DATA):
        torch.empty(0, device="meta").cpu()
    with pytest.raises(RuntimeError, match="must match the size"):
        x.copy_(torch.ones(4))


def test_operands_are_all_on_meta_but_for_numbers() -> None:
    x = torch.empty(2, 3, device="meta")
    with pytest.raises(RuntimeError, match="at least two devices"):
        x @ torch.ones(3)
    number = torch.tensor(2.0, dtype=torch.float64)
    assert (x + number).is_meta
    assert (number * x).dtype == torch.float32
    assert (x + 1.5).is_meta
    with pytest.raises(RuntimeError, match="copy from device cpu to device meta"):
        torch.add(torch.ones(2), torch.ones(2), out=torch.empty(2, device="meta"))


def test_views_share_a_storage_without_memory() -> None:
    x = torch.empty(4, 6, device="meta")
    y = x.t()[1:3, ::2].unsqueeze(0)
    assert (y.shape, y.stride(), y.storage_offset()) == ((1, 2, 2), (2, 1, 12), 1)
    assert y._base is x
    assert y.untyped_storage()._cdata == x.untyped_storage()._cdata
    version = x._version
    y.add_(1)
    assert x._version == version + 1
    assert x.view(torch.int32).dtype == torch.int32
    with pytest.raises(RuntimeError, match="view size is not compatible"):
        x.t().view(24)
    assert x.t().reshape(24).stride() == (1,)
    assert torch.broadcast_to(x[:1], (3, 6)).stride() == (0, 1)


def test_writes_are_checked_and_do_nothing() -> None:
    x = torch.empty(2, 3, device="meta")
    x[0] = 3.0
    x[:, 1] = torch.empty(2, device="meta")
    x[torch.tensor([0, 1])] = 1.0
    x[torch.empty(2, 3, dtype=torch.bool, device="meta")] = 2.0
    x.zero_().fill_(3).normal_().uniform_().clamp_(0, 1)
    with pytest.raises(RuntimeError, match="doesn't match the broadcast shape"):
        x.add_(torch.empty(4, 2, 3, device="meta"))
    with pytest.raises(RuntimeError, match="can't be cast"):
        x.long().add_(1.5)
    with pytest.raises(RuntimeError, match="single memory location|more than one element"):
        x[:1].expand(2, 3).add_(1)
    with pytest.raises(RuntimeError):
        x[0] = torch.empty(4, device="meta")
    with pytest.raises(IndexError):
        x[5]


def test_masks_on_meta_select_and_take_as_many_as_fit() -> None:
    x = torch.empty(3, 4, device="meta", requires_grad=True)
    mask = torch.empty(3, dtype=torch.bool, device="meta")
    values = torch.empty(2, 4, device="meta", requires_grad=True)
    y = x * 1
    y[mask] = values
    y[mask] = 3.0
    y.sum().backward()
    assert (x.grad.shape, values.grad.shape) == ((3, 4), (2, 4))
    z = x.masked_scatter(mask[:, None], values)
    z.sum().backward()
    assert x.masked_fill(mask[:, None], torch.empty((), device="meta")).shape == (3, 4)
    with pytest.raises(NotImplementedError, match="depends on data"):
        x[mask]


def test_shapes_of_bad_calls_raise() -> None:
    x = torch.empty(2, 3, device="meta")
    with pytest.raises(RuntimeError, match="mat1 and mat2 shapes cannot be multiplied"):
        x @ x
    with pytest.raises(RuntimeError, match="must match the size of tensor b"):
        x + torch.empty(2, device="meta")
    with pytest.raises(IndexError):
        x.sum(2)


def test_graphs_are_made_and_gradients_are_on_meta() -> None:
    x = torch.empty(4, 3, device="meta", requires_grad=True)
    layer = nn.Sequential(nn.Linear(3, 5), nn.ReLU(), nn.Dropout(), nn.BatchNorm1d(5)).to("meta")
    loss = nn.functional.cross_entropy(layer(x), torch.empty(4, dtype=torch.long, device="meta"))
    assert loss.grad_fn is not None
    loss.backward()
    for leaf in (x, *layer.parameters()):
        assert leaf.grad.is_meta
        assert leaf.grad.shape == leaf.shape
    loss = (x**2).sum()
    (slope,) = torch.autograd.grad(loss, x, create_graph=True)
    (second,) = torch.autograd.grad(slope.sum(), x)
    assert second.is_meta
    optimizer = torch.optim.AdamW(layer.parameters())
    optimizer.step()
    assert all(p.is_meta for p in layer.parameters())


def test_copies_of_tensors_on_meta_are_on_meta() -> None:
    x = torch.empty(4, 6, device="meta", requires_grad=True).detach().t().requires_grad_()
    for y in (copy.copy(x), copy.deepcopy(x), pickle.loads(pickle.dumps(x))):
        assert y.is_meta
        assert (y.shape, y.stride(), y.requires_grad) == (x.shape, x.stride(), True)


def test_files_hold_tensors_on_meta() -> None:
    file = io.BytesIO()
    parts = {
        "x": torch.empty(2, 3, dtype=torch.bfloat16, device="meta").t(),
        "w": nn.Parameter(torch.empty(5, device="meta")),
        "y": torch.ones(2),
    }
    torch.save(parts, file)
    read = torch.load(io.BytesIO(file.getvalue()))
    assert read["x"].is_meta
    assert (read["x"].shape, read["x"].stride()) == ((3, 2), (1, 3))
    assert read["x"].dtype == torch.bfloat16
    assert isinstance(read["w"], nn.Parameter)
    assert read["w"].is_meta
    assert read["y"].tolist() == [1, 1]


def test_files_are_loaded_to_meta() -> None:
    file = io.BytesIO()
    x = torch.arange(6.0).reshape(2, 3)
    torch.save({"x": x, "part": x[1:, ::2]}, file)
    for where in ("meta", META, {"cpu": "meta"}):
        read = torch.load(io.BytesIO(file.getvalue()), map_location=where)
        assert read["x"].is_meta
        assert read["part"].is_meta
        assert (read["part"].shape, read["part"].stride()) == ((1, 2), (3, 2))
        assert read["part"].storage_offset() == 3


def test_what_goes_to_meta_is_not_read() -> None:
    file = io.BytesIO()
    torch.save(torch.full((1000,), 3.25), file)
    data = bytearray(file.getvalue())
    at = data.index(np.full(3, 3.25, np.float32).tobytes())
    data[at + 40] ^= 1
    with pytest.raises(RuntimeError):
        torch.load(io.BytesIO(data))
    assert torch.load(io.BytesIO(data), map_location="meta").shape == (1000,)


def test_data_stays_with_or_without_memory() -> None:
    for old, new in (("cpu", "meta"), ("meta", "cpu")):
        x = nn.Parameter(torch.empty(3, device=old))
        with pytest.raises(RuntimeError, match="incompatible tensor type"):
            x.data = torch.empty(3, device=new)
        with pytest.raises(RuntimeError):
            x.grad = torch.empty(3, device=new)
        assert x.device.type == old


def test_storages_on_meta_have_a_size() -> None:
    x = torch.empty(4, device="meta")
    storage = x.untyped_storage()
    assert storage.nbytes() == 16
    assert storage.resize_(8).nbytes() == 8
    assert torch.UntypedStorage(12, device="meta").nbytes() == 12
    x.resize_(10)
    assert x.untyped_storage().nbytes() == 40
    assert "size 40" in repr(x.untyped_storage())


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.embed = nn.Embedding(10, 4, padding_idx=0)
        self.norm = nn.LayerNorm(4)
        self.rnn = nn.LSTM(4, 6, bidirectional=True)
        self.attend = nn.MultiheadAttention(12, 3)
        self.head = nn.Linear(12, 2)
        self.register_buffer("scale", torch.ones(2))
        for p in self.parameters():
            nn.init.normal_(p) if p.dim() < 2 else nn.init.xavier_uniform_(p)
        nn.init.orthogonal_(self.head.weight)
        nn.init.trunc_normal_(self.head.weight)

    def forward(self, x: Any) -> Any:
        y, _ = self.rnn(self.norm(self.embed(x)))
        y, _ = self.attend(y, y, y)
        return self.head(y) * self.scale


def test_models_are_built_on_meta_and_filled_later() -> None:
    state = torch.get_rng_state()
    with torch.device("meta"):
        model = Net()
    assert torch.equal(torch.get_rng_state(), state)
    assert all(t.is_meta for t in model.state_dict().values())
    y = model(torch.empty(7, 3, dtype=torch.long, device="meta"))
    assert y.shape == (7, 3, 2)
    y.sum().backward()
    assert all(p.grad.is_meta for p in model.parameters())
    filled = Net()
    with pytest.warns(UserWarning, match="which is a no-op"):
        model.load_state_dict(filled.state_dict())
    assert model.head.weight.is_meta
    model.load_state_dict(filled.state_dict(), assign=True)
    x = torch.arange(6).reshape(3, 2)
    assert torch.equal(model(x), filled(x))


def test_modules_take_the_device_and_leave_it_by_to_empty() -> None:
    layer = nn.Linear(3, 4, device="meta")
    assert layer.weight.is_meta
    assert layer.bias.is_meta
    with pytest.raises(NotImplementedError, match=r"use torch\.nn\.Module\.to_empty\(\) instead"):
        layer.to("cpu")
    assert layer.to(torch.float64).weight.dtype == torch.float64
    assert layer.to("meta") is layer
    layer.to_empty(device="cpu")
    assert not layer.weight.is_meta
    assert isinstance(layer.weight, nn.Parameter)
    assert layer.weight.requires_grad
    weight = layer.weight
    assert layer.to("meta").weight.is_meta
    assert weight.is_cpu
    normalised = nn.utils.parametrizations.weight_norm(nn.Linear(3, 4, device="meta"))
    assert normalised.weight.is_meta
    assert normalised(torch.empty(2, 3, device="meta")).shape == (2, 4)


def test_skip_init_takes_no_time_for_values() -> None:
    state = torch.get_rng_state()
    layer = nn.utils.skip_init(nn.Linear, 3, 4)
    assert torch.equal(torch.get_rng_state(), state)
    assert layer.weight.is_cpu
    assert nn.utils.skip_init(nn.Linear, 3, 4, device="meta").weight.is_meta


def test_custom_operators_take_their_fake_implementation_on_meta() -> None:
    @torch.library.custom_op("meta_tests::pairs", mutates_args=())
    def pairs(x: torch.Tensor) -> torch.Tensor:
        return torch.from_numpy(np.repeat(x.numpy(), 2))

    @pairs.register_fake
    def _(x: torch.Tensor) -> torch.Tensor:
        return x.new_empty(x.shape[0] * 2)

    assert pairs(torch.tensor([1.0, 2.0])).tolist() == [1, 1, 2, 2]
    y = pairs(torch.empty(3, device="meta"))
    assert y.is_meta
    assert y.shape == (6,)


@pytest.mark.parametrize("mode", ["nearest", "nearest-exact", "linear"])
def test_results_of_interpolation_on_meta_take_no_memory_and_no_table(mode: str) -> None:
    n = 4 * 10**8
    x = torch.empty(2 * 10**8, 3, n // 2, device="meta", requires_grad=True)
    y = torch.nn.functional.interpolate(x, scale_factor=2, mode=mode)
    assert (y.shape, y.device.type) == ((2 * 10**8, 3, n), "meta")
    y.sum().backward()
    assert x.grad is not None and x.grad.shape == x.shape
    small = torch.empty(2, 3, n // 2, device="meta")
    pooled = torch.nn.functional.adaptive_avg_pool1d(small, 10**6)
    assert pooled.shape == (2, 3, 10**6)
