"""Types that compilers of programs for PyTorch read."""

from __future__ import annotations

from typing import Any, Dict, List, Optional, Tuple, Union  # noqa: UP035

__all__ = ["BroadcastingList1", "BroadcastingList2", "BroadcastingList3"]


class _BroadcastingList:
    """A list of some length, or one value for all of it: ``BroadcastingList2[int]``."""

    def __getitem__(self, kind: Any) -> Any:
        return Union[kind, List[kind]]  # noqa: UP006, UP007


BroadcastingList1 = BroadcastingList2 = BroadcastingList3 = _BroadcastingList()
_ALSO = (Dict, List, Optional, Tuple, Union)  # noqa: UP006
