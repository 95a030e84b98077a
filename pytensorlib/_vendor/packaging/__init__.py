"""Versions, as the package of that name has them."""

from . import version
