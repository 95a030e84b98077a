"""The package `functorch`, and the private modules of transforms that libraries import."""

from __future__ import annotations

import warnings
from types import SimpleNamespace
from typing import Any

import child
import pytest

import pytensorlib as torch
from pytensorlib import functorch, nn
from pytensorlib._functorch import autograd_function, eager_transforms, make_functional, vmap
from pytensorlib._functorch.deprecated import get_warning

OLD = sorted(
    set(functorch.__all__) - {"FunctionalModule", "FunctionalModuleWithBuffers", "make_fx"}
)


@pytest.fixture(autouse=True)
def without_warnings() -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)
        yield


class Tied(nn.Module):
    """Two layers, the second with the weight of the first."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = nn.Linear(3, 3), nn.Linear(3, 3)
        self.second.weight = self.first.weight

    def forward(self, x: Any) -> Any:
        return self.second(self.first(x))


ALIAS = """
from pytensorlib._alias import install; install()
import functorch
from functorch import grad, make_functional, vmap
import functorch.experimental.control_flow, functorch.compile, functorch.einops
from functorch._src.vmap import _process_batched_inputs
from torch._functorch.make_functional import functional_init
import torch
assert functorch.vmap(lambda x: x * 2)(torch.ones(2)).tolist() == [2.0, 2.0]
assert functorch.__version__ == torch.__version__
assert functorch.compile.aot_function.__name__ == "aot_function"
"""


def test_functorch_is_found_beside_torch_under_the_alias() -> None:
    code = "import warnings; warnings.simplefilter('ignore')\n" + ALIAS
    child.run(code)


@pytest.mark.parametrize("name", OLD)
def test_old_name_warns_and_tells_the_new_one(name: str) -> None:
    given: Any = nn.Linear(2, 2) if name.startswith("make") else lambda x: x
    if name == "combine_state_for_ensemble":
        given = [nn.Linear(2, 2)]
    arguments = {"jvp": (given, (torch.ones(1),), (torch.ones(1),)), "vjp": (given, torch.ones(1))}
    with pytest.warns(FutureWarning, match=rf"`functorch.{name}` is deprecated.*Please use `torch"):
        getattr(functorch, name)(*arguments.get(name, (given,)))


def test_warning_of_an_old_name_names_torch_func() -> None:
    assert "torch.func.grad" in get_warning("grad")
    assert "torch.vmap" in get_warning("vmap", "torch.vmap")


def test_functional_module_gives_what_the_module_gives_and_its_gradients() -> None:
    net, x = Tied(), torch.randn(4, 3)
    run, params = functorch.make_functional(net)
    # One tensor of each: the shared weight comes once, by its first name.
    assert run.param_names == ("first.weight", "first.bias", "second.bias")
    assert run.names_map["first.weight"] == ["first.weight", "second.weight"]
    assert torch.equal(run(params, x), net(x))
    assert all(p is not q for p, q in zip(params, net.parameters(), strict=True))
    grads = torch.autograd.grad(run(params, x).square().sum(), params)
    net(x).square().sum().backward()
    assert all(torch.equal(g, p.grad) for g, p in zip(grads, net.parameters(), strict=True))
    assert {p.device.type for p in run.stateless_model.parameters()} == {"meta"}
    frozen = functorch.make_functional(net, disable_autograd_tracking=True)[1]
    assert not any(p.requires_grad for p in frozen)


def test_functional_module_with_buffers_writes_to_the_buffers_given() -> None:
    norm, x = nn.BatchNorm1d(2), torch.tensor([[1.0, 2.0], [3.0, 6.0]])
    run, params, buffers = functorch.make_functional_with_buffers(norm)
    run(params, buffers, x)
    # 0.9 * 0 + 0.1 * mean.
    torch.testing.assert_close(buffers[0], torch.tensor([0.2, 0.4]))
    assert norm.running_mean.tolist() == [0.0, 0.0]
    with pytest.raises(RuntimeError, match="`model` has buffers. Please use make_functional_with"):
        functorch.make_functional(norm)
    with pytest.raises(RuntimeError, match="has buffers.*make_functional_with_buffers_deprecated"):
        make_functional.make_functional_deprecated_v1(norm)


def test_ensemble_of_modules_gives_what_each_gives() -> None:
    nets, x = [nn.Linear(3, 2) for _ in range(4)], torch.randn(5, 3)
    run, params, buffers = functorch.combine_state_for_ensemble(nets)
    assert [tuple(p.shape) for p in params] == [(4, 2, 3), (4, 2)] and buffers == ()
    assert all(p.is_leaf and not p.requires_grad for p in params)
    y = functorch.vmap(run, in_dims=(0, 0, None))(params, buffers, x)
    torch.testing.assert_close(y, torch.stack([net(x) for net in nets]))


def test_ensemble_of_modules_that_differ_is_refused() -> None:
    for models, text in (
        ([], "Expected at least one model, got 0"),
        ([nn.Linear(1, 1), nn.Linear(1, 1).eval()], "the same training/eval mode"),
        ([nn.Linear(1, 1), nn.ReLU()], "to be of the same class"),
    ):
        with pytest.raises(RuntimeError, match=text):
            functorch.combine_state_for_ensemble(models)


def test_functional_init_makes_one_module_or_stacks_several() -> None:
    weights, run, names = make_functional.functional_init(nn.Linear)(3, 2)
    assert names == ("weight", "bias") and run(weights, (torch.ones(3),)).shape == (2,)
    weights, run, _ = make_functional.functional_init(nn.Linear, (4,))(3, 2)
    assert [tuple(w.shape) for w in weights] == [(4, 2, 3), (4, 2)]
    made = make_functional.functional_init_with_buffers(nn.BatchNorm1d, (4,))(3)
    assert [tuple(b.shape) for b in made[1]] == [(4, 3), (4, 3), (4,)]
    with pytest.raises(ValueError, match="NYI: ensemble_shape with more than 1 element"):
        make_functional.functional_init(nn.Linear, (2, 2))(3, 2)
    with pytest.raises(ValueError, match="num_models 0 should be > 0"):
        make_functional.functional_init(nn.Linear, (0,))(3, 2)


def test_weights_that_were_taken_out_can_be_put_back() -> None:
    net, x = Tied(), torch.randn(2, 3)
    want = net(x)
    params, names, groups = make_functional.extract_weights(net)
    assert net.second.weight.is_meta
    assert (
        make_functional.create_names_map(
            dict(zip(names, params, strict=True)),
            {n: p for g, p in zip(groups.values(), params, strict=True) for n in g},
        )
        == groups
    )
    before = make_functional._swap_state(net, groups, params)
    assert all(t.is_meta for t in before) and torch.equal(net(x), want)


def test_arguments_are_picked_and_replaced_by_position() -> None:
    pick, put = eager_transforms._slice_argnums, eager_transforms._replace_args
    # What PyTorch 2.13 returned and said.
    assert pick((1, 2, 3), (2, 0)) == (3, 1) and pick((1, 2, 3), -1) == (3,)
    assert pick((1, 2, 3), -1, as_tuple=False) == 3
    assert put((1, 2, 3), (9, 8), (2, 0)) == (8, 2, 9)
    for argnums, text in (
        (3, "Got argnum=3, but only 2 positional inputs"),
        ((), "argnums must be non-empty"),
        ((0, 0), "argnums elements must be unique"),
        ((0, "a"), "argnum must be int, got: <class 'str'>"),
        (1.0, "argnums must be int or Tuple"),
    ):
        with pytest.raises(RuntimeError, match=text):
            pick((1, 2), argnums)


def test_context_in_front_of_another_has_its_fields_and_its_own_saved_tensors() -> None:
    inner = SimpleNamespace(x=1)
    outer = autograd_function.CtxWithSavedTensors(inner, ("mine",))
    outer.y = 2
    assert (outer.x, inner.y, outer.saved_tensors) == (1, 2, ("mine",))
    nested = autograd_function.CtxWithSavedTensors(outer, ("other",))
    assert nested.saved_tensors == ("other",) and outer.saved_tensors == ("mine",)
    with pytest.raises(RuntimeError, match="PyTorch reserves the .* field on ctx"):
        autograd_function.CtxWithSavedTensors(SimpleNamespace(_pt_new_saved_tensors=1), ())


def test_gradients_of_slices_are_placed_as_their_inputs_are() -> None:
    leaf = autograd_function.reductify_leaf
    g = torch.arange(6.0).view(3, 2)
    assert leaf(None, 0, 0, 3) is None and leaf(g, None, None, 3) is g
    assert leaf(g, 0, None, 3).tolist() == [6.0, 9.0]
    assert leaf(g, 0, 1, 3).shape == (2, 3)
    assert leaf(g, None, 0, 4).shape == (4, 3, 2)
    # Each slice of the input has the shape (1,): the gradient of (2,) is summed to it.
    assert leaf(g, 0, 0, 3, (1,)).tolist() == [[1.0], [5.0], [9.0]]
    assert [x.shape for x in autograd_function.reductify((g, g), (0, 0), (0, None), 3)] == [
        (3, 2),
        (2,),
    ]


def test_private_parts_of_vmap_say_what_they_see() -> None:
    x = torch.ones(2, 3, 4)
    size, dims, flat, _ = vmap._process_batched_inputs((None, -1), (x, x), torch.add)
    assert (size, dims, len(flat)) == (4, [None, 2], 2)
    assert vmap._validate_and_get_batch_size([0, None], [x, x]) == 2
    assert vmap.get_chunk_sizes(7, 3) == [3, 3, 1] and vmap.get_chunk_sizes(6, 3) == [3, 3]
    got = functorch.experimental.chunk_vmap(torch.sum, in_dims=2, chunks=3)(x)
    assert got.tolist() == [6.0] * 4
    assert (
        torch._vmap_internals._vmap(
            lambda t: (t, None), (0,), (0, 0), allow_none_pass_through=True
        )(torch.ones(2))[1]
        is None
    )
    with pytest.warns(FutureWarning, match="Please use `torch.vmap` instead"):
        assert torch._vmap_internals.vmap(torch.sum, 2)(x).tolist() == [6.0] * 4


def test_dimensions_are_put_into_each_other_and_taken_apart() -> None:
    C = torch._C._functorch
    x = torch.arange(24.0).view(2, 3, 4)
    # By NumPy: moveaxis and reshape.
    assert torch.equal(C.reshape_dim_into(0, 1, x), x.permute(1, 0, 2).reshape(3, 8))
    assert torch.equal(C.reshape_dim_into(-1, 0, x), x.permute(2, 0, 1).reshape(8, 3))
    assert torch.equal(C.reshape_dim_outof(2, 2, x), x.reshape(2, 3, 2, 2))
    assert torch.equal(C.reshape_dim_outof(-2, 3, x), x.reshape(2, 3, 1, 4))
    with pytest.raises(RuntimeError, match=r"shape\[src\] % size1 == 0"):
        C.reshape_dim_outof(0, 5, x)


def test_tensors_of_slices_are_told_apart() -> None:
    C = torch._C._functorch
    seen = []
    torch.vmap(lambda t: seen.append((C.is_batchedtensor(t), C.maybe_get_bdim(t))) or t, 1)(
        torch.ones(3, 2)
    )
    assert seen == [(True, 1)]
    assert not C.is_batchedtensor(torch.ones(2)) and C.maybe_get_bdim(torch.ones(2)) == -1
    assert not torch._C._are_functorch_transforms_active()
    with torch._C._DisableFuncTorch(), pytest.raises(NotImplementedError, match="hidden dimension"):
        C._add_batch_dim(torch.ones(2), 0, 1)
    C._set_vmap_fallback_enabled(False)
    try:
        with pytest.raises(RuntimeError, match="Batching rule not implemented for aten::nonzero"):
            torch.vmap(torch.nonzero)(torch.ones(2, 3))
    finally:
        C._set_vmap_fallback_enabled(True)
    before = torch._C._debug_only_are_vmap_fallback_warnings_enabled()
    torch._C._debug_only_display_vmap_fallback_warnings(not before)
    assert torch._C._debug_only_are_vmap_fallback_warnings_enabled() is not before
    torch._C._debug_only_display_vmap_fallback_warnings(before)
