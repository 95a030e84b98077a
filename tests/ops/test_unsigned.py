"""uint16, uint32 and uint64: stored, converted, moved and compared; few ops compute with them."""

import io
import itertools
import operator
import pickle

import numpy as np
import pytest

import pytensorlib as torch

NAMES = ("uint16", "uint32", "uint64")
OTHERS = "bool uint8 int8 int16 int32 int64 float16 float32 float64 complex64 complex128".split()
WIDE = [(name, getattr(torch, name), np.dtype(name)) for name in NAMES]
each = pytest.mark.parametrize(("name", "dtype", "np_dtype"), WIDE, ids=NAMES)
ORDERED = (operator.eq, operator.ne, operator.lt, operator.le, operator.gt, operator.ge)


def sample(np_dtype):
    """Numbers from both ends of a type and around the largest signed one."""
    top = int(np.iinfo(np_dtype).max)
    half = top // 2
    return np.array([0, 1, 2, 200, half - 1, half, half + 1, half + 2, top - 1, top], np_dtype)


def numpy_of(t):
    return np.array(t.tolist(), dtype=str(t.dtype).rpartition(".")[2])


@each
def test_memory_is_shared_with_numpy_both_ways(name, dtype, np_dtype):
    a = sample(np_dtype)
    t = torch.from_numpy(a)
    assert t.dtype is dtype and t.element_size() == np_dtype.itemsize
    assert t.numpy().dtype == np_dtype and t.tolist() == a.tolist()
    a[0] = 77
    assert t[0].item() == 77
    t.numpy()[1] = 78
    assert a[1] == 78
    for other in (torch.from_dlpack(a), torch.asarray(a), torch.as_tensor(a)):
        assert other.dtype is dtype and other.data_ptr() == t.data_ptr()
    back = np.from_dlpack(t)
    assert back.dtype == np_dtype and np.shares_memory(back, a)
    assert torch.tensor(a).tolist() == a.tolist()
    assert torch.tensor(a[-1]).dtype is dtype and torch.tensor(a[-1]).item() == int(a[-1])
    assert torch.tensor([a[-1], a[-2]]).tolist() == [int(a[-1]), int(a[-2])]
    if name == "uint64":
        longs = torch.from_numpy(a.astype(np.ulonglong))
        assert longs.dtype is dtype


@each
def test_creation(name, dtype, np_dtype):
    top = int(np.iinfo(np_dtype).max)
    assert torch.zeros(3, dtype=dtype).tolist() == [0] * 3
    assert torch.ones(2, 2, dtype=dtype).tolist() == [[1, 1]] * 2
    assert torch.empty(3, 4, dtype=dtype).shape == (3, 4)
    assert torch.full((2,), top, dtype=dtype).tolist() == [top] * 2
    assert torch.full((2,), -1, dtype=dtype).tolist() == [top] * 2
    assert torch.zeros(4, dtype=dtype)[::2].fill_(top).tolist() == [top] * 2
    assert torch.ones_like(torch.zeros(2, dtype=dtype)).tolist() == [1, 1]
    assert torch.zeros(1, dtype=dtype).new_full((2,), top).tolist() == [top] * 2
    assert torch.tensor([True, 2.75, 0.5], dtype=dtype).tolist() == [1, 2, 0]
    with pytest.raises(RuntimeError, match="cannot be converted to type"):
        torch.tensor([-0.5], dtype=dtype)
    assert torch.tensor([top, 1], dtype=dtype).tolist() == [top, 1]
    for args in ((7,), (2, 9), (1, 10, 4), (9, 2, -3), (0, 2.5), (5, 5)):
        want = np.arange(*args).astype(np_dtype)
        got = torch.arange(*args, dtype=dtype)
        assert got.dtype is dtype and got.tolist() == want.tolist(), args
    with pytest.raises(RuntimeError, match="out of range"):
        torch.arange(-3, 3, dtype=dtype)
    for bad in (top + 1, -top - 1, 1e30, -1.5, float("nan")):
        with pytest.raises(
            (RuntimeError, ValueError, OverflowError), match=r"(?i)overflow|too big"
        ):
            torch.tensor([bad], dtype=dtype)
    for bad in (top + 1, 1e30, -1.0, float("nan")):
        # An int of more than 64 bits is an `OverflowError`, as in PyTorch.
        with pytest.raises((RuntimeError, OverflowError), match=r"(?i)overflow|too big"):
            torch.full((2,), bad, dtype=dtype)


def test_large_integers_need_a_type_that_holds_them():
    big = 2**64 - 1
    assert torch.full((2,), big, dtype=torch.float64).tolist() == [2.0**64] * 2
    assert torch.tensor([big], dtype=torch.float32).tolist() == [2.0**64]
    for make in (
        lambda: torch.tensor([big]),
        lambda: torch.full((2,), big),
        lambda: torch.full((2,), big, dtype=torch.int32),
        lambda: torch.arange(big - 3, big),
    ):
        with pytest.raises(
            (RuntimeError, ValueError, OverflowError), match=r"(?i)overflow|too big"
        ):
            make()


def test_large_factors_and_bounds():
    """An integer beyond int64 is a float64 to floating-point tensors, and refused by others."""
    big, F = 2**64 - 1, torch.nn.functional
    at = torch.tensor([0, 0])
    calls = [
        lambda x: x.add(1, alpha=big),
        lambda x: x.add(x, alpha=big),
        lambda x: torch.rsub(x, x, alpha=big),
        lambda x: torch.addcmul(x, x, x, value=big),
        lambda x: torch.addmm(x[None], x[None], x.expand(2, 2), alpha=big, beta=big),
        lambda x: torch.addr(x.expand(2, 2), x, x, alpha=big),
        lambda x: x.index_add(0, at, x, alpha=big),
        lambda x: x.scatter(0, at, big),
        lambda x: x.scatter(0, at, big, reduce="add"),
        lambda x: torch.constant_pad_nd(x, (1, 1), big),
        lambda x: F.pad(x, (1, 1), value=big),
        lambda x: x.index_fill(0, at, big),
        lambda x: x.masked_fill(x == 1, big),
        lambda x: x.clone().fill_(big),
        lambda x: x.clamp(min=big),
        lambda x: x.pow(big),
        lambda x: F.threshold(x, 2, big),
        lambda x: F.hardtanh(x, 0, big),
    ]
    f = torch.ones(2, dtype=torch.float64)
    wants = [2.0**64 + 1] * 2, [2.0**64 + 1] * 2, [1 - 2.0**64] * 2, [2.0**64 + 1] * 2
    for call, want in zip(calls, wants):
        assert call(f).tolist() == want
    for k, call in enumerate(calls):
        nearest = [c for c in (call(f), call(f.float()).double()) if c.dtype is torch.float64]
        assert torch.equal(*nearest), k
        with pytest.raises(RuntimeError, match=r"(?i)overflow"):
            call(torch.ones(2, dtype=torch.int64))
    assert F.pad(f, (1, 1), value=big).tolist() == [2.0**64, 1, 1, 2.0**64]
    assert F.pad(f, (1, 0), value=2**70).tolist() == [2.0**70, 1, 1]
    assert F.elu(f, big).tolist() == f.tolist() and torch.linalg.vector_norm(f - f, big) == 0
    for dtype, value in ((torch.int64, big), (torch.int8, 300), (torch.float16, 1e6)):
        with pytest.raises(RuntimeError, match="without overflow"):
            F.pad(torch.ones(2, dtype=dtype), (1, 1), value=value)


@each
@pytest.mark.filterwarnings("ignore:Casting complex")
@pytest.mark.parametrize("other", [*OTHERS, *NAMES])
def test_conversions_are_those_of_c(name, dtype, np_dtype, other):
    a = sample(np_dtype)
    to = getattr(torch, other)
    for x, t in ((a, torch.from_numpy(a)), (a[::-2], torch.from_numpy(a).flip(0)[::2])):
        with np.errstate(over="ignore"):
            want = x.astype(other)
        got = t.to(to)
        assert got.dtype is to
        np.testing.assert_array_equal(numpy_of(got), want)
        filled = torch.zeros(len(x), dtype=to)
        np.testing.assert_array_equal(numpy_of(filled.copy_(t)), want)
    if other == "bool":
        source = np.array([False, True])
    elif other in NAMES or "int" in other:
        source = np.array([np.iinfo(other).min, np.iinfo(other).max, 0, 1, 100], other)
    else:
        # In range, with fractions, and negative: those wrap.
        source = np.array([0, 1.75, 200.5, 60000, -3], other)
    with np.errstate(invalid="ignore"):
        whole = np.trunc(source.real).astype(np.int64) if source.dtype.kind in "fc" else source
        want = whole.astype(np_dtype)
    got = torch.from_numpy(source).to(dtype)
    assert got.dtype is dtype
    np.testing.assert_array_equal(numpy_of(got), want)


def test_conversion_of_large_floats_to_uint64_is_exact():
    values = [2.0**63, 2.0**63 + 2048, 1.5e19, 2.0**64 - 2048, 3e9]
    got = torch.tensor(values, dtype=torch.float64).to(torch.uint64)
    assert got.tolist() == [int(v) for v in values]
    assert torch.tensor([3e9]).to(torch.uint32).tolist() == [3_000_000_000]


@each
def test_values_leave_as_python_integers(name, dtype, np_dtype):
    top = int(np.iinfo(np_dtype).max)
    t = torch.tensor(top, dtype=dtype)
    assert t.item() == int(t) == operator.index(t) == top
    assert float(t) == float(top) and bool(t) is True
    assert f"{t}" == f"{top}"
    assert repr(t) == f"tensor({top}, dtype=torch.{name})"
    pad = " " * (len(str(top)) - 1)
    row = torch.tensor([1, top], dtype=dtype)
    assert repr(row) == f"tensor([{pad}1, {top}], dtype=torch.{name})"
    assert repr(torch.empty(0, dtype=dtype)) == f"tensor([], dtype=torch.{name})"
    with pytest.raises(IndexError):
        torch.zeros(3)[torch.tensor(top, dtype=dtype)]


@each
def test_facts(name, dtype, np_dtype):
    info, want = torch.iinfo(dtype), np.iinfo(np_dtype)
    assert (info.min, info.max, info.bits) == (0, int(want.max), want.bits)
    assert not torch.zeros(1, dtype=dtype).is_signed()
    assert not dtype.is_signed and not dtype.is_floating_point and not dtype.is_complex
    assert dtype.itemsize == np_dtype.itemsize
    assert repr(dtype) == f"torch.{name}" and pickle.loads(pickle.dumps(dtype)) is dtype
    assert torch.zeros(1, dtype=dtype).type() == f"torch.UInt{info.bits}Tensor"
    with pytest.raises(RuntimeError):
        torch.zeros(1, dtype=dtype).requires_grad_()
    with pytest.raises(TypeError):
        torch.set_default_dtype(dtype)


@each
def test_promotion(name, dtype, np_dtype):
    assert torch.promote_types(dtype, dtype) is dtype
    for f in (torch.float16, torch.bfloat16, torch.float32, torch.float64):
        assert torch.promote_types(dtype, f) is f is torch.promote_types(f, dtype)
    for other in (*NAMES, "bool", "uint8", "int8", "int16", "int32", "int64", "complex64"):
        if other == name:
            continue
        o = getattr(torch, other)
        for pair in ((dtype, o), (o, dtype)):
            with pytest.raises(RuntimeError, match="not supported, attempted to promote"):
                torch.promote_types(*pair)
        x, y = torch.zeros(2, dtype=dtype), torch.zeros(2, dtype=o)
        for f in (torch.eq, torch.mul, torch.result_type, lambda a, b: torch.cat([a, b])):
            with pytest.raises(RuntimeError, match="not supported, attempted to promote"):
                f(x, y)
    x = torch.zeros(2, dtype=dtype)
    assert torch.result_type(x, 1) is dtype and torch.result_type(x, 1.0) is torch.float32
    assert torch.result_type(x, torch.tensor(1)) is dtype


@each
def test_memory_is_read_as_other_types(name, dtype, np_dtype):
    a = sample(np_dtype)
    t = torch.from_numpy(a)
    signed = f"int{8 * np_dtype.itemsize}"
    for other in ("uint8", "int16", signed, name):
        v = t.view(getattr(torch, other))
        assert v.tolist() == a.view(other).tolist() and v.data_ptr() == t.data_ptr()
    assert torch.from_numpy(a.view(signed)).view(dtype).tolist() == a.tolist()


@each
def test_elements_are_moved(name, dtype, np_dtype):
    a = sample(np_dtype)
    t, m = torch.from_numpy(a), torch.from_numpy(a).reshape(2, 5)
    n = a.reshape(2, 5)
    index = np.array([3, 0, -1, 9])
    mask = a > 2
    pairs = [
        (t[2:8:3], a[2:8:3]),
        (t[torch.from_numpy(index)], a[index]),
        (m[:, torch.tensor([4, 0])], n[:, [4, 0]]),
        (t[torch.from_numpy(mask)], a[mask]),
        (t.masked_select(torch.from_numpy(mask)), a[mask]),
        (t.index_select(0, torch.tensor([1, 9])), a[[1, 9]]),
        (t.gather(0, torch.tensor([9, 8])), a[[9, 8]]),
        (t.take(torch.tensor([9, 8])), a[[9, 8]]),
        (m.t().contiguous(), n.T),
        (m.t().clone(), n.T),
        (t.flip(0), a[::-1]),
        (t.roll(3), np.roll(a, 3)),
        (m.repeat(2, 1), np.tile(n, (2, 1))),
        (t.expand(2, 10).contiguous(), np.broadcast_to(a, (2, 10))),
        (torch.cat([t, t[:2]]), np.concatenate([a, a[:2]])),
        (torch.stack([t, t], 1), np.stack([a, a], 1)),
        (torch.nn.functional.pad(t, (1, 2), value=9), np.pad(a, (1, 2), constant_values=9)),
        (torch.where(torch.from_numpy(mask), t, t.flip(0)), np.where(mask, a, a[::-1])),
        (torch.where(torch.from_numpy(mask), t, 5), np.where(mask, a, np_dtype.type(5))),
        (t.masked_fill(torch.from_numpy(mask), 9), np.where(mask, np_dtype.type(9), a)),
        (torch.cat(list(t.split(3))), a),
        (torch.stack(m.unbind(1), 1), n),
    ]
    for i, (got, want) in enumerate(pairs):
        assert got.dtype is dtype, i
        assert got.tolist() == want.tolist(), i


@each
def test_assignment(name, dtype, np_dtype):
    a = sample(np_dtype)
    top = int(a[-1])
    rows = torch.tensor([0, 7])
    keys = [slice(1, 4), 2, (rows,), torch.arange(10) > 6, ...]
    values = [7, torch.tensor(top, dtype=dtype), torch.tensor(top)] if name != "uint64" else [7]
    values += [torch.tensor(top, dtype=dtype), 3.0]
    for key, value in itertools.product(keys, values):
        t, want = torch.from_numpy(a.copy()), a.copy()
        if key == (rows,) and isinstance(value, torch.Tensor) and value.dtype != dtype:
            with pytest.raises(RuntimeError, match="source and destination dtypes match"):
                t[key] = value
            continue
        t[key] = value
        k = tuple(r.numpy() for r in key) if isinstance(key, tuple) else key
        want[k.numpy() if isinstance(k, torch.Tensor) else k] = int(value)
        assert t.tolist() == want.tolist(), (key, value)
    t = torch.from_numpy(a.copy())
    t[rows] = torch.tensor([top, top - 1], dtype=dtype)
    assert t[rows].tolist() == [top, top - 1]
    t = torch.zeros(2, dtype=dtype).index_put_((torch.tensor([1]),), torch.tensor(top, dtype=dtype))
    assert t.tolist() == [0, top]


@each
def test_comparisons_are_exact(name, dtype, np_dtype):
    a = sample(np_dtype)
    b = np.roll(a, 1)
    b[::3] = a[::3]
    x, y = torch.from_numpy(a), torch.from_numpy(b)
    numbers = [0, -1, 2**15, int(a[5]), int(a[6]), int(a[-1]), -(2**63), 2.5, True]
    for op in ORDERED:
        assert op(x, y).tolist() == op(a, b).tolist()
        assert op(x.reshape(2, 5).t(), y.reshape(2, 5).t()).tolist() == (
            op(a.reshape(2, 5).T, b.reshape(2, 5).T).tolist()
        )
        for v in numbers:
            want = [op(int(e), v) for e in a]
            if isinstance(v, float):
                want = op(a.astype(np.float32), np.float32(v)).tolist()
            assert op(x, v).tolist() == want, (op, v)
            assert op(x[3], v).item() is bool(op(int(a[3]), v)), (op, v)
            out = torch.empty(0, dtype=torch.bool)
            method = getattr(torch, op.__name__)
            assert method(x, v, out=out).tolist() == want
        inplace = x.clone()
        getattr(inplace, f"{op.__name__}_")(y)
        assert inplace.tolist() == op(a, b).astype(np_dtype).tolist()
    assert torch.equal(x, x.clone()) and not torch.equal(x, y)
    torch.testing.assert_close(x, x.clone())
    assert x.isnan().tolist() == [False] * 10 and x.isfinite().tolist() == [True] * 10


def test_a_number_beyond_int64_is_compared_with_what_can_hold_it():
    top = torch.tensor(2**64 - 1, dtype=torch.uint64)
    for other in (torch.tensor([-1]), torch.tensor([-1], dtype=torch.int8)):
        for call in (lambda o: o == 2**64 - 1, lambda o: o == top, lambda o: o * top):
            with pytest.raises(RuntimeError, match=r"overflow|promote"):
                call(other)
    assert (torch.tensor([2.0**64]) == 2**64 - 1).tolist() == [True]


@each
def test_arithmetic_that_is_defined(name, dtype, np_dtype):
    a = sample(np_dtype)
    b = a[::-1].copy()
    x, y = torch.from_numpy(a), torch.from_numpy(b)
    with np.errstate(over="ignore"):
        for got, want in (
            (x * y, a * b),
            (x * 3, a * np_dtype.type(3)),
            (x & y, a & b),
            (x | y, a | b),
            (x ^ y, a ^ b),
            (x.clone().mul_(2), a * np_dtype.type(2)),
        ):
            assert got.dtype is dtype and got.tolist() == want.tolist()
    floats = a.astype(np.float32)
    np.testing.assert_array_equal((x + torch.ones(10)).numpy(), floats + np.float32(1))
    np.testing.assert_array_equal((x / 4).numpy(), floats / np.float32(4))
    np.testing.assert_allclose(x.double().log1p().numpy(), np.log1p(a.astype(float)), rtol=1e-14)
    np.testing.assert_allclose(x.sqrt().numpy(), np.sqrt(floats), rtol=1e-6)
    small = torch.tensor([3, 4, 5], dtype=dtype)
    assert small.sum().item() == 12 and small.sum().dtype is torch.int64
    assert small.prod().item() == 60 and small.all().item() is True
    assert x.any().item() is True and not torch.zeros(3, dtype=dtype).any()
    np.testing.assert_allclose(x.sum(dtype=torch.float64).item(), a.astype(float).sum())
    g = torch.ones(10, requires_grad=True)
    (g * x).sum().backward()
    np.testing.assert_array_equal(g.grad.numpy(), floats)


@each
def test_order(name, dtype, np_dtype):
    rng = np.random.default_rng(1)
    a = rng.permutation(np.concatenate([sample(np_dtype)] * 4)).reshape(5, 8)
    x = torch.from_numpy(a)
    for dim, descending in itertools.product((0, 1), (False, True)):
        want = np.sort(a, dim)
        want = np.flip(want, dim) if descending else want
        y, index = torch.sort(x, dim, descending)
        assert y.dtype is dtype and y.tolist() == want.tolist()
        assert x.gather(dim, index).tolist() == want.tolist()
        assert x.gather(dim, torch.argsort(x, dim, descending)).tolist() == want.tolist()
    want, inverse, counts = np.unique(a.ravel(), return_inverse=True, return_counts=True)
    y, i, c = torch.unique(x.flatten(), return_inverse=True, return_counts=True)
    assert y.dtype is dtype and y.tolist() == want.tolist()
    assert i.tolist() == inverse.tolist() and c.tolist() == counts.tolist()
    assert torch.unique(x, dim=1).tolist() == np.unique(a, axis=1).tolist()
    same = torch.unique_consecutive(torch.from_numpy(np.repeat(sample(np_dtype), 2)))
    assert same.dtype is dtype and same.tolist() == sample(np_dtype).tolist()


REFUSED = {
    "add": lambda x: x + x,
    "sub": lambda x: x - 1,
    "neg": lambda x: -x,
    "abs": lambda x: x.abs(),
    "floor_divide": lambda x: x // 2,
    "remainder": lambda x: x % 2,
    "maximum": lambda x: torch.maximum(x, x),
    "pow": lambda x: x**2,
    "bitwise_not": lambda x: ~x,
    "lshift": lambda x: x << 1,
    "logical_not": lambda x: x.logical_not(),
    "sign": lambda x: x.sign(),
    "clamp": lambda x: x.clamp(1, 2),
    "relu": lambda x: x.relu(),
    "max": lambda x: x.max(),
    "amax": lambda x: x.amax(),
    "argmax": lambda x: x.argmax(),
    "mean": lambda x: x.mean(),
    "median": lambda x: x.median(),
    "sum into itself": lambda x: x.sum(dtype=x.dtype),
    "nonzero": lambda x: x.nonzero(),
    "count_nonzero": lambda x: x.count_nonzero(),
    "matmul": lambda x: x @ x,
    "index_add": lambda x: x.index_add(0, torch.tensor([0]), x[:1]),
    "accumulate": lambda x: x.index_put((torch.tensor([0]),), x[:1], accumulate=True),
    "scatter_add": lambda x: x.scatter_add(0, torch.tensor([0]), x[:1]),
    "random_": lambda x: x.random_(),
    "bernoulli_": lambda x: x.bernoulli_(),
    "linspace": lambda x: torch.linspace(0, 1, 3, dtype=x.dtype),
    "isin": lambda x: torch.isin(x, x),
    "bincount": lambda x: torch.bincount(x, weights=x),
    "index": lambda x: torch.arange(3)[x[:1]],
    "unravel_index": lambda x: torch.unravel_index(x, (2, 3)),
    "topk": lambda x: x.topk(1),
    "softmax": lambda x: x.softmax(0),
    "histc": lambda x: x.histc(),
    "cummax": lambda x: x.cummax(0),
    "triu": lambda x: x.reshape(1, 3).triu(),
    "sigmoid_": lambda x: x.sigmoid_(),
}


@each
@pytest.mark.parametrize("what", REFUSED)
def test_ops_that_do_not_compute_with_them_say_so(name, dtype, np_dtype, what):
    top = int(np.iinfo(np_dtype).max)
    with pytest.raises((NotImplementedError, RuntimeError, IndexError, TypeError)):
        REFUSED[what](torch.tensor([1, top, 2], dtype=dtype))


@each
def test_checkpoints(name, dtype, np_dtype):
    a = sample(np_dtype)
    t = torch.from_numpy(a.copy())
    file = io.BytesIO()
    torch.save({"t": t, "part": t[2:], "dtype": dtype}, file)
    file.seek(0)
    back = torch.load(file)
    assert back["t"].dtype is dtype is back["dtype"]
    assert back["t"].tolist() == a.tolist() and back["part"].tolist() == a[2:].tolist()
    back["t"][3] = 5
    assert back["part"][1].item() == 5
    names = io.BytesIO()
    torch.save([dtype, dtype, torch.float32, torch.float32], names)
    names.seek(0)
    assert torch.load(names) == [dtype, dtype, torch.float32, torch.float32]
    copy = pickle.loads(pickle.dumps(t))
    assert copy.dtype is dtype and copy.tolist() == a.tolist()


@each
def test_the_gpu_refuses_them(name, dtype, np_dtype):
    if not torch.wgpu.is_available():
        pytest.skip("no adapter")
    with pytest.raises(NotImplementedError, match="CPU only"):
        torch.ones(3, dtype=dtype).to("wgpu")
    assert torch.ones(3, dtype=dtype).to("wgpu", torch.float32).cpu().tolist() == [1.0] * 3


@pytest.mark.parametrize("dtype", [torch.uint16, torch.uint32, torch.uint64])
def test_wide_unsigned_integers_round_to_themselves_and_run_in_int64(dtype: torch.dtype) -> None:
    top = 2 ** (8 * dtype.itemsize) - 1
    x = torch.tensor([1, 2, top], dtype=dtype)
    for f in (torch.round, torch.floor, torch.ceil, torch.trunc, torch.fix):
        assert f(x).dtype == dtype and f(x).tolist() == [1, 2, top]
    assert torch.signbit(x).tolist() == [False] * 3
    small = torch.tensor([1, 2, 65535], dtype=dtype)
    for f, want in ((torch.cumsum, [1, 3, 65538]), (torch.cumprod, [1, 2, 131070])):
        y = f(small, 0)
        assert y.dtype == torch.int64 and y.tolist() == want
        assert f(small, 0, dtype=torch.float32).tolist() == want
        with pytest.raises(NotImplementedError, match=f.__name__):
            f(torch.tensor([1, 2]), 0, dtype=dtype)
    # 64 bits wrap, as PyTorch's do
    assert torch.cumsum(torch.tensor([2**64 - 1, 3], dtype=torch.uint64), 0).tolist() == [-1, 2]
