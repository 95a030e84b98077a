"""Build for a free-threaded Python and use it from several threads: part `free-threaded`.

`.ci/setup freethreaded` makes that Python. Whatever the module says of itself when it is imported,
the lock stays off here.
"""

import argparse
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
PLACE = ROOT / ".wheels/freethreaded"
PYTHON = PLACE / "bin/python"
AWAY = PLACE / "away"
# Laws of which every N-th test runs, and files whose tests all run.
LAWS = "ops gradients indexing random pointwise_layouts"
FILES = "autograd graph_objects graph_rules nested_backward nn module_states optim"
FILES += " racing_calls sharing_threads"
LIMIT = 1800  # seconds of one step


def build() -> None:
    """Compile the extension, and put package and tests into a folder of their own."""
    env = {**os.environ, "PYO3_PYTHON": str(PYTHON), "PYO3_BUILD_EXTENSION_MODULE": "1"}
    command = ["cargo", "build", "-q", "--release", "--locked", "-p", "pytensorlib-py"]
    subprocess.run(command, cwd=ROOT, env=env, check=True)
    shutil.rmtree(AWAY, ignore_errors=True)
    other = shutil.ignore_patterns("*.so", "*.pyd", "__pycache__")
    for name in ("pytensorlib", "tests"):
        shutil.copytree(ROOT / name, AWAY / name, ignore=other)
    for name in ("pyproject.toml", "README.md"):
        shutil.copy(ROOT / name, AWAY)
    built = AWAY / "pytensorlib/_C.cpython-314t-x86_64-linux-gnu.so"
    shutil.copy(ROOT / "target/release/lib_C.so", built)


def run(*words: object) -> bool:
    """Run that Python without its lock; returns whether it succeeded."""
    env = {k: v for k, v in os.environ.items() if not k.startswith("PYTHON")}
    env |= {"PYTHON_GIL": "0", "PYTHONPATH": str(AWAY), "PYTHONDONTWRITEBYTECODE": "1"}
    command = [PYTHON, *map(str, words)]
    return subprocess.run(command, cwd=AWAY, env=env, check=False, timeout=LIMIT).returncode == 0


def pytest(names: str, every: int) -> list[object]:
    """Return the words that run every N-th test of the files of these names."""
    words = ["-m", "pytest", "-q", "-p", "no:cacheprovider", "-m", "not timed and not slow"]
    paths = {path.stem: path for path in ROOT.glob("tests/*/test_*.py")}
    found = [paths[f"test_{name}"].relative_to(ROOT).as_posix() for name in names.split()]
    return [*words, f"--every={every}", *found]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--every", type=int, default=4, help="every N-th test of the laws")
    parser.add_argument("--seconds", type=float, default=20, help="of each part of the threads")
    args = parser.parse_args()
    if not PYTHON.is_file():
        print("no free-threaded Python: .ci/setup freethreaded could not make it here")
        return 0
    began = time.perf_counter()
    build()
    steps = {
        "smoke": ["tests/platforms/smoke.py"],
        "threads": ["tests/threads.py", args.seconds],
        "files": pytest(FILES, 1),
        "laws": pytest(LAWS, args.every),
    }
    failed = []
    for name, words in steps.items():
        print(f"-- {name} ({time.perf_counter() - began:.0f} s)", flush=True)
        if not run(*words):
            failed.append(name)
    print("failed: " + ", ".join(failed) if failed else "all passed")
    return bool(failed)


if __name__ == "__main__":
    sys.exit(main())
