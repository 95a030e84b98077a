"""Profiles of programs, and counts of what they compute."""

import json

import pytest

import pytensorlib as torch
from pytensorlib import nn
from pytensorlib.nn import functional as F
from pytensorlib.profiler import ProfilerAction, profile, record_function, schedule
from pytensorlib.utils.flop_counter import FlopCounterMode


def test_profile_notes_operators_in_forward_and_backward_with_their_ranges(tmp_path):
    net = nn.Sequential(nn.Linear(3, 4), nn.ReLU())
    with profile(record_shapes=True, profile_memory=True, with_flops=True) as prof:
        with record_function("forward"):
            y = net(torch.ones(2, 3)).sum()
        y.backward()
    table = {a.key: a for a in prof.key_averages()}
    assert table["aten::addmm"].count == 1 and table["aten::addmm"].flops == 2 * 2 * 3 * 4
    assert table["aten::addmm"].cpu_memory_usage == 2 * 4 * 4
    assert "aten::mm" in table  # backward
    inside = [
        e for e in prof.events() if e.cpu_parent is not None and e.cpu_parent.name == "forward"
    ]
    assert {"aten::addmm", "aten::relu", "aten::sum"} <= {e.name for e in inside}
    (add,) = [e for e in prof.events() if e.name == "aten::addmm"]
    assert add.input_shapes == [[4], [2, 3], [4, 3]]
    total = table["forward"]
    assert total.cpu_time_total >= total.self_cpu_time_total >= 0
    assert sum(e.self_cpu_time_total for e in prof.events()) == pytest.approx(
        prof.events().self_cpu_time_total
    )
    text = prof.key_averages().table(sort_by="self_cpu_time_total", row_limit=3)
    assert len([line for line in text.splitlines() if "%" in line]) == 4
    prof.add_metadata("note", "mine")
    prof.export_chrome_trace(tmp_path / "trace.json")
    trace = json.loads((tmp_path / "trace.json").read_text())
    assert trace["note"] == "mine"
    names = [e["name"] for e in trace["traceEvents"]]
    assert "forward" in names and all(
        e["ph"] == "X" and e["dur"] >= 0 for e in trace["traceEvents"]
    )


def test_nothing_is_noted_outside_and_results_are_the_same():
    x = torch.linspace(0, 1, 7, requires_grad=True)
    x.sin().sum().backward()
    want, x.grad = x.grad, None
    with torch.autograd.profiler.profile() as prof:
        x.sin().sum().backward()
    assert torch.equal(x.grad, want)
    noted = len(prof.function_events)
    x.cos()
    assert len(prof.function_events) == noted > 0
    with torch.autograd.profiler.profile(enabled=False) as prof:
        x.cos()
    assert prof.function_events == []


def test_profile_ends_where_the_program_raises():
    with pytest.raises(KeyError), profile():
        raise KeyError
    with profile() as prof:
        pass
    torch.ones(1) + 1
    assert prof.events() == []


def test_schedule_follows_its_cycles():
    plan = schedule(skip_first=1, wait=1, warmup=1, active=2, repeat=2)
    n, w, r, s = ProfilerAction
    assert [plan(i) for i in range(11)] == [n, n, w, r, s, n, w, r, s, n, n]
    with pytest.raises(AssertionError):
        schedule(wait=0, warmup=0, active=0)


def test_steps_are_noted_as_the_schedule_says():
    ready = []
    plan = schedule(wait=1, warmup=0, active=2, repeat=2)
    with profile(schedule=plan, on_trace_ready=lambda p: ready.append(list(p.events()))) as prof:
        for i in range(8):
            with record_function(f"step {i}"):
                torch.ones(1) + 1
            prof.step()
    names = [[e.name for e in events if e.name.startswith("step")] for events in ready]
    assert names == [["step 1", "step 2"], ["step 4", "step 5"]]


def test_ranges_decorate_functions():
    @record_function("double")
    def double(x):
        return 2 * x

    with profile() as prof:
        double(torch.ones(1))
    assert [e.name for e in prof.events()] == ["double", "aten::mul"]


def test_profile_with_stack_tells_the_calls_and_groups_by_them(tmp_path):
    def inner(x):
        return x.sin()

    def outer(x):
        return inner(x) + inner(x)

    with profile(with_stack=True) as prof:
        outer(torch.ones(3))
        inner(torch.ones(3))
    line = inner.__code__.co_firstlineno
    sines = [e for e in prof.events() if e.name == "aten::sin"]
    assert all(e.stack[0] == f"{__file__}({line + 1}): inner" for e in sines)
    assert [e.stack[1].rpartition(": ")[2] for e in sines] == [
        "outer",
        "outer",
        test_profile_with_stack_tells_the_calls_and_groups_by_them.__name__,
    ]
    assert len(sines[0].stack) == 1 + len(sines[2].stack) > 3
    grouped = [a for a in prof.key_averages(group_by_stack_n=2) if a.key == "aten::sin"]
    assert sorted(a.count for a in grouped) == [1, 2] and len(grouped[0].stack) == 2
    text = prof.key_averages(group_by_stack_n=2).table()
    assert "Source Location" in text and f"({line + 1}): inner" in text
    assert "Source Location" not in prof.key_averages().table()
    prof.export_stacks(tmp_path / "stacks.txt", "count")
    (one, two, *rest) = (tmp_path / "stacks.txt").read_text().splitlines()
    assert one.endswith(f":_outer;{__file__}({line + 1}):_inner 1") and one == two and rest
    prof.export_chrome_trace(tmp_path / "trace.json")
    trace = json.loads((tmp_path / "trace.json").read_text())["traceEvents"]
    assert trace[0]["args"]["Call stack"].startswith(f"{__file__}({line + 1}): inner;")
    with profile() as prof:
        inner(torch.ones(3))
    assert prof.events()[0].stack == []


# What PyTorch 2.13's tables sort by, with its older names.
COLUMNS = [
    f"{own}{device}_{what}"
    for device in ("cpu", "device", "cuda", "xpu", "privateuse1")
    for own, what in (
        ("", "time"), ("", "time_total"), ("self_", "time_total"), ("", "memory_usage"),
        ("self_", "memory_usage"),
    )
]  # fmt: skip


@pytest.mark.parametrize("by", [*COLUMNS, "count", "flops", "key"])
def test_table_sorts_by_the_columns_of_pytorch(by):
    with profile(profile_memory=True, with_flops=True) as prof:
        torch.ones(3, 3) @ torch.ones(3, 3)
        torch.ones(300) + 1
        torch.ones(300) + 1
    for events in (prof.events(), prof.key_averages()):
        assert "aten::mm" in events.table(sort_by=by)
    rows = [row for row in prof.key_averages().table(sort_by=by).splitlines() if "aten::" in row]
    if by in ("count", "cpu_memory_usage", "self_cpu_memory_usage"):
        assert "aten::add" in rows[0] and "aten::mm" in rows[1]
    if by in ("flops", "key"):
        assert "aten::mm" in rows[0]


def test_table_refuses_other_columns():
    with profile() as prof:
        torch.ones(3) + 1
    with pytest.raises(AttributeError, match="'FunctionEventAvg' object has no attribute 'speed'"):
        prof.key_averages().table(sort_by="speed")


# Forward, then with backward: what PyTorch 2.13's FlopCounterMode counts, but for the gradients of
# convolutions in groups (it counts each group as all channels) and attention on the CPU (it counts
# none), which are two products each, and five in attention's backward.
PROGRAMS = {
    "linear": (lambda x: F.linear(x, rand(5, 6)), (4, 6), 240, 720),
    "linear of three dimensions": (lambda x: F.linear(x, rand(5, 6)), (2, 4, 6), 480, 1440),
    "bmm": (lambda x: torch.bmm(x, rand(2, 4, 5)), (2, 3, 4), 240, 720),
    "conv2d": (
        lambda x: F.conv2d(x, rand(6, 2, 3, 3), groups=2, padding=1),
        (2, 4, 8, 8),
        27648,
        82944,
    ),
    "conv2d with strides": (
        lambda x: F.conv2d(x, rand(6, 4, 3, 3), stride=2),
        (2, 4, 9, 9),
        13824,
        41472,
    ),
    "conv_transpose2d": (
        lambda x: F.conv_transpose2d(x, rand(4, 6, 3, 3), stride=2),
        (2, 4, 8, 8),
        55296,
        165888,
    ),
    "attention": (lambda x: F.scaled_dot_product_attention(x, x, x), (1, 2, 8, 16), 8192, 28672),
}


def rand(*shape):
    return torch.rand(*shape, requires_grad=True)


@pytest.mark.parametrize("name", PROGRAMS)
def test_flops_are_counted(name):
    run, shape, forward, both = PROGRAMS[name]
    x = rand(*shape)
    with FlopCounterMode(display=False) as counter, torch.no_grad():
        run(x)
    assert counter.get_total_flops() == forward
    with FlopCounterMode(display=False) as counter:
        run(x).sum().backward()
    assert counter.get_total_flops() == both


def test_flops_are_told_by_module():
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.a, self.b = nn.Linear(4, 8), nn.Linear(8, 2)

        def forward(self, x):
            return self.b(self.a(x).relu())

    with FlopCounterMode(display=False) as counter:
        Net()(torch.ones(3, 4)).sum().backward()
    counts = {place: sum(c.values()) for place, c in counter.get_flop_counts().items()}
    assert counts["Net.b"] == 3 * 2 * 3 * 8 * 2
    assert counts["Net.a"] == 2 * 2 * 3 * 4 * 8
    assert counts["Global"] == counts["Net"] == counts["Net.a"] + counts["Net.b"]
    assert "Net.a" in counter.get_table()


def test_operators_that_begin_and_end_ranges_are_those_of_record_function():
    ops = torch.ops.profiler
    with torch.autograd.profiler.profile() as prof:
        handle = ops._record_function_enter("first")
        other = ops._record_function_enter_new("second", "with an argument")
        torch.ones(2).relu()
        ops._record_function_exit._RecordFunction(other)
        ops._record_function_exit(handle)
    (relu,) = [e for e in prof.function_events if e.name == "aten::relu"]
    assert relu.cpu_parent.name == "second" and relu.cpu_parent.cpu_parent.name == "first"
    assert str(prof) == prof.function_events.table()
    with pytest.raises(RuntimeError, match="_record_function_exit.* but instead found type 'int'"):
        ops._record_function_exit(3)


def test_a_range_may_end_with_a_future():
    future = torch.futures.Future()
    with profile() as prof:
        with record_function("asked") as range_:
            answer = range_._call_end_callbacks_on_future(future)
        torch.ones(2).relu()
        future.set_result(3)
    assert answer.wait() == 3
    (relu,) = [e for e in prof.events() if e.name == "aten::relu"]
    assert relu.cpu_parent.name == "asked"
    with pytest.raises(RuntimeError, match="can only be called once"):
        range_._call_end_callbacks_on_future(future)


def test_a_tracer_that_keeps_ranges_gives_a_program_with_them(monkeypatch):
    class Ranged(torch.fx.Tracer):
        def trace(self, root, concrete_args=None):
            def enter(range_):
                name, target = (range_.name,), torch.ops.profiler._record_function_enter
                range_.handle = self.create_proxy("call_function", target, name, {})

            def leave(range_, *error):
                torch.ops.profiler._record_function_exit(range_.handle)

            monkeypatch.setattr(record_function, "__enter__", enter)
            monkeypatch.setattr(record_function, "__exit__", leave)
            graph = super().trace(root, concrete_args)
            monkeypatch.undo()
            return graph

    def step(x):
        with record_function("step"):
            return torch.relu(x)

    graph = Ranged().trace(step)
    graph.eliminate_dead_code()  # which keeps what begins and ends
    traced = torch.fx.GraphModule(nn.Module(), graph)
    with profile() as prof:
        traced(torch.ones(2))
    (relu,) = [e for e in prof.events() if e.name == "aten::relu"]
    assert relu.cpu_parent.name == "step"
