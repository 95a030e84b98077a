"""Modules that take their sizes from the first input."""

import copy
import io
import pickle

import pytest

import pytensorlib as torch
from pytensorlib import nn

CASES = {
    "Linear": ((8,), (2, 4)),
    **{f"Conv{n}d": ((8, 3), (2, 4, *[5] * n)) for n in (1, 2, 3)},
    **{f"ConvTranspose{n}d": ((8, 3), (2, 4, *[5] * n)) for n in (1, 2, 3)},
    **{f"BatchNorm{n}d": ((), (2, 4, *[5] * n)) for n in (1, 2, 3)},
    **{f"InstanceNorm{n}d": ((), (2, 4, *[5] * n)) for n in (1, 2, 3)},
}


def made(name, **options):
    return getattr(nn, f"Lazy{name}")(*CASES[name][0], **options)


def twin_of(name):
    """The ordinary module; lazy instance norms have parameters where ordinary ones do not."""
    options = {"affine": True, "track_running_stats": True} if "Instance" in name else {}
    return getattr(nn, name)(4, *CASES[name][0], **options)


@pytest.mark.parametrize("name", CASES)
def test_first_call_makes_the_ordinary_module(name):
    m = made(name)
    assert m.has_uninitialized_params()
    m(torch.randn(CASES[name][1]))
    plain = getattr(nn, name)
    assert type(m) is plain
    twin = twin_of(name)
    assert repr(m) == repr(twin)
    assert {k: v.shape for k, v in m.state_dict().items()} == {
        k: v.shape for k, v in twin.state_dict().items()
    }
    assert all(type(p) is nn.Parameter for p in m.parameters())
    m(torch.randn(CASES[name][1]))
    assert not m._forward_pre_hooks
    assert not m._load_state_dict_pre_hooks


@pytest.mark.parametrize("name", CASES)
def test_state_is_loaded_before_the_first_call(name):
    twin = twin_of(name)
    m = made(name)
    m.load_state_dict(twin.state_dict())
    assert not m.has_uninitialized_params()
    x = torch.randn(CASES[name][1])
    assert torch.equal(m(x), twin(x))
    assert repr(m) == repr(twin)


@pytest.mark.parametrize("clone", [copy.deepcopy, lambda m: pickle.loads(pickle.dumps(m))])
def test_copies_of_a_module_without_sizes_have_none_either(clone):
    m = clone(nn.Sequential(made("Linear"), made("BatchNorm1d")))
    assert m[0].has_uninitialized_params()
    state = m.state_dict()
    assert isinstance(state["0.weight"], nn.UninitializedParameter)
    m(torch.randn(2, 4))
    assert m[0].weight.shape == (8, 4)
    assert m[1].running_mean.shape == (8,)


def test_uninitialized_parameters_refuse_what_needs_a_size():
    m = made("Linear")
    with pytest.raises(RuntimeError, match="uninitialized"):
        _ = m.weight.shape
    with pytest.raises(ValueError, match="uninitialized"):
        m.weight.sum()
    with pytest.raises(RuntimeError, match="dry-run|uninitialized"):
        torch.nn.Linear(2, 8).load_state_dict(m.state_dict())


def test_training_goes_on_with_parameters_given_out_before():
    m = nn.Sequential(made("Conv2d"), nn.Flatten(), made("Linear"))
    optimizer = torch.optim.SGD(m.parameters(), lr=0.1)
    m(torch.randn(2, 4, 5, 5)).sum().backward()
    before = m[0].weight.detach().clone()
    optimizer.step()
    assert not torch.equal(before, m[0].weight)


class Mixin:
    """A base that is no module, before one that is."""


class Mixed(Mixin, nn.Linear):
    pass


def test_class_of_a_module_changes_whatever_its_bases_are():
    m = Mixed(2, 3)
    m.__class__ = nn.Linear
    assert m(torch.ones(1, 2)).shape == (1, 3)
    m.__class__ = Mixed
    assert m(torch.ones(1, 2)).shape == (1, 3)


@pytest.mark.parametrize(
    "use",
    [
        torch.empty_like,
        lambda p: torch.add(p, p),
        lambda p: p + 1,
        lambda p: torch.ones(1) + p,
        lambda p: p == p,
        lambda p: p[0],
        len,
        lambda p: p.sum(),
        lambda p: nn.init.xavier_uniform_(p),
    ],
)
def test_parameter_without_a_shape_is_refused_by_functions_and_operators(use):
    with pytest.raises(ValueError, match="Attempted to use an uninitialized parameter in "):
        use(nn.UninitializedParameter())


@pytest.mark.filterwarnings("ignore:`torch.nn.utils.weight_norm` is deprecated")
def test_parameter_without_a_shape_says_what_has_to_come_first():
    net = nn.LazyLinear(3)
    for norm in (nn.utils.spectral_norm, nn.utils.weight_norm):
        with pytest.raises(
            ValueError, match="Norm` can't have uninitialized parameters. Make sure"
        ):
            norm(net)
    with pytest.raises(RuntimeError, match="share memory on an uninitialized parameter or buffer"):
        net.share_memory()
    with pytest.raises(RuntimeError, match="shape of an uninitialized parameter"):
        nn.Linear(2, 3).load_state_dict(net.state_dict())
    assert list(net.state_dict()) == ["weight", "bias"]


def test_state_without_shapes_is_saved_and_loaded():
    net, file = nn.LazyLinear(3, dtype=torch.float64), io.BytesIO()
    torch.save(net.state_dict(), file)
    file.seek(0)
    state = torch.load(file, weights_only=False)
    assert all(nn.parameter.is_lazy(p) and p.dtype == torch.float64 for p in state.values())
    other = nn.LazyLinear(3)
    other.load_state_dict(state)
    assert other.has_uninitialized_params() and other(torch.ones(2, 5)).shape == (2, 3)
