"""Optimizers as functions, gradients of convolutions, grouped products, classes of results."""

from __future__ import annotations

import importlib
import inspect
import warnings
from collections import OrderedDict

import numpy as np
import pytest

import pytensorlib as torch
from pytensorlib import nn, optim
from pytensorlib.nn.modules.utils import consume_prefix_in_state_dict_if_present
from pytensorlib.optim._functional import JOINED, forms

FORMS = forms()
RNG = np.random.default_rng(0)
START, GRADIENTS = RNG.normal(size=(2, 3)), RNG.normal(size=(4, 2, 3))
MORE = {"adam": {"amsgrad": True}, "sgd": {"momentum": 0.9, "lr": 0.1}, "asgd": {"t0": 1}}


@pytest.mark.parametrize("maximize", [False, True])
@pytest.mark.parametrize("name", FORMS)
def test_optimizer_as_a_function_does_what_its_class_does(name, maximize):
    form = FORMS[name]
    step = getattr(importlib.import_module(f"pytensorlib.optim.{name}"), name)
    mine, theirs = torch.tensor(START), torch.tensor(START, requires_grad=True)
    options = {"weight_decay": 0.01} if name != "rprop" else {}
    optimizer = form.optimizer([theirs], maximize=maximize, **options, **MORE.get(name, {}))
    (group,) = optimizer.param_groups
    lists = dict(pair.split("=") for pair in form.lists.split())
    state = {}
    numbers = {"maximize": maximize} | {n: group[n] for n in form.numbers.split() if n in group}
    for option, parts in JOINED.items():
        if option in group and parts[0] in form.numbers.split():
            numbers |= dict(zip(parts, group[option], strict=True))
    for gradient in GRADIENTS:
        theirs.grad = torch.tensor(gradient)
        if not state:  # the lists begin as the state of the class does
            fresh = optimizer._new_state(theirs, group)
            state = {n: [fresh[key]] if key in fresh else [] for n, key in lists.items()}
        optimizer.step()
        step([mine], [torch.tensor(gradient)], **state, **numbers)
    torch.testing.assert_close(mine, theirs.detach(), rtol=1e-10, atol=1e-12)
    assert not np.allclose(mine.numpy(), START)


def test_optimizers_as_functions_take_pytorchs_arguments_in_its_order():
    # What PyTorch 2.13 calls them.
    assert str(inspect.signature(optim.sgd.sgd)) == (
        "(params, d_p_list, momentum_buffer_list, has_sparse_grad=False, foreach=None, fused=None, "
        "grad_scale=None, found_inf=None, *, weight_decay, momentum, lr, dampening, nesterov, "
        "maximize)"
    )
    assert list(inspect.signature(optim.adam.adam).parameters)[:8] == [
        "params", "grads", "exp_avgs", "exp_avg_sqs", "max_exp_avg_sqs", "state_steps", "foreach",
        "capturable",
    ]  # fmt: skip
    p = torch.ones(1)
    rest = {"weight_decay": 0, "momentum": 0, "lr": 1, "dampening": 0, "nesterov": False}
    optim.sgd.sgd([p], [p], [None], found_inf=torch.tensor(1.0), maximize=False, **rest)
    assert p.item() == 1
    optim.sgd.sgd(
        [p], [torch.ones(1)], [None], grad_scale=torch.tensor(4.0), maximize=False, **rest
    )
    assert p.item() == 0.75


def test_average_of_several_tensors_is_that_of_each():
    values = [torch.tensor([4.0, 8.0]), torch.tensor(1.0)]
    for one, several in (
        (optim.swa_utils.get_ema_avg_fn(0.75), optim.swa_utils.get_ema_multi_avg_fn(0.75)),
        (optim.swa_utils.get_swa_avg_fn(), optim.swa_utils.get_swa_multi_avg_fn()),
    ):
        means = [torch.tensor([0.0, 4.0]), torch.tensor(3.0)]
        want = [one(m, v, 3) for m, v in zip(means, values, strict=True)]
        several(means, values, 3)
        for mean, wanted in zip(means, want, strict=True):
            torch.testing.assert_close(mean, wanted)
    assert want[0].tolist() == [1.0, 5.0]


@pytest.mark.parametrize("n", [1, 2, 3])
def test_gradients_of_convolutions_are_those_of_their_inner_products(n):
    conv = getattr(nn.functional, f"conv{n}d")
    options = {"stride": 2, "padding": 1, "dilation": 2, "groups": 2}
    x = torch.tensor(RNG.normal(size=(2, 4, *[7] * n)))
    w = torch.tensor(RNG.normal(size=(6, 2, *[2] * n)))
    y = conv(x, w, None, **options)
    g = torch.tensor(RNG.normal(size=tuple(y.shape)))
    by_input = getattr(nn.grad, f"conv{n}d_input")(x.shape, w, g, **options)
    by_weight = getattr(nn.grad, f"conv{n}d_weight")(x, w.shape, g, **options)
    # The convolution is linear in each: <y, g> is also <x, dx> and <w, dw>.
    inner = (y * g).sum()
    torch.testing.assert_close((x * by_input).sum(), inner)
    torch.testing.assert_close((w * by_weight).sum(), inner)
    assert by_input.shape == x.shape and by_weight.shape == w.shape
    assert not by_input.requires_grad
    assert getattr(nn.grad, f"conv{n}d_input")(x.shape, w.requires_grad_(), g, **options).grad_fn


def test_grouped_products_are_the_products_of_the_groups():
    a, b = RNG.normal(size=(10, 4)), RNG.normal(size=(3, 4, 5))
    ends, cuts = torch.tensor([3, 3, 8], dtype=torch.int32), [slice(0, 3), slice(3, 3), slice(3, 8)]
    ta, tb = torch.tensor(a), torch.tensor(b)
    got = nn.functional.grouped_mm(ta, tb, offs=ends).numpy()
    for i, cut in enumerate(cuts):
        np.testing.assert_allclose(got[cut], a[cut] @ b[i])
    assert not got[8:].any()
    c, d = RNG.normal(size=(3, 2, 4)), RNG.normal(size=(4, 10))
    got = nn.functional.grouped_mm(torch.tensor(c), torch.tensor(d), offs=ends).numpy()
    for i, cut in enumerate(cuts):
        np.testing.assert_allclose(got[:, cut], c[i] @ d[:, cut])
    got = nn.functional.grouped_mm(ta.t(), torch.tensor(d.T), offs=ends).numpy()
    for i, cut in enumerate(cuts):
        np.testing.assert_allclose(got[i], a.T[:, cut] @ d.T[cut])
    whole = nn.functional.grouped_mm(torch.tensor(c), tb, out_dtype=torch.float32)
    assert whole.dtype is torch.float32
    np.testing.assert_allclose(whole.numpy(), c @ b, rtol=1e-5, atol=1e-5)
    for wrong in ([3, 2, 8], [1, 2], [1, 2, 11]):
        with pytest.raises(RuntimeError, match="ends"):
            nn.functional.grouped_mm(ta, tb, offs=torch.tensor(wrong))
    with pytest.raises(RuntimeError, match="contraction"):
        nn.functional.grouped_mm(ta, tb.mT, offs=ends)


def test_results_with_names_are_of_the_classes_of_return_types():
    types = torch.return_types
    assert type(torch.max(torch.ones(2), 0)) is types.max
    assert type(torch.linalg.eigh(torch.eye(2))) is types.linalg_eigh
    assert types.max in types.all_return_types
    assert types.sort((1, 2)).indices == 2
    with pytest.raises(AttributeError):
        _ = types.softmax


def test_prefix_of_a_state_is_taken_off_with_its_versions():
    state = OrderedDict([("module.a", 1), ("b", 2)])
    state._metadata = OrderedDict([("", 1), ("module", 2), ("module.a", 3)])
    consume_prefix_in_state_dict_if_present(state, "module.")
    assert dict(state) == {"b": 2, "a": 1}
    assert state._metadata[""] == 2 and state._metadata["a"] == 3 and len(state._metadata) == 2


def test_factory_kwargs_refuses_what_it_does_not_know():
    assert nn.factory_kwargs(None) == {}
    assert nn.factory_kwargs({"dtype": 1, "factory_kwargs": {"device": 2}}) == {
        "dtype": 1,
        "device": 2,
    }
    for wrong in (
        {"x": 1},
        {"factory_kwargs": {"x": 1}},
        {"dtype": 1, "factory_kwargs": {"dtype": 2}},
    ):
        with pytest.raises(TypeError):
            nn.factory_kwargs(wrong)


def test_hooks_that_say_so_are_not_warned_of():
    x = torch.ones(1, requires_grad=True)
    x._backward_hooks = {0: torch.utils.hooks.unserializable_hook(lambda g: g)}
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        torch.utils.hooks.warn_if_has_hooks(x)
    x._backward_hooks = {0: lambda g: g}
    with pytest.warns(UserWarning, match="will not be serialized"):
        torch.utils.hooks.warn_if_has_hooks(x)


def test_windows_are_found_where_pytorch_has_them():
    assert torch.signal.windows.windows.hann is torch.signal.windows.hann
    assert torch.signal.windows.hann.__module__ == "pytensorlib.signal.windows.windows"


def test_weak_dictionary_compares_by_identity_and_forgets():
    weak = importlib.import_module("pytensorlib.utils.weak")
    x, y = torch.ones(2), torch.ones(2)
    known = weak.WeakTensorKeyDictionary({x: 1})
    assert x in known and y not in known and known[x] == 1 and known.get(y) is None
    known[y] = 2
    assert sorted(known.values()) == [1, 2] and known == known.copy()
    with pytest.raises(KeyError):
        _ = known[torch.ones(2)]
    ref = weak.TensorWeakRef(y)
    assert ref() is y and weak.WeakIdRef(x) != weak.WeakIdRef(y)
    del y
    assert ref() is None and len(known) == 1 and len(known.data) == 1
    assert {**known} == {x: 1}


def test_weights_of_convolutions_change_their_memory_format():
    net = nn.Sequential(nn.Conv2d(4, 6, 3), nn.Linear(2, 2))
    weight = net[0].weight
    before = weight.detach().clone()
    assert nn.utils.convert_conv2d_weight_memory_format(net, torch.channels_last) is net
    assert net[0].weight is weight and torch.equal(weight, before)
    assert weight.is_contiguous(memory_format=torch.channels_last)
    other = nn.ConvTranspose3d(4, 6, 3)
    nn.utils.convert_conv3d_weight_memory_format(other, torch.channels_last_3d)
    assert other.weight.is_contiguous(memory_format=torch.channels_last_3d)


def test_bilinear_refuses_a_bias_that_is_no_vector_and_tells_its_shape() -> None:
    args = torch.ones(3), torch.ones(4), torch.ones(5, 3, 4)
    with pytest.raises(RuntimeError, match=r"does not match weight size: got \[5, 1\]"):
        torch.nn.functional.bilinear(*args, torch.ones(5, 1))
    assert torch.nn.functional.bilinear(*args, torch.ones(5)).tolist() == [13] * 5


def test_layers_of_complex_numbers_begin_with_pytorchs_numbers() -> None:
    torch.manual_seed(1)
    w = nn.Linear(2, 2, dtype=torch.complex64).weight
    want = [[0.3643 - 0.3121j, -0.1371 + 0.3319j], [-0.6657 + 0.4241j, -0.1455 + 0.3597j]]
    assert torch.allclose(w, torch.tensor(want), atol=1e-4)


def test_total_norm_has_no_gradient() -> None:
    p = nn.Parameter(torch.tensor([3.0, 4.0]))
    total = nn.utils.get_total_norm([p])
    assert (total.item(), total.requires_grad) == (5.0, False)
