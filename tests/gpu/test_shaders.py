"""Each shader file through wgpu-py against NumPy: none of the project's Rust takes part.

A kernel's source is the numbers it knows by name, the prelude, the prelude of the type it computes
in, what it uses, its file and, for pointwise bodies, the math file and a tail (see
shaders/README.md).
"""

from __future__ import annotations

import math
import re
from functools import cache
from pathlib import Path

import numpy as np
import pytest

wgpu = pytest.importorskip("wgpu")
special = pytest.importorskip("scipy.special")

SHADERS = Path(__file__).parents[2] / "shaders"
BOOL, U8, I8, I16, I32, I64, F16, BF16, F32, F64, C64, C128 = range(12)
# What Rust hands to every text and to some: its own constants and the numbers of its enumerations.
COMMON = {"WORKGROUP": 256, "BOOL": BOOL, "U8": U8, "I8": I8, "I16": I16, "I32": I32, "I64": I64,
          "F16": F16, "BF16": BF16, "F32": F32, "F64": F64, "C64": C64, "C128": C128}  # fmt: skip
NUMBERS = {
    "reduce": {"SUM": 0, "PROD": 1, "MAX": 2, "MIN": 3, "ANY": 4, "ALL": 5,
               "KEEP": 0, "SQUARE": 1, "MAGNITUDE": 2, "TRUTH": 3, "PRESENT": 4},
    "segment_reduce": {"SUM": 0, "MEAN": 1, "MAX": 2, "MIN": 3, "PROD": 4},
    "scatter": {"SET": 0, "ADD": 1, "MULTIPLY": 2, "MAX": 3, "MIN": 4},
    "grid_taps": {"LINEAR": 0, "NEAREST": 1, "CUBIC": 2, "ZEROS": 0, "EDGE": 1, "REFLECT": 2},
    "put_runs": {"SET": 0, "ADD": 1, "MULTIPLY": 2, "MAX": 3, "MIN": 4},
    "scan": {"SUM": 0, "PROD": 1, "MAX": 2, "MIN": 3, "LAST": 4, "BLEND": 5, "OWN": 6, "BEFORE": 7,
             "WHOLE": 0, "PARTS": 1, "TOTALS": 2, "APPLY": 3},
    "sort_digit": {"THREADS": 128, "ITEMS": 8},
    "sgd": {"SLOTS": 8},
    "embedding": {"MOST": 1024},
    "rnn": {"TANH": 0, "RELU": 1, "GRU": 2, "LSTM": 3},
    "rnn_backward": {"TANH": 0, "RELU": 1, "GRU": 2, "LSTM": 3},
    "adam": {"SLOTS": 8},
    "list_norm": {"SLOTS": 8, "SUM": 0, "SQUARES": 1, "LARGEST": 2},
    "list_scale": {"SLOTS": 8},
    **{name: {"SKIPPED": 0xFFFFFFFF} for name in ("index_offsets", "take", "put")},
}  # fmt: skip
FORMATS = {
    "bool": BOOL, "uint8": U8, "int8": I8, "int16": I16, "int32": I32, "int64": I64,
    "float16": F16, "float32": F32, "float64": F64,
}  # fmt: skip
# Files that are parts of others.
PARTS = {"math_c64", "math_f32", "math_f64", "math_int", "math_special", "math_polynomials"}
PARTS |= {
    "math_c128",
    "math_complex",
    "math_f64_more",
    "philox",
    "philox_floats",
    "philox_reject",
    "implicit",
}
PARTS |= {path.stem for path in SHADERS.glob("prelude*.wgsl")}


@cache
def device():
    """Returns a device of the default adapter, or skips."""
    try:
        adapter = wgpu.gpu.request_adapter_sync()
    except Exception as e:  # noqa: BLE001
        pytest.skip(f"no adapter: {e}")
    if "GL" in adapter.info["backend_type"]:
        pytest.skip(
            "the library takes Vulkan, Metal and DX12; OpenGL rounds and orders NaN its own way"
        )
    wanted = {"shader-int64", "shader-f64"} & set(adapter.features)
    return adapter.request_device_sync(required_features=sorted(wanted))


def needs(acc):
    feature = {"i64": "shader-int64", "f64": "shader-f64", "c128": "shader-f64"}.get(acc)
    if feature and feature not in device().features:
        pytest.skip(f"the adapter has no {feature}")


def source(file, acc, tail="", constants=None):
    text = {path.stem: path.read_text() for path in SHADERS.glob("*.wgsl")}
    known = COMMON | NUMBERS.get(file, {})
    given = dict(constants or {})

    def const(line):
        name, kind, default = line.groups()
        value = given.pop(name, None)
        if value is None:
            return f"const {name}: {kind} = {default};"
        return f"const {name}: {kind} = " + (
            f"{value}u;" if kind == "u32" else f"{bool(value)};".lower()
        )

    declared = re.search(r"^override Y: u32 = (\w+);", text[file], re.MULTILINE)
    y = (constants or {}).get("Y", COMMON.get(declared.group(1)) if declared else None)
    own = re.sub(r"^override (\w+): (\w+) = (.*?);", const, text[file], flags=re.MULTILINE)
    assert not given, f"{file} does not take {given}"
    store = "lanes"
    together = {"PAIRS", "WORDS"} & {name for name, value in (constants or {}).items() if value}
    if y in (I32, I64, F32, F64, C64, C128) or together:
        store, own = "store", own.replace(" y: array<atomic<u32>>", " y: array<u32>")
    names = ["prelude", *["prelude_long"] * (acc in ("f64", "c128")), f"prelude_{acc}"]
    names += ["prelude_real"] * acc.startswith("f") + ["prelude_pair"] * acc.startswith("c")
    uses = re.search(r"^// uses (.*)$", own, re.MULTILINE)
    parts = uses.group(1).split(", ") if uses else []
    names += [f"prelude_{store if p == 'store' else p}" for p in parts if p != "math"]
    if tail or "math" in parts:
        names.append("math_int" if acc in ("i32", "i64") else f"math_{acc}")
    if names[-1] == "math_f64":
        names += ["math_f64_more", "math_special", "math_polynomials"]
    if names[-1] in ("math_c64", "math_c128"):
        text["real"] = text["math_f32" if acc == "c64" else "math_f64"].replace("m_", "r_")
        names += ["real", "math_complex"]
    numbers = "".join(f"const {name}: u32 = {n}u;\n" for name, n in known.items())
    return numbers + "".join(text[n] for n in names) + own + tail


def words(x):
    """Returns the bytes of an array, padded to whole words."""
    raw = np.ascontiguousarray(x).tobytes()
    return raw + bytes(-len(raw) % 4)


def f32(v):
    """Returns the bits of a float32 as an integer."""
    return int(np.float32(v).view(np.uint32))


def run(file, acc, arrays, params, groups, tail="", entry="main", **constants):
    """Runs a kernel over arrays in the order of its bindings; returns them all afterwards."""
    dev = device()
    code = source(file, acc, tail, constants)
    usage = wgpu.BufferUsage
    flat = np.array(params, dtype=np.int64).astype(np.uint32).tobytes()
    buffers = [dev.create_buffer_with_data(data=flat.ljust(1024, b"\0"), usage=usage.UNIFORM)]
    storage = usage.STORAGE | usage.COPY_SRC
    buffers += [dev.create_buffer_with_data(data=words(a), usage=storage) for a in arrays]
    declared = re.findall(r"@binding\((\d+)\) var<([a-z_, ]+)>", code)
    types = {"uniform": "uniform", "storage, read": "read-only-storage"}
    kinds = {int(b): types.get(kind, "storage") for b, kind in declared}
    layout = dev.create_bind_group_layout(
        entries=[
            {
                "binding": b,
                "visibility": wgpu.ShaderStage.COMPUTE,
                "buffer": {"type": kinds[b]},
            }
            for b in range(len(buffers))
        ]
    )
    pipeline = dev.create_compute_pipeline(
        layout=dev.create_pipeline_layout(bind_group_layouts=[layout]),
        compute={
            "module": dev.create_shader_module(code=code),
            "entry_point": entry,
        },
    )
    bound = [
        {"binding": i, "resource": {"buffer": b, "offset": 0, "size": b.size}}
        for i, b in enumerate(buffers)
    ]
    group = dev.create_bind_group(layout=layout, entries=bound)
    encoder = dev.create_command_encoder()
    compute = encoder.begin_compute_pass()
    compute.set_pipeline(pipeline)
    compute.set_bind_group(0, group)
    compute.dispatch_workgroups(*groups)
    compute.end()
    dev.queue.submit([encoder.finish()])
    out = []
    for a, b in zip(arrays, buffers[1:]):
        raw = bytes(dev.queue.read_buffer(b))[: a.nbytes]
        out.append(np.frombuffer(raw, dtype=a.dtype).reshape(a.shape))
    return out


def rng(seed=0):
    return np.random.default_rng(seed)


def floats(*shape, seed=0):
    return rng(seed).standard_normal(shape).astype(np.float32)


def fmt(x):
    return {"complex64": C64, "complex128": C128}.get(x.dtype.name) or FORMATS[x.dtype.name]


def dims(sizes, *strides):
    """Returns sizes and strides as eight words each, innermost first."""
    out = []
    for part in (sizes, *strides):
        out += [*part[::-1], *[0] * (8 - len(part))]
    return out


def strided(sizes, *strides):
    """Returns sizes, and for each dimension a vector of strides, innermost first."""
    vectors = np.zeros((8, 4), int)
    vectors[: len(sizes), : len(strides)] = np.transpose(strides)[::-1]
    return [*dims(sizes), *vectors.ravel()]


def close(got, want, tolerance=2e-6):
    np.testing.assert_allclose(got, want, rtol=tolerance, atol=tolerance)


def pointwise(op, acc, out, inputs, scalars=()):
    """Runs an elementwise body over contiguous arrays."""
    n = out.size
    args = ", ".join(f"load{k}(i)" for k in range(len(inputs)))
    tail = f"{op}\nfn value(i: u32) -> Acc {{ return op({args}); }}\n"
    params = [n, 0, 0, 0, *[0] * 8, *[1] * 8, *scalars, *[0] * (16 - len(scalars))]
    formats = {f"X{k}": fmt(x) for k, x in enumerate(inputs)}
    lanes = 4 // min(4, out.itemsize)
    groups = (-(-n // lanes // 256) + 1, 1, 1)
    return run("pointwise", acc, [out, *inputs], params, groups, tail, Y=fmt(out), **formats)[0]


def test_every_file_has_a_test():
    text = "".join(p.read_text() for p in Path(__file__).parent.glob("test_shader*.py"))
    # What wgpu-py's adapters cannot run, and the tests that do where there is one that can.
    elsewhere = {
        "matmul_cooperative": "test_wgpu_cooperative.py",
        "conv_cooperative": "test_wgpu_cooperative_conv.py",
        "words": "test_wgpu_without.py",
    }
    for path in SHADERS.glob("*.wgsl"):
        tested = path.stem in PARTS or f'"{path.stem}"' in text
        assert tested or (Path(__file__).parent / elsewhere[path.stem]).exists(), path.name


@pytest.mark.parametrize(
    ("kind", "lanes", "parts"), [("u1", 4, 1), ("u2", 2, 1), ("u4", 1, 1), ("u8", 1, 2)]
)
def test_transpose_moves_squares(kind, lanes, parts):
    random = np.random.default_rng(3)
    side = 64 if lanes > 1 else 32
    # Planes beyond squares, whose order is turned round too.
    planes, rows, columns = 3, side + 8, 2 * side + 4
    x = random.integers(0, 200, (planes, rows, columns)).astype(kind)
    across, along = -(-columns // side), -(-rows // side)
    for whole in (0, 1):
        plane, squares = rows * columns, across * along
        params = [columns, rows, across, squares, planes * squares, 0, (planes - 1) * plane]
        params += [columns, rows, 0, 0, 0, planes, *[0] * 7, plane, *[0] * 7]
        params += [(1 << 32) - plane, *[0] * 7]
        sizes = {"LANES": lanes, "PARTS": parts, "SIDE": side, "WHOLE": whole, "DIMS": 1}
        y, _ = run("transpose", "i32", [np.zeros_like(x), x], params, (params[4], 1, 1), **sizes)
        want = x[::-1].transpose(0, 2, 1)
        np.testing.assert_array_equal(y.reshape(want.shape), want)


def test_peak_copies_and_multiplies():
    x = floats(300, 4)
    y, _ = run("peak", "f32", [np.zeros_like(x), x], [300, 0], (2, 1, 1), entry="copy")
    np.testing.assert_array_equal(y, x)
    x = np.float32([[-0.25, 0.0, 0.125, 0.25], [0.5, 1, 2, 4]])
    y, _ = run(
        "peak", "f32", [np.zeros((3, 4), np.float32), x], [3, 9], (1, 1, 1), entry="multiply"
    )
    a, b = x[0].astype(float) + 0.5, x[1] + np.arange(3.0)[:, None]
    want = np.zeros((3, 4))
    for start in range(8):
        r = b + start
        for _ in range(9):
            r = r * a + b
        want += r
    close(y, want, 1e-5)


# ---- what drivers do not do as IEEE 754 says ----------------------------------------------------

ENDS = [0, 1, 2, 7, 100, 3e38, 3.4028235e38, 2.0**126, 2.0**127, 2.0**-126, 2.0**-127, 1e-40]
ENDS += [1e-45, 3 * 2.0**-149, 1.1754942e-38, 0.99999994, 1.0000001, 1.9999999, np.inf, np.nan]
ENDS = np.float32(ENDS + [-x for x in ENDS])


@pytest.mark.parametrize("acc", ["f32", "f64"])
def test_comparisons_know_nan_zeros_and_denormals(acc):
    needs(acc)
    dtype = np.dtype(acc.replace("f", "float"))
    a, b = (v.ravel() for v in np.meshgrid(ENDS.astype(dtype), ENDS.astype(dtype)))
    for name, want in [("less", a < b), ("at_most", a <= b), ("equal", a == b)]:
        op = f"fn op(a: Acc, b: Acc) -> Acc {{ return select(Acc(0), Acc(1), {name}(a, b)); }}"
        np.testing.assert_array_equal(pointwise(op, acc, np.zeros(len(a), bool), [a, b]), want)
    none = np.isnan(a) | np.isnan(b)
    more, fewer = a > b, a < b
    for name, first in [("larger", more), ("m_max", more), ("smaller", fewer), ("m_min", fewer)]:
        op = f"fn op(a: Acc, b: Acc) -> Acc {{ return {name}(a, b); }}"
        got = pointwise(op, acc, np.zeros_like(a), [a, b])
        # Of equal ones, which zeros are, the second.
        want = np.where(none, dtype.type(np.nan), np.where(first, a, b))
        np.testing.assert_array_equal(got, want)
        np.testing.assert_array_equal(np.signbit(got)[~none], np.signbit(want)[~none])


def quotients():
    """Returns pairs at the ends, of any bits, of small integers, and near one and two."""
    rng = np.random.default_rng(0)
    n = 200000
    yield [v.ravel() for v in np.meshgrid(ENDS, ENDS)]
    yield rng.integers(0, 2**32, (2, n), dtype=np.uint32).view(np.float32)
    yield np.float32([rng.integers(-(2**24), 2**24, n), rng.integers(1, 300, n)])
    # Quotients that are denormal, and that are near a power of two.
    tiny = rng.integers(2**20, 2**27, n, dtype=np.uint32).view(np.float32)
    yield np.float32([tiny, 1 + rng.random(n) * 1e4])
    near = rng.integers(1, 64, (2, n)) * 2.0**-23
    yield np.float32([1 + near[0], 2 - near[1]])


@pytest.mark.parametrize("far", [0, 2, 4])
def test_quotients_are_rounded_once_whatever_the_driver_estimates(far):
    text = (SHADERS / "prelude.wgsl").read_text()
    text = re.search(r"^fn quotient\(.*?^}\n", text, re.MULTILINE | re.DOTALL).group()
    text = text.replace("fn quotient(", "fn from_worse(")
    # Off by up to so many units in the last place, either way.
    worse = f"bitcast<f32>(bitcast<u32>(exact) + position % {2 * far + 1}u - {far}u)"
    text, found = re.subn(
        r"let estimate = (.*);", rf"let exact = \1;\n    let estimate = {worse};", text
    )
    assert found == 1
    op = text + "fn op(a: Acc, b: Acc) -> Acc { return from_worse(a, b); }"
    for a, b in quotients():
        with np.errstate(all="ignore"):
            want = a / b
        got = pointwise(op, "f32", np.zeros_like(a), [a, b])
        np.testing.assert_array_equal(got, want)
        signs = ~np.isnan(want)
        np.testing.assert_array_equal(np.signbit(got)[signs], np.signbit(want)[signs])


# ---- storage formats ----------------------------------------------------------------------------


@pytest.mark.parametrize("to", FORMATS)
@pytest.mark.parametrize("of", FORMATS)
def test_pointwise_identity_converts_every_pair_of_types(of, to):
    acc = {"float64": "f64", "int64": "i64"}.get(of, "f32" if "float" in of else "i32")
    acc = "f64" if to == "float64" else acc
    needs(acc)
    x = np.array([0, 1, 2, 3, 100, 127, 7, 5, 64], dtype=of)
    y = pointwise("fn op(a: Acc) -> Acc { return a; }", acc, np.zeros(9, to), [x])
    np.testing.assert_array_equal(y, x.astype(to))


def test_pointwise_half_rounds_as_numpy():
    x = np.concatenate([floats(500) * s for s in (1e-8, 1e-5, 1, 3e4)])
    x = np.append(x, np.array([65519.9, 65520, np.inf, -np.inf, 0, -0.0, 2049, 2051], np.float32))
    with np.errstate(over="ignore"):
        want = x.astype(np.float16)
    op = "fn op(a: Acc) -> Acc { return a; }"
    np.testing.assert_array_equal(pointwise(op, "f32", np.zeros_like(want), [x]), want)
    back = pointwise(op, "f32", np.zeros_like(x), [want])
    np.testing.assert_array_equal(back, want.astype(np.float32))


def test_pointwise_bfloat16_rounds_to_nearest_even():
    x = floats(1000)
    tail = "fn op(a: Acc) -> Acc { return a; }\nfn value(i: u32) -> Acc { return op(load0(i)); }\n"
    params = [1000, 0, 0, 0, *[0] * 8, *[1] * 8]
    arrays = [np.zeros(1000, np.uint16), x]
    y = run("pointwise", "f32", arrays, params, (3, 1, 1), tail, Y=BF16, X0=F32)[0]
    u = x.view(np.uint32)
    np.testing.assert_array_equal(y, ((u + 0x7FFF + ((u >> 16) & 1)) >> 16).astype(np.uint16))


def test_pointwise_strided_and_scattered_write_only_their_elements():
    x = rng().integers(0, 255, (4, 6)).astype(np.uint8)
    y = np.full(120, 9, np.uint8)
    # y[1 + 20 i + 3 j] = x[j, i]: a transposed input and bytes that share words with others.
    params = [24, 0, 0, 0, 1, *[0] * 7, *[0] * 8, *[0] * 16, *dims([6, 4], [20, 3], [1, 6])]
    tail = "fn value(i: u32) -> Acc { return load0(i); }\n"
    constants = {"Y": U8, "X0": U8, "DIMS": 2}
    got = run("pointwise", "i32", [y, x], params, (1, 1, 1), tail, "scattered", **constants)[0]
    want = y.copy()
    for i in range(6):
        for j in range(4):
            want[1 + 20 * i + 3 * j] = x[j, i]
    np.testing.assert_array_equal(got, want)


# ---- math ---------------------------------------------------------------------------------------

SPREAD = np.concatenate([
    np.linspace(-12, 12, 4001), np.linspace(-1, 1, 2001), np.geomspace(1e-30, 1e30, 500),
    -np.geomspace(1e-30, 1e30, 500),
]).astype(np.float32)  # fmt: skip
POSITIVE = np.geomspace(1e-37, 3e38, 4000).astype(np.float32)
UNIT = np.linspace(-1, 1, 4001).astype(np.float32)
ANGLES = np.linspace(-9000, 9000, 5001).astype(np.float32)
MATH = {
    "exp": (np.exp, SPREAD, 3e-7), "exp2": (np.exp2, SPREAD, 3e-7),
    "expm1": (np.expm1, SPREAD, 5e-7), "ln": (np.log, POSITIVE, 2e-7),
    "log2": (np.log2, POSITIVE, 3e-7), "log10": (np.log10, POSITIVE, 3e-7),
    "log1p": (np.log1p, np.concatenate([UNIT[1:], POSITIVE]), 5e-7),
    "sin": (np.sin, ANGLES, 3e-7), "cos": (np.cos, ANGLES, 3e-7),
    "tan": (np.tan, np.linspace(-1.5, 1.5, 3001).astype(np.float32), 1e-6),
    "asin": (np.arcsin, UNIT, 6e-7), "acos": (np.arccos, UNIT, 6e-7),
    "atan": (np.arctan, SPREAD, 3e-7), "sinh": (np.sinh, SPREAD, 2e-6),
    "cosh": (np.cosh, SPREAD, 2e-6), "tanh": (np.tanh, SPREAD, 5e-7),
    "asinh": (np.arcsinh, SPREAD, 1e-6), "acosh": (np.arccosh, POSITIVE[POSITIVE >= 1], 1e-6),
    "atanh": (np.arctanh, UNIT[1:-1], 1e-6), "sigmoid": (special.expit, SPREAD, 5e-7),
    "erf": (special.erf, SPREAD, 3e-7), "erfc": (special.erfc, SPREAD[SPREAD < 9], 2e-6),
    "erfinv": (special.erfinv, UNIT, 3e-6),
    "lgamma": (special.gammaln, np.linspace(-5.3, 50, 997).astype(np.float32), 2e-5),
    "digamma": (special.digamma, np.linspace(0.1, 50, 997).astype(np.float32), 3e-6),
    "floor": (np.floor, SPREAD, 0), "ceil": (np.ceil, SPREAD, 0), "round": (np.rint, SPREAD, 0),
    "trunc": (np.trunc, SPREAD, 0), "sqrt": (np.sqrt, POSITIVE, 1.3e-7),
}  # fmt: skip


@pytest.mark.parametrize("name", MATH)
def test_math_f32_matches_float64(name):
    f, x, tolerance = MATH[name]
    y = pointwise(f"fn op(a: Acc) -> Acc {{ return m_{name}(a); }}", "f32", np.zeros_like(x), [x])
    with np.errstate(all="ignore"):
        want = f(x.astype(np.float64)).astype(np.float32)
    normal = np.abs(want) > 1e-37
    np.testing.assert_allclose(y[normal], want[normal], rtol=tolerance, atol=tolerance / 4)


@pytest.mark.parametrize("name", MATH)
def test_math_f32_special_values(name):
    f = MATH[name][0]
    x = np.array([np.nan, np.inf, -np.inf, 0.0, -0.0, 1.0, -1.0], np.float32)
    y = pointwise(f"fn op(a: Acc) -> Acc {{ return m_{name}(a); }}", "f32", np.zeros_like(x), [x])
    with np.errstate(all="ignore"):
        want = f(x).astype(np.float32)
    if name == "lgamma":
        want[2] = want[4] = np.inf  # C's, not SciPy's
    if name == "digamma":
        # PyTorch's: minus infinity at zero with its sign, NaN at negative integers and infinity.
        want = np.array([np.nan, np.inf, np.nan, -np.inf, np.inf, want[5], np.nan], np.float32)
    np.testing.assert_allclose(y, want, rtol=2e-6, atol=1e-6)


BINARY = {
    "pow": np.power, "atan2": np.arctan2, "fmod": np.fmod, "remainder": np.remainder,
    "copysign": np.copysign, "max": np.maximum, "min": np.minimum, "floor_div": np.floor_divide,
}  # fmt: skip


@pytest.mark.parametrize("name", BINARY)
def test_math_f32_of_two_arguments_matches_numpy(name):
    edge = np.array([np.nan, np.inf, -np.inf, 0, -0.0, 1, -1, 2, -2, 0.5, -0.5, 3, 7.25])
    a, b = (v.ravel().astype(np.float32) for v in np.meshgrid(edge, edge))
    a = np.concatenate([a, np.abs(floats(2000)) * 3, floats(2000) * 100]).astype(np.float32)
    b = np.concatenate([b, floats(2000, seed=1) * 6, floats(2000, seed=2) * 7]).astype(np.float32)
    op = f"fn op(a: Acc, b: Acc) -> Acc {{ return m_{name}(a, b); }}"
    y = pointwise(op, "f32", np.zeros_like(a), [a, b])
    with np.errstate(all="ignore"):
        want = BINARY[name](a.astype(np.float64), b.astype(np.float64)).astype(np.float32)
    if name == "floor_div":
        keep = (b != 0) & np.isfinite(a) & np.isfinite(b)
        y, want = y[keep], want[keep]
    np.testing.assert_allclose(y, want, rtol=4e-6, atol=1e-6)


@pytest.mark.parametrize("acc", ["i32", "i64"])
def test_math_int_matches_numpy(acc):
    needs(acc)
    dtype = {"i32": np.int32, "i64": np.int64}[acc]
    a = rng().integers(-100, 100, 400).astype(dtype)
    b = rng(1).integers(-9, 9, 400).astype(dtype)
    b[b == 0] = 4
    for name in ("fmod", "remainder", "floor_div", "max", "min"):
        op = f"fn op(a: Acc, b: Acc) -> Acc {{ return m_{name}(a, b); }}"
        y = pointwise(op, acc, np.zeros_like(a), [a, b])
        np.testing.assert_array_equal(y, BINARY[name](a, b), err_msg=name)
    op = "fn op(a: Acc, b: Acc) -> Acc { return m_pow(a, m_abs(b)); }"
    want = np.power(a, np.abs(b))
    np.testing.assert_array_equal(pointwise(op, acc, np.zeros_like(a), [a, b]), want)


def test_math_f64_matches_numpy():
    needs("f64")
    x = rng().standard_normal(200) * 10
    for name, f in {"floor": np.floor, "abs": np.abs, "sign": np.sign, "neg": np.negative}.items():
        op = f"fn op(a: Acc) -> Acc {{ return m_{name}(a); }}"
        np.testing.assert_array_equal(pointwise(op, "f64", np.zeros_like(x), [x]), f(x))


COMPLEX = {
    "add": np.add, "sub": np.subtract, "mul": np.multiply, "div": np.divide,
    "neg": np.negative, "conj": np.conj, "sign": np.sign, "abs": np.abs, "equal": np.equal,
}  # fmt: skip


@pytest.mark.parametrize("name", COMPLEX)
def test_math_c64_matches_complex128(name):
    reference = COMPLEX[name]
    rng = np.random.default_rng(3)
    # Moduli whose squares overflow or vanish in float32 (but for products), and zeros.
    scales = [1e-3, 1.0, 1e3] if name == "mul" else [1e-15, 1.0, 1e15]
    parts = rng.standard_normal((2, 2, 3000)) * rng.choice(scales, (2, 1, 3000))
    a, b = (parts[:, 0] + 1j * parts[:, 1]).astype(np.complex64)
    b[:100] = a[:100]
    a[200:210] = 0
    x = [a, b][: reference.nin]
    dtype = {"abs": np.float32, "equal": bool}.get(name, np.complex64)
    args = ", ".join(f"a{k}" for k in range(len(x)))
    call = f"m_{name}({args})"
    body = f"select(vec2(0.0), vec2(1.0, 0.0), {call})" if name == "equal" else call
    taken = args.replace(",", ": Acc,") + ": Acc"
    op = f"fn op({taken}) -> Acc {{ return {body}; }}"
    got = pointwise(op, "c64", np.zeros(a.shape, dtype), x)
    want = reference(*(v.astype(np.complex128) for v in x))
    if name == "equal":
        assert (got == want).all() and got[:100].all() and not got[210:].any()
        return
    # Of the modulus: a part may be what cancellation leaves.
    assert np.all(np.abs(got - want) <= 4e-7 * np.abs(want))


def test_math_c64_keeps_signs_of_zeros_and_infinite_moduli():
    inf, nan = np.inf, np.nan
    z = np.array([complex(0.0, 0.0), complex(-0.0, 1.0), complex(inf, nan), complex(nan, -inf)])
    z = z.astype(np.complex64)
    conj = pointwise("fn op(a: Acc) -> Acc { return m_conj(a); }", "c64", z.copy(), [z])
    assert np.signbit(conj.imag[:2]).all() and np.signbit(conj.real[:2]).tolist() == [False, True]
    modulus = np.zeros(4, np.float32)
    modulus = pointwise("fn op(a: Acc) -> Acc { return m_abs(a); }", "c64", modulus, [z])
    assert modulus.tolist() == [0.0, 1.0, inf, inf]


def test_philox_known_answers_and_distribution():
    philox = (SHADERS / "philox.wgsl").read_text()
    floats_of = philox + (SHADERS / "philox_floats.wgsl").read_text()
    out = np.zeros(4, np.int32)
    op = philox + "fn op() -> Acc { return bitcast<i32>(philox_word()); }"
    op = op.replace("m_sqrt", "sqrt").replace("m_ln(u)", "log(u)")
    op = op.replace("m_sin_from(angle, 1u - (position & 1u))", "sin(angle)")
    y = pointwise(op, "i32", out, [], [0] * 4).view(np.uint32)
    assert [hex(v) for v in y] == ["0x6627e8d5", "0xe169c58d", "0xbc57ac4c", "0x9b00dbd8"]
    n = 40_000
    u = pointwise(floats_of + "fn op() -> Acc { return philox_uniform(); }", "f32",
                  np.zeros(n, np.float32), [], [7, 8, 9, 0])  # fmt: skip
    assert 0 <= u.min() and u.max() < 1 and abs(u.mean() - 0.5) < 0.01
    z = pointwise(floats_of + "fn op() -> Acc { return philox_normal(); }", "f32",
                  np.zeros(n, np.float32), [], [7, 8, 9, 0])  # fmt: skip
    assert abs(z.mean()) < 0.02 and abs(z.std() - 1) < 0.02
    assert abs(np.corrcoef(z[::2], z[1::2])[0, 1]) < 0.02


# ---- reductions ---------------------------------------------------------------------------------

REDUCTIONS = [np.sum, np.prod, np.max, np.min, np.any, np.all]


@pytest.mark.parametrize("op", range(6))
@pytest.mark.parametrize("lanes", [1, 16, 64])
@pytest.mark.parametrize("dtype", ["float32", "float16", "int32", "uint8"])
def test_reduce_matches_numpy(op, lanes, dtype):
    x = (rng().integers(0, 3, (7, 50)) if op != 1 else rng().integers(1, 2, (7, 50))).astype(dtype)
    acc = "f32" if "float" in dtype else "i32"
    identity = {0: 0, 1: 1, 2: -(2**31), 3: 2**31 - 1, 4: 0, 5: 1}[op]
    if acc == "f32":
        identity = f32({2: -np.inf, 3: np.inf}.get(op, identity))
    # Rows 1 and on: x starts at an offset; y as well.
    params = [6, 50, 1, 50, 50, 1, f32(1), 0, identity, 0, 0, 0, *dims([6], [50])]
    params += dims([50], [1])
    arrays = [np.zeros(8, dtype), x]
    groups = (-(-6 // (64 // lanes)), 1, 1)
    y = run("reduce", acc, arrays, params, groups, OP=op, X=fmt(x), Y=fmt(x), MAP=3 * (op > 3),
            LANES=lanes, ROWS=64 // lanes, WG=64)[0]  # fmt: skip
    want = REDUCTIONS[op](x[1:], axis=1).astype(dtype)
    np.testing.assert_array_equal(y, [0, *want, 0])


@pytest.mark.parametrize("lanes", [1, 4])
@pytest.mark.parametrize("rows", [1, 6, 7])
@pytest.mark.parametrize("kind", [F16, BF16])
def test_reduce_to_pairs_gives_the_bits_of_single_halves(kind, rows, lanes):
    x = floats(rows, 9)
    params = [rows, 9, 1, 9, 0, 0, f32(0.5), 0, 0, 0, 0, 0, *dims([rows], [9]), *dims([9], [1])]
    sizes = {"OP": 0, "LANES": lanes, "ROWS": 8, "WG": 8 * lanes, "Y": kind}
    found = []
    for pairs in (0, 1):
        arrays = [np.full(rows + 3, 77, np.uint16), x]
        found.append(run("reduce", "f32", arrays, params, (1, 1, 1), PAIRS=pairs, **sizes)[0])
    np.testing.assert_array_equal(*found)
    assert (found[0][rows:] == 77).all()
    if kind == F16:
        close(found[0][:rows].view(np.float16), x.sum(1) / 2, 2e-3)


def test_reduce_two_reduced_dimensions_in_parts():
    x = floats(5, 6, 7)
    # Over dimensions 0 and 2, in three parts of 12 of the 35 elements, with the mean's factor.
    params = [6, 35, 3, 12, 0, 0, f32(0.5), 0, 0, 0, 0, 0, *dims([6], [7]), *dims([5, 7], [42, 1])]
    y = run("reduce", "f32", [np.zeros(18, np.float32), x], params, (2, 1, 1), INNER=2,
            LANES=4, ROWS=16, WG=64)[0]  # fmt: skip
    close(y.reshape(6, 3).sum(1), 0.5 * x.sum((0, 2)), 1e-5)


@pytest.mark.parametrize("op", [2, 3])
def test_reduce_max_and_min_keep_nan(op):
    x = floats(1, 300)
    x[0, 222] = np.nan
    params = [1, 300, 1, 300, 0, 0, f32(1), 0, f32([0, 0, -np.inf, np.inf][op]), 0, 0, 0]
    params += [*dims([1], [0]), *dims([300], [1])]
    y = run("reduce", "f32", [np.zeros(1, np.float32), x], params, (1, 1, 1), OP=op)[0]
    assert np.isnan(y[0])


@pytest.mark.parametrize("lanes", [1, 16])
@pytest.mark.parametrize("op", range(5))
@pytest.mark.parametrize("index", [np.int32, np.int64])
def test_segment_reduce_and_its_adjoint_match_numpy(op, lanes, index):
    x = floats(2, 50, 3)
    # The last element of each row is in no segment, and one segment has none.
    bounds = np.array([[0, 2, 2, 40, 49], [1, 8, 9, 9, 49]], index)
    start = f32([0, 0, -np.inf, np.inf, 1][op])
    initial, empty = f32([0.5, 0.5, -0.25, 0.25, 2][op]), f32(7)
    params = [start, 0, initial, 0, empty, 0, 24, 4, 50, 3, 0, 0, 0, 0]
    arrays = [np.zeros((2, 4, 3), np.float32), x, bounds]
    rows = 64 // lanes
    kinds = {"OP": op, "I": fmt(bounds)}
    y = run("segment_reduce", "f32", arrays, params, (-(-24 // rows), 1, 1), LANES=lanes, ROWS=rows,
            WG=64, **kinds)[0]  # fmt: skip
    for o, s in np.ndindex(2, 4):
        part = x[o, bounds[o, s] : bounds[o, s + 1]].astype(np.float64)
        mean = (part.sum(0) + 0.5) / len(part) if len(part) else 7
        ends = part.max(0, initial=-0.25), part.min(0, initial=0.25)
        want = [part.sum(0) + 0.5, mean, *ends, part.prod(0) * 2][op]
        close(y[o, s], want, 1e-5)
    params[6] = 300
    arrays = [np.ones_like(x), y, bounds]
    d = run("segment_reduce", "f32", arrays, params, (2, 1, 1), entry="spread", WG=256, **kinds)[0]
    want = np.zeros_like(x)
    for o, s in np.ndindex(2, 4):
        begin, end = bounds[o, s], bounds[o, s + 1]
        want[o, begin:end] = y[o, s] / (end - begin if op == 1 and end > begin else 1)
    close(d, want, 1e-6)


@pytest.mark.parametrize("largest", [True, False])
def test_arg_reduce_matches_numpy(largest):
    x = rng().integers(0, 9, (5, 40)).astype(np.float32)
    x[2, 30] = x[2, 33] = np.nan
    arrays = [np.zeros(5, np.float32), np.zeros(5, np.int64), x, np.zeros(1, np.uint32)]
    params = [5, 40, 1, 40, 0, 0, 0, 0, *dims([5], [40]), *dims([40], [1])]
    y, index, *_ = run("arg_reduce", "f32", arrays, params, (5, 1, 1), LARGEST=largest)
    np.testing.assert_array_equal(index, (np.argmax if largest else np.argmin)(x, axis=1))
    np.testing.assert_array_equal(y, (np.max if largest else np.min)(x, axis=1))


# ---- products -----------------------------------------------------------------------------------


TILES = [
    {"BM": 32, "BN": 32, "RM": 1, "RN": 1, "DEPTH": 8, "BUFFERS": 2},
    {"BM": 64, "BN": 64, "RM": 2, "RN": 1, "DEPTH": 16, "BUFFERS": 1},
    {"BM": 8, "BN": 128, "RM": 1, "RN": 1, "DEPTH": 16, "BUFFERS": 1},
    {"BM": 32, "BN": 32, "RM": 1, "RN": 1, "DEPTH": 8, "BUFFERS": 2, "ROLLED": 1},
]


@pytest.mark.parametrize(("m", "n", "k"), [(1, 1, 1), (33, 40, 19)])
@pytest.mark.parametrize("tile", TILES)
@pytest.mark.parametrize("dtype", ["float32", "float16", "int32"])
def test_matmul_matches_numpy(m, n, k, tile, dtype):
    a, b = (
        rng(s).integers(-4, 5, shape).astype(dtype) for s, shape in ((0, (2, m, k)), (1, (n, k)))
    )
    c = rng(2).integers(-4, 5, n).astype(dtype)
    tiles = (-(-m // tile["BM"]), -(-n // tile["BN"]))
    one = f32(2.0) if "float" in dtype else 2
    params = [m, n, k, 2, 1, 16 * -(-k // 16), *tiles]
    params += [0, m * k, k, 1, 0, 0, 1, k, 0, 0, 0, 1, 0, m * n, n, 1, one, 0, one, 0, 0]
    arrays = [np.zeros((2, m, n), dtype), np.zeros(m, np.float32), a, b, c]
    groups = (tiles[0] * tiles[1] * 2, 1, 1)
    f = fmt(a)
    y = run("matmul", "f32" if "float" in dtype else "i32", arrays, params, groups, A=f, B=f, C=f,
            Y=f, HAS_C=1, B_ALONG_K=1, **tile)[0]  # fmt: skip
    want = 2 * (a.astype(np.float64) @ b.T.astype(np.float64)) + 2 * c
    np.testing.assert_array_equal(y, want.astype(dtype))


def test_matmul_every_tile_gives_the_same_bits():
    m, n, k = 70, 45, 60
    a, b = floats(1, m, k), floats(1, k, n, seed=1)
    found = set()
    for tile in TILES:
        tiles = (-(-m // tile["BM"]), -(-n // tile["BN"]))
        params = [m, n, k, 1, 1, k, *tiles, 0, 0, k, 1, 0, 0, n, 1, *[0] * 4, 0, 0, n, 1]
        params += [f32(1), 0, 0, 0, 0]
        arrays = [np.zeros((1, m, n), np.float32), np.zeros(m, np.float32), a, b, b]
        groups = (tiles[0] * tiles[1], 1, 1)
        y, sums, *_ = run("matmul", "f32", arrays, params, groups, SUMS=1, **tile)
        close(y, a.astype(np.float64) @ b, 1e-5)
        found.add((y.tobytes(), sums.tobytes()))
    assert len(found) == 1


def test_matmul_split_k_gives_partial_sums():
    a, b = floats(1, 5, 100), floats(1, 100, 6, seed=1)
    params = [5, 6, 100, 1, 4, 32, 1, 1, 0, 0, 100, 1, 0, 0, 6, 1, *[0] * 4, 0, 0, 6, 1]
    params += [f32(1), 0, 0, 0, 30]
    arrays = [np.zeros((4, 5, 6), np.float32), np.zeros((4, 5), np.float32), a, b, b]
    y, sums, *_ = run("matmul", "f32", arrays, params, (4, 1, 1), SUMS=1)
    close(sums.sum(0), a[0].sum(1), 1e-5)
    close(y.sum(0), a[0] @ b[0], 1e-5)
    close(y[3], a[0, :, 96:] @ b[0, 96:], 1e-5)


def convolve(x, w, stride, padding, dilation, groups):
    """Returns a 2-d convolution in float64, by its definition."""
    n, _, *sizes = x.shape
    oc, cg, kh, kw = w.shape
    x = np.pad(x.astype(np.float64), ((0, 0), (0, 0), (padding,) * 2, (padding,) * 2))
    reach = [s + 2 * padding - dilation * (k - 1) for s, k in zip(sizes, (kh, kw))]
    oh, ow = ((r - 1) // stride + 1 for r in reach)
    y = np.zeros((n, oc, oh, ow))
    for o in range(oc):
        g = o // (oc // groups)
        for i, j in np.ndindex(oh, ow):
            rows = i * stride + dilation * np.arange(kh)
            columns = j * stride + dilation * np.arange(kw)
            window = x[:, g * cg : (g + 1) * cg][:, :, rows][:, :, :, columns]
            y[:, o, i, j] = (window * w[o]).sum((1, 2, 3))
    return y


@pytest.mark.parametrize(
    "config", [(1, 0, 1, 1), (2, 1, 1, 1), (1, 2, 2, 2), (3, 1, 1, 4), (2, 2, 2, 1), (3, 2, 2, 2)]
)
def test_convolution_and_gradients_match_their_definition(config):
    stride, padding, dilation, groups = config
    x, w, bias = floats(2, 4, 9, 8), floats(8, 4 // groups, 3, 2, seed=1), floats(8, seed=2)
    y = convolve(x, w, *config)
    g = rng(3).standard_normal(y.shape)
    size, outer, kernel = (1, 9, 8), (1, *y.shape[2:]), (1, 3, 2)
    cg, og, taps = 4 // groups, 8 // groups, 6
    inside, outside = 72, math.prod(outer)
    step = stride // math.gcd(stride, dilation)
    inverse = next((i for i in range(step) if i * dilation % step == 1), 0)

    def call(mode, a, b, out, m, n, k, tile, entry="main"):
        """Runs a mode with its source, its places and the strides of a, y and the weight."""
        x, o = (size, cg, inside), (outer, og, outside)
        of, to = (o, x) if mode == "input" else (x, o)
        row, channel = (taps, cg * taps) if mode == "input" else (cg * taps, taps)
        weight, image = (cg * og * taps, row), (to[1] * to[2], to[2])
        (a_group, a_row), (y_group, y_row) = (
            (image, weight) if mode == "weight" else (weight, image)
        )
        classes = min(stride, 9) * min(stride, 8) if mode == "input" else 1
        tiles = (-(-m // tile["BM"]), -(-n // tile["BN"]))
        params = [m, n, k, groups, 1, 16 * -(-k // 16), *tiles, 0, 0, classes, 2, of[1]]
        params += [0, a_group, a_row, 0, of[1] * of[2], 0, y_group, y_row, 0, 0, 0]
        for volume, last in ((of, of[2]), (to, 0)):
            (_, h, w), channels, area = volume
            params += [*volume[0], last, h * w, w, 1, groups * channels * area]
        params += [*kernel, 0, 6, 2, 1, channel, 1, stride, stride, 1, 0, padding, padding, 0]
        params += [1, dilation, dilation, 1, 1, step, step, 1, 0, inverse, inverse, 0]
        arrays = [np.zeros(out, np.float32), a.astype(np.float32), b.astype(np.float32), bias]
        count = tiles[0] * tiles[1] * groups * classes
        if entry == "direct":
            count = -(-m * n * groups * classes // 256)
        threads = tile["BM"] * tile["BN"] // (16 * tile["RM"] * tile["RN"])
        near = 4 * -(-tile["DEPTH"] * tile["BN"] // (4 * threads)) if mode == "weight" else 4
        flags = {"TO_WEIGHT": mode == "weight", "CLASSES": mode == "input", "NEAR": near}
        flags |= {"HAS_BIAS": mode == "forward", "DIMS": 2}
        if entry == "shared_out":
            # Two columns of a row to a workgroup.
            params[6:8] = [m, -(-n // 2)]
            count = params[6] * params[7] * groups
            flags |= {"TAPS": 2, "LANES": 64}
        return run("conv", "f32", arrays, params, (count, 1, 1), entry=entry, **flags, **tile)[0]

    most = 2 * -(-9 // stride) * -(-8 // stride)
    reached = og * -(-3 // step) * -(-2 // step)
    calls = {
        "forward": (w, x, y.shape, og, 2 * outside, cg * taps),
        "input": (w, g, x.shape, cg, most, reached),
        "weight": (g, x, w.shape, og, cg * taps, 2 * outside),
    }
    got = {}
    for mode, args in calls.items():
        found = [call(mode, *args, tile) for tile in TILES]
        if mode != "weight":
            found.append(call(mode, *args, TILES[0], "direct"))
        assert len({f.tobytes() for f in found}) == 1
        got[mode] = found[0]
    shared = call("weight", *calls["weight"], TILES[0], "shared_out")
    close(shared, got["weight"], 1e-5)
    close(got["forward"], y + bias[:, None, None], 1e-5)
    # Convolution is bilinear: its gradients follow from the forward pass on unit tensors.
    probe = floats(*x.shape, seed=4)
    close((got["input"] * probe).sum(), (convolve(probe, w, *config) * g).sum(), 1e-4)
    probe = floats(*w.shape, seed=5)
    close((got["weight"] * probe).sum(), (convolve(x, probe, *config) * g).sum(), 1e-4)


# ---- rows ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("log", [False, True])
@pytest.mark.parametrize("shape", [(3, 10, 1), (2, 70, 3)])
@pytest.mark.parametrize("keeps", [False, True])
def test_softmax_and_softmax_backward_match_numpy(log, shape, keeps):
    outer, length, inner = shape
    x = floats(*shape) * 10
    e = np.exp(x.astype(np.float64) - x.max(1, keepdims=True))
    s = e / e.sum(1, keepdims=True)
    want = np.log(s) if log else s
    size = {"LANES": 16, "ROWS": 4, "WG": 64, "LOG": log, "HELD": keeps * -(-length // 16)}
    groups = (-(-outer * inner // 4), 1, 1)
    params = [outer * inner, length, inner, 0, 0, 0, f32(-np.inf), 0]
    y = run("softmax", "f32", [np.zeros_like(x), x], params, groups, **size)[0]
    close(y, want, 1e-5)
    g = floats(*shape, seed=1)
    d = run("softmax_backward", "f32", [np.zeros_like(x), y, g], [*params[:3], 0, 0, 0], groups,
            **size)[0]  # fmt: skip
    if log:
        close(d, g - s * g.sum(1, keepdims=True), 1e-5)
    else:
        close(d, s * (g - (g * s).sum(1, keepdims=True)), 1e-5)
    if inner > 1:
        return
    # Halves in pairs.
    size |= {"PAIRS": 1, "HELD": keeps * -(-length // 32)}
    x, g = x.astype(np.float16), g.astype(np.float16)
    formats = {"X": F16, "Y": F16}
    y = run("softmax", "f32", [np.zeros_like(x), x], params, groups, **size, **formats)[0]
    close(y.astype(np.float32), want, 1e-2)
    formats = {"S": F16, "G": F16, "Y": F16}
    d = run("softmax_backward", "f32", [np.zeros_like(x), y, g], [*params[:3], 0, 0, 0], groups,
            **size, **formats)[0]  # fmt: skip
    total = (g if log else g * s).sum(1, keepdims=True)
    close(d.astype(np.float32), g - s * total if log else s * (g - total), 1e-2)


def test_nll_and_nll_backward_match_numpy():
    x, w = floats(5, 4, 3), np.abs(floats(4, seed=1))
    t = rng().integers(0, 4, (5, 3)).astype(np.int64)
    t[0, 0] = -100
    used = t != -100
    zero = np.zeros((5, 3), np.float32)
    arrays = [zero, zero, np.zeros(8, np.uint32), x, t, w]
    params = [15, 4, 3, -100, 0, 0, 0, 0, 0]
    loss, total, *_ = run("nll", "f32", arrays, params, (1, 1, 1), HAS_WEIGHT=1)
    picked = np.take_along_axis(x, np.where(used, t, 0)[:, None], 1)[:, 0]
    weight = np.where(used, w[np.where(used, t, 0)], 0)
    close(total, weight)
    close(loss, -weight * picked)
    g, divisor = np.array([2], np.float32), np.array([weight.sum()], np.float32)
    arrays = [np.zeros_like(x), g, t, w, divisor]
    params = [60, 4, 3, -100, 0, 0, 0, 0, 0, 0]
    constants = {"HAS_WEIGHT": 1, "HAS_DIVISOR": 1}
    d = run("nll_backward", "f32", arrays, params, (1, 1, 1), **constants)[0]
    want = -2 * weight[:, None] / weight.sum() * (t[:, None] == np.arange(4)[:, None])
    close(d, want)


def test_nll_target_out_of_range_is_noted():
    x, t = floats(2, 3, 1), np.array([1, 7], np.int64)
    arrays = [np.zeros(2, np.float32), np.zeros(2, np.float32), np.zeros(8, np.uint32), x, t, x]
    out = run("nll", "f32", arrays, [2, 3, 1, -100, 0, 0, 0, 4, 5], (1, 1, 1))
    assert list(out[2]) == [1, 7, 0, 3, 4, 5, 0, 0]


@pytest.mark.parametrize("lanes", [1, 4])
def test_cross_entropy_and_its_gradient_match_numpy(lanes):
    x, w = floats(5, 4, 3), np.abs(floats(4, seed=1))
    t = rng().integers(0, 4, (5, 3)).astype(np.int64)
    t[0, 0] = -100
    used, smoothing, rows = t != -100, 0.25, 64 // lanes
    kinds = {"HAS_WEIGHT": 1, "SMOOTH": 1, "LANES": lanes, "ROWS": rows, "WG": 64}
    zero = np.zeros((5, 3), np.float32)
    arrays = [zero, zero, np.stack([zero, zero], -1), np.zeros(8, np.uint32), x, t, w]
    params = [15, 4, 3, -100, f32(smoothing), 0, 0, 0, 0, 0, f32(np.inf), 4, 5]
    groups = (-(-15 // rows), 1, 1)
    losses, weights, lse, *_ = run("cross_entropy", "f32", arrays, params, groups, **kinds)
    wide = x.astype(np.float64)
    wanted = np.log(np.exp(wide).sum(1))
    lse = lse.reshape(5, 3, 2)
    close(lse[..., 0], x.max(1))
    close(lse.sum(-1), wanted, 1e-5)
    logs = wide - wanted[:, None]
    hit = (t[:, None] == np.arange(4)[:, None]).astype(np.float64)
    wc = w[:, None]
    each = -((1 - smoothing) * hit + smoothing / 4) * logs * wc
    weight = (hit * wc).sum(1)
    want = np.where(used, each.sum(1), 0)
    close(losses, want, 1e-5)
    close(weights, weight, 1e-6)
    one = np.zeros(1, np.float32)
    arrays = [one, one, losses, np.zeros(8, np.uint32), weights, t, w]
    loss, total, *_ = run("cross_entropy", "f32", arrays, params, (1, 1, 1), entry="sums",
                          MEAN=1, LANES=64, WG=64)  # fmt: skip
    close(loss, [want.sum() / weight.sum()], 1e-5)
    close(total, [weight.sum()], 1e-5)
    g = np.array([2], np.float32)
    arrays = [np.zeros_like(x), g, x, t, lse, total, w]
    params = [15, 4, 3, -100, f32(smoothing), *[0] * 8]
    d = run("cross_entropy_backward", "f32", arrays, params, groups, HAS_DIVISOR=1, **kinds)[0]
    slope = ((1 - smoothing) * hit + smoothing / 4) * wc
    want = 2 / weight.sum() * (np.exp(logs) * slope.sum(1, keepdims=True) - slope)
    close(d, np.where(used[:, None], want, 0), 1e-5)


@pytest.mark.parametrize("samples", [1, 3])
def test_norm_running_matches_numpy(samples):
    old = [floats(5), np.abs(floats(5, seed=1))]
    new = [floats(samples, 5, seed=2), np.abs(floats(samples, 5, seed=3))]
    params = [5, samples, f32(0.25), f32(1.5), 0, 0, 0, 0]
    mean, var, *_ = run("norm_running", "f32", [*old, *new], params, (1, 1, 1))
    close(mean, 0.75 * old[0] + 0.25 * new[0].mean(0))
    close(var, 0.75 * old[1] + 0.25 * 1.5 * new[1].mean(0))


@pytest.mark.parametrize("keeps", [False, True])
@pytest.mark.parametrize("kind", ["batch", "layer", "group"])
def test_norm_and_norm_backward_match_numpy(kind, keeps):
    x, w, b = floats(3, 4, 5, 2), floats(4, seed=1), floats(4, seed=2)
    if kind == "batch":
        axes, groups, layout = (0, 2, 3), 4, [4, 30, 10, 10, 40, 4, 1, 30]
    elif kind == "layer":
        w, b = floats(40, seed=1), floats(40, seed=2)
        axes, groups, layout = (1,), 3, [3, 40, 40, 40, 0, 1, 40, 1]
    else:
        axes, groups, layout = (2, 3), 6, [6, 20, 20, 20, 0, 2, 2, 10]
    shaped = {"batch": x, "layer": x.reshape(3, 40), "group": x.reshape(3, 2, 2, 10)}[kind]
    shaped = shaped.astype(np.float64)
    full = {"batch": (4, 1, 1), "layer": (40,), "group": (2, 2, 1)}[kind]
    mean, var = shaped.mean(axes, keepdims=True), shaped.var(axes, keepdims=True)
    hat = (shaped - mean) / np.sqrt(var + 1e-5)
    stats = [np.zeros(groups, np.float32) for _ in range(3)]
    params = [*layout, f32(1e-5), *[0] * 7]
    # The sums of channels in one part; those of batch norm are the groups'.
    channels, own = w.size, kind == "batch"
    backward = [*layout, *[0] * 6, channels, x.size // channels, 1, x.size // channels]
    constants = {"HAS_WEIGHT": 1, "LANES": 16, "ROWS": 4, "WG": 64, "HELD": 3 * keeps}
    y, m, rstd, v, *_ = run("norm", "f32", [np.zeros_like(x), *stats, x, w, b], params,
                            (-(-groups // 4), 1, 1), HAS_BIAS=1, **constants)  # fmt: skip
    close(y.ravel(), (hat * w.reshape(full) + b.reshape(full)).ravel(), 1e-5)
    close(m, mean.ravel(), 1e-5)
    close(v, var.ravel(), 1e-5)
    g = floats(3, 4, 5, 2, seed=3)
    sums = [np.zeros(channels, np.float32) for _ in range(2)]
    arrays = [np.zeros_like(x), *sums, x, g, m, rstd, w]
    columns = 8 if kind == "layer" else 1
    more = 0 if own else channels // columns
    d, sum_g, sum_gx, *_ = run("norm_backward", "f32", arrays, backward,
                               (-(-groups // 4) + more, 1, 1), OWN=own, COLUMNS=columns,
                               **constants)  # fmt: skip
    gs = g.reshape(shaped.shape).astype(np.float64)
    over = {"batch": (0, 2, 3), "layer": (0,), "group": (0, 3)}[kind]
    close(sum_g, gs.sum(over).ravel(), 1e-4)
    close(sum_gx, (gs * hat).sum(over).ravel(), 1e-4)
    gw = gs * w.reshape(full)
    rest = gw.mean(axes, keepdims=True) + hat * (gw * hat).mean(axes, keepdims=True)
    close(d.ravel(), ((gw - rest) / np.sqrt(var + 1e-5)).ravel(), 1e-5)
    if not own:
        return
    # Of a given mean and variance, which are no sums over the input.
    given, spread = floats(4, seed=4), floats(4, seed=5) ** 2 + 0.5
    arrays = [np.zeros_like(x), *sums, x, g, given, spread, w]
    d, sum_g, sum_gx, *_ = run("norm_backward", "f32", arrays, [*backward, f32(1e-5)],
                               (-(-groups // 4), 1, 1), OWN=1, GIVEN=1, **constants)  # fmt: skip
    factor = 1 / np.sqrt(spread.reshape(full) + 1e-5)
    close(d, g * w.reshape(full) * factor, 1e-5)
    close(sum_gx, (gs * (x - given.reshape(full)) * factor).sum(over), 1e-4)


# ---- indexing -----------------------------------------------------------------------------------


def test_embedding_and_its_sums_match_numpy():
    table, at = floats(6, 5), np.array([[3, 0, 3], [5, 3, 0]], np.int64)
    arrays = [np.zeros((6, 5), np.float32), np.zeros(8, np.uint32), table, at]
    params = [6, 5, 6, 0, 0, 0, 0, 4, 9]
    y, fault, *_ = run("embedding", "f32", arrays, params, (1, 1, 1))
    np.testing.assert_array_equal(y, table[at.ravel()])
    assert not fault.any()
    arrays[3] = at + 3
    assert list(run("embedding", "f32", arrays, params, (1, 1, 1))[1][[0, 3, 4, 5]]) == [1, 6, 4, 9]
    g = floats(6, 5, seed=1)
    arrays = [np.ones((6, 5), np.float32), np.zeros(8, np.uint32), g, at]
    y = run("embedding", "f32", arrays, params, (6, 1, 1), entry="sums")[0]
    want = np.zeros((6, 5))
    for row, line in zip(at.ravel(), g):
        # Row 0 is padding.
        want[row] += line * (row != 0)
    close(y, want, 1e-6)


def test_index_offsets_take_and_put_match_numpy():
    x = floats(3, 8, 5)
    index = np.array([1, -1, 0, 1, 7, 1], np.int64)
    arrays = [np.zeros(6, np.uint32), np.zeros(8, np.uint32), index]
    params = [6, 0, 8, 5, 0, 0, 1, 0, 0]
    offsets, fault, _ = run("index_offsets", "i32", arrays, params, (1, 1, 1))
    np.testing.assert_array_equal(offsets, index % 8 * 5)
    assert not fault.any()
    around = [*dims([3], [40]), *dims([5], [1])]
    arrays = [np.zeros((3, 6, 5), np.float32), x, offsets]
    y = run("take", "i32", arrays, [90, 6, 5, 0, 0, 0, 0, 0, *around], (1, 1, 1))[0]
    np.testing.assert_array_equal(y, x[:, index])
    links = run("chain", "i32", [np.zeros(6, np.uint32), offsets], [0, 6], (1, 1, 1))[0]
    assert [hex(v) for v in links] == [
        "0x3", "0x4", "0x7fffffff", "0x80000005", "0xffffffff", "0xffffffff",
    ]  # fmt: skip
    params = [90, 6, 5, 0, 6, 0, 0, 0, f32(0.5), 0, 0, 0, *around]
    v = floats(3, 6, 5, seed=1)
    added = run("put", "f32", [x, v, offsets, links], params, (1, 1, 1), ACCUMULATE=1)[0]
    want = x.copy()
    np.add.at(want, (slice(None), index), 0.5 * v)
    close(added, want)
    written = run("put", "f32", [x, v, offsets, links], params, (1, 1, 1))[0]
    want = x.copy()
    want[:, index] = v
    np.testing.assert_array_equal(written, want)


def test_index_offsets_bad_and_skipped_indices():
    index = np.array([3, 9, -9, 2**33], np.int64)
    arrays = [np.zeros(4, np.uint32), np.zeros(8, np.uint32), index]
    params = [4, 0, 8, 5, 3, 1, 1, 6, 7]
    offsets, fault, _ = run("index_offsets", "i32", arrays, params, (1, 1, 1))
    assert offsets[0] == 0xFFFFFFFF and fault[0] == 1
    assert fault[1:3].view(np.int64)[0] in [9, -9, 2**33] and list(fault[3:6]) == [8, 6, 7]
    params = [4, 4, 1, 0, 0, 0, 0, 0, *dims([1], [0]), *dims([1], [1])]
    y = run("take", "i32", [np.ones(4, np.int32), np.ones(40, np.int32), offsets], params,
            (1, 1, 1))[0]  # fmt: skip
    assert y[0] == 0 and y[1] == 1


@pytest.mark.parametrize(("index", "bad"), [(-1, True), (0, False), (7, False), (8, True)])
def test_index_offsets_without_wrapping_refuse_negative_indices(index, bad):
    arrays = [np.zeros(1, np.uint32), np.zeros(8, np.uint32), np.array([index], np.int64)]
    params = [1, 0, 8, 5, 0, 0, 0, 2, 3]
    offsets, fault, _ = run("index_offsets", "i32", arrays, params, (1, 1, 1))
    assert fault[0] == bad and offsets[0] == (0 if bad else 5 * index)


def test_gather_and_scatter_match_numpy():
    x = floats(4, 6)
    index = rng().integers(0, 6, (4, 3)).astype(np.int64)
    fault = np.zeros(8, np.uint32)
    params = [12, 0, 0, 0, 6, 1, 0, 0, *strided([4, 3], [6, 0], [3, 1])]
    arrays = [np.zeros((4, 3), np.float32), fault, x, index]
    y = run("gather", "i32", arrays, params, (1, 1, 1), DIMS=2)[0]
    np.testing.assert_array_equal(y, np.take_along_axis(x, index, 1))
    v = floats(4, 3, seed=1)
    for op, f in enumerate([None, np.add, np.multiply, np.maximum, np.minimum]):
        params = [24, 6, 0, 3, 0, 0, 0, 1, 1, 1, 0, 0, *strided([4], [6], [3], [3])]
        got = run("scatter", "f32", [x, fault, v, index], params, (1, 1, 1), OP=op)[0]
        want = x.copy()
        for r, j in np.ndindex(4, 3):
            at = (r, index[r, j])
            want[at] = v[r, j] if f is None else f(want[at], v[r, j])
        close(got, want)


@pytest.mark.parametrize("offset", [0, 1, 2, 3, 5])
@pytest.mark.parametrize("n", [1, 2, 7, 16])
def test_invocations_that_own_words_give_the_bits_of_single_ones(n, offset):
    x = rng().integers(0, 200, 64)
    at = rng(1).integers(0, 32, n).astype(np.uint32)
    around = [*dims([1], [1]), *dims([1], [1])]
    planes = rng(2).standard_normal(64).astype(np.float16)
    shape = [1, 2 * n, 1, n, 1, 2, 1, 2, 0, 0]
    for name, acc, kind, y_type, params, formats in [
        ("take", "i32", np.uint8, U8, [n, n, 1, 0, offset, 0, 0, 0, *around], {"X": U8}),
        ("take", "i32", np.uint16, I16, [n, n, 1, 0, offset, 0, 0, 0, *around], {"X": I16}),
        ("avg_pool2d", "f32", np.uint16, F16, [n, 0, offset, 0, *shape, 0], {"X": F16}),
        ("avg_pool2d", "f32", np.uint16, BF16, [n, 0, offset, 0, *shape, 0], {"X": F16}),
    ]:
        found = []
        for together in (0, 1):
            y = np.full(n + 12, 77, kind)
            source = x.astype(kind) if name == "take" else planes
            arrays = [y, source, at] if name == "take" else [y, source]
            sizes = {"Y": y_type, "WORDS": together, **formats}
            found.append(run(name, acc, arrays, params, (1, 1, 1), **sizes)[0])
        np.testing.assert_array_equal(*found)
        outside = np.delete(found[0], np.s_[offset : offset + n])
        assert (outside == 77).all()
        if name == "take":
            np.testing.assert_array_equal(found[0][offset : offset + n], x.astype(kind)[at])


# ---- pooling ------------------------------------------------------------------------------------


@pytest.mark.parametrize("config", [(2, 2, 0), (3, 1, 1), (3, 2, 1)])
def test_max_pool2d_and_backward_match_numpy(config):
    k, s, pad = config
    x = rng().permutation(2 * 7 * 8).reshape(2, 7, 8).astype(np.float32)
    oh, ow = (7 + 2 * pad - k) // s + 1, (8 + 2 * pad - k) // s + 1
    padded = np.pad(x, ((0, 0), (pad, pad), (pad, pad)), constant_values=-np.inf)
    windows = np.lib.stride_tricks.sliding_window_view(padded, (k, k), (1, 2))[:, ::s, ::s]
    want = windows[:, :oh, :ow].max((3, 4))
    shape = [7, 8, oh, ow, *[k] * 2, *[s] * 2, *[pad] * 2, 1, 1]
    arrays = [np.zeros((2, oh, ow), np.float32), np.zeros((2, oh, ow), np.int64), x]
    y, index, _ = run("max_pool2d", "f32", arrays, [want.size, 0, 0, 0, *shape], (1, 1, 1))
    np.testing.assert_array_equal(y, want)
    np.testing.assert_array_equal(np.take_along_axis(x.reshape(2, -1), index.reshape(2, -1), 1),
                                  want.reshape(2, -1))  # fmt: skip
    g = floats(2, oh, ow)
    d = run("max_pool2d_backward", "f32", [np.zeros_like(x), g, index],
            [x.size, 0, 0, 0, *shape], (1, 1, 1))[0]  # fmt: skip
    grad = np.zeros((2, 56))
    for p in range(2):
        np.add.at(grad[p], index[p].ravel(), g[p].ravel())
    close(d.reshape(2, -1), grad)


@pytest.mark.parametrize("config", [(2, 2, 0, 0), (3, 1, 1, 0), (3, 2, 1, 1), "adaptive"])
def test_avg_pool2d_and_backward_match_numpy(config):
    x = floats(2, 7, 8)
    adaptive = config == "adaptive"
    k, s, pad, counted = (1, 1, 0, 0) if adaptive else config
    oh, ow = (3, 5) if adaptive else ((7 + 2 * pad - k) // s + 1, (8 + 2 * pad - k) // s + 1)

    def bounds(o, size, count):
        if adaptive:
            return o * size // count, -(-(o + 1) * size // count)
        return max(o * s - pad, 0), min(o * s - pad + k, size)

    # The pooling matrix: which inputs enter each output, with what factor.
    matrix = np.zeros((oh, ow, 7, 8))
    for i, j in np.ndindex(oh, ow):
        (a, b), (c, d) = bounds(i, 7, oh), bounds(j, 8, ow)
        matrix[i, j, a:b, c:d] = 1 / (k * k if counted else (b - a) * (d - c))
    shape = [7, 8, oh, ow, *[k] * 2, *[s] * 2, *[pad] * 2, counted]
    arrays = [np.zeros((2, oh, ow), np.float32), x]
    params = [2 * oh * ow, 0, 0, 0, *shape]
    y = run("avg_pool2d", "f32", arrays, params, (1, 1, 1), ADAPTIVE=adaptive)[0]
    close(y, np.einsum("ijhw,phw->pij", matrix, x), 1e-5)
    g = floats(2, oh, ow, seed=1)
    params = [x.size, 0, 0, 0, *shape]
    arrays = [np.zeros_like(x), g]
    d = run("avg_pool2d", "f32", arrays, params, (1, 1, 1), ADAPTIVE=adaptive, BACKWARD=1)[0]
    close(d, np.einsum("ijhw,pij->phw", matrix, g), 1e-5)


# ---- optimizers ---------------------------------------------------------------------------------


def step_of(file, fields, lists, head, more=(0, 0), **constants):
    """Runs an optimizer's step; `lists` has the fields of each parameter and its gradient last.

    Returns the fields afterwards. The tail binds the fields of all parameters, then the gradients.
    """
    n = len(lists)
    tail, arrays, slots, groups = "", [], [], 0
    for k, fs in enumerate(lists):
        tail += "".join(
            f"@group(0) @binding({k * len(fields) + j + 1}) "
            f"var<storage, read_write> {f}{k}: array<u32>;\n" for j, f in enumerate(fields)
        )  # fmt: skip
        arrays += fs[:-1]
        slots += [fs[0].size, *[0] * 5, *more]
        groups += -(-fs[0].size // 256)
    for k in range(n):
        tail += (
            f"@group(0) @binding({n * len(fields) + k + 1}) var<storage, read> g{k}: array<u32>;\n"
        )
    tail += """@compute @workgroup_size(256)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
    var i = id.x;
"""
    for k in range(n):
        load = "".join(f"s.{f} = bitcast<f32>({f}{k}[i]); " for f in fields)
        store = "".join(f"{f}{k}[i] = bitcast<u32>(s.{f}); " for f in fields)
        tail += f"""
    if (i < {-(-lists[k][0].size // 256) * 256}u) {{
        if (i >= p.slot[{k}][0].x) {{ return; }}
        var s: State;
        {load}
        stepped(&s, bitcast<f32>(g{k}[i]), {k}u);
        {store}
        return;
    }}
    i -= {-(-lists[k][0].size // 256) * 256}u;
"""
    out = run(file, "f32", [*arrays, *[fs[-1] for fs in lists]], [*head, *slots], (groups, 1, 1),
              tail + "}\n", **constants)  # fmt: skip
    return [out[k * len(fields) : (k + 1) * len(fields)] for k in range(n)]


@pytest.mark.parametrize("nesterov", [False, True])
def test_sgd_two_steps_match_numpy(nesterov):
    sizes = (300, 70)
    x = [floats(n, seed=n) for n in sizes]
    g = [floats(n, seed=n + 1) for n in sizes]
    lr, decay, mu, damp = 0.1, 0.01, 0.9, 0.0 if nesterov else 0.2
    got = [[a, np.zeros_like(a)] for a in x]
    want, buffers = [a.astype(np.float64) for a in x], [None, None]
    for step in range(2):
        constants = {"HAS_MOMENTUM": 1, "FIRST": step == 0, "NESTEROV": nesterov}
        lists = [[*fields, a] for fields, a in zip(got, g)]
        got = step_of("sgd", "xm", lists, map(f32, (lr, decay, mu, damp)), **constants)
        for k in range(2):
            d = g[k] + decay * want[k]
            buffers[k] = d if buffers[k] is None else mu * buffers[k] + (1 - damp) * d
            want[k] -= lr * (d + mu * buffers[k] if nesterov else buffers[k])
    for k in range(2):
        close(got[k][0], want[k], 1e-6)


@pytest.mark.parametrize(("decoupled", "amsgrad"), [(False, False), (True, False), (False, True)])
def test_adam_three_steps_match_numpy(decoupled, amsgrad):
    x = floats(300)
    lr, b1, b2, eps, decay = 0.01, 0.9, 0.99, 1e-8, 0.1
    got = [x, *[np.zeros_like(x) for _ in range(3)]]
    want = x.astype(np.float64)
    wm, wv, wtop = np.zeros(300), np.zeros(300), np.zeros(300)
    for t in range(1, 4):
        g = floats(300, seed=t) * (5 if t == 1 else 0.1)
        step, root = lr / (1 - b1**t), np.sqrt(1 - b2**t)
        head = [*map(f32, (lr, decay, 1 - b1, b2, 1 - b2, eps)), 0, 0]
        constants = {"DECOUPLED": decoupled, "AMSGRAD": amsgrad}
        fields, lists = ("x", "m", "v", "top"), [[*got, g.astype(np.float32)]]
        [got] = step_of("adam", fields, lists, head, (f32(step), f32(root)), **constants)
        d = g.astype(np.float64)
        if decoupled:
            want -= lr * decay * want
        else:
            d = d + decay * want
        wm = b1 * wm + (1 - b1) * d
        wv = b2 * wv + (1 - b2) * d * d
        wtop = np.maximum(wtop, wv) if amsgrad else wv
        want -= step * wm / (np.sqrt(wtop) / root + eps)
    close(got[0], want, 1e-5)
