"""What tensors tell of themselves, numbers that tracers leave open, settings that are kept."""

from __future__ import annotations

import child
import pytest

import pytensorlib as torch


def test_methods_that_walk_a_tensor_change_it_in_place():
    x = torch.arange(6.0).reshape(2, 3).t()
    assert x.apply_(lambda v: v + 1) is x
    assert x.tolist() == [[1, 4], [2, 5], [3, 6]]
    assert x.map_(torch.tensor([10.0, 20.0]), lambda a, b: a * b).tolist()[0] == [10, 80]
    whole = torch.tensor([1, 2]).map2_(torch.tensor(3), torch.tensor([4, 5]), lambda *v: sum(v))
    assert whole.dtype is torch.int64 and whole.tolist() == [8, 10]
    with pytest.raises(RuntimeError, match=r"apply_\(\) on Variable that requires grad"):
        torch.ones(1, requires_grad=True).apply_(abs)


def test_order_of_dimensions_in_memory():
    x = torch.ones(2, 3, 4)
    assert x.dim_order() == (0, 1, 2)
    assert x.permute(2, 0, 1).dim_order() == (1, 2, 0)
    assert torch.ones(2, 3, 4, 5).to(memory_format=torch.channels_last).dim_order() == (0, 2, 3, 1)


def test_same_view_of_the_same_memory():
    x = torch.ones(2, 2)
    assert x.is_set_to(x) and x.is_set_to(x[:]) and x.detach().is_set_to(x)
    assert not x.is_set_to(x.t()) and not x.is_set_to(x[:1]) and not x.is_set_to(x.clone())


def test_facts_of_a_tensor_on_the_cpu():
    x = torch.ones(2, dtype=torch.float64)
    assert x.get_device() == -1 == torch.get_device(x)
    assert x.storage_type() is torch.DoubleStorage
    assert x.pin_memory() is x and not x.is_pinned()
    assert x.const_data_ptr() == x.data_ptr()
    assert not (x.is_mps or x.is_xpu or x.is_nested or x.is_sparse_csr or x.is_mkldnn)
    assert x.is_same_size(torch.zeros(2)) and not torch.is_same_size(x, x[:1])
    assert not torch.is_conj(x) and not torch.is_neg(x) and torch.is_signed(x)
    assert torch.ones(1).is_nonzero()
    loaded = x.module_load(torch.zeros(2))
    assert loaded.is_set_to(x) and x.tolist() == [0, 0]
    z = torch.tensor([1 + 2j])
    assert torch.view_as_real_copy(z).tolist() == [[1, 2]]
    pairs = torch.view_as_real(z)
    assert torch.view_as_complex_copy(pairs).data_ptr() != z.data_ptr()


def test_devices_that_are_not_here_say_so():
    with pytest.raises(RuntimeError, match="CUDA"):
        torch.ones(1).cuda()
    with pytest.raises(RuntimeError, match="xpu"):
        torch.ones(1).xpu()


def test_numbers_that_tracers_leave_open_are_numbers():
    # PyTorch's answers.
    assert repr([torch.sym_max(1, 2.0), torch.sym_max(3, 2.0), torch.sym_min(3, 2)]) == (
        "[2.0, 3.0, 2]"
    )
    assert (torch.sym_int(-2.5), torch.sym_float(2), torch.sym_not(1 > 2)) == (-2, 2.0, True)
    assert (torch.sym_ite(True, 1, 2), torch.sym_sum([1, 2])) == (1, 3)
    with pytest.raises(TypeError, match="one class"):
        torch.sym_ite(True, 1, 2.0)
    assert not isinstance(1, (torch.SymInt, torch.SymFloat, torch.SymBool))
    with pytest.raises(NotImplementedError, match=r"made by torch\.export alone"):
        torch.SymInt(1)


SETTINGS = """
import pytensorlib as torch
torch.set_warn_always(True)
torch.set_num_interop_threads(3)
torch.set_anomaly_enabled(True, False)
assert torch.is_warn_always_enabled() and torch.get_num_interop_threads() == 3
assert torch.is_anomaly_enabled() and not torch.is_anomaly_check_nan_enabled()
torch.set_default_tensor_type("torch.DoubleTensor")
assert torch.ones(1).dtype is torch.float64
assert torch.set_flush_denormal(True) is False
for call in (lambda: torch.set_num_interop_threads(0), lambda: torch.get_device_module("meta")):
    try:
        call()
    except RuntimeError:
        continue
    raise AssertionError
try:
    torch.set_default_tensor_type(torch.LongTensor)
except TypeError as e:
    assert "floating-point" in str(e)
"""


def test_settings_are_kept():
    child.run(SETTINGS)


def test_lu_gives_factors_whose_product_is_the_matrix():
    a = torch.tensor([[1.0, 2.0], [4.0, 4.0]], dtype=torch.float64)
    factors, pivots = torch.lu(a)
    p, low, up = torch.lu_unpack(factors, pivots)
    torch.testing.assert_close(p @ low @ up, a)
    assert a.lu(get_infos=True)[2].item() == 0
    with pytest.raises(RuntimeError, match="singular"):
        torch.lu(torch.zeros(2, 2))
    assert torch.lu(torch.zeros(2, 2), get_infos=True)[2].item() > 0


def test_settings_of_backward_hold_within_their_block():
    for kind in (
        torch.autograd.set_multithreading_enabled,
        torch.autograd.enforce_grad_layout_policy,
    ):
        assert kind.now
        with kind(False):
            assert not kind.now
        assert kind.now
