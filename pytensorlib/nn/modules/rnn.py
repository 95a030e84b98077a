"""Recurrent layers."""

from __future__ import annotations

import math
import numbers
import warnings
from typing import Any

import pytensorlib as pt

from ... import Tensor
from .. import init
from ..module import Module
from ..parameter import Parameter
from ..utils.rnn import PackedSequence

_GATES = {"LSTM": 4, "GRU": 3, "RNN_TANH": 1, "RNN_RELU": 1}
_OPS = {"LSTM": "lstm", "GRU": "gru", "RNN_TANH": "rnn_tanh", "RNN_RELU": "rnn_relu"}


def _casts() -> bool:
    """Tell whether `torch.autocast` brings inputs and weights to one type."""
    from ...amp.autocast_mode import _enabled

    return _enabled()


class RNNBase(Module):
    """What RNN, LSTM and GRU share: their weights and the handling of batches and packed
    sequences.

    Parameters
    ----------
    mode : {'RNN_TANH', 'RNN_RELU', 'LSTM', 'GRU'}
        Which kind it is.
    input_size, hidden_size : int
        Sizes of the last dimension of the input and of the state.
    num_layers : int, default 1
        Layers, each of which reads what the one below returns.
    bias : bool, default True
        Learn offsets.
    batch_first : bool, default False
        Inputs and outputs are (N, L, ...) instead of (L, N, ...).
    dropout : float, default 0.0
        Of the outputs of each layer but the last, in training.
    bidirectional : bool, default False
        Also read the sequence backwards; outputs double in width.
    proj_size : int, default 0
        LSTM only: project the hidden state to this width.
    device, dtype : optional
        Those of the parameters; dtype is a floating-point one, float32 by default.

    Raises
    ------
    ValueError
        `proj_size` without an LSTM or not less than `hidden_size`, or a size is wrong.

    Examples
    --------
    >>> from pytensorlib import nn
    >>> issubclass(nn.LSTM, nn.RNNBase)
    True
    """

    __constants__ = [
        "mode",
        "input_size",
        "hidden_size",
        "num_layers",
        "bias",
        "batch_first",
        "dropout",
        "bidirectional",
        "proj_size",
    ]

    def __init__(
        self,
        mode: str,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        bias: bool = True,
        batch_first: bool = False,
        dropout: float = 0.0,
        bidirectional: bool = False,
        proj_size: int = 0,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        self.mode = mode
        self.input_size = input_size
        self.hidden_size = hidden_size
        self.num_layers = num_layers
        self.bias = bias
        self.batch_first = batch_first
        self.dropout = float(dropout)
        self.bidirectional = bidirectional
        self.proj_size = proj_size
        self._check_options(dropout)
        directions = 2 if bidirectional else 1
        gates = _GATES[mode] * hidden_size
        state = proj_size if proj_size > 0 else hidden_size
        self._flat_weights_names: list[str] = []
        self._all_weights: list[list[str]] = []
        for layer in range(num_layers):
            width = input_size if layer == 0 else state * directions
            shapes = {"weight_ih": (gates, width), "weight_hh": (gates, state)}
            if bias:
                shapes.update(bias_ih=(gates,), bias_hh=(gates,))  # type: ignore[arg-type]
            if proj_size > 0:
                shapes["weight_hr"] = (proj_size, hidden_size)
            for suffix in ("", "_reverse")[:directions]:
                names = []
                for kind, shape in shapes.items():
                    name = f"{kind}_l{layer}{suffix}"
                    setattr(self, name, Parameter(pt.empty(shape, device=device, dtype=dtype)))
                    names.append(name)
                self._flat_weights_names += names
                self._all_weights.append(names)
        self.reset_parameters()

    def _check_options(self, dropout: Any) -> None:
        number = isinstance(dropout, numbers.Number) and not isinstance(dropout, bool)
        if not number or not 0 <= dropout <= 1:
            raise ValueError(
                "dropout should be a number in range [0, 1] representing the probability of an "
                f"element being zeroed, got {dropout}"
            )
        if dropout > 0 and self.num_layers == 1:
            warnings.warn(
                "dropout option adds dropout after all but last recurrent layer, so non-zero "
                f"dropout expects num_layers greater than 1, but got dropout={dropout} and "
                f"num_layers={self.num_layers}",
                stacklevel=4,
            )
        if not isinstance(self.hidden_size, int):
            kind = type(self.hidden_size).__name__
            raise TypeError(f"hidden_size should be of type int, got: {kind}")
        if self.hidden_size <= 0:
            raise ValueError("hidden_size must be greater than zero")
        if self.num_layers <= 0:
            raise ValueError("num_layers must be greater than zero")
        if self.proj_size < 0:
            raise ValueError(
                "proj_size should be a positive integer or zero to disable projections"
            )
        if self.proj_size >= self.hidden_size:
            raise ValueError("proj_size has to be smaller than hidden_size")
        if self.mode not in _GATES:
            raise ValueError("Unrecognized RNN mode: " + self.mode)

    @property
    def _flat_weights(self) -> list[Any]:
        return [getattr(self, name) for name in self._flat_weights_names]

    @property
    def all_weights(self) -> list[list[Parameter]]:
        """The parameters, one list per layer and direction."""
        return [[getattr(self, name) for name in names] for names in self._all_weights]

    def flatten_parameters(self) -> None:
        """Does nothing: the weights need no common block of memory here."""

    def reset_parameters(self) -> None:
        """Draw all weights from U(-1/sqrt(hidden_size), 1/sqrt(hidden_size))."""
        bound = 1.0 / math.sqrt(self.hidden_size) if self.hidden_size > 0 else 0
        for weight in self.parameters():
            init.uniform_(weight, -bound, bound)

    def __getstate__(self) -> dict[str, Any]:
        # PyTorch's pickles hold the list of weights, beside their names.
        names = self._flat_weights_names
        return super().__getstate__() | {"_flat_weights": [getattr(self, n, None) for n in names]}

    def __setstate__(self, state: dict[str, Any]) -> None:
        state.pop("_flat_weights", None)  # which is made of the names here
        state.pop("_flat_weight_refs", None)
        if "all_weights" in state:
            state["_all_weights"] = state.pop("all_weights")
        super().__setstate__(state)
        self.__dict__.setdefault("proj_size", 0)
        self._all_weights = [[n for n in names if n] for names in self._all_weights]
        self._flat_weights_names = [name for names in self._all_weights for name in names]

    def extra_repr(self) -> str:
        text = f"{self.input_size}, {self.hidden_size}"
        if self.proj_size != 0:
            text += f", proj_size={self.proj_size}"
        if self.num_layers != 1:
            text += f", num_layers={self.num_layers}"
        if self.bias is not True:
            text += f", bias={self.bias}"
        if self.batch_first is not False:
            text += f", batch_first={self.batch_first}"
        if self.dropout != 0:
            text += f", dropout={self.dropout}"
        if self.bidirectional is not False:
            text += f", bidirectional={self.bidirectional}"
        return text

    # Running

    def check_input(self, input: Tensor, batch_sizes: Tensor | None) -> None:
        """Raise unless the input has the right width and number of dimensions."""
        kind = self._flat_weights[0].dtype
        if input.dtype != kind and not _casts():
            raise ValueError(
                f"RNN input dtype ({input.dtype}) does not match weight dtype ({kind}). "
                f"Convert input: input.to({kind}), or convert model: model.to({input.dtype})"
            )
        wanted = 2 if batch_sizes is not None else 3
        if input.dim() != wanted:
            raise RuntimeError(f"input must have {wanted} dimensions, got {input.dim()}")
        if self.input_size != input.size(-1):
            raise RuntimeError(
                "input.size(-1) must be equal to input_size. "
                f"Expected {self.input_size}, got {input.size(-1)}"
            )

    def _state_size(self, batch: int, width: int) -> tuple[int, int, int]:
        return self.num_layers * (2 if self.bidirectional else 1), batch, width

    def check_hidden_size(
        self, hx: Tensor, expected: tuple, msg: str = "Expected hidden size {}, got {}"
    ) -> None:
        """Raise unless ``hx`` has the shape ``expected``."""
        if tuple(hx.shape) != tuple(expected):
            raise RuntimeError(msg.format(tuple(expected), list(hx.shape)))

    def permute_hidden(self, hx: Any, permutation: Tensor | None) -> Any:
        """``hx`` with its samples in another order."""
        if permutation is None:
            return hx
        if isinstance(hx, tuple):
            return tuple(h.index_select(1, permutation) for h in hx)
        return hx.index_select(1, permutation)

    def _unpack(self, input: Any) -> tuple[Any, Any, Any, Any, int, bool]:
        """Data, batch sizes, both orders of the samples, batch size, whether it is batched."""
        if isinstance(input, PackedSequence):
            data, sizes, order, back = input
            return data, sizes, order, back, int(sizes[0]), True
        if input.dim() not in (2, 3):
            raise ValueError(
                f"{type(self).__name__}: Expected input to be 2D or 3D, got {input.dim()}D instead"
            )
        batched = input.dim() == 3
        axis = 0 if self.batch_first else 1
        data = input if batched else input.unsqueeze(axis)
        return data, None, None, None, data.size(axis), batched

    def _call_op(self, data: Tensor, sizes: Any, hx: Any) -> Any:
        op = getattr(pt, _OPS[self.mode])
        common = (
            self._flat_weights,
            self.bias,
            self.num_layers,
            self.dropout,
            self.training,
            self.bidirectional,
        )
        if sizes is None:
            return op(data, hx, *common, self.batch_first)
        return op(data, sizes, hx, *common)

    def _pack(self, data: Tensor, input: Any, batched: bool) -> Any:
        if isinstance(input, PackedSequence):
            return PackedSequence(data, *input[1:])
        return data if batched else data.squeeze(0 if self.batch_first else 1)

    def forward(self, input: Any, hx: Tensor | None = None) -> Any:
        """The outputs of the last layer at every step, and the last state of every layer."""
        data, sizes, order, back, batch, batched = self._unpack(input)
        expected = self._state_size(batch, self.hidden_size)
        if hx is None:
            hx = pt.zeros(expected, dtype=data.dtype, device=data.device)
        else:
            if not isinstance(input, PackedSequence) and hx.dim() != (3 if batched else 2):
                kind = "batched 3-D" if batched else "unbatched 2-D"
                raise RuntimeError(
                    f"For {kind} input, hx should also be {3 if batched else 2}-D but got "
                    f"{hx.dim()}-D tensor"
                )
            hx = self.permute_hidden(hx if batched else hx.unsqueeze(1), order)
        self.check_input(data, sizes)
        self.check_hidden_size(hx, expected)
        output, hidden = self._call_op(data, sizes, hx)
        hidden = self.permute_hidden(hidden, back)
        return self._pack(output, input, batched), hidden if batched else hidden.squeeze(1)


class RNN(RNNBase):
    """``h' = tanh(W_ih x + b_ih + W_hh h + b_hh)`` over a sequence.

    Takes (L, N, input_size) or (L, input_size), or a `PackedSequence`, and a first state, zeros
    by default, (num_layers * directions, N, hidden_size). Returns the outputs of the last layer
    (L, N, directions * hidden_size) and the last state.

    Parameters
    ----------
    input_size, hidden_size : int
        Sizes of the last dimension of the input and of the state.
    num_layers : int, default 1
        Layers, each of which reads what the one below returns.
    nonlinearity : {'tanh', 'relu'}, default 'tanh'
        In place of tanh.
    bias : bool, default True
        Learn offsets.
    batch_first : bool, default False
        Inputs and outputs are (N, L, ...) instead of (L, N, ...).
    dropout : float, default 0.0
        Of the outputs of each layer but the last, in training.
    bidirectional : bool, default False
        Also read the sequence backwards; outputs double in width.
    device, dtype : optional
        Those of the parameters; dtype is a floating-point one, float32 by default.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> from pytensorlib import nn
    >>> outputs, last = nn.RNN(3, 4, num_layers=2)(torch.ones(5, 2, 3))
    >>> outputs.shape, last.shape
    (torch.Size([5, 2, 4]), torch.Size([2, 2, 4]))
    """

    nonlinearity: str

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        if "proj_size" in kwargs:
            raise ValueError("proj_size argument is only supported for LSTM, not RNN or GRU")
        if len(args) > 3:  # nonlinearity by position, after num_layers
            nonlinearity, args = args[3], args[:3] + args[4:]
        else:
            nonlinearity = kwargs.pop("nonlinearity", "tanh")
        if nonlinearity not in ("tanh", "relu"):
            raise ValueError(
                f"Unknown nonlinearity '{nonlinearity}'. Select from 'tanh' or 'relu'."
            )
        self.nonlinearity = nonlinearity
        super().__init__(f"RNN_{nonlinearity.upper()}", *args, **kwargs)


class GRU(RNNBase):
    """Gated recurrent units over a sequence.

    Takes (L, N, input_size) or (L, input_size), or a `PackedSequence`, and a first state, zeros
    by default, (num_layers * directions, N, hidden_size). Returns the outputs of the last layer
    (L, N, directions * hidden_size) and the last state.

    Parameters
    ----------
    input_size, hidden_size : int
        Sizes of the last dimension of the input and of the state.
    num_layers : int, default 1
        Layers, each of which reads what the one below returns.
    bias : bool, default True
        Learn offsets.
    batch_first : bool, default False
        Inputs and outputs are (N, L, ...) instead of (L, N, ...).
    dropout : float, default 0.0
        Of the outputs of each layer but the last, in training.
    bidirectional : bool, default False
        Also read the sequence backwards; outputs double in width.
    device, dtype : optional
        Those of the parameters; dtype is a floating-point one, float32 by default.

    References
    ----------
    Cho et al. 2014, arXiv:1406.1078.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> from pytensorlib import nn
    >>> outputs, last = nn.GRU(3, 4, batch_first=True)(torch.ones(2, 5, 3))
    >>> outputs.shape, last.shape
    (torch.Size([2, 5, 4]), torch.Size([1, 2, 4]))
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        if "proj_size" in kwargs:
            raise ValueError("proj_size argument is only supported for LSTM, not RNN or GRU")
        super().__init__("GRU", *args, **kwargs)


class LSTM(RNNBase):
    """Long short-term memory over a sequence.

    Takes (L, N, input_size) or (L, input_size), or a `PackedSequence`, and first states (h, c),
    zeros by default, (num_layers * directions, N, hidden_size). Returns the outputs of the last
    layer (L, N, directions * hidden_size) and the last (h, c).

    Parameters
    ----------
    input_size, hidden_size : int
        Sizes of the last dimension of the input and of the state.
    num_layers : int, default 1
        Layers, each of which reads what the one below returns.
    bias : bool, default True
        Learn offsets.
    batch_first : bool, default False
        Inputs and outputs are (N, L, ...) instead of (L, N, ...).
    dropout : float, default 0.0
        Of the outputs of each layer but the last, in training.
    bidirectional : bool, default False
        Also read the sequence backwards; outputs double in width.
    proj_size : int, default 0
        Project h to this width; less than `hidden_size`.
    device, dtype : optional
        Those of the parameters; dtype is a floating-point one, float32 by default.

    References
    ----------
    Hochreiter and Schmidhuber 1997, Long short-term memory, Neural Computation 9; Sak et al.
    2014, arXiv:1402.1128 (projections).

    Examples
    --------
    >>> import pytensorlib as torch
    >>> from pytensorlib import nn
    >>> outputs, (h, c) = nn.LSTM(3, 4, bidirectional=True)(torch.ones(5, 2, 3))
    >>> outputs.shape, h.shape, c.shape
    (torch.Size([5, 2, 8]), torch.Size([2, 2, 4]), torch.Size([2, 2, 4]))
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__("LSTM", *args, **kwargs)

    def forward(  # type: ignore[override]
        self, input: Any, hx: tuple[Tensor, Tensor] | None = None
    ) -> Any:
        """The outputs at every step, and the last (hidden, cell) of every layer."""
        data, sizes, order, back, batch, batched = self._unpack(input)
        width = self.proj_size if self.proj_size > 0 else self.hidden_size
        shapes = (self._state_size(batch, width), self._state_size(batch, self.hidden_size))
        state: Any
        if hx is None:
            state = tuple(pt.zeros(s, dtype=data.dtype, device=data.device) for s in shapes)
        else:
            wanted = 3 if batched else 2
            if not isinstance(input, PackedSequence) and any(h.dim() != wanted for h in hx):
                kind = "batched 3-D" if batched else "unbatched 2-D"
                raise RuntimeError(
                    f"For {kind} input, hx and cx should also be {wanted}-D but got "
                    f"({hx[0].dim()}-D, {hx[1].dim()}-D) tensors"
                )
            state = tuple(h if batched else h.unsqueeze(1) for h in hx)
            state = self.permute_hidden(state, order)
        self.check_input(data, sizes)
        self.check_hidden_size(state[0], shapes[0], "Expected hidden[0] size {}, got {}")
        self.check_hidden_size(state[1], shapes[1], "Expected hidden[1] size {}, got {}")
        output, *state = self._call_op(data, sizes, state)
        state = self.permute_hidden(tuple(state), back)
        if not batched:
            state = tuple(h.squeeze(1) for h in state)
        return self._pack(output, input, batched), state


class RNNCellBase(Module):
    """What RNNCell, LSTMCell and GRUCell share: their weights.

    Parameters
    ----------
    input_size, hidden_size : int
        Sizes of the last dimension of the input and of the state.
    bias : bool
        Learn offsets.
    num_chunks : int
        How many matrices are stacked in each weight.
    device, dtype : optional
        Those of the parameters; dtype is a floating-point one, float32 by default.

    Examples
    --------
    >>> from pytensorlib import nn
    >>> nn.RNNCellBase(3, 4, bias=True, num_chunks=2).weight_ih.shape
    torch.Size([8, 3])
    """

    __constants__ = ["input_size", "hidden_size", "bias"]
    bias_ih: Any
    bias_hh: Any

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        bias: bool,
        num_chunks: int,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        made = {"device": device, "dtype": dtype}
        rows = num_chunks * hidden_size
        self.input_size = input_size
        self.hidden_size = hidden_size
        self.bias = bias
        self.weight_ih = Parameter(pt.empty((rows, input_size), **made))
        self.weight_hh = Parameter(pt.empty((rows, hidden_size), **made))
        if bias:
            self.bias_ih = Parameter(pt.empty(rows, **made))
            self.bias_hh = Parameter(pt.empty(rows, **made))
        else:
            self.register_parameter("bias_ih", None)
            self.register_parameter("bias_hh", None)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw all weights from U(-1/sqrt(hidden_size), 1/sqrt(hidden_size))."""
        bound = 1.0 / math.sqrt(self.hidden_size) if self.hidden_size > 0 else 0
        for weight in self.parameters():
            init.uniform_(weight, -bound, bound)

    def extra_repr(self) -> str:
        text = f"{self.input_size}, {self.hidden_size}"
        if self.bias is not True:
            text += f", bias={self.bias}"
        return text

    def _check(self, what: str, tensor: Tensor) -> None:
        if tensor.dim() not in (1, 2):
            raise ValueError(
                f"{type(self).__name__}: Expected {what} to be 1D or 2D, "
                f"got {tensor.dim()}D instead"
            )

    def _step(self, op: Any, input: Tensor, hx: Tensor | None) -> Tensor:
        self._check("input", input)
        if hx is not None:
            self._check("hidden", hx)
        batched = input.dim() == 2
        x = input if batched else input.unsqueeze(0)
        if hx is None:
            hx = pt.zeros((x.size(0), self.hidden_size), dtype=x.dtype, device=x.device)
        elif not batched:
            hx = hx.unsqueeze(0)
        y = op(x, hx, self.weight_ih, self.weight_hh, self.bias_ih, self.bias_hh)
        return y if batched else y.squeeze(0)


class RNNCell(RNNCellBase):
    """One step of an `RNN`: (N, input_size) and a state (N, hidden_size) to the next state.

    Parameters
    ----------
    input_size, hidden_size : int
        Sizes of the last dimension of the input and of the state.
    bias : bool, default True
        Learn offsets.
    nonlinearity : {'tanh', 'relu'}, default 'tanh'
        Of the new state.
    device, dtype : optional
        Those of the parameters; dtype is a floating-point one, float32 by default.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> from pytensorlib import nn
    >>> nn.RNNCell(3, 4)(torch.ones(2, 3)).shape
    torch.Size([2, 4])
    """

    __constants__ = ["input_size", "hidden_size", "bias", "nonlinearity"]

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        bias: bool = True,
        nonlinearity: str = "tanh",
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__(input_size, hidden_size, bias, 1, device, dtype)
        self.nonlinearity = nonlinearity

    def forward(self, input: Tensor, hx: Tensor | None = None) -> Tensor:
        if self.nonlinearity not in ("tanh", "relu"):
            raise RuntimeError(f"Unknown nonlinearity: {self.nonlinearity}")
        op = pt.rnn_tanh_cell if self.nonlinearity == "tanh" else pt.rnn_relu_cell
        return self._step(op, input, hx)

    def extra_repr(self) -> str:
        text = super().extra_repr()
        if self.nonlinearity != "tanh":
            text += f", nonlinearity={self.nonlinearity}"
        return text


class GRUCell(RNNCellBase):
    """One step of a `GRU`: (N, input_size) and a state (N, hidden_size) to the next state.

    Parameters
    ----------
    input_size, hidden_size : int
        Sizes of the last dimension of the input and of the state.
    bias : bool, default True
        Learn offsets.
    device, dtype : optional
        Those of the parameters; dtype is a floating-point one, float32 by default.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> from pytensorlib import nn
    >>> nn.GRUCell(3, 4)(torch.ones(2, 3)).shape
    torch.Size([2, 4])
    """

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        bias: bool = True,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__(input_size, hidden_size, bias, 3, device, dtype)

    def forward(self, input: Tensor, hx: Tensor | None = None) -> Tensor:
        return self._step(pt.gru_cell, input, hx)


class LSTMCell(RNNCellBase):
    """One step of an `LSTM`: (N, input_size) and states (h, c) to the next (h, c), each (N,
    hidden_size).

    Parameters
    ----------
    input_size, hidden_size : int
        Sizes of the last dimension of the input and of the state.
    bias : bool, default True
        Learn offsets.
    device, dtype : optional
        Those of the parameters; dtype is a floating-point one, float32 by default.

    Examples
    --------
    >>> import pytensorlib as torch
    >>> from pytensorlib import nn
    >>> h, c = nn.LSTMCell(3, 4)(torch.ones(2, 3))
    >>> h.shape, c.shape
    (torch.Size([2, 4]), torch.Size([2, 4]))
    """

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        bias: bool = True,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__(input_size, hidden_size, bias, 4, device, dtype)

    def forward(
        self, input: Tensor, hx: tuple[Tensor, Tensor] | None = None
    ) -> tuple[Tensor, Tensor]:
        self._check("input", input)
        for position, given in enumerate(hx or ()):
            self._check(f"hx[{position}]", given)
        batched = input.dim() == 2
        x = input if batched else input.unsqueeze(0)
        state: Any
        if hx is None:
            zeros = pt.zeros((x.size(0), self.hidden_size), dtype=x.dtype, device=x.device)
            state = (zeros, zeros)
        else:
            state = tuple(hx) if batched else tuple(s.unsqueeze(0) for s in hx)
        h, c = pt.lstm_cell(x, state, self.weight_ih, self.weight_hh, self.bias_ih, self.bias_hh)
        return (h, c) if batched else (h.squeeze(0), c.squeeze(0))


def _apply_permutation(tensor: Tensor, permutation: Tensor, dim: int = 1) -> Tensor:
    """Return the slices along a dimension in another order."""
    return tensor.index_select(dim, permutation)


def apply_permutation(tensor: Tensor, permutation: Tensor, dim: int = 1) -> Tensor:
    """Return the slices along a dimension in another order; an old name.

    Parameters
    ----------
    tensor : Tensor
        Any.
    permutation : Tensor
        Indices.
    dim : int, default 1
        The dimension.

    Returns
    -------
    Tensor
        Of the same shape.

    Examples
    --------
    >>> import warnings
    >>> import pytensorlib as torch
    >>> from pytensorlib.nn.modules.rnn import apply_permutation
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("ignore")
    ...     apply_permutation(torch.tensor([[1, 2]]), torch.tensor([1, 0]))
    tensor([[2, 1]])
    """
    warnings.warn(
        "`apply_permutation` is deprecated, please use "
        "`tensor.index_select(dim, permutation)` instead",
        FutureWarning,
        stacklevel=2,
    )
    return _apply_permutation(tensor, permutation, dim)
