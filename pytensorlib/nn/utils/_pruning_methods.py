"""Ways to choose which elements of a parameter become zero."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from numbers import Integral, Real
from typing import Any

import pytensorlib as pt

from ... import Tensor


class BasePruningMethod(ABC):
    """A way to choose what becomes zero; a hook applies its mask before each call.

    Subclasses define ``compute_mask`` and ``PRUNING_TYPE``.

    Examples
    --------
    >>> from pytensorlib.nn.utils import prune
    >>> class Even(prune.BasePruningMethod):
    ...     PRUNING_TYPE = "unstructured"
    ...     def compute_mask(self, t, default_mask):
    ...         mask = default_mask.clone()
    ...         mask.view(-1)[::2] = 0
    ...         return mask
    """

    PRUNING_TYPE: Any = None
    _tensor_name: str

    def __call__(self, module: Any, inputs: Any) -> None:
        """Set the tensor before a call."""
        setattr(module, self._tensor_name, self.apply_mask(module))

    @abstractmethod
    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        """Return the mask: 0 where `t` becomes zero.

        Parameters
        ----------
        t : Tensor
            What says how important an element is.
        default_mask : Tensor
            The mask so far.
        """

    def apply_mask(self, module: Any) -> Tensor:
        """Return the tensor of a module with the mask on it.

        Parameters
        ----------
        module : Module
            Has the original and the mask.
        """
        if getattr(self, "_tensor_name", None) is None:
            raise AssertionError(f"Module {module} has to be pruned")
        mask = getattr(module, f"{self._tensor_name}_mask")
        original = getattr(module, f"{self._tensor_name}_orig")
        return mask.to(dtype=original.dtype) * original

    @classmethod
    def apply(
        cls, module: Any, name: str, *args: Any, importance_scores: Any = None, **kwargs: Any
    ) -> Any:
        """Prune a tensor of a module, once more where it was.

        Parameters
        ----------
        module : Module
            Changed in place: ``<name>_orig`` is its parameter, ``<name>_mask`` its buffer.
        name : str
            The parameter.
        *args, **kwargs
            What the class is made with.
        importance_scores : Tensor, optional
            Says how important elements are, in the place of the parameter.
        """
        old = [
            (key, hook)
            for key, hook in module._forward_pre_hooks.items()
            if isinstance(hook, BasePruningMethod) and hook._tensor_name == name
        ]
        if len(old) > 1:
            raise AssertionError(f"Multiple pruning methods on {name}: use a PruningContainer")
        method: Any = cls(*args, **kwargs)
        method._tensor_name = name
        if old:
            (key, hook) = old[0]
            del module._forward_pre_hooks[key]
            container = PruningContainer(hook)
            if isinstance(hook, PruningContainer):
                container = hook
            container.add_pruning_method(method)
            method = container
        original = getattr(module, name)
        scores = original if importance_scores is None else importance_scores
        if scores.shape != original.shape:
            raise AssertionError(
                f"importance_scores should have the same shape as parameter {name} of {module}"
            )
        if not old:
            del module._parameters[name]
            module.register_parameter(f"{name}_orig", original)
            default = pt.ones_like(original)
        else:
            default = getattr(module, f"{name}_mask").detach().clone()
        try:
            with pt.no_grad():
                mask = method.compute_mask(scores, default_mask=default)
            module.register_buffer(f"{name}_mask", mask)
            setattr(module, name, method.apply_mask(module))
            module.register_forward_pre_hook(method)
        except Exception:
            if not old:
                del module._parameters[f"{name}_orig"]
                module.register_parameter(name, original)
            raise
        return method

    def prune(self, t: Tensor, default_mask: Any = None, importance_scores: Any = None) -> Tensor:
        """Return a tensor with zeros where this method wants them.

        Parameters
        ----------
        t : Tensor
            Any.
        default_mask : Tensor, optional
            A mask to begin with.
        importance_scores : Tensor, optional
            Says how important elements are, in the place of `t`.
        """
        scores = t if importance_scores is None else importance_scores
        if scores.shape != t.shape:
            raise AssertionError("importance_scores should have the same shape as tensor t")
        default = pt.ones_like(t) if default_mask is None else default_mask
        return t * self.compute_mask(scores, default_mask=default)

    def remove(self, module: Any) -> None:
        """Make the pruned tensor a parameter for good.

        Parameters
        ----------
        module : Module
            Changed in place.
        """
        name = self._tensor_name
        original = module._parameters[f"{name}_orig"]
        with pt.no_grad():
            original.data = self.apply_mask(module).detach()
        if hasattr(module, name):
            delattr(module, name)
        del module._parameters[f"{name}_orig"], module._buffers[f"{name}_mask"]
        setattr(module, name, original)


class PruningContainer(BasePruningMethod):
    """Several methods for one tensor, each of which chooses from what the ones before left.

    Parameters
    ----------
    *args : BasePruningMethod
        The methods.

    Examples
    --------
    >>> from pytensorlib.nn.utils import prune
    >>> len(prune.PruningContainer())
    0
    """

    def __init__(self, *args: Any) -> None:
        self._pruning_methods: tuple[Any, ...] = ()
        if len(args) == 1 and isinstance(args[0], BasePruningMethod):
            self._tensor_name = args[0]._tensor_name
        for method in args[0] if len(args) == 1 and isinstance(args[0], Iterable) else args:
            self.add_pruning_method(method)

    def add_pruning_method(self, method: Any) -> None:
        """Add a method.

        Parameters
        ----------
        method : BasePruningMethod
            For the same tensor.
        """
        if not isinstance(method, BasePruningMethod) and method is not None:
            raise TypeError(f"{type(method)} is not a BasePruningMethod subclass")
        if method is not None:
            known = getattr(self, "_tensor_name", method._tensor_name)
            if known != method._tensor_name:
                raise ValueError(
                    "Can only add pruning methods acting on the parameter named "
                    f"'{known}' to PruningContainer {self}. Found '{method._tensor_name}'"
                )
            self._tensor_name = known
        self._pruning_methods += (method,)

    def __len__(self) -> int:
        return len(self._pruning_methods)

    def __iter__(self) -> Any:
        return iter(self._pruning_methods)

    def __getitem__(self, idx: Any) -> Any:
        return self._pruning_methods[idx]

    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        """Return the mask with what the last method chooses from what is left.

        Parameters
        ----------
        t : Tensor
            What says how important an element is.
        default_mask : Tensor
            The mask so far.
        """
        method = self._pruning_methods[-1]
        mask = default_mask.to(dtype=t.dtype)
        if method.PRUNING_TYPE == "unstructured":
            part: Any = mask == 1
        elif method.PRUNING_TYPE == "structured":
            dim = method.dim % t.dim()
            others = [d for d in range(t.dim()) if d != dim]
            channels = mask.sum(dim=others) != 0
            part = (*[slice(None)] * dim, channels)
        elif method.PRUNING_TYPE == "global":
            part = (slice(None),) * t.dim()
        else:
            raise ValueError(f"Unrecognized PRUNING_TYPE {method.PRUNING_TYPE}")
        found = mask.clone()
        found[part] = method.compute_mask(t[part], default_mask=mask[part]).to(dtype=mask.dtype)
        return found


def _validate_pruning_amount_init(amount: Any) -> None:
    """Raise where an amount is neither a number of elements nor a part of them."""
    if not isinstance(amount, Real):
        raise TypeError(f"Invalid type for amount: {amount}. Must be int or float.")
    if float(amount) < 0 or (not isinstance(amount, Integral) and float(amount) > 1):
        raise ValueError(
            f"amount={amount} should either be a float in the range [0, 1] or a non-negative "
            "integer"
        )


def _validate_pruning_amount(amount: Any, tensor_size: int) -> None:
    """Raise where more elements are to become zero than there are."""
    if isinstance(amount, Integral) and int(amount) > tensor_size:
        raise ValueError(
            f"amount={amount} should be smaller than the number of parameters to "
            f"prune={tensor_size}"
        )


def _compute_nparams_toprune(amount: Any, tensor_size: int) -> int:
    """Return how many of the elements an amount means."""
    return int(amount) if isinstance(amount, Integral) else round(float(amount) * tensor_size)


def _amount(amount: Any, size: int) -> int:
    """Return how many of `size` an amount means, after checking it."""
    _validate_pruning_amount(amount, size)
    return _compute_nparams_toprune(amount, size)


class Identity(BasePruningMethod):
    """Prunes nothing, so that masks are there.

    Examples
    --------
    >>> from pytensorlib.nn.utils import prune
    >>> prune.Identity().PRUNING_TYPE
    'unstructured'
    """

    PRUNING_TYPE = "unstructured"

    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        """Return the mask as it was."""
        return default_mask


class RandomUnstructured(BasePruningMethod):
    """Chooses elements at random.

    Parameters
    ----------
    amount : int or float
        How many, or which part.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> from pytensorlib.nn.utils import prune
    >>> int(prune.RandomUnstructured(2).prune(torch.ones(5)).sum())
    3
    """

    PRUNING_TYPE = "unstructured"

    def __init__(self, amount: Any) -> None:
        _validate_pruning_amount_init(amount)
        self.amount = amount

    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        """Return the mask with more zeros."""
        n, mask = _amount(self.amount, t.nelement()), default_mask.clone()
        if n:
            chosen = pt.topk(pt.rand_like(t).view(-1), k=n)
            mask.view(-1)[chosen.indices] = 0
        return mask


class L1Unstructured(BasePruningMethod):
    """Chooses the elements nearest to zero.

    Parameters
    ----------
    amount : int or float
        How many, or which part.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> from pytensorlib.nn.utils import prune
    >>> prune.L1Unstructured(1).prune(torch.tensor([1.0, -0.5, 2.0]))
    tensor([1., -0., 2.])
    """

    PRUNING_TYPE = "unstructured"

    def __init__(self, amount: Any) -> None:
        _validate_pruning_amount_init(amount)
        self.amount = amount

    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        """Return the mask with more zeros."""
        n, mask = _amount(self.amount, t.nelement()), default_mask.clone()
        if n:
            chosen = pt.topk(t.abs().reshape(-1), k=n, largest=False)
            mask.view(-1)[chosen.indices] = 0
        return mask


def _whole(t: Tensor, dim: int, norms: Tensor, n: int) -> Tensor:
    """Return a mask that keeps all but the `n` slices of least norm."""
    kept = pt.topk(norms, k=t.shape[dim] - n).indices
    mask = pt.zeros_like(t)
    mask[(*[slice(None)] * dim, kept)] = 1
    return mask


class RandomStructured(BasePruningMethod):
    """Chooses slices along a dimension at random.

    Parameters
    ----------
    amount : int or float
        How many, or which part.
    dim : int, default -1
        The dimension.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> from pytensorlib.nn.utils import prune
    >>> int(prune.RandomStructured(1, dim=0).prune(torch.ones(3, 2)).sum())
    4
    """

    PRUNING_TYPE = "structured"

    def __init__(self, amount: Any, dim: int = -1) -> None:
        _validate_pruning_amount_init(amount)
        self.amount, self.dim = amount, dim

    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        """Return the mask with more zeros."""
        dim = _dim(t, self.dim)
        n = _amount(self.amount, t.shape[dim])
        if not n:
            return default_mask
        return _whole(t, dim, pt.rand(t.shape[dim]), n) * default_mask.to(dtype=t.dtype)


class LnStructured(BasePruningMethod):
    """Chooses the slices along a dimension of the least norm.

    Parameters
    ----------
    amount : int or float
        How many, or which part.
    n : int, float or str
        The norm, as of `torch.norm`.
    dim : int, default -1
        The dimension.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> from pytensorlib.nn.utils import prune
    >>> prune.LnStructured(1, n=2, dim=0).prune(torch.tensor([[1.0], [2.0]]))
    tensor([[0.],
            [2.]])
    """

    PRUNING_TYPE = "structured"

    def __init__(self, amount: Any, n: Any, dim: int = -1) -> None:
        _validate_pruning_amount_init(amount)
        self.amount, self.n, self.dim = amount, n, dim

    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        """Return the mask with more zeros."""
        dim = _dim(t, self.dim)
        n = _amount(self.amount, t.shape[dim])
        if not n:
            return default_mask
        return _whole(t, dim, _compute_norm(t, self.n, dim), n) * default_mask.to(dtype=t.dtype)


def _validate_structured_pruning(t: Tensor) -> None:
    """Raise where a tensor has no slices to choose from."""
    if t.dim() <= 1:
        raise ValueError(
            "Structured pruning can only be applied to multidimensional tensors. Found tensor of "
            f"shape {t.shape} with {t.dim()} dims"
        )


def _validate_pruning_dim(t: Tensor, dim: int) -> None:
    """Raise where a tensor has no such dimension."""
    if not -t.dim() <= dim < t.dim():
        raise IndexError(f"Invalid index {dim} for tensor of size {t.shape}")


def _dim(t: Tensor, dim: int) -> int:
    """Return a dimension of a tensor's slices, counted from the first, after checking it."""
    _validate_structured_pruning(t)
    _validate_pruning_dim(t, dim)
    return dim % t.dim()


def _compute_norm(t: Tensor, n: Any, dim: int) -> Tensor:
    """Return the norm of each slice of a tensor along a dimension."""
    others = [d for d in range(t.dim()) if d != dim % t.dim()]
    return pt.norm(t, p=n, dim=others)


class CustomFromMask(BasePruningMethod):
    """Takes a mask as it is.

    Parameters
    ----------
    mask : Tensor
        0 where the tensor becomes zero.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> from pytensorlib.nn.utils import prune
    >>> prune.CustomFromMask(torch.tensor([1, 0])).prune(torch.ones(2))
    tensor([1., 0.])
    """

    PRUNING_TYPE = "global"

    def __init__(self, mask: Tensor) -> None:
        self.mask = mask

    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        """Return the mask and the other, both on."""
        if default_mask.shape != self.mask.shape:
            raise AssertionError("the mask must have the shape of the tensor")
        return default_mask * self.mask.to(dtype=default_mask.dtype)
