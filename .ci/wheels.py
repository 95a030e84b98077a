"""Look at wheels: metadata, contents, size, and on Linux the oldest C library that they run with.

`python .ci/wheels.py DIST` looks at the wheels and the sdist of a folder; with `--built` it makes
both of what is compiled already, looks at them, and runs the wheel away from here. `--try DIST`
installs each of Linux's wheels for this processor with NumPy in an empty environment, where there
is a Python of its version (3.14t: that of `.ci/setup freethreaded`), and runs it away from here;
`--try DIST aarch64` does so with those for another one, by the emulated Python of `.ci/setup
emulated`, and `--try DIST musl` with those for another C library, by that of `.ci/setup musl`.
"""

import email
import os
import platform
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
LIMIT = 17 << 20  # bytes of a wheel
TAG = r"cp3\d+-cp3\d+t?-(manylinux|musllinux|macosx|win|linux)[\w.]*"
LICENCES = {"LICENSE-MIT", "LICENSE-APACHE", "THIRD-PARTY.txt"}
# Functions that glibc 2.17 has in another library, or in an older version.
MOVED = """
    dlclose dlerror dlopen dlsym exp exp2 exp2f expf fstat64 hypot hypotf log log2 log2f
    logf lstat64 pow powf pthread_attr_getguardsize pthread_attr_getstack
    pthread_attr_setstacksize pthread_create pthread_detach pthread_getattr_np pthread_join
    pthread_key_create pthread_key_delete pthread_setname_np pthread_setspecific stat64
""".split()
OLDEST = (2, 17)
HERE = platform.machine()


def version() -> str:
    """Return the one version number."""
    text = (ROOT / "Cargo.toml").read_text(encoding="utf-8")
    return re.search(r'^version = "(.+)"', text, re.MULTILINE)[1]


def complaints_of_metadata(text: str) -> list[str]:
    """Return what is wrong with a distribution's metadata."""
    told = email.message_from_string(text)
    wanted = {
        "Name": "pytensorlib",
        "Version": version(),
        "License-Expression": "MIT OR Apache-2.0",
        "Requires-Python": ">=3.10",
    }
    found = [f"{k} is {told[k]!r}, must be {v!r}" for k, v in wanted.items() if told[k] != v]
    missing = LICENCES - set(told.get_all("License-File", []))
    found += [f"no License-File {name}" for name in sorted(missing)]
    if "# pytensorlib" not in told.get_payload():
        found.append("the description is not the README")
    return found


def complaints_of_wheel(path: Path) -> list[str]:
    """Return what is wrong with a wheel."""
    if not re.fullmatch(rf"pytensorlib-{re.escape(version())}-{TAG}\.whl", path.name):
        return [f"the name has not version {version()}, or no tag of a wheel for one Python"]
    with zipfile.ZipFile(path) as file:
        names = file.namelist()
        info = f"pytensorlib-{version()}.dist-info"
        found = complaints_of_metadata(file.read(f"{info}/METADATA").decode())
        found += [f"no {n}" for n in LICENCES if f"{info}/licenses/{n}" not in names]
        if not any(n.startswith(f"{info}/sboms/") for n in names):
            found.append("no list of what is compiled in (SBOM)")
        binaries = [n for n in names if n.endswith((".so", ".pyd", ".dylib", ".dll"))]
        if len(binaries) != 1 or not binaries[0].startswith("pytensorlib/_C."):
            found.append(f"must have one extension, has {binaries}")
        found += [
            f"no {n}" for n in ("pytensorlib/py.typed", "pytensorlib/_C.pyi") if n not in names
        ]
        odd = [n for n in names if not n.startswith((f"{info}/", "pytensorlib/"))]
        odd += [n for n in names if "__pycache__" in n]
        found += [f"must not have {n}" for n in odd]
        if binaries and "linux-gnu" in binaries[0]:
            with tempfile.TemporaryDirectory() as folder:
                found += newer(file.extract(binaries[0], folder))
    if path.stat().st_size > LIMIT:
        found.append(f"has {path.stat().st_size >> 20} MB, must have at most {LIMIT >> 20}")
    return found


def newer(extension: str) -> list[str]:
    """Return the functions that an extension takes of a C library newer than manylinux2014's."""
    nm = shutil.which("nm")
    if nm is None:
        return []
    command = [nm, "-D", "--undefined-only", "--with-symbol-versions", extension]
    text = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    # Others are weak: Rust's library asks whether they are there.
    used = re.findall(r" U (\w+)@+GLIBC_(\d+)\.(\d+)", text)
    late = {name for name, a, b in used if (int(a), int(b)) > OLDEST} - set(MOVED)
    return [f"takes {name} of a C library newer than glibc 2.17" for name in sorted(late)]


def complaints_of_sdist(path: Path) -> list[str]:
    """Return what is wrong with the archive of the source."""
    with tarfile.open(path) as file:
        folder = f"pytensorlib-{version()}"
        names = set(file.getnames())
        found = complaints_of_metadata(file.extractfile(f"{folder}/PKG-INFO").read().decode())
        wanted = [*LICENCES, "Cargo.lock", "Cargo.toml", "pyproject.toml", "README.md"]
        wanted += [f"rust/{crate}/src/lib.rs" for crate in ("base", "cpu", "gpu", "core", "py")]
        wanted += ["rust/py/build.rs", "shaders/prelude.wgsl"]
        found += [f"no {n}" for n in wanted if f"{folder}/{n}" not in names]
        return found + [f"must not have {n}" for n in names if n.endswith((".so", ".pyd", ".pyc"))]


def look(folder: Path) -> int:
    """Print what is wrong with each file of a folder; returns how much that is."""
    files = sorted(folder.iterdir())
    count = 0 if files else print(f"{folder} is empty") or 1
    for path in files:
        found = complaints_of_wheel(path) if path.suffix == ".whl" else complaints_of_sdist(path)
        print(f"{path.name}: {path.stat().st_size / 1e6:.1f} MB, {'wrong' if found else 'right'}")
        print("".join(f"    {text}\n" for text in found), end="")
        count += len(found)
    return count


def built() -> int:
    """Make a wheel and an sdist as `make build` left things, look at them, and run the wheel."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for command in (["build", "--release", "-i", sys.executable], ["sdist"]):
            words = ["maturin", *command, "--out", str(folder / "dist")]
            subprocess.run(words, cwd=ROOT, check=True)
        count = look(folder / "dist")
        (wheel,) = (folder / "dist").glob("*.whl")
        pip = [sys.executable, "-m", "pip", "install", "-q", "--no-deps", "--no-index"]
        subprocess.run([*pip, "--target", str(folder / "site"), str(wheel)], check=True)
        smoke = [sys.executable, str(ROOT / "tests/platforms/smoke.py")]
        env = {**os.environ, "PYTHONPATH": str(folder / "site"), "SMOKE_FROM": str(folder / "site")}
        return count + subprocess.run(smoke, cwd=folder, env=env, check=False).returncode


def is_version(python: str | Path, version: str) -> bool:
    """Return whether a command is a Python of a version, such as 3.12 or 3.14t."""
    asked = "import sys; print('%d.%d' % sys.version_info[:2] + getattr(sys, 'abiflags', ''))"
    return subprocess.run([python, "-c", asked], capture_output=True).stdout.split() == [
        version.encode()
    ]


def interpreter(version: str, kind: str) -> Path | None:
    """Return a Python of a version that is on the PATH, that pyenv has, or that was made."""
    if kind != HERE:
        found = [ROOT / ".wheels" / kind / "python"]
    elif version.endswith("t"):
        found = [ROOT / ".wheels/freethreaded/bin/python"]
    else:
        found = sorted(Path.home().glob(f".pyenv/versions/{version}.*/bin/python"))
        if name := shutil.which(f"python{version}"):
            found.insert(0, Path(name))
    return next((p for p in found if p.is_file() and is_version(p, version)), None)


def installed(
    wheel: Path, python: Path, version: str, kind: str, folder: Path
) -> tuple[Path, dict[str, str]]:
    """Install a wheel with what it needs; returns the Python that has both, and its variables."""
    env = {k: v for k, v in os.environ.items() if not k.startswith("PYTHON")}
    env["SMOKE_FROM"] = os.path.realpath(folder)
    words = ["-m", "pip", "install", "-q", "--disable-pip-version-check", str(wheel)]
    if ".wheels" not in python.parts:
        subprocess.run([python, "-m", "venv", folder], check=True)
        own = folder / "bin/python"
        subprocess.run([own, *words], check=True)
        return own, env
    # Those that were made have no pip; an emulated one takes minutes.
    words += ["--target", folder, "--only-binary=:all:", "--python-version", version.rstrip("t")]
    words += ["--implementation", "cp", "--abi", f"cp{version.replace('.', '')}"]
    words += [word for tag in tags(kind) for word in ("--platform", tag)]
    subprocess.run([sys.executable, *words], check=True)
    env["PYTHONPATH"] = os.pathsep.join(map(str, (env["SMOKE_FROM"], python.parent)))
    return python, env


def tags(kind: str) -> list[str]:
    """Return the platforms of wheels for a processor, or for this one above musl."""
    if kind == "musl":
        return [f"musllinux_1_2_{HERE}"]
    return [f"manylinux_2_17_{kind}", f"manylinux_2_28_{kind}"]


def run_each(folder: Path, kind: str) -> int:
    """Run each wheel of a kind in an environment of its own; returns how many failed."""
    failed, count = [], 0
    for wheel in sorted(folder.glob(f"*{tags(kind)[0]}*.whl")):
        version = re.sub(r".*-cp3(\d+t?)-.*", r"3.\1", wheel.name)
        python = interpreter(version, kind)
        print(f"-- {wheel.name}: {python or 'there is no Python for it'}", flush=True)
        if not python:
            continue
        count += 1
        with tempfile.TemporaryDirectory() as name:
            own, env = installed(wheel, python, version, kind, Path(name))
            smoke = [own, ROOT / "tests/platforms/smoke.py"]
            if subprocess.run(smoke, cwd=name, env=env, check=False).returncode:
                failed.append(wheel.name)
    print(f"{count} of the wheels could run; failed: {', '.join(failed) or 'none'}")
    return len(failed) if count else 1


def main(argv: list[str]) -> int:
    """Look at what is asked for; returns 0 where all is right."""
    match argv:
        case ["--built"]:
            return min(1, built())
        case ["--try", folder]:
            return min(1, run_each(Path(folder), HERE))
        case ["--try", folder, kind]:
            return min(1, run_each(Path(folder), kind))
        case [folder]:
            return min(1, look(Path(folder)))
    print(__doc__)
    return 2


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
