"""Storages: made, read, written, converted, shared, pickled, and under tensors."""

import collections
import copy
import gc
import os
import pickle
import sys
import warnings
import weakref

import pytest

import pytensorlib as torch
from pytensorlib.multiprocessing.reductions import StorageWeakRef

NAMES = torch.storage._dtype_to_storage_type_map()
TENSORS = list(torch.storage.STORED)
QUANTIZED = ["QInt32Storage", "QInt8Storage", "QUInt2x4Storage", "QUInt4x2Storage", "QUInt8Storage"]


@pytest.mark.parametrize("dtype", NAMES, ids=str)
def test_typed_storages_are_written_and_read(dtype):
    kind = getattr(torch, NAMES[dtype])
    s = kind(10)
    s[:] = 0
    want = [0] * 10
    for i in range(10):
        s[i] = want[i] = i % 2 if dtype == torch.bool else i
    want[2:7] = [1] * 5
    s[2:7] = 1
    assert s.tolist() == want == list(s) and s[-1] == want[-1]
    assert isinstance(s, kind) and type(s) is torch.TypedStorage and s.dtype == dtype
    assert kind.__name__ == NAMES[dtype] and kind._dtype == dtype
    assert kind(want).tolist() == want
    assert len(s) == s.size() == 10 and s.nbytes() == 10 * s.element_size()
    assert s.fill_(1).tolist() == [1] * 10
    assert not any(isinstance(s, getattr(torch, n)) for d, n in NAMES.items() if d != dtype)
    assert s.type().endswith(f".{NAMES[dtype]}") and s.pickle_storage_type() == NAMES[dtype]
    assert torch.storage._get_dtype_from_pickle_storage_type(NAMES[dtype]) == dtype


def test_numbers_are_converted_between_storages():
    numbers = torch.IntStorage([-1, 0, 1, 2, 3, 4])
    for name in ("float", "half", "bfloat16", "long", "short", "double", "char"):
        other = getattr(numbers, name)()
        assert other.tolist() == [-1, 0, 1, 2, 3, 4] and other.int().tolist() == numbers.tolist()
        assert other.data_ptr() != numbers.data_ptr()
    assert numbers.complex_float().tolist() == [-1, 0, 1, 2, 3, 4]
    assert numbers.bool().tolist() == [True, False, True, True, True, True]
    assert numbers.byte().tolist() == [255, 0, 1, 2, 3, 4]
    assert numbers.int().data_ptr() != numbers.data_ptr()
    assert numbers.float().type() == f"{torch.__name__}.FloatStorage"
    assert torch.UntypedStorage([1, 2]).float().tolist() == [1.0, 2.0]


def test_bytes_of_a_buffer_are_copied_in_an_order():
    data = bytearray([1, 2, 3, 4])
    assert torch.ByteStorage.from_buffer(data).tolist() == [1, 2, 3, 4]
    assert torch.ShortStorage.from_buffer(data, "big").tolist() == [258, 772]
    assert torch.IntStorage.from_buffer(data, "little").tolist() == [67305985]
    assert torch.FloatStorage.from_buffer(bytes([0x40, 0x10, 0, 0]), "big").tolist() == [2.25]
    assert torch.BoolStorage.from_buffer(b"\0x4A", "big").tolist() == [False, True, True, True]
    assert torch.ShortStorage.from_buffer(bytes(range(8)), "little", 2, 2).tolist() == [770, 1284]
    typed = torch.TypedStorage.from_buffer(data, "big", dtype=torch.int16)
    assert typed.dtype == torch.int16 and typed.tolist() == [258, 772]
    made = torch.UntypedStorage.from_buffer(bytes(range(8)), "big", dtype=torch.complex64)
    assert made.tolist() == [3, 2, 1, 0, 7, 6, 5, 4]
    data[0] = 9
    assert typed.tolist() == [258, 772]


@pytest.mark.parametrize(
    ("arguments", "kind", "text"),
    [
        (((b"abcd",), {}), RuntimeError, "argument 'dtype' cannot be None"),
        (((b"abcd",), {"dtype": torch.int16}), RuntimeError, "missing required .* 'byte_order'"),
        (((b"abcd", "up"), {"dtype": torch.int16}), ValueError, "invalid byte_order 'up'"),
        (((b"abc", "big"), {"dtype": torch.int16}), ValueError, r"buffer size \(3\) must be a mul"),
        (((b"ab", "big", 2), {"dtype": torch.int16}), ValueError, "buffer has only 1 elements"),
        (((b"ab", "big", -1, 3), {"dtype": torch.int16}), ValueError, "offset must be non-neg"),
        (((3, "big"), {"dtype": torch.int16}), TypeError, "bytes-like object is required"),
    ],
)
def test_buffer_that_does_not_fit_raises(arguments, kind, text):
    args, kwargs = arguments
    with pytest.raises(kind, match=text):
        torch.UntypedStorage.from_buffer(*args, **kwargs)


def test_bytes_are_swapped_for_each_size():
    rows = {
        torch.float64: [7, 6, 5, 4, 3, 2, 1, 0, 15, 14, 13, 12, 11, 10, 9, 8],
        torch.int32: [3, 2, 1, 0, 7, 6, 5, 4, 11, 10, 9, 8, 15, 14, 13, 12],
        torch.float16: [1, 0, 3, 2, 5, 4, 7, 6, 9, 8, 11, 10, 13, 12, 15, 14],
        torch.bool: list(range(16)),
    }
    rows |= {torch.complex128: rows[torch.float64], torch.complex64: rows[torch.int32]}
    for dtype, want in rows.items():
        s = torch.UntypedStorage(range(16))
        s.byteswap(dtype)
        assert s.tolist() == want


@pytest.mark.parametrize("name", ["FloatStorage", "BoolStorage", *QUANTIZED])
def test_storage_with_wrong_arguments_raises(name):
    kind = getattr(torch, name)
    s, dtype = kind(), kind._dtype
    T, U = torch.TypedStorage, s.untyped()
    for call, error, text in (
        (lambda: kind(device="cpu"), RuntimeError, "'device' cannot be specified"),
        (lambda: kind(dtype=torch.float), RuntimeError, "'dtype' cannot be specified"),
        (lambda: kind(other=1), TypeError, "got an unexpected keyword"),
        (lambda: kind(0, 0), RuntimeError, "Too many positional arguments"),
        (lambda: kind("string"), TypeError, "invalid data type"),
        (lambda: kind(torch.tensor([])), TypeError, "Argument type not recognized"),
        (lambda: kind(0, wrap_storage=U), RuntimeError, "No positional arguments"),
        (lambda: kind(wrap_storage=s), TypeError, "must be UntypedStorage"),
        (lambda: T(0, wrap_storage=U, dtype=dtype), RuntimeError, "No positional arguments"),
        (lambda: T(wrap_storage=U), RuntimeError, "Argument 'dtype' must be specified"),
        (lambda: T(wrap_storage=U, dtype=0), TypeError, "Argument 'dtype' must be torch.dtype"),
        (
            lambda: T(wrap_storage=U, dtype=dtype, device="cpu"),
            RuntimeError,
            "Argument 'device' should not be specified",
        ),
        (lambda: T(wrap_storage=s, dtype=dtype), TypeError, "'wrap_storage' must be UntypedS"),
        (lambda: T(torch.tensor([]), dtype=dtype), TypeError, "Argument type not recognized"),
        (lambda: T(0, 0, dtype=dtype), RuntimeError, "Too many positional arguments"),
        (lambda: s.fill_(kind([1])), RuntimeError, "cannot set item with value type"),
        (lambda: s[0], IndexError, "index 0 out of range for storage of size 0"),
        (lambda: s[0:1], RuntimeError, "slices are only supported in UntypedStorage"),
        (lambda: s["a"], RuntimeError, "can't index a"),
    ):
        with pytest.raises(error, match=text):
            call()
    with pytest.raises(RuntimeError, match="Only child classes of _LegacyStorage can be inst"):
        torch.storage._LegacyStorage()


def test_typed_storages_warn_at_the_first_use_alone(monkeypatch):
    s = torch.FloatStorage(3)
    uses = (
        lambda: torch.FloatStorage(),
        lambda: torch.FloatStorage.dtype,
        lambda: s.fill_(0),
        lambda: s.is_cuda,
        lambda: s.untyped(),
        lambda: len(s),
        lambda: s[0],
    )
    monkeypatch.setattr(torch.storage._Warned, "always", True)
    for use in uses:
        with pytest.warns(UserWarning, match="^TypedStorage is deprecated") as told:
            use()
        assert len(told) == 1 and told[0].filename == __file__
    with pytest.warns(UserWarning, match="^TypedStorage is deprecated") as told:
        torch.ones(1).storage()
    assert len(told) == 1
    monkeypatch.setattr(torch.storage._Warned, "always", False)
    torch.storage._reset_warn_typed_storage_removal()
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        torch.FloatStorage()
        torch.ones(2).storage()
    assert len(seen) == 1


def test_bytes_take_integers_only_and_keep_their_lowest_eight_bits():
    s = torch.UntypedStorage([1, 300, -1])
    assert s.tolist() == [1, 44, 255] and s[-1] == 255
    s[0], s[1:] = 257, 258
    assert s.tolist() == [1, 2, 2] and s.fill_(-1).tolist() == [255] * 3
    assert list(reversed(torch.UntypedStorage(b"ab"))) == [98, 97]
    for call, kind, text in (
        (lambda: s["a"], TypeError, "can't index a torch.UntypedStorage with str"),
        (lambda: s[True], TypeError, "can't index a torch.UntypedStorage with bool"),
        (lambda: s[::2], RuntimeError, "step of 2, but only a step of 1"),
        (lambda: s[3], IndexError, "index 3 out of range for storage of size 3"),
        (lambda: s.__setitem__(0, 2.5), RuntimeError, "with a int types, but got float"),
        (lambda: s.fill_(2.5), RuntimeError, "fill_ expects int, but got float"),
        (lambda: s.copy_(3), TypeError, "must be torch.Storage, not int"),
        (lambda: s.copy_(torch.UntypedStorage(2)), RuntimeError, "3 bytes but src was 2 bytes"),
        (lambda: torch.UntypedStorage(3.5), RuntimeError, "Expected a sequence type, but got fl"),
        (lambda: torch.UntypedStorage([1.5]), RuntimeError, "of type float instead of int"),
        (lambda: torch.UntypedStorage("a"), RuntimeError, "of type str instead of int"),
        (lambda: torch.UntypedStorage(torch.ones(1)), RuntimeError, "sequence type, but got Ten"),
    ):
        with pytest.raises(kind, match=text):
            call()


def test_parts_of_bytes_share_their_memory():
    s = torch.UntypedStorage(range(6))
    part = s[2:4]
    part[0] = 9
    assert s.tolist() == [0, 1, 9, 3, 4, 5] and s[5:2].tolist() == []
    s.copy_(torch.ShortStorage([1, 2, 3]))
    assert s.tolist() == [1, 0, 2, 0, 3, 0]


@pytest.mark.parametrize("dtype", TENSORS, ids=str)
def test_tensors_are_made_over_storages_of_their_type(dtype):
    x = torch.arange(12).reshape(3, 4).to(dtype)
    for source in (x.storage(), x.untyped_storage()):
        assert torch.equal(torch.tensor(source, dtype=dtype).reshape(3, 4), x)
        over = torch.tensor([], dtype=dtype).set_(source).reshape(3, 4)
        assert torch.equal(over, x) and over.data_ptr() == x.data_ptr()
        assert torch.as_tensor(source, dtype=dtype).data_ptr() == x.data_ptr()
        assert torch.tensor(source, dtype=dtype).data_ptr() != x.data_ptr()
    assert x.storage_type() is getattr(torch, NAMES[dtype])
    for other in TENSORS:
        if other != dtype:
            wrong = torch.zeros(2, dtype=other).storage()
            with pytest.raises(RuntimeError, match="Expected a Storage of type"):
                torch.tensor(wrong, dtype=dtype)
            with pytest.raises(RuntimeError, match="Expected a Storage of type"):
                torch.tensor([], dtype=dtype).set_(wrong)


def test_old_constructors_take_storages():
    s = torch.FloatStorage([1, 2])
    for x in (torch.FloatTensor(s), torch.Tensor(s), torch.ones(1).new(s)):
        assert x.tolist() == [1.0, 2.0] and x.data_ptr() == s.data_ptr()
    with pytest.raises(RuntimeError, match="but got type Float for argument 1 'storage'"):
        torch.DoubleTensor(s)
    before = torch.get_default_dtype()
    try:
        torch.set_default_dtype(torch.float64)
        assert torch.Storage is torch.DoubleStorage
    finally:
        torch.set_default_dtype(before)
    assert torch.Storage is torch.FloatStorage


@pytest.mark.parametrize("given", [(), (0,), (100,), ([1, 2, 3],)], ids=str)
def test_storages_without_memory_have_sizes_alone(given):
    for kind, more in ((torch.TypedStorage, {"dtype": torch.int16}), (torch.UntypedStorage, {})):
        s, host = kind(*given, device="meta", **more), kind(*given, device="cpu", **more)
        assert s.device.type == "meta" and s.nbytes() == host.nbytes() and s.size() == host.size()
        assert s.data_ptr() == 0
        for call, error, text in (
            (lambda s=s: s[0], NotImplementedError, "Not available"),
            (s.tolist, NotImplementedError, "Not available"),
            (s.cpu, NotImplementedError, "Cannot copy out"),
            (lambda s=s, h=host: h.copy_(s), NotImplementedError, "Cannot copy out"),
            (lambda s=s: s._write_file(None, True, True, 1), NotImplementedError, "Cannot copy o"),
            (s._share_fd_cpu_, RuntimeError, "only available on CPU"),
            (s._share_filename_cpu_, RuntimeError, "only available on CPU"),
            (s.share_memory_, RuntimeError, "only available on CPU"),
        ):
            with pytest.raises(error, match=text):
                call()
        s.resize_(7)
        assert s.size() == 7 and repr(s).startswith("...\n")


def test_copies_share_what_their_originals_share():
    a = torch.arange(25.0).reshape(5, 5)
    q = [a, a.storage(), a.untyped_storage(), a.view(25)]
    w = copy.deepcopy(q)
    w[0].add_(1)
    assert (
        w[1][3] == q[1][3] + 1
        and w[2] == w[0].untyped_storage()
        and torch.equal(w[3], a.view(25) + 1)
    )
    once = copy.copy(q[1])
    assert once.tolist() == q[1].tolist() and once.data_ptr() != q[1].data_ptr()


def test_storages_are_pickled():
    s = torch.ShortStorage([1, 2])
    for other in (pickle.loads(pickle.dumps(s)), s.clone(), s.cpu()):
        assert type(other) is torch.TypedStorage and other.dtype == torch.int16
        assert other.tolist() == [1, 2]
    assert s.clone() != s and s == s.cpu()
    u = pickle.loads(pickle.dumps(s.untyped()))
    assert u.tolist() == [1, 0, 2, 0]


def test_storages_of_files_and_of_other_processes(tmp_path):
    path = tmp_path / "numbers"
    s = torch.LongStorage.from_file(str(path), shared=True, size=2)
    s.fill_(7)
    assert path.read_bytes() == (7).to_bytes(8, "little") * 2
    # Windows tells no path of a section.
    assert s.filename == (None if sys.platform == "win32" else str(path))
    own = torch.LongStorage.from_file(str(path), False, 2)
    own[0] = 1
    assert s[0] == 7 and own.filename is None
    with pytest.raises(RuntimeError, match="from_file can only be called on derived classes"):
        torch.TypedStorage.from_file(str(path), False, 1)
    for shared in (torch.UntypedStorage._new_shared(8), torch.FloatStorage._new_shared(2)):
        assert shared.is_shared() and shared.nbytes() == 8
        if sys.platform == "win32":
            with pytest.raises(NotImplementedError, match="no descriptor on Windows"):
                shared._share_fd_cpu_()
            continue
        fd, size = shared._share_fd_cpu_()
        os.close(fd)
        assert size == shared.size()


def test_handles_that_do_not_keep_a_storage():
    x = torch.ones(3)
    a, b = StorageWeakRef(x.untyped_storage()), StorageWeakRef(x[1:].storage())
    assert a == b and hash(a) == hash(b) and not a.expired()
    assert collections.Counter([a, b])[a] == 2
    key = x.storage()._weak_ref()
    assert not torch.UntypedStorage._expired(key)
    assert torch.UntypedStorage._new_with_weak_ptr(key) == x.untyped_storage()
    tensor = torch._C._WeakTensorRef(x)
    assert not tensor.expired()
    del x
    gc.collect()
    assert a.expired() and torch.UntypedStorage._expired(key) and tensor.expired()
    torch.UntypedStorage._free_weak_ref(key)
    with pytest.raises(TypeError, match="weak reference to 'int' object"):
        torch._C._WeakTensorRef(3)


def test_tensors_are_set_to_the_same_view_of_the_same_memory():
    x = torch.ones(3, 4)
    assert x.is_set_to(x) and x.is_set_to(x[:]) and x.is_set_to(x.view(torch.int32))
    assert not any(x.is_set_to(y) for y in (x[1:], x.t(), x.clone(), x.double()))
    empty = torch.tensor([])
    assert empty.is_set_to(empty.view(0)) and not empty.is_set_to(torch.tensor([]))
    with pytest.raises(TypeError, match="must be Tensor, not int"):
        x.is_set_to(3)


def test_tensors_are_rebuilt_over_storages_of_any_kind():
    from pytensorlib._utils import _element_size, _rebuild_tensor

    s = torch.FloatStorage([1, 2, 3, 4])
    x = _rebuild_tensor(s, 1, (3,), (1,))
    assert x.tolist() == [2.0, 3.0, 4.0] and x.data_ptr() == s.data_ptr() + 4
    sizes = [_element_size(d) for d in (torch.bool, torch.int16, torch.float32, torch.complex128)]
    assert sizes == [1, 2, 4, 16]
    with pytest.raises(RuntimeError, match="expected torch.dtype"):
        _element_size(3)


def test_storage_is_one_object_with_attributes_while_it_is_kept():
    x = torch.ones(3)
    s = x.untyped_storage()
    s.note = "kept"
    assert x.untyped_storage() is s and x[1:].untyped_storage().note == "kept"
    assert x.clone().untyped_storage() is not s
    died = []
    ref = weakref.ref(s, died.append)
    assert ref() is s
    del s
    gc.collect()
    assert (
        died == [ref] and x.untyped_storage().tolist() == torch.ones(3).untyped_storage().tolist()
    )


def test_storages_are_derived_from():
    class Own(torch._C.StorageBase):
        def __new__(cls, *args, **kwargs):
            return super().__new__(cls, *args, **kwargs)

    assert isinstance(Own(3), torch.UntypedStorage) and isinstance(Own(3), Own)
    s = torch.UntypedStorage(1)
    assert isinstance(s, torch.StorageBase) and not isinstance(s, Own)
    assert not isinstance(torch.ones(1), torch.StorageBase)
    assert Own(torch.UntypedStorage(2)).nbytes() == 2
    with pytest.raises(RuntimeError, match="Cannot directly construct StorageBase"):
        torch._C.StorageBase()
    with pytest.raises(RuntimeError, match="Storage device not recognized: xla"):
        torch.TypedStorage(dtype=torch.float32, device="xla")
