"""A pickle machine that runs nothing but what its caller allows.

The standard unpickler, even with a filtered ``find_class``, lets a file set attributes on classes
and allocate at will. This one knows the opcodes that checkpoints are made of, looks names up
through `find_global` only, and applies state through `build` only.

`loads` is the whole interface, so that a compiled machine can take its place.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from pickle import UnpicklingError
from typing import Any

__all__ = ["CorruptCheckpointError", "TruncatedCheckpointError", "loads"]


class CorruptCheckpointError(RuntimeError):
    """The file is damaged or is not a checkpoint; the text says where."""


class TruncatedCheckpointError(CorruptCheckpointError, EOFError):
    """The file ends too early."""


class _Mark:
    def __repr__(self) -> str:
        return "MARK"


MARK = _Mark()
Find = Callable[[str, str], tuple[Any, bool]]
Load = Callable[[Any], Any]
Build = Callable[[Any, Any], Any]


def loads(
    data: bytes | memoryview, find_global: Find, persistent_load: Load, build: Build, at: int = 0
) -> tuple[Any, int]:
    """Run one pickle.

    Parameters
    ----------
    data : bytes
        Holds the pickle.
    find_global : callable
        ``find_global(module, name)`` returns what a name stands for and whether the file may call
        it; it raises `pickle.UnpicklingError` to refuse.
    persistent_load : callable
        Called with the tuple that stands for a storage.
    build : callable
        ``build(object, state)`` returns the object with its state applied, or refuses.
    at : int
        Where the pickle starts.

    Returns
    -------
    (object, int)
        What the pickle holds, and where it ends.

    Raises
    ------
    UnpicklingError
        An opcode or a name that is not allowed.
    CorruptCheckpointError
        A pickle that is damaged; `TruncatedCheckpointError` if it ends too early.
    """
    return _Machine(data, find_global, persistent_load, build, at).run()


class _Machine:
    def __init__(
        self, data: bytes | memoryview, find: Find, load: Load, build: Build, at: int
    ) -> None:
        self.data = bytes(data)
        self.at = at
        self.find, self.load, self.build_state = find, load, build
        self.stack: list[Any] = []
        self.memo: dict[int, Any] = {}
        self.callables: list[Any] = []

    def run(self) -> tuple[Any, int]:
        data, table = self.data, OPCODES
        try:
            while True:
                code = self.read(1)[0]
                operation = table.get(code)
                if operation is None:
                    if code == STOP:
                        return self.pop(), self.at
                    raise UnpicklingError(
                        f"opcode 0x{code:02x} at byte {self.at - 1} is not allowed in a checkpoint"
                    )
                operation(self)
        except (CorruptCheckpointError, UnpicklingError, NotImplementedError):
            raise
        except (IndexError, KeyError, TypeError, ValueError, AssertionError, LookupError) as e:
            raise CorruptCheckpointError(
                f"corrupt pickle near byte {self.at} of {len(data)}: {type(e).__name__}: {e}"
            ) from e

    # ------------------------------------------------------------------ reading

    def read(self, n: int) -> bytes:
        end = self.at + n
        if end > len(self.data):
            raise TruncatedCheckpointError(
                f"the pickle ends at byte {len(self.data)}, but {n} bytes are needed at {self.at}"
            )
        part = self.data[self.at : end]
        self.at = end
        return part

    def line(self) -> str:
        end = self.data.find(b"\n", self.at, self.at + 1024)
        if end < 0:
            raise TruncatedCheckpointError(f"a name at byte {self.at} of the pickle does not end")
        text = self.data[self.at : end].decode("utf-8")
        self.at = end + 1
        return text

    def unpack(self, form: str) -> Any:
        return struct.unpack(form, self.read(struct.calcsize(form)))[0]

    def pop(self) -> Any:
        if not self.stack or self.stack[-1] is MARK:
            raise CorruptCheckpointError(f"the pickle pops an empty stack at byte {self.at}")
        return self.stack.pop()

    def pop_to_mark(self) -> list[Any]:
        i = len(self.stack) - 1
        while i >= 0 and self.stack[i] is not MARK:
            i -= 1
        if i < 0:
            raise CorruptCheckpointError(f"the pickle has no mark at byte {self.at}")
        items = self.stack[i + 1 :]
        del self.stack[i:]
        return items

    def top(self, kind: type, what: str) -> Any:
        if not self.stack or not isinstance(self.stack[-1], kind):
            found = type(self.stack[-1]).__name__ if self.stack else "nothing"
            raise UnpicklingError(f"the pickle applies {what} to {found}, not to {kind.__name__}")
        return self.stack[-1]

    # --------------------------------------------------------------- operations

    def proto(self) -> None:
        version = self.read(1)[0]
        if version != 2:
            raise UnpicklingError(f"pickle protocol {version}: checkpoints use protocol 2")

    def global_(self) -> None:
        module, name = self.line(), self.line()
        found, may_be_called = self.find(module, name)
        if may_be_called:
            self.callables.append(found)
        self.stack.append(found)

    def call(self) -> None:
        args = self.pop()
        function = self.pop()
        if not isinstance(args, tuple) or not any(function is c for c in self.callables):
            raise UnpicklingError(f"the pickle calls {function!r:.80}, which is not allowed")
        self.stack.append(function(*args))

    def build(self) -> None:
        state = self.pop()
        self.stack.append(self.build_state(self.pop(), state))

    def append(self) -> None:
        value = self.pop()
        self.top(list, "APPEND").append(value)

    def appends(self) -> None:
        values = self.pop_to_mark()
        self.top(list, "APPENDS").extend(values)

    def setitem(self) -> None:
        value, key = self.pop(), self.pop()
        self.top(dict, "SETITEM")[key] = value

    def setitems(self) -> None:
        items = self.pop_to_mark()
        if len(items) % 2:
            raise CorruptCheckpointError(f"a key without a value at byte {self.at} of the pickle")
        self.top(dict, "SETITEMS").update(zip(items[::2], items[1::2], strict=True))

    def tuple_of(self, n: int) -> None:
        items = [self.pop() for _ in range(n)]
        self.stack.append(tuple(reversed(items)))

    def put(self, index: int) -> None:
        if not self.stack or self.stack[-1] is MARK:
            raise CorruptCheckpointError(f"the pickle remembers nothing at byte {self.at}")
        self.memo[index] = self.stack[-1]

    def get(self, index: int) -> None:
        if index not in self.memo:
            raise CorruptCheckpointError(f"the pickle recalls {index}, which it did not remember")
        self.stack.append(self.memo[index])

    def persistent(self) -> None:
        self.stack.append(self.load(self.pop()))


def _push(make: Callable[[_Machine], Any]) -> Callable[[_Machine], None]:
    return lambda m: m.stack.append(make(m))


STOP = ord(".")
OPCODES: dict[int, Callable[[_Machine], None]] = {
    ord(code): operation
    for code, operation in {
        "\x80": _Machine.proto,
        "c": _Machine.global_,
        "\x81": _Machine.call,
        "R": _Machine.call,
        "b": _Machine.build,
        "a": _Machine.append,
        "e": _Machine.appends,
        "s": _Machine.setitem,
        "u": _Machine.setitems,
        "(": _push(lambda m: MARK),
        "t": _push(lambda m: tuple(m.pop_to_mark())),
        ")": _push(lambda m: ()),
        "\x85": lambda m: m.tuple_of(1),
        "\x86": lambda m: m.tuple_of(2),
        "\x87": lambda m: m.tuple_of(3),
        "]": _push(lambda m: []),
        "}": _push(lambda m: {}),
        "\x8f": _push(lambda m: set()),
        "N": _push(lambda m: None),
        "\x88": _push(lambda m: True),
        "\x89": _push(lambda m: False),
        "J": _push(lambda m: m.unpack("<i")),
        "K": _push(lambda m: m.unpack("<B")),
        "M": _push(lambda m: m.unpack("<H")),
        "\x8a": _push(lambda m: int.from_bytes(m.read(m.read(1)[0]), "little", signed=True)),
        "G": _push(lambda m: m.unpack(">d")),
        "X": _push(lambda m: m.read(m.unpack("<I")).decode("utf-8", "surrogatepass")),
        "U": _push(lambda m: m.read(m.read(1)[0]).decode("latin-1")),
        "Q": _Machine.persistent,
        "h": lambda m: m.get(m.read(1)[0]),
        "j": lambda m: m.get(m.unpack("<I")),
        "q": lambda m: m.put(m.read(1)[0]),
        "r": lambda m: m.put(m.unpack("<I")),
    }.items()
}
