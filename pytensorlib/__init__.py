"""PyTorch's API in one small wheel: a Rust core, CPU kernels, and any GPU through wgpu.

``import pytensorlib as torch`` is how scripts use it; ``python -m pytensorlib script.py`` runs a
script whose ``import torch`` means this package.
"""

from __future__ import annotations

import builtins as _builtins
import math as _math
import sys as _sys
from typing import TYPE_CHECKING
from typing import Any as _Any

from . import (
    _C,
    _absent,
    _alias,  # finds all that follows
    _deterministic,
)
from ._absent import removed as _removed
from ._C import *  # noqa: F403
from ._C import Tensor, dtype
from ._deterministic import *  # noqa: F403
from ._errors import *  # noqa: F403
from ._tensor import attach as _attach
from ._tensor import device as _device
from ._tensor import facts as _facts
from ._tensor.limits import *  # type: ignore[assignment]  # noqa: F403
from ._tensor.size import *  # type: ignore[assignment]  # noqa: F403
from ._tensor_str import *  # noqa: F403
from .torch_version import TorchVersion as _TorchVersion

_attach(_C.Tensor)
_device.attach(_C.device)
_facts.attach(_C.Tensor)
_removed.attach(_C.Tensor)
_absent.attach(_C.Tensor)

# The rest uses what stands above, and each other in this order.
# isort: off
from .autograd.grad_mode import (  # noqa: E402
    enable_grad as enable_grad,
    inference_mode as inference_mode,
    no_grad as no_grad,
    set_grad_enabled as set_grad_enabled,
)
from .functional import *  # type: ignore[no-redef]  # noqa: E402, F403
from ._tensor.spectral import istft as istft, stft as stft  # noqa: E402
from ._legacy import *  # noqa: E402, F403
from .random import (  # noqa: E402
    get_rng_state as get_rng_state,
    initial_seed as initial_seed,
    manual_seed as manual_seed,
    seed as seed,
    set_rng_state as set_rng_state,
    thread_safe_generator as thread_safe_generator,
)
from ._tensor.notebook import attach as _attach_to_notebooks  # noqa: E402
from ._tensor.untyped import attach as _attach_to_storages  # noqa: E402
from .storage import *  # noqa: E402, F403

from . import (  # noqa: E402
    autograd,
    _capi,
    linalg,
    nn,
    random,
    storage,
    wgpu,
)
from ._absent import modules as _modules  # noqa: E402
# isort: on

_modules.install()
_attach_to_storages()
_attach_to_notebooks(_C.Tensor, nn.Module)

if TYPE_CHECKING:
    from . import (
        amp,
        backends,
        cpu,
        cuda,
        distributions,
        fft,
        func,
        masked,
        optim,
        overrides,
        quasirandom,
        serialization,
        signal,
        special,
        testing,
        transforms,
        utils,
    )
    from ._capi import DisableTorchFunctionSubclass as DisableTorchFunctionSubclass
    from ._higher_order_ops.control import cond as cond
    from ._higher_order_ops.control import while_loop as while_loop
    from ._lowrank import lobpcg as lobpcg
    from ._lowrank import pca_lowrank as pca_lowrank
    from ._lowrank import svd_lowrank as svd_lowrank
    from ._tensor.rare import from_file as from_file
    from ._tensor.rare import hash_tensor as hash_tensor
    from ._tensor.rare import slice_inverse as slice_inverse
    from .amp import GradScaler as GradScaler
    from .amp import autocast as autocast
    from .func import vmap as vmap
    from .serialization import load as load
    from .serialization import save as save

# Loaded when first used: importing them would take a third of the time of `import pytensorlib`.
_LATER = {
    "_utils",
    "export",
    "amp",
    "cpu",
    "cuda",
    "optim",
    "serialization",
    "testing",
    "transforms",
    "utils",
    "sparse",
    "special",
    "fft",
    "signal",
    "backends",
    "overrides",
    "__config__",
    "__future__",
    "_dynamo",
    "accelerator",
    "ao",
    "compiler",
    "distributed",
    "func",
    "futures",
    "fx",
    "hub",
    "jit",
    "library",
    "masked",
    "mps",
    "mtia",
    "multiprocessing",
    "onnx",
    "profiler",
    "quantization",
    "quasirandom",
    "types",
    "xpu",
    "distributions",
}
# Names of those modules.
_HOMES = {
    "load": "serialization",
    "save": "serialization",
    "compile": "compiler",
    "graph": "_compile.graph",
    "vmap": "func",
    **dict.fromkeys(["cond", "while_loop"], "_higher_order_ops.control"),
    **dict.fromkeys(
        "from_file has_lapack has_mkl has_openmp has_spectral hash_tensor slice_inverse".split(),
        "_tensor.rare",
    ),
    "classes": "_classes",
    "ops": "_ops",
    "_assert": "_checks",
    "lobpcg": "_lowrank",
    "pca_lowrank": "_lowrank",
    "svd_lowrank": "_lowrank",
    "to_dlpack": "utils.dlpack",
    **dict.fromkeys(
        "sparse_bsc_tensor sparse_bsr_tensor sparse_compressed_tensor sparse_coo_tensor "
        "sparse_csc_tensor sparse_csr_tensor".split(),
        "sparse",
    ),
    "lu": "_tensor.facts",
    **dict.fromkeys(
        "SymBool SymFloat SymInt sym_float sym_int sym_ite sym_max sym_min sym_not sym_sqrt "
        "sym_sum".split(),
        "_symbolic",
    ),
    **dict.fromkeys(
        "get_device_module get_num_interop_threads init_num_threads is_anomaly_check_nan_enabled "
        "is_warn_always_enabled set_anomaly_enabled set_default_tensor_type set_flush_denormal "
        "set_num_interop_threads set_vital set_warn_always".split(),
        "_absent.settings",
    ),
    **dict.fromkeys(
        "detach_ get_device is_conj is_neg is_same_size is_signed view_as_complex_copy "
        "view_as_real_copy".split(),
        "_tensor.facts",
    ),
    "DisableTorchFunction": "_C",
    "Tag": "_C",
    "Event": "_gpu.streams",
    "Future": "futures",
    "PyTorchFileReader": "_C",
    "PyTorchFileWriter": "_C",
    "ScriptFunction": "jit",
    "ScriptModule": "jit",
    "Stream": "_gpu.streams",
    "DisableTorchFunctionSubclass": "_C",
    **dict.fromkeys(
        "_mkldnn bit bits16 bits1x8 bits2x4 bits4x2 bits8 float4_e2m1fn_x2 int1 int2 int3 int4 "
        "int5 int6 int7 jagged per_channel_affine per_channel_affine_float_qparams "
        "per_channel_symmetric per_tensor_affine per_tensor_symmetric qint32 qint8 qscheme "
        "quint2x4 quint4x2 quint8 uint1 "
        "uint2 uint3 uint4 uint5 uint6 uint7".split(),
        "_absent.types",
    ),
    **dict.fromkeys(
        "BFloat16Storage BoolStorage ByteStorage CharStorage ComplexDoubleStorage "
        "ComplexFloatStorage DoubleStorage FloatStorage HalfStorage IntStorage LongStorage "
        "QInt32Storage QInt8Storage QUInt2x4Storage QUInt4x2Storage QUInt8Storage ShortStorage "
        "_storage_classes".split(),
        "_legacy.storages",
    ),
    "_scaled_mm": "nn.functional._grouped",
    "GradScaler": "amp.grad_scaler",
    **dict.fromkeys(
        "autocast autocast_decrement_nesting autocast_increment_nesting clear_autocast_cache "
        "get_autocast_cpu_dtype get_autocast_dtype get_autocast_gpu_dtype is_autocast_available "
        "is_autocast_cache_enabled is_autocast_cpu_enabled is_autocast_enabled "
        "set_autocast_cache_enabled set_autocast_cpu_dtype set_autocast_cpu_enabled "
        "set_autocast_dtype set_autocast_enabled set_autocast_gpu_dtype".split(),
        "amp.autocast_mode",
    ),
    **dict.fromkeys(
        "_adaptive_avg_pool2d _adaptive_avg_pool3d _add_relu _add_relu_ _addmm_activation "
        "_aminmax _assert_async _assert_scalar _assert_tensor_metadata _cast_Byte _cast_Char "
        "_cast_Double _cast_Float _cast_Half _cast_Int _cast_Long _cast_Short "
        "_compute_linear_combination _conj _conj_copy _conj_physical "
        "_convolution _convolution_mode _debug_has_internal_overlap _dim_arange _disable_dynamo "
        "_efficientzerotensor _embedding_bag _embedding_bag_forward_only _euclidean_dist "
        "_fft_c2c _fft_c2r _fft_r2c _functional_assert_async _fused_rms_norm "
        "_grid_sampler_2d_cpu_fallback _grouped_mm _has_compatible_shallow_copy_type "
        "_index_put_impl_ _int_mm _is_functional_tensor _is_zerotensor _lazy_clone "
        "_linalg_det _linalg_eigh _linalg_slogdet _linalg_svd _log_softmax_backward_data "
        "_logcumsumexp _lu_with_info _make_dual _masked_scale _masked_softmax _neg_view "
        "_neg_view_copy _nnpack_available _pack_padded_sequence _pad_packed_sequence "
        "_pin_memory _prelu_kernel _print _reshape_from_tensor _safe_softmax "
        "_scaled_dot_product_attention_math _segment_reduce _shape_as_tensor "
        "_softmax_backward_data _stack _to_cpu _transform_bias_rescale_qkv _trilinear _unique "
        "_unique2 _unpack_dual _unsafe_index _unsafe_index_put _use_cudnn_ctc_loss "
        "_use_cudnn_rnn_flatten_weight _weight_norm _weight_norm_interface".split(),
        "_ops.private",
    ),
    **dict.fromkeys("eig lstsq matrix_rank solve symeig".split(), "_absent.removed"),
    **dict.fromkeys(
        "_coalesce _convert_indices_from_coo_to_csr _convert_indices_from_csr_to_coo "
        "_sparse_csr_prod _sparse_csr_sum _sparse_sparse_matmul _sparse_sum".split(),
        "sparse._inner",
    ),
    **dict.fromkeys(
        "_sparse_broadcast_to _validate_compressed_sparse_indices _validate_sparse_bsc_tensor_args "
        "_validate_sparse_bsr_tensor_args _validate_sparse_compressed_tensor_args "
        "_validate_sparse_coo_tensor_args _validate_sparse_csc_tensor_args "
        "_validate_sparse_csr_tensor_args".split(),
        "_C",
    ),
    "_dirichlet_grad": "_C",
    "StorageBase": "_C",
    "_is_all_true": "_C",
    "_is_any_true": "_C",
    "_sample_dirichlet": "_C",
    "_standard_gamma": "_C",
    "_standard_gamma_grad": "_C",
}


def _home_of(name: str) -> str | None:
    """Return the module that a name is found in when it is first asked for."""
    for start, home in (("_check", "_checks"), ("_foreach_", "_ops.foreach")):
        if name.startswith(start):
            return home
    return _HOMES.get(name)


if not TYPE_CHECKING:  # to checkers a wrong name is an error

    def __getattr__(name: str) -> _Any:
        from importlib import import_module

        if name == "torch":  # as PyTorch, which imports itself
            return _sys.modules[__name__]
        if name in _LATER:
            return import_module(f"{__name__}.{name}")
        if name == "Storage":  # another one once the default dtype changes
            name = storage.STORED[_C.get_default_dtype()]
        home = _home_of(name)
        if home is not None:
            found = globals()[name] = getattr(import_module(f"{__name__}.{home}"), name)
            if home.startswith("_") and isinstance(found, (type, type(_home_of))):
                found.__module__ = __name__
            return found
        return _alias.find_attribute(_sys.modules[__name__], name)


def __dir__() -> list[str]:
    return sorted({*globals(), *_LATER, *_HOMES})


# As attributes, not by `__getattr__`: with that, the interpreter looks every name of `_C` up anew.
_capi.attach()


_alias.adopt(globals(), _deterministic.__all__)
_alias.adopt(globals(), ["get_default_device", "is_tensor", "set_default_device"])
_alias.adopt(globals(), ["set_default_dtype"])
_alias.adopt(vars(random), ["manual_seed"])

# PyTorch's interface, and this package.
__version__ = _TorchVersion(f"2.13.0+pytensorlib.{_C.__version__}")

# Other names of element types.
float = _C.float32
double = _C.float64
half = _C.float16
int = _C.int32
long = _C.int64
short = _C.int16
chalf = _C.complex32
cfloat = _C.complex64
cdouble = _C.complex128

e = _math.e
inf = _math.inf
nan = _math.nan
pi = _math.pi
newaxis = None
legacy_contiguous_format = _C.contiguous_format


def is_storage(obj: _Any) -> _builtins.bool:
    """Return whether `obj` is a storage.

    Parameters
    ----------
    obj : object
        Anything.

    Returns
    -------
    bool
        True for typed and untyped storages.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> torch.is_storage(torch.zeros(1).untyped_storage())
    True
    """
    return isinstance(obj, (storage.TypedStorage, _C.UntypedStorage))


def is_floating_point(input: Tensor) -> _builtins.bool:
    """Return whether `input` has a floating-point element type.

    Parameters
    ----------
    input : Tensor
        Any.

    Returns
    -------
    bool
        False for complex types too.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> torch.is_floating_point(torch.zeros(1)), torch.is_floating_point(torch.zeros(1).int())
    (True, False)
    """
    return input.is_floating_point()


def is_complex(input: Tensor) -> _builtins.bool:
    """Return whether `input` has a complex element type.

    Parameters
    ----------
    input : Tensor
        Any.

    Returns
    -------
    bool
        True for complex32, complex64 and complex128.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> torch.is_complex(torch.tensor([1j]))
    True
    """
    return input.is_complex()


def is_nonzero(input: Tensor) -> _builtins.bool:
    """Return whether a tensor of one element is not zero.

    Parameters
    ----------
    input : Tensor
        Of one element.

    Returns
    -------
    bool
        Not a tensor.

    Raises
    ------
    RuntimeError
        There are more elements, or none.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> torch.is_nonzero(torch.tensor([0.5]))
    True
    """
    if input.numel() != 1:
        raise RuntimeError(
            "Boolean value of Tensor with no values is ambiguous"
            if input.numel() == 0
            else "Boolean value of Tensor with more than one value is ambiguous"
        )
    return _builtins.bool(input)


def numel(input: Tensor) -> _builtins.int:
    """Return the number of elements of `input`.

    Parameters
    ----------
    input : Tensor
        Any.

    Returns
    -------
    int
        The product of the sizes.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> torch.numel(torch.zeros(2, 3))
    6
    """
    return input.numel()


def is_inference(input: Tensor) -> _builtins.bool:
    """Return whether `input` was made in inference mode.

    Parameters
    ----------
    input : Tensor
        Any.

    Returns
    -------
    bool
        Such a tensor takes part in no graph.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> with torch.inference_mode():
    ...     x = torch.zeros(1)
    >>> torch.is_inference(x)
    True
    """
    return input.is_inference()


def is_anomaly_enabled() -> _builtins.bool:
    """Return whether anomaly mode is on.

    Returns
    -------
    bool
        See `autograd.set_detect_anomaly`.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> torch.is_anomaly_enabled()
    False
    """
    return _C._is_anomaly_enabled()


def typename(obj: _Any) -> str:
    """Return the type of `obj` as text, a tensor's with its element type.

    Parameters
    ----------
    obj : object
        Anything.

    Returns
    -------
    str
        The full name.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> torch.typename(torch.zeros(1)), torch.typename("a")
    ('torch.FloatTensor', 'str')
    """
    if isinstance(obj, Tensor):
        return obj.type()
    named = obj if hasattr(obj, "__name__") else type(obj)
    name = getattr(named, "__qualname__", None) or named.__name__
    module = getattr(obj if named is obj else type(obj), "__module__", None)
    return f"{module}.{name}" if module not in (None, "", "builtins") else name


def compiled_with_cxx11_abi() -> _builtins.bool:
    """Return whether a C++ ABI is in use: never.

    Returns
    -------
    bool
        False.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> torch.compiled_with_cxx11_abi()
    False
    """
    return False


def set_float32_matmul_precision(precision: str) -> None:
    """Allow float32 matrix products of lower precision: "highest", "high" or "medium".

    Processors with AMX then multiply numbers of 16 or 8 bits instead of 24. GPUs with cooperative
    matrices multiply numbers of 22 or 11 bits by float16 elements where a trial shows that this is
    quicker. Powers of two scale each row of the first operand and each column of the second, so
    that no element is off by more than 2^-22 (2^-11) of itself or 2^-38 of the largest beside it.
    So do GPUs in convolutions and their gradients. Everything else does as before.

    Parameters
    ----------
    precision : {"highest", "high", "medium"}
        "highest" at first.

    Raises
    ------
    RuntimeError
        If `precision` is none of these.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> torch.set_float32_matmul_precision("high")
    >>> torch.get_float32_matmul_precision()
    'high'
    >>> torch.set_float32_matmul_precision("highest")
    """
    global _precision
    terms = {"highest": 3, "high": 2, "medium": 1}
    if precision not in terms:
        raise RuntimeError(
            "set_float32_matmul_precision: precision must be highest, high or medium, "
            f"got {precision!r}"
        )
    _C._set_float32_matmul_terms(terms[precision])
    _precision = precision


def get_float32_matmul_precision() -> str:
    """Return what `set_float32_matmul_precision` set; kernels may always be more precise.

    Returns
    -------
    str
        "highest", "high" or "medium".

    Examples
    --------
    >>> import pytensorlib as torch
    >>> torch.get_float32_matmul_precision()
    'highest'
    """
    return _precision


_precision = "highest"
