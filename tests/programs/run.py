"""Run the programs of this folder under pytensorlib and compare them with PyTorch's numbers.

``python tests/programs/run.py [names]`` runs them, each in a process of its own, where ``import
torch`` means pytensorlib; ``--few`` runs those that need little beside the tools of development
(``--lock`` prints what, for pip). Each chooses its device as people write it: with ``--gpu-as
cuda`` they get the GPU, and fail where they compute nothing on it, or something on the CPU for want
of a kernel that ``FALLS_BACK`` does not name; ``--few`` then runs those that take few seconds on
Vulkan in software. ``--record`` runs them under PyTorch instead (in an environment that has it) and
writes ``expected.json``; ``--keep`` notes differences and seconds in ``measured.json``; ``--table``
prints the site's tables of both.
"""

from __future__ import annotations

import argparse
import importlib.metadata
import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
EXPECTED = HERE / "expected.json"
MEASURED = HERE / "measured.json"
LOCK = HERE / "requirements.lock"
TOLERANCE = 1e-4
# Where the programs' devices are a GPU.
TOLERANCE_GPU = 1e-3
# Where a library computes in a half type, beside numbers in float32: sums round at 2^-11 and 2^-8,
# and a few steps multiply that.
TOLERANCE_HALF = {"float16": 2e-2, "bfloat16": 4e-2}
# Seconds for a program.
LONGEST = 900

# Program: the distributions whose versions are recorded beside its numbers.
PROGRAMS = {
    "accelerate_loop": ["accelerate"],
    "captum_attributions": ["captum"],
    "cuda_amplifier": [],
    "cuda_char_gpt": [],
    "cuda_diffusion": [],
    "cuda_gan": [],
    "cuda_image_classifier": [],
    "cuda_lora": [],
    "cuda_policy": [],
    "denoising_diffusion_images": ["denoising-diffusion-pytorch", "ema-pytorch"],
    "diffusers_unet": ["diffusers"],
    "einops_layers": ["einops"],
    "exporter": [],
    "fastai_learner": ["fastai", "fastcore"],
    "gpytorch_exact": ["gpytorch", "linear-operator"],
    "ignite_engine": ["pytorch-ignite"],
    "keras_fit": ["keras"],
    "kornia_vision": ["kornia"],
    "lazy_layers": [],
    "lightning_fit": ["lightning"],
    "lion_ema": ["lion-pytorch", "ema-pytorch"],
    "lpips_distance": ["lpips", "torchvision"],
    "metric_learning_losses": ["pytorch-metric-learning"],
    "nflows_density": ["nflows"],
    "normflows_density": ["normflows"],
    "opacus_privacy": ["opacus"],
    "peft_lora": ["peft"],
    "performer_attention": ["performer-pytorch"],
    "pyro_svi": ["pyro-ppl"],
    "pytorch_forecasting_series": ["pytorch-forecasting", "lightning"],
    "safetensors_files": ["safetensors"],
    "segmentation_models": ["segmentation-models-pytorch", "timm"],
    "sentence_transformers_embeddings": ["sentence-transformers", "transformers"],
    "skorch_fit": ["skorch"],
    "stable_baselines3_agents": ["stable-baselines3", "gymnasium"],
    "tensorboardx_log": ["tensorboardX"],
    "timm_models": ["timm"],
    "torch_geometric_graphs": ["torch-geometric"],
    "torch_optimizer_steps": ["torch-optimizer"],
    "torchaudio_sound": ["torchaudio"],
    "torchdiffeq_solvers": ["torchdiffeq"],
    "torchinfo_summary": ["torchinfo"],
    "torchmetrics_values": ["torchmetrics"],
    "torchsde_solvers": ["torchsde"],
    "torchvision_models": ["torchvision"],
    "transformers_generate": ["transformers", "tokenizers"],
    "transformers_train": ["transformers"],
    "transformers_trainer": ["transformers", "accelerate"],
    "vector_quantize_codes": ["vector-quantize-pytorch"],
    "x_transformers_models": ["x-transformers"],
}

# Those that ``make test`` runs: what they need beside the tools of development (numpy, scipy,
# scikit-learn, matplotlib, tqdm).
FEW = {
    "captum_attributions": ["captum"],
    "cuda_amplifier": [],
    "cuda_char_gpt": [],
    "cuda_diffusion": [],
    "cuda_gan": [],
    "cuda_image_classifier": [],
    "cuda_lora": [],
    "cuda_policy": [],
    "einops_layers": ["einops"],
    "exporter": [],
    "gpytorch_exact": ["gpytorch", "linear_operator", "jaxtyping", "wadler_lindig", "opt_einsum"],
    "ignite_engine": ["pytorch_ignite"],
    "kornia_vision": ["kornia", "kornia_rs"],
    "lazy_layers": [],
    "lion_ema": ["lion_pytorch", "ema_pytorch"],
    "metric_learning_losses": ["pytorch_metric_learning"],
    "opacus_privacy": ["opacus", "opt_einsum"],
    "pyro_svi": ["pyro_ppl", "pyro_api", "opt_einsum"],
    "safetensors_files": ["safetensors"],
    "skorch_fit": ["skorch", "tabulate"],
    "tensorboardx_log": ["tensorboardx", "protobuf"],
    "torch_optimizer_steps": ["torch_optimizer", "pytorch_ranger"],
    "torchdiffeq_solvers": ["torchdiffeq"],
    "torchinfo_summary": ["torchinfo"],
    "torchmetrics_values": ["torchmetrics", "lightning_utilities"],
    "torchsde_solvers": ["torchsde", "trampoline"],
}
# Those that do not agree with PyTorch yet, and why.
NOT_YET: dict[str, str] = {}
# With `--gpu-as`: operators that have no kernel for what a program gives them and run on the CPU,
# and why (on an adapter with 64-bit floats, as Vulkan in software is).
FALLS_BACK: dict[str, dict[str, str]] = {}
# With `--gpu-as`: values that are not compared, and why. Their names begin so.
NOT_COMPARED: dict[str, dict[str, str]] = {}
# With `--dtype`: programs whose library has a switch for it, and how the names of the values that
# are compared end.
SWITCHES = {
    "accelerate_loop": "first epoch",
    "cuda_amplifier": "",
    "cuda_char_gpt": "",
    "cuda_diffusion": "",
    "cuda_gan": "",
    "cuda_image_classifier": "",
    "cuda_lora": "",
    "fastai_learner": "images: losses",
    "keras_fit": ": losses",
    "lightning_fit": "losses",
    "pytorch_forecasting_series": ": loss",
    "transformers_trainer": "losses",
}
HALVES = {"float16": {**SWITCHES, "ignite_engine": "losses"}, "bfloat16": SWITCHES}
# Those whose subject is the host: they write programs for other runtimes, which are compared there.
ON_THE_HOST = {"exporter"}
# Of FEW, those that take long on Vulkan in software.
SLOW_IN_SOFTWARE = {
    "captum_attributions",
    "kornia_vision",
    "metric_learning_losses",
    "opacus_privacy",
    "pyro_svi",
    "torch_optimizer_steps",
    "torchdiffeq_solvers",
    "torchsde_solvers",
}


def run(name: str, *, under: list[str]) -> tuple[dict[str, list[float]] | str, float]:
    """Return what a program reports, or why it did not, and the seconds it took."""
    env = os.environ | {
        "KERAS_BACKEND": "torch",
        "HF_HUB_OFFLINE": "1",
        "TRANSFORMERS_VERBOSITY": "error",
        "PYTHONWARNINGS": "ignore",
        "OMP_NUM_THREADS": "1",
    }
    if "--gpu-as" not in under:
        env["CUDA_VISIBLE_DEVICES"] = ""
    start = time.perf_counter()
    try:
        done = subprocess.run(
            [sys.executable, *under, str(HERE / f"{name}.py")],
            capture_output=True,
            text=True,
            env=env,
            cwd=HERE,
            timeout=LONGEST,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return f"took more than {LONGEST} s", time.perf_counter() - start
    seconds = time.perf_counter() - start
    lines = done.stdout.strip().splitlines()
    if done.returncode or not lines or not lines[-1].startswith("{"):
        return (done.stderr.strip() or done.stdout.strip() or "printed nothing")[-2000:], seconds
    if "--gpu-as" in under:
        if len(lines) < 2 or not lines[-2].startswith("{"):
            return "there is no GPU adapter (.ci/setup vulkan installs one in software)", seconds
        if wrong := on_the_gpu(name, json.loads(lines[-2])):
            return wrong, seconds
    return json.loads(lines[-1]), seconds


def on_the_gpu(name: str, did: dict[str, Any]) -> str:
    """Return how what a program did on the GPU and beside it is not what is known; "" if it is."""
    if (did["bytes"] == 0) != (name in ON_THE_HOST):
        return f"it computed {'nothing' if did['bytes'] == 0 else 'something'} on the GPU"
    known = FALLS_BACK.get(name, {})
    if new := did["fallbacks"].keys() - known.keys():
        return f"{', '.join(sorted(new))} ran on the CPU, which FALLS_BACK does not say"
    if gone := known.keys() - did["fallbacks"].keys():
        return f"{', '.join(sorted(gone))} did not run on the CPU, as FALLS_BACK says"
    return ""


def difference(got: list[float], expected: list[float]) -> float:
    """Return the largest difference over the largest magnitude (at least 1e-3) of an array."""
    if len(got) != len(expected):
        return float("inf")
    scale = max([1e-3, *(abs(v) for v in expected if v == v and abs(v) != float("inf"))])
    worst = 0.0
    for a, b in zip(got, expected):
        if a == b or (a != a and b != b):
            continue
        gap = abs(a - b) / scale
        worst = max(worst, gap if gap == gap else float("inf"))
    return worst


def record(names: list[str]) -> int:
    """Write the numbers that PyTorch computes."""
    import torch

    expected = json.loads(EXPECTED.read_text()) if EXPECTED.exists() else {}
    failed = 0
    for name in names:
        found, seconds = run(name, under=[])
        print(f"{name:<28} {seconds:6.1f} s", flush=True)
        if isinstance(found, str):
            print(found)
            failed += 1
            continue
        versions = {d: importlib.metadata.version(d) for d in PROGRAMS[name]}
        expected[name] = {
            "torch": torch.__version__.partition("+")[0],
            "versions": versions,
            "values": found,
        }
    rows = (f"{json.dumps(k)}: {json.dumps(expected[k])}" for k in sorted(expected))
    EXPECTED.write_text("{\n" + ",\n".join(rows) + "\n}\n")
    return failed


def keep(name: str, kind: str, gap: float, seconds: float) -> None:
    """Note how far a program was off, in parts of the largest, and the seconds that it took."""
    measured = json.loads(MEASURED.read_text()) if MEASURED.exists() else {}
    measured.setdefault(name, {})[kind] = [float(f"{gap:.1e}"), round(seconds, 1)]
    rows = (f"{json.dumps(k)}: {json.dumps(measured[k], sort_keys=True)}" for k in sorted(measured))
    MEASURED.write_text("{\n" + ",\n".join(rows) + "\n}\n")


def check(names: list[str], gpu_as: str | None, dtype: str, keeps: bool) -> int:
    """Run programs and compare; returns how many fail, or agree where that was not known."""
    expected, failed, agreed = json.loads(EXPECTED.read_text()), 0, 0
    os.environ["DTYPE"] = dtype
    tolerance = TOLERANCE if gpu_as is None else TOLERANCE_GPU
    tolerance = TOLERANCE_HALF.get(dtype, tolerance)
    under = ["-m", "pytensorlib", *([] if gpu_as is None else ["--gpu-as", gpu_as])]
    for name in names:
        found, seconds = run(name, under=under)
        if isinstance(found, str):
            verdict = f"FAILED\n{found}"
        else:
            apart = () if gpu_as is None else tuple(NOT_COMPARED.get(name, {}))
            of = "" if dtype == "float32" else HALVES[dtype][name]
            found, wanted = (
                {k: v for k, v in d.items() if k.endswith(of) and not k.startswith(apart)}
                for d in (found, expected[name]["values"])
            )
            gaps = {k: difference(found.get(k, []), v) for k, v in wanted.items()}
            worst = max(gaps, key=gaps.__getitem__)
            verdict = f"{gaps[worst]:.1e}"
            if not gaps[worst] <= tolerance or found.keys() != wanted.keys():
                verdict = f"FAILED {verdict} in {worst!r}"
                verdict += (
                    f"\n got      {found.get(worst, [])[:16]}\n expected {wanted[worst][:16]}"
                )
            elif keeps:
                kind = "CPU" if gpu_as is None else "GPU"
                keep(name, kind if dtype == "float32" else f"{kind} {dtype}", gaps[worst], seconds)
        agrees = not verdict.startswith("FAILED")
        agreed += agrees
        failed += agrees == (name in NOT_YET)
        if name in NOT_YET:
            why = f"not yet: {NOT_YET[name]}"
            verdict = f"FAILED: agrees now, and is in NOT_YET ({why})" if agrees else why
        print(f"{name:<28} {seconds:6.1f} s  {verdict}", flush=True)
    print(f"{agreed} of {len(names)} programs agree within {tolerance:g}")
    return failed


def libraries() -> dict[str, str]:
    """Return what agrees with PyTorch, and the versions with which it was recorded."""
    expected = json.loads(EXPECTED.read_text())
    found: dict[str, str] = {}
    for name, needed in PROGRAMS.items():
        if needed and name not in NOT_YET:
            found[needed[0]] = expected[name]["versions"][needed[0]]
    return dict(sorted(found.items(), key=lambda item: item[0].lower()))


def table() -> str:
    """Return the table of libraries, in two halves side by side."""
    rows = [f"| {name} | {version} " for name, version in libraries().items()]
    half = (len(rows) + 1) // 2
    rows += ["| | "] * (2 * half - len(rows))
    lines = [f"{left}{right}|" for left, right in zip(rows[:half], rows[half:])]
    return "\n".join(["| library | version | library | version |\n|---|---|---|---|", *lines])


def measured() -> str:
    """Return the table of what programs were off by, and of the seconds that they took."""
    kinds = ["CPU", "GPU", "GPU float16", "GPU bfloat16"]
    lines = [f"| program | {' | '.join(kinds)} |", "|---" * (1 + len(kinds)) + "|"]
    for name, found in json.loads(MEASURED.read_text()).items():
        cells = ("{:.0e}, {:.0f} s".format(*found[k]) if k in found else "" for k in kinds)
        lines.append(f"| `{name}` | {' | '.join(cells)} |")
    return "\n".join(lines)


def lock(names: list[str]) -> list[str]:
    """Return the lines of requirements.lock that these programs need."""
    wanted = {package for name in names for package in FEW[name]}
    lines = LOCK.read_text().splitlines()
    return [line for line in lines if line.partition("==")[0] in wanted]


def main() -> int:
    """Return the number of programs that failed."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("names", nargs="*", help=f"of {', '.join(PROGRAMS)}")
    parser.add_argument("--gpu-as", choices=["cuda"], help="GPUs answer as what programs ask for")
    parser.add_argument("--dtype", choices=HALVES, help=f"of {', '.join(HALVES['float16'])}")
    parser.add_argument("--few", action="store_true", help=f"run {', '.join(FEW)}")
    parser.add_argument("--lock", action="store_true", help="print what --few needs")
    parser.add_argument("--record", action="store_true", help="under PyTorch, into expected.json")
    parser.add_argument("--keep", action="store_true", help="note what agrees in measured.json")
    parser.add_argument("--table", action="store_true", help="print the site's tables")
    options = parser.parse_args()
    if options.table or options.lock:
        print(f"{table()}\n\n{measured()}" if options.table else "\n".join(lock(list(FEW))))
        return 0
    if unknown := set(options.names) - set(PROGRAMS):
        parser.error(f"unknown program {', '.join(sorted(unknown))}")
    few = list(FEW)
    if options.gpu_as:  # `tests/gpu/test_gpu_programs.py` runs `cuda_*.py`
        few = [n for n in few if n not in SLOW_IN_SOFTWARE and not n.startswith("cuda_")]
    names = options.names or (few if options.few else list(PROGRAMS))
    if options.dtype:
        names = [name for name in names if name in HALVES[options.dtype]]
    if options.record:
        return record(names)
    return check(names, options.gpu_as, options.dtype or "float32", options.keep)


if __name__ == "__main__":
    sys.exit(main())
