"""Functions behind the layers: each adapts its arguments and calls one operator."""

from types import FunctionType as _Function

from ... import _alias
from . import (
    _activation,
    _attention,
    _dropout,
    _grouped,
    _loss,
    _margin,
    _norm,
    _pool,
    _unpool,
    _vision,
)
from ._activation import *
from ._activation import _get_softmax_dim as _get_softmax_dim
from ._attention import *
from ._attention import _canonical_mask as _canonical_mask
from ._attention import _in_projection_packed as _in_projection_packed
from ._attention import _mha_shape_check as _mha_shape_check
from ._attention import _none_or_dtype as _none_or_dtype
from ._dropout import *
from ._grouped import *
from ._grouped import ScalingType as ScalingType
from ._grouped import SwizzleType as SwizzleType
from ._loss import *
from ._margin import *
from ._norm import *
from ._norm import _verify_batch_size as _verify_batch_size
from ._norm import _verify_spatial_size as _verify_spatial_size
from ._pool import *
from ._unpool import *
from ._vision import *
from ._vision import _pad_sequence as _pad_sequence

__all__ = ["_canonical_mask"]
__all__ += _activation.__all__
__all__ += _attention.__all__
__all__ += _dropout.__all__
__all__ += _grouped.__all__
__all__ += _loss.__all__
__all__ += _margin.__all__
__all__ += _norm.__all__
__all__ += _pool.__all__
__all__ += _unpool.__all__
__all__ += _vision.__all__
_alias.adopt(globals(), [name for name in __all__ if type(globals()[name]) is _Function])
