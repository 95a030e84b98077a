"""Logs for TensorBoard, written by the package ``tensorboardX``."""

from __future__ import annotations

from typing import Any

try:
    from tensorboardX import FileWriter, RecordWriter
    from tensorboardX import SummaryWriter as _Base
except ImportError:

    class _Base:  # type: ignore[no-redef]
        """A substitute for the writer where tensorboardX is missing: it raises."""

        def __init__(self, *args: Any, **kwargs: Any) -> None:
            raise ImportError(
                "torch.utils.tensorboard: logs are written by tensorboardX here: pip install "
                "tensorboardX"
            )

    FileWriter = RecordWriter = _Base

__all__ = ["FileWriter", "RecordWriter", "SummaryWriter"]


class SummaryWriter(_Base):
    """Writes numbers, histograms, images, text and more as TensorBoard reads them.

    Parameters
    ----------
    log_dir : path, optional
        By default a directory under ``runs``, with the time and the machine in its name.
    *args, **kwargs
        As of ``tensorboardX.SummaryWriter``.

    Raises
    ------
    ImportError
        The package is missing.
    """

    def add_graph(self, *args: Any, **kwargs: Any) -> None:
        """Raise: programs are not traced into graphs here.

        Raises
        ------
        NotImplementedError
            Always.
        """
        raise NotImplementedError(
            "SummaryWriter.add_graph: programs run eagerly here; there is no graph of the model. "
            "print(model) shows its layers."
        )
