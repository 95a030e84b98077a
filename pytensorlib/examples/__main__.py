"""List the examples, or run one: ``python -m pytensorlib.examples [name [arguments]]``."""

from __future__ import annotations

import ast
import runpy
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent


def examples() -> dict[str, str]:
    """Return the title of each example by its name."""
    found = {}
    for path in sorted(HERE.glob("[a-z]*.py")):
        text = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or ""
        found[path.stem] = text.strip().partition("\n")[0]
    return found


def main(argv: list[str]) -> int:
    """Run what is named, or list what there is; returns the exit status of a wrong call."""
    known = examples()
    if argv and argv[0] in known:
        sys.argv = argv
        runpy.run_module(f"pytensorlib.examples.{argv[0]}", run_name="__main__", alter_sys=True)
        return 0
    if argv and argv[0] not in ("-h", "--help"):
        print(f"no example {argv[0]}; there are {', '.join(known)}", file=sys.stderr)
        return 2
    print("python -m pytensorlib.examples NAME [--device cpu|wgpu|auto] [--small] [--help]\n")
    for name, title in known.items():
        print(f"  {name:<16} {title}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
