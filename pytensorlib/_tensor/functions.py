"""Lets what is no operator ask ``__torch_function__`` first: functions and methods of Python's,
attributes, and functions of the extension.

Nobody pays before there is a class or a mode to ask. Then `install` gives each function a code that
asks, in place of its own, so that the objects by which programs know them stay the same.
"""

from __future__ import annotations

import functools
import inspect
import threading
from collections.abc import Callable, Iterator
from types import FunctionType
from typing import Any

from .. import _C

__all__ = ["install", "plain"]

# Python's protocols of classes, and what makes tensors of a class out of others.
_NEVER = set(
    """
    __class__ __copy__ __del__ __delattr__ __delitem__ __dict__ __doc__ __getattribute__
    __getstate__ __hash__ __init__ __init_subclass__ __iter__ __module__ __new__ __setattr__
    __sizeof__ __str__ __subclasshook__ __torch_dispatch__ __torch_function__ __weakref__
    _disabled_torch_function _make_subclass _make_wrapper_subclass as_subclass set_
    """.split()
)
# Attributes that are operators, and ask as such.
_OPERATORS = {"H", "T", "imag", "mH", "mT", "real"}
# Attributes with an underscore that PyTorch has, too.
_PRIVATE = set(
    """
    _backward_hooks _base _grad _grad_fn _indices _is_all_true _is_any_true _is_view _nnz
    _post_accumulate_grad_hooks _values _version
    """.split()
)
# Other names of one method: its first name is told.
_OTHERWISE = {"ndimension": "dim", "nelement": "numel", "_grad": "grad", "_grad_fn": "grad_fn"}
# Functions of the extension, and whether they make tensors of data: only modes are told of those.
_ROUTINES = dict.fromkeys(("as_tensor", "asarray", "frombuffer", "tensor"), True)
_ROUTINES |= dict.fromkeys(("can_cast", "promote_types", "result_type"), False)
# Functions that ask, though PyTorch does not list them.
_ASKING_ALL_THE_SAME = {"hardsigmoid", "hardswish"}
# Of these PyTorch tells all arguments by name.
_NAMED = ("constant_", "kaiming_uniform_", "normal_", "uniform_")

# Functions that ask elsewhere than where their names are public.
ELSEWHERE = {
    "torch._C._nn": ("_parse_to",),
    "torch.sparse": ("sparse_coo_tensor", "sparse_csr_tensor"),
    "torch.autograd": ("backward", "grad"),
    "torch.nn.init": ("constant_", "kaiming_uniform_", "normal_", "uniform_"),
}
# What ends in an underscore is another form of what is listed, but of the class.
IGNORED = {
    "torch": """
        eig lstsq matrix_rank solve symeig
        arange are_deterministic_algorithms_enabled as_strided as_tensor asarray
        autocast_decrement_nesting autocast_increment_nesting bartlett_window blackman_window
        broadcast_shapes can_cast clear_autocast_cache compile compiled_with_cxx11_abi cond empty
        empty_permuted empty_strided eye fill fork from_dlpack from_file from_numpy frombuffer
        full get_autocast_cpu_dtype get_autocast_dtype get_autocast_gpu_dtype get_default_device
        get_default_dtype get_deterministic_debug_mode get_device_module
        get_float32_matmul_precision get_num_interop_threads get_num_threads get_printoptions
        get_rng_state graph hamming_window hann_window init_num_threads initial_seed
        is_anomaly_check_nan_enabled is_anomaly_enabled is_autocast_available
        is_autocast_cache_enabled is_autocast_cpu_enabled is_autocast_enabled
        is_deterministic_algorithms_warn_only_enabled is_grad_enabled is_inference_mode_enabled
        is_storage is_tensor is_warn_always_enabled kaiser_window linspace load logspace
        manual_seed normal ones printoptions promote_types rand rand_like randint randint_like
        randn randn_like randperm range result_type save scalar_tensor seed set_anomaly_enabled
        set_autocast_cache_enabled set_autocast_cpu_dtype set_autocast_cpu_enabled
        set_autocast_dtype set_autocast_enabled set_autocast_gpu_dtype set_default_device
        set_default_dtype set_default_tensor_type set_deterministic_debug_mode
        set_float32_matmul_precision set_flush_denormal set_num_interop_threads set_num_threads
        set_printoptions set_rng_state set_vital set_warn_always sparse_bsc_tensor sparse_bsr_tensor
        sparse_compressed_tensor sparse_coo_tensor sparse_csc_tensor sparse_csr_tensor sym_int
        tensor thread_safe_generator to_dlpack tril_indices triu_indices typename
        use_deterministic_algorithms vander vmap wait while_loop zeros
    """,
    "torch.functional": "broadcast_shapes",
    "torch.nn.functional": """
        assert_int_or_pair grouped_mm hardsigmoid hardswish scaled_grouped_mm scaled_mm sigmoid
        tanh upsample upsample_bilinear upsample_nearest
    """,
    "torch.fft": "fftfreq rfftfreq",
    "torch.Tensor": """
        _is_all_true _is_any_true eig lstsq new new_empty new_empty_strided new_full new_ones
        new_tensor new_zeros reinforce solve stride symeig to_padded_tensor to_sparse_bsc
        to_sparse_bsr to_sparse_coo to_sparse_csc to_sparse_csr unflatten
    """,
}
# What is no function of Python's in PyTorch, but here.
BUILT_IN = {
    "torch._C._nn": frozenset(ELSEWHERE["torch._C._nn"]),
    "torch.sparse": frozenset(ELSEWHERE["torch.sparse"]),
    "torch": frozenset(
        """
        get_device hash_tensor histogramdd is_complex is_conj is_floating_point is_inference is_neg
        is_nonzero is_same_size is_signed numel slice_inverse view_as_complex_copy
        view_as_real_copy
        """.split()
    ),
    "torch.Tensor": frozenset(
        """
        apply_ const_data_ptr cuda get_device is_nonzero is_pinned is_same_size is_set_to map2_ map_
        new new_tensor numpy pin_memory record_stream resize_ resize_as_ type untyped_storage xpu
        """.split()
    ),
}


class _Skip(threading.local):
    """Whether the next function of Python's that a thread calls does not ask."""

    once = False


_skip = _Skip()
_lock = threading.Lock()
_installed = False


@functools.cache
def ignored_names() -> dict[str, frozenset[str]]:
    """Return the names in each place of functions that do not ask."""
    return {place: frozenset(text.split()) for place, text in IGNORED.items()}


def skipped() -> bool:
    """Return whether the function that asks for this is not to ask, this once."""
    if _skip.once:
        _skip.once = False
        return True
    return False


def without_asking(func: Any, args: Any, kwargs: Any) -> Any:
    """Call a function that does not ask; what it calls does, unless it is an operator."""
    if isinstance(func, FunctionType):
        _skip.once = True
        try:
            return func(*args, **kwargs)
        finally:
            _skip.once = False
    before = _C._rest_torch_function(2)
    try:
        return func(*args, **kwargs)
    finally:
        _C._rest_torch_function(before)


def _template(*args: Any, **kwargs: Any) -> Any:
    """Stand for a function; its constant is replaced by what asks for it."""
    return ("asking").__call__(args, kwargs)  # type: ignore[operator]


class _Asking:
    """What stands in for a function: it asks, and calls the function where nobody answers.

    Parameters
    ----------
    public : object
        What the function is told as.
    function : function
        The function, whose code is replaced.
    given : bool
        Whether arguments are told as they were given, as of functions that are no Python in
        PyTorch; else those with a default are told by name.
    """

    __slots__ = ("_given", "_plain", "_public", "_signature")

    def __init__(self, public: Any, function: Any, given: bool = False) -> None:
        self._public, self._given = public, given
        self._plain = FunctionType(
            function.__code__,
            function.__globals__,
            function.__name__,
            function.__defaults__,
            function.__closure__,
        )
        self._plain.__kwdefaults__ = function.__kwdefaults__
        self._signature = inspect.signature(function)
        code = function.__code__
        constants = _template.__code__.co_consts
        function.__signature__ = self._signature
        function.__code__ = _template.__code__.replace(
            co_consts=tuple(self if c == "asking" else c for c in constants),
            co_filename=code.co_filename,
            co_firstlineno=code.co_firstlineno,
            co_freevars=code.co_freevars,
            co_name=code.co_name,
            co_qualname=code.co_qualname,
        )

    def __call__(self, args: Any, kwargs: Any) -> Any:
        """Return an answer, or what the function gives."""
        if not skipped() and _C._asks(args, kwargs):
            told = (args, kwargs) if self._given else self._told(args, kwargs)
            if told is not None:
                answer = _C._answered_of(self._public, (*args, *kwargs.values()), *told)
                if answer is not NotImplemented:
                    return answer
        return self._plain(*args, **kwargs)

    def _told(self, args: Any, kwargs: Any) -> Any:
        """Return arguments as PyTorch tells them; None where they do not fit."""
        try:
            bound = self._signature.bind(*args, **kwargs)
        except TypeError:
            return None
        bound.apply_defaults()
        places: list[Any] = []
        named: dict[str, Any] = {}
        home = self._plain.__globals__["__name__"].rpartition(".")[2]
        all_named = home == "init" and self._plain.__name__ in _NAMED
        for name, value in bound.arguments.items():
            parameter = self._signature.parameters[name]
            if parameter.kind is parameter.VAR_POSITIONAL:
                places += value
            elif parameter.kind is parameter.VAR_KEYWORD:
                named |= value
            elif (
                parameter.default is parameter.empty
                and not all_named
                and (parameter.kind is not parameter.KEYWORD_ONLY)
            ):
                places.append(value)
            else:
                named[name] = value
        return tuple(places), named


def plain(function: Any) -> Any:
    """Return what a function does without asking the classes of its arguments."""
    for constant in getattr(getattr(function, "__code__", None), "co_consts", ()):
        if isinstance(constant, _Asking):
            return constant._plain
    return function


def _modules() -> Iterator[tuple[str, Any]]:
    """Yield the modules whose functions ask, each with the name of where they are public."""
    import pytensorlib as pt

    from .. import (
        _capi,
        _lowrank,
        _symbolic,
        autograd,
        fft,
        functional,
        linalg,
        nn,
        sparse,
        special,
    )
    from . import facts as _facts
    from . import rare as _rare

    for module in (pt, _facts, _lowrank, _rare, _symbolic):
        yield "torch", module
    yield "torch.functional", functional
    yield "torch.nn.functional", nn.functional
    for name, module in (("linalg", linalg), ("fft", fft), ("special", special)):
        yield f"torch.{name}", module
    yield "torch.nn.init", nn.init
    yield "torch.autograd", autograd
    yield "torch.sparse", sparse
    yield "torch._C._nn", _capi


def _functions() -> Iterator[tuple[str, str, Callable[..., Any]]]:
    """Yield the functions in modules that ask, each with its home."""
    seen = set()
    for home, module in _modules():
        silent = ignored_names().get(home, frozenset()) - _ASKING_ALL_THE_SAME
        chosen = ELSEWHERE.get(home)
        public = getattr(module, "__all__", None) if module.__name__.count("._") else None
        for name, value in list(vars(module).items()):
            if not isinstance(value, FunctionType) or id(value) in seen:
                continue
            if name[0] == "_" and name not in (chosen or ()):
                continue
            if public is not None and name not in public:
                continue
            if name in chosen if chosen is not None else name not in silent:
                seen.add(id(value))
                yield home, name, value


def _is_ours(function: Any) -> bool:
    """Return whether this is a Python function of the package, none that a program put there."""
    if not isinstance(function, FunctionType):
        return False
    return function.__globals__["__name__"].partition(".")[0] in ("pytensorlib", "torch")


def members(tensor: type) -> dict[str, Any]:
    """Return what the class of tensors and its base in the extension define."""
    return {**vars(tensor.__base__), **vars(tensor)}


def _ask_of_class(tensor: type) -> None:
    """Let the attributes and methods of tensors ask."""
    from . import facts as _facts

    of_extension = BUILT_IN["torch.Tensor"]
    swapped: set[int] = set()
    for name, value in list(vars(tensor).items()):
        if isinstance(value, _facts._Later):
            getattr(tensor, name)  # now it is there
    found = members(tensor)
    descriptors = (type(found["shape"]), type(found["dim"]))
    for name, value in found.items():
        private = name.startswith("_") and not name.startswith("__")
        if name in _NEVER or name in _OPERATORS or (private and name not in _PRIVATE):
            continue
        if isinstance(value, descriptors):
            _C._ask_first(value, found[_OTHERWISE.get(name, name)])
        elif isinstance(value, property):
            for how, function in (("get", value.fget), ("set", value.fset), ("delete", value.fdel)):
                if _is_ours(function) and id(function) not in swapped:
                    swapped.add(id(function))
                    _Asking(getattr(value, f"__{how}__"), function, given=True)
        elif _is_ours(value) and id(value) not in swapped:
            swapped.add(id(value))
            _Asking(value, value, given=name in of_extension)


def install() -> None:
    """Let everything ask, from the first call on."""
    global _installed
    if _installed:
        return
    with _lock:
        if _installed:
            return
        _installed = True
        for home, name, function in list(_functions()):
            _Asking(function, function, given=name in BUILT_IN.get(home, ()))
        _ask_of_class(_C.Tensor)
        for name, makes in _ROUTINES.items():
            routine = getattr(_C, name)
            _C._ask_first(routine, routine, makes)
