"""Whether there is a device for `torch.cuda.amp`."""

__all__ = ["amp_definitely_not_available"]


def amp_definitely_not_available() -> bool:
    """Return True: there is no "cuda".

    Returns
    -------
    bool
        True.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> torch.cuda.amp.amp_definitely_not_available()
    True
    """
    return True
