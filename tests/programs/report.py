"""What a program found, as numbers that two libraries can be compared by."""

import json
import sys

import torch

torch.set_num_threads(1)
_found = {}


def report(name, value):
    """Keep numbers under a name: a number, a list of numbers, or a tensor.

    Of a tensor with more than 16 elements: its sum, the sum of its magnitudes, and 14 elements
    spread over it.
    """
    if isinstance(value, torch.Tensor):
        flat = value.detach().to("cpu", torch.float64).reshape(-1)
        if flat.numel() > 16:
            step = flat.numel() // 14
            picked = flat[::step][:14].tolist()
            value = [flat.sum().item() / flat.numel(), flat.abs().mean().item(), *picked]
        else:
            value = flat.tolist()
    elif not isinstance(value, (list, tuple)):
        value = [value]
    assert name not in _found, f"{name} is reported twice"
    _found[name] = [float(v) for v in value]


def report_model(name, model):
    """Report every floating-point parameter and buffer of a module."""
    tensors = [t for t in model.state_dict().values() if t.is_floating_point()]
    report(f"{name}: mean magnitude of each weight", [t.abs().mean().item() for t in tensors])
    report(f"{name}: last weight", tensors[-1])


def finish():
    """Print what was reported, as the last line."""
    sys.stdout.flush()
    print("\n" + json.dumps(_found))
