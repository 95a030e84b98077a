"""Bases of layers and private names of `nn`, by which libraries know kinds of layers."""

from __future__ import annotations

import gzip
import io
from typing import Any

import pytest

import pytensorlib as torch
from pytensorlib import nn
from pytensorlib.distributions import kl
from pytensorlib.nn import functional as F
from pytensorlib.nn.modules import conv, padding, pooling

BASES = [
    (conv._ConvNd, nn.Conv2d, nn.Linear),
    (conv._ConvTransposeNd, nn.ConvTranspose1d, nn.Conv1d),
    (conv._LazyConvXdMixin, nn.LazyConv3d, nn.Conv3d),
    (pooling._MaxPoolNd, nn.MaxPool2d, nn.AvgPool2d),
    (pooling._AvgPoolNd, nn.AvgPool1d, nn.MaxPool1d),
    (pooling._AvgPoolNd, nn.AvgPool3d, nn.AdaptiveAvgPool3d),
    (pooling._MaxUnpoolNd, nn.MaxUnpool2d, nn.MaxPool2d),
    (pooling._LPPoolNd, nn.LPPool1d, nn.AvgPool1d),
    (pooling._AdaptiveAvgPoolNd, nn.AdaptiveAvgPool2d, nn.AdaptiveMaxPool2d),
    (pooling._AdaptiveMaxPoolNd, nn.AdaptiveMaxPool1d, nn.AdaptiveAvgPool1d),
    (padding._ConstantPadNd, nn.ZeroPad2d, nn.ReflectionPad2d),
    (padding._CircularPadNd, nn.CircularPad1d, nn.ConstantPad1d),
    (padding._ReflectionPadNd, nn.ReflectionPad3d, nn.ReplicationPad3d),
    (padding._ReplicationPadNd, nn.ReplicationPad1d, nn.ReflectionPad1d),
    (nn.modules.batchnorm._LazyNormBase, nn.LazyBatchNorm1d, nn.BatchNorm1d),
]


@pytest.mark.parametrize(("base", "has", "lacks"), BASES)
def test_kind_of_a_layer_is_told_by_pytorchs_base(base: type, has: type, lacks: type) -> None:
    assert issubclass(has, base) and not issubclass(lacks, base)


def test_transposed_convolution_of_a_programs_own_asks_for_its_padding() -> None:
    net = nn.ConvTranspose1d(2, 3, 2, stride=2)
    x = torch.ones(1, 2, 4)
    known = (net.stride, net.padding, net.kernel_size, 1, net.dilation)
    # PyTorch 2.13: 2 * (4 - 1) + 2 = 8 is the least size.
    assert list(net._output_padding(x, [9], *known)) == [1]
    with pytest.warns(FutureWarning, match="_ConvTransposeMixin is a deprecated internal class"):
        conv._ConvTransposeMixin(1, 1, (2,), (1,), (0,))


def test_replica_of_a_module_takes_tensors_for_parameters() -> None:
    given = nn.ParameterList([nn.Parameter(torch.randn(2, 2)) for _ in range(2)])
    replica = given._replicate_for_data_parallel()
    for name, p in given.named_parameters():
        setattr(replica, name, p.view_as(p))
    for p, q in zip(given, replica, strict=True):
        assert torch.equal(p, q) and q.grad_fn is not None and q._base is p
    norm = nn.BatchNorm1d(2)
    twin = norm._replicate_for_data_parallel()
    assert not list(twin.parameters()) and twin.running_mean is norm.running_mean


def test_private_functions_of_layers_say_what_pytorch_says() -> None:
    with pytest.raises(ValueError, match="Expected more than 1 value per channel when training"):
        F._verify_batch_size([1, 3])
    F._verify_batch_size([2, 3])
    with pytest.raises(ValueError, match="Expected more than 1 spatial element when training"):
        F._verify_spatial_size([2, 3, 1])
    with pytest.warns(UserWarning, match="Implicit dimension choice for softmax has been deprec"):
        assert F._get_softmax_dim("softmax", 2, 3) == 1
    assert nn.InstanceNorm2d(3)._get_no_batch_dim() == 3
    text = nn.modules.module._addindent("a\nb\nc", 2)
    assert text == "a\n  b\n  c"


def test_formula_of_a_divergence_is_found_by_pytorchs_private_name() -> None:
    normal = torch.distributions.Normal(torch.tensor(0.0), torch.tensor(1.0))
    other = torch.distributions.Normal(torch.tensor(1.0), torch.tensor(1.0))
    assert kl._kl_normal_normal(normal, other).item() == 0.5
    torch.testing.assert_close(kl._kl_expfamily_expfamily(normal, other), torch.tensor(0.5))
    with pytest.raises(AttributeError, match="no attribute '_kl_normal_nope'"):
        _ = kl._kl_normal_nope


def test_function_of_a_cycles_height_is_that_of_its_mode() -> None:
    def cycle(**options: Any) -> Any:
        opt = torch.optim.SGD([torch.ones(1)], 0.1)
        return torch.optim.lr_scheduler.CyclicLR(opt, 0.01, 0.1, **options)

    saved, restored = cycle(mode="triangular2"), cycle()
    assert restored._scale_fn_ref(3) == 1.0 and restored._scale_fn_custom is None
    restored.load_state_dict(saved.state_dict())
    # 1 / 2^(x - 1).
    assert restored.mode == "triangular2" and restored._scale_fn_ref(3) == 0.25
    assert restored._scale_fn_custom is None
    assert cycle(mode="exp_range", gamma=0.5)._scale_fn_ref(2) == 0.25


def test_kinds_of_files_are_told() -> None:
    kinds = torch.serialization
    file = io.BytesIO()
    torch.save(torch.ones(1), file)
    file.seek(0)
    assert kinds._is_zipfile(file) and file.tell() == 0 and not kinds._is_path(file)
    assert not kinds._should_read_directly(file) and kinds._check_seekable(file)
    assert not kinds._is_zipfile(io.BytesIO(b"PK")) and kinds._is_path("a")
    packed = gzip.GzipFile(fileobj=io.BytesIO(), mode="wb")
    assert kinds._is_compressed_file(packed) and not kinds._should_read_directly(packed)

    class Once(io.BytesIO):
        def tell(self) -> int:
            raise io.UnsupportedOperation("tell")

    with pytest.raises(io.UnsupportedOperation, match="only torch.load from a file that is seek"):
        kinds._check_seekable(Once())


def test_calls_of_other_processes_say_that_they_are_not_here() -> None:
    from pytensorlib.distributed import autograd, rpc

    assert not rpc.is_available() and not autograd.is_available()
    with pytest.raises(NotImplementedError, match="init_rpc: processes communicate by"):
        rpc.init_rpc("me")
