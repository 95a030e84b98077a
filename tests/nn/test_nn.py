"""Modules: what is registered, saved, moved, hooked and shown."""

import copy
import functools
import inspect
import math
import pickle
from collections import OrderedDict

import pytest

import pytensorlib as torch
from pytensorlib import nn
from pytensorlib.nn import functional as F


class Scale(nn.Module):
    """A parameter, a buffer that is saved, and one that is not."""

    def __init__(self, factor=2.0):
        super().__init__()
        self.factor = nn.Parameter(torch.tensor([factor]))
        self.register_buffer("seen", torch.zeros(1))
        self.register_buffer("scratch", torch.zeros(1), persistent=False)

    def forward(self, x, offset=0.0):
        return x * self.factor + offset


class Fails(nn.Module):
    def forward(self, x):
        raise ValueError("cannot")


def names(pairs):
    return [name for name, _ in pairs]


# Parameters


def test_parameter_is_a_leaf_tensor_that_requires_grad():
    p = nn.Parameter(torch.ones(2))
    assert isinstance(p, torch.Tensor)
    assert isinstance(p, nn.Parameter)
    assert p.requires_grad
    assert p.is_leaf
    assert not nn.Parameter(torch.ones(2), requires_grad=False).requires_grad


def test_parameter_shares_memory_with_its_data():
    data = torch.zeros(3)
    p = nn.Parameter(data)
    data.fill_(5)
    assert p.tolist() == [5, 5, 5]


def test_parameter_in_an_expression_gives_a_tensor():
    p = nn.Parameter(torch.ones(2))
    assert type(p * 2) is torch.Tensor
    assert not isinstance(p.detach(), nn.Parameter)


def test_parameter_repr_says_so():
    text = repr(nn.Parameter(torch.ones(2)))
    assert text.startswith("Parameter containing:\n")
    assert text.endswith("requires_grad=True)")


@pytest.mark.parametrize("clone", [copy.deepcopy, lambda p: pickle.loads(pickle.dumps(p))])
def test_parameter_copies_keep_class_and_requires_grad(clone):
    p = nn.Parameter(torch.tensor([1.0, 2.0]), requires_grad=False)
    c = clone(p)
    assert type(c) is nn.Parameter
    assert not c.requires_grad
    assert c.tolist() == [1, 2]
    c.data.fill_(7)
    assert p.tolist() == [1, 2]


def test_parameter_of_a_list_raises_type_error():
    with pytest.raises(TypeError, match="Tensor"):
        nn.Parameter([1.0])


def test_buffer_assigned_as_attribute_is_registered():
    m = nn.Module()
    m.kept = nn.Buffer(torch.ones(1))
    m.dropped = nn.Buffer(torch.ones(1), persistent=False)
    assert names(m.named_buffers()) == ["kept", "dropped"]
    assert list(m.state_dict()) == ["kept"]


# Registration and attributes


def test_named_parameters_walk_in_order_and_once():
    shared = nn.Linear(1, 1)
    m = nn.Sequential(shared, nn.Sequential(shared, nn.ReLU()))
    assert names(m.named_parameters()) == ["0.weight", "0.bias"]
    both = m.named_parameters(remove_duplicate=False)
    assert names(both) == ["0.weight", "0.bias", "1.0.weight", "1.0.bias"]
    assert names(m.named_parameters(prefix="net", recurse=True)) == ["net.0.weight", "net.0.bias"]
    assert names(m.named_parameters(recurse=False)) == []
    assert names(m.named_modules()) == ["", "0", "1", "1.1"]
    assert names(m.named_children()) == ["0", "1"]


def test_assigning_moves_a_name_between_kinds():
    m = nn.Module()
    m.x = 1
    m.x = nn.Parameter(torch.ones(1))
    assert names(m.named_parameters()) == ["x"]
    assert "x" not in m.__dict__
    m.x = None
    assert names(m.named_parameters()) == []
    m.y = nn.ReLU()
    assert names(m.named_children()) == ["y"]
    del m.y
    assert not hasattr(m, "y")


def test_assigning_a_wrong_value_names_what_is_expected():
    m = Scale()
    m.child = nn.ReLU()
    with pytest.raises(TypeError, match="as parameter 'factor'.*or None expected"):
        m.factor = torch.ones(1)
    with pytest.raises(TypeError, match="as buffer 'seen'"):
        m.seen = 3
    with pytest.raises(TypeError, match="as child module 'child'"):
        m.child = 3


def test_using_a_module_before_init_raises():
    class Early(nn.Module):
        def __init__(self):
            self.w = nn.Parameter(torch.ones(1))

    with pytest.raises(AttributeError, match=r"before Module.__init__\(\) call"):
        Early()


@pytest.mark.parametrize(
    ("name", "error"), [("a.b", KeyError), ("", KeyError), (3, TypeError), ("forward", KeyError)]
)
def test_bad_names_are_refused(name, error):
    m = nn.Module()
    for register in (m.register_buffer, m.register_parameter, m.add_module):
        with pytest.raises(error):
            register(name, None)


def test_missing_attribute_names_the_class():
    with pytest.raises(AttributeError, match="'Scale' object has no attribute 'nothing'"):
        Scale().nothing  # noqa: B018


def test_lookup_by_dotted_name():
    m = nn.Sequential(OrderedDict(block=nn.Sequential(Scale(), nn.ReLU())))
    assert m.get_submodule("block.1") is m.block[1]
    assert m.get_submodule("") is m
    assert m.get_parameter("block.0.factor") is m.block[0].factor
    assert m.get_buffer("block.0.seen") is m.block[0].seen
    with pytest.raises(AttributeError, match="has no attribute `missing`"):
        m.get_submodule("block.missing")
    with pytest.raises(AttributeError, match="is not an nn.Parameter"):
        m.get_parameter("block.0.seen")
    m.set_submodule("block.1", nn.Tanh())
    assert isinstance(m.block[1], nn.Tanh)


def test_constructor_refuses_what_it_does_not_know():
    with pytest.raises(TypeError, match="unexpected keyword argument 'colour'"):
        nn.Module(colour=1)
    with pytest.raises(TypeError, match="takes 1 positional argument but 2 were given"):
        nn.Module(1)


def test_forward_must_be_written():
    with pytest.raises(NotImplementedError, match='missing the required "forward"'):
        nn.Module()(1)


# Modes, conversion, gradients


def test_train_and_eval_reach_every_submodule():
    m = nn.Sequential(nn.Dropout(), nn.Sequential(nn.Dropout()))
    m.eval()
    assert not any(x.training for x in m.modules())
    x = torch.ones(4)
    assert torch.equal(m(x), x)
    assert m.train() is m
    assert all(x.training for x in m.modules())
    with pytest.raises(ValueError, match="boolean"):
        m.train(1)


def test_to_converts_only_floating_values_and_keeps_the_parameters():
    m = nn.BatchNorm1d(2)
    weight = m.weight
    m(torch.ones(3, 2)).sum().backward()
    assert m.to(torch.float64) is m
    assert m.weight is weight
    assert m.weight.dtype == m.weight.grad.dtype == m.running_mean.dtype == torch.float64
    assert m.num_batches_tracked.dtype == torch.int64
    assert m.half().weight.dtype == torch.float16
    assert m.bfloat16().weight.dtype == torch.bfloat16
    assert m.float().weight.dtype == torch.float32
    assert m.to("cpu", torch.float64).weight.dtype == torch.float64
    assert m.to(torch.ones(1)).weight.dtype == torch.float32
    with pytest.raises(TypeError, match="floating point or complex"):
        m.to(torch.int64)


def test_zero_grad_and_requires_grad():
    m = nn.Linear(2, 1)
    m(torch.ones(1, 2)).sum().backward()
    m.zero_grad(set_to_none=False)
    assert m.weight.grad.tolist() == [[0, 0]]
    m.zero_grad()
    assert m.weight.grad is None
    m.requires_grad_(False)
    assert not any(p.requires_grad for p in m.parameters())


def test_apply_visits_children_first():
    seen = []
    nn.Sequential(nn.ReLU(), nn.Tanh()).apply(lambda m: seen.append(type(m).__name__))
    assert seen == ["ReLU", "Tanh", "Sequential"]


# state_dict


def test_state_dict_round_trip():
    a, b = (nn.Sequential(nn.Linear(2, 3), nn.BatchNorm1d(3), Scale()) for _ in range(2))
    a[1].running_mean.fill_(3)
    result = b.load_state_dict(a.state_dict())
    assert str(result) == "<All keys matched successfully>"
    for (name, x), (other, y) in zip(a.state_dict().items(), b.state_dict().items()):
        assert name == other
        assert torch.equal(x, y)
    assert "2.scratch" not in a.state_dict()


def test_state_dict_shares_memory_and_is_detached():
    m = Scale()
    state = m.state_dict(prefix="p.")
    assert list(state) == ["p.factor", "p.seen"]
    assert not state["p.factor"].requires_grad
    state["p.factor"].fill_(9)
    assert m.factor.item() == 9
    assert m.state_dict(keep_vars=True)["factor"] is m.factor


def test_state_dict_metadata_holds_versions():
    state = nn.Sequential(nn.BatchNorm1d(2)).state_dict()
    assert dict(state._metadata) == {"": {"version": 1}, "0": {"version": 2}}


def test_load_state_dict_lists_everything_that_is_wrong():
    m = nn.Sequential(nn.Linear(1, 2))
    state = {"0.weight": torch.ones(3, 1), "0.other": torch.ones(1), "x": torch.ones(1)}
    with pytest.raises(RuntimeError) as caught:
        m.load_state_dict(state)
    text = str(caught.value)
    assert text.startswith("Error(s) in loading state_dict for Sequential:\n\t")
    assert 'Missing key(s) in state_dict: "0.bias".' in text
    assert 'Unexpected key(s) in state_dict: "x", "0.other".' in text or '"0.other", "x"' in text
    assert "size mismatch for 0.weight" in text
    del state["0.weight"]
    missing, unexpected = m.load_state_dict(state, strict=False)
    assert missing == ["0.weight", "0.bias"]
    assert sorted(unexpected) == ["0.other", "x"]
    with pytest.raises(TypeError, match="dict-like"):
        m.load_state_dict([1])


def test_load_state_dict_assign_takes_the_tensors():
    m = nn.Linear(2, 1)
    state = {"weight": torch.ones(1, 2, dtype=torch.float64), "bias": torch.zeros(1)}
    m.load_state_dict(state, assign=True)
    assert m.weight.dtype == torch.float64
    assert isinstance(m.weight, nn.Parameter)
    assert m.weight.data_ptr() == state["weight"].data_ptr()


def test_batch_norm_loads_a_checkpoint_without_a_batch_count():
    m = nn.BatchNorm1d(2)
    state = m.state_dict()
    old = {k: v for k, v in state.items() if k != "num_batches_tracked"}
    m.load_state_dict(old)
    state.pop("num_batches_tracked")  # these metadata say that it should be there
    with pytest.raises(RuntimeError, match="num_batches_tracked"):
        m.load_state_dict(state)


def test_extra_state_is_saved_and_given_back():
    class Extra(nn.Module):
        value = 0

        def get_extra_state(self):
            return {"value": self.value}

        def set_extra_state(self, state):
            self.value = state["value"]

    a, b = Extra(), Extra()
    a.value = 4
    b.load_state_dict(a.state_dict())
    assert b.value == 4
    with pytest.raises(RuntimeError, match="_extra_state"):
        b.load_state_dict({})


def test_state_dict_hooks_run_in_order():
    log = []
    m = nn.Sequential(Scale())
    m.register_state_dict_pre_hook(lambda m, prefix, keep_vars: log.append("before save"))
    m.register_state_dict_post_hook(lambda m, sd, prefix, local: log.append(len(sd)))
    m.register_load_state_dict_pre_hook(lambda m, sd, prefix, *rest: log.append("before load"))
    m.register_load_state_dict_post_hook(lambda m, keys: log.append(keys.missing_keys))
    m.load_state_dict(m.state_dict())
    assert log == ["before save", 2, "before load", []]


# Hooks


def test_forward_hooks_run_in_order_and_replace_values():
    log = []
    m = Scale()
    m.register_forward_pre_hook(lambda m, args: log.append("second"))
    m.register_forward_pre_hook(lambda m, args: (args[0] + 1,), prepend=True)
    handle = m.register_forward_hook(lambda m, args, out: out * 10)
    m.register_forward_hook(lambda m, args, out: log.append(out.item()))
    assert m(torch.ones(1)).item() == 40
    assert log == ["second", 40.0]
    handle.remove()
    handle.remove()
    assert m(torch.ones(1)).item() == 4


def test_hook_handle_is_a_context_manager():
    m = Scale()
    with m.register_forward_hook(lambda m, args, out: out * 0):
        assert m(torch.ones(1)).item() == 0
    assert m(torch.ones(1)).item() == 2


def test_hooks_with_kwargs_see_and_change_them():
    log = []
    m = Scale()
    m.register_forward_pre_hook(lambda m, args, kw: (args, {"offset": 5.0}), with_kwargs=True)
    m.register_forward_hook(lambda m, args, kw, out: log.append(kw), with_kwargs=True)
    assert m(torch.ones(1), offset=1.0).item() == 7
    assert log == [{"offset": 5.0}]
    m.register_forward_pre_hook(lambda m, args, kw: 3, with_kwargs=True)
    with pytest.raises(RuntimeError, match="None or a tuple"):
        m(torch.ones(1))


def test_always_call_hook_runs_when_forward_raises():
    log = []
    m = Fails()
    m.register_forward_hook(lambda m, args, out: log.append("plain"))
    m.register_forward_hook(lambda m, args, out: log.append(out), always_call=True)
    with pytest.raises(ValueError, match="cannot"):
        m(1)
    assert log == [None]


def test_global_hooks_see_every_module_until_removed():
    log = []
    handle = nn.modules.module.register_module_forward_hook(
        lambda m, args, out: log.append(type(m).__name__)
    )
    m = nn.Sequential(nn.ReLU())
    m(torch.ones(1))
    handle.remove()
    m(torch.ones(1))
    assert log == ["ReLU", "Sequential"]


def test_full_backward_hooks_see_both_gradients_and_replace_them():
    log = []
    m = Scale(3.0)
    m.register_full_backward_pre_hook(lambda m, go: (go[0] * 2,))
    m.register_full_backward_hook(lambda m, gi, go: log.append((gi[0].item(), go[0].item())))
    m.register_full_backward_hook(lambda m, gi, go: (gi[0] * 10,))
    x = torch.ones(1, requires_grad=True)
    m(x).sum().backward()
    assert log == [(6.0, 2.0)]
    assert x.grad.item() == 60
    assert m.factor.grad.item() == 2


def test_full_backward_hook_runs_where_no_input_needs_a_gradient():
    log = []
    m = Scale()
    m.register_full_backward_hook(lambda m, gi, go: log.append((gi, go[0].item())))
    m(torch.ones(1)).sum().backward()
    assert log == [((None,), 1.0)]


def test_two_kinds_of_backward_hooks_do_not_mix():
    m = Scale()
    m.register_full_backward_hook(lambda *args: None)
    with pytest.raises(RuntimeError, match="both regular backward hooks and full backward hooks"):
        m.register_backward_hook(lambda *args: None)


def test_errors_name_the_path_of_the_module():
    inner = nn.Sequential(nn.ReLU(), Fails())
    m = nn.Sequential(OrderedDict(encoder=inner))
    with pytest.raises(ValueError) as caught:
        m(torch.ones(1))
    assert any("encoder.1" in note for note in caught.value.__notes__)


# Showing and copying


def test_repr_nests_and_folds_repeats():
    m = nn.Sequential(nn.ModuleList([nn.Linear(1, 1) for _ in range(3)] + [nn.ReLU()]))
    assert repr(m) == (
        "Sequential(\n"
        "  (0): ModuleList(\n"
        "    (0-2): 3 x Linear(in_features=1, out_features=1, bias=True)\n"
        "    (3): ReLU()\n"
        "  )\n"
        ")"
    )
    assert repr(nn.Sequential()) == "Sequential()"


@pytest.mark.parametrize("clone", [copy.deepcopy, lambda m: pickle.loads(pickle.dumps(m))])
def test_copies_are_independent_and_equal(clone):
    m = nn.Sequential(nn.Linear(2, 2), nn.BatchNorm1d(2), nn.LSTM(2, 3))
    c = clone(m)
    assert repr(c) == repr(m)
    c[0].weight.data.fill_(0)
    assert m[0].weight.abs().sum().item() > 0
    x = torch.ones(4, 2)
    assert torch.equal(c[2](x)[0], m[2](x)[0])


def test_deepcopy_keeps_shared_parameters_shared():
    a = nn.Linear(1, 1)
    c = copy.deepcopy(nn.Sequential(a, a))
    assert c[0] is c[1]
    assert c[0] is not a


# Containers


def test_sequential_edits():
    s = nn.Sequential(nn.ReLU(), nn.Tanh())
    s.insert(1, nn.ELU())
    s.append(nn.GELU())
    assert [type(m).__name__ for m in s] == ["ReLU", "ELU", "Tanh", "GELU"]
    assert isinstance(s.pop(0), nn.ReLU)
    del s[0]
    assert list(s._modules) == ["0", "1"]
    s[0] = nn.SiLU()
    assert isinstance(s[-2], nn.SiLU)
    assert len(s[:1]) == 1
    assert len(s + s) == 4
    assert len(s * 3) == 6
    with pytest.raises(IndexError, match="out of range"):
        s[7]


def test_module_list_and_dict_register_their_modules():
    m = nn.ModuleList([nn.Linear(1, 1)])
    m.extend([nn.ReLU()])
    m.insert(0, nn.Tanh())
    assert names(m.named_parameters()) == ["1.weight", "1.bias"]
    with pytest.raises(TypeError, match="not a Module subclass"):
        m.append(3)
    d = nn.ModuleDict({"a": nn.Linear(1, 1)})
    d["b"] = nn.ReLU()
    assert list(d) == ["a", "b"]
    assert "a" in d
    assert isinstance(d.pop("b"), nn.ReLU)
    assert names(d.named_parameters()) == ["a.weight", "a.bias"]


def test_parameter_containers_register_their_tensors():
    p = nn.ParameterList([torch.ones(1), nn.Parameter(torch.zeros(2))])
    p.append(torch.ones(3))
    assert list(p.state_dict()) == ["0", "1", "2"]
    assert all(isinstance(x, nn.Parameter) for x in p)
    assert len(p[1:]) == 2
    d = nn.ParameterDict({"b": torch.ones(1), "a": torch.ones(2)})
    assert list(d) == ["a", "b"]
    assert list(d.state_dict()) == ["b", "a"] or list(d.state_dict()) == ["a", "b"]
    assert (d | nn.ParameterDict({"c": torch.ones(1)})).keys() == {"a": 0, "b": 0, "c": 0}.keys()
    with pytest.raises(RuntimeError, match="should not be called"):
        p(1)


# Layers against closed forms


def test_default_initialisation_is_within_its_bound_and_reproducible():
    torch.manual_seed(0)
    m = nn.Linear(16, 8)
    bound = 1 / math.sqrt(16)
    assert m.weight.abs().max().item() <= bound
    assert m.bias.abs().max().item() <= bound
    torch.manual_seed(0)
    drawn = torch.empty(8, 16).uniform_(-bound, bound)
    assert torch.allclose(m.weight, drawn, rtol=1e-6, atol=0)


def test_linear_is_a_product_and_a_sum():
    m = nn.Linear(2, 1)
    m.load_state_dict({"weight": torch.tensor([[2.0, 3.0]]), "bias": torch.tensor([4.0])})
    assert m(torch.tensor([[1.0, 10.0]])).item() == 36


def test_layer_norm_has_mean_zero_and_variance_one():
    y = nn.LayerNorm(64)(torch.randn(3, 64) * 5 + 2)
    assert torch.allclose(y.mean(-1), torch.zeros(3), atol=1e-5)
    assert torch.allclose(y.var(-1, unbiased=False), torch.ones(3), atol=1e-3)


def test_batch_norm_keeps_running_statistics():
    m = nn.BatchNorm1d(1, momentum=0.5)
    x = torch.tensor([[0.0], [4.0]])
    m(x)
    assert m.running_mean.item() == 1.0  # halfway from 0 to 2
    assert m.running_var.item() == 4.5  # halfway from 1 to the unbiased 8
    assert m.num_batches_tracked.item() == 1
    with pytest.raises(ValueError, match="Expected more than 1 value per channel"):
        m(x[:1])
    with pytest.raises(ValueError, match="expected 2D or 3D input"):
        m(torch.ones(1))


def test_dropout_keeps_the_mean_and_checks_its_probability():
    torch.manual_seed(0)
    y = F.dropout(torch.ones(10000), 0.25)
    kept = y != 0
    assert abs(kept.float().mean().item() - 0.75) < 0.03
    assert torch.allclose(y[kept], torch.full((int(kept.sum()),), 1 / 0.75))
    with pytest.raises(ValueError, match="between 0 and 1"):
        nn.Dropout(1.5)


def test_embedding_padding_row_is_zero_and_gets_no_gradient():
    m = nn.Embedding(4, 2, padding_idx=-1)
    assert m.weight[3].tolist() == [0, 0]
    m(torch.tensor([1, 3, 1])).sum().backward()
    assert m.weight.grad.tolist() == [[0, 0], [2, 2], [0, 0], [0, 0]]


def test_losses_match_their_formulas():
    x = torch.tensor([[1.0, 2.0, 3.0]])
    log_sum = math.log(sum(math.exp(v) for v in (1, 2, 3)))
    loss = nn.CrossEntropyLoss()(x, torch.tensor([2]))
    assert loss.item() == pytest.approx(log_sum - 3, rel=1e-5)
    assert nn.MSELoss(reduction="sum")(x, torch.zeros(1, 3)).item() == pytest.approx(14)
    assert nn.L1Loss(reduction="none")(x, torch.zeros(1, 3)).tolist() == [[1, 2, 3]]
    half = torch.tensor([0.5])
    assert nn.BCELoss()(half, torch.ones(1)).item() == pytest.approx(math.log(2), rel=1e-5)
    with pytest.raises(ValueError, match="not a valid value for reduction"):
        F.mse_loss(x, x, reduction="median")


def test_clip_grad_norm_scales_to_the_bound():
    a, b = nn.Parameter(torch.zeros(1)), nn.Parameter(torch.zeros(1))
    a.grad, b.grad = torch.tensor([3.0]), torch.tensor([4.0])
    assert nn.utils.clip_grad_norm_([a, b], 1.0).item() == pytest.approx(5)
    assert a.grad.item() == pytest.approx(0.6, rel=1e-4)
    assert b.grad.item() == pytest.approx(0.8, rel=1e-4)
    nn.utils.clip_grad_value_([a, b], 0.7)
    assert b.grad.item() == pytest.approx(0.7)


def test_parameters_to_vector_and_back():
    m = nn.Linear(2, 1)
    flat = nn.utils.parameters_to_vector(m.parameters())
    assert flat.shape == (3,)
    nn.utils.vector_to_parameters(torch.tensor([1.0, 2.0, 3.0]), m.parameters())
    assert m.weight.tolist() == [[1, 2]]
    assert m.bias.tolist() == [3]


@pytest.mark.parametrize(
    ("name", "shape", "text"),
    [
        ("max_pool1d", (2, 0, 5), r"Expected 2D or 3D .* for input, but got:\[2, 0, 5\]$"),
        ("avg_pool1d", (3, 0), r"Expected 2D or 3D .* for input, but got:\[3, 0\]$"),
        ("max_pool2d", (2, 3, 0, 5), r"Expected 3D or 4D .* for input, but got:\[2, 3, 0, 5\]$"),
        ("max_pool2d", (5,), "non-empty 3D or 4D .* tensor expected for input$"),
        ("avg_pool3d", (2, 3, 0, 5, 5), r"shape of .* non-batch dimension 1 has length zero!"),
    ],
)
def test_pooling_says_what_is_empty(name: str, shape: tuple[int, ...], text: str) -> None:
    with pytest.raises(RuntimeError, match=text):
        getattr(F, name)(torch.ones(shape), 2)


def test_skip_init_makes_the_module_and_takes_no_random_numbers():
    torch.manual_seed(1)
    wanted = torch.rand(3)
    torch.manual_seed(1)
    layer = nn.utils.skip_init(nn.Linear, 3, 2, bias=False)
    assert layer.weight.shape == (2, 3)
    assert torch.equal(torch.rand(3), wanted)
    with pytest.raises(RuntimeError, match="'device' arg"):
        nn.utils.skip_init(nn.ReLU)


def test_signature_of_a_module_is_that_of_any_call():
    net = nn.Sequential(nn.Linear(2, 2))
    assert str(inspect.signature(net)) == "(*args, **kwargs)"
    assert str(inspect.signature(functools.partial(net[0]))) == "(*args, **kwargs)"
    assert list(inspect.signature(nn.Linear).parameters)[:2] == ["in_features", "out_features"]
    assert list(inspect.signature(net[0].forward).parameters) == ["input"]

    class Own(nn.Module):
        def __call__(self, x, y=3):
            return x

    assert str(inspect.signature(Own())) == "(x, y=3)"


def test_list_of_parameters_without_memory_prints_as_pytorchs():
    given = [torch.ones(1, dtype=torch.float64, device="meta"), torch.ones(2, 3)]
    # PyTorch 2.13's text.
    assert repr(nn.ParameterList(map(nn.Parameter, given))) == (
        "ParameterList(\n"
        "    (0): Parameter containing: [torch.float64 of size 1]\n"
        "    (1): Parameter containing: [torch.float32 of size 2x3]\n"
        ")"
    )
