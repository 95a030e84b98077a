"""Run a script in which ``import torch`` means pytensorlib.

``python -m pytensorlib script.py [arguments]``, or ``-m module`` or ``-c code`` as Python has.
``--install-alias`` makes ``import torch`` mean pytensorlib in the whole environment, without this
runner; ``--remove-alias`` undoes that. ``--gpu-as cuda`` before any of these lets GPUs answer as
"cuda", or as "mps" or "xpu", which an alias keeps.

``info`` says what there is on this machine, ``check script.py`` which names of a script are not
here; a script of such a name is run as ``./info``.
"""

from __future__ import annotations

import os
import runpy
import sys
import types
from typing import Any

from . import wgpu
from ._absent import above as _above
from ._alias import install

USAGE = """\
usage: python -m pytensorlib [--gpu-as NAME] (script.py | -m module | -c code) [arguments]
       python -m pytensorlib [--gpu-as NAME] --install-alias
       python -m pytensorlib --remove-alias
       python -m pytensorlib info [--json] [--gpu]
       python -m pytensorlib check script.py ..."""
HELP = """
Runs it with `import torch` meaning pytensorlib. --install-alias makes that so for all of this
Python environment, which must have no PyTorch; --remove-alias undoes it. With --gpu-as cuda (or
mps, or xpu) GPUs of every maker answer as that device. `info` tells what there is on this
machine, for you and for bug reports; `check` reads scripts and lists the names of torch that are
not here."""


def _lost(error: BaseException | None) -> str | None:
    """Return how to install the library that an error, or one behind it, does not find."""
    while error is not None:
        if isinstance(error, ModuleNotFoundError) and (how := _above.install(error.name or "")):
            return (
                f"python -m pytensorlib: pip would install PyTorch with {error.name}; "
                f"this does not: {how}"
            )
        error = error.__cause__ or error.__context__
    return None


def _tell_misplaced(argv: list[str]) -> None:
    """Say so where an option of this launcher stands among the program's arguments."""
    for i, text in enumerate(argv):
        if text == "--":
            return
        option, equals, name = text.partition("=")
        if option == "--gpu-as":
            name = name if equals else " ".join(argv[i + 1 : i + 2])
            print(
                f"python -m pytensorlib: {text} after the program is the program's own argument; "
                f"if it is meant for pytensorlib, write `python -m pytensorlib --gpu-as "
                f"{name or 'cuda'}` and the program behind that",
                file=sys.stderr,
            )
            return


def _trim_tracebacks(filename: str | None) -> None:
    """Leave the frames of this runner out of the traceback that an error prints.

    What helps against the error comes behind it. `filename` None leaves all frames.
    """

    def hook(kind: type[BaseException], error: BaseException, trace: Any) -> None:
        first = trace if filename is not None else None
        while first is not None and first.tb_frame.f_code.co_filename != filename:
            first = first.tb_next
        if first is None and not isinstance(error, SyntaxError):
            first = trace
        sys.__excepthook__(kind, error.with_traceback(first), first)
        if told := _lost(error):
            print(told, file=sys.stderr)

    sys.excepthook = hook


def _run(code: Any, filename: str, argv: list[str], path: str | None) -> None:
    """Run source as ``__main__``."""
    sys.argv = argv
    module = types.ModuleType("__main__")
    module.__dict__.update(__builtins__=__builtins__, __cached__=None)
    if path is not None:
        module.__file__ = path
    sys.modules["__main__"] = module
    _trim_tracebacks(filename)
    exec(compile(code, filename, "exec", dont_inherit=True), module.__dict__)


def _named(argv: list[str]) -> tuple[str | None, list[str]]:
    """Let GPUs answer as the arguments say; return that name, and the arguments without it.

    Raises
    ------
    ValueError
        There is no such name.
    """
    name = None
    while argv and argv[0].partition("=")[0] == "--gpu-as":
        option, equals, name = argv[0].partition("=")
        rest = argv[1:] if equals else argv[2:]
        if not equals:
            name = argv[1] if len(argv) > 1 else ""
        argv = rest
        if not name:
            raise ValueError(f"{option} needs a name")
        wgpu.answer_as(name)
    return name, argv


def _change(option: str, rest: list[str], name: str | None) -> int:
    """Add or remove the alias of the environment."""
    from ._system import installed as _installed

    if option == "--install-alias":
        try:
            later, rest = _named(rest)
        except ValueError as e:
            print(f"{USAGE}\n{e}", file=sys.stderr)
            return 2
        name = later or name
    if rest or (name and option != "--install-alias"):
        print(f"{USAGE}\n{option} takes no arguments", file=sys.stderr)
        return 2
    try:
        if option == "--install-alias":
            print(f"`import torch` means pytensorlib now: {_installed.add(name)}")
            if name:
                print(f"GPUs answer as {name!r}")
            print(
                "Libraries that require torch, without PyTorch: "
                f"pip install --constraint {_installed.constraints()} NAME"
            )
        else:
            removed = _installed.remove()
            print(*[f"removed {p}" for p in removed] or ["no alias is installed"], sep="\n")
    except (_installed.Refused, OSError) as e:
        print(f"{option}: {e}", file=sys.stderr)
        return 1
    return 0


def main(argv: list[str]) -> int:
    """Run what the arguments name; returns the exit status of a wrong call."""
    if not argv or argv[0] in ("-h", "--help"):
        print(f"{USAGE}\n{HELP}")
        return 0 if argv else 2
    try:
        name, argv = _named(argv)
    except ValueError as e:
        print(f"{USAGE}\n{e}", file=sys.stderr)
        return 2
    if not argv:
        print(f"{USAGE}\n--gpu-as needs something to run", file=sys.stderr)
        return 2
    if argv[0] in ("--install-alias", "--remove-alias"):
        return _change(argv[0], argv[1:], name)
    what, *rest = argv
    if what == "info":
        from ._system.doctor import main as told

        return told(rest)
    if what == "check":
        from ._absent.check import main as told

        return told(rest)
    install()
    if name is None:
        _tell_misplaced(rest[1:] if what in ("-c", "-m") else rest)
    if what in ("-c", "-m"):
        if not rest:
            print(f"{USAGE}\nArgument expected for the {what} option", file=sys.stderr)
            return 2
        sys.path[0] = "" if what == "-c" else os.getcwd()
        if what == "-c":
            _run(rest[0], "<string>", ["-c", *rest[1:]], None)
        else:
            sys.argv = rest
            _trim_tracebacks(None)
            runpy.run_module(rest[0], run_name="__main__", alter_sys=True)
        return 0
    if what.startswith("-"):
        print(f"{USAGE}\nunknown option {what}", file=sys.stderr)
        return 2
    try:
        with open(what, "rb") as f:
            code = f.read()
    except OSError as e:
        print(f"python -m pytensorlib: can't open file {what!r}: {e.strerror}", file=sys.stderr)
        return 2
    sys.path[0] = os.path.dirname(os.path.abspath(what))
    _run(code, what, argv, what)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
