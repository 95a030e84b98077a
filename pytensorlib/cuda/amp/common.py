"""Whether there is a device for `torch.cuda.amp`."""

from .._kind import GPU

__all__ = ["amp_definitely_not_available"]


def amp_definitely_not_available() -> bool:
    """Return whether there is no GPU that answers as "cuda".

    Returns
    -------
    bool
        The contrary of `torch.cuda.is_available`.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> torch.cuda.amp.amp_definitely_not_available() == (not torch.cuda.is_available())
    True
    """
    return not GPU.is_available()
