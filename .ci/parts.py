"""Run the named parts of the test suite (all by default) and print how long each took."""

import os
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PYTHON = sys.executable

# The tests of the operators, once more with kernels for fewer instructions.
LOWER = [
    PYTHON,
    "-m",
    "pytest",
    "-q",
    "--ignore=tests/test_wgpu.py",
    "--ignore=tests/test_shaders.py",
]
LEVELS = {"avx2", "portable", "amx-model"}
PRODUCTS = [f"tests/test_{name}.py" for name in ("matmul", "nn", "linalg", "autograd")]

# Quick parts first. Clippy and `cargo test` share the dev profile; the demo, pytest and the
# replay share one release build.
PARTS = {
    "rustfmt": ["cargo", "fmt", "--all", "--check"],
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
    "build": ["make", "--no-print-directory", "build"],
    "cargo": ["cargo", "test", "--workspace", "--locked", "-q"],
    "pytest": [PYTHON, "-m", "pytest", "-q"],
    "avx2": LOWER,
    "portable": LOWER,
    "amx-model": [PYTHON, "-m", "pytest", "-q", *PRODUCTS],
    "conformance": [PYTHON, "tests/conformance/check.py"],
}
NEEDS_BUILD = {"pytest", "conformance", *LEVELS}


def main(wanted: list[str]) -> int:
    """Return 0 when every wanted part passed."""
    unknown = [name for name in wanted if name not in PARTS]
    if unknown:
        print(f"unknown part {', '.join(unknown)}; the parts are {', '.join(PARTS)}")
        return 2
    if NEEDS_BUILD & set(wanted):
        wanted = ["build", *wanted]
    rows: list[tuple[str, str, float]] = []
    failed: set[str] = set()
    for name, command in PARTS.items():
        if wanted and name not in wanted:
            continue
        if "build" in failed and name in NEEDS_BUILD:
            rows.append((name, "skipped: no build", 0.0))
            failed.add(name)
            continue
        print(f"\n== {name}: {' '.join(command).replace(PYTHON, 'python')}", flush=True)
        start = time.perf_counter()
        # The build part's own make must not see this one's job server or flags.
        env = {k: v for k, v in os.environ.items() if k not in {"MAKEFLAGS", "MFLAGS", "MAKELEVEL"}}
        if name in LEVELS:
            env["PYTENSORLIB_CPU"] = name
        code = subprocess.run(command, cwd=ROOT, env=env, check=False).returncode
        rows.append((name, "ok" if code == 0 else f"FAILED ({code})", time.perf_counter() - start))
        if code:
            failed.add(name)
    print("\npart          seconds  result")
    for name, result, seconds in rows:
        print(f"{name:<12} {seconds:>8.1f}  {result}")
    print(f"{'all':<12} {sum(s for *_, s in rows):>8.1f}")
    print(f"\nparts: {len(rows) - len(failed)} passed, {len(failed)} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
