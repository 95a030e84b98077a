"""What the modules of torch.nn keep in their `__dict__`, which is what a file of one has.

`MODULES` has every class of torch.nn that is built in one line, with an input. In a Python that has
PyTorch, ``python tests/module_states.py`` records what each keeps there in
`tests/data/module_states.json.gz`.
"""

from __future__ import annotations

import gzip
import inspect
import json
from importlib import import_module
from pathlib import Path
from typing import Any

RECORDED = Path(__file__).parent / "data" / "module_states.json.gz"

_LINE, _IMAGE, _BLOCK = "x(2, 4, 9)", "x(2, 4, 9, 9)", "x(2, 4, 9, 9, 9)"
_PLACES = {1: _LINE, 2: _IMAGE, 3: _BLOCK}
_TARGET = "x(3, 4), x(3, 4)"
_LABELS = "x(3, 4), torch.tensor([0, 3, 1])"
_PAIR = "x(3, 4), x(3, 4), torch.tensor([1, -1, 1])"


def _of_dimensions() -> dict[str, str]:
    found = {}
    for n, shape in _PLACES.items():
        found[f"BatchNorm{n}d(4)"] = shape
        found[f"BatchNorm{n}d(4, affine=False, track_running_stats=False)"] = shape
        found[f"InstanceNorm{n}d(4)"] = shape
        found[f"InstanceNorm{n}d(4, affine=True, track_running_stats=True)"] = shape
        found[f"Conv{n}d(4, 2, 3)"] = shape
        found[f"Conv{n}d(4, 2, 3, padding='same', padding_mode='circular', bias=False)"] = shape
        found[f"ConvTranspose{n}d(4, 2, 3, stride=2, output_padding=1)"] = shape
        found[f"LazyConv{n}d(2, 3)"] = shape
        found[f"LazyConvTranspose{n}d(2, 3)"] = shape
        found[f"LazyBatchNorm{n}d()"] = shape
        found[f"LazyInstanceNorm{n}d()"] = shape
        found[f"MaxPool{n}d(2)"] = shape
        found[f"AvgPool{n}d(2)"] = shape
        found[f"LPPool{n}d(2, 3)"] = shape
        found[f"AdaptiveAvgPool{n}d(3)"] = shape
        found[f"AdaptiveMaxPool{n}d(3, return_indices=True)"] = shape
        found[f"MaxUnpool{n}d(2)"] = (
            f"*F.max_pool{n}d({shape.replace('9', '8')}, 2, return_indices=True)"
        )
        found[f"Dropout{n}d(0.25)"] = shape
        for pad in ("ZeroPad", "ReflectionPad", "ReplicationPad", "CircularPad"):
            found[f"{pad}{n}d(1)"] = shape
        found[f"ConstantPad{n}d(1, 2.5)"] = shape
    for n in (2, 3):
        sizes = f"3, output_ratio=0.5, _random_samples=torch.full((2, 4, {n}), 0.5)"
        found[f"FractionalMaxPool{n}d({sizes})"] = _PLACES[n]
    return found


def _plain() -> dict[str, str]:
    names = (
        "CELU ELU GELU GLU Hardshrink Hardsigmoid Hardswish Hardtanh Identity LeakyReLU LogSigmoid"
        " Mish PReLU RReLU ReLU ReLU6 SELU SiLU Sigmoid Softplus Softshrink Softsign Tanh"
        " Tanhshrink Dropout AlphaDropout FeatureAlphaDropout Flatten"
    ).split()
    found = {f"{name}()": "x(3, 4)" for name in names}
    found |= {f"{name}(dim=1)": "x(3, 4)" for name in ("Softmax", "LogSoftmax", "Softmin")}
    found |= {f"{name}()": _TARGET for name in ("L1Loss", "MSELoss", "SmoothL1Loss", "HuberLoss")}
    found |= {
        "BCELoss()": "x(3, 4).sigmoid(), x(3, 4).sigmoid()",
        "BCEWithLogitsLoss(pos_weight=torch.ones(4))": "x(3, 4), x(3, 4).sigmoid()",
        "KLDivLoss(reduction='batchmean')": "x(3, 4), x(3, 4).sigmoid()",
        "PoissonNLLLoss()": "x(3, 4), x(3, 4).abs()",
        "GaussianNLLLoss()": "x(3, 4), x(3, 4), x(3, 4).exp()",
        "SoftMarginLoss()": "x(3, 4), x(3, 4).sign()",
        "NLLLoss(weight=torch.ones(4))": _LABELS,
        "NLLLoss2d()": "x(3, 4, 2, 2), torch.ones(3, 2, 2, dtype=torch.int64)",
        "CrossEntropyLoss(label_smoothing=0.1)": _LABELS,
        "MultiMarginLoss()": _LABELS,
        "MultiLabelMarginLoss()": "x(1, 4), torch.tensor([[3, 0, -1, 1]])",
        "MultiLabelSoftMarginLoss()": "x(3, 4), (x(3, 4) > 0).float()",
        "CosineEmbeddingLoss()": _PAIR,
        "MarginRankingLoss()": "x(3), x(3), torch.tensor([1, -1, 1])",
        "HingeEmbeddingLoss()": "x(3), torch.tensor([1, -1, 1])",
        "TripletMarginLoss()": "x(3, 4), x(3, 4) + 1, x(3, 4) - 1",
        "TripletMarginWithDistanceLoss()": "x(3, 4), x(3, 4) + 1, x(3, 4) - 1",
        "CTCLoss()": "x(5, 2, 4), torch.ones(2, 2, dtype=torch.int64), (5, 5), (2, 2)",
        "AdaptiveLogSoftmaxWithLoss(4, 6, [2, 4], div_value=1.5)": (
            "x(3, 4), torch.tensor([0, 3, 5])"
        ),
        "LinearCrossEntropyLoss(4, 6)": "x(3, 4), torch.tensor([0, 3, 5])",
    }
    return found


def _layers() -> dict[str, str]:
    words = "torch.tensor([[0, 3, 1]])"
    return {
        "Linear(4, 2)": "x(3, 4)",
        "Linear(4, 2, bias=False)": "x(3, 4)",
        "LazyLinear(2)": "x(3, 4)",
        "Bilinear(4, 4, 2)": "x(3, 4), x(3, 4)",
        "modules.linear.NonDynamicallyQuantizableLinear(4, 2)": "x(3, 4)",
        "Embedding(5, 4, padding_idx=1)": words,
        "EmbeddingBag(5, 4)": words,
        "LayerNorm(4)": "x(3, 4)",
        "LayerNorm((3, 4), elementwise_affine=False)": "x(3, 4)",
        "RMSNorm(4)": "x(3, 4)",
        "GroupNorm(2, 4)": _IMAGE,
        "LocalResponseNorm(2)": _IMAGE,
        "CrossMapLRN2d(7)": _IMAGE,
        "SyncBatchNorm(4)": _IMAGE,
        "ChannelShuffle(2)": _IMAGE,
        "PixelShuffle(2)": _IMAGE,
        "PixelUnshuffle(3)": _IMAGE,
        "Upsample(scale_factor=2)": _IMAGE,
        "Upsample(size=4, mode='bilinear')": _IMAGE,
        "UpsamplingNearest2d(scale_factor=2)": _IMAGE,
        "UpsamplingBilinear2d(size=4)": _IMAGE,
        "Fold((4, 4), (2, 2))": "x(2, 8, 9)",
        "Unfold((2, 2))": _IMAGE,
        "Unflatten(1, (2, 2))": "x(3, 4)",
        "Softmax2d()": _IMAGE,
        "Threshold(0.1, 2.0)": "x(3, 4)",
        "CosineSimilarity()": _TARGET,
        "PairwiseDistance()": _TARGET,
        "RNN(4, 3)": "x(5, 2, 4)",
        "RNN(4, 3, 2, nonlinearity='relu', bias=False)": "x(5, 2, 4)",
        "GRU(4, 3, 2, batch_first=True)": "x(5, 2, 4)",
        "LSTM(4, 3)": "x(5, 2, 4)",
        "LSTM(4, 3, 2, bidirectional=True, proj_size=2)": "x(5, 2, 4)",
        "LSTM(4, 3, 2, bias=False, dropout=0.5)": "x(5, 2, 4)",
        "RNNBase('LSTM', 4, 3)": "",
        "RNNCell(4, 3)": "x(2, 4)",
        "GRUCell(4, 3)": "x(2, 4)",
        "LSTMCell(4, 3, bias=False)": "x(2, 4)",
        "RNNCellBase(4, 3, True, 4)": "",
        "MultiheadAttention(4, 2)": "x(5, 2, 4), x(5, 2, 4), x(5, 2, 4)",
        "MultiheadAttention(4, 2, bias=False, add_bias_kv=True, kdim=3, vdim=3)": (
            "x(5, 2, 4), x(5, 2, 3), x(5, 2, 3)"
        ),
        "TransformerEncoderLayer(4, 2, 8)": "x(5, 2, 4)",
        "TransformerEncoderLayer(4, 2, 8, activation='gelu', norm_first=True)": "x(5, 2, 4)",
        "TransformerDecoderLayer(4, 2, 8)": "x(5, 2, 4), x(5, 2, 4)",
        "TransformerEncoder(nn.TransformerEncoderLayer(4, 2, 8), 2)": "x(5, 2, 4)",
        "TransformerDecoder(nn.TransformerDecoderLayer(4, 2, 8), 2)": "x(5, 2, 4), x(5, 2, 4)",
        "Transformer(4, 2, 1, 1, 8)": "x(5, 2, 4), x(5, 2, 4)",
        "Sequential(nn.Linear(4, 3), nn.ReLU())": "x(3, 4)",
        "ModuleList([nn.Linear(4, 3)])": "",
        "ModuleDict({'a': nn.Linear(4, 3)})": "",
        "ParameterList([torch.ones(2), 3])": "",
        "ParameterDict({'a': torch.ones(2), 'b': 3})": "",
        "Container()": "",
        "Module()": "",
        "Buffer(torch.ones(2))": "",
        "Parameter(torch.ones(2))": "",
        "utils.weight_norm(nn.Linear(4, 2))": "x(3, 4)",
        "utils.spectral_norm(nn.Linear(4, 2))": "x(3, 4)",
        "utils.prune.l1_unstructured(nn.Linear(4, 2), 'weight', 0.5)": "x(3, 4)",
        "DataParallel(nn.Linear(4, 2))": "x(3, 4)",
    }


MODULES = {**_of_dimensions(), **_plain(), **_layers()}


def built(torch: Any, text: str) -> Any:
    """The module that a line of `MODULES` makes, with the same numbers everywhere."""
    import_module(f"{torch.__name__}.nn.utils.prune")
    torch.manual_seed(0)
    return eval(f"nn.{text}", {"torch": torch, "nn": torch.nn})


def called(torch: Any, module: Any, text: str, keep: bool = False) -> list[Any]:
    """The tensors that the module returns for the input of a line; `keep` keeps their graph."""

    def x(*shape: int) -> Any:
        count = 1
        for size in shape:
            count *= size
        return torch.arange(float(count)).mul(0.7).sin().reshape(shape)

    space = {"torch": torch, "F": torch.nn.functional, "x": x}
    found = module(*eval(f"[{MODULES[text]}]", space))
    flat = []

    def gather(value: Any) -> None:
        if isinstance(value, torch.Tensor):
            flat.append(value if keep else value.detach())
        elif isinstance(value, (tuple, list)):
            for part in value:
                gather(part)

    gather(found)
    return flat


def _shown(value: Any) -> Any:
    """A text of a value that is the same in PyTorch and here."""
    kind = type(value)
    if kind.__name__ in ("Tensor", "Parameter"):
        return f"{kind.__name__} {tuple(value.shape)} {str(value.dtype).split('.')[-1]}"
    if isinstance(value, dict):  # hooks are numbered through the whole process
        inside = {k if isinstance(k, str) else "": _shown(v) for k, v in value.items()}
        return f"{kind.__name__} {inside}"
    if isinstance(value, (list, tuple)):
        return f"{kind.__name__} {[_shown(v) for v in value]}"
    if value is None or isinstance(value, (bool, int, float, str)):
        return repr(value)
    if inspect.isroutine(value):
        return f"function {value.__name__}"
    return kind.__name__


def state(module: Any) -> dict[str, str]:
    """What the module's pickle holds: names and values, those of its submodules too."""
    if not hasattr(module, "named_modules"):
        return {"": _shown(module)}
    return {
        f"{path}.{name}" if path else name: _shown(value)
        for path, part in module.named_modules()
        for name, value in part.__reduce_ex__(2)[2].items()
    }


if __name__ == "__main__":
    import torch

    recorded = {text: state(built(torch, text)) for text in MODULES}
    RECORDED.write_bytes(gzip.compress(json.dumps(recorded).encode(), mtime=0))
    print(len(recorded), "modules of PyTorch", torch.__version__)
