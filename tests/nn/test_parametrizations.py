"""Parametrized weights, pruning, and modules called with other weights."""

import copy
import weakref

import numpy as np
import pytest

import pytensorlib as torch
from pytensorlib import nn
from pytensorlib.nn.utils import parametrizations, parametrize, prune


class Double(nn.Module):
    def forward(self, x):
        return 2 * x

    def right_inverse(self, y):
        return y / 2


def test_parametrized_weight_is_computed_assigned_and_removed():
    net = nn.Linear(2, 3)
    weight = net.weight
    before = weight.detach().clone()
    assert parametrize.register_parametrization(net, "weight", Double()) is net
    assert torch.equal(net.weight, before)
    assert net.parametrizations.weight.original is weight
    assert list(net.state_dict()) == ["bias", "parametrizations.weight.original"]
    assert type(net).__name__ == "ParametrizedLinear" and isinstance(net, nn.Linear)
    assert parametrize.type_before_parametrizations(net) is nn.Linear
    net(torch.ones(2)).sum().backward()
    assert torch.equal(weight.grad, torch.full((3, 2), 2.0))
    net.weight = torch.ones(3, 2)
    assert torch.equal(weight.detach(), torch.full((3, 2), 0.5))
    parametrize.register_parametrization(net, "weight", Double())
    assert torch.equal(net.weight, torch.full((3, 2), 2.0))
    parametrize.remove_parametrizations(net, "weight")
    assert type(net) is nn.Linear and net.weight is weight
    assert torch.equal(net.weight, torch.full((3, 2), 2.0))


class AddOne(nn.Module):
    def forward(self, x):
        return x + 1


def test_second_parametrization_without_an_inverse_of_the_first_takes_what_it_makes():
    net = nn.Linear(2, 2)
    start = net.weight.detach().clone()
    for module in (AddOne(), Double()):
        parametrize.register_parametrization(net, "weight", module)
    assert torch.equal(net.weight, 2 * (start + 1))
    assert torch.equal(net.parametrizations.weight.original, start)
    with pytest.raises(RuntimeError, match="AddOne does not implement right_inverse"):
        net.weight = start
    parametrize.remove_parametrizations(net, "weight", leave_parametrized=False)
    assert torch.equal(net.weight, start)


def test_parametrized_start_of_a_parametrization_is_removed_again():
    net = parametrize.register_parametrization(nn.Linear(2, 2), "weight", AddOne())
    start = net.parametrizations.weight.original.detach().clone()
    parametrize.register_parametrization(net.parametrizations.weight, "original", Double())
    assert torch.equal(net.weight, start + 1)  # Double has an inverse, so its start is a half
    parametrize.remove_parametrizations(net.parametrizations.weight, "original", False)
    assert type(net.parametrizations.weight) is parametrize.ParametrizationList
    parametrize.remove_parametrizations(net, "weight", leave_parametrized=False)
    assert torch.equal(net.weight, start / 2)


def test_parametrized_buffer_is_the_same_buffer_when_removed():
    net = nn.BatchNorm1d(3)
    mean = net.running_mean
    parametrize.register_parametrization(net, "running_mean", AddOne())
    assert torch.equal(net.running_mean, torch.ones(3))
    parametrize.remove_parametrizations(net, "running_mean")
    assert net.running_mean is mean and torch.equal(mean, torch.ones(3))


class Inverse(nn.Module):
    """Keeps a tensor, and has an inverse that does not."""

    def __init__(self, inverse):
        super().__init__()
        self.right_inverse = inverse

    def forward(self, x):
        return x


@pytest.mark.parametrize(
    ("inverse", "text"),
    [
        (lambda x: None, "Tensor or a Sequence of"),
        (lambda x: (None, x), "of the sequence with type"),
        (lambda x: x.bool(), "outputs one tensor, it may not change the dtype"),
        (lambda x: x.to("meta"), "outputs one tensor, it may not change the device"),
    ],
)
def test_first_parametrization_with_a_wrong_inverse_is_refused(inverse, text):
    net = nn.Linear(2, 2)
    with pytest.raises(ValueError, match=text):
        parametrize.register_parametrization(net, "weight", Inverse(inverse))
    assert not parametrize.is_parametrized(net)


@pytest.mark.parametrize(
    ("inverse", "text"),
    [
        (lambda x: (x, x), "right_inverse must return a tensor"),
        (lambda x: x.bool(), "must have the same dtype"),
        (lambda x: x[:-1], "must have the same shape"),
    ],
)
def test_second_parametrization_with_a_wrong_inverse_is_refused(inverse, text):
    net = parametrize.register_parametrization(nn.Linear(2, 2), "weight", AddOne())
    with pytest.raises(ValueError, match=text):
        parametrize.register_parametrization(net, "weight", Inverse(inverse))
    assert len(net.parametrizations.weight) == 1


@pytest.mark.parametrize(
    ("made", "text"),
    [
        (lambda x: 2, "must return a tensor"),
        (lambda x: x.bool(), "may not change the dtype"),
        (lambda x: x[:-1], "may not change the shape"),
    ],
)
@pytest.mark.parametrize("first", [True, False])
def test_parametrization_that_changes_the_kind_of_tensor_is_refused(made, text, first):
    net = nn.Linear(2, 2)
    if not first:
        parametrize.register_parametrization(net, "weight", AddOne())
    wrong = nn.Identity()
    wrong.forward = made
    with pytest.raises(ValueError, match=text):
        parametrize.register_parametrization(net, "weight", wrong)


def test_transferred_parametrizations_make_the_same_of_missing_parameters():
    net, other = nn.Linear(3, 3), nn.Linear(3, 3)
    net.more = nn.Parameter(torch.randn(3, 3))
    for name in ("weight", "more"):
        for module in (AddOne(), Double()):
            parametrize.register_parametrization(net, name, module)
    parametrize.transfer_parametrizations_and_params(net, other)
    for name in ("weight", "more"):
        assert torch.equal(getattr(net, name), getattr(other, name))
    parametrize.remove_parametrizations(other, "weight")
    assert parametrize.is_parametrized(net, "weight")


def test_orthogonal_weight_of_another_shape_is_refused():
    net = parametrizations.orthogonal(nn.Linear(3, 4))
    with pytest.raises(ValueError, match=r"of shape torch.Size\(\[4, 3\]\)"):
        net.weight = torch.randn(5, 5)


def test_parametrization_that_changes_the_shape_is_refused_unless_unsafe():
    class Flat(nn.Module):
        def forward(self, x):
            return x.flatten()

    with pytest.raises(ValueError, match="may not change the shape"):
        parametrize.register_parametrization(nn.Linear(2, 3), "weight", Flat())
    net = parametrize.register_parametrization(nn.Linear(2, 3), "weight", Flat(), unsafe=True)
    assert net.weight.shape == (6,)
    with pytest.raises(ValueError, match="does not have a parameter"):
        parametrize.register_parametrization(net, "no", Flat())


def test_copies_are_their_own_and_pickles_are_refused():
    net = parametrizations.weight_norm(nn.Linear(2, 3))
    twin = copy.deepcopy(net)
    parametrize.remove_parametrizations(twin, "weight")
    assert parametrize.is_parametrized(net, "weight")
    assert torch.equal(net.weight, twin.weight)
    with pytest.raises(RuntimeError, match="state_dict"):
        torch.save(net, "/dev/null")


def test_cached_tensors_are_computed_once():
    calls = []

    class Count(Double):
        def forward(self, x):
            calls.append(1)
            return super().forward(x)

    net = parametrize.register_parametrization(nn.Linear(1, 1), "weight", Count())
    calls.clear()
    with parametrize.cached():
        assert net.weight is net.weight
    assert len(calls) == 1
    assert net.weight is not net.weight


@pytest.mark.parametrize("shape", [(4, 4), (5, 3), (3, 5), (2, 4, 3)])
@pytest.mark.parametrize("kind", ["matrix_exp", "cayley", "householder"])
@pytest.mark.parametrize("trivial", [True, False])
def test_orthogonal_weight_stays_orthogonal(shape, kind, trivial):
    torch.manual_seed(0)
    net = nn.Module()
    net.weight = nn.Parameter(torch.randn(shape, dtype=torch.float64))
    parametrizations.orthogonal(net, orthogonal_map=kind, use_trivialization=trivial)
    n, k = shape[-2:]

    def check():
        q = net.weight if n >= k else net.weight.mT
        one = torch.eye(min(n, k), dtype=torch.float64)
        torch.testing.assert_close(q.mT @ q, one.expand_as(q.mT @ q), atol=1e-12, rtol=0)

    check()
    step = torch.optim.SGD(net.parameters(), lr=0.1)
    net.weight.sum().backward()
    step.step()
    check()
    if trivial or kind == "householder":
        wanted = torch.linalg.qr(torch.randn(shape, dtype=torch.float64).mT).Q.mT
        wanted = torch.linalg.qr(torch.randn(shape, dtype=torch.float64)).Q if n >= k else wanted
        net.weight = wanted
        torch.testing.assert_close(net.weight, wanted, atol=1e-12, rtol=0)
    else:
        with pytest.raises(NotImplementedError, match="use_trivialization"):
            net.weight = net.weight.detach()


def test_exponential_of_skew_matrices_is_scipys():
    scipy = pytest.importorskip("scipy.linalg")
    rng = np.random.default_rng(0)
    for scale in (0.0, 0.1, 1.0, 30.0):
        a = rng.standard_normal((6, 6)) * scale
        a = a - a.T
        found = parametrizations._exponential(torch.from_numpy(a)).numpy()
        np.testing.assert_allclose(found, scipy.expm(a), atol=2e-12)


def test_weight_norm_has_norms_and_directions():
    torch.manual_seed(0)
    for dim in (0, 1, None):
        net = parametrizations.weight_norm(nn.Linear(3, 2), dim=dim)
        v, g = net.parametrizations.weight.original1, net.parametrizations.weight.original0
        axis = {0: 1, 1: 0, None: None}[dim]
        norm = np.linalg.norm(v.detach().numpy(), axis=axis, keepdims=dim is not None)
        want = v.detach().numpy() * (g.detach().numpy() / norm)
        np.testing.assert_allclose(net.weight.detach().numpy(), want, rtol=1e-6)
    with pytest.warns(FutureWarning):
        old = nn.utils.weight_norm(nn.Linear(3, 2))
    new = parametrizations.weight_norm(nn.Linear(3, 2))
    new.load_state_dict(old.state_dict())
    x = torch.ones(3)
    assert torch.equal(new(x), old(x))
    old.weight_g.data *= 2
    assert torch.allclose(old(x) - old.bias, 2 * (new(x) - new.bias))
    assert list(dict(nn.utils.remove_weight_norm(old).named_parameters())) == ["bias", "weight"]
    from pytensorlib.nn.utils.weight_norm import WeightNorm

    assert WeightNorm and callable(nn.utils.weight_norm)


@pytest.mark.parametrize("apply", [parametrizations.spectral_norm, nn.utils.spectral_norm])
def test_spectral_norm_comes_to_one(apply):
    torch.manual_seed(0)
    for layer in (nn.Linear(6, 4), nn.ConvTranspose2d(3, 5, 2), nn.Conv1d(3, 4, 2)):
        weight = layer.weight.detach().numpy().copy()
        net = apply(layer)
        x = torch.randn(1, 3, 4, 4) if weight.ndim == 4 else torch.randn(1, 3, 6)
        for _ in range(200):
            net(x)
        rows = np.moveaxis(weight, 1, 0) if weight.ndim == 4 else weight
        sigma = np.linalg.norm(rows.reshape(rows.shape[0], -1), 2)
        np.testing.assert_allclose(net.weight.detach().numpy(), weight / sigma, rtol=1e-4)


def test_pruning_masks_what_it_chooses_and_goes_on_from_there():
    net = nn.Linear(4, 3)
    with torch.no_grad():
        net.weight.copy_(torch.arange(12.0).reshape(3, 4) + 1)
    prune.l1_unstructured(net, "weight", amount=0.25)
    assert net.weight_mask.flatten().tolist() == [0] * 3 + [1] * 9
    prune.ln_structured(net, "weight", amount=1, n=2, dim=0)
    assert net.weight_mask.sum(1).tolist() == [0, 4, 4]
    prune.l1_unstructured(net, "weight", amount=2)
    assert net.weight_mask.sum(1).tolist() == [0, 2, 4]
    net(torch.ones(4)).sum().backward()
    assert torch.equal(net.weight_orig.grad, net.weight_mask)
    assert prune.is_pruned(net)
    prune.remove(net, "weight")
    assert not prune.is_pruned(net) and isinstance(net.weight, nn.Parameter)
    assert int((net.weight == 0).sum()) == 6
    with pytest.raises(ValueError, match="has to be pruned"):
        prune.remove(net, "weight")
    with pytest.raises(ValueError, match="amount"):
        prune.random_unstructured(net, "weight", amount=1.5)
    with pytest.raises(ValueError, match="smaller than the number"):
        prune.random_unstructured(net, "weight", amount=100)
    assert isinstance(net.weight, nn.Parameter)


def test_functional_call_uses_what_it_is_given_and_leaves_the_module():
    net = nn.Sequential(nn.Linear(2, 2), nn.BatchNorm1d(2))
    net[0].bias = nn.Parameter(torch.zeros(2))
    own = {k: v.clone() for k, v in net.state_dict().items()}
    given = {k: v.clone() for k, v in net.state_dict().items()}
    given["0.weight"] = (3 * torch.eye(2)).requires_grad_()
    x = torch.tensor([[1.0, 2.0], [3.0, 5.0]])
    torch.func.functional_call(net, given, x).square().sum().backward()
    assert given["0.weight"].grad is not None and net[0].weight.grad is None
    assert given["1.num_batches_tracked"].item() == 1
    assert all(torch.equal(v, own[k]) for k, v in net.state_dict().items())
    with pytest.raises(RuntimeError, match=r"Missing key\(s\)"):
        torch.func.functional_call(net, {"0.weight": x}, x, strict=True)
    with pytest.raises(ValueError, match="multiple dictionaries"):
        torch.func.functional_call(net, [given, given], x)


def test_tied_weights_follow_one_name():
    class Tied(nn.Module):
        def __init__(self):
            super().__init__()
            self.a = nn.Parameter(torch.ones(1))
            self.b = self.a

        def forward(self, x):
            return self.a * x + self.b

    net, three = Tied(), torch.full((1,), 3.0)
    assert torch.func.functional_call(net, {"a": three}, torch.ones(1)).item() == 6
    apart = torch.func.functional_call(net, {"a": three}, torch.ones(1), tie_weights=False)
    assert apart.item() == 4
    with pytest.raises(ValueError, match="tied"):
        torch.func.functional_call(net, {"a": three, "b": torch.ones(1)}, torch.ones(1))


def test_states_of_modules_are_stacked():
    models = [nn.BatchNorm1d(2) for _ in range(3)]
    params, buffers = torch.func.stack_module_state(models)
    assert params["weight"].shape == (3, 2) and params["weight"].requires_grad
    assert params["weight"].is_leaf and buffers["num_batches_tracked"].shape == (3,)
    with pytest.raises(RuntimeError, match="at least one"):
        torch.func.stack_module_state([])


class Scaled(nn.Module):
    """Has a parameter, a buffer, and attributes that are neither."""

    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(1, 1)
        self.register_buffer("shift", torch.ones(1))
        self.factor = torch.full((1,), 2.0)
        self.rate = 0.5

    def forward(self, x, *, more=0):
        return self.layer(x) * self.factor + self.shift + getattr(self, "extra", 0) + more


def test_functional_call_takes_attributes_unknown_names_and_no_tensor_at_all():
    net, x = Scaled(), torch.tensor([[3.0]])
    call = torch.func.functional_call
    given = {"layer.weight": torch.ones(1, 1), "layer.bias": None, "factor": torch.zeros(1)}
    assert call(net, given, x).item() == 1
    assert call(net, {**given, "extra": torch.tensor(5.0)}, x).item() == 6
    assert call(net, {**given, "factor": torch.ones(1)}, (x,), {"more": 1}).item() == 5
    assert not hasattr(net, "extra") and net.factor.item() == 2
    assert net.layer.bias is not None and net.shift is not None


def test_functional_call_hands_back_what_the_module_assigned():
    class Counter(nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("count", torch.zeros(()))

        def forward(self, x):
            self.count = self.count + 1
            return x + self.count

    net, given = Counter(), {"count": torch.tensor(4.0)}
    assert torch.func.functional_call(net, given, torch.zeros(())).item() == 5
    assert given["count"].item() == 5 and net.count.item() == 0


@pytest.mark.parametrize(
    ("given", "kind", "text"),
    [
        ({"layer.weight": "no"}, TypeError, "no is not an instance of torch.Tensor"),
        ({"rate": torch.ones(1)}, TypeError, "attribute `rate`: 0.5 is not an instance"),
        ({"other.weight": torch.ones(1)}, AttributeError, "Scaled has no attribute `other`"),
        ({"shift.weight": torch.ones(1)}, TypeError, "submodule `shift`: "),
        ({"": torch.ones(1)}, KeyError, "empty string"),
    ],
)
def test_functional_call_with_what_cannot_be_replaced_leaves_the_module(given, kind, text):
    net = Scaled()
    weight = net.layer.weight
    with pytest.raises(kind, match=text):
        torch.func.functional_call(net, {"layer.weight": torch.ones(1, 1), **given}, torch.ones(1))
    assert net.layer.weight is weight


def test_functional_call_that_is_strict_names_missing_and_unexpected_keys():
    net, given = Scaled(), {"layer.weight": torch.ones(1, 1), "extra": torch.ones(1)}
    with pytest.raises(RuntimeError) as told:
        torch.func.functional_call(net, given, torch.ones(1), strict=True)
    assert str(told.value) == (
        "Error(s) in reparametrizing for Scaled:\n\tUnexpected key(s): 'extra'.\n\t"
        "Missing key(s): 'layer.bias', 'shift'."
    )


def test_stateless_functional_call_says_that_it_has_another_name():
    from pytensorlib.nn.utils import stateless

    with pytest.warns(FutureWarning, match="Please use `torch.func.functional_call` instead"):
        found = stateless.functional_call(nn.Identity(), {}, torch.ones(1))
    assert found.item() == 1
    with pytest.raises(RuntimeError, match="can't be used with nn.DataParallel"):
        torch.func.functional_call(nn.DataParallel(nn.Identity()), {}, torch.ones(1))


def test_amounts_to_prune_are_checked_and_counted():
    for good in (0.34, 1500, 0, 0.0, np.float32(0.5)):
        prune._validate_pruning_amount_init(good)
    with pytest.raises(TypeError, match="Invalid type for amount: half"):
        prune._validate_pruning_amount_init("half")
    for wrong in (1.1, 20.0, -10):
        with pytest.raises(ValueError, match="either be a float in the range"):
            prune._validate_pruning_amount_init(wrong)
    with pytest.raises(ValueError, match="smaller than the number of parameters to prune=19"):
        prune._validate_pruning_amount(20, 19)
    for amount, size in ((0.3, 0), (19, 20), (0, 0), (1, 1)):
        prune._validate_pruning_amount(amount, size)
    counted = [
        prune._compute_nparams_toprune(*a) for a in ((0, 15), (10, 15), (1.0, 15), (0.4, 17))
    ]
    assert counted == [0, 10, 15, 7]
    with pytest.raises(ValueError, match="multidimensional tensors. Found tensor of shape"):
        prune._validate_structured_pruning(torch.ones(3))
    t = torch.tensor([[3.0, 4.0], [0.0, 2.0]])
    assert prune._compute_norm(t, 1, 0).tolist() == [7.0, 2.0]


# ------------------------------------------------------------- exchanging tensors


class Doubled(torch.Tensor):
    """A tensor that holds another, and gives twice its values."""

    @staticmethod
    def __new__(cls, inner):
        return torch.Tensor._make_wrapper_subclass(
            cls, inner.shape, dtype=inner.dtype, requires_grad=inner.requires_grad
        )

    def __init__(self, inner):
        self.inner = inner

    def __tensor_flatten__(self):
        return ["inner"], None

    @staticmethod
    def __tensor_unflatten__(inner, meta, size, stride):
        return Doubled(inner["inner"])

    @classmethod
    def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
        args = [2 * a.inner if isinstance(a, Doubled) else a for a in args]
        out = func(*args, **(kwargs or {}))
        if func is torch.ops.aten.detach.default:
            return Doubled(out / 2)
        return out


@pytest.fixture(params=[False, True])
def swaps(request):
    torch.__future__.set_swap_module_params_on_conversion(request.param)
    yield request.param
    torch.__future__.set_swap_module_params_on_conversion(False)


def test_parameter_becomes_a_wrapper_and_stays_the_same_object(swaps):
    net = nn.Linear(2, 2)
    weight, values = net.weight, net.weight.tolist()
    net._apply(Doubled)
    assert net.weight is weight and type(weight) is Doubled and isinstance(weight, nn.Parameter)
    assert weight.requires_grad and weight.inner.tolist() == values


def test_exchanged_parameters_and_gradients_stay_the_same_objects():
    torch.__future__.set_swap_module_params_on_conversion(True)
    try:
        net = nn.Linear(2, 2)
        net(torch.ones(1, 2)).sum().backward()
        weight, grad = net.weight, net.weight.grad
        net.double()
        assert net.weight is weight and weight.grad is grad
        assert weight.dtype == grad.dtype == torch.float64
        ref = weakref.ref(weight)
        with pytest.raises(RuntimeError, match=r"_apply\(\): Couldn't swap Linear.weight"):
            net.float()
        assert weight.grad is grad and ref() is weight
    finally:
        torch.__future__.set_swap_module_params_on_conversion(False)


def test_inverse_of_a_parametrization_may_wrap(swaps):
    class Wraps(nn.Module):
        def forward(self, x):
            return x

        def right_inverse(self, x):
            return Doubled(x.detach())

    net = nn.Linear(2, 2)
    values = net.weight.tolist()
    parametrize.register_parametrization(net, "weight", Wraps(), unsafe=True)
    assert type(net.parametrizations.weight.original) is Doubled
    assert net.parametrizations.weight.original.inner.tolist() == values


def test_a_pruning_method_without_a_mask_cannot_be_made():
    class Unfinished(prune.BasePruningMethod):
        PRUNING_TYPE = "unstructured"

    with pytest.raises(TypeError, match="abstract class Unfinished .*compute_mask"):
        Unfinished()
