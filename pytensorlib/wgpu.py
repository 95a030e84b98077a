"""The GPU, reached through wgpu: Vulkan, Metal or DX12.

Tensors live there after ``x.to("wgpu")`` or ``device="wgpu"``, which is the first adapter, or the
one that `torch.accelerator.set_device_index` chose; others are ``"wgpu:1"`` and so on. Ops without
a GPU kernel run on the CPU, with one warning each; `fallbacks` counts them. The environment
variable ``PYTENSORLIB_WGPU_FALLBACK`` may say "error" or "silent" instead, as `set_fallback` does.
An adapter without 64-bit integers computes them as two words each; one without float64 (Metal,
most DX12) has float64 computed on the CPU, or refused. ``PYTENSORLIB_WGPU_WITHOUT`` tries a program
as on an adapter that lacks features: names with commas between them, or "webgpu", "metal", "dx12".
What can be used again, compiled kernels and the quickest
tiles of products (``PYTENSORLIB_TUNE``: "0", "1" or "full"), is kept in a folder of the user's
(``PYTENSORLIB_CACHE_DIR``; nothing is kept where that is empty). Products and convolutions of
float16 and bfloat16, also under `torch.autocast`, and of float32 in less than the highest precision
(`torch.set_float32_matmul_precision`), are made by cooperative matrices (tensor cores) where a
trial on the adapter is right and quicker (``PYTENSORLIB_WGPU_COOPERATIVE``: "0" never, "force"
wherever they can be): float16 as it is, bfloat16 as float16 scaled for each row and column, sums in
float32.

``PYTENSORLIB_GPU_AS`` ("cuda", "mps" or "xpu") lets GPUs answer as one of PyTorch's devices, as
`answer_as` does: programs that ask for that one get a GPU of any maker. Where it is "cuda",
``CUDA_VISIBLE_DEVICES`` hides them if it is empty or "-1", and otherwise chooses by number.
"""

from __future__ import annotations

import atexit
import os
from typing import Any

from . import _C, _alias
from ._gpu.random import get_rng_state, set_rng_state

atexit.register(_C._wgpu_close)

__all__ = [
    "answer_as",
    "check_against",
    "device_count",
    "elementwise",
    "empty_cache",
    "fallbacks",
    "from_buffer",
    "get_device_name",
    "get_device_properties",
    "get_rng_state",
    "is_available",
    "memory_allocated",
    "memory_stats",
    "memory_summary",
    "peaks",
    "set_fallback",
    "set_fallback_error",
    "set_memory_cap",
    "set_rng_state",
    "synchronize",
    "to_buffer",
]
_alias.adopt(globals(), ["get_rng_state", "set_rng_state"])


def _index(device: Any) -> int:
    """Return the number of the adapter that a device, its name, its number or None means."""
    if device is None:
        return _C._wgpu_current()
    if isinstance(device, int):
        if not 0 <= device < 256:
            raise RuntimeError(
                f"wgpu: invalid device ordinal: there is no wgpu:{device}, the number of GPUs is "
                f"{device_count()}"
            )
        return device
    device = _C.device(device)
    if not device._is_gpu:
        raise ValueError(f"Expected a wgpu device, but got: {device}")
    return _C._wgpu_current() if device.index is None else device.index


def answer_as(name: str) -> None:
    """Let GPUs be called what PyTorch calls one of its kinds of devices, from here on.

    ``device="cuda"`` is a GPU of any maker then, `torch.cuda` answers for it, and tensors there say
    so. Programs need no change where the environment variable ``PYTENSORLIB_GPU_AS`` says it, or
    ``python -m pytensorlib --gpu-as cuda script.py``. ``"wgpu"`` goes on working. Processes that
    are started from here do as this one.

    Parameters
    ----------
    name : str
        "cuda", "mps" or "xpu"; "wgpu" is what they are called at first.

    Raises
    ------
    ValueError
        It is none of these.
    RuntimeError
        A device was made that has another name.

    Examples
    --------
    >>> import subprocess, sys
    >>> code = "import pytensorlib as torch; torch.wgpu.answer_as('cuda')"
    >>> code += "; print(torch.device('wgpu', 0), torch.cuda.is_available() in (True, False))"
    >>> done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    >>> done.stdout.strip()
    'cuda:0 True'
    """
    _C._answer_as(name)
    os.environ["PYTENSORLIB_GPU_AS"] = name


def device_count() -> int:
    """Return the number of adapters.

    Returns
    -------
    int
        The last device is ``wgpu:n`` with n one less.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> torch.wgpu.device_count() >= torch.wgpu.is_available()
    True
    """
    return _C._wgpu_count()


def is_available() -> bool:
    """Return whether a GPU adapter is there.

    Returns
    -------
    bool
        False too where the driver does not start.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> device = "wgpu" if torch.wgpu.is_available() else "cpu"
    """
    return _C._wgpu_available()


def get_device_properties(device: Any = None) -> dict[str, Any]:
    """Return the adapter's name, backend, driver, features and limits.

    Parameters
    ----------
    device : device, str or int, optional
        The current one where it is left out.

    Returns
    -------
    dict
        By name: ``name``, ``backend``, ``driver``; ``software``, ``int64`` and ``float64``, which
        are bools; ``memory``, the bytes of its own memory, or None where the driver does not tell;
        ``cap``, the most that is taken of it, or None (see `set_memory_cap`; the driver refuses
        before its own budget is used up); ``features``, a list; ``limits``, a dict of numbers by
        their names in WebGPU; and ``cooperative_matrices``, the products of small matrices that
        subgroups compute together, as sizes m, n and k and the types of factors and sum.

    Raises
    ------
    RuntimeError
        There is no such adapter.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> if torch.wgpu.is_available():
    ...     properties = torch.wgpu.get_device_properties()
    """
    index = _index(device)
    return {**_C._wgpu_info(index), "cap": _C._wgpu_memory_stats(index)["cap"]}


def get_device_name(device: Any = None) -> str:
    """Return the adapter's name.

    Parameters
    ----------
    device : device, str or int, optional
        The current one where it is left out.

    Returns
    -------
    str
        As the driver tells it.

    Raises
    ------
    RuntimeError
        There is no such adapter.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> if torch.wgpu.is_available():
    ...     name = torch.wgpu.get_device_name()
    """
    return _C._wgpu_info(_index(device))["name"]


def synchronize(device: Any = None) -> None:
    """Wait until everything submitted to the GPU is done.

    Parameters
    ----------
    device : device, str or int, optional
        The current one where it is left out.

    Raises
    ------
    RuntimeError
        There is no such adapter.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> if torch.wgpu.is_available():
    ...     torch.wgpu.synchronize()
    """
    _C._wgpu_synchronize(_index(device))


def memory_stats(device: Any = None) -> dict[str, int]:
    """Return bytes allocated and reserved, now and at most, and counts of what was recorded.

    Parameters
    ----------
    device : device, str or int, optional
        The current one where it is left out.

    Returns
    -------
    dict
        By name: bytes ``allocated`` by live tensors and ``reserved`` from the driver, their peaks
        ``peak_allocated`` and ``peak_reserved``; how many buffers are ``live``, and how many
        pipelines are kept (``kept_pipelines``); and counts since the start: ``allocations``,
        ``dispatches``, ``submissions``, ``bind_groups``, ``pipelines`` and ``shader_bytes``, those
        of the texts that pipelines were compiled from, and ``waits`` of the host for the GPU.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> if torch.wgpu.is_available():
    ...     stats = torch.wgpu.memory_stats()
    """
    stats = _C._wgpu_memory_stats(_index(device))
    others = ("since", "cap", "peak_live", "retries", "refused")
    return {name: n for name, n in stats.items() if name not in others}


def memory_allocated(device: Any = None) -> int:
    """Return the bytes that live tensors hold.

    Parameters
    ----------
    device : device, str or int, optional
        The current one where it is left out.

    Returns
    -------
    int
        A part of what `memory_stats` tells.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> if torch.wgpu.is_available():
    ...     held = torch.wgpu.memory_allocated()
    """
    return memory_stats(device)["allocated"]


def empty_cache(device: Any = None) -> None:
    """Give unused memory back to the driver.

    Parameters
    ----------
    device : device, str or int, optional
        The current one where it is left out.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> if torch.wgpu.is_available():
    ...     torch.wgpu.empty_cache()
    """
    _C._wgpu_empty_cache(_index(device))


def set_memory_cap(size: int | None, device: Any = None) -> None:
    """Limit the bytes taken from the driver; None removes the limit.

    Parameters
    ----------
    size : int or None
        Bytes, one at least; beyond them `OutOfMemoryError` is raised.
    device : device, str or int, optional
        The current one where it is left out.

    Raises
    ------
    ValueError
        The size is no such number.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> if torch.wgpu.is_available():
    ...     torch.wgpu.set_memory_cap(2**30)
    ...     torch.wgpu.set_memory_cap(None)
    """
    whole = isinstance(size, int) and not isinstance(size, bool)
    if size is not None and not (whole and 0 < size < 2**64):
        raise ValueError(
            "wgpu.set_memory_cap: size must be None, or a whole number of bytes from 1 to "
            f"2**64 - 1, got {size!r}"
        )
    _C._wgpu_set_memory_cap(_index(device), size)


def fallbacks() -> dict[str, int]:
    """Return how often each op ran on the CPU for want of a GPU kernel.

    Returns
    -------
    dict
        Counts by name of the operator.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> counts = torch.wgpu.fallbacks()
    """
    return dict(_C._wgpu_fallbacks())


def set_fallback(how: str | None) -> None:
    """Say what happens to an op without a GPU kernel.

    Parameters
    ----------
    how : {"warn", "silent", "error"} or None
        It runs on the CPU, with a warning once for each operator or without one; or it raises
        NotImplementedError. None is what ``PYTENSORLIB_WGPU_FALLBACK`` says, by default "warn".

    Raises
    ------
    ValueError
        It is none of these.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> torch.wgpu.set_fallback("silent")
    >>> torch.wgpu.set_fallback(None)
    """
    if not _C._wgpu_set_fallback(how):
        raise ValueError(f'Expected how to be "warn", "silent", "error" or None, but got: {how!r}')


def set_fallback_error(on: bool) -> None:
    """Make an op without a GPU kernel raise NotImplementedError instead of running on the CPU.

    Parameters
    ----------
    on : bool
        True is ``set_fallback("error")``; False is ``set_fallback("warn")``.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> torch.wgpu.set_fallback_error(True)
    >>> torch.wgpu.set_fallback_error(False)
    """
    set_fallback("error" if on else "warn")


def memory_summary(device: Any = None, largest: int = 10) -> str:
    """Return a text that tells what memory is used for.

    Parameters
    ----------
    device : device, str or int, optional
        The current one where it is left out.
    largest : int, default 10
        So many tensors are named, of those with at least a MiB: their sizes, the operators that
        made them, where one did, and the modules at work then, by their classes. What kernels and
        compiled functions keep for themselves is called a workspace. All others that are alive are
        counted: those of a MiB and more, and smaller ones.

    Returns
    -------
    str
        For people to read.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> if torch.wgpu.is_available():
    ...     text = torch.wgpu.memory_summary()
    """
    from .autograd.profiler import operator_name

    index = _index(device)
    stats, mib = memory_stats(index), 1 << 20
    lines = [f"{get_device_name(index)} ({_C.device(_C._gpu_name(), index)})"]
    for name in ("allocated", "reserved"):
        now, most = stats[name] / mib, stats[f"peak_{name}"] / mib
        lines.append(f"  {name:9} {now:12.2f} MiB, at most {most:.2f} MiB")
    lines.append(
        f"  {stats['live']} live buffers, {stats['allocations']} allocations since the start"
    )
    named, (others, small) = _C._wgpu_living(index, largest)
    for size, tensor, node, modules in named:
        what = f"{tensor[0]} {tensor[1]}" if tensor else "workspace"
        by = f" of {operator_name(node).removeprefix('aten::')}" if node else ""
        where = f" in {modules}" if modules else ""
        lines.append(f"  {size / mib:12.2f} MiB: {what}{by}{where}")
    for (count, size), what in (
        (others, "others of 1 MiB and more"),
        (small, "smaller than 1 MiB"),
    ):
        if count:
            lines.append(f"  {size / mib:12.2f} MiB: {count} {what}")
    return "\n".join(lines) + "\n"


def peaks(device: Any = None) -> tuple[float, float] | None:
    """Return what the GPU can do at most, measured by two small kernels.

    They run once for each adapter and driver: what was measured is kept in a file.

    Parameters
    ----------
    device : device, str or int, optional
        The current one where it is left out.

    Returns
    -------
    tuple of float or None
        Bytes that a copy reads and writes in a second, and float32 operations in a second; None
        where the adapter has no timestamps.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> if torch.wgpu.is_available():
    ...     found = torch.wgpu.peaks()
    """
    import json
    from pathlib import Path

    index = _index(device)
    folder, name = _C._wgpu_kept(index)
    file = Path(folder) / f"{name}.peaks" if folder else None
    if file and file.is_file():
        try:
            first, second = json.loads(file.read_text())
            return float(first), float(second)
        except (OSError, ValueError, TypeError):
            pass  # Someone else's, or cut short.
    found = _C._wgpu_peaks(index)
    if file and found:
        try:
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(json.dumps(found))
        except OSError:
            pass  # It is measured again.
    return found


class check_against:
    """Computes what a block asks a GPU for on the CPU as well, and stops at what differs.

    Each operator of this thread, in forward and in backward, gets the same inputs on both; the
    first one whose results differ raises an AssertionError that names the operator, the types and
    shapes of its inputs and results, the largest difference, and the modules at work, by their
    classes; a note on it has the path from the outermost one. So do operators that a program
    defined (`torch.library.custom_op`) and their derivatives, where the CPU can compute them: they
    run once more, on copies. Random numbers, which are other ones on each device, are left out.

    Parameters
    ----------
    device : device or str
        "cpu".
    tolerance : float, optional
        How much an element may differ, in parts of itself and of the largest one, and a tenth of
        that in parts of the largest input, for what cancels. By default 2e-5 for float32, 2e-3 for
        float16, 1.6e-2 for bfloat16, 1e-10 for float64, and nothing for others.

    Attributes
    ----------
    compared : int
        How many calls were compared.

    Raises
    ------
    ValueError
        It is another device.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> with torch.wgpu.check_against("cpu") as check:
    ...     if torch.wgpu.is_available():
    ...         y = torch.ones(3, device="wgpu").exp()
    >>> check.compared == torch.wgpu.is_available()
    True
    """

    def __init__(self, device: Any = "cpu", tolerance: float | None = None) -> None:
        if _C.device(device).type != "cpu":
            raise ValueError(f'Expected the device to check against to be "cpu", but got: {device}')
        self._compare = _C._Compare(tolerance)

    @property
    def compared(self) -> int:
        """How many calls were compared."""
        return self._compare.compared

    def __enter__(self) -> check_against:
        self._compare.start()
        return self

    def __exit__(self, *exc: Any) -> None:
        self._compare.stop()


def elementwise(body: str, *inputs: Any) -> Any:
    """Compute each element of a result by WGSL of one's own.

    The text runs with wgpu's checks: no load or store leaves its buffer, and loops end. It has no
    derivative, and asking for one raises: `library.custom_op` gives it one, and what the CPU
    computes, as the second example does. It is recorded, profiled and cut where a tensor is larger
    than a binding, as any operator is; `check_against` has nothing to compare it with.

    Parameters
    ----------
    body : str
        A function ``fn op(a0: Acc, a1: Acc) -> Acc`` with a parameter for each input, and what it
        calls. ``Acc`` is f32 for float32 and half types, f64, i64, and i32 for narrower integers
        and bool. It may call the functions of ``shaders/math_*.wgsl``, such as ``m_exp``, which are
        the same on every GPU. Arrays, structures and matrices of an element take at most 1,024
        bytes together. Bindings, overrides, directives and entry points are made for it.
    *inputs : Tensor
        One to six on a GPU, which are broadcast and promoted to one type.

    Returns
    -------
    Tensor
        Of the shape and type that the inputs have together.

    Raises
    ------
    RuntimeError
        The text is no WGSL, declares what is made for it or larger variables, or an input is on
        the CPU.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> def swish(x, beta):
    ...     return torch.wgpu.elementwise(
    ...         "fn op(x: Acc, beta: Acc) -> Acc { return x * m_sigmoid(beta * x); }", x, beta)

    An operator with a derivative, on the CPU and on the GPU:

    >>> @torch.library.custom_op("mine::cube", mutates_args=())
    ... def cube(x: torch.Tensor) -> torch.Tensor:
    ...     if x.device.type == "wgpu":
    ...         return torch.wgpu.elementwise("fn op(x: Acc) -> Acc { return x * x * x; }", x)
    ...     return x * x * x
    >>> def backward(ctx, grad):
    ...     (x,) = ctx.saved_tensors
    ...     return 3 * x * x * grad
    >>> cube.register_autograd(
    ...     backward, setup_context=lambda ctx, inputs, output: ctx.save_for_backward(*inputs))
    >>> x = torch.tensor([2.0], requires_grad=True)
    >>> cube(x).backward()
    >>> x.grad
    tensor([12.])
    """
    if not 1 <= len(inputs) <= 6:
        raise RuntimeError(f"wgpu.elementwise: expected 1 to 6 tensors, but got {len(inputs)}")
    for x in inputs:
        if not isinstance(x, _C.Tensor) or not x._is_gpu:
            place = x.device if isinstance(x, _C.Tensor) else type(x).__name__
            raise RuntimeError(
                f"wgpu.elementwise: expected tensors on the GPU, but got {place}; move it with "
                '.to("wgpu")'
            )
    dtype = inputs[0].dtype
    for x in inputs[1:]:
        dtype = _C.promote_types(dtype, x.dtype)
    return _C._wgpu_elementwise(body, [x.to(dtype) for x in _C.broadcast_tensors(*inputs)])


def _asked(function: str, name: str, value: Any, has: str, what: str) -> None:
    if not hasattr(value, has):
        raise TypeError(
            f"wgpu.{function}: expected {name} to be {what}, but got {type(value).__name__}"
        )


def to_buffer(tensor: Any, device: Any, usage: int | None = None) -> Any:
    """Return a buffer of wgpu-py with the elements of a tensor.

    It is a copy through the host: that library and this one open the GPU each for itself.

    Parameters
    ----------
    tensor : Tensor
        On any device; its elements lie in row-major order in the buffer, which is padded with zeros
        to whole words.
    device : wgpu.GPUDevice
        Where the buffer is made.
    usage : int, optional
        What the buffer may be used for; by default to be read and written by shaders and copied.

    Returns
    -------
    wgpu.GPUBuffer
        New.

    Raises
    ------
    TypeError
        It is no tensor, or no device of wgpu-py.
    ValueError
        The tensor has no elements: no buffer is of 0 bytes.
    RuntimeError
        The tensor has no memory of its own: it is on ``meta``, or sparse.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> def doubled(x, device, run):
    ...     buffer = torch.wgpu.to_buffer(x, device)
    ...     run(buffer)
    ...     return torch.wgpu.from_buffer(buffer, device.queue, x.shape, x.dtype)
    """
    if usage is None:
        usage = 0x80 | 0x04 | 0x08  # STORAGE, COPY_SRC, COPY_DST
    if not isinstance(tensor, _C.Tensor):
        raise TypeError(f"wgpu.to_buffer: expected a tensor, but got {type(tensor).__name__}")
    _asked("to_buffer", "device", device, "create_buffer_with_data", "a GPUDevice of wgpu-py")
    if tensor.device.type == "meta":
        raise RuntimeError(
            f"wgpu.to_buffer: a tensor on meta has no data, got shape {list(tensor.shape)}; "
            'make one with memory by torch.empty_like(x, device="wgpu")'
        )
    if tensor.layout != _C.strided:
        raise RuntimeError(
            f"wgpu.to_buffer: expected a dense tensor, but got layout {tensor.layout}; convert it "
            "with to_dense(), or copy its indices() and values()"
        )
    if tensor.numel() == 0:
        raise ValueError(
            f"wgpu.to_buffer: a tensor of shape {list(tensor.shape)} has no elements, and no "
            "buffer is of 0 bytes; leave it out"
        )
    flat = tensor.detach().cpu().contiguous().reshape(-1)
    data = flat.view(_C.uint8).numpy().tobytes()
    return device.create_buffer_with_data(data=data + bytes(-len(data) % 4 or 0), usage=usage)


def from_buffer(buffer: Any, queue: Any, shape: Any, dtype: Any = None, device: Any = None) -> Any:
    """Return a tensor with the elements of a buffer of wgpu-py, copied through the host.

    Parameters
    ----------
    buffer : wgpu.GPUBuffer
        Made to be copied from.
    queue : wgpu.GPUQueue
        Of the buffer's device.
    shape : sequence of int, or int
        Of the tensor.
    dtype : dtype, optional
        What the buffer holds; by default the default dtype.
    device : device, optional
        Where the tensor lives; by default the current GPU.

    Returns
    -------
    Tensor
        New.

    Raises
    ------
    TypeError
        It is no buffer, or no queue of wgpu-py.
    ValueError
        The buffer is smaller than the tensor.
    RuntimeError
        The buffer was not made to be copied from.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> def moved(x, device):
    ...     return torch.wgpu.from_buffer(torch.wgpu.to_buffer(x, device), device.queue, x.shape)
    """
    _asked("from_buffer", "buffer", buffer, "map_async", "a GPUBuffer of wgpu-py")
    _asked("from_buffer", "queue", queue, "read_buffer", "a GPUQueue of wgpu-py")
    copied_from = 0x04
    if not buffer.usage & copied_from:
        raise RuntimeError(
            "wgpu.from_buffer: the buffer was not made to be copied from; make it with usage "
            "COPY_SRC too"
        )
    result = _C.empty((shape,) if isinstance(shape, int) else tuple(shape), dtype=dtype)
    size = result.numel() * result.element_size()
    if buffer.size < size:
        raise ValueError(
            f"a tensor of shape {list(shape)} and {result.dtype} has {size} bytes, and the buffer "
            f"{buffer.size}"
        )
    if size:
        data = bytes(queue.read_buffer(buffer, 0, size + -size % 4))
        flat = _C.frombuffer(bytearray(data[:size]), dtype=result.dtype)
        result.copy_(flat.reshape(result.shape))
    return result.to("wgpu" if device is None else device)
