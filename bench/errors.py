"""How far each row's result is from float64: ours and PyTorch's, on the same inputs.

`errors.py --site FOLDER --threads N < labels` reads a JSON list of rows and prints `{label: [ours,
PyTorch's]}`. Inputs are made by our library, seeded, and given to PyTorch as they are; PyTorch runs
the statement a second time with every floating-point input and module in float64. An error is the
largest difference over the largest magnitude of the results, or of the gradients where a statement
returns nothing.

A row has none where no floating-point tensor goes in or comes out, where its inputs are float64
already, and where what it runs was made for one library (a training step, a file).
"""

import argparse
import importlib
import json
import sys
from typing import Any

import models
from cases import CASES, Case

Names = dict[str, Any]
UNKNOWN = object()  # what cannot be given to the other library


def base(t: Any) -> Names:
    """Return the names that every statement sees."""
    functional = importlib.import_module(f"{t.__name__}.nn.functional")
    return {"t": t, "F": functional, "models": models}


def moved(x: Any, to: Any, wide: bool) -> Any:
    """Return a tensor as one of another library, in float64 if `wide`."""
    dtype = getattr(to, str(x.dtype).rpartition(".")[2])
    widened = x.detach().double() if x.is_floating_point() else x
    y = to.from_numpy(widened.numpy().copy()).to(dtype)  # NumPy has no bfloat16
    y = y.double() if wide and y.is_floating_point() else y
    if type(x).__name__ == "Parameter":
        y = to.nn.Parameter(y, x.requires_grad)
    y.requires_grad_(x.requires_grad)
    if x.is_leaf and x.grad is not None:
        y.grad = moved(x.grad, to, wide)
    return y


def carried(value: Any, expression: str, ours: Any, to: Any, wide: bool) -> Any:
    """Return a name's value for another library, or UNKNOWN."""
    if isinstance(value, ours.Tensor):
        return moved(value, to, wide)
    if isinstance(value, ours.nn.Module):
        module = eval(expression, base(to))
        module.load_state_dict({k: moved(v, to, False) for k, v in value.state_dict().items()})
        return module.double() if wide else module
    if isinstance(value, list) and all(isinstance(v, ours.Tensor) for v in value):
        return [moved(v, to, wide) for v in value]
    return value if value is None or isinstance(value, int | float | str) else UNKNOWN


def leaves(value: Any, t: Any) -> list[Any]:
    """Return the tensors that a name holds."""
    if isinstance(value, t.nn.Module):
        return list(value.parameters())
    found = value if isinstance(value, list | tuple) else [value]
    return [x for x in found if isinstance(x, t.Tensor)]


def results(code: Any, names: Names, t: Any) -> list[Any]:
    """Run a statement; return the floating-point tensors that it gives, or its gradients."""
    t.manual_seed(1)
    gives = eval(code, names)
    found = leaves(gives, t)
    if gives is None:
        held = [x for value in names.values() for x in leaves(value, t)]
        found = [x.grad for x in held if x.requires_grad and x.is_leaf and x.grad is not None]
    return [x.detach() if x.is_floating_point() else None for x in found]


def error(got: list[Any], wanted: list[Any], wide: Any) -> float | None:
    """Return the largest difference over the largest magnitude, or None without any of both."""
    pairs = [
        (a.double().numpy(), b.numpy())
        for a, b in zip(got, wanted, strict=True)
        if a is not None and b is not None and b.dtype == wide and b.numel()
    ]
    if not pairs:
        return None
    scale = max(float(abs(b).max()) for _, b in pairs)
    return max(float(abs(a - b).max()) for a, b in pairs) / (scale or 1.0)


def errors(case: Case, ours: Any, torch: Any) -> list[float] | None:
    """Return our error and PyTorch's, or None where the row has none."""
    try:
        code = compile(case.result or case.run, case.id, "eval")
    except SyntaxError:  # an assignment
        return None
    ours.manual_seed(0)
    names = base(ours)
    for name, expression in case.names.items():
        names[name] = eval(expression, names)
    seen = {name: names[name] for name in case.names if name in code.co_names}
    held = [x for value in seen.values() for x in leaves(value, ours) if x.is_floating_point()]
    if not held or any(x.dtype == ours.float64 for x in held):
        return None
    narrow, wide = (
        {k: carried(v, case.names[k], ours, torch, w) for k, v in seen.items()}
        for w in (False, True)
    )
    if any(v is UNKNOWN for v in narrow.values()):
        return None
    reference = results(code, base(torch) | wide, torch)
    sides = results(code, names, ours), results(code, base(torch) | narrow, torch)
    found = [error(side, reference, torch.float64) for side in sides]
    return None if None in found else found


def main() -> None:
    """Print the errors of the rows whose labels come in."""
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    ap.add_argument("--site", default="", help="a folder of packages to search last")
    ap.add_argument("--threads", type=int, default=2)
    a = ap.parse_args()
    sys.path += [a.site] if a.site else []
    ours, torch = (importlib.import_module(name) for name in ("pytensorlib", "torch"))
    for t in (ours, torch):
        t.set_num_threads(a.threads)
    wanted = set(json.load(sys.stdin))
    found = {}
    for case in CASES:
        if case.id in wanted and (pair := errors(case, ours, torch)):
            found[case.id] = [float(f"{e:.3g}") for e in pair]
    print(json.dumps(found))


if __name__ == "__main__":
    main()
