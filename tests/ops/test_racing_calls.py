"""Another thread may write to an operator's arguments: numbers may race, memory may not."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import child
import pytest

HERE = Path(__file__).parents[1]
PARTS = 4
# Nothing here asks the interpreter: the thread that runs this does not hold its lock.
WRITER = """
#include <stddef.h>
#include <string.h>
struct job { char *to; const char *a, *b; size_t n; };
void write_until(struct job *jobs, int n, volatile int *stop) {
    while (!*stop)
        for (int i = 0; i < n; i++) {
            memcpy(jobs[i].to, jobs[i].b, jobs[i].n);
            memcpy(jobs[i].to, jobs[i].a, jobs[i].n);
        }
}
"""


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    compiler = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
    if sys.platform == "win32" or compiler is None:
        pytest.skip("no C compiler")
    folder = tmp_path_factory.mktemp("writer")
    (folder / "writer.c").write_text(WRITER)
    built = folder / "writer.so"
    flags = ["-O2", "-shared", "-fPIC", "-o", str(built)]
    subprocess.run([compiler, *flags, str(folder / "writer.c")], check=True)
    return built


@pytest.mark.parametrize("part", range(PARTS))
def test_operators_whose_arguments_change_under_them_keep_to_their_memory(
    library: Path, part: int
) -> None:
    words = (HERE / "racing.py", library, part, PARTS)
    env = {"PYTENSORLIB_GUARD": "1", "PYTHONPATH": str(HERE.parent)}
    done = child.python(*words, timeout=600, **env)
    calm = "panicked" not in done.stderr
    assert done.returncode == 0 and calm and done.stdout.endswith("done\n"), (
        f"exit {done.returncode}; last calls: {done.stdout.splitlines()[-3:]}\n"
        f"{done.stderr[-3000:]}"
    )


def test_guard_bytes_notice_a_write_outside_a_block() -> None:
    program = (
        "import ctypes, pytensorlib as torch\n"
        "x = torch.zeros(10)\n"
        "ctypes.memset(x.data_ptr() + 40, 1, 1)\n"
        "del x\n"
        "print('not noticed')\n"
    )
    done = child.python("-c", program, PYTENSORLIB_GUARD="1")
    assert done.returncode < 0
    assert "memory behind a block of 40 bytes was written to" in done.stderr
    assert "not noticed" not in done.stdout
