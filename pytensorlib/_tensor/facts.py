"""Methods that report a tensor's device, type and layout, and those that visit each number."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .. import _C

__all__ = [
    "attach",
    "detach_",
    "get_device",
    "is_conj",
    "is_neg",
    "is_same_size",
    "is_signed",
    "lu",
    "view_as_complex_copy",
    "view_as_real_copy",
]

# Private functions that tensors have as methods.
PRIVATE = """
    _addmm_activation _conj _conj_physical _dimI _dimV _is_zerotensor _lazy_clone _neg_view
    _to_dense _to_sparse _to_sparse_bsc _to_sparse_bsr _to_sparse_csc _to_sparse_csr
"""
# Kinds of tensors that there are none of.
NEVER = "is_ipu is_maia is_mkldnn is_mtia is_nested is_vulkan is_xla"


def is_same_size(input: Any, other: Any) -> bool:
    """Return whether two tensors have one shape.

    Parameters
    ----------
    input, other : Tensor
        Any.

    Returns
    -------
    bool
        Whether all sizes are equal.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> torch.is_same_size(torch.ones(2, 3), torch.zeros(2, 3))
    True
    """
    return input.shape == other.shape


def is_conj(input: Any) -> bool:
    """Return whether a tensor waits to be conjugated: never, it is done at once.

    Parameters
    ----------
    input : Tensor
        Any.

    Returns
    -------
    bool
        False.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> torch.is_conj(torch.tensor([1j]).conj())
    False
    """
    return input.is_conj()


def is_neg(input: Any) -> bool:
    """Return whether a tensor waits to be negated: never, it is done at once.

    Parameters
    ----------
    input : Tensor
        Any.

    Returns
    -------
    bool
        False.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> torch.is_neg(torch.ones(1))
    False
    """
    return input.is_neg()


def is_signed(input: Any) -> bool:
    """Return whether the element type has negative numbers.

    Parameters
    ----------
    input : Tensor
        Any.

    Returns
    -------
    bool
        False for bool and unsigned integers.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> torch.is_signed(torch.ones(1)), torch.is_signed(torch.ones(1, dtype=torch.uint8))
    (True, False)
    """
    return input.is_signed()


def lu(A: Any, pivot: bool = True, get_infos: bool = False, out: Any = None) -> Any:
    """Factorise matrices as lower times upper triangular ones: the old form of `linalg.lu_factor`.

    Parameters
    ----------
    A : Tensor
        Matrices, of shape (..., m, n).
    pivot : bool, default True
        Exchange rows for stability.
    get_infos : bool, default False
        Tell of each matrix whether it is singular, instead of raising.
    out : tuple of Tensor, optional
        Where the results are written.

    Returns
    -------
    tuple of Tensor
        Both factors in one matrix, the exchanged rows, and with `get_infos` the infos.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> factors, pivots = torch.lu(torch.tensor([[1.0, 2.0], [4.0, 4.0]]))
    >>> factors, pivots
    (tensor([[4.0000, 4.0000],
            [0.2500, 1.0000]]), tensor([2, 2], dtype=torch.int32))
    """
    _C._warn_once(
        "torch.lu is deprecated in favor of torch.linalg.lu_factor / torch.linalg.lu_factor_ex and "
        "will be removed in a future PyTorch release."
    )
    factors, pivots, infos = _C._linalg.lu_factor_ex(A, pivot=pivot)
    if not get_infos and bool(infos.any()):
        raise RuntimeError("lu: a matrix is singular; get_infos=True tells which")
    found = (factors, pivots, infos) if get_infos else (factors, pivots)
    if out is None:
        return found
    for to, result in zip(out, found, strict=True):
        to.resize_(result.shape).copy_(result)
    return out


def detach_(input: Any) -> Any:
    """Take a tensor out of its graph, in place.

    Parameters
    ----------
    input : Tensor
        Not a view.

    Returns
    -------
    Tensor
        Itself, now a leaf.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> x = torch.ones(1, requires_grad=True) * 2
    >>> torch.detach_(x).requires_grad
    False
    """
    return input.detach_()


def _delivered(result: Any, out: Any) -> Any:
    return result.clone() if out is None else _C.alias_copy(result, out=out)


def view_as_real_copy(input: Any, *, out: Any = None) -> Any:
    """Return a complex tensor's real and imaginary parts as pairs in memory of their own.

    Parameters
    ----------
    input : Tensor
        Complex.
    out : Tensor, optional
        Where the result is written.

    Returns
    -------
    Tensor
        With one more dimension, of size 2.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> torch.view_as_real_copy(torch.tensor([1 + 2j]))
    tensor([[1., 2.]])
    """
    return _delivered(_C.view_as_real(input), out)


def view_as_complex_copy(input: Any, *, out: Any = None) -> Any:
    """Return pairs of real numbers as complex ones in memory of their own.

    Parameters
    ----------
    input : Tensor
        Real, with a last dimension of size 2.
    out : Tensor, optional
        Where the result is written.

    Returns
    -------
    Tensor
        With one dimension less.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> torch.view_as_complex_copy(torch.tensor([[1.0, 2.0]]))
    tensor([1.+2.j])
    """
    return _delivered(_C.view_as_complex(input), out)


def get_device(input: Any) -> int:
    """Return the number of a tensor's device among those of its kind.

    Parameters
    ----------
    input : Tensor
        Any.

    Returns
    -------
    int
        -1 on the CPU.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> torch.get_device(torch.ones(1))
    -1
    """
    device = input.device
    return -1 if device.type in ("cpu", "meta") else device.index or 0


def _replaced(name: str, self: Any, others: tuple[Any, ...], function: Any) -> Any:
    """Write what a function gives for each element, and those of other tensors, to a tensor."""
    for t in (self, *others):
        if t.requires_grad:
            raise RuntimeError(
                f"Can't call {name}() on Variable that requires grad. "
                f"Use var.detach().{name}() instead."
            )
    if self.device.type != "cpu":
        raise TypeError(f"{name} is only implemented on CPU tensors, got one on {self.device}")
    names = ("other",) if len(others) == 1 else ("x", "y")
    for t, argument in zip(others, names, strict=False):
        if t.device.type != "cpu" or t.dtype != self.dtype:
            raise TypeError(
                f"{name}: expected {self.type()} for '{argument}' (got {t.type()}): "
                "all are of one dtype and on the CPU"
            )
    lists = [t.expand(self.shape).reshape(-1).tolist() for t in (self, *others)]
    values = [function(*v) for v in zip(*lists, strict=True)]
    return self.copy_(_C.tensor(values, dtype=self.dtype).reshape(self.shape))


def _moved(self: Any, kind: str, device: Any, non_blocking: bool, memory_format: Any) -> Any:
    """Return a tensor on a device of a kind: the current one, or one by its number or name."""
    if device is None:
        device = kind
    elif not isinstance(device, int) and (named := _C.device(device)).type != kind:
        raise RuntimeError(f"Invalid device, must be {kind} device, but got: {named}")
    if memory_format is None:
        return self.to(device, non_blocking=non_blocking)
    return self.to(device, non_blocking=non_blocking, memory_format=memory_format)


class _Methods:
    """The methods; `self` is a tensor in all of them."""

    def to_sparse_coo(self: Any) -> Any:
        """Return the elements that are not zero as a sparse tensor; the same as `to_sparse()`.

        Returns
        -------
        Tensor
            Of layout `torch.sparse_coo`; a sparse tensor itself.

        Examples
        --------
        >>> import pytensorlib as torch
        >>> torch.eye(2).to_sparse_coo().values()
        tensor([1., 1.])
        """
        return self.to_sparse()

    def apply_(self: Any, callable: Callable[[Any], Any]) -> Any:
        """Replace each element by what a function gives for it.

        Parameters
        ----------
        callable : function
            From a number to a number.

        Returns
        -------
        Tensor
            Itself.

        Raises
        ------
        TypeError
            The tensor is not on the CPU.

        Examples
        --------
        >>> import pytensorlib as torch
        >>> torch.tensor([1.0, 2.0]).apply_(lambda x: x * x)
        tensor([1., 4.])
        """
        return _replaced("apply_", self, (), callable)

    def map_(self: Any, tensor: Any, callable: Callable[[Any, Any], Any]) -> Any:
        """Replace each element by what a function gives for it and that of another tensor.

        Parameters
        ----------
        tensor : Tensor
            Of a shape that broadcasts to this one's.
        callable : function
            From two numbers to a number.

        Returns
        -------
        Tensor
            Itself.

        Raises
        ------
        TypeError
            A tensor is not on the CPU, or they are of different dtypes.
        RuntimeError
            One requires grad.

        Examples
        --------
        >>> import pytensorlib as torch
        >>> torch.tensor([1.0, 2.0]).map_(torch.tensor(10.0), lambda a, b: a + b)
        tensor([11., 12.])
        """
        return _replaced("map_", self, (tensor,), callable)

    def map2_(self: Any, x: Any, y: Any, callable: Callable[[Any, Any, Any], Any]) -> Any:
        """Replace each element by what a function gives for it and those of two other tensors.

        Parameters
        ----------
        x, y : Tensor
            Of shapes that broadcast to this one's.
        callable : function
            From three numbers to a number.

        Returns
        -------
        Tensor
            Itself.

        Raises
        ------
        TypeError
            A tensor is not on the CPU, or they are of different dtypes.
        RuntimeError
            One requires grad.

        Examples
        --------
        >>> import pytensorlib as torch
        >>> one = torch.tensor([1.0])
        >>> torch.tensor([5.0]).map2_(one, one, lambda a, b, c: a + b + c)
        tensor([7.])
        """
        return _replaced("map2_", self, (x, y), callable)

    def const_data_ptr(self: Any) -> int:
        """Return the address of the first element, to read from.

        Returns
        -------
        int
            As `data_ptr`.

        Examples
        --------
        >>> import pytensorlib as torch
        >>> x = torch.ones(1)
        >>> x.const_data_ptr() == x.data_ptr()
        True
        """
        return self.data_ptr()

    def cuda(
        self: Any, device: Any = None, non_blocking: bool = False, memory_format: Any = None
    ) -> Any:
        """Return the tensor on a GPU that answers as "cuda" (`torch.wgpu.answer_as`).

        Parameters
        ----------
        device : device, str or int, optional
            Which one; the current one by default.
        non_blocking : bool, default False
            As of `to`.
        memory_format : memory_format, optional
            The order of the elements of a copy.

        Returns
        -------
        Tensor
            Itself where it is there already.

        Raises
        ------
        RuntimeError
            There is none, as where GPUs answer as "wgpu" only.

        Examples
        --------
        >>> import pytensorlib as torch
        >>> if torch.cuda.is_available():
        ...     x = torch.ones(1).cuda()
        """
        return _moved(self, "cuda", device, non_blocking, memory_format)

    def xpu(
        self: Any, device: Any = None, non_blocking: bool = False, memory_format: Any = None
    ) -> Any:
        """Return the tensor on a GPU that answers as "xpu" (`torch.wgpu.answer_as`).

        Parameters
        ----------
        device : device, str or int, optional
            Which one; the current one by default.
        non_blocking : bool, default False
            As of `to`.
        memory_format : memory_format, optional
            The order of the elements of a copy.

        Returns
        -------
        Tensor
            Itself where it is there already.

        Raises
        ------
        RuntimeError
            There is none, as where GPUs answer as "wgpu" only.

        Examples
        --------
        >>> import pytensorlib as torch
        >>> if torch.xpu.is_available():
        ...     x = torch.ones(1).xpu()
        """
        return _moved(self, "xpu", device, non_blocking, memory_format)

    def dim_order(self: Any) -> tuple[int, ...]:
        """Return the dimensions from the outermost in memory to the innermost.

        Returns
        -------
        tuple of int
            By stride, the largest first.

        Examples
        --------
        >>> import pytensorlib as torch
        >>> torch.ones(2, 3).dim_order(), torch.ones(2, 3).t().dim_order()
        ((0, 1), (1, 0))
        """
        return tuple(sorted(range(self.dim()), key=lambda i: -self.stride(i)))

    def get_device(self: Any) -> int:
        """Return the number of the device among those of its kind: -1 on the CPU.

        Returns
        -------
        int
            The index.

        Examples
        --------
        >>> import pytensorlib as torch
        >>> torch.ones(1).get_device()
        -1
        """
        return get_device(self)

    def is_nonzero(self: Any) -> bool:
        """Return whether a tensor of one element is not zero.

        Returns
        -------
        bool
            See `torch.is_nonzero`.

        Raises
        ------
        RuntimeError
            There are more elements, or none.

        Examples
        --------
        >>> import pytensorlib as torch
        >>> torch.ones(1).is_nonzero()
        True
        """
        import pytensorlib as pt

        return pt.is_nonzero(self)

    def is_same_size(self: Any, other: Any) -> bool:
        """Return whether another tensor has the same shape.

        Parameters
        ----------
        other : Tensor
            Any.

        Returns
        -------
        bool
            Whether all sizes are equal.

        Examples
        --------
        >>> import pytensorlib as torch
        >>> torch.ones(2).is_same_size(torch.zeros(3))
        False
        """
        return is_same_size(self, other)

    def is_set_to(self: Any, tensor: Any) -> bool:
        """Return whether another tensor is the same view of the same memory.

        Parameters
        ----------
        tensor : Tensor
            Any.

        Returns
        -------
        bool
            Whether memory, offset, sizes and strides are equal.

        Raises
        ------
        TypeError
            It is no tensor.

        Examples
        --------
        >>> import pytensorlib as torch
        >>> x = torch.ones(2)
        >>> x.is_set_to(x[:]), x.is_set_to(x[:1])
        (True, False)
        """
        if not isinstance(tensor, _C.Tensor):
            found = type(tensor).__name__
            raise TypeError(f"is_set_to(): argument 'tensor' must be Tensor, not {found}")
        mine, other = self.untyped_storage(), tensor.untyped_storage()
        return (
            mine == other  # addresses are one for all that have no elements
            and self.storage_offset() == tensor.storage_offset()
            and self.shape == tensor.shape
            and self.stride() == tensor.stride()
        )

    def is_pinned(self: Any, device: Any = None) -> bool:
        """Return whether the memory is pinned for a GPU to read: it never has to be.

        Parameters
        ----------
        device : device, optional
            Not used.

        Returns
        -------
        bool
            False.

        Examples
        --------
        >>> import pytensorlib as torch
        >>> torch.ones(1).is_pinned()
        False
        """
        return False

    def pin_memory(self: Any, device: Any = None) -> Any:
        """Return the tensor itself: copies to a GPU are as quick from any memory.

        Parameters
        ----------
        device : device, optional
            Not used.

        Returns
        -------
        Tensor
            Itself.

        Raises
        ------
        RuntimeError
            It is not on the CPU.

        Examples
        --------
        >>> import pytensorlib as torch
        >>> torch.ones(1).pin_memory()
        tensor([1.])
        """
        if self.device.type != "cpu":
            raise RuntimeError(f"cannot pin a tensor on {self.device}: only those on the CPU")
        return self

    def module_load(self: Any, other: Any, assign: bool = False) -> Any:
        """Return what a parameter becomes when a checkpoint is loaded into it.

        Parameters
        ----------
        other : Tensor
            From the checkpoint.
        assign : bool, default False
            Take `other` itself, instead of its values.

        Returns
        -------
        Tensor
            Without a graph.

        Examples
        --------
        >>> import pytensorlib as torch
        >>> torch.zeros(2).module_load(torch.ones(2))
        tensor([1., 1.])
        """
        return other.detach() if assign else self.copy_(other).detach()

    def lu(self: Any, pivot: bool = True, get_infos: bool = False) -> Any:
        """Factorise matrices; see `torch.lu`.

        Parameters
        ----------
        pivot : bool, default True
            Exchange rows for stability.
        get_infos : bool, default False
            Tell of each matrix whether it is singular.

        Returns
        -------
        tuple of Tensor
            Both factors in one matrix, the exchanged rows, and with `get_infos` the infos.

        Examples
        --------
        >>> import pytensorlib as torch
        >>> torch.eye(2).lu()[1]
        tensor([1, 2], dtype=torch.int32)
        """
        return lu(self, pivot, get_infos)

    def record_stream(self: Any, s: Any) -> None:
        """Do nothing: memory that a GPU still reads is not given away.

        Parameters
        ----------
        s : Stream
            Not used.

        Examples
        --------
        >>> import pytensorlib as torch
        >>> torch.ones(1).record_stream(None)
        """

    def storage_type(self: Any) -> Any:
        """Return the class of the tensor's typed storage.

        Returns
        -------
        type or None
            Such as `FloatStorage`; None where elements of that type came after such classes.

        Examples
        --------
        >>> import pytensorlib as torch
        >>> torch.ones(1).storage_type() is torch.FloatStorage
        True
        """
        import pytensorlib as pt

        from .._legacy.names import STORED

        name = STORED.get(self.dtype)
        return None if name is None else getattr(pt, name)


class _Later:
    """A method or attribute that is loaded when it is first asked for."""

    def __init__(self, name: str, home: str) -> None:
        self.name, self.home = name, home

    def __get__(self, obj: Any, owner: type) -> Any:
        from importlib import import_module

        found = getattr(import_module(self.home, __package__), self.name)
        setattr(_C.Tensor, self.name, found)
        return getattr(owner if obj is None else obj, self.name)


def attach(tensor_class: Any) -> None:
    """Give the methods above to the class of tensors."""
    for name in ("grad_dtype", "hash_tensor", "slice_inverse"):
        setattr(tensor_class, name, _Later(name, ".rare"))
    for name in PRIVATE.split():
        setattr(tensor_class, name, _Later(name, ".._ops.private"))
    for name, value in vars(_Methods).items():
        if callable(value):
            setattr(tensor_class, name, value)
    for kind in ("mps", "xpu"):

        def on(self: Any, kind: str = kind) -> bool:
            return self._on(kind)

        told = f'Whether it is on a GPU that answers as "{kind}".'
        setattr(tensor_class, f"is_{kind}", property(on, doc=told))
    for name in NEVER.split():

        def never(self: Any) -> bool:
            return False

        never.__name__ = name
        setattr(tensor_class, name, property(never, doc="False: there are none."))
