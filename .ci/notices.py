"""Write THIRD-PARTY.txt: the crates that are compiled into the wheels, with their notices.

With ``--check`` only say whether it is as it should be.
"""

import json
import re
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
FILE = ROOT / "THIRD-PARTY.txt"
TARGETS = """
    x86_64-unknown-linux-gnu aarch64-unknown-linux-gnu
    x86_64-unknown-linux-musl aarch64-unknown-linux-musl
    x86_64-pc-windows-msvc aarch64-pc-windows-msvc x86_64-apple-darwin aarch64-apple-darwin
""".split()
# Of several that a crate may be had under, the first of these; `deny.toml` has the same names.
TAKEN = ["MIT", "Apache-2.0", "BSD-2-Clause", "BSD-3-Clause", "ISC", "Zlib", "Unicode-3.0"]
# What a file of a licence is named after it.
NAMES = {"MIT": "MIT", "Apache-2.0": "APACHE", "BSD-2-Clause": "BSD", "Zlib": "ZLIB", "ISC": "ISC"}
LINE = "-" * 80


def crates(target: str) -> Iterator[dict]:
    """Yield what is compiled into the extension for a target."""
    command = ["cargo", "metadata", "--locked", "--format-version=1", "--filter-platform", target]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, check=True, text=True)
    told = json.loads(done.stdout)
    packages = {p["id"]: p for p in told["packages"]}
    nodes = {n["id"]: n for n in told["resolve"]["nodes"]}
    (root,) = [i for i, p in packages.items() if p["name"] == "pytensorlib-py"]
    seen, left = {root}, [root]
    while left:
        for dep in nodes[left.pop()]["deps"]:
            built = any(kind["kind"] is None for kind in dep["dep_kinds"])
            macro = any("proc-macro" in t["kind"] for t in packages[dep["pkg"]]["targets"])
            if built and not macro and dep["pkg"] not in seen:
                seen.add(dep["pkg"])
                left.append(dep["pkg"])
    yield from (packages[i] for i in seen if packages[i]["source"])


def licence(package: dict) -> list[str]:
    """Return the licences that a crate is taken under: each of a sum, one of a choice."""
    text = package["license"] or ""
    taken = []
    for part in re.split(r"\bAND\b", text):
        choices = re.findall(r"[\w.+-]+", re.sub(r"\bOR\b|/|[()]", " ", part))
        known = [name for name in TAKEN if name in choices]
        if not known:
            raise SystemExit(f"{package['name']}: the licence {text!r} is none of {TAKEN}")
        taken.append(known[0])
    return sorted(set(taken))


def texts(package: dict, taken: list[str]) -> list[str]:
    """Return the files of a crate with these licences, or all with licences where no name tells."""
    folder = Path(package["manifest_path"]).parent
    files = [p for p in sorted(folder.iterdir()) if p.is_file()]
    files = [p for p in files if re.match(r"(?i)(licen[cs]e|copying|notice|unlicense)", p.name)]
    named = [p for p in files if any(NAMES.get(n, n) in p.name.upper() for n in taken)]
    notices = [p for p in files if p.name.upper().startswith("NOTICE")]
    chosen = (named + notices) or [p for p in files if p.suffix in {"", ".md", ".txt"}]
    return [p.read_text(errors="replace").strip() for p in chosen]


def standard(taken: list[str], authors: str) -> str:
    """Return what stands for the file that a crate lacks."""
    if taken == ["Apache-2.0"]:
        return f"Copyright {authors}. The text of the licence is that of LICENSE-APACHE."
    if taken != ["MIT"]:
        raise SystemExit(f"{authors}: no text of the licence {taken}")
    ours = (ROOT / "LICENSE-MIT").read_text()
    return f"Copyright (c) {authors}\n\n{ours[ours.index('Permission is') :].strip()}"


def made() -> str:
    """Return the file's text."""
    found = {(p["name"], p["version"]): p for t in TARGETS for p in crates(t)}
    rows, shared = [], defaultdict(list)
    for (name, version), package in sorted(found.items()):
        taken = licence(package)
        rows.append(
            f"{name} {version}  {' and '.join(taken)}  {package['repository'] or ''}".rstrip()
        )
        own = texts(package, taken)
        if not own:
            authors = ", ".join(re.sub(r" *<.*>", "", a) for a in package["authors"])
            own = [standard(taken, authors or f"the authors of {name}")]
        for text in own:
            # Line ends and their blanks differ between copies of one text.
            shared[re.sub(r"[ \t\r]+\n", "\n", text)].append(f"{name} {version}")
    head = (
        "Crates of Rust that are compiled into the wheels of pytensorlib, on one system or\n"
        "another, with the licences under which they are taken here, and their notices.\n"
        "Rust's standard library is in them too: MIT or Apache-2.0, copyright The Rust\n"
        "Project Contributors. `python .ci/notices.py` writes this file.\n"
    )
    parts = [f"{LINE}\n{', '.join(who)}\n{LINE}\n{text}\n" for text, who in shared.items()]
    return "\n".join([head, "\n".join(rows) + "\n", *parts])


def main(argv: list[str]) -> int:
    """Write the file, or with ``--check`` compare it; returns the exit status."""
    text = made()
    if "--check" in argv:
        if FILE.is_file() and FILE.read_text() == text:
            return 0
        print("THIRD-PARTY.txt is not what Cargo.lock asks for: run python .ci/notices.py")
        return 1
    FILE.write_text(text)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
