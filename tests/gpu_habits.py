"""Habits of programs that were written for CUDA, each with the answer that they count on.

``python -m pytensorlib --gpu-as cuda tests/gpu_habits.py`` prints as JSON what is wrong with each.
"""

from __future__ import annotations

import base64
import contextlib
import copy
import io
import json
import pickle
import pickletools
import tempfile
import warnings
import zipfile
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch import nn
from torch.nn import functional as F

warnings.simplefilter("ignore")
HABITS: dict[str, Callable[[], Any]] = {}
DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
GPU = torch.device("cuda", 0)
# What PyTorch 2.13 saved: {"model": the state of a Linear(2, 1) of weight [[1, 2]] and bias [3],
# "step": tensor(4), "where": device(type="cuda", index=0)}, each storage tagged "cuda:0".
SAVED = (
    "c-o~^J8#oa6uxoZDI{%qlolv&NF+$}ezc{nB4h?5k%ot&E|HU5VhbnkiEmPYRH+hbrOxb3AQlET{smH)"
    "7+4S!6DtD)_u6S{yGjG?l@d$I`5x!obB>FG(}j@FhYp-^G>OD^O_IBKt}YTWy8c|@3qiDIIa}N&pm5nu"
    "0Zp}z6>!vQs-oZ;k=2$Kc-XGvHm={3Ya{?%qy)}z*+XMDu-uRcxN1bD646SB$ch%Iv~jf~EA<M&Elq7#"
    "x`_a|!{M@*A~YH)HZXV$NPt&VkvuYf41l-npfNG<>Fl*mU7U}BU*HG?Rs|$D1a1e$1Ws`5z=>Un897NH"
    "Sb|WQW{;|}sKK~Ir6iAJP{m<F@(T_ElRADIPO-1k2KEervn817Y{I#+p9WW&n24-KFs=VTQ)UH(^P6x%"
    "_uj>Ajg|v03Jy)vs=B5|@H)&In*Ed>sIA5zqf5Gt1Y9<3T%k515kvkefomnWt`~hnqV<IveTF*j$~6kU"
    "sY|djz%2poK)3{vPP8a^eM_HxA3soL_9+g%`zaI}+<o+!+HQ)Z(ocdfjG0>?&PYG~`u2*sWuM`sGbp=H"
    "+P}_<sK||06SoLoNZMNKpH3#l3@mTJPmW4(hZ>kb%L4<|7X+)UIr+lEQFQl?A`_xu=3)Epk7?F?o<ltZ"
    "(UN7V=3;zd{ul-j+FGWxE6hRn-Ex#k`bIcdv^t3Mg&aD%{)(=>+xz~W^_**j_KH<I!50>fQ~otqpP6}h"
    "-IKnL&Od|}1|9}Iojt0FWPmC6-ZY+!?!Q@-*dG8reGRu|Isq?5wk<1ioi9ZH(?~3r%BOO<Tq>K-q+_XE"
    "Hkppa@`-dVl}V?Q@nkBK&*hWZJaf7Bw$}+$A7S04gP9%pH1CD+1J3R50Xy2f0H!R+KMpi(lh{ejLp)<4"
    "S>@0no5Rjy9>fU?&leNVU;)_S<|ztV;7^^%HoJDLc?zu9uXb$Qjx~3$75ms_!zS!lbN_{`x+d(9x|`c#"
    ")&efM(TIjE3Lekxz4mtA86f?(=Y7t2{&w$;tH-O~dEbNa=5Tuqj9-s8V*dgmZ|Pq"
)


def habit(f: Callable[[], Any]) -> Callable[[], Any]:
    HABITS[f.__name__] = f
    return f


def saved() -> io.BytesIO:
    return io.BytesIO(zlib.decompress(base64.b85decode(SAVED)))


def places(data: bytes) -> set[str]:
    """Return the texts in the pickle of a file that name a place."""
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        (name,) = [n for n in archive.namelist() if n.endswith("data.pkl")]
        texts = [arg for _, arg, _ in pickletools.genops(archive.read(name))]
    kinds = {"cpu", "cuda", "wgpu", "mps", "xpu"}
    return {t for t in texts if isinstance(t, str) and t.partition(":")[0] in kinds}


@contextlib.contextmanager
def refused(kind: Any, *parts: str) -> Any:
    try:
        yield
    except kind as e:
        text = str(e)
    else:
        raise AssertionError(f"no {kind.__name__}")
    for part in parts:
        assert part in text, (part, text)


@habit
def device_is_picked() -> None:
    assert DEVICE == "cuda" and torch.device(DEVICE) == torch.device("cuda")
    assert torch.device(DEVICE) != GPU and torch.device(DEVICE).index is None
    assert torch.ones(1, device=DEVICE).device == GPU


@habit
def device_by_number() -> None:
    assert torch.device(0) == GPU and torch.device("cuda:0") == GPU
    x = torch.arange(4.0)
    for there in (x.to(0), x.to(device=0), torch.ones(2, device=0), x.cuda(0), x.cuda("cuda")):
        assert there.device == GPU and there.get_device() == 0
    assert nn.Linear(2, 2).to(0).weight.device == GPU
    with refused(RuntimeError, "must not be negative"):
        torch.device(-1)
    with refused(RuntimeError, "invalid device ordinal", "cuda:250"):
        x.to("cuda:250")
    with refused(RuntimeError, "Invalid device, must be cuda device"):
        x.cuda("cpu")


@habit
def own_name_works_beside_it() -> None:
    x = torch.ones(2, device="wgpu")
    assert x.device == GPU == torch.device("wgpu", 0) and x.is_cuda
    assert str(torch.device("wgpu:0")) == "cuda:0" and torch.wgpu.is_available()
    with torch.autocast("wgpu"):
        assert torch.is_autocast_enabled("cuda")
        assert (x[None] @ x[:, None]).dtype == torch.float16
    assert torch.amp.GradScaler("wgpu").is_enabled()


@habit
def names_in_texts() -> None:
    x = torch.tensor([1.5, 2], device=DEVICE)
    assert repr(x) == "tensor([1.5000, 2.0000], device='cuda:0')"
    assert repr(GPU) == "device(type='cuda', index=0)" and f"{GPU}" == "cuda:0"
    assert repr(nn.Parameter(x)).endswith("device='cuda:0', requires_grad=True)")
    assert x.type() == "torch.cuda.FloatTensor" and x.half().type() == "torch.cuda.HalfTensor"
    assert x.to_sparse().type() == "torch.cuda.sparse.FloatTensor"
    assert torch.typename(x) == "torch.cuda.FloatTensor"


@habit
def names_in_errors() -> None:
    x, y = torch.ones(2, device=DEVICE), torch.ones(2)
    for call in (lambda: x + y, lambda: torch.cat([x, y]), lambda: nn.Linear(2, 2).cuda()(y)):
        with refused(RuntimeError, "cuda:0", "cpu"):
            call()
    with refused(TypeError, "can't convert cuda:0 device type tensor to numpy", "cpu"):
        x.numpy()
    with refused(torch.cuda.OutOfMemoryError, "CUDA out of memory. Tried to allocate"):
        torch.empty(1 << 47, device=DEVICE)
    with refused(RuntimeError, "there is no XPU", "are device 'cuda'", "--gpu-as xpu"):
        y.to("xpu")
    with refused(RuntimeError, "tensors live on 'cpu', 'cuda' or 'meta'"):
        y.to("xla")


@habit
def kind_is_told() -> None:
    x = torch.ones(2, device=DEVICE)
    assert x.is_cuda and not x.is_cpu and not x.is_xpu and not x.is_mps and x.device.type == "cuda"
    assert x.untyped_storage().is_cuda and x.storage().is_cuda and not x.cpu().is_cuda
    assert x.untyped_storage().device == GPU and x.untyped_storage().cuda().device == GPU
    assert torch.ones(2).untyped_storage().cuda(0).device == GPU


@habit
def old_types() -> None:
    x = torch.ones(2)
    assert x.type("torch.cuda.DoubleTensor").device == GPU
    assert x.type(torch.cuda.HalfTensor).dtype == torch.float16
    there = x.type("torch.cuda.FloatTensor")
    assert there.type("torch.FloatTensor").is_cpu and there.type(torch.IntTensor).is_cpu
    assert there.type(torch.float64).device == GPU and there.double().device == GPU
    assert torch.cuda.LongTensor([3, 4]).tolist() == [3, 4] and torch.cuda.ByteTensor(2, 2).is_cuda
    with refused(TypeError, "cuda"):
        torch.cuda.FloatTensor(x)
    with refused(ValueError, "invalid type"):
        x.type("torch.cuda.PolarTensor")


@habit
def default_tensor_type() -> None:
    torch.set_default_tensor_type("torch.cuda.DoubleTensor")
    x = torch.zeros(2)
    torch.set_default_tensor_type(torch.FloatTensor)
    assert x.device == GPU and x.dtype == torch.float64
    assert torch.zeros(2).is_cpu and torch.zeros(2).dtype == torch.float32


@habit
def default_device_and_blocks() -> None:
    for device in ("cuda", "cuda:0", GPU, 0):
        torch.set_default_device(device)
        made = torch.zeros(2), nn.Linear(2, 2).weight, torch.tensor([1]), torch.get_default_device()
        torch.set_default_device(None)
        assert {made[0].device, made[1].device, made[2].device} == {GPU} and made[3].type == "cuda"
    with torch.device("cuda"), torch.cuda.device(0):
        assert torch.randn(2).device == GPU
    assert torch.zeros(1).is_cpu


@habit
def module_moves() -> None:
    net = nn.Sequential(nn.Conv2d(1, 2, 3), nn.BatchNorm2d(2), nn.Flatten(), nn.Linear(8, 3)).cuda()
    assert {t.device for t in net.state_dict().values()} == {GPU}
    x = torch.randn(2, 1, 4, 4)
    assert net(x.cuda()).device == GPU and next(net.half().parameters()).type().endswith(
        "HalfTensor"
    )
    assert {t.device.type for t in net.cpu().state_dict().values()} == {"cpu"}
    assert nn.Linear(1, 1).to(DEVICE, torch.bfloat16).weight.dtype == torch.bfloat16


@habit
def training_equals_the_cpu() -> None:
    ends = []
    for device in ("cpu", DEVICE):
        torch.manual_seed(0)
        net = nn.Sequential(nn.Linear(6, 16), nn.GELU(), nn.LayerNorm(16), nn.Linear(16, 3)).to(
            device
        )
        optimizer = torch.optim.AdamW(net.parameters(), 1e-2, fused=True)
        x, y = torch.randn(12, 6).to(device, non_blocking=True), (torch.arange(12) % 3).to(device)
        for _ in range(5):
            optimizer.zero_grad()
            loss = F.cross_entropy(net(x), y)
            loss.backward()
            nn.utils.clip_grad_norm_(net.parameters(), 1.0)
            optimizer.step()
        ends.append(loss.item())
    assert abs(ends[0] - ends[1]) < 1e-5, ends


@habit
def mixed_precision_step() -> None:
    for dtype in (torch.float16, torch.bfloat16):
        net = nn.Linear(4, 2).cuda()
        scaler = torch.amp.GradScaler("cuda", enabled=dtype == torch.float16)
        optimizer = torch.optim.SGD(net.parameters(), 0.1)
        before = net.weight.detach().clone()
        with torch.autocast(device_type="cuda", dtype=dtype):
            out = net(torch.ones(3, 4, device=DEVICE))
            assert out.dtype == dtype and torch.get_autocast_dtype("cuda") == dtype
            assert F.softmax(out, -1).dtype == torch.float32 and (out + 1).dtype == dtype
            assert torch.cat([out, out.float()]).dtype == torch.float32
            loss = F.mse_loss(out, torch.zeros(3, 2, device=DEVICE))
            assert loss.dtype == torch.float32
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
        assert not torch.equal(before, net.weight)
    # The CPU has rules and a state of its own.
    with torch.autocast("cuda"):
        assert (torch.ones(2, 2) @ torch.ones(2, 2)).dtype == torch.float32
        with refused(RuntimeError, "unsafe", "binary_cross_entropy_with_logits"):
            F.binary_cross_entropy(
                torch.full((2,), 0.5, device=DEVICE), torch.ones(2, device=DEVICE)
            )


@habit
def file_of_pytorch_loads_on_the_gpu() -> None:
    found = torch.load(saved(), weights_only=False)
    assert {t.device for t in found["model"].values()} == {GPU} and found["where"] == GPU
    assert found["model"]["weight"].tolist() == [[1, 2]] and found["model"]["bias"].tolist() == [3]
    assert found["step"].item() == 4 and found["step"].is_cuda
    net = nn.Linear(2, 1).cuda()
    net.load_state_dict(found["model"])
    assert net(torch.ones(1, 2, device=DEVICE)).item() == 6


@habit
def file_is_mapped() -> None:
    data = io.BytesIO()
    torch.save(
        {"x": torch.arange(3.0, device=DEVICE), "p": nn.Parameter(torch.ones(2).cuda())}, data
    )
    assert places(data.getvalue()) == {"cuda:0"}
    ways: list[tuple[Any, str]] = [
        (None, "cuda"), ("cpu", "cpu"), ("cuda", "cuda"), ("cuda:0", "cuda"), (GPU, "cuda"),
        ({"cuda:0": "cpu"}, "cpu"), ({"cuda:1": "cpu"}, "cuda"), ("wgpu", "cuda"),
        (lambda storage, place: storage if place == "cuda:0" else None, "cpu"),
        (lambda storage, place: storage.cuda(0), "cuda"),
    ]  # fmt: skip
    for way, kind in ways:
        data.seek(0)
        found = torch.load(data, map_location=way)
        assert found["x"].device.type == found["p"].device.type == kind, way
        assert found["x"].tolist() == [0, 1, 2] and isinstance(found["p"], nn.Parameter)
    assert torch.serialization.location_tag(torch.ones(1).cuda().untyped_storage()) == "cuda:0"
    assert torch.serialization.validate_cuda_device("cuda:0") == 0
    data = io.BytesIO()
    torch.save(torch.ones(2), data)
    assert places(data.getvalue()) == {"cpu"}
    data.seek(0)
    assert torch.load(data, map_location=DEVICE).device == GPU


@habit
def file_of_another_number_is_refused() -> None:
    data = zipfile.ZipFile(saved())
    other = io.BytesIO()
    with zipfile.ZipFile(other, "w", zipfile.ZIP_STORED) as out:
        for name in data.namelist():
            out.writestr(name, data.read(name).replace(b"cuda:0", b"cuda:9"))
    with refused(RuntimeError, "CUDA device 9", "map_location"):
        torch.load(io.BytesIO(other.getvalue()), weights_only=False)
    found = torch.load(
        io.BytesIO(other.getvalue()), map_location={"cuda:9": "cuda:0"}, weights_only=False
    )
    assert found["step"].device == GPU


@habit
def legacy_file() -> None:
    data = io.BytesIO()
    torch.save(torch.arange(3.0).cuda(), data, _use_new_zipfile_serialization=False)
    assert b"cuda:0" in data.getvalue() and b"wgpu" not in data.getvalue()
    data.seek(0)
    assert torch.load(data).device == GPU


@habit
def pickles_and_copies() -> None:
    x = torch.arange(3.0, device=DEVICE)
    for made in (pickle.loads(pickle.dumps(x)), copy.deepcopy(x), copy.copy(x)):
        assert made.device == GPU and made.tolist() == [0, 1, 2]
    net = pickle.loads(pickle.dumps(nn.Linear(2, 2).cuda()))
    assert net.weight.device == GPU and isinstance(net.weight, nn.Parameter)
    assert pickle.loads(pickle.dumps(GPU)) == GPU
    assert b"wgpu" not in pickle.dumps([x, GPU])
    g = pickle.loads(pickle.dumps(torch.Generator(DEVICE).manual_seed(3)))
    assert g.device == GPU and g.initial_seed() == 3


@habit
def resumed() -> None:
    """A checkpoint of model, optimizer, scaler and random numbers goes on as without it."""

    def parts() -> Any:
        torch.manual_seed(1)
        net = nn.Sequential(nn.Linear(3, 8), nn.Dropout(0.2), nn.Linear(8, 1)).to(DEVICE)
        return net, torch.optim.Adam(net.parameters(), 1e-2), torch.amp.GradScaler("cuda")

    def step(net: Any, optimizer: Any, scaler: Any) -> float:
        with torch.autocast("cuda"):
            loss = net(torch.ones(4, 3, device=DEVICE)).square().mean()
        optimizer.zero_grad(set_to_none=True)
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
        return loss.item()

    made = parts()
    for _ in range(3):  # the first scale may be too large
        step(*made)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "last.pt"
        state = {
            "parts": [part.state_dict() for part in made],
            "cpu": torch.get_rng_state(),
            "cuda": torch.cuda.get_rng_state_all(),
        }
        torch.save(state, path)
        want = [step(*made) for _ in range(3)]
        again = parts()
        state = torch.load(path, map_location=DEVICE, weights_only=False)
    for part, kept in zip(again, state["parts"], strict=True):
        part.load_state_dict(kept)
    torch.set_rng_state(state["cpu"].cpu())
    torch.cuda.set_rng_state_all([s.cpu() for s in state["cuda"]])
    assert {s["exp_avg"].device for s in again[1].state.values()} == {GPU}
    got = [step(*again) for _ in range(3)]
    assert got == want, (got, want)


@habit
def generator_of_the_gpu() -> None:
    g = torch.Generator(device=DEVICE).manual_seed(7)
    assert g.device == GPU and g.clone_state().device == GPU
    first = torch.randn(4, generator=g, device=DEVICE)
    g.manual_seed(7)
    assert torch.equal(first, torch.randn(4, generator=g, device=DEVICE))
    assert torch.Generator().device.type == "cpu" and torch.default_generator.device.type == "cpu"


@habit
def random_numbers_are_seeded() -> None:
    drawn = []
    for _ in range(2):
        torch.manual_seed(12)
        torch.cuda.manual_seed_all(12)
        drawn.append(torch.randn(3, device=DEVICE))
    assert torch.equal(*drawn)
    state = torch.cuda.get_rng_state()
    with torch.random.fork_rng(devices=[0], device_type="cuda"):
        torch.rand(2, device=DEVICE)
    assert torch.equal(state, torch.cuda.get_rng_state())


@habit
def loader_pins_and_copies() -> None:
    data = torch.utils.data.TensorDataset(torch.arange(12.0), torch.arange(12))
    loader = torch.utils.data.DataLoader(data, 5, shuffle=True, num_workers=2, pin_memory=True)
    total = 0.0
    for x, y in loader:
        x, y = x.to(DEVICE, non_blocking=True), y.cuda(non_blocking=True)
        assert x.device == y.device == GPU
        total += (x * y).sum().item()
    assert total == sum(i * i for i in range(12))
    assert torch.ones(2).pin_memory().to(DEVICE, non_blocking=True).tolist() == [1, 1]


@habit
def checkpointed_layers() -> None:
    from torch.utils.checkpoint import checkpoint

    layer, x = nn.Linear(3, 3).cuda(), torch.ones(2, 3, device=DEVICE, requires_grad=True)
    block = nn.Sequential(layer, nn.Dropout(0.5))
    with torch.autocast("cuda"):
        y = checkpoint(block, x, use_reentrant=False)
    y.float().sum().backward()
    assert x.grad.device == GPU and layer.weight.grad is not None


@habit
def compiled_and_channels_last() -> None:
    net = nn.Sequential(nn.Conv2d(2, 3, 3, padding=1), nn.ReLU()).cuda()
    x = torch.randn(1, 2, 5, 5)
    want = net(x.cuda())
    net = torch.compile(net.to(memory_format=torch.channels_last))
    got = net(x.to(DEVICE, memory_format=torch.channels_last, non_blocking=True))
    torch.testing.assert_close(got, want)


@habit
def accelerator_is_it() -> None:
    assert torch.accelerator.is_available() and torch.accelerator.device_count() >= 1
    assert torch.accelerator.current_accelerator() == torch.device("cuda")
    assert torch.get_device_module("cuda") is torch.cuda is torch.get_device_module(GPU)
    assert torch.Stream(device="cuda").device == GPU and torch.Stream().device_type == 1
    assert torch.utils.checkpoint.DefaultDeviceType.get_device_type() == "cuda"
    assert "cuda" in torch.utils._foreach_utils._get_fused_kernels_supported_devices()


@habit
def profiled() -> None:
    from torch.profiler import ProfilerActivity, profile

    with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA]) as prof:
        x = torch.ones(32, 32, device=DEVICE)
        (x @ x).sum().item()
    table = prof.key_averages().table(sort_by="cuda_time_total", row_limit=5)
    assert "Self CUDA" in table and "CUDA total" in table and "wgpu" not in table
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "trace.json"
        prof.export_chrome_trace(str(path))
        rows = json.loads(path.read_text())["traceEvents"]
    assert "cuda:0" in {row["pid"] for row in rows}


@habit
def operators_of_a_program() -> None:
    library = torch.library.Library("habits", "DEF")
    library.define("twice(Tensor x) -> Tensor")
    library.impl("twice", lambda x: x * 2, "CPU")
    library.impl("twice", lambda x: x * 2 + 100, "CUDA")
    op = torch.ops.habits.twice
    assert op(torch.ones(1)).item() == 2 and op(torch.ones(1, device=DEVICE)).item() == 102

    @torch.library.custom_op("habits::thrice", mutates_args=(), device_types="cuda")
    def thrice(x: torch.Tensor) -> torch.Tensor:
        return x * 3

    assert thrice(torch.ones(1).cuda()).item() == 3
    with refused(NotImplementedError, "no kernel for device 'cpu'", "'cuda'"):
        thrice(torch.ones(1))
    torch.library.register_autocast("habits::thrice", "cuda", torch.float16)
    with torch.autocast("cuda"):
        assert thrice(torch.ones(1).cuda()).dtype == torch.float16


@habit
def parallel_modules() -> None:
    net = nn.DataParallel(nn.Linear(3, 2).cuda(), device_ids=[0])
    assert net(torch.ones(4, 3)).device == GPU and net.module.weight.device == GPU
    assert nn.parallel.scatter(torch.ones(2), [0])[0].device == GPU


@habit
def no_toolkit() -> None:
    assert torch.version.cuda is None and torch.version.hip is None
    assert torch.backends.cudnn.version() is None and not torch.backends.cudnn.is_available()
    assert torch.utils.cpp_extension.CUDA_HOME is None
    with refused(NotImplementedError, "no compiler", "custom_op"):
        torch.utils.cpp_extension.load_inline("name", cpp_sources=["int x;"])
    with refused(NotImplementedError, "torch.wgpu.elementwise"):
        torch.cuda.jiterator._create_jit_fn("template <typename T> T f(T x) { return x; }")


@habit
def deterministic_switch() -> None:
    torch.backends.cudnn.benchmark, torch.backends.cudnn.deterministic = True, True
    with torch.backends.cudnn.flags(enabled=True, deterministic=False, benchmark=False):
        assert not torch.backends.cudnn.deterministic
    assert torch.backends.cudnn.deterministic and torch.backends.cudnn.benchmark
    torch.backends.cudnn.deterministic = torch.backends.cudnn.benchmark = False


@habit
def collate_by_device() -> None:
    """Nested batches move as programs move them."""

    def move(batch: Any, device: Any) -> Any:
        if isinstance(batch, dict):
            return {k: move(v, device) for k, v in batch.items()}
        if isinstance(batch, (list, tuple)):
            return type(batch)(move(v, device) for v in batch)
        return batch.to(device, non_blocking=True) if isinstance(batch, torch.Tensor) else batch

    batch = move(
        {"x": torch.ones(2), "y": [torch.zeros(1), "name"]},
        next(nn.Linear(1, 1).cuda().parameters()).device,
    )
    assert batch["x"].is_cuda and batch["y"][0].device == GPU and batch["y"][1] == "name"


def wrong(call: Callable[[], Any]) -> str | None:
    """Return what is wrong with a habit."""
    try:
        call()
    except Exception as e:
        trace = e.__traceback__
        while (
            trace is not None
            and trace.tb_next is not None
            and __file__ in str(trace.tb_next.tb_frame.f_code.co_filename)
        ):
            trace = trace.tb_next
        line = trace.tb_lineno if trace is not None else 0
        return f"line {line}: {type(e).__name__}: {e}"
    return None


if __name__ == "__main__":
    print(json.dumps({name: wrong(call) for name, call in HABITS.items()}))
