"""Parts of PyTorch that are not here: their names import, and using one says what to do."""

import importlib
import pickle
import warnings

import child
import pytest

import pytensorlib as torch
from pytensorlib import nn
from pytensorlib._absent.table import PARTS


@pytest.mark.parametrize("name", sorted(PARTS))
def test_every_module_of_the_table_imports_with_its_names(name):
    module = importlib.import_module(f"pytensorlib.{name}")
    part = PARTS[name]
    assert module.__doc__
    for word in part.names.split():
        bare = word.partition("{")[0].rstrip("}")
        if "{" not in word and not hasattr(module, bare):
            # A member of an enumeration, or the end of one.
            assert any("{" in w for w in part.names.split())


def test_absent_class_can_be_subclassed_asked_for_and_named_but_not_made():
    from pytensorlib.distributed.pipelining import PipelineStage
    from pytensorlib.distributed.tensor import DTensor

    class Mine(DTensor): ...

    assert not isinstance(torch.ones(1), DTensor)
    assert DTensor | None
    assert pickle.loads(pickle.dumps(PipelineStage)) is PipelineStage
    for cls in (Mine, DTensor):
        with pytest.raises(RuntimeError, match=r"tensor.DTensor: .*is_initialized"):
            cls(nn.Linear(1, 1))


def test_absent_module_attribute_says_why():
    with pytest.raises(AttributeError, match="runs eagerly|run eagerly"):
        _ = torch.fx.no_such_name
    assert (
        torch.ao.quantization.QuantStub
        is importlib.import_module("pytensorlib.ao.quantization").QuantStub
    )


ALIAS = """
from pytensorlib._alias import install; install()
import torch
import torch.distributed.fsdp.wrap
import torch.ao.quantization, torch.backends.cudnn, torch.cuda.nvtx
from torch.distributed.tensor import DTensor
from torch.onnx import symbolic_opset11
import torch._dynamo, torch.fx.node
assert torch.distributed.fsdp.wrap.ModuleWrapPolicy
import pytensorlib.distributed.tensor
assert pytensorlib.distributed.tensor.DTensor is DTensor
assert torch._C._get_tracing_state() is None
assert torch._C._nn._parse_to("cpu", torch.float64)[1] is torch.float64
"""


def test_absent_modules_import_under_the_alias():
    child.run(ALIAS)


def test_script_and_trace_return_what_they_got_and_say_so_once():
    torch.jit._said = False
    net = nn.Linear(2, 1)
    with pytest.warns(UserWarning, match="runs eagerly"):
        assert torch.jit.script(net) is net
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert torch.jit.trace(net, torch.ones(1, 2)) is net
        assert torch.jit.script(len) is len
    for call in (lambda: torch.jit.save(net, "f"), lambda: torch.jit.load("f")):
        with pytest.raises(RuntimeError, match=r"torch\.save"):
            call()


def test_jit_isinstance_looks_into_containers():
    is_a = torch.jit.isinstance
    assert is_a({"a": [torch.ones(1)]}, dict[str, list[torch.Tensor]])
    assert not is_a({"a": [1]}, dict[str, list[torch.Tensor]])
    assert is_a((1, "a"), tuple[int, str])
    assert not is_a((1, 2), tuple[int, str])
    assert is_a((1, 2, 3), tuple[int, ...])
    assert is_a(None, int | None)
    assert is_a([1, None], (list[int], list[int | None]))
    assert not is_a([1, None], list[int])


def test_jit_decorators_in_every_form():
    @torch.jit.ignore
    def a():
        return 1

    @torch.jit.ignore(drop=True)
    def b():
        return 2

    @torch.jit.unused
    def c():
        return 3

    @torch.jit._overload_method
    def d():
        return 4

    assert (a(), b(), c(), d()) == (1, 2, 3, 4)
    assert torch.jit.annotate(list[int], [1]) == [1]
    assert torch.jit.Final[int]

    class Old(torch.jit.ScriptModule):
        @torch.jit.script_method
        def forward(self, x):
            return 2 * x

    assert Old()(torch.ones(1)).item() == 2


def test_compile_takes_options_as_pytorch_does_and_refuses_a_function_as_backend():
    net = nn.Linear(1, 1)
    assert torch.compile(net, backend="eager") is torch.compile(net, disable=True) is net
    with pytest.raises(NotImplementedError, match="backend"):
        torch.compile(net, backend=lambda graph, inputs: graph)
    with pytest.raises(RuntimeError, match="Unrecognized mode"):
        torch.compile(net, mode="fast")
    with pytest.raises(RuntimeError, match="Either mode or options"):
        torch.compile(net, mode="default", options={})
    assert torch._dynamo.optimize("inductor")(len) is len
    with torch._dynamo.config.patch(suppress_errors=True):
        assert torch._dynamo.config.suppress_errors
    assert not torch._dynamo.config.suppress_errors


def test_backends_are_modules_with_switches_that_are_restored():
    import pytensorlib.backends.cudnn as cudnn

    assert not cudnn.is_available()
    with cudnn.flags(enabled=False, deterministic=True):
        assert cudnn.deterministic and not cudnn.enabled
    assert cudnn.enabled and not cudnn.deterministic
    torch.backends.cuda.matmul.allow_tf32 = True
    with torch.backends.cuda.sdp_kernel(enable_math=False):
        assert not torch.backends.cuda.math_sdp_enabled()
    assert torch.backends.cuda.math_sdp_enabled()


def test_cuda_has_true_answers_and_refuses_the_rest():
    cuda = torch.cuda
    assert not cuda.is_available()
    assert cuda.memory_allocated() == cuda.max_memory_reserved() == cuda.device_count() == 0
    assert cuda.get_rng_state_all() == []
    with cuda.device(None), cuda.device(-1):
        pass
    for call in (
        cuda.current_stream,
        cuda.Stream,
        cuda.Event,
        cuda.get_device_properties,
        lambda: cuda.set_device(0),
        lambda: cuda.nvtx.range_push("a"),
        lambda: cuda.device(0).__enter__(),
    ):
        with pytest.raises(RuntimeError, match="wgpu|profiler"):
            call()


def test_accelerator_is_the_gpu_or_nothing():
    here = torch.wgpu.is_available()
    found = torch.accelerator.current_accelerator()
    assert (found is not None) == here == torch.accelerator.is_available()
    assert torch.accelerator.device_count() == (torch.wgpu.device_count() if here else 0)
    with pytest.raises(RuntimeError, match="GPUs"):
        torch.accelerator.set_device_index(1000)
    assert torch.accelerator.memory_allocated() >= 0


def test_checks_raise_their_classes():
    torch._check(True)
    torch._assert(torch.ones(1) == 1, "no")
    with pytest.raises(AssertionError, match="no"):
        torch._assert(False, "no")
    for check, error in (
        (torch._check, RuntimeError),
        (torch._check_index, IndexError),
        (torch._check_value, ValueError),
        (torch._check_type, TypeError),
        (torch._check_not_implemented, NotImplementedError),
    ):
        with pytest.raises(error, match="size 3"):
            check(False, lambda: "size 3")
    with pytest.raises(TypeError, match="bool"):
        torch._check(1)
    with pytest.raises(RuntimeError):
        torch._check_tensor_all(torch.tensor([True, False]))
    with pytest.raises(RuntimeError):
        torch._check_is_size(5, max=4)


def test_operators_of_aten_are_ours_and_compiled_libraries_are_not():
    aten = torch.ops.aten
    assert aten.add.Tensor is aten.add.Tensor
    assert aten.add.Tensor(torch.ones(1), 2).item() == 3
    assert aten.add.Tensor.overloadpacket is aten.add
    assert str(aten.add.Tensor) == "aten.add.Tensor"
    assert not hasattr(torch.ops.torchvision, "nms")
    with pytest.raises(OSError, match="custom_op"):
        torch.ops.load_library("libtorchvision.so")


def test_overwriting_conversion_makes_new_parameters():
    net = nn.Linear(1, 1)
    weight = net.weight
    assert net.double().weight is weight
    torch.__future__.set_overwrite_module_params_on_conversion(True)
    try:
        assert net.float().weight is not weight
        assert isinstance(net.weight, nn.Parameter)
    finally:
        torch.__future__.set_overwrite_module_params_on_conversion(False)
