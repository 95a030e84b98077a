"""Run the named parts of the test suite (all by default) and print how long each took."""

import hashlib
import json
import os
import platform
import shutil
import subprocess
import sys
import threading
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PYTHON = sys.executable


def files(names: str) -> list[str]:
    """Return the paths of test files, in whichever folders of `tests` they are."""
    paths = {path.stem: path for path in ROOT.glob("tests/*/test_*.py")}
    return [paths[f"test_{name}"].relative_to(ROOT).as_posix() for name in names.split()]


# What depends on the processor, forced (rust/base/src/machine.rs): a quarter of the tests that
# reach kernels on the CPU, and the whole replay. Stores past the caches are those of every machine
# but AMD's, and of large results only, so here all results are large.
FORCED = {
    "avx2": {"PYTENSORLIB_CPU": "avx2", "PYTENSORLIB_L2_KB": "64"},
    "portable": {"PYTENSORLIB_CPU": "portable", "PYTENSORLIB_NUM_THREADS": "1"},
    "streamed": {
        "PYTENSORLIB_VENDOR": "intel",
        "PYTENSORLIB_LAST_KB": "0",
        "PYTENSORLIB_NUM_THREADS": "3",
    },
    "amd": {"PYTENSORLIB_VENDOR": "amd", "PYTENSORLIB_LAST_KB": "0"},
    "amx-model": {"PYTENSORLIB_CPU": "amx-model"},
}
if platform.machine() not in {"x86_64", "AMD64"}:
    FORCED = {"portable": FORCED["portable"]}
# GPUs that lack features (rust/gpu/src/adapter.rs): a quarter of the replay of the weakest, and
# tests of kernels of all.
PROFILES = {name: {"PYTENSORLIB_WGPU_WITHOUT": name} for name in ("webgpu", "metal", "dx12")}
KERNELS = (
    "complex conv denormals determinism fft fuzz gradients indexing linalg math matmul nn "
    "norm_columns ops order pads pointwise_layouts recurrent reduce_streams tiled_layers"
)
# The core's own tests on an emulated aarch64, whose kernels are NEON's, and with its portable ones.
# Dependencies are not optimised: they compile in half the time, and little of them runs. Not here:
# tests of GPUs, of a fork (the emulator does not outlive one), and what takes the emulator long.
AARCH64 = "aarch64-unknown-linux-gnu"
CROSS = {
    "CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_LINKER": "aarch64-linux-gnu-gcc",
    "CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_RUNNER": "qemu-aarch64 -L /usr/aarch64-linux-gnu",
}
# The crates of the engine, and those that tests without a GPU are of.
ENGINE, HOST = (
    [word for crate in crates.split() for word in ("-p", f"pytensorlib-{crate}")]
    for crates in ("base cpu gpu core", "base cpu core")
)
# The modules of the crate of kernels, as its tests name them.
KERNEL_TESTS = [f"{name}::" for name in sorted({p.stem for p in ROOT.glob("rust/cpu/src/*.rs")})]
EMULATED = f"cargo test -q --locked --target {AARCH64} --lib".split() + HOST
EMULATED += ["--config", 'profile.dev.package."*".opt-level=0', "--"]
EMULATED += [part for name in "gpu forked long_ nth amx".split() for part in ("--skip", name)]
# Most loops are the same code on both levels.
LEVELLED = [*EMULATED, *"machine gemm:: convert:: transpose::".split()]
EMULATED += ["machine", "alloc", "ops::", "rng::", "shared::", *KERNEL_TESTS]
# The core's tests of threads, and of kernels that share work out, under the thread sanitizer. The
# standard library is compiled for it too, by the nightly toolchain.
SANITIZED = "cargo +nightly test -q --locked -Zbuild-std --lib".split() + HOST
SANITIZED += ["--target", "x86_64-unknown-linux-gnu", "--"]
# Not here: kernels of one thread that take it long, GPUs, and a fork, which it does not follow.
SANITIZED += [p for name in "gpu forked math::f convert::".split() for p in ("--skip", name)]
SANITIZER = {"RUSTFLAGS": "-Zsanitizer=thread", "CARGO_TARGET_DIR": str(ROOT / "target/races")}
# macOS: what can be said of it here.
MACOS = ["aarch64-apple-darwin", "x86_64-apple-darwin"]
CHECKED = ["cargo", "clippy", "-q", "--workspace", "--locked"]
CHECKED += [word for target in MACOS for word in ("--target", target)]
CHECKED += ["--config", 'profile.dev.package."*".opt-level=0', "--", "-D", "warnings"]
# Wheels that are only tried: the engine is compiled once, quickly, and linked for each Python.
UNTUNED = {"CARGO_PROFILE_RELEASE_LTO": "off", "CARGO_PROFILE_RELEASE_OPT_LEVEL": "1"}
TESTS = [PYTHON, "-m", "pytest", "-q"]
UNTIMED = "not timed and not slow"
QUARTER = [*TESTS, "-m", UNTIMED, "--every=4"]
# What is forced is of the CPU. Where it is only how results are stored, the arithmetic is that of
# the other parts, so are the denormals that it meets.
SAMPLED = {name: [*QUARTER, *files(KERNELS), "-k", "not wgpu"] for name in FORCED}
for name in SAMPLED.keys() & {"streamed", "amd"}:
    SAMPLED[name] = [word for word in SAMPLED[name] if "denormals" not in word]
REPLAY = [PYTHON, "tests/conformance/check.py"]
# Metal lacks float64 and nothing else that kernels are written with. Windows over products need
# nothing that WebGPU has and DX12 has not.
WEAK = "wgpu_kernels wgpu_networks wgpu_numbers wgpu_order wgpu_products wgpu_words wgpu ops"
WEAK = {"webgpu": WEAK, "dx12": WEAK.replace("wgpu_products ", ""), "metal": "wgpu ops"}
WEAK = {name: [*QUARTER, *files(names), "-k", "wgpu"] for name, names in WEAK.items()}
CUTS = files("wgpu_cuts wgpu_segments")
# Some of them look at times.
GPU_SLOW = sorted(f"tests/gpu/{p.name}" for p in ROOT.glob("tests/gpu/test_wgpu_*.py"))
GPU_SLOW = [name for name in GPU_SLOW if name not in CUTS]


def forced(name: str) -> str:
    """Return what a part forces, if that is in its name."""
    return name.removesuffix("-replay").removesuffix("-quarter")


def made(setup: str, kind: str, target: str) -> list[str]:
    """Return what makes a Python and the wheel of a target for it, and runs the wheel there."""
    python = f".wheels/{kind}/python"
    version = f"{python} -c 'import sys; print(\"%d.%d\" % sys.version_info[:2])'"
    make = f"make --no-print-directory dist TARGETS={target} PYTHONS=$({version})"
    tried = f"{PYTHON} .ci/wheels.py --try dist {kind}"
    return ["sh", "-c", f".ci/setup {setup} && test -x {python} && {make} && {tried}"]


# Quick parts first. Clippy and `cargo test` share the dev profile; the demo, pytest and the
# replay share one release build.
PARTS = {
    # By name: `cargo fmt` does not see modules that a macro declares.
    "rustfmt": ["sh", "-c", "rustfmt --edition=2021 --check $(find rust -name '*.rs')"],
    "ruff": [PYTHON, "-m", "ruff", "check", "."],
    "format": [PYTHON, "-m", "ruff", "format", "--check", "."],
    "mypy": [PYTHON, "-m", "mypy"],
    "clippy": [
        "cargo",
        "clippy",
        "--workspace",
        "--all-targets",
        "--locked",
        "--",
        "-D",
        "warnings",
    ],
    "notices": [PYTHON, ".ci/notices.py", "--check"],
    "build": ["make", "--no-print-directory", "build"],
    "wheels": [PYTHON, ".ci/wheels.py", "--built"],
    "versions": [PYTHON, ".ci/versions.py"],
    # Linux's wheels of all versions; those that there is a Python for are run.
    "pythons": [
        "sh",
        "-c",
        ".ci/setup freethreaded && make --no-print-directory dist"
        f" && {PYTHON} .ci/wheels.py --try dist",
    ],
    # Wheels for the Python that is emulated, and for one above musl, and run there.
    "aarch64-wheel": made("emulated", "aarch64", AARCH64),
    "musl-wheel": made("musl", "musl", "x86_64-unknown-linux-musl"),
    # All tests of Rust are the engine's, in its own files.
    "cargo": ["cargo", "test", *ENGINE, "--lib", "--locked", "-q"],
    "windows": [PYTHON, "tests/platforms/windows.py"],
    "windows-all": [PYTHON, "tests/platforms/windows.py", "--all"],
    "macos-check": CHECKED,
    "aarch64": EMULATED,
    "aarch64-portable": LEVELLED,
    "races": SANITIZED,
    "timed": [*TESTS, "-m", "timed and not slow"],
    **{f"pytest-{k}": [*TESTS, "-m", UNTIMED, f"--part={k}/4"] for k in range(1, 5)},
    "conformance": REPLAY,
    "wgpu-replay": [*REPLAY, "--device", "wgpu"],
    "wgpu-cuts": [*TESTS, "-m", "slow", *CUTS],
    "wgpu-slow": [*TESTS, "-m", "slow", *GPU_SLOW],
    "instructions": [*TESTS, "-m", "slow", "tests/house/test_instructions.py"],
    # Skipped without llvm-mca (Debian: llvm).
    "loops": [*TESTS, "-m", "slow", "tests/house/test_loops.py"],
    "programs": ["make", "--no-print-directory", "few"],
    "programs-gpu": ["make", "--no-print-directory", "few", "ARGS=--gpu-as cuda"],
    "distributed": ["make", "--no-print-directory", "distributed"],
    # The site, whose snippets run; `site` runs the tutorials too, in their full length.
    "docs": ["make", "--no-print-directory", "docs"],
    "site": ["make", "--no-print-directory", "docs"],
    "webgpu-replay": [*REPLAY, "--device", "wgpu"],
    "webgpu-quarter": [*REPLAY, "--device", "wgpu", "--every", "4"],
    **WEAK,
    **SAMPLED,
    **{f"{name}-replay": REPLAY for name in FORCED},
    # The Python without a lock that CI assembles, and what runs there on several threads.
    "free-threaded": [
        "sh",
        "-c",
        f".ci/setup freethreaded && {PYTHON} tests/platforms/freethreaded.py",
    ],
}
VARIABLES = (
    FORCED
    | PROFILES
    | {
        "aarch64": CROSS,
        "races": SANITIZER,
        "aarch64-portable": {**CROSS, "PYTENSORLIB_CPU": "portable"},
        **dict.fromkeys(("pythons", "aarch64-wheel", "musl-wheel"), UNTUNED),
        "docs": {"PYTENSORLIB_DOCS_QUICK": "1"},
        "macos-check": {"PYO3_CROSS_PYTHON_VERSION": "3.12"},
    }
)
NEEDS_BUILD = {"timed", "conformance", "wgpu-replay", "wgpu-cuts", "instructions", "loops"}
NEEDS_BUILD |= {"programs", "programs-gpu", "distributed", "docs", "site", "wgpu-slow", "wheels"}
NEEDS_BUILD |= {n for n in PARTS if "pytest" in n}
NEEDS_BUILD |= {n for n in PARTS if forced(n) in FORCED | PROFILES}
# Only where they are named, or all of them by `nightly`.
ASKED = {
    "wgpu-slow",
    "site",
    "windows-all",
    "pythons",
    "aarch64-wheel",
    "musl-wheel",
    "free-threaded",
    "webgpu-replay",
}
# The replay's tensors are too small to reach what these force.
ASKED |= {f"{name}-replay" for name in FORCED} - {"avx2-replay", "portable-replay"}
# What takes long and depends on these files alone. Unless it is named it is left out while they
# are those that it passed with last, whose hash PASSED has; who changes them runs it.
ENGINE_FILES = ("rust/base", "rust/cpu", "rust/core", "shaders", "Cargo.lock", "Cargo.toml")
SOURCES = dict.fromkeys(("aarch64", "aarch64-portable", "races"), ENGINE_FILES)
SOURCES["macos-check"] = ("rust", "shaders", "Cargo.lock", "Cargo.toml")
# What differs between systems; Linux holds the laws of all else.
SOURCES["windows"] = (
    *("rust/base", "rust/cpu/src/pool.rs", "rust/py/src/storage.rs", "rust/py/src/storage"),
    *("rust/py/src/numpy.rs", "rust/py/src/libpython.rs", "rust/py/build.rs"),
    *("rust/gpu/Cargo.toml", "Cargo.lock", "Cargo.toml", "tests/platforms", "pytensorlib/_system"),
    *("pytensorlib/multiprocessing", "pytensorlib/utils/data/_utils"),
    *("pytensorlib/serialization.py", "pytensorlib/_serialization"),
    *files("checkpoint_files multiprocessing"),
)
PASSED = ROOT / ".ci/passed.json"
# Two parts run at a time. Those that write to one folder wait for each other: what was compiled,
# what was installed, the site. Nothing else runs beside those that look at times.
SHARED = {
    "debug": {
        *("clippy", "cargo", "versions", "macos-check"),
        *("aarch64", "aarch64-portable", "windows", "windows-all"),
    },
    "release": {"build", "wheels", "pythons", "aarch64-wheel", "musl-wheel"},
    "libraries": {"programs", "programs-gpu"},
    "docs": {"docs", "site"},
    "python without a lock": {"pythons", "free-threaded"},
}
ALONE = {"timed", "wgpu-slow"}


def emulates() -> bool:
    """Return whether `.ci/setup aarch64` found or installed what those parts need."""
    if platform.system() != "Linux" or platform.machine() != "x86_64":
        return False
    return (
        bool(shutil.which("aarch64-linux-gnu-gcc") and shutil.which("qemu-aarch64"))
        and Path("/usr/aarch64-linux-gnu/lib").is_dir()
        and has_target(AARCH64)
    )


def sanitizes() -> bool:
    """Return whether `.ci/setup nightly` found or installed what that part needs."""
    if platform.system() != "Linux" or platform.machine() != "x86_64":
        return False
    command = ["rustc", "+nightly", "--print", "sysroot"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return Path(done.stdout.strip(), "lib/rustlib/src/rust/library").is_dir()


def has_gpu() -> bool:
    """Return whether there is an adapter, which `.ci/setup vulkan` may have installed."""
    command = "import sys; from pytensorlib import wgpu; sys.exit(not wgpu.is_available())"
    return subprocess.run([PYTHON, "-c", command], cwd=ROOT, check=False).returncode == 0


def has_target(target: str) -> bool:
    """Return whether Rust compiles for a target here."""
    command = ["rustc", "--print", "sysroot"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return Path(done.stdout.strip(), "lib/rustlib", target).is_dir()


def is_windows_there() -> bool:
    """Return whether `.ci/setup windows` found or installed what that part needs."""
    programs = ["x86_64-w64-mingw32-gcc", "wine", "xvfb-run"]
    wheels = any((ROOT / ".windows/wheels").glob("panda3d-*.whl"))
    return wheels and all(map(shutil.which, programs)) and has_target("x86_64-pc-windows-gnu")


def digest(name: str) -> str:
    """Return a hash of a part's command and of the files that it depends on."""
    found = hashlib.sha256(
        repr([PARTS[name][1:], VARIABLES.get(name)]).replace(str(ROOT), "").encode()
    )
    for top in SOURCES[name]:
        for path in sorted((ROOT / top).rglob("*") if (ROOT / top).is_dir() else [ROOT / top]):
            if path.is_file() and "__pycache__" not in path.parts:
                found.update(f"{path.relative_to(ROOT)}\n".encode())
                found.update(hashlib.sha256(path.read_bytes()).digest())
    return found.hexdigest()[:32]


def passed() -> dict[str, str]:
    """Return the hash of each part's files when it passed last."""
    return json.loads(PASSED.read_text()) if PASSED.is_file() else {}


def note_passed(names: list[str]) -> None:
    """Note that parts passed with the files that are there."""
    known = passed() | {name: digest(name) for name in names}
    PASSED.write_text(json.dumps(dict(sorted(known.items())), indent=1) + "\n")


def why_not(name: str) -> str:
    """Return what this machine lacks to run a part, or nothing."""
    if name.startswith("aarch64") and not emulates():
        return "no emulator"
    if name == "races" and not sanitizes():
        return "no nightly toolchain"
    if name == "programs-gpu" and not has_gpu():
        return "no GPU adapter"
    if name.startswith("windows") and not is_windows_there():
        return "no wine"
    if name == "macos-check" and not all(map(has_target, MACOS)):
        return "no targets"
    return ""


def run(name: str, aside: bool) -> tuple[str, float, float]:
    """Run a part; returns its result, its seconds and the processor's.

    What it prints is shown as it comes, or `aside` from others when it has ended.
    """
    if lacks := why_not(name):
        return f"skipped: {lacks}", 0.0, 0.0
    command = PARTS[name]
    title = f"\n== {name}: {' '.join(command).replace(PYTHON, 'python')}"
    if not aside:
        print(title, flush=True)
    start = time.perf_counter()
    # The build part's own make must not see this one's job server, flags or arguments.
    hidden = {"MAKEFLAGS", "MFLAGS", "MAKELEVEL", "MAKEOVERRIDES", "ARGS"}
    env = {k: v for k, v in os.environ.items() if k not in hidden}
    env |= VARIABLES.get(forced(name), {})
    # To keep what the next compilation may use costs a quarter more. Who edits has such a folder.
    if not (ROOT / "target/debug/incremental").is_dir():
        env.setdefault("CARGO_INCREMENTAL", "0")
    # NumPy's own threads would only wait busily beside ours.
    env.setdefault("OPENBLAS_NUM_THREADS", "1")
    to = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT} if aside else {}
    process = subprocess.Popen(command, cwd=ROOT, env=env, **to)
    printed = b""
    if process.stdout:
        with process.stdout as pipe:
            printed = pipe.read()
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = code = os.waitstatus_to_exitcode(status)
    if aside:
        print(f"{title}\n{printed.decode(errors='replace')}", flush=True)
    seconds = time.perf_counter() - start
    return "ok" if code == 0 else f"FAILED ({code})", seconds, usage.ru_utime + usage.ru_stime


class Schedule:
    """Which parts wait, run and have run; workers take the next one that may start."""

    def __init__(self, names: list[str], wanted: list[str]) -> None:
        self.waiting, self.running, self.wanted = list(names), set[str](), wanted
        self.rows: dict[str, tuple[str, float, float]] = {}
        self.changed = threading.Condition()
        self.aside = len(names) > 1

    def may_start(self, name: str) -> bool:
        """Return whether nothing that a part must wait for is waiting or running."""
        if name in ALONE:
            return not self.running and not set(self.waiting) - ALONE
        before = {"build"} & {*self.waiting, *self.running} if name in NEEDS_BUILD else set()
        shared = {n for names in SHARED.values() if name in names for n in names} & self.running
        return not before and not shared and not self.running & ALONE

    def work(self) -> None:
        """Run parts until none is left."""
        while True:
            with self.changed:
                while not (name := next(filter(self.may_start, self.waiting), None)):
                    if not self.waiting:
                        return
                    self.changed.wait()
                self.waiting.remove(name)
                self.running.add(name)
            try:
                row = self.result(name)
            except OSError as error:
                row = (f"FAILED: {error}", 0.0, 0.0)
            with self.changed:
                self.rows[name] = row
                self.running.remove(name)
                self.changed.notify_all()

    def result(self, name: str) -> tuple[str, float, float]:
        """Run one part, unless it need not or cannot run."""
        if name not in self.wanted and name in SOURCES and passed().get(name) == digest(name):
            return "unchanged since it passed", 0.0, 0.0
        if name in NEEDS_BUILD and self.rows.get("build", ("ok",))[0] != "ok":
            return "FAILED: no build", 0.0, 0.0
        return run(name, self.aside)


def main(wanted: list[str]) -> int:
    """Return 0 when every wanted part passed."""
    nightly = ASKED | SOURCES.keys()
    wanted = [part for name in wanted for part in (nightly if name == "nightly" else [name])]
    unknown = [name for name in wanted if name not in PARTS]
    if unknown:
        print(f"unknown part {', '.join(unknown)}; the parts are {', '.join(PARTS)}, nightly")
        return 2
    if NEEDS_BUILD & set(wanted):
        wanted = ["build", *wanted]
    begin = time.perf_counter()
    names = [name for name in PARTS if name in (wanted or PARTS.keys() - ASKED)]
    schedule = Schedule(names, wanted)
    workers = [threading.Thread(target=schedule.work) for _ in range(2)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    rows = schedule.rows
    print("\npart               seconds  of processors  result")
    for name in names:
        result, seconds, used = rows[name]
        print(f"{name:<17} {seconds:>8.1f} {used:>14.1f}  {result}")
    total = sum(used for _, _, used in rows.values())
    print(f"{'all':<17} {time.perf_counter() - begin:>8.1f} {total:>14.1f}")
    if good := [name for name in names if name in SOURCES and rows[name][0] == "ok"]:
        note_passed(good)
    failed = [name for name in names if rows[name][0].startswith("FAILED")]
    print(f"\nparts: {len(rows) - len(failed)} passed, {len(failed)} failed {' '.join(failed)}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
