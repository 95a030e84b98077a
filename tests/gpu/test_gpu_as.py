"""GPUs that answer as one of PyTorch's devices: by which ways they come to, and what then holds.

What programs for CUDA count on is in ``gpu_habits.py``, which runs in a process where GPUs answer
as "cuda". Answers without an adapter are those of PyTorch 2.13, built for CUDA, on a machine
without a driver.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import textwrap
from functools import cache
from pathlib import Path
from typing import Any

import child
import pytest
from alias_environment import Environment

from pytensorlib import wgpu

HERE = Path(__file__).parents[1]
needs_gpu = pytest.mark.skipif(not wgpu.is_available(), reason="no GPU adapter")
NO_ADAPTER = {"PYTENSORLIB_ADAPTER": "no adapter of this name"}


def python(*args: str | Path, **env: str) -> subprocess.CompletedProcess[str]:
    """Run Python with these arguments and variables."""
    hidden = {"PYTENSORLIB_GPU_AS": None, "CUDA_VISIBLE_DEVICES": None}
    return child.python(*args, **(hidden | env))


def run(code: str, name: str | None = None, **env: str) -> str:
    """Run a program in which `torch` is this package; return what it prints."""
    if name is not None:
        env["PYTENSORLIB_GPU_AS"] = name
    done = python("-W", "ignore", "-m", "pytensorlib", "-c", textwrap.dedent(code), **env)
    assert done.returncode == 0, done.stderr
    return done.stdout


def habits() -> list[str]:
    text = (HERE / "gpu_habits.py").read_text()
    return [line[4:].partition("(")[0] for line in text.split("@habit\n")[1:]]


@cache
def answers() -> dict[str, str | None]:
    done = python("-m", "pytensorlib", HERE / "gpu_habits.py", PYTENSORLIB_GPU_AS="cuda")
    assert done.returncode == 0, done.stderr
    found: dict[str, str | None] = json.loads(done.stdout.splitlines()[-1])
    return found


@needs_gpu
@pytest.mark.parametrize("name", habits())
def test_habit_of_programs_for_cuda_holds(name: str) -> None:
    assert answers()[name] is None, answers()[name]


# What PyTorch says where there is no device: a value, or that it raises RuntimeError.
RAISES = "RuntimeError"
WITHOUT: dict[str, Any] = {
    "torch.cuda.is_available()": False,
    "torch.cuda.device_count()": 0,
    "torch.cuda.is_initialized()": False,
    "torch.cuda.is_bf16_supported()": False,
    "torch.cuda.memory_allocated()": 0,
    "torch.cuda.max_memory_allocated()": 0,
    "torch.cuda.memory_reserved()": 0,
    "len(torch.cuda.memory_stats())": 0,
    "torch.cuda.empty_cache()": None,
    "torch.cuda.manual_seed(0)": None,
    "torch.cuda.manual_seed_all(0)": None,
    "torch.cuda.seed()": None,
    "torch.cuda.get_rng_state_all()": [],
    "torch.cuda.stream(None).__enter__()": None,
    "torch.cuda.device(-1).__enter__()": None,
    "torch.amp.GradScaler('cuda').is_enabled()": False,
    "torch.cuda.amp.GradScaler().is_enabled()": False,
    "str(torch.device('cuda'))": "cuda",
    "str(torch.device(1))": "cuda:1",
    "str(torch.cuda.FloatTensor)": "<class 'torch.cuda.FloatTensor'>",
    "repr(torch.cuda.Event())": "<torch.cuda.Event uninitialized>",
    "torch.autocast('cuda').__enter__() and torch.is_autocast_enabled('cuda')": False,
    "torch.ones(1).is_cuda": False,
    "torch.version.cuda": None,
    "torch.backends.mps.is_available()": False,
    "torch.ones(1).cuda()": RAISES,
    "torch.ones(1, device='cuda')": RAISES,
    "torch.ones(1).to(0)": RAISES,
    "torch.ones(1).to('mps')": RAISES,
    "torch.nn.Linear(1, 1).cuda()": RAISES,
    "torch.ones(1).type('torch.cuda.FloatTensor')": RAISES,
    "torch.cuda.FloatTensor(2)": RAISES,
    "torch.cuda.current_device()": RAISES,
    "torch.cuda.set_device(0)": RAISES,
    "torch.cuda.device(0).__enter__()": RAISES,
    "torch.cuda.synchronize()": RAISES,
    "torch.cuda.init()": RAISES,
    "torch.cuda.get_device_name()": RAISES,
    "torch.cuda.get_device_capability()": RAISES,
    "torch.cuda.get_device_properties(0)": RAISES,
    "torch.cuda.mem_get_info()": RAISES,
    "torch.cuda.Stream()": RAISES,
    "torch.cuda.current_stream()": RAISES,
    "torch.cuda.default_stream()": RAISES,
    "torch.cuda.Event(enable_timing=True).record()": RAISES,
    "torch.cuda.CUDAGraph()": RAISES,
    "torch.cuda.get_rng_state()": RAISES,
    "torch.cuda.initial_seed()": RAISES,
    "torch.cuda.cudart()": RAISES,
    "torch.Generator(device='cuda')": RAISES,
    "torch.mps.synchronize()": RAISES,
    "torch.load(saved(), weights_only=False)": RAISES,
    "torch.load(saved(), map_location='cpu', weights_only=False)['step'].item()": 4,
}
ASK = """
import json, sys
import torch
sys.path.append(sys.argv[2])
from gpu_habits import saved
found = {}
for text in json.loads(sys.argv[1]):
    try:
        found[text] = eval(text)
    except RuntimeError as e:
        found[text] = "RuntimeError"
        if "device" not in str(e) and "adapter" not in str(e):
            found[text] = f"says {e}"
print(json.dumps(found))
"""


def test_without_an_adapter_answers_are_those_of_pytorch_without_a_driver() -> None:
    env = {**NO_ADAPTER, "PYTENSORLIB_GPU_AS": "cuda"}
    line = ("-W", "ignore", "-m", "pytensorlib", "-c", ASK, json.dumps(list(WITHOUT)), HERE)
    done = python(*line, **env)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == WITHOUT


def test_without_an_adapter_switches_of_precision_answer_as_pytorchs() -> None:
    code = """
        import torch
        def told():
            m = torch.backends.cuda.matmul
            return m.allow_tf32, m.fp32_precision, torch.get_float32_matmul_precision()
        print(*told())
        torch.backends.cuda.matmul.allow_tf32 = True
        print(*told())
        torch.set_float32_matmul_precision("highest")
        print(*told())
        torch.set_float32_matmul_precision("medium")
        print(*told())
    """
    wanted = ["False none highest", "True tf32 high", "False ieee highest", "True tf32 medium"]
    for name in ("cuda", None):
        assert run(code, name, **NO_ADAPTER).splitlines() == wanted


def test_without_an_adapter_errors_say_what_to_do() -> None:
    code = """
        import torch
        for call in (torch.cuda.current_device, torch.ones(1).cuda, torch.cuda.Stream):
            try:
                call()
            except RuntimeError as e:
                print(str(e).replace("to(): ", ""))
    """
    lines = run(code, "cuda", **NO_ADAPTER).splitlines()
    assert len(lines) == 3 and len(set(lines)) == 1
    assert lines[0].startswith("wgpu: no adapter's name contains")


@needs_gpu
@pytest.mark.parametrize(
    ("visible", "here"), [("", False), ("-1", False), ("0", True), ("GPU-abc", True), ("77", True)]
)
def test_cuda_visible_devices_hides_gpus_from_programs_for_cuda(visible: str, here: bool) -> None:
    code = """
        import torch
        print(torch.cuda.is_available(), torch.cuda.device_count() > 0)
        try:
            torch.ones(1).cuda()
        except RuntimeError as e:
            print("CUDA_VISIBLE_DEVICES" in str(e))
    """
    told = run(code, "cuda", CUDA_VISIBLE_DEVICES=visible).split()
    assert told == (["True", "True"] if here else ["False", "False", "True"])
    # It is no matter of GPUs by their own name, and a program may set it itself.
    code = "import torch; print(torch.wgpu.is_available())"
    assert run(code, CUDA_VISIBLE_DEVICES=visible) == "True\n"
    code = f"import os; os.environ['CUDA_VISIBLE_DEVICES'] = {visible!r}; import torch"
    assert run(f"{code}; print(torch.cuda.is_available())", "cuda") == f"{here}\n"


@pytest.mark.parametrize("name", [None, "", "wgpu"])
def test_without_the_variable_a_gpu_has_its_own_name_and_cuda_is_not_there(
    name: str | None,
) -> None:
    code = """
        import torch
        assert not torch.cuda.is_available() and torch.cuda.device_count() == 0
        assert str(torch.device("wgpu", 0)) == "wgpu:0"
        assert torch.ones(1).type() == "torch.FloatTensor"
        for call in (torch.cuda.current_device, torch.ones(1).cuda, lambda: torch.device(0),
                     lambda: torch.ones(1).to(0)):
            try:
                call()
            except (RuntimeError, TypeError) as e:
                print(f"{type(e).__name__}: {e}".splitlines()[0])
        if torch.wgpu.is_available():
            x = torch.ones(1, device="wgpu")
            assert repr(x) == "tensor([1.], device='wgpu:0')" and not x.is_cuda
            assert x.type() == "torch.wgpu.FloatTensor"
            assert torch.accelerator.current_accelerator().type == "wgpu"
    """
    cuda, moved, number, to = run(code, name).splitlines()
    for line in (cuda, moved):
        assert "there is no CUDA here" in line and "PYTENSORLIB_GPU_AS=cuda" in line
        assert "`python -m pytensorlib --gpu-as cuda script.py`" in line
    assert number.startswith("TypeError") and to.startswith("TypeError")


KINDS = (
    "cpu, cuda, ipu, xpu, mkldnn, opengl, opencl, ideep, hip, ve, fpga, maia, xla, lazy, vulkan, "
)
KINDS += "mps, meta, hpu, mtia, wgpu"


@pytest.mark.parametrize("name", [None, "cuda"])
def test_a_device_that_is_not_here_says_which_are_and_how_to_ask_for_them(name):
    code = """
        import torch
        for text in ("gpu", "wpgu:1", "rocm", "metal", "cup", "mps", "xpu", "hip", "vulkan", "xla"):
            for call in (lambda: torch.ones(1, device=text), lambda: torch.ones(1).to(text)):
                try:
                    call()
                except RuntimeError as e:
                    print(e)
    """
    told = run(code, name).splitlines()
    assert len(told) == 20 and told[::2] == told[1::2]
    gpu = name or "wgpu"
    for text, line in zip(("gpu", "wpgu:1", "rocm", "metal", "cup"), told[::2], strict=False):
        meant = "cpu" if text == "cup" else gpu
        assert line == (
            # PyTorch's words, then those of here.
            f"Expected one of {KINDS} device type at start of device string: {text}; "
            f"here: cpu, {gpu}, meta; did you mean '{meant}'?"
        )
    answers = {"mps": "mps", "xpu": "xpu", "hip": "cuda", "vulkan": "cuda"}
    for (kind, other), line in zip(answers.items(), told[10:18:2], strict=True):
        assert line.startswith(f"device {kind}: there is no ")
        assert f"are device '{gpu}'" in line
        if other != gpu:
            assert f"`python -m pytensorlib --gpu-as {other} script.py`" in line
            assert f"PYTENSORLIB_GPU_AS={other}" in line
    assert told[-1] == f"device xla: tensors live on 'cpu', '{gpu}' or 'meta' here"


@pytest.mark.parametrize("value", ["CUDA", "hip", "gpu", "cuda:0", "0"])
def test_a_variable_that_means_nothing_is_an_error_at_import(value: str) -> None:
    done = python("-c", "import pytensorlib", PYTENSORLIB_GPU_AS=value)
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1] == (
        "ValueError: environment variable PYTENSORLIB_GPU_AS must be one of wgpu, cuda, mps, xpu, "
        f"got '{value}'"
    )


SHOW = "import torch, sys; print(torch.device('wgpu', 0), sys.argv[1:])"


def test_runner_takes_a_name_before_a_script_a_module_and_code(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(SHOW)
    start = ("-m", "pytensorlib")
    for line, told in (
        (("--gpu-as", "cuda", "-c", SHOW, "a"), "cuda:0 ['a']"),
        (("--gpu-as=xpu", "-c", SHOW), "xpu:0 []"),
        (("--gpu-as", "mps", str(script), "--gpu-as", "b"), "mps:0 ['--gpu-as', 'b']"),
        (("--gpu-as", "wgpu", str(script)), "wgpu:0 []"),
        ((str(script),), "wgpu:0 []"),
    ):
        done = python(*start, *line)
        assert (done.stdout.strip(), done.stderr) == (told, "")
    words = (*start, "--gpu-as", "cuda", "-m", "script", "a")
    paths = os.pathsep.join([str(HERE.parent), str(tmp_path)])
    done = child.python(*words, cwd=tmp_path, PYTHONPATH=paths)
    assert done.stdout.strip() == "cuda:0 ['a']", done.stderr
    # What is said in the line counts more than the environment.
    assert python(*start, "--gpu-as", "cuda", "-c", SHOW, PYTENSORLIB_GPU_AS="mps").stdout == (
        "cuda:0 []\n"
    )


@pytest.mark.parametrize(
    ("line", "says"),
    [
        (("--gpu-as", "hip", "-c", "0"), "one of wgpu, cuda, mps, xpu, got 'hip'"),
        (("--gpu-as",), "--gpu-as needs a name"),
        (("--gpu-as=", "-c", "0"), "--gpu-as needs a name"),
        (("--gpu-as", "cuda"), "--gpu-as needs something to run"),
        (("--gpu-as", "cuda", "--remove-alias"), "--remove-alias takes no arguments"),
    ],
)
def test_runner_refuses_a_name_that_means_nothing(line: tuple[str, ...], says: str) -> None:
    done = python("-m", "pytensorlib", *line)
    assert done.returncode == 2 and says in done.stderr and "usage:" in done.stderr


def test_new_processes_do_as_the_one_that_starts_them() -> None:
    code = """
        import multiprocessing, subprocess, sys
        import torch

        torch.wgpu.answer_as("cuda")
        line = [sys.executable, "-c", "import pytensorlib as t; print(t.device('wgpu', 0))"]
        print(subprocess.run(line, capture_output=True, text=True).stdout.strip())
        with multiprocessing.get_context("spawn").Pool(1) as pool:
            print(pool.apply(torch.device, ("wgpu", 1)), pool.apply(str, (torch.device("cuda:0"),)))
    """
    assert run(code) == "cuda:0\ncuda:1 cuda:0\n"


def test_answering_as_another_is_refused_once_a_device_was_named() -> None:
    code = """
        import pytensorlib as torch

        torch.device("cpu"), torch.device("cuda"), torch.ones(1), torch.wgpu.is_available()
        torch.wgpu.answer_as("xpu")
        torch.wgpu.answer_as("cuda")
        print(torch.device("wgpu"))
        torch.wgpu.answer_as("cuda")
        for name in ("mps", "wgpu", "rocm"):
            try:
                torch.wgpu.answer_as(name)
            except (RuntimeError, ValueError) as e:
                print(f"{type(e).__name__}: {e}")
    """
    named, *refused = run(code).splitlines()
    assert named == "cuda" and len(refused) == 3
    for line, name in zip(refused[:2], ("mps", "wgpu"), strict=True):
        assert line.startswith(f"RuntimeError: a GPU cannot answer as '{name}' any more")
        assert "called 'cuda'" in line and f"PYTENSORLIB_GPU_AS={name}" in line
    assert refused[2] == "ValueError: a GPU can answer as one of wgpu, cuda, mps, xpu, got 'rocm'"


@pytest.mark.skipif(sys.platform == "win32", reason="environments are laid out otherwise")
def test_alias_keeps_the_name_and_the_environment_overrules_it(tmp_path: Path) -> None:
    environment = Environment(tmp_path / "env")
    before = environment.files()
    done = environment.run("-m", "pytensorlib", "--gpu-as", "cuda", "--install-alias")
    assert done.returncode == 0, done.stderr
    assert "GPUs answer as 'cuda'" in done.stdout
    show = "import torch; print(torch.device('wgpu', 0))"
    assert environment.run("-c", show).stdout == "cuda:0\n"
    # The package's own name was imported first, and nothing was made.
    assert environment.run("-c", f"import pytensorlib; {show}").stdout == "cuda:0\n"
    other = f"import os; os.environ['PYTENSORLIB_GPU_AS'] = 'wgpu'; {show}"
    assert environment.run("-c", other).stdout == "wgpu:0\n"
    assert environment.run("-c", "import functorch; " + show).stdout == "cuda:0\n"
    done = environment.run("-m", "pytensorlib", "--install-alias", "--gpu-as", "xpu")
    assert done.returncode == 0 and environment.run("-c", show).stdout == "xpu:0\n"
    done = environment.run("-m", "pytensorlib", "--install-alias")
    assert done.returncode == 0 and environment.run("-c", show).stdout == "wgpu:0\n"
    assert environment.run("-m", "pytensorlib", "--remove-alias").returncode == 0
    assert environment.files() == before


OTHERS = {
    "mps": """
        x = torch.ones(1 << 18, device="mps")
        assert torch.backends.mps.is_available() and torch.backends.mps.is_built()
        assert torch.backends.mps.is_macos_or_newer(14, 0) and torch.backends.mps.get_name()
        assert torch.backends.mps.is_macos13_or_newer() and torch.backends.mps.get_core_count() >= 1
        assert torch.mps.is_available() and torch.mps.device_count() == 1
        assert x.is_mps and not x.is_cuda and x.type() == "torch.mps.FloatTensor"
        assert torch.mps.current_allocated_memory() >= x.nbytes
        assert torch.mps.driver_allocated_memory() >= torch.mps.current_allocated_memory()
        assert torch.mps.recommended_max_memory() > x.nbytes
        state = torch.mps.get_rng_state()
        first = torch.rand(3, device="mps")
        torch.mps.set_rng_state(state)
        assert torch.equal(first, torch.rand(3, device="mps"))
        torch.mps.manual_seed(4), torch.mps.seed(), torch.mps.synchronize(), torch.mps.empty_cache()
        torch.mps.set_per_process_memory_fraction(0.0)
        begin, end = torch.mps.Event(enable_timing=True), torch.mps.event.Event(enable_timing=True)
        begin.record(), (x * 2).sum(), end.record(), end.synchronize(), end.wait()
        assert begin.elapsed_time(end) > 0 and end.query()
        torch.mps.profiler.start(), torch.mps.profiler.stop()
        with torch.mps.profiler.profile():
            assert not torch.mps.profiler.is_capturing_metal()
            assert not torch.mps.profiler.is_metal_capture_enabled()
        refused = [lambda: torch.mps.compile_shader("kernel void f() {}"),
                   lambda: torch.mps.load_metallib(b""),
                   lambda: torch.mps.profiler.metal_capture("a"), torch.cuda.current_device]
    """,
    "xpu": """
        x = torch.ones(1 << 18, device="xpu")
        assert torch.xpu.is_available() and torch.xpu.device_count() >= 1 and x.is_xpu
        assert torch.ones(1).xpu().device == torch.device("xpu", 0) == torch.device("xpu:0")
        assert torch.xpu.current_device() == 0 and torch.xpu.is_bf16_supported()
        assert torch.xpu.get_device_properties(0).name == torch.xpu.get_device_name()
        assert isinstance(torch.xpu.get_device_capability()["has_fp64"], bool)
        assert torch.xpu.memory_allocated() >= x.nbytes and torch.xpu.mem_get_info()[1] > 0
        assert torch.xpu.memory_stats()["allocated_bytes.all.current"] >= x.nbytes
        torch.xpu.synchronize(), torch.xpu.empty_cache(), torch.xpu.set_device(0), torch.xpu.init()
        torch.xpu.manual_seed_all(4)
        state = torch.xpu.get_rng_state()
        first = torch.rand(3, device="xpu")
        torch.xpu.set_rng_state(state)
        assert torch.equal(first, torch.rand(3, device="xpu"))
        stream, event = torch.xpu.Stream(), torch.xpu.Event(enable_timing=True)
        with torch.xpu.stream(stream):
            assert "xpu:0" in repr(torch.xpu.current_stream())
        event.record(), event.synchronize()
        recorded = torch.xpu.XPUGraph()
        with torch.xpu.graph(recorded):
            y = x[:3] * 2
        x.fill_(5)
        recorded.replay()
        assert y.tolist() == [10, 10, 10]
        with torch.autocast("xpu"):
            assert (x[None, :4] @ x[:4, None]).dtype == torch.float16
        refused = [torch.xpu.utilization, lambda: torch.xpu.XPUPluggableAllocator("a", "b", "c"),
                   torch.cuda.current_device, recorded.raw_xpu_graph]
    """,
}


@needs_gpu
@pytest.mark.parametrize("name", OTHERS)
def test_gpus_answer_as_other_devices_too(name: str) -> None:
    code = (
        "import torch\n"
        + textwrap.dedent(OTHERS[name])
        + textwrap.dedent("""
        for call in refused:
            try:
                call()
            except NotImplementedError as e:
                assert len(str(e)) > 60, e
            else:
                raise AssertionError(call)
        print(repr(x[:1]))
    """)
    )
    assert run(code, name).startswith("tensor([") and f"device='{name}:0'" in run(code, name)
