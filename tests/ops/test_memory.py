"""Memory: results depend on the arguments alone, and where there is not enough, errors."""

import os
import signal
import sys

import child
import numpy as np
import pytest
from op_calls import leaves, mapped, named, tensors
from op_db import OPS
from op_row import Op, Sample

import pytensorlib as torch

FILL = torch._C._fill_new_memory


def emptied(sample: Sample):
    """Yield the call with each of its sizes as zero: everywhere, and in one argument alone."""
    arrays = list(leaves((sample.args, sample.kwargs)))
    arrays = [a for a in arrays if isinstance(a, np.ndarray)]
    cuts = [
        {(id(a), d) for a in arrays for d, n in enumerate(a.shape) if n == size}
        for size in {n for a in arrays for n in a.shape}
    ]
    cuts += [{(id(a), d)} for a in arrays for d in range(a.ndim)]
    for cut in cuts:

        def without(a, cut=cut):
            if np.ndim(a) == 0:
                return a
            return a[tuple(slice(0 if (id(a), d) in cut else None) for d in range(a.ndim))]

        yield Sample(mapped(sample.args, without), mapped(sample.kwargs, without))


def outcome(op: Op, sample: Sample, dtype: str, byte: int):
    """Return all that comes out of a call, its gradients included, as bytes."""
    call = tensors(sample, dtype)
    inputs = [
        t.requires_grad_()
        for t in leaves((call.args, call.kwargs))
        if op.differentiable and t.is_floating_point()
    ]
    torch.manual_seed(0)
    FILL(byte)
    try:
        results = [
            r
            for r in leaves(op.function(torch)(*call.args, **call.kwargs))
            if isinstance(r, torch.Tensor)
        ]
        roots = [r for r in results if r.requires_grad]
        if roots:
            ones = [torch.ones_like(r) for r in roots]
            grads = torch.autograd.grad(roots, inputs, ones, allow_unused=True)
            results += [g for g in grads if g is not None]
    except (RuntimeError, ValueError, IndexError, TypeError, NotImplementedError) as e:
        return f"{type(e).__name__}: {e}"
    finally:
        FILL(None)
    return [
        (str(r.dtype), tuple(r.shape), r.detach().contiguous().numpy().tobytes())
        for r in results
        if r.dtype != torch.bfloat16
    ]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("op", named(OPS))
def test_results_do_not_depend_on_what_was_in_memory(op):
    samples = op.samples()
    calls = [(s, dtype) for s in samples for dtype in op.dtypes[:2]]
    calls += [(e, op.dtypes[0]) for s in samples[:6] for e in emptied(s)]
    for sample, dtype in calls:
        one, two = (outcome(op, sample, dtype, byte) for byte in (0xFF, 0x11))
        assert one == two, (dtype, [np.shape(a) for a in leaves((sample.args, sample.kwargs))])


# Calls whose workspaces grow with their arguments; `x` and `y` are vectors, `m` a square matrix,
# `s` a symmetric one, `i` integers.
CALLS = """
x.sort() x.argsort() x.sort(stable=True) x.double().sort() m.sort(0) x.topk(5) x.topk(100_000)
x.median() x.nanmedian() x.median(0) x.kthvalue(7) x.mode() x.quantile(0.3) x.unique()
x.unique(return_inverse=True,return_counts=True) m.unique(dim=0) i.unique() i.unique(sorted=False)
i.unique_consecutive(return_counts=True) torch.isin(i,i) torch.searchsorted(x.sort()[0],x)
x.nonzero() x[x>0] x.masked_select(x>0) x.masked_fill(x>0,1) torch.where(x>0) i.bincount()
x.histc(1000) torch.histogram(x,100_000) x.abs().multinomial(5) torch.randperm(len(x)) x.cumsum(0)
x.cumprod(0) x.logcumsumexp(0) x.cummax(0) m.cumsum(0) x.sum() x.mean() x.var() m.sum(0) m.var(0)
m.norm() m.std(1) x.logsumexp(0) x.prod() x.max() m.max(0) x.softmax(0) m.softmax(0) x.argmax()
x.flip(0) m.rot90() x.roll(3) m.t().contiguous() x.repeat(3) x.repeat_interleave(2)
torch.cat([x,x]) torch.stack([x,x]) x.index_select(0,i) x[i] x.gather(0,i) x.scatter(0,i,x)
x.scatter_add(0,i,x) x.scatter_reduce(0,i,x,'mean') x.index_add(0,i,x) x.index_put((i,),x)
x.index_copy(0,i,x) x.take(i) x.put(i,x) m.diag() x.diag_embed()[:1] m.tril() m@m
m.double()@m.double() m.half()@m.half() x@x torch.outer(x[:500],x[:500])
i.view(512,-1)@i.view(-1,512) torch.cdist(m,m) torch.cdist(m,m,p=1) F.pdist(m[:200]) m.cov()
torch.einsum('ij,jk->ik',m,m) L.svd(m) L.svdvals(m) L.eigh(s) L.eigvalsh(s)
L.inv(m) L.det(m) L.slogdet(m) L.solve(m,m) L.qr(m) L.lu(m) L.lu_factor(m) L.pinv(m)
L.matrix_rank(m) L.cholesky(m@m.T+99*e) L.matrix_norm(m,'nuc') L.solve_triangular(m,m,upper=True)
L.lu_solve(*L.lu_factor(m),m) L.matrix_power(m,3) L.multi_dot([m,m,m])
F.conv1d(x.view(1,4,-1),x[:48].view(4,4,3)) F.conv2d(m.view(1,2,-1,512),x[:180].view(10,2,3,3))
F.conv2d(w,x[:144].view(4,4,3,3)) F.conv_transpose2d(w,x[:144].view(4,4,3,3))
F.conv3d(v,x[:216].view(4,2,3,3,3)) F.max_pool2d(w,3) F.max_pool2d(w,3,return_indices=True)
F.avg_pool2d(w,3) F.adaptive_avg_pool2d(w,7) F.adaptive_max_pool2d(w,7)
F.fractional_max_pool2d(w,2,output_size=20) F.lp_pool2d(w,2,3)
F.max_unpool2d(*F.max_pool2d(w,2,return_indices=True),2) F.unfold(w,3)
F.interpolate(w,scale_factor=2) F.interpolate(w,scale_factor=1.7,mode='bilinear')
F.interpolate(w,scale_factor=.4,mode='bicubic') F.grid_sample(w,m.view(4,1,-1,2))
F.affine_grid(x[:6].view(1,2,3),[1,1,300,300]) F.layer_norm(m,[512])
F.batch_norm(w,None,None,training=True) F.group_norm(w,2) F.instance_norm(w)
F.cross_entropy(m,i[:512]%512) F.nll_loss(m,i[:512]%512) F.cross_entropy(m,m)
F.nll_loss(m,i[:512]%512,reduction='none') F.multi_margin_loss(m,i[:512]%512) F.kl_div(m,m)
F.multilabel_margin_loss(m,i.view(512,-1)%512) F.binary_cross_entropy_with_logits(m,m)
F.ctc_loss(m.view(64,8,512),i[:160].view(8,20)%500+1,[64]*8,[20]*8) F.embedding(i%512,m[:,:8])
F.embedding_bag(i.view(512,-1)%512,m) F.embedding_bag(i.view(512,-1)%512,m,mode='max')
F.scaled_dot_product_attention(w,w,w) F.scaled_dot_product_attention(w,w,w,is_causal=True)
F.one_hot(i[:2000]%100) F.pad(w,(9,9,9,9),mode='reflect') F.pixel_shuffle(w,2) F.dropout(x)
F.gelu(x) torch.rand(len(x)) torch.randn(len(x)) torch.normal(x,1.) torch.bernoulli(x.sigmoid())
x.tolist() torch.tensor(big) torch.combinations(x[:600]) torch.cartesian_prod(x[:500],x[:500])
x.unfold(0,9,1)+0 torch.trapezoid(x) x.diff() torch.meshgrid(x[:500],x[:500],indexing='ij')[0]+1
x.double() x.half() x.sin() x+1 x.pow(x) x.lgamma() x.clone() x.view(-1,2).t()+1 torch.lerp(x,x,x)
F.bilinear(m,m,b) torch.nn.LSTM(512,64)(m.view(64,8,512)) torch.nn.GRU(512,64)(m.view(64,8,512))
torch.ones(1).expand(2**50).sum() torch.ones(1).expand(2**50).max()
torch.ones(1).expand(2**50).norm() torch.ones(1).expand(2**50).var()
torch.ones(1).expand(2**50).any() torch.ones(1).expand(2**50).mean()
torch.ones(1).expand(2**50).prod() torch.ones(1).expand(2**50).logsumexp(0) p@p
""".split()  # noqa: SIM905


def short_of_memory(call: str, scope: dict, more: int) -> int:
    """Make the call, with gradients where there are any, in a child that may take `more` bytes."""
    import resource

    child = os.fork()
    if child:
        return os.waitpid(child, 0)[1]
    with open("/proc/self/statm") as file:
        now = int(file.read().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_AS, (now + more,) * 2)
    signal.alarm(60)
    try:
        results = [r for r in leaves(eval(call, scope)) if isinstance(r, torch.Tensor)]
        for r in results:
            if r.requires_grad:
                r.backward(torch.ones_like(r), retain_graph=True)
    except (SyntaxError, NameError, AttributeError) as e:
        os.write(2, f"{call}: {type(e).__name__}: {e}\n".encode())
        os._exit(3)
    except Exception:
        os._exit(0)
    except BaseException as e:  # a panic
        os.write(2, f"{call}: {type(e).__name__}: {e}\n".encode())
        os._exit(3)
    os._exit(0)


def survive() -> None:
    """Print the calls that end the process when memory ends."""
    torch.set_num_threads(1)
    torch.manual_seed(0)
    x = torch.randn(1 << 18)
    m = x.view(512, 512)
    scope = {
        "torch": torch, "F": torch.nn.functional, "L": torch.linalg, "x": x, "m": m, "s": m + m.T,
        "i": torch.randint(0, len(x), x.shape), "e": torch.eye(512), "w": m.view(4, 4, 128, 128),
        "v": x.view(2, 2, 64, 32, 32), "b": x[:4 * 512 * 16].repeat(32).view(4, 512, 512),
        "big": x.tolist(), "p": torch.ones(1).expand(2**50),
    }  # fmt: skip
    for name in "xmswvb":
        scope[name] = scope[name].clone().requires_grad_()
    torch._C._empty_cache()
    for call in CALLS:
        for more in (1 << 20, 3 << 20):
            code = short_of_memory(call, scope, more)
            if code:
                print(call, "ends with", code, "for", more, "bytes more", flush=True)


@pytest.mark.slow
@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="limits and forks as in Linux")
def test_running_out_of_memory_raises_and_never_ends_the_process():
    code = "import test_memory; test_memory.survive()"
    done = child.python("-W", "ignore", "-c", code, cwd=os.path.dirname(__file__), timeout=600)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
