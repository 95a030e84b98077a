//! Recurrent layers on the GPU: one kernel for each step, forward and backward.

use super::composite::Cell;
use super::fused::{Layer, Plan};
use crate::autograd::Vjp;
use crate::device::Device;
use crate::dispatch;
use crate::dtype::DType;
use crate::error::Result;
use crate::gpu::shader::Numbers;
use crate::gpu::{params, shader, Acc, Buffer, Gpu, Window};
use crate::layout::Layout;
use crate::meta::Meta;
use crate::op::{Derivative, Grads, Metas, Op, TensorMeta};
use crate::ops::linalg::matmul::{slopes_of_linear, MatMul};
use crate::ops::pointwise::apply;
use crate::ops::pointwise::binary::Mul;
use crate::ops::shape::view::parts::assemble;
use crate::shape::{Dims, Strides};
use crate::tensor::Tensor;
use crate::{bail, transfer};

params! {
    struct Forward {
        n: u32,
        width: u32,
        row: u32,
        before: u32,
        on: u32,
        blocks: u32,
        h_offset: u32,
        c_offset: u32,
        w_offset: u32,
        b_offset: u32,
    }
}
params! {
    struct Backward {
        n: u32,
        width: u32,
        row: u32,
        before: u32,
        on: u32,
        after: u32,
        going: u32,
        blocks: u32,
        first_offset: u32,
        w_offset: u32,
        g_offset: u32,
    }
}
const CELLS: Numbers = &[
    ("TANH", Cell::Tanh as u32),
    ("RELU", Cell::Relu as u32),
    ("GRU", Cell::Gru as u32),
    ("LSTM", Cell::Lstm as u32),
];
shader! { static STEP: Forward = "rnn.wgsl", Acc::FLOAT, numbers CELLS }
shader! { static STEP_BACK: Backward = "rnn_backward.wgsl", Acc::FLOAT, numbers CELLS }

/// Units and sequences of one workgroup.
const SIDE: usize = 16;

/// Rows that begin where a binding may, whatever their width.
const ALIGNED: usize = Window::ALIGN as usize / 4;

/// Whether a kernel can bind what one step reads and writes: the recurrent weights, first states, and
/// rows of three steps.
pub(super) fn binds(cell: Cell, h: &Tensor, w_hh: &Tensor) -> bool {
    let Device::Wgpu(index) = h.device() else {
        return true;
    };
    let (n, width) = (h.size(0), h.size(h.ndim() - 1));
    let step = (3 * n + ALIGNED) * cell.gates() * width * 4;
    let most = transfer::bindable_bytes(index);
    step.max(w_hh.numel() * 4) <= most
}

/// The rows of all steps that the kernel of one step sees.
struct Rows {
    first: usize,
    n: usize,
}

impl Rows {
    /// Those of these steps (first row, how many), or all where a kernel can bind them.
    fn of(p: &Plan, all: &[&Tensor], steps: &[(usize, usize)]) -> Rows {
        if all.iter().all(|t| transfer::is_bound_whole(t)) {
            return Rows {
                first: 0,
                n: p.rows,
            };
        }
        let steps = || steps.iter().filter(|s| s.1 > 0);
        let first = steps().map(|s| s.0).min().unwrap_or(0) / ALIGNED * ALIGNED;
        let end = steps().map(|s| s.0 + s.1).max().unwrap_or(first);
        let n = end - first;
        Rows { first, n }
    }

    /// These rows as a kernel binds them: memory that begins with the first, a copy where that is in two
    /// buffers.
    fn seen(&self, t: &Tensor) -> Result<Tensor> {
        let rows = rows(t, self.first, self.n)?;
        if self.first == 0 && transfer::is_bound_whole(t) {
            return Ok(rows);
        }
        let row = t.size(1) * 4;
        let start = ((t.offset() * 4) + self.first * row) as u64;
        let size = (self.n * row) as u64;
        let part = match start.is_multiple_of(Window::ALIGN) {
            true => t.storage().window(Window { start, size }),
            false => None,
        };
        match part {
            Some(part) => {
                let layout = Layout::contiguous(rows.shape());
                Ok(Tensor::from_storage(part, layout, DType::F32))
            }
            None => rows.copy_dense(),
        }
    }

    /// Brings rows back that a kernel wrote to a copy.
    fn written(&self, t: &Tensor, seen: &Tensor) -> Result<()> {
        let same = |(a, b): (&Buffer, &Buffer)| a.same(b);
        match t.storage().buffer().zip(seen.storage().buffer()) {
            Some(both) if same(both) => Ok(()),
            _ => rows(t, self.first, self.n)?.write_from(seen),
        }
    }
}

/// What a step begins with: the first row of the step before, and how many sequences go on from it.
fn before(p: &Plan, i: usize) -> (usize, usize) {
    match i.checked_sub(1).map(|i| p.order[i]) {
        Some(t) => (p.starts[t], p.sizes[p.order[i]].min(p.sizes[t])),
        None => (0, 0),
    }
}

/// Rows of a matrix.
fn rows(t: &Tensor, from: usize, n: usize) -> Result<Tensor> {
    Ok(t.alias(t.layout().narrow(0, from as i64, n as i64)?))
}

/// The states of all sequences after their last steps.
fn last(p: &Plan, all: &Tensor, to: &Tensor) -> Result<()> {
    let mut done = 0;
    for &t in p.order.iter().rev() {
        let n = p.sizes[t];
        if n > done {
            let from = rows(all, p.starts[t] + done, n - done)?;
            rows(to, done, n - done)?.write_from(&from)?;
            done = n;
        }
    }
    Ok(())
}

/// All steps of a layer; see [`Layer`] for inputs and results.
pub(super) fn forward(op: &Layer, gpu: &Gpu, x: &[&Tensor], y: &[Tensor]) -> Result<()> {
    let on: Vec<Tensor> = x
        .iter()
        .map(|t| transfer::dense(gpu, t))
        .collect::<Result<_>>()?;
    let p = op.plan(&on[0], &on[1]);
    let states = op.states();
    let lstm = p.cell == Cell::Lstm;
    let (w_ih, w_hh) = (&on[1 + states], &on[2 + states]);
    let kept = 1 + states;
    let keep = op.keep && y.len() > kept;
    let scratch = |n: usize| Tensor::empty(&[p.rows, n], DType::F32, gpu.device());
    let gates = match keep {
        true => y[kept].clone(),
        false => scratch(p.depth)?,
    };
    // Cell states, or what a GRU keeps; others write nothing there.
    let own = match (keep, lstm) {
        (true, _) => y[kept + 1].clone(),
        (false, true) => scratch(p.width)?,
        (false, false) => gates.clone(),
    };
    let product = MatMul {
        tb: true,
        plus: op.biases,
        ..MatMul::new("AddmmBackward0")
    };
    let mut of = vec![&on[0], w_ih];
    if op.biases {
        of.insert(0, &on[3 + states]);
    }
    dispatch::compute_into(&product, &of, std::slice::from_ref(&gates))?;
    let bias = if op.biases { &on[4 + states] } else { w_hh };
    let c = if lstm { &on[2] } else { &on[1] };
    let blocks = p.width.div_ceil(SIDE);
    for (i, &t) in p.order.iter().enumerate() {
        let (from, going) = before(&p, i);
        let at = [(p.starts[t], p.sizes[t]), (from, going)];
        let seen = Rows::of(&p, &[&y[0], &gates, &own], &at);
        let (states, of_gates) = (seen.seen(&y[0])?, seen.seen(&gates)?);
        let cells = match own.shares_storage(&gates) {
            true => of_gates.clone(),
            false => seen.seen(&own)?,
        };
        let block = Forward {
            n: p.sizes[t] as u32,
            width: p.width as u32,
            row: (p.starts[t] - seen.first) as u32,
            before: from.saturating_sub(seen.first) as u32,
            on: going as u32,
            blocks: blocks as u32,
            h_offset: on[1].offset() as u32,
            c_offset: c.offset() as u32,
            w_offset: w_hh.offset() as u32,
            b_offset: bias.offset() as u32,
        };
        STEP.launch(Acc::F32)
            .set("CELL", p.cell as u32)
            .set("GATES", p.cell.gates() as u32)
            .set("HAS_BIAS", op.biases)
            .set("KEEP", keep)
            .writes_words(&states)
            .writes_words(&of_gates)
            .writes_words(&cells)
            .reads_words(&on[1])
            .reads_words(c)
            .reads_words(w_hh)
            .reads_words(bias)
            .groups(gpu, &block, blocks * p.sizes[t].div_ceil(SIDE))?;
        for (all, part) in [(&y[0], &states), (&gates, &of_gates), (&own, &cells)] {
            seen.written(all, part)?;
        }
    }
    last(&p, &y[0], &y[1])?;
    match lstm {
        true => last(&p, &own, &y[2]),
        false => Ok(()),
    }
}

/// The slopes of all steps' gates. Inputs are gates and what an op kept beside them, the states of
/// all steps, the first ones, the recurrent weights, the gradient of all states, and for an LSTM that
/// of the last cell states. Results are the slopes, and what is left for the first states: of cells,
/// or a GRU's direct way.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct StepsBack {
    of: Layer,
    inputs: usize,
}

impl Derivative for StepsBack {
    fn name(&self) -> &'static str {
        self.of.name()
    }
    fn vjp(&self, _cx: &Vjp, _g: &[Option<Tensor>]) -> Result<Grads> {
        bail!(Assertion, "rnn: the fused gradient is never recorded")
    }
}

impl Op for StepsBack {
    fn sure(&self, _x: &[&Tensor]) -> Result<bool> {
        Ok(true)
    }
    fn infer(&self, x: &[&Meta]) -> Result<Metas> {
        let depth = self.of.cell.gates() * x[3].size(1);
        let of = |shape: &[usize]| TensorMeta::new(shape, DType::F32, x[3].device());
        Ok(Metas::from_iter([
            of(&[x[2].size(0), depth]),
            of(x[3].shape()),
        ]))
    }

    fn cpu(&self, _x: &[&Tensor], _y: &[Tensor]) -> Result<()> {
        bail!(
            NotImplemented,
            "rnn: the gradient of a layer on the GPU is computed there"
        )
    }

    fn gpu(&self, gpu: &Gpu, x: &[&Tensor], y: &[Tensor]) -> Result<bool> {
        let on: Vec<Tensor> = x
            .iter()
            .map(|t| transfer::dense(gpu, t))
            .collect::<Result<_>>()?;
        let [gates, own, states, first, weight, g] = [0, 1, 2, 3, 4, 5].map(|i| &on[i]);
        let (slopes, carried) = (&y[0], &y[1]);
        match on.get(6) {
            Some(gc) => carried.write_from(gc)?,
            None => carried.write_scalar(0.into())?,
        }
        let p = self.of.plan_of(self.inputs, first);
        let blocks = p.width.div_ceil(SIDE);
        for (i, &t) in p.order.iter().enumerate().rev() {
            let (from, on) = before(&p, i);
            let (after, going) = match p.order.get(i + 1) {
                Some(&next) => (p.starts[next], p.sizes[t].min(p.sizes[next])),
                None => (0, 0),
            };
            let at = [(p.starts[t], p.sizes[t]), (from, on), (after, going)];
            let seen = Rows::of(&p, &[slopes, gates, own, states, g], &at);
            let part = seen.seen(slopes)?;
            let read = [gates, own, states, g].map(|t| seen.seen(t));
            let [gates, own, states, g] = read;
            let (gates, own, states, g) = (gates?, own?, states?, g?);
            let block = Backward {
                n: p.sizes[t] as u32,
                width: p.width as u32,
                row: (p.starts[t] - seen.first) as u32,
                before: from.saturating_sub(seen.first) as u32,
                on: on as u32,
                after: after.saturating_sub(seen.first) as u32,
                going: going as u32,
                blocks: blocks as u32,
                first_offset: first.offset() as u32,
                w_offset: weight.offset() as u32,
                g_offset: g.offset() as u32,
            };
            STEP_BACK
                .launch(Acc::F32)
                .set("CELL", p.cell as u32)
                .set("GATES", p.cell.gates() as u32)
                .writes_words(&part)
                .writes_words(carried)
                .reads_words(&gates)
                .reads_words(&own)
                .reads_words(&states)
                .reads_words(first)
                .reads_words(weight)
                .reads_words(&g)
                .groups(gpu, &block, blocks * p.sizes[t].div_ceil(SIDE))?;
            seen.written(slopes, &part)?;
        }
        Ok(true)
    }
}

/// The gradient of the states of all steps, that of the last ones in its place.
fn outer(p: &Plan, y: &Tensor, g: Option<&Tensor>, gh: Option<&Tensor>) -> Result<Tensor> {
    let Some(gh) = gh else {
        return match g {
            Some(g) => Ok(g.clone()),
            None => Tensor::zeros(y.shape(), DType::F32, y.device()),
        };
    };
    let all = match g {
        Some(g) => g.copy_dense()?,
        None => Tensor::zeros(y.shape(), DType::F32, y.device())?,
    };
    let mut done = 0;
    for &t in p.order.iter().rev() {
        let n = p.sizes[t];
        if n > done {
            let from = gh.slice_dim(0, Some(done as i64), Some(n as i64), 1)?;
            rows(&all, p.starts[t] + done, n - done)?.add_into(&from)?;
            done = n;
        }
    }
    Ok(all)
}

/// The states that all steps begin with, as one matrix.
fn begun(p: &Plan, y: &Tensor, h0: &Tensor) -> Result<Tensor> {
    // (first row, whether of `y`, first row there, rows), joined where they lie side by side.
    let mut pieces: Vec<(usize, bool, usize, usize)> = Vec::new();
    let mut steps: Vec<usize> = (0..p.order.len()).collect();
    steps.sort_by_key(|&i| p.order[i]);
    for i in steps {
        let t = p.order[i];
        let (from, on) = before(p, i);
        for (at, later, row, n) in [
            (p.starts[t], true, from, on),
            (p.starts[t] + on, false, on, p.sizes[t] - on),
        ] {
            match pieces.last_mut() {
                Some((a, l, r, m)) if *l == later && *a + *m == at && *r + *m == row => *m += n,
                _ if n > 0 => pieces.push((at, later, row, n)),
                _ => {}
            }
        }
    }
    let layout = |at: usize, n: usize| Layout {
        shape: Dims::from_slice(&[n, p.width]),
        strides: Strides::from_slice(&[p.width as isize, 1]),
        offset: at * p.width,
    };
    let parts: Vec<Layout> = pieces.iter().map(|&(at, .., n)| layout(at, n)).collect();
    let from: Vec<Tensor> = pieces
        .iter()
        .map(|&(_, later, row, n)| rows(if later { y } else { h0 }, row, n))
        .collect::<Result<_>>()?;
    let from: Vec<&Tensor> = from.iter().collect();
    assemble(&[p.rows, p.width], &parts, &from)
}

/// Gradients of the inputs that need one.
pub(super) fn gradients(op: &Layer, cx: &Vjp, g: &[Option<Tensor>]) -> Result<Grads> {
    let states = op.states();
    let (lstm, gru) = (op.cell == Cell::Lstm, op.cell == Cell::Gru);
    let x: Vec<Tensor> = (0..3 + states)
        .map(|i| cx.input(i))
        .collect::<Result<_>>()?;
    let (input, h0, w_ih, w_hh) = (&x[0], &x[1], &x[1 + states], &x[2 + states]);
    let p = op.plan(input, h0);
    let y = cx.output(0)?;
    let (gates, own) = match lstm || gru {
        true => (cx.output(1 + states)?, cx.output(2 + states)?),
        false => (y.clone(), y.clone()),
    };
    let given = |i: usize| g.get(i).and_then(Option::as_ref);
    let outer = outer(&p, &y, given(0), given(1))?;
    let first = if lstm { &x[2] } else { h0 };
    let mut of = vec![&gates, &own, &y, first, w_hh, &outer];
    of.extend(given(2).filter(|_| lstm));
    let steps = StepsBack {
        of: op.clone(),
        inputs: p.inputs,
    };
    let found = dispatch::compute(&steps, &of)?;
    let (slopes, carried) = (&found[0], &found[1]);
    // What went through the recurrent product.
    let own_slopes = match gru {
        false => slopes.clone(),
        true => {
            let both = slopes.copy_dense()?;
            let part = |t: &Tensor, g: i64| t.slice_dim(1, Some(g), Some(g + p.width as i64), 1);
            let candidate = part(&both, 2 * p.width as i64)?;
            let product = apply(Mul, [&candidate, &part(&gates, 0)?])?;
            candidate.write_from(&product)?;
            both
        }
    };
    let count = op.inputs();
    let mut out = Grads::from_elem(None, count);
    if cx.needs(0) {
        out[0] = Some(slopes.matmul(w_ih)?);
    }
    if cx.needs(1) {
        let d = Tensor::empty(h0.shape(), DType::F32, h0.device())?;
        for (i, &t) in p.order.iter().enumerate() {
            let (_, on) = before(&p, i);
            let n = p.sizes[t] - on;
            if n > 0 {
                let passed = rows(&own_slopes, p.starts[t] + on, n)?.matmul(w_hh)?;
                rows(&d, on, n)?.write_from(&passed)?;
            }
        }
        out[1] = Some(if gru { d.add(carried)? } else { d });
    }
    if lstm && cx.needs(2) {
        out[2] = Some(carried.clone());
    }
    let biases = op.biases as usize;
    let needed = |i: usize| i < count && cx.needs(i);
    for (which, slopes, begun) in [(0, slopes, None), (1, &own_slopes, Some(()))] {
        let (w, b) = (1 + states + which, 3 + states + which);
        let b_needed = biases == 1 && needed(b);
        if !cx.needs(w) && !b_needed {
            continue;
        }
        let from = match begun {
            None => input.clone(),
            Some(()) => self::begun(&p, &y, h0)?,
        };
        let [of_weight, of_bias] = slopes_of_linear(slopes, &from)?;
        out[w] = Some(of_weight).filter(|_| cx.needs(w));
        if b_needed {
            out[b] = Some(of_bias);
        }
    }
    Ok(out)
}
