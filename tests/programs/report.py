"""What a program found, as numbers that two libraries can be compared by."""

import json
import sys

import torch
from torch.nn.functional import scaled_dot_product_attention
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_map

torch.set_num_threads(1)
_found = {}
_generators = {}
# Operators that draw random numbers.
DRAWS = """
bernoulli bernoulli_ binomial cauchy_ draw_ exponential_ geometric_ log_normal_ multinomial
native_dropout normal normal_ poisson rand rand_like randint randint_like randn randn_like randperm
random_ rrelu_with_noise _sample_dirichlet sample_dirichlet _standard_gamma standard_gamma uniform_
""".split()


def _to_cpu(value):
    """Return a tensor, device or generator of the CPU for one of a GPU."""
    if isinstance(value, torch.Tensor):
        return value.cpu()
    if isinstance(value, torch.device):
        return torch.device("cpu")
    if isinstance(value, torch.Generator) and value.device.type == "cuda":
        if value not in _generators:
            _generators[value] = torch.Generator().manual_seed(value.initial_seed())
        return _generators[value]
    return value


def _drawn(func, args, kwargs, device):
    """Return what a function draws on the CPU, moved to a device or into its first argument."""
    # An operator that was asked for on the GPU draws from the GPU's generator wherever it runs.
    of_cpu, of_gpu = torch.default_generator, torch.cuda.default_generators[0]
    before = of_cpu.get_state()
    of_gpu.set_state(before)
    result = func(*tree_map(_to_cpu, args), **tree_map(_to_cpu, kwargs))
    if torch.equal(of_cpu.get_state(), before):
        of_cpu.set_state(of_gpu.get_state())
    if func.__name__.partition(".")[0].endswith("_"):
        return args[0].copy_(result)
    return tree_map(lambda v: v.to(device) if isinstance(v, torch.Tensor) else v, result)


class _Operators(TorchDispatchMode):
    """Draws on the CPU where an operator draws, in whatever function."""

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        found = [v.device if isinstance(v, torch.Tensor) else v for v in (*args, *kwargs.values())]
        found = [v for v in found if isinstance(v, torch.device) and v.type == "cuda"]
        if found and func.overloadpacket.__name__ in DRAWS:
            return _drawn(func, args, kwargs, found[0])
        return func(*args, **kwargs)


class _Functions(TorchFunctionMode):
    """Draws on the CPU where a function has a generator, or is attention with dropout."""

    def __torch_function__(self, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        generator = kwargs.get("generator")
        if generator is not None and generator.device.type == "cuda":
            return _drawn(func, args, kwargs, generator.device)
        if func is scaled_dot_product_attention and kwargs.get("dropout_p") and args[0].is_cuda:
            return _drawn(func, args, kwargs, args[0].device)
        return func(*args, **kwargs)


def draw_on_the_cpu():
    """From now on let random numbers for a GPU be the CPU's, with which others are compared."""
    if torch.cuda.is_available():
        _Operators().__enter__()
        _Functions().__enter__()


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
    """Print what was reported, as the last line; above it what was done on a GPU and beside it."""
    sys.stdout.flush()
    print()
    if torch.cuda.is_available():
        fallbacks = torch.wgpu.fallbacks() if hasattr(torch, "wgpu") else {}
        print(json.dumps({"bytes": torch.cuda.max_memory_allocated(), "fallbacks": fallbacks}))
    print(json.dumps(_found))
