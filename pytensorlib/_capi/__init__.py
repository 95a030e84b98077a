"""Names of PyTorch's C extension that libraries touch, which it gets as attributes."""

from __future__ import annotations

import enum
import sys
import weakref
from importlib import import_module
from typing import Any

from .. import _C
from .._absent.modules import fill, parts
from .._absent.table import EAGER
from .._errors import LinAlgError, OutOfMemoryError

__all__: list[str] = []

_IMPORTED = {*globals(), "_IMPORTED", "attach"}

fill(
    globals(),
    EAGER,
    "Graph Value Node ScriptFunction ScriptModule ScriptObject TracingState IRAttributeError "
    "_ExcludeDispatchKeyGuard "
    "_IncludeDispatchKeyGuard _jit_pass_inline _jit_pass_lint",
)
_TensorMeta = type(_C.Tensor)
# PyTorch's class of C below `Tensor`, which is one here.
TensorBase = _TensorBase = _C.Tensor
StorageBase = import_module(".._tensor.untyped", __name__).StorageBase
PyTorchFileReader, PyTorchFileWriter = (
    getattr(import_module(".._serialization.records", __name__), name)
    for name in ("PyTorchFileReader", "PyTorchFileWriter")
)


class Tag(enum.Enum):
    """What PyTorch's operators are marked by; `torch.library` takes marks and needs none.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> torch.Tag.pointwise.name
    'pointwise'
    """

    core = 0
    cudagraph_unsafe = 1
    data_dependent_output = 2
    dynamic_output_shape = 3
    flexible_layout = 4
    generated = 5
    inplace = 6
    inplace_view = 7
    maybe_aliasing_or_mutating = 8
    needs_contiguous_strides = 9
    needs_exact_strides = 10
    needs_fixed_stride_order = 11
    nondeterministic_bitwise = 12
    nondeterministic_seeded = 13
    out = 14
    out_variant = 15
    pointwise = 16
    pt2_compliant_tag = 17
    reduction = 18
    view_copy = 19


class DispatchKey(enum.IntEnum):
    """Layers of PyTorch's dispatcher; there is one way in here, which needs no keys.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> torch._C.DispatchKey.CPU.name
    'CPU'
    """

    Undefined = 0
    CPU = 1
    CUDA = 2
    XPU = 3
    MPS = 4
    Meta = 5
    PrivateUse1 = 6
    SparseCPU = 7
    QuantizedCPU = 8
    BackendSelect = 9
    Python = 10
    Functionalize = 11
    ADInplaceOrView = 12
    Autograd = 13
    AutogradCPU = 14
    AutogradCUDA = 15
    AutocastCPU = 16
    AutocastCUDA = 17
    AutocastXPU = 18
    AutocastMPS = 19
    CompositeImplicitAutograd = 20
    CompositeExplicitAutograd = 21


class DispatchKeySet(frozenset):
    """A set of keys, made of one or several.

    Parameters
    ----------
    *keys : DispatchKey
        What is in it.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> keys = torch._C.DispatchKeySet(torch._C.DispatchKey.CPU)
    >>> keys.has(torch._C.DispatchKey.CPU)
    True
    """

    def __new__(cls, *keys: Any) -> DispatchKeySet:
        """Return the set."""
        return super().__new__(cls, keys)

    def has(self, key: Any) -> bool:
        """Return whether a key is in it."""
        return key in self


def _log_api_usage_once(*args: Any) -> None:
    """Do nothing: usage is not recorded."""


def _parse_to(*args: Any, **kwargs: Any) -> tuple[Any, Any, bool, Any]:
    """Return device, dtype, non_blocking and memory format out of the arguments of `to`."""
    from ..nn._convert import _parse_to as parse

    return parse(args, kwargs)


def _get_tracing_state() -> None:
    """Return None: nothing is traced."""


def _get_default_device() -> str:
    """Return where new tensors are made, as text."""
    import pytensorlib as pt

    return str(pt.get_default_device())


def _get_accelerator(check: bool | None = None) -> Any:
    """Return the device of the GPU, or that of the CPU where there is none."""
    from .. import accelerator

    return accelerator.current_accelerator() or _C.device("cpu")


def _get_privateuse1_backend_name() -> str:
    """Return the name that a backend of the program's own would have."""
    return "privateuseone"


def _cuda_isInBadFork() -> bool:
    """Return False: there is no CUDA that a fork could harm."""
    return False


def _switch(*args: Any) -> bool:
    """Have no effect on how programs run, which is eagerly; return False, the old value."""
    return False


_jit_set_profiling_executor = _jit_set_profiling_mode = _jit_set_texpr_fuser_enabled = _switch
_jit_set_nvfuser_enabled = _jit_set_nvfuser_guard_mode = _switch
_jit_override_can_fuse_on_cpu = _jit_override_can_fuse_on_gpu = _switch
_jit_can_fuse_on_cpu = _jit_can_fuse_on_gpu = _switch
_has_mkl = _has_mps = _has_cuda = _has_xpu = _has_cudnn = _has_mkldnn = has_openmp = False
has_lapack = has_spectral = True  # factorisations and transforms of our own


def _get_cpu_capability() -> str:
    """Return the instruction set that kernels use."""
    from ..backends.cpu import get_cpu_capability

    return get_cpu_capability()


def _is_alias_of(data: Any, other: Any) -> bool:
    """Return whether two tensors have one storage."""
    return bool(data.untyped_storage().data_ptr() == other.untyped_storage().data_ptr())


def _cuda_clearCublasWorkspaces() -> None:  # noqa: N802
    """Do nothing: there are no workspaces of cuBLAS."""


def _set_print_stack_traces_on_fatal_signal(on: bool) -> None:
    """Do nothing: signals are Python's, which `faulthandler` prints the stack of."""


class _WeakTensorRef:
    """Knows a tensor without keeping it."""

    def __init__(self, tensor: Any) -> None:
        self._ref = weakref.ref(tensor)

    def expired(self) -> bool:
        """Return whether the tensor is gone."""
        return self._ref() is None


class _DisableTorchDispatch:
    """While it is on, no mode is asked by `__torch_dispatch__` on this thread."""

    def __enter__(self) -> None:
        self._before = _C._leave_dispatch_modes()

    def __exit__(self, *error: Any) -> None:
        _C._restore_dispatch_modes(self._before)


class DisableTorchFunction:
    """While it is on, no class and no mode answers for functions of tensors on this thread.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> class Named(torch.Tensor):
    ...     pass
    >>> with torch.DisableTorchFunction():
    ...     kind = type(torch.ones(1).as_subclass(Named) + 1)
    >>> kind is torch.Tensor
    True
    """

    __slots__ = ("_before",)
    _rest = 2

    def __enter__(self) -> None:
        """Turn them off."""
        self._before = _C._rest_torch_function(self._rest)
        if self._before > self._rest:
            _C._rest_torch_function(self._before)

    def __exit__(self, *error: Any) -> None:
        """Leave it as it was before."""
        _C._rest_torch_function(self._before)


class DisableTorchFunctionSubclass(DisableTorchFunction):
    """While it is on, no class answers for functions of tensors on this thread; modes do.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> class Named(torch.Tensor):
    ...     pass
    >>> with torch._C.DisableTorchFunctionSubclass():
    ...     kind = type(torch.ones(1).as_subclass(Named) + 1)
    >>> kind is torch.Tensor
    True
    """

    __slots__ = ()
    _rest = 1


class _EnableTorchFunction(DisableTorchFunction):
    """While it is on, classes and modes answer again."""

    __slots__ = ()
    _rest = 0

    def __enter__(self) -> None:
        """Turn them on."""
        self._before = _C._rest_torch_function(0)


def _resting() -> int:
    """Return who is not asked on this thread: nobody (0), classes (1), or also modes (2)."""
    rest = _C._rest_torch_function(2)
    _C._rest_torch_function(rest)
    return rest


def _is_torch_function_enabled() -> bool:
    """Return whether classes are asked on this thread."""
    return _resting() == 0


def _is_torch_function_all_disabled() -> bool:
    """Return whether neither classes nor modes are asked on this thread."""
    return _resting() == 2


def _is_torch_function_mode_enabled() -> bool:
    """Return whether a mode is on in this thread."""
    return _resting() != 2 and bool(_C._torch_function_modes())


def _len_torch_dispatch_stack() -> int:
    """Return how many modes of `__torch_dispatch__` are on in this thread."""
    return len(_C._dispatch_modes())


def _len_torch_function_stack() -> int:
    """Return how many modes are on in this thread."""
    return len(_C._torch_function_modes())


class _VariableFunctionsClass:
    """The functions of `torch` as attributes of one object."""

    def __getattr__(self, name: str) -> Any:
        import pytensorlib as pt

        found = None if name.startswith("__") else getattr(pt, name, None)
        if not callable(found) or isinstance(found, type):
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        return found


_VariableFunctions = _VariableFunctionsClass()


class _DisableFuncTorch:
    """For a block, do without transforms at work: no call here depends on one.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> with torch._C._DisableFuncTorch():
    ...     pass
    """

    __slots__ = ()

    def __enter__(self) -> None:
        """Enter."""

    def __exit__(self, *error: Any) -> None:
        """Leave."""


def _are_functorch_transforms_active() -> bool:
    """Return False: there is no stack of transforms."""
    return False


def _is_fwd_grad_enabled() -> bool:
    """Return whether tangents of duals are computed on this thread."""
    from ..autograd import forward_ad

    return forward_ad._is_fwd_grad_enabled()


def _set_fwd_grad_enabled(enabled: bool) -> None:
    """Say whether tangents of duals are computed on this thread."""
    from ..autograd import forward_ad

    forward_ad._set(enabled)


def _get_function_stack_at(level: int) -> Any:
    """Return a mode of this thread; the first one is asked last."""
    return _C._torch_function_modes()[level]


def _push_on_torch_function_stack(mode: Any) -> None:
    """Let a mode answer on this thread."""
    _C._push_torch_function_mode(mode)


def _pop_torch_function_stack() -> Any:
    """Take the mode away that is asked first, and return it."""
    return _C._pop_torch_function_mode()


def _switch_of(module: str, name: str) -> tuple[Any, Any]:
    """Return what asks for a switch of a backend, and what sets it."""

    def get() -> Any:
        import pytensorlib as pt

        return getattr(getattr(pt.backends, module), name)

    def put(value: Any) -> None:
        import pytensorlib as pt

        setattr(getattr(pt.backends, module), name, value)

    return get, put


_get_cudnn_enabled, _set_cudnn_enabled = _switch_of("cudnn", "enabled")
_get_cudnn_benchmark, _set_cudnn_benchmark = _switch_of("cudnn", "benchmark")
_get_cudnn_deterministic, _set_cudnn_deterministic = _switch_of("cudnn", "deterministic")
_get_cudnn_allow_tf32, _set_cudnn_allow_tf32 = _switch_of("cudnn", "allow_tf32")
_get_mkldnn_enabled, _set_mkldnn_enabled = _switch_of("mkldnn", "enabled")


def _set_math_sdp_allow_fp16_bf16_reduction(enabled: bool) -> None:
    """Keep what is said of sums of half types; attention sums in float32 in any case."""
    import pytensorlib as pt

    pt.backends.cuda.allow_fp16_bf16_reduction_math_sdp(enabled)


def _get_math_sdp_allow_fp16_bf16_reduction() -> bool:
    """Return what was said of sums of half types."""
    import pytensorlib as pt

    return pt.backends.cuda.fp16_bf16_reduction_math_sdp_allowed()


def attach() -> None:
    """Give the names above to the extension and to its `_nn`, and modules in it a place."""
    # `torch._C._functorch` is a file beside this one.
    _C.__path__ = list(__path__)
    for name in ("_nn", "_linalg", "_special", "_fft"):
        inner = getattr(_C, name)
        sys.modules[f"{_C.__name__}.{name}"] = inner
        if name != "_nn":  # PyTorch's names have a prefix: `special_entr`
            prefix = name[1:]
            for plain, value in list(vars(inner).items()):
                if not plain.startswith("__"):
                    setattr(inner, f"{prefix}_{plain}", value)
    functorch = import_module(f"{_C.__name__}._functorch")
    _C._debug_only_are_vmap_fallback_warnings_enabled = (
        functorch._are_vmap_fallback_warnings_enabled
    )
    _C._debug_only_display_vmap_fallback_warnings = functorch._set_vmap_fallback_warning_enabled
    _C._LinAlgError, _C._OutOfMemoryError = LinAlgError, OutOfMemoryError
    for place in ("_C", "_C._nn", "_C._fft", "_C._linalg"):
        target = globals() if place == "_C" else vars(getattr(_C, place[3:]))
        space: dict[str, Any] = {"__name__": f"{__name__.partition('.')[0]}.{place}"}
        for part in parts(place):
            fill(space, part.why, part.names)
        target.update({name: space[name] for name in space.keys() - target.keys()})
    for name in globals().keys() - _IMPORTED:
        for extension in (_C, _C._nn):
            if not hasattr(extension, name):
                setattr(extension, name, globals()[name])
