"""Names of PyTorch's that programs seldom use."""

from __future__ import annotations

import copy
import warnings
from pathlib import Path
from typing import Any

import pytest

import pytensorlib as torch
from pytensorlib import nn
from pytensorlib.autograd import graph
from pytensorlib.autograd.gradcheck import get_analytical_jacobian, get_numerical_jacobian
from pytensorlib.nn import attention
from pytensorlib.nn import functional as F
from pytensorlib.nn.attention import bias, varlen

# Recorded from PyTorch 2.13.
HASHES: list[tuple[Any, Any, Any]] = [
    (torch.float32, (), 4614500768194494464),
    (torch.float64, 1, [13831117405608214528, 18444492273895866368]),
    (torch.float16, 0, [4609434218613702656, 13832806255468478464, 13837872805049270272]),
]


@pytest.mark.parametrize(("dtype", "dim", "expected"), HASHES)
def test_hash_tensor_is_the_exclusive_or_of_64_bits(dtype: Any, dim: Any, expected: Any) -> None:
    x = torch.tensor([[1.5, -2.0, 3.25], [0.0, float("nan"), -0.0]], dtype=dtype)
    found = torch.hash_tensor(x, dim)
    assert found.dtype == torch.uint64
    assert found.tolist() == expected
    assert torch.equal(x.hash_tensor(dim), found)
    assert torch.hash_tensor(x.t().contiguous().t(), dim).tolist() == expected


def test_hash_tensor_of_integers_and_of_what_has_none() -> None:
    y = torch.tensor([[1, 2, 3], [-4, 5, 6]])
    for dtype, expected in ((torch.int8, 2**64 - 1), (torch.uint8, 255), (torch.bool, 0)):
        assert torch.hash_tensor(y.to(dtype)).item() == expected
    assert torch.hash_tensor(y, 0, keepdim=True).shape == (1, 3)
    out = torch.empty(0, dtype=torch.uint64)
    assert torch.hash_tensor(y, out=out) is out
    assert out.item() == 2**64 - 1
    assert torch.hash_tensor(torch.tensor(3)).item() == 3
    assert torch.hash_tensor(torch.zeros(2, 0), 0).shape == (0,)
    for error, args in (
        (IndexError, (torch.zeros(0, 3), 0)),
        (RuntimeError, (torch.zeros(0, 3),)),
        (IndexError, (y, 2)),
        (RuntimeError, (y, (0, 0))),
        (NotImplementedError, (torch.tensor([1j]),)),
    ):
        with pytest.raises(error):
            torch.hash_tensor(*args)
    with pytest.raises(RuntimeError, match="mode: 1"):
        torch.hash_tensor(y, mode=1)


def test_slice_inverse_gives_the_whole_back() -> None:
    x = torch.arange(6)
    assert torch.slice_inverse(x[2:4], x, 0, 2, 4).data_ptr() == x.data_ptr()
    assert x[::2].slice_inverse(x, 0, 0, 6, 2).tolist() == x.tolist()


def test_from_file_shares_what_is_written_where_it_may(tmp_path: Path) -> None:
    path = tmp_path / "numbers"
    x = torch.from_file(str(path), shared=True, size=4)
    x.copy_(torch.arange(4.0))
    assert torch.from_file(path, size=4).tolist() == [0.0, 1.0, 2.0, 3.0]
    private = torch.from_file(path, size=2, dtype=torch.float32)
    private[0] = 9
    assert torch.from_file(path, size=1).item() == 0.0
    with pytest.raises(RuntimeError, match="unable to open"):
        torch.from_file(tmp_path / "none", size=1)
    with pytest.raises(RuntimeError):
        torch.from_file(path, size=100)


def test_grad_dtype_is_the_tensors() -> None:
    x = torch.ones(2, requires_grad=True)
    assert x.grad_dtype == torch.float32
    x.grad_dtype = torch.float32
    with pytest.raises(NotImplementedError, match="gradients have the dtype of their tensor"):
        x.grad_dtype = torch.float64
    with pytest.raises(RuntimeError, match="must be a torch.dtype or None, but got int"):
        x.grad_dtype = 3
    with pytest.raises(RuntimeError, match="only be set on leaf"):
        (x * 2).grad_dtype = torch.float32


def test_cond_and_while_loop_run_and_are_differentiated() -> None:
    x = torch.tensor(2.0, requires_grad=True)
    y = torch.cond(x > 1, lambda x: x**2, lambda x: x, (x,))
    y.backward()
    assert x.grad.item() == 4.0
    count, z = torch.while_loop(lambda i, z: i < 3, lambda i, z: (i + 1, z * x), (0, x))
    assert count == 3
    assert z.item() == 16.0
    with pytest.raises(RuntimeError, match="one element"):
        torch.cond(torch.ones(2) > 0, int, int)
    with pytest.raises(RuntimeError, match="callable"):
        torch.cond(True, 1, 2)
    with pytest.raises(RuntimeError, match="as many values"):
        torch.while_loop(lambda i: True, lambda i: (i, i), (1,))


def test_old_jacobians_agree() -> None:
    x = torch.tensor([1.0, 2.0], dtype=torch.float64, requires_grad=True)
    f = lambda x: x**2 * x.sum()  # noqa: E731
    expected = [[7.0, 4.0], [1.0, 16.0]]
    with pytest.warns(FutureWarning):
        (numerical,) = get_numerical_jacobian(lambda xs: f(xs[0]), (x,), eps=1e-6)
    with pytest.warns(FutureWarning):
        (analytical,), reentrant, sizes, types = get_analytical_jacobian(x, f(x))
    assert analytical.tolist() == expected
    assert torch.allclose(numerical, analytical)
    assert reentrant
    assert sizes
    assert types
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with pytest.raises(ValueError, match="grad_out to be 1"):
            get_analytical_jacobian(x, f(x), grad_out=2.0)


def test_saved_tensors_may_change_where_that_is_allowed() -> None:
    x = torch.tensor([2.0, 3.0], requires_grad=True)
    with graph.allow_mutation_on_saved_tensors():
        y = x.clone()
        z = (y**3).sum()
        y.zero_()
        (g,) = torch.autograd.grad(z, x, create_graph=True)
        assert g.tolist() == [12.0, 27.0]
        assert torch.autograd.grad(g.sum(), x)[0].tolist() == [12.0, 18.0]
        late = (x**2).sum()
        with (
            pytest.raises(RuntimeError, match="cannot be nested"),
            graph.allow_mutation_on_saved_tensors(),
        ):
            pass
    with pytest.raises(AssertionError, match="outside of the 'allow_mutation"):
        late.backward()


def test_causal_bias_is_a_mask_that_attention_knows() -> None:
    q, k = torch.randn(1, 2, 3, 4), torch.randn(1, 2, 5, 4)
    for make, diagonal in ((bias.causal_upper_left, 0), (bias.causal_lower_right, 2)):
        mask = make(3, 5)
        assert isinstance(mask, bias.CausalBias)
        plain = torch.ones(3, 5, dtype=torch.bool).tril(diagonal)
        assert mask.tolist() == plain.tolist()
        found = F.scaled_dot_product_attention(q, k, k, attn_mask=mask)
        assert type(found) is torch.Tensor
        assert torch.allclose(found, F.scaled_dot_product_attention(q, k, k, plain), atol=1e-6)
    with pytest.raises(ValueError, match="causal=True"):
        F.scaled_dot_product_attention(q, k, k, mask, is_causal=True)
    with pytest.warns(UserWarning, match="produce NaNs"):
        bias.causal_lower_right(3, 2)
    with pytest.raises(AssertionError):
        bias.causal_upper_left(1)


@pytest.mark.parametrize("window", [(-1, -1), (-1, 0), (1, 0), (1, 1)])
def test_attention_of_lengths_is_that_of_each_sequence(window: tuple[int, int]) -> None:
    q, k, v = torch.randn(7, 4, 8), torch.randn(9, 2, 8), torch.randn(9, 2, 8)
    ends, key_ends = [0, 3, 7], [0, 4, 9]
    starts, key_starts = torch.tensor(ends), torch.tensor(key_ends)
    options = {"window_size": window, "enable_gqa": True}
    found, lse = varlen.varlen_attn(
        q, k, v, starts, key_starts, 4, 5, return_aux=varlen.AuxRequest(lse=True), **options
    )
    for n in range(2):
        a, b, c, d = ends[n], ends[n + 1], key_ends[n], key_ends[n + 1]
        i = torch.arange(b - a).view(-1, 1) + (d - c) - (b - a)
        j = torch.arange(d - c)
        seen = (j <= i + window[1]) | (window[1] < 0)
        seen = seen & ((j >= i - window[0]) | (window[0] < 0))
        keys, values = (x[c:d].repeat_interleave(2, 1).transpose(0, 1) for x in (k, v))
        scores = q[a:b].transpose(0, 1) @ keys.mT / 8**0.5
        scores = scores.masked_fill(~seen, -torch.inf)
        assert torch.allclose(found[a:b], (scores.softmax(-1) @ values).transpose(0, 1), atol=1e-5)
        assert torch.allclose(lse[:, a:b], scores.logsumexp(-1), atol=1e-5)
    # The same from pages of two entries, of which some are not used.
    pages = torch.zeros(6, 2, 2, 8)
    table = torch.tensor([[3, 1, 0], [5, 0, 4]])
    for n in range(2):
        for p in range(3):
            part = k[key_ends[n] : key_ends[n + 1]][2 * p : 2 * p + 2]
            if len(part):
                pages[table[n, p], : len(part)] = part
    used = torch.tensor([4, 5])
    paged = varlen.varlen_attn(
        q, pages, pages, starts, None, 4, 5, seqused_k=used, block_table=table, **options
    )
    same = varlen.varlen_attn(q, k, k, starts, key_starts, 4, 5, **options)
    assert torch.allclose(paged, same, atol=1e-6)
    with pytest.raises(ValueError, match="same number of heads"):
        varlen.varlen_attn(q, k, v, starts, key_starts, 4, 5)


def test_flash_attention_registry_runs_what_it_is_given() -> None:
    log: list[str] = []

    class Handle:
        def remove(self) -> None:
            log.append("off")

    def on() -> Handle:
        log.append("on")
        return Handle()

    attention.register_flash_attention_impl("mine", register_fn=on)
    attention.activate_flash_attention_impl("mine")
    assert attention.current_flash_attention_impl() == "mine"
    attention.restore_flash_attention_impl()
    assert attention.current_flash_attention_impl() is None
    assert log == ["on", "off"]


def test_linear_cross_entropy_options_are_checked() -> None:
    options = nn.LinearCrossEntropyOptions
    assert nn.modules.LinearCrossEntropyOptions is options
    assert options(chunking_method="aspect_ratio:2") == options(chunking_method="aspect_ratio:2")
    for wrong in (
        {"acc_policy": "x"},
        {"chunking_method": "aspect_ratio:0"},
        {"batch_chunk_size": 0},
        {"acc_dtype": torch.int64},
    ):
        with pytest.raises(ValueError, match="invalid|must be"):
            options(**wrong)


def test_spectral_norm_loads_what_kept_one_vector() -> None:
    net = nn.utils.spectral_norm(nn.Linear(4, 3).double())
    net(torch.randn(2, 4, dtype=torch.float64))
    state = net.state_dict()
    assert state._metadata[""]["spectral_norm"] == {"weight.version": 1}
    old = copy.deepcopy(state)
    v = old.pop("weight_v")
    old["weight"] = net.weight.detach()
    old._metadata[""].pop("spectral_norm")
    other = nn.utils.spectral_norm(nn.Linear(4, 3).double())
    other.load_state_dict(old)
    weight = other.weight_orig
    sigma = other.weight_u @ weight @ other.weight_v
    assert torch.allclose(weight / sigma, old["weight"])
    assert not torch.allclose(v, torch.zeros(4, dtype=torch.float64))
    plain = nn.utils.remove_spectral_norm(net)
    assert "spectral_norm" not in plain.state_dict()._metadata[""]


def test_optimizer_works_on_other_parameters_in_a_block() -> None:
    w = torch.ones(2, requires_grad=True)
    opt = torch.optim.Adam([w], lr=0.1)
    with pytest.raises(RuntimeError, match="initialized"), _swap(opt, {}, opt.state_dict()):
        pass
    w.grad = torch.ones(2)
    opt.step()
    before, params = w.detach().clone(), opt.param_groups[0]["params"]
    states = copy.deepcopy(opt.state_dict())
    states["param_groups"][0]["lr"] = 1.0
    other = torch.full((2,), 5.0)
    other.grad = torch.ones(2)
    with _swap(opt, {"w": other}, states):
        opt.step()
    assert torch.allclose(other, torch.full((2,), 4.0))
    assert states["state"][0]["step"].item() == 2
    assert torch.equal(w.detach(), before)
    assert opt.param_groups[0]["params"] is params
    assert opt.param_groups[0]["lr"] == 0.1
    for wrong in ({"state": {}}, {"state": {9: {}}, "param_groups": states["param_groups"]}):
        with pytest.raises(RuntimeError, match="swap_in_optimizer"), _swap(opt, {"w": w}, wrong):
            pass


_swap = torch.optim.swap_in_optimizer_params_and_state


def test_module_tracker_knows_where_backward_is() -> None:
    from pytensorlib.utils.module_tracker import ModuleTracker

    seen: list[Any] = []

    class Net(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            seen.append((sorted(tracker.parents), tracker.is_bw))
            y = x * 2
            y.register_hook(lambda g: seen.append((sorted(tracker.parents), tracker.is_bw)))
            return y * 3

    with ModuleTracker() as tracker:
        nn.Sequential(Net(), nn.ReLU())(torch.ones(1, requires_grad=True)).backward()
    where = ["Global", "Sequential", "Sequential.0"]
    assert seen == [(where, False), (where, True)]


def test_checkpoint_group_computes_once_and_is_one() -> None:
    from pytensorlib.utils.checkpoint import GraphExecGroup, checkpoint

    runs = []

    def two(x: torch.Tensor) -> Any:
        runs.append(1)
        return x.sin(), x.exp()

    x = torch.zeros(1, requires_grad=True)
    a, b = checkpoint(two, x, use_reentrant=False)
    with GraphExecGroup():
        assert torch.autograd.grad(a, x)[0].item() == 1.0
        assert torch.autograd.grad(b, x)[0].item() == 1.0
        with pytest.raises(RuntimeError, match="cannot be nested"), GraphExecGroup():
            pass
    assert len(runs) == 2
    a, b = checkpoint(two, x, use_reentrant=False)
    torch.autograd.grad(a, x)
    torch.autograd.grad(b, x)
    assert len(runs) == 5


def test_function_of_the_old_kind_runs_its_backward_by_hand() -> None:
    from pytensorlib.autograd.function import BackwardCFunction, InplaceFunction

    class Double(InplaceFunction):
        @staticmethod
        def forward(ctx: Any, x: torch.Tensor) -> torch.Tensor:
            assert isinstance(ctx, BackwardCFunction)
            return 2 * x

        @staticmethod
        def backward(ctx: Any, g: torch.Tensor) -> torch.Tensor:
            return 2 * g

    y = Double.apply(torch.ones(1, requires_grad=True))
    assert y.grad_fn.apply(torch.ones(1)).item() == 2.0


def test_parts_go_to_devices_and_back() -> None:
    from pytensorlib.nn.parallel import comm

    x = torch.arange(5.0)
    copies = comm.broadcast(x, ["cpu", "cpu"])
    assert [c.tolist() for c in copies] == [x.tolist()] * 2
    assert copies[0].data_ptr() != copies[1].data_ptr()
    out = [torch.empty(5), torch.empty(5)]
    assert comm.broadcast(x, out=out)[1] is out[1]
    parts = comm.scatter(x, ["cpu", "cpu"], chunk_sizes=[2, 3])
    assert [p.tolist() for p in parts] == [[0.0, 1.0], [2.0, 3.0, 4.0]]
    assert torch.equal(comm.gather(parts), x)
    assert comm.gather(parts, destination=-1).device.type == "cpu"
    total = comm.reduce_add([x, x])
    assert total.tolist() == (2 * x).tolist()
    assert x.tolist() == [0.0, 1.0, 2.0, 3.0, 4.0]
    with pytest.raises(ValueError, match="invalid size"):
        comm.reduce_add([x, x[:2]])
    for wrong in ({}, {"devices": ["cpu"], "out": out}):
        with pytest.raises(RuntimeError, match="Exactly one of"):
            comm.broadcast(x, **wrong)


def test_wrapped_module_is_what_it_wraps() -> None:
    from pytensorlib.nn.cpp import ModuleWrapper

    inner = nn.Linear(2, 1)
    net = ModuleWrapper(inner)
    net.train(False)
    assert not inner.training
    net.double()
    assert inner.weight.dtype == torch.float64
    assert set(net.state_dict()) == {"weight", "bias"}
    assert repr(net) == repr(inner)


def test_profile_tells_times_as_text() -> None:
    with torch.profiler.profile() as prof:
        torch.ones(2) + 1
    assert prof.key_averages()[0].cpu_time_total_str.endswith("us")


def test_hash_of_a_number_takes_its_dimension_and_is_no_view_of_it() -> None:
    for x in (torch.tensor(3), torch.tensor(1.5, dtype=torch.float64)):
        want = x.clone().view(torch.int64).item()
        for dim in (0, -1, (), (0,)):
            y = torch.hash_tensor(x, dim, keepdim=True)
            assert (y.shape, y.item()) == ((), want)
            y.zero_()
        assert x.clone().view(torch.int64).item() == want
