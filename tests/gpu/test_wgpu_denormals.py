"""An adapter that takes denormals for zeros: software Vulkan, whose threads are told to."""

from __future__ import annotations

import platform
import shutil
import subprocess
import sys
from pathlib import Path

import child
import pytest

from pytensorlib import wgpu

# Every thread but the first: those of the driver compute for shaders.
FLUSH = """
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <stdlib.h>
#include <xmmintrin.h>

struct start { void *(*run)(void *); void *with; };

static void *begin(void *p) {
    struct start s = *(struct start *)p;
    free(p);
    _mm_setcsr(_mm_getcsr() | 0x8040);
    return s.run(s.with);
}

int pthread_create(pthread_t *t, const pthread_attr_t *a, void *(*run)(void *), void *with) {
    int (*real)(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *);
    *(void **)&real = dlsym(RTLD_NEXT, "pthread_create");
    struct start *s = malloc(sizeof *s);
    if (!s) return 11;
    s->run = run;
    s->with = with;
    return real(t, a, begin, s);
}
"""
CHECK = """
import sys, pytest
import pytensorlib as torch
tiny = torch.tensor([1e-40], device="wgpu")
if bool((tiny * 1.5 > 0).cpu()):
    sys.exit(77)
sys.exit(pytest.main(["-q", "-p", "no:cacheprovider", *sys.argv[1:]]))
"""
# What has to be right all the same, in each file.
CASES = {
    "test_wgpu_numbers.py": "extremes and (float32 or gradients) or rounded_once",
    "test_wgpu_complex_functions.py": "infinities or numpy",
}


@pytest.mark.skipif(not wgpu.is_available(), reason="no GPU adapter")
@pytest.mark.parametrize("file", CASES)
def test_functions_are_right_where_denormals_are_zeros(file: str, tmp_path: Path) -> None:
    compiler = shutil.which("cc")
    if not wgpu.get_device_properties()["software"] or platform.machine() != "x86_64":
        pytest.skip("not an adapter whose threads are this process's")
    if compiler is None or sys.platform != "linux":
        pytest.skip("no compiler for Linux")
    (tmp_path / "flush.c").write_text(FLUSH)
    library = tmp_path / "flush.so"
    command = [compiler, "-O1", "-shared", "-fPIC", "-o", str(library), str(tmp_path / "flush.c")]
    subprocess.run([*command, "-ldl"], check=True)
    # The host's own threads would flush, too.
    tests = [str(Path(__file__).with_name(file)), "-k", CASES[file]]
    env = {"LD_PRELOAD": str(library), "PYTENSORLIB_NUM_THREADS": "1"}
    done = child.python("-c", CHECK, *tests, timeout=900, **env)
    if done.returncode == 77:
        pytest.skip("the driver keeps them")
    assert done.returncode == 0, done.stdout
