"""What is measured: one row each, a statement and the names it uses, for either library.

In both, `t` is the library, `F` its nn.functional, `models` the module beside this one; a `numpy`
statement sees the same tensors as arrays, and `np`. `flops` and `bytes` are the least that the
statement must compute and move: they set its roofline. `result` is what is compared with float64
where it is not the statement's own result.
"""

from dataclasses import dataclass, field


@dataclass(frozen=True)
class Case:
    """One statement to time."""

    group: str
    label: str
    run: str
    names: dict[str, str] = field(default_factory=dict)
    numpy: str = ""
    flops: float = 0
    bytes: float = 0
    result: str = ""

    @property
    def id(self) -> str:
        """The name that `-k` selects."""
        return f"{self.group}: {self.label}"


CASES: list[Case] = []
M = 1e6
SQUARE = 4096 * 4096


def case(group: str, label: str, run: str, *, numpy: str = "", result: str = "", **names: object) -> None:
    """Add a row; `flops` and `bytes` among the names are the roofline's."""
    flops, size = names.pop("flops", 0), names.pop("bytes", 0)
    CASES.append(Case(group, label, run, {k: str(v) for k, v in names.items()}, numpy, flops, size, result))


# --- dispatch: tensors too small for their work to matter ---------------------------------------
SMALL = {"a": "t.ones(1)", "b": "t.ones(1)", "x": "t.ones(4, 4)"}
G = {"g": "t.ones(1, requires_grad=True)"}
case("dispatch", "a + b", "a + b", numpy="a + b", **SMALL)
case("dispatch", "a + 1.0", "a + 1.0", numpy="a + 1.0", **SMALL)
case("dispatch", "x[0]", "x[0]", numpy="x[0]", **SMALL)
case("dispatch", "x.view", "x.view(8, 2)", numpy="x.reshape(8, 2)", **SMALL)
case("dispatch", "x.sum()", "x.sum()", numpy="x.sum()", **SMALL)
case("dispatch", "a.add_(b)", "a.add_(b)", numpy="np.add(a, b, a)", **SMALL)
case("dispatch", "a * b with a graph node", "g * b", **SMALL, **G)
case("dispatch", "broadcast (64, 100) + (100,)", "u + v", numpy="u + v", u="t.ones(64, 100)", v="t.ones(100)")
case("dispatch", "matmul 4x4", "x @ x", numpy="x @ x", **SMALL)
case("dispatch", "(a * b + a).sum().backward()", "(g * b + g).sum().backward()", **SMALL, **G)
case("dispatch", "nn.ReLU()(a)", "m(a)", m="t.nn.ReLU()", **SMALL)
case("dispatch", "nn.Linear(4, 4)(x)", "m(x)", m="t.nn.Linear(4, 4)", **SMALL)
case("dispatch", "t.tensor([1., 2., 3.])", "t.tensor([1., 2., 3.])", numpy="np.array([1., 2., 3.])")
case("dispatch", "a.item()", "a.item()", numpy="a.item()", **SMALL)

# --- pointwise ----------------------------------------------------------------------------------
BIG = {"x": "t.randn(4096, 4096)", "y": "t.randn(4096, 4096)"}
MEG = {"x": "t.randn(1000000)", "y": "t.randn(1000000)"}
P = "pointwise"
case(P, "add 4096x4096", "x + y", numpy="x + y", **BIG, bytes=12 * SQUARE)
case(P, "add out= 4096x4096", "t.add(x, y, out=z)", numpy="np.add(x, y, z)", z="t.empty(4096, 4096)", **BIG, bytes=12 * SQUARE)
case(P, "add 1M", "x + y", numpy="x + y", **MEG, bytes=12 * M)
case(P, "mul_ 1M", "x.mul_(1.0)", numpy="np.multiply(x, 1, x)", **MEG, bytes=8 * M)
case(P, "add_ 1M", "x.add_(y)", numpy="np.add(x, y, x)", y="t.zeros(1000000)", x="t.randn(1000000)", bytes=12 * M)
case(P, "addcmul_ 1M", "x.addcmul_(y, z, value=1e-9)", z="t.randn(1000000)", **MEG, bytes=16 * M)
case(P, "copy_ from bfloat16 1M", "x.copy_(z)", z="t.randn(1000000).bfloat16()", **MEG, bytes=6 * M)
case(P, "flip 1M", "x.flip(0)", numpy="np.flip(x).copy()", **MEG, bytes=8 * M)
case(P, "fmod 1M", "t.fmod(x, 2)", numpy="np.fmod(x, np.float32(2))", **MEG, bytes=8 * M)
case(P, "add row 4096x4096 + 4096", "x + r", numpy="x + r", r="t.randn(4096)", **BIG, bytes=8 * SQUARE)
case(P, "add column 4096x4096 + 4096x1", "x + r", numpy="x + r", r="t.randn(4096, 1)", **BIG, bytes=8 * SQUARE)
case(P, "add transposed 4096x4096", "x + y.T", numpy="x + y.T", **BIG, bytes=12 * SQUARE)
case(P, "contiguous of transposed 4096x4096", "x.T.contiguous()", numpy="np.ascontiguousarray(x.T)", **BIG, bytes=8 * SQUARE)
case(P, "permute copy 32x64x56x56 to channels last", "x.permute(0, 2, 3, 1).contiguous()", x="t.randn(32, 64, 56, 56)", bytes=8 * 6.42 * M)
case(P, "cat 2 x 8M, dim 1", "t.cat([x, y], 1)", numpy="np.concatenate([x, y], 1)", x="t.randn(4096, 2048)", y="t.randn(4096, 2048)", bytes=8 * SQUARE)
for f, ref in {"relu": "np.maximum(x, 0)", "gelu": "", "silu": ""}.items():
    case(P, f"{f} 4096x4096", f"F.{f}(x)", numpy=ref, **BIG, bytes=8 * SQUARE)
case(P, "gelu tanh 4096x4096", "F.gelu(x, approximate='tanh')", **BIG, bytes=8 * SQUARE)
for f in ("exp", "tanh", "sigmoid", "erf", "sin", "cos", "log", "sqrt", "rsqrt"):
    of = "x.abs()" if f in {"log", "sqrt", "rsqrt"} else "x"
    case(P, f"{f} 1M", f"t.{f}(z)", numpy=f"np.{f}(z)" if f not in {"sigmoid", "erf", "rsqrt"} else "", **MEG, z=of, bytes=8 * M)
case(P, "pow(x, 2.5) 1M", "z ** 2.5", numpy="z ** np.float32(2.5)", **MEG, z="x.abs()", bytes=8 * M)
case(P, "exp float64 1M", "t.exp(z)", numpy="np.exp(z)", z="t.randn(1000000, dtype=t.float64)", bytes=16 * M)
case(P, "tanh float64 1M", "t.tanh(z)", numpy="np.tanh(z)", z="t.randn(1000000, dtype=t.float64)", bytes=16 * M)
case(P, "add bfloat16 1M", "z + z", z="t.randn(1000000).bfloat16()", bytes=4 * M)
case(P, "gelu bfloat16 1M", "F.gelu(z)", z="t.randn(1000000).bfloat16()", bytes=4 * M)
case(P, "mul number bfloat16 1M", "z * 2.5", z="t.randn(1000000).bfloat16()", bytes=4 * M)
case(P, "add float16 1M", "z + z", z="t.randn(1000000).half()", bytes=4 * M)
QUARTER = 512 * 512
for d in ("float32", "bfloat16", "int64"):
    OF = {"x": f"(t.randn(512, 512) * 9).to(t.{d})", "r": f"(t.randn(512, 1) * 9).to(t.{d})"}
    case(P, f"mul column {d} 512x512 * 512x1", "x * r", numpy="" if d == "bfloat16" else "x * r", **OF)
COMPLEX = {"x": "t.randn(512, 512, dtype=t.complex64)", "y": "t.randn(512, 512, dtype=t.complex64)"}
for f, op in (("mul", "x * y"), ("div", "x / y"), ("abs", "x.abs()")):
    case(P, f"{f} complex64 512x512", op, numpy="" if f == "abs" else op, **COMPLEX)
case(P, "floor_divide int64 512x512 by 3", "z // 3", numpy="z // 3", z="t.arange(262144).reshape(512, 512)", bytes=16 * QUARTER)
case(P, "mul column 16384x16 * 16384x1", "x * r", numpy="x * r", x="t.randn(16384, 16)", r="t.randn(16384, 1)", bytes=8 * QUARTER)
case(P, "maximum column 512x512, 512x1", "t.maximum(x, r)", numpy="np.maximum(x, r)", x="t.randn(512, 512)", r="t.randn(512, 1)", bytes=8 * QUARTER)
case(P, "add channel bias 8x64x28x28 + 64x1x1", "x + r", numpy="x + r", x="t.randn(8, 64, 28, 28)", r="t.randn(64, 1, 1)", bytes=8 * 0.4 * M)
case(P, "outer 512x512", "t.outer(x, y)", numpy="np.outer(x, y)", x="t.randn(512)", y="t.randn(512)", bytes=4 * QUARTER)
case(P, "add int64 1M", "z + z", numpy="z + z", z="t.arange(1000000)", bytes=16 * M)
case(P, "float32 to bfloat16 1M", "x.bfloat16()", **MEG, bytes=6 * M)
case(P, "int64 to float32 1M", "z.float()", numpy="z.astype(np.float32)", z="t.arange(1000000)", bytes=12 * M)
case(P, "x > y 1M", "x > y", numpy="x > y", **MEG, bytes=9 * M)
case(P, "where 1M", "t.where(c, x, y)", numpy="np.where(c, x, y)", **MEG, c="x > y", bytes=13 * M)
case(P, "clamp 1M", "x.clamp(-1, 1)", numpy="np.clip(x, -1, 1)", **MEG, bytes=8 * M)
case(P, "masked_fill 1M", "x.masked_fill(c, 0.0)", **MEG, c="x > y", bytes=9 * M)
case(P, "dropout 1M", "F.dropout(x, 0.1)", **MEG, bytes=8 * M)
case(P, "gelu forward and backward 1M", "F.gelu(z).backward(y)", **MEG, z="x.clone().requires_grad_()", bytes=28 * M)
case(P, "randn 1M", "t.randn(1000000)", numpy="np.random.default_rng(0).standard_normal(1000000, np.float32)", bytes=4 * M)
case(P, "rand 1M", "t.rand(1000000)", numpy="np.random.default_rng(0).random(1000000, np.float32)", bytes=4 * M)
case(P, "randperm 1M", "t.randperm(1000000)", bytes=8 * M)
case(P, "zeros 4096x4096", "t.zeros(4096, 4096).fill_(0)", bytes=4 * SQUARE)
case(P, "arange 1M", "t.arange(1000000)", numpy="np.arange(1000000)", bytes=8 * M)
case(P, "tolist 100k", "x.tolist()", numpy="x.tolist()", x="t.randn(100000)", bytes=0.4 * M)

# --- reductions ---------------------------------------------------------------------------------
R = "reductions"
for f in ("sum()", "sum(0)", "sum(1)", "mean(1)", "max()", "amax(1)", "argmax(1)", "std(1)", "norm()"):
    case(R, f"{f} 4096x4096", f"x.{f}", numpy="" if f[:4] in {"std(", "norm", "amax"} else f"x.{f}", **BIG, bytes=4 * SQUARE)
case(R, "argmax(0) 4096x4096", "x.argmax(0)", numpy="x.argmax(0)", **BIG, bytes=4 * SQUARE)
case(R, "var(0) 4096x4096", "x.var(0)", **BIG, bytes=4 * SQUARE)
case(R, "max(1) with indices 4096x4096", "x.max(1)", **BIG, bytes=4 * SQUARE)
case(R, "var_mean over channels 32x64x56x56", "t.var_mean(x, (0, 2, 3))", x="t.randn(32, 64, 56, 56)", bytes=4 * 6.42 * M)
case(R, "logsumexp(1) 4096x4096", "x.logsumexp(1)", **BIG, bytes=4 * SQUARE)
case(R, "cumsum(1) 1024x1024", "x.cumsum(1)", numpy="x.cumsum(1)", x="t.randn(1024, 1024)", bytes=8 * 1.05 * M)
case(R, "sum() 1M", "x.sum()", numpy="x.sum()", **MEG, bytes=4 * M)
case(R, "sum() float64 1M", "z.sum()", numpy="z.sum()", z="t.randn(1000000, dtype=t.float64)", bytes=8 * M)
case(R, "sum() bfloat16 1M", "z.sum()", z="t.randn(1000000).bfloat16()", bytes=2 * M)
case(R, "sum() float16 1M", "z.sum()", z="t.randn(1000000).half()", bytes=2 * M)
case(R, "amax(1) bfloat16 1024x1024", "z.amax(1)", z="t.randn(1024, 1024).bfloat16()", bytes=2 * 1.05 * M)
case(R, "sum(0) 1024x1024", "z.sum(0)", numpy="z.sum(0)", z="t.randn(1024, 1024)", bytes=4 * 1.05 * M)
case(R, "sum((0, 2)) 64x128x64", "z.sum((0, 2))", numpy="z.sum((0, 2))", z="t.randn(64, 128, 64)", bytes=4 * 0.52 * M)
case(R, "sum() complex64 512x512", "z.sum()", z="t.randn(512, 512, dtype=t.complex64)", bytes=8 * QUARTER)
case(R, "sum(1) 4096x256", "z.sum(1)", numpy="z.sum(1)", z="t.randn(4096, 256)", bytes=4 * 1.05 * M)
case(R, "sum(1) 16384x64", "z.sum(1)", numpy="z.sum(1)", z="t.randn(16384, 64)", bytes=4 * 1.05 * M)
case(R, "amax(1) 8192x100", "z.amax(1)", numpy="z.max(1)", z="t.randn(8192, 100)", bytes=4 * 0.82 * M)
case(R, "sum() int64 1M", "z.sum()", numpy="z.sum()", z="t.arange(1000000)", bytes=8 * M)
case(R, "any() bool 1M", "z.any()", numpy="z.any()", z="t.zeros(1000000, dtype=t.bool)", bytes=1 * M)
case(R, "(x == y).all() 1M", "(x == x).all()", numpy="(x == x).all()", **MEG, bytes=6 * M)

# --- matmul -------------------------------------------------------------------------------------
MM = "matmul"
for n in (64, 256, 1024, 2048):
    of = f"t.randn({n}, {n})"
    case(MM, f"{n}x{n}", "x @ y", numpy="x @ y", x=of, y=of, flops=2 * n**3, bytes=12 * n * n)
T = {"x": "t.randn(1024, 1024)", "y": "t.randn(1024, 1024)"}
F1 = 2 * 1024**3
case(MM, "1024x1024, left transposed", "x.T @ y", numpy="x.T @ y", **T, flops=F1)
case(MM, "1024x1024, right transposed", "x @ y.T", numpy="x @ y.T", **T, flops=F1)
for d, k in (("float64", 2), ("bfloat16", 0.5), ("float16", 0.5)):
    of = f"t.randn(1024, 1024).to(t.{d})"
    case(MM, f"1024x1024 {d}", "x @ y", numpy="x @ y" if k == 2 else "", x=of, y=of, flops=F1 * k)
case(MM, "256x256 int64", "x @ x", numpy="x @ x", x="t.randint(0, 9, (256, 256))", flops=8 * 256**3)
case(MM, "4096x4096 by 4096x8", "x @ y", numpy="x @ y", x="t.randn(4096, 4096)", y="t.randn(4096, 8)", flops=16 * SQUARE, bytes=4 * SQUARE)
case(MM, "8x4096 by 4096x4096", "x @ y", numpy="x @ y", x="t.randn(8, 4096)", y="t.randn(4096, 4096)", flops=16 * SQUARE, bytes=4 * SQUARE)
case(MM, "8x4096 by 4096x4096 transposed", "x @ y.T", numpy="x @ y.T", x="t.randn(8, 4096)", y="t.randn(4096, 4096)", flops=16 * SQUARE, bytes=4 * SQUARE)
case(MM, "4096x4096 by vector", "x @ y", numpy="x @ y", x="t.randn(4096, 4096)", y="t.randn(4096)", flops=2 * SQUARE, bytes=4 * SQUARE)
case(MM, "1M dot 1M", "x @ y", numpy="x @ y", **MEG, flops=2 * M, bytes=8 * M)
case(MM, "64 of 64x64", "t.bmm(x, y)", numpy="x @ y", x="t.randn(64, 64, 64)", y="t.randn(64, 64, 64)", flops=2 * 64**4)
case(MM, "48 of 256x64 by 64x256", "x @ y.transpose(1, 2)", numpy="x @ y.transpose(0, 2, 1)", x="t.randn(48, 256, 64)", y="t.randn(48, 256, 64)", flops=2 * 48 * 256 * 256 * 64)
case(MM, "linear 64x100 to 100", "F.linear(x, w, b)", x="t.randn(64, 100)", w="t.randn(100, 100)", b="t.randn(100)", flops=2 * 64 * 100 * 100)
case(MM, "linear 1024x256 to 1024", "F.linear(x, w, b)", x="t.randn(1024, 256)", w="t.randn(1024, 256)", b="t.randn(1024)", flops=2 * 1024 * 256 * 1024)
case(MM, "linear 256x1024 to 1024, forward and backward", "t.autograd.grad(F.linear(x, w, b), (x, w, b), g)", x="t.randn(256, 1024, requires_grad=True)", w="t.randn(1024, 1024, requires_grad=True)", b="t.randn(1024, requires_grad=True)", g="t.randn(256, 1024)", flops=6 * 256 * 1024 * 1024)
case(MM, "einsum bhqd,bhkd->bhqk 8x12x128x64", "t.einsum('bhqd,bhkd->bhqk', x, y)", x="t.randn(8, 12, 128, 64)", y="t.randn(8, 12, 128, 64)", flops=2 * 96 * 128 * 128 * 64)
SPD = {"x": "t.randn(512, 512)", "s": "x @ x.T + 512 * t.eye(512)", "y": "t.randn(512, 8)"}
case(MM, "linalg.solve 512", "t.linalg.solve(s, y)", numpy="np.linalg.solve(s, y)", **SPD, flops=2 / 3 * 512**3)
case(MM, "linalg.cholesky 512", "t.linalg.cholesky(s)", numpy="np.linalg.cholesky(s)", **SPD, flops=1 / 3 * 512**3)
case(MM, "linalg.inv 512", "t.linalg.inv(s)", numpy="np.linalg.inv(s)", **SPD, flops=2 * 512**3)
case(MM, "linalg.svd 128", "t.linalg.svd(x)", numpy="np.linalg.svd(x)", result="t.linalg.svd(x).S", x="t.randn(128, 128)")
for n in (16, 256):
    ANY = {"x": f"t.randn({n}, {n})", "s": "x + x.T", "e": f"x / {n**0.5}"}
    case(MM, f"linalg.eigh {n}", "t.linalg.eigh(s)", numpy="np.linalg.eigh(s)", result="t.linalg.eigh(s)[0]", **ANY)
    case(MM, f"linalg.eig {n}", "t.linalg.eig(x)", numpy="np.linalg.eig(x)", result="t.linalg.eigvals(x).abs().sort()[0]", **ANY)
    case(MM, f"linalg.svdvals {n}", "t.linalg.svdvals(x)", numpy="np.linalg.svd(x, compute_uv=False)", **ANY)
    case(MM, f"linalg.qr {n}", "t.linalg.qr(x)", numpy="np.linalg.qr(x)", result="t.linalg.qr(x).R", **ANY, flops=8 / 3 * n**3)
    case(MM, f"linalg.lstsq {2 * n}x{n}", "t.linalg.lstsq(z, w)", numpy="np.linalg.lstsq(z, w)", result="t.linalg.lstsq(z, w)[0]", z=f"t.randn({2 * n}, {n})", w=f"t.randn({2 * n}, 8)")
    case(MM, f"linalg.matrix_exp {n}", "t.linalg.matrix_exp(e)", **ANY)
    case(MM, f"linalg.det {n}", "t.linalg.det(d)", numpy="np.linalg.det(d)", **ANY, d="1.65 * e", flops=2 / 3 * n**3)
SYSTEM = {"x": "t.randn(16, 16)", "z": "x + 8 * t.eye(16)", "y": "t.randn(16, 8)"}
SYSTEMS = {"x": "t.randn(256, 4, 4)", "z": "x + 8 * t.eye(4)", "y": "t.randn(256, 4, 4)"}
case(MM, "linalg.inv 16", "t.linalg.inv(z)", numpy="np.linalg.inv(z)", **SYSTEM)
case(MM, "linalg.solve 16", "t.linalg.solve(z, y)", numpy="np.linalg.solve(z, y)", **SYSTEM)
case(MM, "linalg.solve, 256 of 4x4", "t.linalg.solve(z, y)", numpy="np.linalg.solve(z, y)", **SYSTEMS)
case(MM, "linalg.eigh, 64 of 16x16", "t.linalg.eigh(s)", numpy="np.linalg.eigh(s)", result="t.linalg.eigh(s)[0]", x="t.randn(64, 16, 16)", s="x + x.mT")
case(MM, "cdist 1024x64", "t.cdist(x, y)", x="t.randn(1024, 64)", y="t.randn(1024, 64)", flops=2 * 1024 * 1024 * 64)

# --- convolution --------------------------------------------------------------------------------
C = "convolution"


def convolution(label: str, op: str, x: str, w: str, g: str, gflops: float) -> None:
    """Add the forward row and the one with both gradients."""
    names = {"x": f"t.randn({x})", "w": f"t.randn({w})"}
    case(C, label, op, **names, flops=gflops * 1e9)
    names = {k: f"{v}.requires_grad_()" for k, v in names.items()} | {"g": f"t.randn({g})"}
    back = f"t.autograd.grad({op}, (x, w), g)"
    case(C, f"{label}, forward and backward", back, **names, flops=3e9 * gflops)


convolution("3x3 64 to 64, 32x56x56", "F.conv2d(x, w, padding=1)", "32, 64, 56, 56", "64, 64, 3, 3", "32, 64, 56, 56", 7.40)
convolution("1x1 64 to 256, 32x28x28", "F.conv2d(x, w)", "32, 64, 28, 28", "256, 64, 1, 1", "32, 256, 28, 28", 0.822)
convolution("7x7 stride 2, 3 to 64, 8x224x224", "F.conv2d(x, w, stride=2, padding=3)", "8, 3, 224, 224", "64, 3, 7, 7", "8, 64, 112, 112", 1.89)
convolution("3x3 1 to 32, 64x28x28", "F.conv2d(x, w)", "64, 1, 28, 28", "32, 1, 3, 3", "64, 32, 26, 26", 0.0249)
convolution("3x3 depthwise 64, 32x56x56", "F.conv2d(x, w, padding=1, groups=64)", "32, 64, 56, 56", "64, 1, 3, 3", "32, 64, 56, 56", 0.1156)
convolution("3x3 8 groups, dilation 2, 64, 16x28x28", "F.conv2d(x, w, padding=2, dilation=2, groups=8)", "16, 64, 28, 28", "64, 8, 3, 3", "16, 64, 28, 28", 0.1156)
convolution("transposed 4x4 stride 2, 64 to 32, 8x28x28", "F.conv_transpose2d(x, w, stride=2, padding=1)", "8, 64, 28, 28", "64, 32, 4, 4", "8, 32, 56, 56", 0.411)
convolution("1-d 5, 64 to 64, 16x1024", "F.conv1d(x, w, padding=2)", "16, 64, 1024", "64, 64, 5", "16, 64, 1024", 0.671)
convolution("3-d 3x3x3, 16 to 32, 2x16x28x28", "F.conv3d(x, w, padding=1)", "2, 16, 16, 28, 28", "32, 16, 3, 3, 3", "2, 32, 16, 28, 28", 0.694)

# --- pooling, normalisation, softmax -------------------------------------------------------------
IMAGE = {"x": "t.randn(32, 64, 56, 56)", "r": "x.clone().requires_grad_()"}
IB = 4 * 32 * 64 * 56 * 56
case("pooling", "max_pool2d 2 32x64x56x56", "F.max_pool2d(x, 2)", **IMAGE, bytes=1.25 * IB)
case("pooling", "max_pool2d 2, forward and backward", "t.autograd.grad(F.max_pool2d(r, 2), r, g)", g="t.randn(32, 64, 28, 28)", **IMAGE, bytes=2.5 * IB)
case("pooling", "max_pool2d 3 stride 2 padding 1", "F.max_pool2d(x, 3, 2, 1)", **IMAGE, bytes=1.25 * IB)
case("pooling", "avg_pool2d 2, forward and backward", "t.autograd.grad(F.avg_pool2d(r, 2), r, g)", g="t.randn(32, 64, 28, 28)", **IMAGE, bytes=2.5 * IB)
case("pooling", "adaptive_avg_pool2d 1", "F.adaptive_avg_pool2d(x, 1)", **IMAGE, bytes=IB)
case("pooling", "interpolate bilinear x2 8x64x56x56", "F.interpolate(x, scale_factor=2, mode='bilinear')", x="t.randn(8, 64, 56, 56)", bytes=5 * IB / 4)

N = "normalisation"
ROWS = {"x": "t.randn(4096, 1024)", "r": "x.clone().requires_grad_()", "w": "t.ones(1024, requires_grad=True)", "b": "t.zeros(1024, requires_grad=True)"}
RB = 4 * 4096 * 1024
case(N, "layer_norm 4096x1024", "F.layer_norm(x, (1024,), w.detach(), b.detach())", **ROWS, bytes=2 * RB)
case(N, "layer_norm, forward and backward", "t.autograd.grad(F.layer_norm(r, (1024,), w, b), (r, w, b), x)", **ROWS, bytes=5 * RB)
case(N, "rms_norm, forward and backward", "t.autograd.grad(F.rms_norm(r, (1024,), w), (r, w), x)", **ROWS, bytes=5 * RB)
CHANNELS = {**IMAGE, "w": "t.ones(64, requires_grad=True)", "b": "t.zeros(64, requires_grad=True)", "m": "t.zeros(64)", "v": "t.ones(64)"}
case(N, "batch_norm training 32x64x56x56", "F.batch_norm(x, m, v, w.detach(), b.detach(), True)", **CHANNELS, bytes=2 * IB)
case(N, "batch_norm evaluation", "F.batch_norm(x, m, v, w.detach(), b.detach())", **CHANNELS, bytes=2 * IB)
case(N, "batch_norm, forward and backward", "t.autograd.grad(F.batch_norm(r, m, v, w, b, True), (r, w, b), x)", **CHANNELS, bytes=5 * IB)
case(N, "group_norm 8, forward and backward", "t.autograd.grad(F.group_norm(r, 8, w, b), (r, w, b), x)", **CHANNELS, bytes=5 * IB)

S = "softmax"
case(S, "softmax 4096x4096", "F.softmax(x, 1)", **BIG, bytes=8 * SQUARE)
case(S, "softmax over dim 0 4096x4096", "F.softmax(x, 0)", **BIG, bytes=8 * SQUARE)
case(S, "softmax 64x10", "F.softmax(x, 1)", x="t.randn(64, 10)")
case(S, "log_softmax 4096x1000, forward and backward", "t.autograd.grad(F.log_softmax(x, 1), x, g)", x="t.randn(4096, 1000, requires_grad=True)", g="t.randn(4096, 1000)", bytes=5 * 4 * 4.096 * M)
case(S, "cross_entropy 4096x4096", "F.cross_entropy(x, y)", x="t.randn(4096, 4096)", y="t.randint(0, 4096, (4096,))", bytes=4 * SQUARE)
case(S, "cross_entropy 4096x1000, forward and backward", "t.autograd.grad(F.cross_entropy(x, y), x)", x="t.randn(4096, 1000, requires_grad=True)", y="t.randint(0, 1000, (4096,))", bytes=3 * 4 * 4.096 * M)
case(S, "mse_loss 1M, forward and backward", "t.autograd.grad(F.mse_loss(r, y), r)", **MEG, r="x.clone().requires_grad_()", bytes=20 * M)
PAIR = {**MEG, "r": "x.clone().requires_grad_()", "p": "y.sigmoid()"}
for f in ("smooth_l1_loss(r, y)", "binary_cross_entropy_with_logits(r, p)", "kl_div(r, p, reduction='batchmean')"):
    case(S, f"{f.split('(')[0]} 1M, forward and backward", f"t.autograd.grad(F.{f}, r)", **PAIR, bytes=20 * M)

# --- indexing, sorting ---------------------------------------------------------------------------
I = "indexing"  # noqa: E741
TABLE = {"w": "t.randn(50000, 256, requires_grad=True)", "i": "t.randint(0, 50000, (32, 128))", "g": "t.randn(32, 128, 256)"}
case(I, "embedding 4096 of 50000x256", "F.embedding(i, w.detach())", **TABLE, bytes=8 * 4096 * 256)
case(I, "embedding, forward and backward", "t.autograd.grad(F.embedding(i, w), w, g)", **TABLE, bytes=4 * 50000 * 256 + 16 * 4096 * 256)
GRID = {"x": "t.randn(1024, 1024)", "i": "t.randint(0, 1024, (1024, 1024))", "j": "t.randint(0, 1024, (1024,))", "c": "x > 0", "z": "t.zeros(1024, 1024)"}
case(I, "gather 1024x1024", "x.gather(1, i)", numpy="np.take_along_axis(x, i, 1)", **GRID, bytes=16 * 1.05 * M)
case(I, "scatter_add_ 1024x1024", "z.scatter_add_(1, i, x)", **GRID, bytes=20 * 1.05 * M)
case(I, "index_select 1024x1024", "x.index_select(0, j)", numpy="x[j]", **GRID, bytes=8 * 1.05 * M)
case(I, "x[j] 1024x1024", "x[j]", numpy="x[j]", **GRID, bytes=8 * 1.05 * M)
case(I, "x[:, j] 1024x1024", "x[:, j]", numpy="x[:, j]", **GRID, bytes=8 * 1.05 * M)
case(I, "x[c] 1024x1024", "x[c]", numpy="x[c]", **GRID, bytes=7 * 1.05 * M)
case(I, "nonzero 1024x1024", "c.nonzero()", numpy="np.argwhere(c)", **GRID, bytes=9 * 1.05 * M)
case(I, "index_add_ 1024x1024", "z.index_add_(0, j, x)", **GRID, bytes=12 * 1.05 * M)
case(I, "z[j] = x 1024x1024", "z[j] = x", numpy="z[j] = x", **GRID, bytes=8 * 1.05 * M)
case(I, "one_hot 4096 of 1000", "F.one_hot(i, 1000)", i="t.randint(0, 1000, (4096,))", bytes=8 * 4.1 * M)

O = "sorting"  # noqa: E741
case(O, "sort 1M", "x.sort()", numpy="np.sort(x)", **MEG, bytes=16 * M)
case(O, "sort rows 1024x1024", "x.sort(1)", numpy="np.sort(x, 1)", x="t.randn(1024, 1024)", bytes=16 * M)
case(O, "argsort int64 1M", "x.argsort()", numpy="x.argsort()", x="t.randint(0, 1000000, (1000000,))", bytes=16 * M)
case(O, "topk 10 of 1M", "x.topk(10)", **MEG, bytes=4 * M)
case(O, "topk 5 of 4096x1000", "x.topk(5)", x="t.randn(4096, 1000)", bytes=4 * 4.096 * M)
case(O, "unique int64 1M", "t.unique(x)", numpy="np.unique(x)", x="t.randint(0, 1000, (1000000,))", bytes=8 * M)
case(O, "median(1) 1024x1024", "x.median(1)", x="t.randn(1024, 1024)", bytes=4 * M)
case(O, "searchsorted 1M in 1000", "t.searchsorted(s, x)", numpy="np.searchsorted(s, x)", s="t.randn(1000).sort().values", **MEG, bytes=12 * M)

# --- attention, recurrent networks -----------------------------------------------------------------
A = "attention"
QKV = {"q": "t.randn(8, 12, 256, 64, requires_grad=True)", "k": "t.randn(8, 12, 256, 64, requires_grad=True)", "v": "t.randn(8, 12, 256, 64, requires_grad=True)", "g": "t.randn(8, 12, 256, 64)"}
AF = 4 * 96 * 256 * 256 * 64
SDPA = "F.scaled_dot_product_attention"
case(A, "causal 8x12x256x64", f"{SDPA}(q.detach(), k.detach(), v.detach(), is_causal=True)", **QKV, flops=AF / 2)
case(A, "causal, forward and backward", f"t.autograd.grad({SDPA}(q, k, v, is_causal=True), (q, k, v), g)", **QKV, flops=3.5 * AF / 2)
case(A, "full, forward and backward", f"t.autograd.grad({SDPA}(q, k, v), (q, k, v), g)", **QKV, flops=3.5 * AF)
case(A, "MultiheadAttention 256, 4 heads, 8x128", "m(x, x, x, need_weights=False)[0]", m="t.nn.MultiheadAttention(256, 4, batch_first=True)", x="t.randn(8, 128, 256)", flops=2 * 1024 * 256 * 1024 + 4 * 32 * 128 * 128 * 64)
case(A, "TransformerEncoderLayer 256, 8x128, training", "m(x).sum().backward()", m="t.nn.TransformerEncoderLayer(256, 4, 1024, batch_first=True)", x="t.randn(8, 128, 256)", flops=3 * (2 * 1024 * 256 * 3072 + 4 * 32 * 128 * 128 * 64))
for kind, gates in (("LSTM", 4), ("GRU", 3)):
    names = {"m": f"t.nn.{kind}(128, 256)", "x": "t.randn(64, 32, 128)"}
    work = 2 * 64 * 32 * (128 + 256) * 256 * gates
    case("recurrent", f"{kind} 128 to 256, 64x32", "m(x)[0]", **names, flops=work)
    case("recurrent", f"{kind}, forward and backward", "m(x)[0].sum().backward()", **names, flops=3 * work)

# --- optimizers, data, files ------------------------------------------------------------------------
Z = "optimizers"
TEN = "[(1000, 1000)] * 10"
LITTLE = "[(64, 100), (64,), (64, 64), (64,), (10, 64), (10,)]"
case(Z, "SGD momentum 10M", "step()", step=f"models.stepper(t, 'SGD', {TEN}, lr=0.01, momentum=0.9)", bytes=200 * M)
case(Z, "Adam 10M", "step()", step=f"models.stepper(t, 'Adam', {TEN})", bytes=280 * M)
case(Z, "Adam fused=True 10M", "step()", step=f"models.stepper(t, 'Adam', {TEN}, fused=True)", bytes=280 * M)
case(Z, "AdamW 10M", "step()", step=f"models.stepper(t, 'AdamW', {TEN})", bytes=280 * M)
case(Z, "RMSprop 10M", "step()", step=f"models.stepper(t, 'RMSprop', {TEN})", bytes=200 * M)
case(Z, "SGD tiny MLP", "step()", step=f"models.stepper(t, 'SGD', {LITTLE}, lr=0.01)")
case(Z, "Adam tiny MLP", "step()", step=f"models.stepper(t, 'Adam', {LITTLE})")
case(Z, "clip_grad_norm_ 10M", "t.nn.utils.clip_grad_norm_(p, 1e9)", p="[t.nn.Parameter(t.randn(1000, 1000)) for _ in range(10)]", e="[setattr(q, 'grad', t.randn(1000, 1000)) for q in p]", bytes=120 * M)

D = "data and files"
case(D, "DataLoader of 8192 rows, batch 64", "step()", step="models.epoch(t)", bytes=8 * 8192 * 101)
FILES = {"f": "models.saver(t, 25_000_000, 10)", "h": "models.saver(t, 64_000, 64)"}
for k, what in enumerate(("save", "load", "load mmap=True")):
    case(D, f"{what} 100 MB", f"f[{k}]()", f=FILES["f"], bytes=0 if k == 2 else 200 * M)
for k, what in enumerate(("save", "load")):
    case(D, f"{what} 64 tensors of 4 KB", f"h[{k}]()", h=FILES["h"])

# --- Fourier transforms -------------------------------------------------------------------------------
FT = "Fourier transforms"
SECOND = {"x": "t.randn(16, 16000)", "w": "t.hann_window(400)"}
case(FT, "rfft 1024x1024", "t.fft.rfft(x)", numpy="np.fft.rfft(x)", x="t.randn(1024, 1024)", bytes=8 * M, result="t.view_as_real(t.fft.rfft(x))")
case(FT, "fft 4096x256", "t.fft.fft(x)", numpy="np.fft.fft(x)", x="t.randn(4096, 256, dtype=t.complex64)", bytes=16 * M)
case(FT, "stft 16 signals of 1 s at 16 kHz, 400 and 160", "t.stft(x, 400, 160, window=w, return_complex=True)", **SECOND, result="t.view_as_real(t.stft(x, 400, 160, window=w, return_complex=True))", bytes=16 * 4 * (16000 + 2 * 201 * 101))

# --- training steps -----------------------------------------------------------------------------------
TR = "training step"
case(TR, "MLP 100-64-64-10, batch 64, Adam", "step()", step="models.mlp(t, (100, 64, 64, 10), 64, 'Adam')", flops=6 * 64 * 11136)
case(TR, "MLP 784-128-64-10, batch 64, SGD momentum", "step()", step="models.mlp(t, (784, 128, 64, 10), 64, 'SGD', lr=0.01, momentum=0.9)", flops=6 * 64 * 109184)
case(TR, "MLP 1024-1024-1024-1024, batch 256, SGD", "step()", step="models.mlp(t, (1024,) * 4, 256, 'SGD', lr=0.01)", flops=6 * 256 * 3 * 1024 * 1024)
case(TR, "digits CNN, batch 64, Adam", "step()", step="models.cnn(t)", flops=3 * 64 * 2 * (32 * 9 * 676 + 64 * 288 * 576 + 9216 * 128))
case(TR, "residual block 32x64x28x28, SGD momentum", "step()", step="models.residual(t)", flops=6 * 2 * 32 * 784 * 64 * 576)
case(TR, "GPT 5.3M, 8x128, AdamW", "step()", step="models.gpt(t)", flops=6 * 1024 * (4 * 12 * 256 * 256 + 256 * 4096) + 3 * 4 * 4 * 32 * 128 * 128 * 64)

# --- recorded functions: ours by compile(), beside PyTorch as it runs without a compiler ----------------
RC = "recorded"
CHAIN = {**BIG, "a": "t.tensor(1.5)", "b": "t.tensor(0.5)", "c": "t.tensor(2.0)", "r": "x.clone().requires_grad_()"}
EAGER, BACK = "models.chain(t)", "models.chain_gradient(t, r, a, b, c)"
case(RC, "sum of gelu(x * a + b) * c 4096x4096, as it is", "f(x, a, b, c)", f=EAGER, **CHAIN, bytes=4 * SQUARE)
case(RC, "sum of gelu(x * a + b) * c 4096x4096, recorded", "f(x, a, b, c)", f=f"models.recorded(t, {EAGER})", **CHAIN, bytes=4 * SQUARE)
case(RC, "the same, forward and backward, as it is", "f()", **CHAIN, f=BACK, bytes=8 * SQUARE)
case(RC, "the same, forward and backward, recorded", "f()", **CHAIN, f=f"models.recorded(t, {BACK})", bytes=8 * SQUARE)
case(RC, "GPT 5.3M, 8x128, AdamW, recorded", "step()", step="models.recorded(t, models.gpt(t))", flops=6 * 1024 * (4 * 12 * 256 * 256 + 256 * 4096) + 3 * 4 * 4 * 32 * 128 * 128 * 64)
