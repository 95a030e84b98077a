"""Build for Windows with mingw-w64, and run what was built under wine: part `windows` of the tests.

`.ci/setup windows` installs what it takes, and downloads the wheels of `windows.lock` to
`.windows/wheels`. The Python that runs here is assembled of them: panda3d's has python3XY.dll and
the modules in C of the standard library, whose modules in Python are those of this Linux Python.
"""

import argparse
import os
import re
import shutil
import subprocess
import sys
import threading
import time
import zipfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
PLACE = ROOT / ".windows"
WHEELS, TARGET = PLACE / "wheels", "x86_64-pc-windows-gnu"
VERSION = f"{sys.version_info.major}.{sys.version_info.minor}"
PYTHON = PLACE / f"python{VERSION}"
SITE = PYTHON / "Lib/site-packages"
COMPILER = "x86_64-w64-mingw32-gcc"
BUILT = ROOT / "target" / TARGET / "debug"
# What is optimised takes three times as long to compile, and little of it runs.
CARGO = ["--locked", "--target", TARGET, "--config", 'profile.dev.package."*".opt-level=0']
# Tests of what differs between systems; with `--all` more of them, laws, and the core's own.
FEW = "checkpoint_files multiprocessing"
FILES = f"{FEW} data serialization storages package alias"
LAWS = "ops gradients indexing random"
GPU = "wgpu wgpu_networks"
LIMIT = 900  # seconds of one step
ENGINE = ["base", "cpu", "core"]
CORE = "os:: alloc:: files:: math:: simd:: rng:: shared::"
# They compare with the system's library, whose sine of large numbers is wrong there.
CORE += " --skip bounds_in_ulp --skip float64_agrees_with_the_system"


def assemble() -> None:
    """Make the Windows Python, where it is not there."""
    stamp = PYTHON / "windows.lock"
    lock = (HERE / "windows.lock").read_text()
    if stamp.is_file() and stamp.read_text() == lock:
        return
    shutil.rmtree(PYTHON, ignore_errors=True)
    (PYTHON / "DLLs").mkdir(parents=True)
    skip = (
        "site-packages dist-packages __pycache__ *.so test tests config-3* idlelib sitecustomize.py"
    )
    library = Path(os.__file__).parent
    shutil.copytree(
        library, PYTHON / "Lib", ignore=shutil.ignore_patterns(*skip.split(), "sitecustomize.py")
    )
    SITE.mkdir()
    for wheel in sorted(WHEELS.glob("*.whl")):
        with zipfile.ZipFile(wheel) as file:
            if not wheel.name.startswith("panda3d-"):
                file.extractall(SITE)
                continue
            for name in file.namelist():
                base = name.rpartition("/")[2]
                # wine has its own of these
                theirs = base.lower().startswith(("api-ms-", "ucrtbase"))
                if (
                    name.startswith("deploy_libs/")
                    and base.endswith((".pyd", ".dll"))
                    and not theirs
                ):
                    own = re.fullmatch(r"(?i)(python3\d*|vcruntime\w*)\.dll", base)
                    (PYTHON / ("." if own else "DLLs") / base).write_bytes(file.read(name))
    (dll,) = PYTHON.glob("python3[0-9]*.dll")
    # mingw links with the DLL itself: no import library is needed. The stack is that of Python's.
    program = ["-municode", "-O1", "-Wl,--stack,2000000", "-o", PYTHON / "python.exe"]
    program += [HERE / "python.c", dll]
    subprocess.run([COMPILER, *program], check=True)
    for folder in (PYTHON, BUILT / "deps"):
        folder.mkdir(parents=True, exist_ok=True)
        source = [HERE / "bcryptprimitives.c", "-ladvapi32"]
        made = ["-shared", "-O1", "-o", folder / "bcryptprimitives.dll"]
        subprocess.run([COMPILER, *made, *source], check=True)
    stamp.write_text(lock)


def build(tests: bool) -> list[Path]:
    """Make the wheel, install it, and return tests if asked."""
    env = {**os.environ, "PYO3_CROSS_PYTHON_VERSION": VERSION, "RUST_BACKTRACE": "0"}
    dist = PLACE / "dist"
    shutil.rmtree(dist, ignore_errors=True)
    make = ["maturin", "build", "-q", "--profile", "dev", "--compression-method", "stored"]
    make += ["-i", f"python{VERSION}", "--out", dist]
    subprocess.run([*make, *CARGO], cwd=ROOT, env=env, check=True)
    (wheel,) = dist.glob("*.whl")
    for old in SITE.glob("pytensorlib*"):
        shutil.rmtree(old)
    install = [sys.executable, "-m", "pip", "install", "-q", "--disable-pip-version-check"]
    install += ["--no-deps", "--only-binary=:all:", "--platform=win_amd64", "--target", SITE]
    subprocess.run([*install, "--no-compile", wheel], env=env, check=True)
    packages, binaries = ["-p", "pytensorlib-py"], shutil.ignore_patterns("*.so", "__pycache__")
    shutil.rmtree(PLACE / "away", ignore_errors=True)
    shutil.copytree(ROOT / "tests", PLACE / "away/tests", ignore=binaries)
    for name in ("pyproject.toml", "README.md"):
        shutil.copy(ROOT / name, PLACE / "away")
    if not tests:
        return []
    # With the extension's crate too, so that crates they share have the same features.
    packages += [word for crate in ENGINE for word in ("-p", f"pytensorlib-{crate}")]
    packages += ["--lib", "--no-run"]
    done = subprocess.run(
        ["cargo", "test", *packages, *CARGO],
        cwd=ROOT,
        env=env,
        check=True,
        text=True,
        stderr=subprocess.PIPE,
    )
    programs = re.findall(r"\((\S+pytensorlib_\w+-\w+\.exe)\)", done.stderr)
    assert len(programs) == len(ENGINE), done.stderr
    return [ROOT / program for program in programs]


def wine(*words: object, display: bool = False, **variables: str) -> bool:
    """Run a program of Windows, print what it prints, and return whether it succeeded."""
    env = {
        **os.environ,
        "WINEPREFIX": str(PLACE / "prefix"),
        "WINEDEBUG": "-all",
        "PYTENSORLIB_ADAPTER": "llvmpipe",
        "MPLBACKEND": "Agg",
        **variables,
    }
    command = ["xvfb-run", "-a"] if display else []
    program = shutil.which("wine") or shutil.which("wine64") or "wine"
    command += [program, *map(str, words)]
    # Without compiled files each start, of which there are many, takes twice as long.
    for name in ("PYTHONPATH", "PYTHONDONTWRITEBYTECODE"):
        env.pop(name, None)
    # Its Python takes a pipe, but no file, for its output.
    with subprocess.Popen(
        command,
        cwd=PLACE / "away",
        env=env,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
    ) as process:
        late = threading.Timer(LIMIT, end_all)
        late.start()
        for line in process.stdout:
            print(line.rstrip("\r\n"), flush=True)
        late.cancel()
    return process.returncode == 0


def end_all() -> None:
    """End whatever runs in our wine; its server knows all of it."""
    servers = [shutil.which("wineserver"), "/usr/lib/wine/wineserver64", "/usr/lib/wine/wineserver"]
    server = next(s for s in servers if s and Path(s).exists())
    env = {**os.environ, "WINEPREFIX": str(PLACE / "prefix")}
    subprocess.run([server, "-k"], env=env, check=False)


def prepare() -> None:
    """Make wine's own files, as those of Windows 10."""
    if (PLACE / "prefix/system.reg").is_file():
        return
    (PLACE / "away").mkdir(parents=True, exist_ok=True)
    wine("wineboot", "-i")
    wine("winecfg", "-v", "win10")


def pytest(names: str, every: int) -> list[object]:
    """Return the command that runs a part of the files of these names."""
    command = [PYTHON / "python.exe", "-m", "pytest", "-q", "-p", "no:cacheprovider"]
    command += ["-m", "not timed and not slow", f"--every={every}"]
    paths = {path.stem: path for path in ROOT.glob("tests/*/test_*.py")}
    return command + [paths[f"test_{name}"].relative_to(ROOT).as_posix() for name in names.split()]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--all", action="store_true", help="also the core's tests, and all others")
    parser.add_argument("--build-only", action="store_true")
    args = parser.parse_args()
    began = time.perf_counter()

    def say(what: str) -> None:
        print(f"-- {what} ({time.perf_counter() - began:.0f} s)", flush=True)

    assemble()
    prepare()
    say("compiling")
    engine = build(args.all)
    if args.build_only:
        return 0
    python = PYTHON / "python.exe"
    smoke = [python, "tests/platforms/smoke.py"]
    steps = {
        "smoke": (smoke, False),
        "smoke on Vulkan": ([*smoke, "wgpu"], True),
        "files": (pytest(FILES if args.all else FEW, 1), False),
    }
    if engine:
        steps["laws"] = (pytest(LAWS, 4), False)
        steps["GPU"] = (pytest(GPU, 4), True)
        # Their losses are Linux's (docs/start/systems.md).
        demo = [python, "-m", "pytensorlib.examples.digits", "--small", "--device"]
        steps["demo"] = ([*demo, "cpu"], False)
        steps["demo on Vulkan"] = ([*demo, "wgpu"], True)
    for program in engine:
        steps[program.stem] = ([program, *CORE.split()], False)
    failed = []
    for name, (command, display) in steps.items():
        say(name)
        if not wine(*command, display=display):
            failed.append(name)
    end_all()
    say("done")
    print("failed: " + ", ".join(failed) if failed else "all passed")
    return bool(failed)


if __name__ == "__main__":
    sys.exit(main())
