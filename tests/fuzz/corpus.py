"""Where calls come from: the recorded calls of PyTorch's tests and the table of operators."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

from .calls import Array, Call, Named

TESTS = Path(__file__).resolve().parent.parent
LARGEST = 20_000  # elements in one sample


class Corpus:
    """Samples by operator; a recorded one is decoded when it is asked for."""

    def __init__(self) -> None:
        self._file = np.load(TESTS / "conformance" / "ops.public.npz")
        recorded = json.loads(self._file["__spec__"].tobytes())
        self._recorded = {name: entry for name, entry in recorded.items() if entry["samples"]}
        self._samples: dict[str, tuple[Any, ...]] = {}
        self._table: dict[str, Any] = {}
        try:
            import op_db  # needs SciPy

            self._table = {op.name: op for op in op_db.OPS if op.call is None}
        except ImportError:
            pass
        self.names = sorted({*self._recorded, *self._table})

    def path(self, name: str) -> str:
        """Return where a library keeps the operator."""
        entry = self._recorded.get(name)
        return entry["path"] if entry else f"torch.{name}"

    def samples(self, name: str) -> tuple[Any, ...]:
        """Return the samples of one operator, undecoded."""
        if name not in self._samples:
            self._samples[name] = self._found(name)
        return self._samples[name]

    def _found(self, name: str) -> tuple[Any, ...]:
        entry = self._recorded.get(name)
        recorded = [s["call"] for s in entry["samples"] + entry["errors"]] if entry else []
        table = self._table[name].samples() if name in self._table else []
        return (*recorded, *table)

    def call(self, name: str, which: int) -> Call:
        """Return one sample as a call."""
        sample = self.samples(name)[which]
        if isinstance(sample, dict):
            args, kwargs = self._decoded(sample["args"]), self._decoded(sample["kwargs"])
        else:
            args, kwargs = (_from_table(v) for v in (sample.args, sample.kwargs))
        return Call(name, self.path(name), tuple(args), kwargs)

    def _decoded(self, node: Any) -> Any:
        if node is None or isinstance(node, (bool, str)):
            return node
        (tag, value), *_ = node.items()
        match tag:
            case "t":
                return self._array(node)
            case "i":
                return int(value)
            case "f":
                return float.fromhex(value) if "0x" in value else float(value)
            case "c":
                return complex(float(value[0]), float(value[1]))
            case "dtype" | "memory_format" | "layout":
                return Named(value)
            case "device":
                return "cpu"
            case "slice":
                return slice(*[self._decoded(v) for v in value])
            case "ellipsis":
                return ...
            case "np":
                return self._file[value]
            case "tuple":
                return tuple(self._decoded(v) for v in value)
            case "list":
                return [self._decoded(v) for v in value]
            case _:
                return {self._decoded(k): self._decoded(v) for k, v in value}

    def _array(self, node: dict[str, Any]) -> Array:
        dtype = node["dtype"]
        values = np.array(self._file[node["t"]]).reshape(node["shape"])
        if dtype == "bfloat16":
            wide = np.atleast_1d(values).astype(np.uint32) << 16
            values = wide.view(np.float32).reshape(values.shape)
        return Array(values, dtype, bool(node.get("grad")))


def _from_table(value: Any) -> Any:
    """Return arguments of the table with arrays as tensors: float64 means any floating type."""
    if isinstance(value, np.ndarray):
        name = "float32" if value.dtype == np.float64 else str(value.dtype)
        return Array(value.astype(name), name)
    if isinstance(value, (list, tuple)):
        return type(value)(_from_table(v) for v in value)
    if isinstance(value, dict):
        return {k: _from_table(v) for k, v in value.items()}
    return value
