"""Operators that programs define: called, differentiated and checked as PyTorch's."""

import numpy as np
import pytest
from child import run

import pytensorlib as torch
from pytensorlib import library


@pytest.fixture
def sine():
    @library.custom_op("test_custom_ops::sine", mutates_args=())
    def sine(x: torch.Tensor, scale: float = 1.0) -> torch.Tensor:
        return torch.from_numpy(np.sin(x.detach().numpy()) * scale)

    return sine


def keep(ctx, inputs, output):
    x, ctx.scale = inputs
    ctx.save_for_backward(x)


def test_custom_op_is_found_by_name_and_computes(sine):
    x = torch.linspace(0, 1, 5)
    assert torch.equal(torch.ops.test_custom_ops.sine(x, scale=2.0), sine(x, 2.0))
    np.testing.assert_allclose(sine(x).numpy(), np.sin(x.numpy()), rtol=1e-6)
    assert sine._opoverload is torch.ops.test_custom_ops.sine.default


def test_custom_op_differentiates_by_the_registered_formula(sine):
    x = torch.tensor([0.3, 0.7], dtype=torch.float64, requires_grad=True)
    y = sine(x)
    with pytest.raises(RuntimeError, match="no autograd formula was registered"):
        y.sum().backward()

    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        return grad * x.cos() * ctx.scale, None

    sine.register_autograd(backward, setup_context=keep)
    sine(x, scale=3.0).sum().backward()
    np.testing.assert_allclose(x.grad.numpy(), 3 * np.cos([0.3, 0.7]), rtol=1e-12)
    assert torch.autograd.gradcheck(lambda x: sine(x, 2.0), x)
    with torch.no_grad():
        assert not sine(x).requires_grad


def test_custom_op_result_may_not_be_an_argument():
    @library.custom_op("test_custom_ops::same", mutates_args=())
    def same(x: torch.Tensor) -> torch.Tensor:
        return x.view(-1)

    with pytest.raises(RuntimeError, match="may not alias"):
        same(torch.ones(2))


def test_custom_op_writes_to_what_it_names():
    @library.custom_op("test_custom_ops::fill", mutates_args={"x"})
    def fill(x: torch.Tensor, value: float) -> None:
        x.fill_(value)

    x = torch.zeros(2)
    fill(x, 3.0)
    assert x.tolist() == [3, 3]
    library.opcheck(fill, (x, 4.0), test_utils="test_schema")

    @library.custom_op("test_custom_ops::sneak", mutates_args=())
    def sneak(x: torch.Tensor) -> torch.Tensor:
        x.fill_(1)
        return x.clone()

    with pytest.raises(RuntimeError, match="argument x was written to"):
        library.opcheck(sneak, (torch.zeros(2),), test_utils="test_schema")


def test_opcheck_compares_the_fake_with_the_result(sine):
    found = library.opcheck(sine, (torch.ones(3),), raise_exception=False)
    assert found["test_schema"] == "SUCCESS"
    assert "register_fake" in str(found["test_faketensor"])
    sine.register_fake(lambda x, scale=1.0: torch.empty(2))
    with pytest.raises(RuntimeError, match=r"\(2,\)"):
        library.opcheck(sine, (torch.ones(3),), test_utils="test_faketensor")
    sine.register_fake(lambda x, scale=1.0: torch.empty_like(x))
    library.opcheck(sine, (torch.ones(3),), test_utils="test_faketensor")


# What PyTorch 2.13 answers.
SCHEMAS = [
    (
        "(Tensor x, SymInt n=3, *, float[] a) -> Tensor",
        (),
        "x: Tensor, n: int = 3, *, a: list[float]",
    ),
    ("(Tensor(a0!) x, Tensor? y=None) -> Tensor", ("x",), "x: Tensor, y: Tensor | None = None"),
    (
        '(Tensor[] xs, str mode="sum", bool b=False) -> Tensor',
        (),
        'xs: list[Tensor], mode: str = "sum", b: bool = False',
    ),
]


@pytest.mark.parametrize(("schema", "mutates", "parameters"), SCHEMAS)
def test_infer_schema_reads_annotations(schema, mutates, parameters):
    space = {"Tensor": torch.Tensor}
    exec(f"def f({parameters}) -> Tensor: ...", space)
    assert library.infer_schema(space["f"], mutates_args=mutates) == schema


def test_infer_schema_refuses_what_has_no_type():
    def bare(x) -> torch.Tensor: ...

    with pytest.raises(ValueError, match="must have a type annotation"):
        library.infer_schema(bare, mutates_args=())


def test_library_defines_implements_and_forgets():
    lib = library.Library("test_custom_ops_lib", "DEF")
    assert lib.define("plus(Tensor x, int n) -> Tensor") == "plus"
    with pytest.raises(NotImplementedError, match="no kernel"):
        torch.ops.test_custom_ops_lib.plus(torch.ones(1), 1)
    lib.impl("plus", lambda x, n: x + n, "CompositeImplicitAutograd")
    x = torch.ones(1, requires_grad=True)
    torch.ops.test_custom_ops_lib.plus(x, 2).backward()
    assert x.grad.item() == 1
    lib._destroy()
    assert not hasattr(torch.ops.test_custom_ops_lib, "plus")


def test_kernels_are_chosen_by_device():
    @library.custom_op("test_custom_ops::where", mutates_args=(), device_types="wgpu")
    def where(x: torch.Tensor) -> torch.Tensor:
        return x + 1

    with pytest.raises(NotImplementedError, match="wgpu"):
        where(torch.ones(1))
    where.register_kernel("cpu", lambda x: x + 2)
    assert where(torch.ones(1)).item() == 3


def test_register_fake_of_an_operator_that_is_not_there_is_ignored():
    @library.register_fake("test_custom_ops_absent::nms")
    def fake(x):
        return x

    with pytest.raises(RuntimeError, match="does not exist"):
        library.register_autograd("test_custom_ops_absent::nms", lambda ctx, g: g)


CUBE = "fn op(x: Acc, k: Acc) -> Acc { return k * x * x * x; }"


@pytest.mark.skipif(not torch.wgpu.is_available(), reason="no GPU adapter")
def test_custom_op_of_wgsl_computes_and_differentiates_as_on_the_cpu():
    @library.custom_op("test_custom_ops::cube", mutates_args=())
    def cube(x: torch.Tensor, k: torch.Tensor) -> torch.Tensor:
        return k * x * x * x

    @cube.register_kernel("wgpu")
    def _(x: torch.Tensor, k: torch.Tensor) -> torch.Tensor:
        return torch.wgpu.elementwise(CUBE, x, k)

    def backward(ctx, grad):
        x, k = ctx.saved_tensors
        return 3 * k * x * x * grad, (x * x * x * grad).sum_to_size(k.shape)

    def keep_both(ctx, inputs, output):
        ctx.save_for_backward(*inputs)

    cube.register_autograd(backward, setup_context=keep_both)
    values, k = np.float32([[1, -2, 3], [0.5, 4, -1]]), np.float32([2, 0.25, 1])
    grads = []
    for device in ("cpu", "wgpu"):
        x = torch.tensor(values, device=device, requires_grad=True)
        w = torch.tensor(k, device=device, requires_grad=True)
        torch.wgpu.set_fallback("error")
        try:
            y = cube(x, w)
            y.backward(torch.ones_like(y))
        finally:
            torch.wgpu.set_fallback(None)
        np.testing.assert_allclose(y.detach().cpu().numpy(), k * values**3, rtol=1e-6)
        grads.append([x.grad.cpu().numpy(), w.grad.cpu().numpy()])
    np.testing.assert_allclose(grads[0][0], 3 * k * values**2, rtol=1e-6)
    np.testing.assert_allclose(grads[0][1], (values**3).sum(0), rtol=1e-6)
    for a, b in zip(*grads, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-6)


@pytest.mark.skipif(not torch.wgpu.is_available(), reason="no GPU adapter")
def test_elementwise_is_recorded_told_and_refused_a_derivative_as_other_operators():
    call = torch.graph(lambda x: torch.wgpu.elementwise(CUBE, x, x + 1) * 2, fullgraph=True)
    # Equal numbers at first: what a record takes for a constant would stay.
    for i in (1.0, 1.0, 1.0, 2.0, 3.0):
        x = torch.full((3, 5), i, device="wgpu")
        assert call(x).tolist() == [[2 * (i + 1) * i**3] * 5] * 3
    assert call.programs[0].kept > 0
    with torch.profiler.profile() as prof, torch.wgpu.check_against("cpu") as check:
        torch.wgpu.elementwise("fn op(x: Acc) -> Acc { return x; }", x)
    assert "aten::elementwise" in {e.key for e in prof.key_averages()}
    assert check.compared == 0  # only the GPU can compute it
    w = torch.ones(3, device="wgpu", requires_grad=True)
    y = torch.wgpu.elementwise("fn op(x: Acc) -> Acc { return x; }", w)
    with pytest.raises(NotImplementedError, match="derivative for 'wgpu.elementwise'.*custom_op"):
        y.sum().backward()


WITH_SMALL_BINDINGS = """
    import pytensorlib as torch
    body = "fn op(x: Acc, y: Acc) -> Acc { return x * y + x; }"
    for shape in ((100_003,), (1, 50_000), (300, 400), (3, 1, 70_000)):
        x = torch.arange(torch.Size(shape).numel()).reshape(shape).remainder(13)
        for dtype in (torch.float32, torch.int64, torch.uint8):
            a, b = x.to(dtype), (x % 5).to(dtype)
            y = torch.wgpu.elementwise(body, a.to("wgpu"), b.to("wgpu"))
            print(torch.equal(y.cpu(), a * b + a))
"""


@pytest.mark.skipif(not torch.wgpu.is_available(), reason="no GPU adapter")
def test_elementwise_over_tensors_larger_than_a_binding_equals_the_cpu():
    small = {"PYTENSORLIB_WGPU_MAX_BINDING": "65536", "PYTENSORLIB_WGPU_FALLBACK": "error"}
    assert run(WITH_SMALL_BINDINGS, **small) == "True\n" * 12


@pytest.mark.skipif(not torch.wgpu.is_available(), reason="no GPU adapter")
def test_elementwise_takes_types_layouts_and_sizes_and_refuses_the_rest():
    f = torch.wgpu.elementwise
    for dtype in (torch.float32, torch.float64, torch.bfloat16, torch.int64, torch.uint8):
        for shape in ((), (0,), (1,), (7,), (3, 1000)):
            x = torch.arange(int(np.prod(shape))).reshape(shape).remainder(5).to(dtype)
            for given in (x, x.reshape(1, *shape)[0], x.T if x.ndim == 2 else x):
                y = f(
                    "fn op(x: Acc, y: Acc) -> Acc { return x * y + x; }",
                    given.to("wgpu"),
                    given.to("wgpu"),
                )
                assert y.dtype == dtype and torch.equal(y.cpu(), given * given + given)
    x = torch.ones(4, device="wgpu")
    y = f(
        "fn op(x: Acc, y: Acc) -> Acc { return x + y; }", x, torch.arange(3, device="wgpu")[:, None]
    )
    assert y.tolist() == [[1.0] * 4, [2.0] * 4, [3.0] * 4]
    assert f("fn op(x: Acc) -> Acc { return m_exp(x); }", x).tolist() == pytest.approx([np.e] * 4)
    # A load far outside is kept inside.
    far = "fn op(a: Acc) -> Acc { return bitcast<f32>(x0[1u << 28u]) * 0.0 + a; }"
    assert f(far, x).shape == (4,)
    with pytest.raises(RuntimeError, match="did not compile"):
        f("fn op(x: Acc) -> Acc { return nonsense; }", x)
    with pytest.raises(RuntimeError, match="expected tensors on the GPU"):
        f("fn op(x: Acc) -> Acc { return x; }", torch.ones(2))
    with pytest.raises(RuntimeError, match="1 to 6 tensors"):
        f("fn op() -> Acc { return Acc(1); }")


DECLARED = {
    "@group": "@group(0) @binding(9) var<storage, read_write> z: array<u32>;",
    "@binding": "@binding(1) @group(0) var<uniform> z: vec4<u32>;",
    "override": "override z: f32 = 1.0;",
    "@id": "@id(7) override z: f32 = 1.0;",
    "@compute": "@compute @workgroup_size(64) fn other() {}",
    "@workgroup_size": "@workgroup_size(64) @compute fn other() {}",
    "@fragment": "@fragment fn other() {}",
    "enable": "enable f16;",
    "requires": "requires readonly_and_readwrite_storage_textures;",
    "diagnostic": "diagnostic(off, derivative_uniformity);",
}


@pytest.mark.skipif(not torch.wgpu.is_available(), reason="no GPU adapter")
@pytest.mark.parametrize("found", DECLARED)
def test_elementwise_refuses_what_belongs_to_its_shader(found):
    x = torch.ones(4, device="wgpu")
    body = "fn op(x: Acc) -> Acc { return x; }"
    what = f"^wgpu.elementwise: a body is functions.*but found '{found}'$"
    for text in (
        f"{DECLARED[found]}\n{body}",
        f"{body}\n{DECLARED[found]}",
        f"{body} /* a */{DECLARED[found]}",
    ):
        with pytest.raises(RuntimeError, match=what):
            torch.wgpu.elementwise(text, x)
    said = f"// {DECLARED[found]}\n/* {found} /* {found} */ {found} */ {body}"
    assert torch.wgpu.elementwise(said, x).tolist() == [1.0] * 4


def of_variables(where, n):
    """Return a body that writes to and reads from `n` bytes by an index that it computes."""
    at = f"[u32(x) % {n // 4}u]"
    if where == "private":
        return (
            f"var<private> kept: array<f32, {n // 4}>;\n"
            f"fn op(x: Acc) -> Acc {{ kept{at} = x; return kept{at}; }}"
        )
    if where == "function":
        return (
            f"fn op(x: Acc) -> Acc {{ var kept: array<f32, {n // 4}>; kept{at} = x; "
            f"return kept{at}; }}"
        )
    if where == "structure":
        return (
            f"struct Kept {{ v: array<f32, {n // 4}> }}\n"
            f"fn op(x: Acc) -> Acc {{ var kept: Kept; kept.v{at} = x; return kept.v{at}; }}"
        )
    # Two of them, in functions of their own.
    half = n // 8
    own = [
        f"fn f{k}(x: Acc) -> Acc {{ var kept: array<f32, {half}>; kept[u32(x) % {half}u] = x; "
        f"return kept[u32(x) % {half}u]; }}\n"
        for k in range(2)
    ]
    return "".join(own) + "fn op(x: Acc) -> Acc { return f0(x) + f1(x) - x; }"


@pytest.mark.skipif(not torch.wgpu.is_available(), reason="no GPU adapter")
@pytest.mark.parametrize("where", ["private", "function", "structure", "functions"])
def test_elementwise_bounds_the_variables_of_an_invocation(where):
    x = torch.arange(5.0).to("wgpu")
    assert torch.wgpu.elementwise(of_variables(where, 1024), x).tolist() == x.tolist()
    for n in (1032, 4096, 1 << 20):
        what = f"^wgpu.elementwise: arrays.*1024 bytes together, but those of this text take {n};"
        with pytest.raises(RuntimeError, match=what):
            torch.wgpu.elementwise(of_variables(where, n), x)


@pytest.mark.skipif(not torch.wgpu.is_available(), reason="no GPU adapter")
def test_elementwise_bounds_arrays_that_are_values():
    x = torch.arange(5.0).to("wgpu")
    table = lambda n: (  # noqa: E731
        f"const TABLE = array<f32, {n}>({', '.join(f'{i}.0' for i in range(n))});\n"
        "fn op(x: Acc) -> Acc { return TABLE[u32(x)]; }"
    )
    assert torch.wgpu.elementwise(table(256), x).tolist() == x.tolist()
    with pytest.raises(RuntimeError, match="arrays.*1024 bytes together"):
        torch.wgpu.elementwise(table(257), x)
    shared = "var<workgroup> kept: array<f32, 1048576>;\n"
    with pytest.raises(RuntimeError, match="arrays.*1024 bytes together"):
        torch.wgpu.elementwise(shared + "fn op(x: Acc) -> Acc { return x + kept[0]; }", x)
