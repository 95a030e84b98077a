"""Tables of models, pictures of graphs, timelines of profiles, and what notebooks show."""

from __future__ import annotations

import json
import re
import xml.etree.ElementTree as ET

import pytest

import pytensorlib as torch
from pytensorlib import nn
from pytensorlib.utils._layout import Layout
from pytensorlib.utils.show import draw_graph, draw_step, summary, timeline


def test_summary_counts_what_parameters_have():
    model = nn.Sequential(nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8), nn.Flatten(), nn.Linear(288, 10))
    table = summary(model, torch.zeros(2, 3, 8, 8))
    # 8*3*9+8, 2*8, 288*10+10
    assert table.totals["parameters"] == 224 + 16 + 2890
    assert table.totals["bytes"] == 4 * (224 + 16 + 2890)
    assert table.totals["buffer_bytes"] == 4 * 16 + 8
    shapes = [row[3] for row in table.rows]
    assert shapes == ["(2, 10)", "(2, 8, 6, 6)", "(2, 8, 6, 6)", "(2, 288)", "(2, 10)"]
    assert table.totals["result_bytes"] == 4 * (2 * 288 * 3 + 20)


def test_summary_counts_shared_and_frozen_parameters_once_and_apart():
    layer = nn.Linear(4, 4)
    model = nn.Sequential(layer, layer, nn.Linear(4, 2).requires_grad_(False))
    totals = summary(model).totals
    assert totals["parameters"] == 20 + 10
    assert totals["trained"] == 20


def test_summary_leaves_the_model_as_it_was():
    model = nn.Sequential(nn.Dropout(), nn.BatchNorm1d(4))
    model[0].eval()
    before = {k: v.clone() for k, v in model.state_dict().items()}
    summary(model, torch.randn(8, 4))
    assert [m.training for m in model.modules()] == [True, False, True]
    assert all(torch.equal(v, before[k]) for k, v in model.state_dict().items())
    assert not any(m._forward_hooks for m in model.modules())


def test_summary_of_a_model_that_fails_leaves_no_hooks():
    model = nn.Linear(2, 2)
    with pytest.raises(RuntimeError):
        summary(model, torch.zeros(1, 3))
    assert not model._forward_hooks


def test_summary_stops_at_a_depth():
    model = nn.Sequential(nn.Sequential(nn.Linear(1, 1)), nn.ReLU())
    assert [row[0] for row in summary(model, depth=1).rows] == [0, 1, 1]
    assert len(summary(model).rows) == 4
    assert "Linear" in summary(model)._repr_html_()


def shown(picture):
    """Return the texts of an SVG picture."""
    root = ET.fromstring(picture.svg)
    return [node.text for node in root.iter("{http://www.w3.org/2000/svg}text")]


def test_graph_has_every_node_once_and_leaves_by_their_names(tmp_path):
    a, b = torch.ones(2, requires_grad=True), torch.ones(2, requires_grad=True)
    c = a * b
    picture = draw_graph((c + c.exp()).sum(), names={"first": a})
    expected = ["AddBackward0", "ExpBackward0", "MulBackward0", "SumBackward0"]
    assert sorted(picture.nodes) == [*expected, "first (2)", "leaf (2)"]
    assert sorted(shown(picture)) == sorted(picture.nodes)
    # sum-add, add-mul, add-exp, exp-mul, mul-a, mul-b, and the tip of an arrow
    assert picture.svg.count("<path d=") == 6 + 1
    picture.save(tmp_path / "a.svg")
    assert (tmp_path / "a.svg").read_text() == picture.svg


def test_graph_of_what_has_none_says_so():
    with pytest.raises(ValueError, match="requires_grad=True"):
        draw_graph(torch.ones(2))


def test_step_has_forward_backward_and_the_optimizer():
    w = torch.ones(2, requires_grad=True)
    optimizer = torch.optim.SGD([w], lr=0.1)

    def step(x):
        (w * x).sum().backward()
        optimizer.step()

    nodes = draw_step(step, torch.ones(2)).nodes
    names = [node.split()[0] for node in nodes]
    assert names[:4] == ["input", "input", "mul", "sum"]
    assert "mul_backward" in names
    assert any("sgd" in name for name in names)
    assert names.count("input") <= 4


def test_rows_stand_below_all_that_point_to_them():
    layout = Layout()
    for key in "abcd":
        layout.add(key, key)
    for above, below in ("ab", "bc", "ac", "cd", "ad"):
        layout.join(above, below)
    assert layout.rows() == [["a"], ["b"], ["c"], ["d"]]


def test_names_in_pictures_are_no_markup():
    layout = Layout()
    layout.add(1, "<script>&")
    assert "<script>" not in layout.svg()
    ET.fromstring(layout.svg())


def test_timeline_has_every_event_and_needs_nothing_else(tmp_path):
    with torch.profiler.profile(record_shapes=True) as profile:
        with torch.profiler.record_function("</script>outer"):
            torch.ones(4, 4) @ torch.ones(4, 4)
    timeline(profile, tmp_path / "trace.html")
    page = (tmp_path / "trace.html").read_text()
    rows = json.loads(re.search(r"const rows = (.*);\n", page)[1])
    assert len(rows) == len(profile.events())
    names = {row[0]: row for row in rows}
    assert names["</script>outer"][2] == 0
    (product,) = [row for name, row in names.items() if name in {"aten::mm", "aten::matmul"}]
    assert product[2] == 1  # inside the other
    assert product[4] <= names["</script>outer"][4]
    assert page.count("</script>") == 1
    assert "http" not in page


def test_timeline_of_nothing_says_so(tmp_path):
    with torch.profiler.profile() as profile:
        pass
    with pytest.raises(ValueError, match="no events"):
        timeline(profile, tmp_path / "trace.html")


def test_notebooks_show_size_type_and_device_of_a_tensor():
    text = torch.ones(2, 3)._repr_html_()
    assert "(2, 3), float32, cpu" in text
    assert "tensor([[1., 1., 1.]," in text
    text = (torch.ones(1, requires_grad=True) * 2)._repr_html_()
    assert "from MulBackward0" in text
    assert "&lt;MulBackward0&gt;" in text


def test_notebooks_show_the_table_of_a_model():
    assert "<table>" in nn.Sequential(nn.Linear(2, 3))._repr_html_()
    assert "LazyLinear" in nn.LazyLinear(2)._repr_html_()
    assert (
        "Linear"
        in nn.Sequential(*(nn.Sequential(nn.Linear(1, 1)) for _ in range(70)))._repr_html_()
    )
