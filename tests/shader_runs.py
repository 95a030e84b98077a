"""Runs shader files through wgpu-py: none of the project's Rust takes part."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

import numpy as np
import pytest

wgpu = pytest.importorskip("wgpu")

SHADERS = Path(__file__).parents[1] / "shaders"
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
