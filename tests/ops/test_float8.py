"""The floating types of 8 bits: what codes mean, rounding, storing, moving, comparing."""

from __future__ import annotations

import copy
import io
import itertools
import math
import pickle
import pickletools
import warnings
import zipfile
from typing import Any

import numpy as np
import pytest

import pytensorlib as torch

# Bits of the mantissa, the exponent's bias, the largest number, the codes of NaN.
FORMATS = {
    "float8_e4m3fn": (3, 7, 448.0, (0x7F, 0xFF)),
    "float8_e5m2": (2, 15, 57344.0, (0x7D, 0x7E, 0x7F, 0xFD, 0xFE, 0xFF)),
    "float8_e4m3fnuz": (3, 8, 240.0, (0x80,)),
    "float8_e5m2fnuz": (2, 16, 57344.0, (0x80,)),
    "float8_e8m0fnu": (0, 127, 2.0**127, (0xFF,)),
}
NAMES = tuple(FORMATS)
SIGNED = NAMES[:4]
OTHERS = "uint8 int8 int16 int32 int64 float16 float32 float64".split()


def meaning(name: str) -> np.ndarray:
    """Return the numbers that all codes stand for, by the definition of the format."""
    mantissa, bias, largest, nan = FORMATS[name]
    code = np.arange(256)
    if mantissa == 0:
        value = 2.0 ** (code - bias)
    else:
        e, m = (code & 0x7F) >> mantissa, code & (1 << mantissa) - 1
        subnormal = m * 2.0 ** (1 - bias - mantissa)
        normal = (1 + m / (1 << mantissa)) * 2.0 ** (e - bias)
        value = np.where(e == 0, subnormal, normal) * np.where(code < 128, 1.0, -1.0)
        value = np.where(np.abs(value) > largest, np.copysign(np.inf, value), value)
    value[list(nan)] = np.nan
    return value


MEANING = {name: meaning(name) for name in NAMES}


def nearest(name: str, values: Any) -> np.ndarray:
    """Return the codes of the nearest numbers, ties to the even code, one after the other."""
    table, (mantissa, _, largest, nan) = MEANING[name], FORMATS[name]
    signed = mantissa > 0
    numbers = [(v, c) for c, v in enumerate(table[: 128 if signed else 256]) if np.isfinite(v)]
    step = numbers[-1][0] - numbers[-2][0]
    beyond = largest + step / 2 if signed else 1.5 * largest
    codes = []
    for x in np.asarray(values, np.float64).ravel().tolist():
        sign = 0x80 if signed and math.copysign(1, x) < 0 else 0
        size = abs(x)
        if math.isnan(x):
            codes.append(0x7F | sign if name in NAMES[:2] else nan[0])
        elif size >= beyond:
            over = {"float8_e4m3fn": 0x7E | sign, "float8_e5m2": 0x7C | sign}
            codes.append(over.get(name, nan[0]))
        else:
            if not signed and 2.0**-127 < size < 2.0**-126:
                size = 2.0**-126  # PyTorch's rounding has no halfway there
            away = [(abs(v - size), tie(name, c), c) for v, c in numbers]
            code = min(away)[2]
            codes.append(code | sign if code or name in NAMES[:2] else 0)
    return np.array(codes, np.uint8)


def tie(name: str, code: int) -> int:
    """Return the rank of a code among two that are as near: 0 for the one that is taken."""
    if name != "float8_e8m0fnu":
        return code & 1
    return -code if code > 1 else code  # up, but between the least two


def x_type(name: str) -> Any:
    return getattr(torch, name)


def codes(t: Any) -> list[int]:
    return t.view(torch.uint8).tolist()


def same(got: Any, want: Any) -> None:
    np.testing.assert_array_equal(np.array(got, np.float64), np.array(want, np.float64))
    signs = np.signbit(np.array(got)) == np.signbit(np.array(want))
    assert np.all(signs | np.isnan(np.array(want)))


def each_type(function: Any) -> Any:
    return pytest.mark.parametrize("name", NAMES)(function)


def every_code(name: str) -> Any:
    return torch.arange(256, dtype=torch.uint8).view(getattr(torch, name))


@each_type
def test_codes_mean_what_the_format_defines(name):
    x = every_code(name)
    assert x.dtype is getattr(torch, name) and x.shape == (256,)
    same(x.tolist(), MEANING[name])
    same(x.float().tolist(), MEANING[name])
    same(x.double()[::3].tolist(), MEANING[name][::3])
    same(x.reshape(16, 16).t().float().tolist(), MEANING[name].reshape(16, 16).T)
    same([x[i].item() for i in range(0, 256, 5)], MEANING[name][::5])
    assert codes(x) == list(range(256))


@each_type
def test_every_number_becomes_its_own_code_again(name):
    known = ~np.isnan(MEANING[name])
    for wide in (torch.float32, torch.float64, torch.bfloat16):
        back = every_code(name).to(wide).to(x_type(name))
        assert np.array_equal(np.array(codes(back))[known], np.arange(256)[known])
        assert np.isnan(back.tolist())[~known].all()
    if name in SIGNED:
        half = every_code(name).half()
        same(half.tolist(), MEANING[name].astype(np.float16))
        assert np.array_equal(np.array(codes(half.to(x_type(name))))[known], np.arange(256)[known])


def edges(name: str) -> np.ndarray:
    """Return numbers at, beside and halfway between those of a format, and far outside."""
    value = MEANING[name]
    value = np.unique(value[np.isfinite(value)])
    half = (value[1:] + value[:-1]) / 2
    top = FORMATS[name][2]
    beyond = np.array([top * 1.02, top * 1.0625, top * 1.125, top * 1.2, 1.5 * top, 2 * top, 1e30])
    all_ = np.concatenate([value, half, beyond, -beyond, [1e-30, -1e-30, 0.0, -0.0]])
    all_ = all_[np.abs(all_) <= np.finfo(np.float32).max].astype(np.float32)
    near = [np.nextafter(all_, np.float32(w)) for w in (-np.inf, np.inf)]
    special = np.array([np.inf, -np.inf, np.nan, 1e-45, -1e-45, 3e38], np.float32)
    return np.concatenate([all_, *near, special])


@each_type
def test_rounding_is_to_the_nearest_and_to_the_even_code_from_halfway(name):
    x = edges(name)
    want = nearest(name, x)
    dtype = x_type(name)
    assert codes(torch.from_numpy(x).to(dtype)) == want.tolist()
    spread = torch.from_numpy(np.repeat(x, 3))[::3]
    assert codes(spread.to(dtype)) == want.tolist()
    assert codes(torch.from_numpy(x.astype(np.float64)).to(dtype)) == want.tolist()
    into = torch.zeros(2 * len(x), dtype=dtype)
    into[1::2].copy_(torch.from_numpy(x))
    assert codes(into[1::2].contiguous()) == want.tolist()
    for kind in (np.float16, np.int64, np.int8):
        with np.errstate(all="ignore"):
            y = x[np.abs(x) < 60000].astype(kind)
        assert codes(torch.from_numpy(y).to(dtype)) == nearest(name, y).tolist()
    bits = (x.view(np.uint32) >> 16).astype(np.uint16).view(np.int16)
    y = torch.from_numpy(bits).view(torch.bfloat16)
    assert codes(y.to(dtype)) == nearest(name, y.float().numpy()).tolist()


def test_rounding_of_float64_goes_by_way_of_float32():
    just_above = 1.0625 + 2.0**-40  # a tie in float32
    assert torch.tensor([just_above], dtype=torch.float64).to(torch.float8_e4m3fn).item() == 1.0


@pytest.mark.parametrize(
    ("name", "want"),
    [
        ("float8_e4m3fn", [0x7E, 0x7E, 0x7E, 0xFE, 0x7F, 0x80, 0x01, 0xFE]),
        ("float8_e5m2", [0x5F, 0x7C, 0x7C, 0xFC, 0x7F, 0x80, 0x18, 0xFC]),
        ("float8_e4m3fnuz", [0x80, 0x80, 0x80, 0x80, 0x80, 0x00, 0x02, 0x80]),
        ("float8_e5m2fnuz", [0x63, 0x80, 0x80, 0x80, 0x80, 0x00, 0x1C, 0x80]),
        ("float8_e8m0fnu", [0x88, 0x8F, 0xFF, 0xFF, 0xFF, 0x00, 0x76, 0x8F]),
    ],
)
def test_special_numbers(name, want):
    x = torch.tensor([464.0, 65536.0, math.inf, -math.inf, math.nan, -0.0, 2.0**-9, -65536.0])
    assert codes(x.to(x_type(name))) == want


@each_type
@pytest.mark.parametrize("other", OTHERS)
def test_conversions_to_other_types(name, other):
    value = MEANING[name]
    fits = np.isfinite(value) & (np.abs(value) < 100) & ((value >= 0) | (other != "uint8"))
    x = every_code(name)[torch.from_numpy(fits)]
    with np.errstate(all="ignore"):
        want = value[fits].astype(other)
    got = x.to(getattr(torch, other))
    assert got.tolist() == want.tolist()
    assert torch.zeros(len(want), dtype=got.dtype).copy_(x).tolist() == want.tolist()


@each_type
def test_conversions_to_bool_complex_and_each_other(name):
    x, value = every_code(name), MEANING[name]
    assert x.bool().tolist() == (value != 0).tolist()
    same(x.cfloat().real.tolist(), value)
    assert x.cfloat().imag.tolist() == [0.0] * 256
    for other in NAMES:
        with np.errstate(all="ignore"):
            got, want = codes(x.to(x_type(other))), nearest(other, value)
        known = ~np.isnan(MEANING[other][want])
        assert np.array_equal(np.array(got)[known], want[known])
    assert torch.tensor([True, False]).to(x_type(name)).float().tolist()[0] == 1.0
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert torch.tensor([2 + 1j]).to(x_type(name)).tolist() == [2.0]


@each_type
def test_making(name):
    dtype = x_type(name)
    zero = 0.0 if name in SIGNED else 2.0**-127  # the number of code 0
    assert torch.zeros(2, dtype=dtype).tolist() == [zero] * 2
    assert torch.ones(2, 1, dtype=dtype).tolist() == [[1.0]] * 2
    assert torch.full((2,), 2.0, dtype=dtype).tolist() == [2.0] * 2
    assert torch.empty(2, 3, dtype=dtype).shape == (2, 3)
    assert torch.tensor([1, 2.0, True], dtype=dtype).tolist() == [1.0, 2.0, 1.0]
    x = torch.tensor([[1.0, 2.0], [4.0, 0.5]], dtype=dtype)
    assert x.tolist() == [[1.0, 2.0], [4.0, 0.5]]
    assert torch.empty_like(x).dtype is dtype and torch.zeros_like(x).tolist() == [[zero] * 2] * 2
    assert x.new_full((1,), 4.0).tolist() == [4.0] and x.new_tensor([2]).dtype is dtype
    assert torch.ones(2).to(x).dtype is dtype and torch.ones(2).type_as(x).dtype is dtype
    assert x.clone().fill_(2.0).tolist() == [[2.0] * 2] * 2
    assert x.clone().zero_().tolist() == [[zero] * 2] * 2
    assert float(x[0, 1]) == 2.0 and int(x[1, 0]) == 4 and bool(x[1, 1]) is True
    assert torch.frombuffer(bytearray([1, 2]), dtype=dtype).view(torch.uint8).tolist() == [1, 2]


@each_type
def test_facts(name):
    dtype = x_type(name)
    assert dtype.itemsize == 1 and dtype.is_floating_point and not dtype.is_complex
    assert dtype.is_signed is (name in SIGNED)
    assert repr(dtype) == f"torch.{name}" and pickle.loads(pickle.dumps(dtype)) is dtype
    assert copy.deepcopy(dtype) is dtype and dtype.to_real() is dtype
    x = torch.ones(3, dtype=dtype)
    assert x.element_size() == 1 and x.is_floating_point() and x.nbytes == 3
    assert x.type() == f"torch.F{name[1:]}Tensor"
    with pytest.raises(RuntimeError):
        dtype.to_complex()
    with pytest.raises(TypeError, match=name):
        torch.iinfo(dtype)
    with pytest.raises(TypeError, match=f"Got unsupported ScalarType F{name[1:]}"):
        x.numpy()
    with pytest.raises(TypeError, match="Got unsupported ScalarType"):
        np.asarray(x)


# bits, eps, max, min, smallest normal: as PyTorch 2.13 says
LIMITS = {
    "float8_e4m3fn": (8, 0.125, 448.0, -448.0, 0.015625),
    "float8_e4m3fnuz": (8, 0.125, 240.0, -240.0, 0.0078125),
    "float8_e5m2": (8, 0.25, 57344.0, -57344.0, 6.103515625e-05),
    "float8_e5m2fnuz": (8, 0.125, 57344.0, -57344.0, 3.0517578125e-05),
    "float8_e8m0fnu": (
        8, 1.0, 1.7014118346046923e38, 5.877471754111438e-39, 5.877471754111438e-39
    ),
    "complex32": (16, 0.0009765625, 65504.0, -65504.0, 6.103515625e-05),
}  # fmt: skip


@pytest.mark.parametrize("name", LIMITS)
def test_limits(name):
    info = torch.finfo(getattr(torch, name))
    assert (info.bits, info.eps, info.max, info.min, info.tiny) == LIMITS[name]
    assert info.smallest_normal == info.tiny


@each_type
def test_promotion(name):
    dtype = x_type(name)
    assert torch.promote_types(dtype, dtype) is dtype
    x = torch.ones(2, dtype=dtype)
    others = {"bool", "uint8", "int64", "uint16", "float16", "float32", "complex64", *NAMES}
    for other in sorted(others - {name}):
        o = getattr(torch, other)
        for pair in ((dtype, o), (o, dtype)):
            with pytest.raises(RuntimeError, match="Promotion for Float8 Types is not supported"):
                torch.promote_types(*pair)
        y = torch.ones(2, dtype=o)
        for f in (torch.eq, torch.add, torch.result_type, lambda a, b: torch.cat([a, b])):
            with pytest.raises(RuntimeError, match="Promotion for Float8 Types is not supported"):
                f(x, y)
    assert torch.result_type(x, 1) is dtype and torch.result_type(x, 1.0) is dtype
    assert torch.result_type(x, torch.tensor(1.0)) is dtype


@each_type
def test_memory_is_read_as_other_types(name):
    x = every_code(name)
    assert x.view(torch.uint8).data_ptr() == x.data_ptr()
    assert x.view(torch.int8).tolist() == np.arange(256, dtype=np.uint8).view(np.int8).tolist()
    wide = x.view(torch.int32)
    assert wide.shape == (64,) and codes(wide.view(x.dtype)) == list(range(256))
    assert codes(torch.ones(4, dtype=torch.bfloat16).view(x.dtype)) == [0x80, 0x3F] * 4


@each_type
def test_elements_are_moved_as_they_are(name):
    t, a = every_code(name), np.arange(256)
    m, n = t.reshape(16, 16), a.reshape(16, 16)
    index, mask = np.array([3, 0, -1, 255]), a % 3 == 1
    moved = torch.from_numpy(mask)
    pairs = [
        (t[2:8:3], a[2:8:3]),
        (t[torch.from_numpy(index)], a[index]),
        (m[:, torch.tensor([4, 0])], n[:, [4, 0]]),
        (t[moved], a[mask]),
        (t.masked_select(moved), a[mask]),
        (t.index_select(0, torch.tensor([1, 9])), a[[1, 9]]),
        (t.gather(0, torch.tensor([9, 8])), a[[9, 8]]),
        (t.take(torch.tensor([9, 8])), a[[9, 8]]),
        (torch.nn.functional.embedding(torch.tensor([9, 8]), m), n[[9, 8]]),
        (m.t().contiguous(), n.T),
        (m.t().clone().contiguous(), n.T),
        (t.flip(0), a[::-1]),
        (t.roll(3), np.roll(a, 3)),
        (m.repeat(2, 1), np.tile(n, (2, 1))),
        (t.expand(2, 256).contiguous(), np.broadcast_to(a, (2, 256))),
        (torch.cat([t, t[:2]]), np.concatenate([a, a[:2]])),
        (torch.stack([t, t], 1), np.stack([a, a], 1)),
        (torch.cat(list(t.split(30))), a),
        (torch.stack(m.unbind(1), 1), n),
        (copy.deepcopy(t), a),
        (torch.empty(256, dtype=t.dtype).copy_(t), a),
        (t.data.detach(), a),
        (torch.utils.dlpack.from_dlpack(t), a),
    ]
    for i, (got, want) in enumerate(pairs):
        assert got.dtype is t.dtype, i
        assert codes(got) == want.tolist(), i


@each_type
def test_assignment(name):
    dtype = x_type(name)
    rows = torch.tensor([0, 7])
    keys = [slice(1, 4), 2, (rows,), torch.arange(10) > 6, ...]
    for key, value in itertools.product(keys, [4.0, 4, torch.tensor(4.0, dtype=dtype)]):
        t, want = torch.ones(10, dtype=dtype), np.ones(10)
        t[key] = value
        k = tuple(r.numpy() for r in key) if isinstance(key, tuple) else key
        want[k.numpy() if isinstance(k, torch.Tensor) else k] = 4.0
        assert t.tolist() == want.tolist(), (key, value)
    t = torch.ones(10, dtype=dtype)
    t[rows] = torch.tensor([2.0, 8.0], dtype=dtype)
    assert t[rows].tolist() == [2.0, 8.0]
    assert t.index_put((rows,), torch.tensor(4.0, dtype=dtype))[rows].tolist() == [4.0] * 2
    assert t.masked_fill(torch.arange(10) == 1, 16.0)[:3].tolist() == [2.0, 16.0, 1.0]


@each_type
def test_comparisons_that_are_defined(name):
    t, value = every_code(name), MEANING[name]
    other = t.roll(1)
    assert (t == t).tolist() == (value == value).tolist()
    assert (t != other).tolist() == (value != np.roll(value, 1)).tolist()
    assert (t == 1.0).tolist() == (value == 1.0).tolist()
    assert t.isnan().tolist() == np.isnan(value).tolist()
    assert torch.equal(t[:64], t[:64].clone())
    assert t.isinf().tolist() == np.isinf(value).tolist()
    assert t.isfinite().tolist() == np.isfinite(value).tolist()
    torch.testing.assert_close(t, t, equal_nan=True)
    with pytest.raises(AssertionError, match="Mismatched elements"):
        torch.testing.assert_close(t, other, equal_nan=True)
    # A number is rounded to the type first.
    near = 1.0 + 2.0**-6
    assert (torch.ones(2, dtype=t.dtype) == near).tolist() == [True, True]


REFUSED = {
    "add": lambda x: x + x,
    "add_number": lambda x: x + 1,
    "add_": lambda x: x.add_(1),
    "div": lambda x: x / x,
    "neg": lambda x: -x,
    "pow": lambda x: x**2,
    "exp": lambda x: x.exp(),
    "relu": lambda x: x.relu(),
    "clamp": lambda x: x.clamp(0, 1),
    "maximum": lambda x: torch.maximum(x, x),
    "sum": lambda x: x.sum(),
    "mean": lambda x: x.mean(),
    "max": lambda x: x.max(),
    "argmax": lambda x: x.argmax(),
    "cumsum": lambda x: x.cumsum(0),
    "sort": lambda x: x.sort(),
    "argsort": lambda x: x.argsort(),
    "topk": lambda x: x.topk(1),
    "unique": lambda x: x.unique(),
    "softmax": lambda x: x.softmax(0),
    "matmul": lambda x: x @ x,
    "linear": lambda x: torch.nn.functional.linear(x.reshape(1, 4), x.reshape(1, 4)),
    "conv": lambda x: torch.nn.functional.conv1d(x.reshape(1, 1, 4), x.reshape(1, 1, 4)),
    "index_add": lambda x: x.index_add(0, torch.tensor([0]), x[:1]),
    "scatter_add": lambda x: x.scatter_add(0, torch.tensor([0]), x[:1]),
    "arange": lambda x: torch.arange(3, dtype=x.dtype),
    "linspace": lambda x: torch.linspace(0, 1, 3, dtype=x.dtype),
    "rand": lambda x: torch.rand(2, dtype=x.dtype),
    "randn": lambda x: torch.randn(2, dtype=x.dtype),
    "randint": lambda x: torch.randint(0, 2, (3,), dtype=x.dtype),
    "uniform_": lambda x: x.uniform_(),
    "dropout": lambda x: torch.nn.functional.dropout(x),
    "lerp": lambda x: torch.lerp(x, x, 0.5),
    "layer_norm": lambda x: torch.nn.functional.layer_norm(x, (4,)),
    "svd": lambda x: torch.linalg.svd(x.reshape(2, 2)),
    "fft": lambda x: torch.fft.fft(x),
}


@each_type
@pytest.mark.parametrize("what", REFUSED)
def test_ops_that_do_not_compute_with_them_say_so(name, what):
    with pytest.raises((NotImplementedError, RuntimeError)):
        REFUSED[what](torch.tensor([1.0, 2.0, 4.0, 0.5], dtype=x_type(name)))


@each_type
def test_refusals_name_the_operator_the_type_and_what_to_do(name):
    x = torch.ones(2, dtype=x_type(name))
    for op, call in (("add_cpu", lambda: x + x), ("sum", x.sum)):
        told = rf"\"{op}\" not implemented for 'F{name[1:]}'.*\.to\(torch\.float32\)"
        with pytest.raises(NotImplementedError, match=told):
            call()


@each_type
def test_checkpoints(name):
    dtype = x_type(name)
    t = every_code(name)
    file = io.BytesIO()
    torch.save({"t": t, "part": t[3:], "dtype": dtype}, file)
    file.seek(0)
    back = torch.load(file)
    assert back["t"].dtype is dtype is back["dtype"]
    assert codes(back["t"]) == list(range(256)) and codes(back["part"]) == list(range(3, 256))
    back["t"][4] = 2.0
    assert back["part"][1].item() == 2.0
    whole = pickle.loads(pickle.dumps(t))
    assert whole.dtype is dtype and codes(whole) == list(range(256))
    names = io.BytesIO()
    torch.save([dtype, dtype, torch.float32], names)
    names.seek(0)
    assert torch.load(names) == [dtype, dtype, torch.float32]


def test_files_name_what_pytorch_names():
    file = io.BytesIO()
    torch.save(torch.ones(3, dtype=torch.float8_e5m2), file)
    with zipfile.ZipFile(file) as archive:
        (path,) = [n for n in archive.namelist() if n.endswith("data.pkl")]
        data = archive.read(path)
    found = [arg for op, arg, _ in pickletools.genops(data) if op.name == "GLOBAL"]
    assert "torch._utils _rebuild_tensor_v3" in found and "torch float8_e5m2" in found
    assert "torch.storage UntypedStorage" in found


@each_type
def test_modules_keep_weights_in_them(name):
    layer = torch.nn.Linear(2, 2)
    layer.weight.data = torch.tensor([[1.0, 2.0], [4.0, 0.5]])
    state = {k: v.to(x_type(name)) for k, v in layer.state_dict().items()}
    other = torch.nn.Linear(2, 2)
    other.load_state_dict(state)
    assert other.weight.dtype is torch.float32
    assert other.weight.tolist() == [[1.0, 2.0], [4.0, 0.5]]
    layer.to(x_type(name))
    assert layer.weight.dtype is x_type(name)


@pytest.mark.parametrize("name", SIGNED)
def test_a_conversion_has_a_gradient(name):
    w = torch.tensor([1.0, 2.5, 3.0], requires_grad=True)
    y = w.to(x_type(name))
    assert y.grad_fn.name() == "ToCopyBackward0" and y.requires_grad
    (y.float() * torch.tensor([3.0, 0.3, 7.0])).sum().backward()
    want = torch.tensor([3.0, 0.3, 7.0]).to(x_type(name)).float()
    assert w.grad.dtype is torch.float32 and w.grad.tolist() == want.tolist()
    z = torch.tensor([1.0], dtype=x_type(name)).requires_grad_()
    (z.float() * 2).sum().backward()
    assert z.grad.dtype is z.dtype and z.grad.tolist() == [2.0]


def test_the_gpu_refuses_them():
    if not torch.wgpu.is_available():
        pytest.skip("no adapter")
    for name in (*NAMES, "complex32"):
        x = torch.ones(3, dtype=getattr(torch, name))
        with pytest.raises(NotImplementedError, match="CPU only"):
            x.to("wgpu")
        with pytest.raises(NotImplementedError, match="CPU only"):
            torch.ones(3, device="wgpu").to(x.dtype)
        if name != "complex32":
            assert x.to("wgpu", torch.float32).cpu().tolist() == [1.0] * 3


@each_type
def test_products_are_rounded_once(name):
    rng = np.random.default_rng(5)
    value = MEANING[name]
    few = np.flatnonzero(np.isfinite(value) & (np.abs(value) < 40))
    a, b = rng.choice(few, 500), rng.choice(few, 500)
    x, y = (torch.from_numpy(c.astype(np.uint8)).view(x_type(name)) for c in (a, b))
    assert codes(x * y) == nearest(name, np.float32(value[a] * value[b])).tolist()
    assert x.abs().tolist() == np.abs(value[a]).tolist()


@each_type
def test_reductions_into_another_type(name):
    x = torch.tensor([[1.0, 2.0, 0.5], [4.0, 8.0, 1.0]], dtype=x_type(name))
    assert x.sum(dtype=torch.float32).item() == 16.5
    assert x.sum(1, dtype=torch.float64).tolist() == [3.5, 13.0]
    assert x.any().item() is True and x.all(1).tolist() == [True, True]
    zero = torch.zeros(2, dtype=x.dtype)
    assert zero.any().item() is (name == "float8_e8m0fnu")  # its code 0 is a number


@each_type
def test_numbers_that_do_not_fit_are_refused(name):
    dtype, (_, _, largest, _) = x_type(name), FORMATS[name]
    assert torch.full((2,), largest, dtype=dtype).tolist() == [largest] * 2
    assert np.isnan(torch.full((2,), math.nan, dtype=dtype).tolist()).all()
    bad = [largest * 1.01, -largest * 1.01]
    bad += [math.inf, -math.inf] if name != "float8_e5m2" else []
    bad += [0.0, -1.0] if name == "float8_e8m0fnu" else []
    for value in bad:
        for call in (
            lambda v: torch.full((2,), v, dtype=dtype),
            lambda v: torch.ones(2, dtype=dtype).fill_(v),
        ):
            with pytest.raises(RuntimeError, match=rf"c10::F{name[1:]} without overflow"):
                call(value)


@pytest.mark.parametrize(
    ("name", "values", "want"),
    [
        ("float8_e4m3fn", [1.0, 2.0, 0.5, math.nan], "[1.0000, 2.0000, 0.5000,    nan]"),
        ("float8_e5m2", [1.0, math.inf], "[1., inf]"),
        (
            "float8_e4m3fnuz",
            [[0.1, 100.0], [3.0, 4.0]],
            "[[ 0.1016, 96.0000],\n        [ 3.0000,  4.0000]]",
        ),
        ("float8_e5m2fnuz", 1.5, "1.5000"),
        ("float8_e8m0fnu", [1.0, 2.0, 0.5, 3.0], "[1.0000, 2.0000, 0.5000, 4.0000]"),
        ("float8_e4m3fn", [], "[]"),
        ("float8_e4m3fn", [1.0] * 1500, "[1., 1., 1.,  ..., 1., 1., 1.]"),
    ],
)
def test_printing(name, values, want):
    x = torch.tensor(values, dtype=x_type(name))
    assert repr(x) == f"tensor({want}, dtype=torch.{name})"


def test_printing_of_long_rows_breaks_before_the_type():
    x = torch.tensor([448.0, 1e-3, 0.0, -1.0], dtype=torch.float8_e4m3fn)
    want = "tensor([ 4.4800e+02,  1.9531e-03,  0.0000e+00, -1.0000e+00],"
    assert repr(x) == f"{want}\n       dtype=torch.float8_e4m3fn)"
    y = torch.tensor([1.0, 2.5, 1000.0], requires_grad=True).to(torch.float8_e4m3fn)
    want = "tensor([  1.0000,   2.5000, 448.0000], dtype=torch.float8_e4m3fn,"
    assert repr(y) == f"{want}\n       grad_fn=<ToCopyBackward0>)"
