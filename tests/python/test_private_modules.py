"""Private modules and names of PyTorch that libraries import: what they give is PyTorch's."""

from __future__ import annotations

import importlib
import logging
import warnings
from typing import Any

import child
import pytest

import pytensorlib as torch
from pytensorlib import _prims_common as common
from pytensorlib import nn
from pytensorlib._absent.modules import lacking, places
from pytensorlib._absent.names import NAMES
from pytensorlib.autograd import functional, profiler_util
from pytensorlib.nn import _reduction
from pytensorlib.utils import _contextlib, _foreach_utils
from pytensorlib.utils._ordered_set import OrderedSet

X = torch.arange(6.0).view(2, 3)


def test_every_place_of_the_tables_imports() -> None:
    assert len(places()) > 250
    for place in places():
        if not place.startswith("_C"):
            importlib.import_module(f"pytensorlib.{place}")


def test_name_of_the_tables_refuses_where_it_is_called_and_says_why() -> None:
    assert "_grouped_mm" in vars(torch._ops.private)
    with pytest.raises(NotImplementedError, match=r"torch.quantize_per_tensor: .*no quantized"):
        torch.quantize_per_tensor(X, 1.0, 0, torch.qint8)
    with pytest.raises(NotImplementedError, match="DeviceObjType"):
        torch.DeviceObjType()
    assert torch.utils.cpp_extension.CUDA_HOME is None
    assert isinstance(torch.distributed.pipelining.SplitPoint.BEGINNING, object)
    assert sum(text.count(":") for text in NAMES.values()) > 250


def test_class_that_lacks_members_gets_some_that_refuse() -> None:
    class Mine: ...

    lacking(Mine, "it is not here.", "method Inner")
    with pytest.raises(NotImplementedError, match="Mine.method: it is not here"):
        Mine.method()  # type: ignore[attr-defined]
    with pytest.raises(NotImplementedError, match="Mine.Inner: it is not here"):
        Mine().Inner()  # type: ignore[attr-defined]


ALIAS = """
from pytensorlib._alias import install; install()
import torch
assert torch.torch is torch
from torch.fx.experimental.proxy_tensor import get_proxy_mode
from torch._subclasses.fake_tensor import FakeTensor, is_fake
from torch._C._functorch import is_batchedtensor
from torch._C._nn import gelu
import torch._C._special, torch._C._autograd
assert get_proxy_mode() is None and not is_fake(torch.ones(1))
assert not isinstance(torch.ones(1), FakeTensor)
assert torch._C._special.special_entr is torch.special.entr
assert str(torch.DeviceObjType) == "<class 'torch.DeviceObjType'>"
assert torch._C._VariableFunctions.split is torch.split
assert isinstance(torch.randn(1, requires_grad=True), torch.autograd.Variable)
"""


# As libraries ask whether PyTorch was built with it.
RPC = """
import torch.distributed.rpc as rpc
assert not rpc.is_available() and not hasattr(rpc, "api")
import torch.distributed.rpc.api
assert callable(rpc.api._all_gather)
"""


def test_a_module_of_rpc_is_there_where_it_is_imported() -> None:
    child.run_as_torch(RPC)


def test_private_names_are_found_under_the_alias() -> None:
    child.run(ALIAS)


# Calls, and what PyTorch 2.13 gave.
GAVE: list[tuple[Any, Any]] = [
    (lambda: common.make_contiguous_strides_for((2, 3, 4)), (12, 4, 1)),
    (lambda: common.canonicalize_dims(3, (-1, 0)), (2, 0)),
    (lambda: common.get_computation_dtype(torch.float16), torch.float32),
    (lambda: common.dtype_to_type(torch.float16), float),
    (lambda: common.corresponding_complex_dtype(torch.float32), torch.complex64),
    (lambda: common.suggest_memory_format(X), torch.contiguous_format),
    (lambda: common.make_channels_last_strides_for((2, 3, 4, 5)), (60, 1, 15, 3)),
    (lambda: _reduction.get_enum("mean"), 1),
    (lambda: _reduction.legacy_get_string(False, None, emit_warning=False), "sum"),
    (lambda: _reduction.legacy_get_enum(True, False, emit_warning=False), 0),
    (lambda: nn.modules.utils._ntuple(2)(3), (3, 3)),
    (lambda: nn.modules.utils._reverse_repeat_tuple((1, 2), 2), (2, 2, 1, 1)),
    (lambda: nn.functional._none_or_dtype(None), None),
    (lambda: nn.modules.transformer._get_seq_len(torch.ones(2, 3, 4), True), 3),
    (lambda: torch._tensor_str._add_suffixes("t(", ["a"], 0, False), "t(, a)"),
    (lambda: torch.serialization.DEFAULT_PROTOCOL, 2),
    (lambda: torch.cuda._initialized, False),
    (lambda: torch.autograd.forward_ad._current_level, -1),
    (lambda: torch.autograd._calculate_shape(X, torch.ones(4, 2, 3), True), ((2, 3), (2, 3))),
    (lambda: torch.autograd._calculate_shape(X, torch.ones(3, 3), False), ((2, 3), (3, 3))),
    (lambda: torch.autograd._profiler_enabled(), False),
    (lambda: torch.autograd._is_checkpoint_valid(), True),
    (lambda: torch.autograd.DeviceType.CUDA.value, 1),
    (lambda: torch._C._is_alias_of(X, X.view(-1)), True),
    (lambda: torch._C._is_alias_of(X, X.clone()), False),
    (lambda: torch._C._WeakTensorRef(X).expired(), False),
    (lambda: torch._C._get_cudnn_enabled(), True),
    (lambda: torch.utils._triton.has_triton(), False),
    (lambda: torch.utils._dtype_abbrs.dtype_abbrs[torch.int64], "i64"),
    (lambda: torch._vendor.packaging.version.parse("2.10").release, (2, 10)),
    (lambda: torch._guards.TracingContext.try_get(), None),
    (lambda: torch._utils_internal.TEST_MASTER_ADDR, "127.0.0.1"),
    (lambda: torch.onnx.producer_name, "pytorch"),
    (lambda: [profiler_util._format_time(t) for t in (5, 2.5e6)], ["5.000us", "2.500s"]),
    (lambda: [profiler_util._format_time_share(*t) for t in ((1, 4), (0, 0))], ["25.00%", "NaN"]),
    (lambda: [profiler_util._format_memory(n) for n in (5, -2048)], ["5 B", "-2.00 KB"]),
    (
        lambda: [
            t.tolist()
            for t in functional._construct_standard_basis_for(
                (torch.zeros(2), torch.zeros(1)), (2, 1)
            )
        ],
        [[[1.0, 0.0], [0.0, 1.0], [0.0, 0.0]], [[0.0], [0.0], [1.0]]],
    ),
    (lambda: torch.utils.checkpoint._infer_device_type(X), "cpu"),
    (lambda: torch._linalg_utils.bform(X, None, X).tolist(), (X.T @ X).tolist()),
    (lambda: torch._linalg_utils.get_floating_dtype(X.int()), torch.float32),
    (lambda: torch._C._len_torch_dispatch_stack(), 0),
    (lambda: torch._environment.is_fbcode(), False),
    (lambda: torch._compile._disable_dynamo(len), len),
    (lambda: torch.utils._traceback.shorten_filename("/a/b.py", base="/a"), "b.py"),
]


@pytest.mark.parametrize("index", range(len(GAVE)))
def test_private_name_gives_what_pytorch_gave(index: int) -> None:
    call, want = GAVE[index]
    assert call() == want


def test_private_name_refuses_what_pytorch_refused() -> None:
    with pytest.raises(ValueError, match="bad is not a valid value for reduction"):
        _reduction.get_enum("bad")
    with pytest.raises(RuntimeError, match="must be None or torch.Tensor"):
        nn.functional._none_or_dtype(6)  # type: ignore[arg-type]
    with pytest.raises(RuntimeError, match="activation should be relu/gelu, not x"):
        nn.modules.transformer._get_activation_fn("x")
    with pytest.raises(ValueError, match="Input dimension should be at least 3"):
        nn.modules.utils._list_with_default([None, 3], [5, 6])
    with pytest.raises(AssertionError, match="Torch not compiled with CUDA enabled"):
        torch.cuda._lazy_init()
    for dim in (3, -4):
        with pytest.raises(IndexError, match="Dimension out of range"):
            common.canonicalize_dim(3, dim)
    with pytest.warns(UserWarning, match="size_average and reduce args will be deprecated"):
        _reduction.legacy_get_string(None, None)


KIND = common.ELEMENTWISE_TYPE_PROMOTION_KIND


@pytest.mark.parametrize(
    ("kind", "dtypes"),
    [
        # (int32, int32), (float16, float16), (complex64, complex64): computed in, and given.
        ("DEFAULT", "int32 int32 float32 float16 complex64 complex64"),
        ("NO_OPMATH", "int32 int32 float16 float16 complex64 complex64"),
        ("INT_TO_FLOAT", "float32 float32 float32 float16 complex64 complex64"),
        ("ALWAYS_BOOL", "int32 bool float32 bool complex64 bool"),
        ("COMPLEX_TO_FLOAT", "int32 int32 float32 float16 complex64 float32"),
        ("BOOL_TO_LONG", "int32 int32 float32 float16 complex64 complex64"),
    ],
)
def test_types_of_elementwise_functions_are_pytorchs(kind: str, dtypes: str) -> None:
    got = []
    for dtype in (torch.int32, torch.float16, torch.complex64):
        x = torch.ones(2, dtype=dtype)
        got += common.elementwise_dtypes(x, x, type_promotion_kind=KIND[kind])
    assert got == [getattr(torch, name) for name in dtypes.split()]


def test_types_of_elementwise_functions_of_numbers_are_pytorchs() -> None:
    x = torch.ones(2, dtype=torch.int32)
    for args, kind, dtype in (
        ((x, 2.5), "DEFAULT", torch.float32),
        ((x, 2), "INT_TO_FLOAT", torch.float32),
        ((2, x), "INT_TO_FLOAT", torch.float32),
        ((2,), "DEFAULT", torch.int64),
        ((True, 2.0, x), "DEFAULT", torch.float32),
        ((x > 0,), "BOOL_TO_LONG", torch.int64),
    ):
        assert common.elementwise_dtypes(*args, type_promotion_kind=KIND[kind]) == (dtype, dtype)


def test_ordered_set_keeps_its_order() -> None:
    a, b = OrderedSet([3, 1, 2, 3]), OrderedSet([2, 5])
    assert repr(a) == "OrderedSet([3, 1, 2])"
    assert list(a | b) == [3, 1, 2, 5] and list(a - b) == [3, 1] and list(a & b) == [2]
    assert list(a.symmetric_difference(b)) == [3, 1, 5] and a.intersection(b) == {2}
    a.discard(9)
    a.difference_update([1])
    assert a.pop() == 2 and list(reversed(a)) == [3]


def test_decorated_function_and_generator_run_in_a_context_of_their_own() -> None:
    class Grad(_contextlib._DecoratorContextManager):
        def __init__(self, on: bool) -> None:
            self.on = on

        def __enter__(self) -> None:
            self.before = torch.is_grad_enabled()
            torch.set_grad_enabled(self.on)

        def __exit__(self, *error: Any) -> None:
            torch.set_grad_enabled(self.before)

        def clone(self) -> Any:
            return Grad(self.on)

    @Grad(False)
    def asked() -> bool:
        return torch.is_grad_enabled()

    @Grad(False)
    def steps() -> Any:
        yield torch.is_grad_enabled()
        yield torch.is_grad_enabled()

    assert not asked()
    for inside in steps():
        assert not inside and torch.is_grad_enabled()


def test_lists_of_tensors_are_cut_by_device_and_type() -> None:
    lists = [[torch.ones(1), torch.ones(2).double(), torch.ones(3)], [None, None, X]]
    found = _foreach_utils._group_tensors_by_device_and_dtype(lists, with_indices=True)
    floats, doubles = found[X.device, torch.float32], found[X.device, torch.float64]
    assert [t.numel() for t in floats[0][0]] == [1, 3] and floats[1] == [0, 2]
    assert floats[0][1][0] is None and floats[0][1][1] is X and doubles[1] == [1]


def test_gradients_of_convolutions_are_found_beside_the_functions() -> None:
    x, w = torch.randn(1, 2, 5), torch.randn(3, 2, 2)
    g = torch.randn(1, 3, 4)
    want = torch.nn.grad.conv1d_weight(x, w.shape, g)
    assert torch.equal(torch.nn.functional.grad.conv1d_weight(x, w.shape, g), want)


def test_private_methods_of_tensors_give_what_the_functions_give() -> None:
    z = torch.tensor([1 + 2j])
    assert z._conj().tolist() == [1 - 2j] == z._conj_physical().tolist()
    assert X._neg_view()[1, 0] == -3 and not X._is_zerotensor()
    y = X._lazy_clone()
    assert torch.equal(y, X) and y.data_ptr() != X.data_ptr()


def test_private_methods_of_sparse_tensors_give_what_the_public_ones_give() -> None:
    x = torch.eye(4)
    s = x._to_sparse()
    assert (s._dimI(), s._dimV()) == (2, 0) and torch.equal(s._to_dense(), x)
    for layout, args in (("csr", ()), ("csc", ()), ("bsr", ((2, 2),)), ("bsc", ((2, 2),))):
        made = getattr(x, f"_to_sparse_{layout}")(*args)
        assert str(made.layout) == f"torch.sparse_{layout}" and torch.equal(made._to_dense(), x)


def test_logs_of_private_modules_are_pythons(caplog: Any) -> None:
    from pytensorlib import _logging

    logger = _logging.getArtifactLogger("mine", "graph")
    with caplog.at_level(logging.WARNING):
        for _ in range(2):
            _logging.warning_once(logger, "only once")
    assert [r.message for r in caplog.records] == ["only once"]


def test_warning_of_the_compilers_helpers_comes_once() -> None:
    from pytensorlib._dynamo.utils import warn_once

    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        warn_once("one of a kind")
        warn_once("one of a kind")
    assert len(seen) == 1


def test_basis_of_a_matrix_of_low_rank_spans_it() -> None:
    from pytensorlib._lowrank import get_approximate_basis

    a = torch.randn(6, 2, dtype=torch.float64) @ torch.randn(2, 5, dtype=torch.float64)
    for m in (None, torch.zeros_like(a)):
        q = get_approximate_basis(a, 2, M=m)
        torch.testing.assert_close(q @ (q.T @ a), a)
        torch.testing.assert_close(q.T @ q, torch.eye(2, dtype=torch.float64))


def test_functions_of_a_device_make_tensors_there() -> None:
    from pytensorlib.utils._device import DeviceContext, set_device

    @set_device("meta")
    def made() -> torch.Tensor:
        return torch.ones(2)

    assert made().is_meta and not torch.ones(2).is_meta
    with DeviceContext("meta"):
        assert torch.ones(2).is_meta
    assert not torch.ones(2).is_meta


def test_library_of_a_block_is_gone_after_it() -> None:
    with torch.library._scoped_library("scoped", "DEF") as lib:
        lib.define("twice(Tensor x) -> Tensor")
        lib.impl("twice", lambda x: x * 2, "CompositeImplicitAutograd")
        assert torch.ops.scoped.twice(X).sum() == 2 * X.sum()
    with pytest.raises(AttributeError):
        torch.ops.scoped.twice(X)


def test_weak_reference_by_value_equals_another_of_an_equal_object() -> None:
    from pytensorlib.utils.weak import _WeakHashRef

    class Key:
        def __init__(self, n: int) -> None:
            self.n = n

        def __hash__(self) -> int:
            return self.n

        def __eq__(self, other: object) -> bool:
            return isinstance(other, Key) and self.n == other.n

    a, b, c = Key(1), Key(1), Key(2)
    assert _WeakHashRef(a) == _WeakHashRef(b) != _WeakHashRef(c)
    assert {_WeakHashRef(a): "found"}[_WeakHashRef(b)] == "found"


def test_calls_that_led_somewhere_are_kept_as_text() -> None:
    from pytensorlib.utils._traceback import CapturedTraceback

    kept = CapturedTraceback.extract()
    assert "test_calls_that_led_somewhere" in kept.format()[-1]
    kept.cleanup()
    assert kept.format() == []


def test_tensors_that_differ_in_kind_are_refused() -> None:
    common.compare_tensor_meta(X, X.clone())
    for other in (X[:1], X.double(), X.to("meta")):
        with pytest.raises(AssertionError, match="are not equal"):
            common.compare_tensor_meta(X, other)
    common.compare_tensor_meta(X, X.T.clone().T)
    with pytest.raises(AssertionError, match="strides"):
        common.compare_tensor_meta(X, X.T.contiguous().T, check_strides=True)
