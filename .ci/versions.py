"""Compile the extension for each Python that there are wheels for; none need be installed."""

import os
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
VERSIONS = ["3.10", "3.11", "3.12", "3.13", "3.14", "3.14t"]
# Crates that know nothing of Python are compiled once.
CHECK = ["cargo", "check", "-q", "--locked", "-p", "pytensorlib-py"]


def main() -> int:
    """Return 0 where it compiles for each."""
    failed = []
    for version in VERSIONS:
        start = time.perf_counter()
        # As if for another machine, whose Python cannot be asked.
        env = {**os.environ, "PYO3_CROSS": "1", "PYO3_CROSS_PYTHON_VERSION": version}
        if subprocess.run(CHECK, cwd=ROOT, env=env, check=False).returncode:
            failed.append(version)
        print(f"{version:6} {time.perf_counter() - start:6.1f} s", flush=True)
    print("failed: " + ", ".join(failed) if failed else "all compile")
    return bool(failed)


if __name__ == "__main__":
    sys.exit(main())
