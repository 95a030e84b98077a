"""Tensors without memory, for which their class answers: files, numbers, backward."""

from __future__ import annotations

import copy
import io
import pickle
import pickletools
import zipfile
from typing import Any

import pytest

import pytensorlib as torch
from pytensorlib import nn
from pytensorlib.utils._pytree import tree_map

SEEN: list[str] = []


class Scaled(torch.Tensor):
    """8-bit integers with a factor."""

    q: Any
    scale: Any

    @staticmethod
    def __new__(cls, q: Any, scale: Any) -> Any:
        return torch.Tensor._make_wrapper_subclass(  # type: ignore[attr-defined]
            cls, q.shape, strides=q.stride(), dtype=torch.float32
        )

    def __init__(self, q: Any, scale: Any) -> None:
        self.q, self.scale = q, scale

    def plain(self) -> Any:
        return self.q.float() * self.scale

    def __tensor_flatten__(self) -> Any:
        return ["q", "scale"], None

    @classmethod
    def __torch_dispatch__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        SEEN.append(str(func))
        if func is torch.ops.aten.detach.default:
            return Scaled(args[0].q, args[0].scale)
        if func is torch.ops.aten.clone.default:
            return Scaled(args[0].q.clone(), args[0].scale.clone())

        def plain(x: Any) -> Any:
            return x.plain() if isinstance(x, Scaled) else x

        return func(*tree_map(plain, args), **tree_map(plain, kwargs or {}))


class Wrapped(torch.Tensor):
    """Another tensor."""

    inner: Any

    @staticmethod
    def __new__(cls, inner: Any) -> Any:
        return torch.Tensor._make_wrapper_subclass(  # type: ignore[attr-defined]
            cls, inner.shape, strides=inner.stride(), dtype=inner.dtype
        )

    def __init__(self, inner: Any) -> None:
        self.inner = inner

    @classmethod
    def __torch_dispatch__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        SEEN.append(str(func))

        def inner(x: Any) -> Any:
            return x.inner if isinstance(x, Wrapped) else x

        def outer(x: Any) -> Any:
            return Wrapped(x) if isinstance(x, torch.Tensor) else x

        made = func(*tree_map(inner, args), **tree_map(inner, kwargs or {}))
        return tree_map(outer, made)


def scaled() -> Any:
    return Scaled(torch.arange(12, dtype=torch.int8).view(3, 4), torch.tensor(0.5))


def written(obj: Any, **options: Any) -> io.BytesIO:
    file = io.BytesIO()
    torch.save(obj, file, **options)
    file.seek(0)
    return file


@pytest.mark.parametrize("zipped", [True, False])
def test_files_hold_what_such_a_tensor_is_made_of(zipped: bool) -> None:
    x = scaled()
    x.note = "kept"
    given = {"x": x, "parameter": nn.Parameter(x, requires_grad=False), "part": x.q}
    file = written(given, _use_new_zipfile_serialization=zipped)
    found = torch.load(file, weights_only=False)
    assert type(found["x"]) is Scaled and found["x"].note == "kept"
    assert isinstance(found["parameter"], nn.Parameter)
    assert torch.equal(found["x"].plain(), x.plain())
    assert found["x"].q.data_ptr() == found["part"].data_ptr()


def test_files_call_the_functions_that_pytorch_calls() -> None:
    with zipfile.ZipFile(written(scaled())) as archive:
        (name,) = [n for n in archive.namelist() if n.endswith("data.pkl")]
        calls = [
            arg for op, arg, _ in pickletools.genops(archive.read(name)) if "GLOBAL" in op.name
        ]
    # In the order of a file that PyTorch 2.13 wrote of such a tensor.
    assert [c.split()[1] for c in calls] == [
        "_rebuild_from_type_v2", "_rebuild_wrapper_subclass", "Scaled", "float32", "_get_layout",
        "device", "_rebuild_tensor_v2", "CharStorage", "OrderedDict", "FloatStorage",
    ]  # fmt: skip


def test_safe_loading_takes_classes_that_are_allowed() -> None:
    file = written(scaled())
    with pytest.raises(pickle.UnpicklingError, match="Scaled"):
        torch.load(file)
    file.seek(0)
    with torch.serialization.safe_globals([Scaled]):
        found = torch.load(file, map_location="cpu")
    assert type(found) is Scaled and found.device.type == "cpu"


def test_safe_loading_takes_no_class_without_answers() -> None:
    data = pickle.dumps(scaled())
    torch._utils._rebuild_wrapper_subclass  # noqa: B018  (it is found by name)
    assert b"_rebuild_wrapper_subclass" in data
    with pytest.raises(RuntimeError, match="must define __torch_dispatch__"):
        torch._utils._rebuild_wrapper_subclass(
            torch.Tensor, torch.float32, (2,), (1,), 0, torch.strided, torch.device("cpu"), False
        )
    with pytest.raises(RuntimeError, match="needs a class of tensors"):
        torch._utils._rebuild_wrapper_subclass(
            dict, torch.float32, (2,), (1,), 0, torch.strided, torch.device("cpu"), False
        )


def test_pickles_and_copies() -> None:
    x = scaled()
    for other in (pickle.loads(pickle.dumps(x)), copy.deepcopy(x)):
        assert type(other) is Scaled and other.q is not x.q
        assert torch.equal(other.plain(), x.plain())


def test_state_of_a_module_with_such_a_weight() -> None:
    layer = nn.Linear(4, 3)
    layer.weight = nn.Parameter(scaled(), requires_grad=False)
    state = torch.load(written(layer.state_dict()), weights_only=False)
    x = torch.ones(2, 4)
    assert torch.equal(state["weight"] @ x.mT, layer.weight.plain() @ x.mT)


def test_numbers_are_asked_of_the_class() -> None:
    x = Wrapped(torch.tensor(2.5))
    SEEN.clear()
    assert x.item() == 2.5 and float(x) == 2.5 and int(x) == 2 and bool(x) and x.is_nonzero()
    assert set(SEEN) == {"aten._local_scalar_dense.default"}
    assert [0, 1, 2][Wrapped(torch.tensor(1))] == 1
    assert torch.equal(x, x) and not torch.equal(x, Wrapped(torch.tensor(2.0)))
    assert "aten.equal.default" in SEEN
    assert torch.allclose(x, x + 1e-9) and not torch.allclose(x, x + 1)
    if x > 3:
        raise AssertionError("2.5 > 3")


def test_what_enters_backward_is_of_the_class() -> None:
    x = Wrapped(torch.ones(3)).requires_grad_()
    SEEN.clear()
    (x + x).sum().backward()
    assert type(x.grad) is Wrapped and x.grad.inner.tolist() == [2.0, 2.0, 2.0]
    assert "aten.ones_like.default" in SEEN


def test_weights_are_trained_and_clipped() -> None:
    layer = nn.Linear(3, 2, bias=False)
    layer.weight = nn.Parameter(Wrapped(torch.ones(2, 3)))
    optimizer = torch.optim.SGD(layer.parameters(), lr=0.5, momentum=0.9)
    for _ in range(2):
        optimizer.zero_grad()
        layer(torch.ones(1, 3)).sum().backward()
        norm = nn.utils.clip_grad_norm_(layer.parameters(), 1.0)
        optimizer.step()
    assert float(norm) == pytest.approx(6**0.5)
    assert type(layer.weight.grad) is Wrapped
    step = 0.5 / 6**0.5
    torch.testing.assert_close(layer.weight.inner, torch.full((2, 3), 1 - step - 1.9 * step))
