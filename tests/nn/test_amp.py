"""`torch.autocast` and `torch.amp.GradScaler`."""

import pickle
import threading
import warnings
from typing import Any

import pytest

import pytensorlib as torch
from pytensorlib import nn, wgpu
from pytensorlib.nn import functional as F
from pytensorlib.utils.checkpoint import checkpoint

GPU = pytest.mark.skipif(not wgpu.is_available(), reason="no GPU adapter")

# The types of results under `torch.autocast("cpu")`, recorded from PyTorch 2.13, of arguments of
# float32 and of bfloat16; one where both are the same.
RECORDED = {
    "bfloat16": """
        F.linear(x, x, v)
        torch.mm(x, x)
        x @ v
        torch.matmul(b, x)
        torch.bmm(b, b)
        torch.addmm(x, x, x)
        torch.addbmm(x, b, b)
        torch.baddbmm(b, b, b)
        torch.inner(x, x)
        torch.einsum("ij,jk->ik", x, x)
        torch.tensordot(x, x, 1)
        torch.chain_matmul(x, x, x)
        torch.linalg.multi_dot([x, x, x])
        torch.matrix_power(x, 2)
        torch.linalg.vecdot(x, x)
        F.conv1d(i3, i3[:, :, :3])
        F.conv2d(i4, i4[:, :, :3, :3])
        F.conv3d(i5, i5[..., :2])
        F.conv_transpose1d(i3, k3)
        F.conv_transpose2d(i4, k4)
        F.prelu(x, v[:1])
        F.scaled_dot_product_attention(b, b, b)
        nn.RNNCell(4, 3)(x)
        nn.Sequential(nn.Linear(4, 4), nn.LayerNorm(4), nn.Linear(4, 4), nn.Softmax(-1))(x)
    """,
    "float32 / bfloat16": """
        x.clone().addmm_(x, x)
        torch.mm(x, x, out=torch.empty_like(x))
        torch.mv(x, v)
        torch.addmv(v, x, v)
        torch.addr(x, v, v)
        torch.dot(v, v)
        torch.outer(v, v)
        torch.inner(v, v)
        torch.einsum("ij->i", x)
        torch.einsum("i,j->ij", v, v)
        torch.kron(x, x)
        torch.relu(x)
        F.gelu(x)
        torch.softmax(x, -1)
        F.log_softmax(x, -1)
        F.layer_norm(x, (4,))
        F.group_norm(i4, 2)
        F.batch_norm(i4, None, None, training=True)
        F.rms_norm(x, (4,))
        F.gaussian_nll_loss(x, x, x)
        torch.cat([x, x])
        torch.sum(x)
        torch.exp(x)
        x**2
        torch.norm(x)
        torch.linalg.norm(x)
        F.avg_pool2d(i4, 2)
        F.pad(i5, (1, 1) * 3, "reflect")
        F.pad(i4, (1, 1))
        F.interpolate(i4, scale_factor=2, mode="bilinear")
        F.embedding(y, x)
        nn.GRUCell(4, 3)(x)
        nn.TransformerEncoderLayer(4, 2, 8)(b)
    """,
    "float64": """
        torch.softmax(x, -1, dtype=torch.float64)
        x.double() @ x.double()
    """,
    "float32": """
        F.cross_entropy(x, y)
        F.nll_loss(x, y)
        F.mse_loss(x, x)
        F.l1_loss(x, x)
        F.smooth_l1_loss(x, x)
        F.huber_loss(x, x)
        F.binary_cross_entropy(x / 2, x / 2)
        F.binary_cross_entropy_with_logits(x, x)
        F.kl_div(x, x, reduction="sum")
        F.poisson_nll_loss(x, x)
        F.cosine_embedding_loss(x, x, torch.ones(4))
        F.margin_ranking_loss(v, v, torch.ones(4))
        F.triplet_margin_loss(x, x, x)
        F.soft_margin_loss(v, torch.ones(4))
        F.multi_margin_loss(x, y)
        torch.cat([x.float(), x.bfloat16()])
        torch.stack([x.float(), x.bfloat16()])
        x.float() + x.bfloat16()
        torch.index_copy(x.float(), 0, y, x.bfloat16())
        torch.cdist(x, x)
        torch.prod(x)
        torch.trace(x)
        torch.quantile(x, 0.5)
        torch.inverse(s)
        torch.linalg.inv(s)
        torch.linalg.solve(s, x)
        torch.linalg.cholesky(s)
        torch.linalg.svdvals(s)
        torch.linalg.lstsq(s, x).solution
        torch.linalg.cond(s)
        torch.fft.irfft(x)
        F.avg_pool3d(i5, 2)
        F.max_pool3d(i5, 2)
        F.adaptive_avg_pool3d(i5, 2)
        F.pad(i3, (1, 1), "reflect")
        F.pad(i4, (1, 1, 1, 1), "replicate")
        F.grid_sample(i4, i4[:, :1, :2, :2].expand(1, 2, 2, 2), align_corners=True)
    """,
    "complex64": """
        torch.view_as_complex(k3[0])
        torch.linalg.eigvals(s)
        torch.fft.fft(x)
    """,
    "float32 float32": """
        torch.linalg.qr(s)
        torch.linalg.eigh(s)
        nn.GRU(4, 3)(b, torch.zeros(1, 4, 3))
    """,
    "int64": """
        torch.linalg.matrix_rank(s)
    """,
    "int32": """
        x.int() @ x.int()
    """,
    "float32 float32 / bfloat16 bfloat16": """
        nn.GRU(4, 3)(b)
        nn.LSTMCell(4, 3)(x)
    """,
    "bfloat16 bfloat16": """
        nn.RNN(4, 3)(b)
        nn.MultiheadAttention(4, 2)(b, b, b)
    """,
}


def arguments(dtype: Any) -> dict[str, Any]:
    x = torch.linspace(0.1, 1, 16).to(dtype).reshape(4, 4)
    t = torch.linspace(0.1, 1, 128).to(dtype)
    return {
        "torch": torch,
        "F": F,
        "nn": nn,
        "x": x,
        "v": x[0],
        "y": torch.arange(4),
        "s": (torch.eye(4) + torch.ones(4, 4)).to(dtype),
        "b": t[:32].reshape(2, 4, 4),
        "i3": t[:16].reshape(1, 2, 8),
        "i4": t.reshape(1, 2, 8, 8),
        "i5": t.reshape(1, 2, 4, 4, 4),
        "k3": t[:24].reshape(2, 6, 2),
        "k4": t[:24].reshape(2, 3, 2, 2),
    }


def flat(value: Any) -> list[Any]:
    if isinstance(value, (tuple, list)):
        return [t for item in value for t in flat(item)]
    return [value]


def types(call: str, dtype: Any) -> str:
    with torch.autocast("cpu"):
        return " ".join(str(t.dtype)[6:] for t in flat(eval(call, arguments(dtype))))


@pytest.mark.parametrize("want", RECORDED)
def test_results_have_the_types_of_pytorch(want: str) -> None:
    single, low = (want.split(" / ") * 2)[:2]
    calls = [line.strip() for line in RECORDED[want].strip().splitlines()]
    wrong = [
        (call, dtype, got)
        for call in calls
        for dtype, need in ((torch.float32, single), (torch.bfloat16, low))
        if (got := types(call, dtype)) != need
    ]
    assert calls and not wrong


def test_what_is_made_of_products_inside_stays_precise() -> None:
    # PyTorch computes the products inside these in bfloat16.
    for call in ("torch.cov(x)", "torch.corrcoef(x)", "torch.linalg.pinv(s)"):
        assert types(call, torch.float32) == "float32"


def test_lstms_compute_in_few_bits() -> None:
    # Not recorded: PyTorch does so only on processors that multiply bfloat16.
    for dtype in (torch.float32, torch.bfloat16):
        assert types("nn.LSTM(4, 3, 2)(b)", dtype) == "bfloat16 bfloat16 bfloat16"


def test_products_are_those_of_rounded_numbers() -> None:
    torch.manual_seed(0)
    x, w = torch.randn(5, 7), torch.randn(3, 7)
    want = F.linear(x.bfloat16(), w.bfloat16())
    with torch.autocast("cpu"):
        assert torch.equal(F.linear(x, w), want)
    with torch.autocast("cpu", dtype=torch.float16):
        assert torch.equal(x @ w.T, x.half() @ w.half().T)
    assert F.linear(x, w).dtype == torch.float32


def test_blocks_nest_and_end_with_errors() -> None:
    x = torch.ones(2, 2)
    with torch.autocast("cpu"):
        with torch.autocast("cpu", dtype=torch.float16):
            assert (x @ x).dtype == torch.float16
            with torch.autocast("cpu", enabled=False):
                assert not torch.is_autocast_enabled("cpu")
                assert (x @ x).dtype == torch.float32
        assert torch.get_autocast_dtype("cpu") == torch.bfloat16
        with pytest.raises(RuntimeError, match="mm"):
            torch.mm(x, torch.ones(3, 3))
        with pytest.raises(ZeroDivisionError), torch.autocast("cpu", enabled=False):
            raise ZeroDivisionError
        assert (x @ x).dtype == torch.bfloat16
    assert (x @ x).dtype == torch.float32
    assert not torch._C._torch_function_modes(True)


def test_a_decorator_runs_its_function_in_a_block() -> None:
    @torch.autocast("cpu")
    def product(x: Any, deeper: int) -> Any:
        """Multiply."""
        return product(x, deeper - 1) if deeper else x @ x

    assert product(torch.ones(2, 2), 3).dtype == torch.bfloat16
    assert product.__doc__ == "Multiply."
    assert not torch.is_autocast_enabled("cpu")
    with pytest.raises(TypeError, match="callable"):
        torch.autocast("cpu")(3)  # type: ignore[arg-type]


def test_threads_have_their_own_state() -> None:
    found = []

    def look() -> None:
        found.append((torch.is_autocast_enabled("cpu"), (torch.eye(2) @ torch.eye(2)).dtype))

    with torch.autocast("cpu"):
        thread = threading.Thread(target=look)
        thread.start()
        thread.join()
    assert found == [(False, torch.float32)]


def test_a_parameter_is_cast_once_and_anew_when_it_was_written() -> None:
    w = torch.ones(2, 2, requires_grad=True)
    with torch.autocast("cpu"):
        with torch.no_grad():
            assert not (w @ w).requires_grad
        first, second = torch.mm(w, torch.eye(2)), torch.mm(w, torch.eye(2))
        # Both products hold the same cast: one node between them and the parameter.
        assert first.grad_fn.next_functions[0][0] is second.grad_fn.next_functions[0][0]
        with torch.no_grad():
            w.mul_(3)
        assert torch.equal(torch.mm(w, torch.eye(2)).float(), torch.full((2, 2), 3.0))
        with torch.autocast("cpu", cache_enabled=False):
            third, fourth = torch.mm(w, torch.eye(2)), torch.mm(w, torch.eye(2))
        assert third.grad_fn.next_functions[0][0] is not fourth.grad_fn.next_functions[0][0]


def test_gradients_have_the_types_of_parameters() -> None:
    torch.manual_seed(0)
    net = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 1))
    x = torch.randn(16, 4)
    grads = []
    for on in (False, True):
        net.zero_grad()
        with torch.autocast("cpu", enabled=on):
            loss = F.mse_loss(net(x), x.sum(1, keepdim=True))
        assert loss.dtype == torch.float32
        loss.backward()
        grads.append([p.grad.clone() for p in net.parameters()])
    for plain, low in zip(*grads, strict=True):
        assert low.dtype == torch.float32 and not torch.equal(plain, low)
        # bfloat16 has 8 bits, and a few roundings follow each other.
        assert (plain - low).norm() <= 0.05 * plain.norm()


@pytest.mark.parametrize("reentrant", [False, True])
def test_checkpoints_compute_again_under_the_same_autocast(reentrant: bool) -> None:
    seen = []

    def part(x: Any) -> Any:
        y = (x @ x).sin()
        seen.append(y.dtype)
        return y

    x = torch.rand(3, 3, requires_grad=True)
    with torch.autocast("cpu"):
        y = checkpoint(part, x, use_reentrant=reentrant)
    y.float().sum().backward()
    assert seen[0] == torch.bfloat16 and set(seen) == {torch.bfloat16}
    assert x.grad is not None and not torch.is_autocast_enabled("cpu")


@pytest.mark.parametrize("cast", [None, torch.float32])
def test_functions_of_programs(cast: Any) -> None:
    seen: dict[str, Any] = {}

    class Product(torch.autograd.Function):
        @staticmethod
        @torch.amp.custom_fwd(device_type="cpu", cast_inputs=cast)
        def forward(ctx: Any, x: Any, w: Any) -> Any:
            ctx.save_for_backward(x, w)
            seen["forward"] = (x @ w).dtype
            return x.float() * 2

        @staticmethod
        @torch.amp.custom_bwd(device_type="cpu")
        def backward(ctx: Any, grad: Any) -> Any:
            seen["backward"] = (grad @ grad).dtype
            return grad, None

    x = torch.ones(2, 2, requires_grad=True)
    with torch.autocast("cpu"):
        y = Product.apply(x, torch.ones(2, 2, dtype=torch.bfloat16))
    y.sum().backward()
    want = torch.bfloat16 if cast is None else torch.float32
    assert seen == {"forward": want, "backward": want}
    assert Product.apply(x, torch.ones(2, 2)).dtype == torch.float32


def test_modes_of_programs_see_calls_before_they_are_cast() -> None:
    seen = []

    class Log:
        def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None):
            seen.append((func.__name__, args[0].dtype))
            return func(*args, **(kwargs or {}))

    x = torch.ones(2, 2)
    torch._C._push_torch_function_mode(Log())
    try:
        with torch.autocast("cpu"):
            got = torch.mm(x, x)
    finally:
        torch._C._pop_torch_function_mode()
    assert seen == [("mm", torch.float32)] and got.dtype == torch.bfloat16


def test_operators_of_programs_are_cast_as_they_say() -> None:
    @torch.library.custom_op("amp_test::copied", mutates_args=())
    def copied(x: torch.Tensor) -> torch.Tensor:
        return x.clone()

    torch.library.register_autocast("amp_test::copied", "cpu", torch.float16)
    with torch.autocast("cpu"):
        assert copied(torch.ones(2)).dtype == torch.float16
        assert copied(torch.ones(2, dtype=torch.float64)).dtype == torch.float64
    assert copied(torch.ones(2)).dtype == torch.float32
    with pytest.raises(ValueError, match="device"):
        torch.library.register_autocast("amp_test::copied", "gpu", torch.float16)


def test_devices_that_are_not_here_change_nothing() -> None:
    with pytest.warns(UserWarning, match="'cuda'"):
        block = torch.autocast("cuda")
    with block:
        assert not torch.is_autocast_enabled()
        assert torch.mm(torch.eye(2), torch.eye(2)).dtype == torch.float32
    with pytest.warns(UserWarning, match="float64"):
        assert not torch.autocast("cpu", dtype=torch.float64)._enabled
    for bad in ("meta", "gpu"):
        with pytest.raises(RuntimeError, match=bad):
            torch.autocast(bad)
    with pytest.raises(ValueError, match="str"):
        torch.autocast(torch.bfloat16)  # type: ignore[arg-type]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with torch.autocast("cuda", enabled=False):
            pass


def test_older_names() -> None:
    x = torch.eye(2)
    with pytest.warns(FutureWarning, match="torch.amp.autocast"):
        block = torch.cpu.amp.autocast()
    with block:
        assert (x @ x).dtype == torch.bfloat16 and torch.is_autocast_cpu_enabled()
    with pytest.warns(FutureWarning), pytest.warns(UserWarning, match="cuda"):
        assert not torch.cuda.amp.GradScaler().is_enabled()
    assert (torch.get_autocast_cpu_dtype(), torch.get_autocast_gpu_dtype()) == (
        torch.bfloat16,
        torch.float16,
    )
    torch.set_autocast_enabled(True)
    assert torch.is_autocast_enabled() and torch.is_autocast_enabled("cuda")
    torch.set_autocast_enabled("cuda", False)


# Scaling.


def trained(scaler: Any, device: str = "cpu", steps: int = 4) -> list[float]:
    """Step with the gradients 1, infinity, 2 and NaN; return the scale after each step."""
    w = torch.zeros(1, device=device, requires_grad=True)
    optimizer = torch.optim.SGD([w], lr=1.0)
    scales = []
    for factor in (1.0, float("inf"), 2.0, float("nan"))[:steps]:
        optimizer.zero_grad()
        scaler.scale((w * factor).sum()).backward()
        scaler.step(optimizer)
        scaler.update()
        scales.append(scaler.get_scale())
    assert w.item() == -3.0
    return scales


@pytest.mark.parametrize("device", ["cpu", pytest.param("wgpu", marks=GPU)])
def test_the_scale_grows_and_backs_off(device: str) -> None:
    scaler = torch.amp.GradScaler(device, 8.0, 4.0, 0.25, growth_interval=1)
    assert trained(scaler, device) == [32.0, 8.0, 32.0, 8.0]
    scaler = torch.amp.GradScaler(device, 8.0, growth_interval=2)
    assert trained(scaler, device) == [8.0, 4.0, 4.0, 2.0]


def test_the_scale_stays_finite() -> None:
    scaler = torch.amp.GradScaler("cpu", 2.0**127, growth_interval=1)
    w = torch.zeros(1, requires_grad=True)
    optimizer = torch.optim.SGD([w], lr=1.0)
    scaler.scale((w * 2.0**-60).sum()).backward()
    scaler.step(optimizer)
    scaler.update()
    assert scaler.get_scale() == 2.0**127


def test_unscaled_gradients_are_those_without_a_scaler() -> None:
    w = torch.tensor([1.0, 2.0], requires_grad=True)
    optimizer = torch.optim.SGD([w], lr=0.5)
    scaler = torch.amp.GradScaler("cpu")
    scaler.scale((w * w).sum()).backward()
    assert torch.equal(w.grad, torch.tensor([2.0, 4.0]) * 65536)
    scaler.unscale_(optimizer)
    assert torch.equal(w.grad, torch.tensor([2.0, 4.0]))
    with pytest.raises(RuntimeError, match="already been called"):
        scaler.unscale_(optimizer)
    scaler.step(optimizer)
    with pytest.raises(RuntimeError, match="after step"):
        scaler.unscale_(optimizer)
    with pytest.raises(RuntimeError, match="already been called"):
        scaler.step(optimizer)
    with pytest.raises(AssertionError, match="pickled"):
        pickle.dumps(scaler)
    scaler.update()
    assert torch.equal(w.detach(), torch.zeros(2))
    scaler.update(4.0)
    nested = scaler.scale([w, (w, w)])
    assert type(nested[1]) is tuple and scaler.get_scale() == 4.0


def test_scalers_refuse_what_they_cannot_do() -> None:
    w = torch.ones(1, requires_grad=True)
    optimizer = torch.optim.SGD([w], lr=1.0)
    scaler = torch.amp.GradScaler("cpu")
    for call in (scaler.unscale_, scaler.step):
        with pytest.raises(AssertionError, match="scale"):
            call(optimizer)
    scaler.scale(w.sum())
    with pytest.raises(AssertionError, match="No inf checks"):
        scaler.step(optimizer)
    with pytest.raises(RuntimeError, match="[Cc]losure"):
        scaler.step(optimizer, closure=lambda: None)
    half = torch.ones(1, dtype=torch.float16, requires_grad=True)
    half.sum().backward()
    with pytest.raises(ValueError, match="FP16"):
        scaler.unscale_(torch.optim.SGD([half], lr=1.0))
    with pytest.raises(ValueError, match="iterable"):
        scaler.scale(3)
    with pytest.raises(AssertionError, match="growth_factor"):
        torch.amp.GradScaler("cpu", growth_factor=1.0)


def test_state_of_scalers() -> None:
    scaler = torch.amp.GradScaler("cpu", 8.0, growth_interval=3)
    trained(scaler)
    want = {
        "scale": 2.0,
        "growth_factor": 2.0,
        "backoff_factor": 0.5,
        "growth_interval": 3,
        "_growth_tracker": 0,
    }
    assert scaler.state_dict() == want
    fresh = torch.amp.GradScaler("cpu")
    fresh.load_state_dict(want | {"_growth_tracker": 2})
    assert fresh.get_scale() == 2.0 and fresh._get_growth_tracker() == 2
    assert pickle.loads(pickle.dumps(scaler)).state_dict() == want
    with pytest.raises(RuntimeError, match="empty"):
        fresh.load_state_dict({})

    off = torch.amp.GradScaler("cpu", enabled=False)
    loss = torch.ones(1)
    assert off.scale(loss) is loss and off.get_scale() == 1.0 and off.state_dict() == {}
    off.update()
    with pytest.warns(UserWarning, match="'cuda'"):
        assert not torch.amp.GradScaler().is_enabled()


# On GPUs.


@GPU
def test_gpus_have_rules_of_their_own() -> None:
    x = torch.rand(4, 4, device="wgpu") + 0.1
    low = x.half()
    with torch.autocast("wgpu"):
        assert (x @ x).dtype == torch.float16
        assert torch.mv(x, x[0]).dtype == torch.float16
        for found in (low.exp(), low.sum(), low.softmax(-1), low**2, F.layer_norm(low, (4,))):
            assert found.dtype == torch.float32
        assert low.softmax(-1, dtype=torch.float16).dtype == torch.float16
        assert torch.relu(low).dtype == torch.float16
        assert torch.atan2(x, low).dtype == torch.float32
        assert F.mse_loss(low, low).dtype == torch.float32
        with pytest.raises(RuntimeError, match="binary_cross_entropy_with_logits"):
            F.binary_cross_entropy(low / 2, low / 2)
        assert (torch.eye(2) @ torch.eye(2)).dtype == torch.float32  # on the CPU
