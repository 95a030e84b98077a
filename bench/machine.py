"""Which processor this is: its family, by the numbers that it gives itself, cores and caches.

`python bench/machine.py` prints it.
"""

import json
import os
import platform
import re
import subprocess
from pathlib import Path
from typing import Any

Models = list[tuple[int, int, str]]  # the first and the last model, their family's name
AMD: dict[int, Models] = {
    0x17: [(0x00, 0x2F, "zen"), (0x30, 0xFF, "zen2")],
    0x19: [
        *((0x00, 0x0F, "zen3"), (0x10, 0x1F, "zen4"), (0x20, 0x5F, "zen3")),
        (0x60, 0xAF, "zen4"),
    ],
    0x1A: [(0x00, 0xFF, "zen5")],
}
INTEL = {
    **dict.fromkeys((0x3C, 0x3F, 0x45, 0x46), "haswell"),
    **dict.fromkeys((0x3D, 0x47, 0x4F, 0x56), "broadwell"),
    **dict.fromkeys((0x4E, 0x5E, 0x55), "skylake"),
    **dict.fromkeys((0x8E, 0x9E), "kabylake"),
    **dict.fromkeys((0xA5, 0xA6), "cometlake"),
    **dict.fromkeys((0x6A, 0x6C, 0x7D, 0x7E), "icelake"),
    **dict.fromkeys((0x8C, 0x8D), "tigerlake"),
    **dict.fromkeys((0x97, 0x9A), "alderlake"),
    **dict.fromkeys((0xB7, 0xBA, 0xBF), "raptorlake"),
    **dict.fromkeys((0xAA, 0xAC), "meteorlake"),
    **dict.fromkeys((0xAD, 0xAE), "graniterapids"),
    0xA7: "rocketlake",
    0x8F: "sapphirerapids",
    0xCF: "emeraldrapids",
}
SAME_MODEL = [(0, 4, "skylake"), (5, 9, "cascadelake"), (10, 15, "cooperlake")]  # 0x55, by stepping
ARM = {
    0xD08: "cortex-a72",
    0xD0B: "cortex-a76",
    0xD0C: "neoverse-n1",
    0xD40: "neoverse-v1",
    0xD49: "neoverse-n2",
    0xD4F: "neoverse-v2",
}
VENDORS = {"AuthenticAMD": "amd", "GenuineIntel": "intel"}
AVX2 = {"bmi1", "bmi2", "abm", "popcnt", "avx2", "fma", "f16c"}  # of rust/base/src/isa.rs
AVX512 = {"avx512f", "avx512bw", "avx512dq", "avx512vl"}
AMX = {"amx_tile", "amx_bf16"}


def within(number: int, ranges: Models) -> str | None:
    """Return the name of the range that holds the number."""
    return next((name for first, last, name in ranges if first <= number <= last), None)


def level(flags: set[str]) -> str:
    """Return the widest instruction set of an x86 that kernels are compiled for."""
    if not flags >= AVX2:
        return "portable"
    if not flags >= AVX512:
        return "avx2"
    return "amx" if flags >= AMX else "avx512"


def described(cpuinfo: str) -> dict[str, Any]:
    """Return what Linux's /proc/cpuinfo says of its first processor, `family` among it."""
    first = cpuinfo.strip().split("\n\n")[0]
    said = dict(re.findall(r"^([^\t:]+?)\s*: (.*)$", first, re.MULTILINE))
    if "CPU part" in said:
        part = int(said["CPU part"], 16)
        name = ARM.get(part) if said["CPU implementer"] == "0x41" else None
        name = name or f"arm-{int(said['CPU implementer'], 16):02x}-{part:03x}"
        return {"family": f"{name}-neon", "name": name}
    vendor = VENDORS.get(said["vendor_id"], said["vendor_id"].lower())
    family, model, step = (int(said[k]) for k in ("cpu family", "model", "stepping"))
    name = f"{family:02x}-{model:02x}"
    if vendor == "amd":
        name = within(model, AMD.get(family, [])) or name
    elif vendor == "intel" and family == 6:
        name = within(step, SAME_MODEL) if model == 0x55 else INTEL.get(model, name)
    flags = set(said["flags"].split())
    return {
        "family": f"{vendor}-{name}-{level(flags)}",
        "name": said["model name"],
        "numbers": f"{family:02x}_{model:02x}h stepping {step}",
        "virtual": "hypervisor" in flags,
    }


def caches() -> dict[str, str]:
    """Return the sizes of the data caches that the first core reaches."""
    found = {}
    for cache in sorted(Path("/sys/devices/system/cpu/cpu0/cache").glob("index*")):
        kind, rank, size = ((cache / f).read_text().strip() for f in ("type", "level", "size"))
        if kind != "Instruction":
            kb = int(size.removesuffix("K"))
            found[f"L{rank}"] = f"{kb >> 10} MB" if kb % 1024 == 0 else f"{kb} KB"
    return found


def this_machine() -> dict[str, Any]:
    """Return this machine's family, what it is called, cores and caches."""
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.exists():
        found = described(cpuinfo.read_text())
    else:
        name = platform.processor() or platform.machine()
        if platform.system() == "Darwin":
            command = ["sysctl", "-n", "machdep.cpu.brand_string"]
            name = subprocess.run(command, capture_output=True, text=True).stdout.strip() or name
        found = {"family": re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-"), "name": name}
    return found | {"cores": os.cpu_count(), "caches": caches()}


if __name__ == "__main__":
    print(json.dumps(this_machine(), indent=1))
