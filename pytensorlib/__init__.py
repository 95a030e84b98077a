"""PyTorch's API in one small wheel."""
from ._C import *  # noqa
