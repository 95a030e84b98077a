"""Element types and layouts that are names only, modes, and storages as sequences."""

import copy
import pickle
import sys
from collections.abc import Sequence

import pytest

import pytensorlib as torch
from pytensorlib.overrides import BaseTorchFunctionMode, TorchFunctionMode, wrap_torch_function

WHOLE = [f"{kind}int{n}" for kind in ("", "u") for n in range(1, 8)]
BITS = ["bits1x8", "bits2x4", "bits4x2", "bits8", "bits16"]
QUANTIZED = ["qint8", "quint8", "quint4x2", "quint2x4", "qint32"]
TYPES = ["float4_e2m1fn_x2", *WHOLE, *BITS, *QUANTIZED]
SCHEMES = [
    *("per_tensor_affine", "per_channel_affine", "per_tensor_symmetric", "per_channel_symmetric"),
    "per_channel_affine_float_qparams",
]
LAYOUTS = "sparse_coo sparse_csr sparse_csc sparse_bsr sparse_bsc _mkldnn jagged".split()


@pytest.mark.parametrize("name", [*TYPES, *SCHEMES, *LAYOUTS])
def test_names_are_objects_of_their_kind(name):
    value = getattr(torch, name)
    kinds = {**dict.fromkeys(LAYOUTS, torch.layout), **dict.fromkeys(SCHEMES, torch.qscheme)}
    assert isinstance(value, kinds.get(name, torch.dtype))
    assert repr(value) == str(value) == f"torch.{name}"
    assert pickle.loads(pickle.dumps(value)) is value
    assert copy.copy(value) is copy.deepcopy(value) is value
    assert value == value
    assert value not in (torch.float32, torch.complex64, torch.strided, None)
    assert len({value, torch.float32, torch.strided}) == 3


def test_facts():
    for name in TYPES:
        value = getattr(torch, name)
        assert value.itemsize == {"bits16": 2, "qint32": 4}.get(name, 1)
        assert value.is_floating_point is (name == "float4_e2m1fn_x2") and not value.is_complex
        assert value.to_real() is value
        with pytest.raises(RuntimeError):
            value.to_complex()
        if name in (*BITS, *QUANTIZED):
            with pytest.raises(RuntimeError, match=r"undefined|not supported"):
                _ = value.is_signed
        else:
            assert value.is_signed is not name.startswith("u")
    assert torch.bit is torch.uint1 and torch.per_tensor_affine != torch.per_channel_affine
    with pytest.raises(TypeError, match="cannot create"):
        torch.qscheme()
    with pytest.raises(NotImplementedError, match="float4_e2m1fn_x2"):
        torch.finfo(torch.float4_e2m1fn_x2)
    with pytest.raises(TypeError, match="float4_e2m1fn_x2"):
        torch.iinfo(torch.float4_e2m1fn_x2)


@pytest.mark.parametrize(
    "ask",
    [
        lambda d: torch.empty(2, dtype=d),
        lambda d: torch.tensor([1.0], dtype=d),
        lambda d: torch.ones(2).to(d),
        lambda d: torch.ones(2).to(dtype=d),
        lambda d: torch.ones(2).sum(dtype=d),
        lambda d: torch.nn.Linear(1, 1, dtype=d),
        lambda d: torch.nn.Linear(1, 1).to(d),
    ],
)
def test_tensors_of_these_types_are_refused(ask):
    for name in ("float4_e2m1fn_x2", "int4", "bits8", "quint8"):
        with pytest.raises(TypeError, match=f"torch.{name}"):
            ask(getattr(torch, name))


def test_tensors_of_these_layouts_are_refused():
    with pytest.raises(TypeError, match="jagged"):
        torch.empty(2, layout=torch.jagged)
    assert torch.ones(2).layout is torch.strided and not torch.ones(2).is_sparse
    x = torch.ones(2)
    assert x.to_dense() is x and x.to_dense(torch.float64).dtype is torch.float64


def test_storages_are_sequences_that_count_their_bytes():
    storage = torch.arange(4, dtype=torch.uint8).untyped_storage()
    assert isinstance(storage, Sequence) and list(storage) == [0, 1, 2, 3]
    shared = torch.asarray(storage[1:3], dtype=torch.uint8)
    shared.fill_(9)
    assert storage.tolist() == [0, 9, 9, 3]
    large = torch.zeros(1000)
    empty = sys.getsizeof(torch.zeros(0).untyped_storage())
    assert sys.getsizeof(large.untyped_storage()) == empty + 4000
    assert sys.getsizeof(large.storage()) > 4000


class Log(TorchFunctionMode):
    def __init__(self, log, name):
        self.log, self.name = log, name

    def __torch_function__(self, func, types, args=(), kwargs=None):
        self.log.append((self.name, func.__name__))
        return func(*args, **(kwargs or {}))


def test_modes_nest():
    log = []
    with Log(log, "outer"), Log(log, "inner"), BaseTorchFunctionMode():
        assert torch.add(torch.ones(1), 1).tolist() == [2.0]
    names = [name for name, function in log if function == "add"]
    assert names == ["inner", "outer"]
    count = len(log)
    torch.add(torch.ones(1), 1)
    assert len(log) == count and not torch._C._is_torch_function_mode_enabled()


def test_a_mode_that_says_nothing_raises_and_is_taken_away():
    with pytest.raises(NotImplementedError), TorchFunctionMode():
        torch.add(torch.ones(1), 1)
    assert torch._C._len_torch_function_stack() == 0


def test_classes_can_be_left_out():
    class Own(torch.Tensor):
        pass

    x = torch.ones(1).as_subclass(Own)
    with torch._C.DisableTorchFunctionSubclass():
        assert type(x + 1) is torch.Tensor
        assert not torch._C._is_torch_function_enabled()
    assert type(x + 1) is Own and torch._C._is_torch_function_enabled()


def test_functions_of_ones_own_can_be_answered():
    @wrap_torch_function(lambda x: (x,))
    def double(x):
        return 2 * x

    class Answers:
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            return func is double

    assert double(3) == 6 and double(Answers()) is True


def test_the_compilers_decorators_return_the_function():
    from pytensorlib import _jit_internal

    for name in "export ignore unused _overload _overload_method _copy_to_script_wrapper".split():
        assert getattr(_jit_internal, name)(len) is len
    pick = _jit_internal.boolean_dispatch("b", 1, False, max, min, "m", "pick")
    assert pick.__name__ == "pick" and pick.__module__ == "m"


def test_operators_without_a_python_name():
    aten, x = torch.ops.aten, torch.arange(6.0).view(2, 3)
    copied = aten._to_copy.default(x, dtype=torch.float64, layout=torch.strided)
    assert copied.dtype is torch.float64 and aten._to_copy(x).data_ptr() != x.data_ptr()
    assert aten.slice.Tensor(x, 1, 0, 3, 2).tolist() == [[0.0, 2.0], [3.0, 5.0]]
    assert aten.slice.Tensor(x, -2, 1, 2**63 - 1).tolist() == [[3.0, 4.0, 5.0]]
    assert aten.index.Tensor(x, [None, torch.tensor([2, 0])]).tolist() == [[2.0, 0.0], [5.0, 3.0]]
    assert aten.alias.default(x).data_ptr() == x.data_ptr()
    summed = aten._sparse_addmm.default(torch.ones(2, 2), x, x.t(), beta=2, alpha=0.5)
    assert summed.tolist() == [[4.5, 9.0], [9.0, 27.0]]


def test_what_attention_would_be_called_with():
    q = torch.ones(1, 2, 3, 4)
    params = torch.backends.cuda.SDPAParams(q, q, q, None, 0.0, True, False)
    assert params.is_causal and params.query is q
    assert torch.backends.cuda.can_use_flash_attention(params, False) is False


def test_kl_of_classes_of_ones_own():
    from pytensorlib.distributions import kl

    class Own:
        pass

    kl.register_kl(Own, Own)(lambda p, q: torch.zeros(1))
    try:
        assert kl.kl_divergence(Own(), Own()).tolist() == [0.0]
    finally:
        del kl._KL_REGISTRY[Own, Own]
    with pytest.raises(TypeError, match="class"):
        kl.register_kl(1, Own)


def test_a_wrapper_around_an_optimizer_steps():
    class Wrapper(torch.optim.Optimizer):
        def __init__(self, inner):  # like Accelerate's, it leaves its base's alone
            self.inner = inner

        def step(self, closure=None):
            return self.inner.step(closure)

    weight = torch.nn.Parameter(torch.ones(1))
    weight.grad = torch.ones(1)
    Wrapper(torch.optim.SGD([weight], lr=0.5)).step()
    assert weight.tolist() == [0.5]


def test_annotations_of_modules_can_be_read():
    import typing

    class Net(torch.nn.Module):
        config: int

    hints = typing.get_type_hints(Net)
    assert hints["config"] is int and hints["training"] is bool and "forward" in hints
