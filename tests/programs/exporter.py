"""A network traced, changed, exported with an open batch, saved, and written as ONNX."""

import io

import torch
from report import finish, report
from torch import fx, nn
from torch.fx.passes.shape_prop import ShapeProp

torch.manual_seed(0)


class Net(nn.Module):
    """A convolution, a residual, attention over places and two heads."""

    def __init__(self):
        super().__init__()
        self.stem = nn.Sequential(nn.Conv2d(3, 8, 3, 2, 1), nn.BatchNorm2d(8), nn.ReLU())
        self.block = nn.Conv2d(8, 8, 3, padding=1)
        self.norm, self.qkv = nn.LayerNorm(8), nn.Linear(8, 24)
        self.classes, self.boxes = nn.Linear(8, 5), nn.Linear(8, 4)

    def forward(self, x):
        x = self.stem(x)
        x = torch.relu(x + self.block(x))
        rows = x.flatten(2).transpose(1, 2)
        q, k, v = self.qkv(self.norm(rows)).chunk(3, dim=-1)
        rows = rows + nn.functional.scaled_dot_product_attention(q, k, v)
        pooled = rows.mean(1)
        return self.classes(pooled), self.boxes(pooled).sigmoid()


def onnx_outputs(net, example, x, shapes):
    """Return what onnxruntime gives; what the module gives where ONNX's packages are missing."""
    try:
        import onnx
        import onnxruntime
    except ImportError:
        return net(x)
    file = io.BytesIO()
    program = torch.onnx.export(net, (example,), dynamic_shapes=shapes)
    onnx.save_model(program.model_proto, file)
    session = onnxruntime.InferenceSession(file.getvalue(), providers=["CPUExecutionProvider"])
    name = session.get_inputs()[0].name
    return [torch.from_numpy(y) for y in session.run(None, {name: x.numpy()})]


net = Net().eval()
example, x = torch.randn(2, 3, 16, 16), torch.randn(5, 3, 16, 16)
with torch.no_grad():
    traced = fx.symbolic_trace(net)
    ShapeProp(traced).propagate(x)
    report("nodes", len(list(traced.graph.nodes)))
    metas = [node.meta.get("tensor_meta") for node in traced.graph.nodes]
    report("sizes", [s for meta in metas for s in getattr(meta, "shape", ())])
    report("traced", traced(x)[0])
    report("code", [len(line) for line in traced.code.splitlines()])

    found = fx.replace_pattern(traced, lambda a: torch.relu(a), lambda a: torch.tanh(a))
    report("replaced", len(found))
    report("with tanh", traced(x)[0])

    shapes = ({0: torch.export.Dim("batch")},)
    program = torch.export.export(net, (example,), dynamic_shapes=shapes)
    report("operators", len([n for n in program.graph.nodes if n.op == "call_function"]))
    report("exported: classes", program.module()(x)[0])
    report("exported: boxes", program.module()(x)[1])
    report("decomposed", program.run_decompositions().module()(x)[0])
    file = io.BytesIO()
    torch.export.save(program, file)
    file.seek(0)
    report("loaded", torch.export.load(file).module()(x)[0])
    classes, boxes = onnx_outputs(net, example, x, shapes)
    report("onnx: classes", classes)
    report("onnx: boxes", boxes)

features = fx.symbolic_trace(net)
for node in features.graph.nodes:
    if node.name == "mean":
        features.graph.output_node().args = ((node, node.args[0]),)
features.graph.eliminate_dead_code()
features.recompile()
report("features", features(x)[0])
report("rows", features(x)[1])
finish()
