"""Functions of tensors that programs seldom call."""

from __future__ import annotations

from typing import Any

from .. import _C

__all__ = ["from_file", "grad_dtype", "hash_tensor", "slice_inverse"]

# What a build of PyTorch may lack; factorizations and transforms are here, those libraries not.
has_lapack = has_spectral = True
has_mkl = has_openmp = False


def hash_tensor(
    input: Any, dim: Any = (), *, keepdim: bool = False, mode: int = 0, out: Any = None
) -> Any:
    """Return the exclusive or of the bits of all elements, as numbers of 64 bits.

    Parameters
    ----------
    input : Tensor
        Real; converted to float64 or int64 first.
    dim : int or tuple of int, default ()
        The dimensions that are reduced; all of them where there is none.
    keepdim : bool, default False
        Keep them, with one element each.
    mode : int, default 0
        Which hash; there is one.
    out : Tensor, optional
        uint64; where the result is written.

    Returns
    -------
    Tensor
        uint64; on the CPU where `input` is on a GPU, which has no such numbers.

    Raises
    ------
    NotImplementedError
        The numbers are complex.
    RuntimeError
        Another mode, or one dimension twice.
    IndexError
        There is no such dimension, or it has no elements.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> torch.hash_tensor(torch.tensor([[1, 2], [3, 3]]), 1)
    tensor([3, 0], dtype=torch.uint64)
    """
    if mode != 0:
        raise RuntimeError(f"hash_tensor: Unknown hash_tensor mode: {mode}; 0 is the only one")
    if input.dtype.is_complex:
        raise NotImplementedError(f"hash_tensor: the numbers must be real, got {input.dtype}")
    rank = max(input.dim(), 1)
    given = [dim] if isinstance(dim, int) else list(dim or ())
    for d in given:
        if not -rank <= d < rank:
            raise IndexError(
                f"hash_tensor: Dimension out of range (expected to be in range of [{-rank}, "
                f"{rank - 1}], but got {d})"
            )
        if [g % rank for g in given].count(d % rank) > 1:
            raise RuntimeError(f"dim {d} appears multiple times in the list of dims")
    if not (given or input.numel()):
        raise RuntimeError(
            "hash_tensor: Expected reduction dim to be specified for input.numel() == 0. Specify "
            "the reduction dim with the 'dim' argument."
        )
    dims = {d % rank for d in given if input.dim()} or set(range(input.dim()))
    for d in sorted(dims):
        if input.shape[d] == 0:
            raise IndexError(f"hash_tensor: Expected reduction dim {d} to have non-zero size.")
    kept = [d for d in range(input.dim()) if d not in dims]
    x = input.detach()
    if x.dtype.is_floating_point:
        x = x.to(_C.float64, copy=True).view(_C.int64)
    else:
        x = x.clone().view(_C.int64) if x.dtype == _C.uint64 else x.to(_C.int64, copy=True)
    x = (
        x.permute([*kept, *sorted(dims)]).reshape([*(x.shape[d] for d in kept), -1])
        if (x.numel())
        else x.new_zeros([*(x.shape[d] for d in kept), 1])
    )
    while x.shape[-1] > 1:
        # Halves; a column in the middle that is left over goes on as it is.
        half = x.shape[-1] // 2
        folded = x[..., :half] ^ x[..., half : 2 * half]
        x = folded if x.shape[-1] == 2 * half else _C.cat([folded, x[..., 2 * half :]], -1)
    x = x.reshape([1 if d in dims else n for d, n in enumerate(input.shape)])
    x = x if keepdim else x.reshape([input.shape[d] for d in kept])
    result = (x.cpu() if x._is_gpu else x).view(_C.uint64)
    if out is None:
        return result
    if out.dtype != _C.uint64:
        raise RuntimeError(
            f"hash_tensor: Expected result to be of dtype uint64, but got {out.dtype}"
        )
    return out.resize_(result.shape).copy_(result)


def slice_inverse(
    input: Any,
    src: Any,
    dim: int = 0,
    start: int | None = None,
    end: int | None = None,
    step: int = 1,
) -> Any:
    """Return the memory of `input` as the tensor `src`, of which it is a slice.

    Parameters
    ----------
    input : Tensor
        A slice of `src`, or a tensor over memory laid out as that of `src`.
    src : Tensor
        Its shape, strides and offset are those of the result.
    dim, start, end, step : int, optional
        Which slice it is; not needed.

    Returns
    -------
    Tensor
        A view.

    Raises
    ------
    RuntimeError
        The memory is too small for it.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> x = torch.arange(6)
    >>> torch.slice_inverse(x[2:4], x, 0, 2, 4)
    tensor([0, 1, 2, 3, 4, 5])
    """
    return input.as_strided(src.shape, src.stride(), src.storage_offset())


def from_file(
    filename: Any,
    shared: bool | None = None,
    size: int | None = 0,
    *,
    dtype: Any = None,
    layout: Any = None,
    device: Any = None,
    pin_memory: bool = False,
    requires_grad: bool = False,
) -> Any:
    """Return a tensor over the bytes of a file.

    Parameters
    ----------
    filename : path
        The file; where `shared`, it is made and grows as needed.
    shared : bool, optional
        Whether what is written to the tensor goes to the file.
    size : int, default 0
        How many elements.
    dtype : dtype, optional
        Of the elements; the default dtype if not given.
    layout : layout, optional
        Strided.
    device : device, optional
        The CPU.
    pin_memory : bool, default False
        Not used.
    requires_grad : bool, default False
        Whether the tensor requires grad.

    Returns
    -------
    Tensor
        With one dimension; the file is read as elements are used.

    Raises
    ------
    RuntimeError
        There is no such file, it is too short, or the device is another.

    Examples
    --------
    >>> import tempfile
    >>> import pytensorlib as torch
    >>> with tempfile.NamedTemporaryFile() as file:
    ...     _ = file.write(bytes([1, 2, 3]))
    ...     file.flush()
    ...     torch.from_file(file.name, size=3, dtype=torch.uint8)
    tensor([1, 2, 3], dtype=torch.uint8)
    """
    if device is not None and _C.device(device).type != "cpu":
        raise RuntimeError(f"from_file: the device must be the CPU, got {device}")
    dtype = _C.get_default_dtype() if dtype is None else dtype
    nbytes = (size or 0) * dtype.itemsize
    try:
        storage = _C.UntypedStorage.from_file(filename, bool(shared), nbytes)  # type: ignore[attr-defined]
    except OSError as error:
        raise RuntimeError(f"from_file: unable to open file <{filename}>: {error}") from error
    return _C.empty(0, dtype=dtype).set_(storage, 0, (size or 0,)).requires_grad_(requires_grad)


def _grad_dtype(self: Any) -> Any:
    """The dtype of the gradient: that of the tensor. It can be set to no other.

    Raises
    ------
    RuntimeError
        Of setting it, if that is no dtype, or the tensor is no leaf.
    NotImplementedError
        Of setting it to another one.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> torch.ones(2, requires_grad=True).grad_dtype
    torch.float32
    """
    return self.dtype


def _set_grad_dtype(self: Any, dtype: Any) -> None:
    if dtype is not None and not isinstance(dtype, _C.dtype):
        raise RuntimeError(
            f"grad_dtype must be a torch.dtype or None, but got {type(dtype).__name__}"
        )
    if self.grad_fn is not None:
        raise RuntimeError("grad_dtype can only be set on leaf tensors.")
    if dtype != self.dtype:
        raise NotImplementedError(
            f"grad_dtype: gradients have the dtype of their tensor, here {self.dtype}, got "
            f"{dtype}; a hook of register_post_accumulate_grad_hook can add them up in another"
        )


grad_dtype = property(_grad_dtype, _set_grad_dtype, doc=_grad_dtype.__doc__)
