"""Describes the machine and its software for bug reports: ``python -m torch.utils.collect_env``."""

from __future__ import annotations

import locale
import os
import platform
import re
import subprocess
import sys
from typing import Any, NamedTuple

__all__ = [
    "SystemEnv",
    "get_cpu_info",
    "get_env_info",
    "get_gpu_info",
    "get_libc_version",
    "get_os",
    "get_pip_packages",
    "get_platform",
    "get_pretty_env_info",
    "get_python_platform",
    "main",
    "pretty_str",
    "run",
]

# Packages that matter to numbers and models.
PACKAGES = ("pytensorlib", "torch", "numpy", "scipy", "onnx", "triton", "mypy", "optree")


class SystemEnv(NamedTuple):
    """What `get_env_info` finds.

    Parameters
    ----------
    torch_version : str
        Of this package.
    os, libc_version, python_version, python_platform : str
        The system and the interpreter.
    gpu_models : str
        GPUs, one in a line.
    cpu_info : str
        The processor.
    pip_packages : list of str
        Packages with their versions.

    Examples
    --------
    >>> from pytensorlib.utils.collect_env import get_env_info
    >>> get_env_info()._fields[:2]
    ('torch_version', 'os')
    """

    torch_version: str
    os: str
    libc_version: str
    python_version: str
    python_platform: str
    gpu_models: str
    cpu_info: str
    pip_packages: list[str]


def run(command: str | list[str]) -> tuple[int, str, str]:
    """Run a program.

    Parameters
    ----------
    command : str or list of str
        A line for the shell, or a program with arguments.

    Returns
    -------
    tuple
        Its exit status, what it wrote, and what errors it wrote.

    Examples
    --------
    >>> import sys
    >>> from pytensorlib.utils.collect_env import run
    >>> run([sys.executable, "-c", "print(1)"])
    (0, '1', '')
    """
    try:
        done = subprocess.run(
            command, shell=isinstance(command, str), capture_output=True, check=False
        )
    except OSError:
        return 127, "", "Command not found"
    coding = locale.getpreferredencoding(do_setlocale=False)
    texts = (text.decode(coding, "replace").strip() for text in (done.stdout, done.stderr))
    return (done.returncode, *texts)  # type: ignore[return-value]


def get_platform() -> str:
    """Return which kind of system it is.

    Returns
    -------
    str
        "linux", "darwin" or "win32".

    Examples
    --------
    >>> import sys
    >>> from pytensorlib.utils.collect_env import get_platform
    >>> sys.platform.startswith(get_platform())
    True
    """
    return next(
        (n for n in ("linux", "win32", "darwin") if sys.platform.startswith(n)), sys.platform
    )


def get_os() -> str:
    """Return the system by its name.

    Returns
    -------
    str
        With its version and the processor's family.

    Examples
    --------
    >>> import platform
    >>> from pytensorlib.utils.collect_env import get_os
    >>> platform.machine() in get_os()
    True
    """
    name = f"{platform.system()} {platform.release()}"
    if get_platform() == "darwin":
        name = f"macOS {platform.mac_ver()[0]}"
    elif get_platform() == "linux":
        try:
            name = platform.freedesktop_os_release().get("PRETTY_NAME", name)
        except OSError:
            pass
    return f"{name} ({platform.machine()})"


def get_libc_version() -> str:
    """Return the C library's version.

    Returns
    -------
    str
        "N/A" where that is not known.

    Examples
    --------
    >>> from pytensorlib.utils.collect_env import get_libc_version
    >>> isinstance(get_libc_version(), str)
    True
    """
    return "-".join(part for part in platform.libc_ver() if part) or "N/A"


def get_python_platform() -> str:
    """Return what the interpreter says of its system.

    Returns
    -------
    str
        As ``platform.platform()``.

    Examples
    --------
    >>> from pytensorlib.utils.collect_env import get_python_platform
    >>> len(get_python_platform()) > 0
    True
    """
    return platform.platform()


def get_cpu_info() -> str:
    """Return the processor, how many cores there are, and which kernels are used.

    Returns
    -------
    str
        In lines.

    Examples
    --------
    >>> from pytensorlib.utils.collect_env import get_cpu_info
    >>> "cores" in get_cpu_info()
    True
    """
    from ..backends import cpu

    model = platform.processor() or platform.machine()
    if os.path.exists("/proc/cpuinfo"):
        with open("/proc/cpuinfo", encoding="utf-8", errors="replace") as file:
            found = re.search(r"^model name\s*: (.*)$", file.read(), re.MULTILINE)
        model = found[1] if found else model
    elif get_platform() == "darwin":
        model = run(["sysctl", "-n", "machdep.cpu.brand_string"])[1] or model
    return f"{model}\n{os.cpu_count()} cores\nkernels: {cpu.get_cpu_capability()}"


def get_gpu_info() -> str:
    """Return the GPUs that can be used.

    Returns
    -------
    str
        One in a line; "No GPU" where there is none.

    Examples
    --------
    >>> from pytensorlib.utils.collect_env import get_gpu_info
    >>> len(get_gpu_info()) > 0
    True
    """
    from .. import wgpu

    found = [wgpu.get_device_properties(i) for i in range(wgpu.device_count())]
    names = [f"GPU {i}: {f['name']} ({f['backend']}, {f['driver']})" for i, f in enumerate(found)]
    return "\n".join(names) or "No GPU"


def get_pip_packages() -> list[str]:
    """Return the installed packages that matter to numbers and models.

    Returns
    -------
    list of str
        Such as "numpy==2.0.0", in order.

    Examples
    --------
    >>> from pytensorlib.utils.collect_env import get_pip_packages
    >>> any(line.startswith("numpy==") for line in get_pip_packages())
    True
    """
    from importlib.metadata import distributions

    found = {d.metadata["Name"]: d.version for d in distributions()}
    wanted = (n for n in found if n and (n.lower() in PACKAGES or n.lower().startswith("torch")))
    return sorted(f"{name}=={found[name]}" for name in wanted)


def get_env_info() -> SystemEnv:
    """Return what tells of the machine and its programs.

    Returns
    -------
    SystemEnv
        A tuple with names.

    Examples
    --------
    >>> import platform
    >>> from pytensorlib.utils.collect_env import get_env_info
    >>> platform.python_version() in get_env_info().python_version
    True
    """
    from .. import __version__

    bits = 64 if sys.maxsize > 2**32 else 32
    return SystemEnv(
        str(__version__),
        get_os(),
        get_libc_version(),
        f"{sys.version.split()[0]} ({bits}-bit runtime)",
        get_python_platform(),
        get_gpu_info(),
        get_cpu_info(),
        get_pip_packages(),
    )


def pretty_str(envinfo: Any) -> str:
    """Return what `get_env_info` found as text for people.

    Parameters
    ----------
    envinfo : SystemEnv
        What was found.

    Returns
    -------
    str
        In lines.

    Examples
    --------
    >>> from pytensorlib.utils.collect_env import get_env_info, pretty_str
    >>> pretty_str(get_env_info()).splitlines()[0].partition(":")[0]
    'PyTorch version'
    """
    packages = "\n".join(f"[pip3] {line}" for line in envinfo.pip_packages)
    return "\n".join(
        [
            f"PyTorch version: {envinfo.torch_version}",
            "",
            f"OS: {envinfo.os}",
            f"Libc version: {envinfo.libc_version}",
            "",
            f"Python version: {envinfo.python_version}",
            f"Python platform: {envinfo.python_platform}",
            f"GPU models and configuration: {envinfo.gpu_models}",
            "",
            "CPU:",
            envinfo.cpu_info,
            "",
            "Versions of relevant libraries:",
            packages or "[pip3] No relevant packages",
        ]
    )


def get_pretty_env_info() -> str:
    """Return what tells of the machine and its programs, as text for people.

    Returns
    -------
    str
        In lines.

    Examples
    --------
    >>> from pytensorlib.utils.collect_env import get_pretty_env_info
    >>> "Python version" in get_pretty_env_info()
    True
    """
    return pretty_str(get_env_info())


def main() -> None:
    """Print it; ``python -m pytensorlib info`` says more of the GPUs and measures.

    Examples
    --------
    >>> from pytensorlib.utils import collect_env
    >>> collect_env.main()
    Collecting environment information...
    PyTorch version: ...
    """
    print("Collecting environment information...")
    print(get_pretty_env_info())


if __name__ == "__main__":
    main()
