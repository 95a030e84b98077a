//! A recurrent layer in one direction over a whole sequence as one op, on the CPU in float32 and
//! float64 and on the GPU in float32: one product for the inputs of all steps, one pass for each step, and in the gradient
//! one product over all steps for each weight.

use super::composite::{self, Cell, State, Weights};
use super::cpu::{self, Backward, Before, Forward, Recurrent, Rows};
use super::gpu;
use crate::alloc;
use crate::autograd::{engine, mode, Edge, Request, Vjp};
use crate::cpu::gemm::gemm;
use crate::cpu::pool::look;
use crate::device::Device;
use crate::dispatch;
use crate::dtype::DType;
use crate::error::Result;
use crate::gpu::Gpu;
use crate::host;
use crate::meta::Meta;
use crate::op::{Derivative, Grads, Mask, Metas, Op, Save, TensorMeta, Traits};
use crate::tensor::Tensor;
use crate::transfer;
use std::ptr;

/// `x, h, [c], w_ih, w_hh, [b_ih, b_hh] -> y, h, [c]`, and what the gradient needs again.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Layer {
    pub(super) cell: Cell,
    sizes: Vec<usize>,
    reverse: bool,
    pub(super) biases: bool,
    /// Whether a gradient will be asked for.
    pub(super) keep: bool,
}

/// [`composite::layer`], as one op where there is a kernel for it.
pub fn layer(
    cell: Cell,
    x: &Tensor,
    sizes: &[usize],
    start: &State,
    w: &Weights,
    reverse: bool,
) -> Result<(Tensor, State)> {
    w.check(cell, x, start)?;
    if !fits(cell, x, start, w) {
        return composite::layer(cell, x, sizes, start, w, reverse);
    }
    let mut inputs = vec![x, &start.h];
    inputs.extend(&start.c);
    inputs.extend([w.ih, w.hh]);
    if let (Some(a), Some(b)) = (w.bias_ih, w.bias_hh) {
        inputs.extend([a, b]);
    }
    let op = Layer {
        cell,
        sizes: sizes.to_vec(),
        reverse,
        biases: w.bias_ih.is_some(),
        keep: dispatch::needs(&inputs) != 0 || (mode::followed() && dispatch::heeded(&inputs)),
    };
    let y = dispatch::call(op, &inputs)?;
    let c = start.c.as_ref().map(|_| y[2].clone());
    let h = y[1].clone();
    Ok((y[0].clone(), State { h, c }))
}

/// One step, as one op where there is a kernel for it.
pub fn step(cell: Cell, x: &Tensor, start: &State, w: &Weights) -> Result<State> {
    w.check(cell, x, start)?;
    if fits(cell, x, start, w) {
        Ok(layer(cell, x, &[x.size(0)], start, w, false)?.1)
    } else {
        composite::step(cell, &x.linear(w.ih, w.bias_ih)?, start, w)
    }
}

/// Whether types, shapes and device are those of the op, of arguments that fit together.
fn fits(cell: Cell, x: &Tensor, start: &State, w: &Weights) -> bool {
    let mut all = vec![x, &start.h, w.ih, w.hh];
    all.extend(start.c.iter().chain(w.bias_ih).chain(w.bias_hh));
    let device = x.device();
    let types = match device.is_gpu() {
        true => x.dtype() == DType::F32,
        false => matches!(x.dtype(), DType::F32 | DType::F64),
    };
    let width = start.h.size(start.h.ndim() - 1);
    let rows = cell.gates() * width;
    types
        && all.iter().all(|t| t.device().is_gpu() == device.is_gpu())
        && w.hr.is_none()
        && w.bias_ih.is_some() == w.bias_hh.is_some()
        && start.c.is_some() == (cell == Cell::Lstm)
        && start
            .c
            .as_ref()
            .is_none_or(|c| c.shape() == start.h.shape())
        && width > 0
        && x.numel() > 0
        && [w.bias_ih, w.bias_hh]
            .iter()
            .flatten()
            .all(|b| b.shape()[..] == [rows])
        && gpu::binds(cell, &start.h, w.hh)
}

/// The sizes of one call.
pub(super) struct Plan {
    pub(super) cell: Cell,
    /// Hidden units; rows of gates.
    pub(super) width: usize,
    pub(super) depth: usize,
    pub(super) inputs: usize,
    sequences: usize,
    /// All steps' sequences together.
    pub(super) rows: usize,
    pub(super) sizes: Vec<usize>,
    /// The first row of each step.
    pub(super) starts: Vec<usize>,
    /// Steps in the order in which they run.
    pub(super) order: Vec<usize>,
}

impl Layer {
    pub(super) fn inputs(&self) -> usize {
        3 + self.states() + 2 * self.biases as usize
    }

    pub(super) fn states(&self) -> usize {
        1 + (self.cell == Cell::Lstm) as usize
    }

    pub(super) fn plan(&self, x: &Meta, h: &Meta) -> Plan {
        self.plan_of(x.size(1), h)
    }

    /// The plan for an input of this width.
    pub(super) fn plan_of(&self, inputs: usize, h: &Meta) -> Plan {
        let steps = self.sizes.len();
        let mut starts = Vec::with_capacity(steps);
        let mut rows = 0;
        for &n in &self.sizes {
            starts.push(rows);
            rows += n;
        }
        let order = if self.reverse {
            (0..steps).rev().collect()
        } else {
            (0..steps).collect()
        };
        Plan {
            cell: self.cell,
            width: h.size(1),
            depth: self.cell.gates() * h.size(1),
            inputs,
            sequences: h.size(0),
            rows,
            sizes: self.sizes.clone(),
            starts,
            order,
        }
    }
}

impl Plan {
    /// The states that step `i` of the order begins with: those that the step before wrote to
    /// `out`, then first ones.
    unsafe fn before<T>(&self, i: usize, out: *mut T, first: *mut T) -> Before<T> {
        // SAFETY: `out` has a state for each row of all steps, and `first` one for each sequence.
        unsafe {
            let (stride, n) = (self.width, self.sizes[self.order[i]]);
            let mut parts = [Rows::NONE; 2];
            let mut on = 0;
            if i > 0 {
                let t = self.order[i - 1];
                on = n.min(self.sizes[t]);
                let ptr = out.add(self.starts[t] * stride);
                parts[0] = Rows { ptr, stride, n: on };
            }
            let ptr = first.add(on * stride);
            let n = n - on;
            parts[1] = Rows { ptr, stride, n };
            parts
        }
    }

    /// Copies the state of each sequence after its last step.
    unsafe fn last<T: Copy>(&self, out: *const T, to: *mut T) {
        // SAFETY: `out` has a state for each row of all steps, and `to` room for one for each
        // sequence.
        unsafe {
            let mut done = 0;
            for &t in self.order.iter().rev() {
                let n = self.sizes[t];
                if n > done {
                    let from = out.add((self.starts[t] + done) * self.width);
                    ptr::copy_nonoverlapping(
                        from,
                        to.add(done * self.width),
                        (n - done) * self.width,
                    );
                    done = n;
                }
            }
        }
    }

    fn gates(&self) -> usize {
        self.cell.gates()
    }

    /// Stretches of steps whose gates fit into the cache: the first step's place in the order,
    /// the first row, and the number of rows.
    fn stretches(&self) -> Vec<(usize, usize, usize)> {
        let most = ((1 << 18) / self.depth).max(64);
        let mut all: Vec<(usize, usize, usize)> = Vec::new();
        for (i, &t) in self.order.iter().enumerate() {
            match all.last_mut() {
                Some((_, row, rows)) if *rows < most => {
                    *row = (*row).min(self.starts[t]);
                    *rows += self.sizes[t];
                }
                _ => all.push((i, self.starts[t], self.sizes[t])),
            }
        }
        all
    }
}

fn empty<T: Recurrent>(shape: &[usize]) -> Result<Tensor> {
    Tensor::empty(shape, T::DTYPE, Device::Cpu)
}
fn zeros<T: Recurrent>(shape: &[usize]) -> Result<Tensor> {
    Tensor::zeros(shape, T::DTYPE, Device::Cpu)
}

fn forward<T: Recurrent>(op: &Layer, x: &[&Tensor], y: &[Tensor]) -> Result<()> {
    let x: Vec<Tensor> = x
        .iter()
        .map(|t| t.prepared(T::DTYPE))
        .collect::<Result<_>>()?;
    let p = op.plan(&x[0], &x[1]);
    let states = op.states();
    let (w_ih, w_hh) = (&x[1 + states], &x[2 + states]);
    let kept = 1 + states;
    let stretches = p.stretches();
    let keeps = op.keep && y.len() > kept;
    let gates = if keeps {
        y[kept].clone()
    } else {
        let most = stretches.iter().map(|s| s.2).max().unwrap_or(0);
        empty::<T>(&[most, p.depth])?
    };
    // What an op keeps: an LSTM's cell states, a GRU's recurrent product.
    let own = y.get(kept + 1).map(|t| t.ptr::<T>());
    let weights = empty::<T>(&[cpu::packed_len::<T>(p.gates(), p.width)])?;
    let (h, d) = (p.width, p.depth);
    let mut bias = alloc::full(T::ZERO, d + h);
    if op.biases {
        // SAFETY: contiguous, of this type.
        let (a, b) = unsafe { (x[3 + states].slice::<T>(), x[4 + states].slice::<T>()) };
        let joint = if p.cell == Cell::Gru { 2 * h } else { d };
        for i in 0..d {
            bias[i] = if i < joint { a[i] + b[i] } else { a[i] };
        }
        if joint < d {
            bias[d..].copy_from_slice(&b[joint..]);
        }
    }
    // SAFETY: all tensors are contiguous, of this type and of the plan's sizes; results are this
    // call's own.
    unsafe {
        let (out, gates) = (y[0].ptr::<T>(), gates.ptr::<T>());
        cpu::pack(p.gates(), h, w_hh.ptr::<T>(), weights.ptr::<T>());
        let lstm = p.cell == Cell::Lstm;
        // Without a gradient to come the cell state is one row for each sequence.
        let cells = own.filter(|_| lstm);
        if lstm && cells.is_none() {
            ptr::copy_nonoverlapping(x[2].ptr::<T>(), y[2].ptr::<T>(), p.sequences * h);
        }
        let mut coming = stretches.iter();
        let mut first = 0;
        for (i, &t) in p.order.iter().enumerate() {
            look();
            let (n, at) = (p.sizes[t], p.starts[t]);
            if let Some(&(_, row, rows)) = coming.clone().next().filter(|s| s.0 == i) {
                coming.next();
                first = if keeps { 0 } else { row };
                let x = x[0].ptr::<T>().add(row * p.inputs);
                let to = gates.add((row - first) * d);
                let (k, w, wide) = (p.inputs, w_ih.ptr::<T>(), d as isize);
                let step = k as isize;
                gemm(
                    rows,
                    d,
                    k,
                    T::ONE,
                    x,
                    step,
                    1,
                    w,
                    1,
                    step,
                    T::ZERO,
                    to,
                    wide,
                    1,
                );
            }
            let (c, c_out) = match cells {
                Some(all) => (p.before(i, all, x[2].ptr()), all.add(at * h)),
                None if lstm => {
                    let ptr = y[2].ptr::<T>();
                    ([Rows { ptr, stride: h, n }, Rows::NONE], ptr)
                }
                None => ([Rows::NONE; 2], ptr::null_mut()),
            };
            cpu::step(&Forward {
                cell: p.cell,
                width: h,
                n,
                h: p.before(i, out, x[1].ptr()),
                c,
                weights: weights.ptr::<T>(),
                bias: bias.as_ptr(),
                bias_own: bias.as_ptr().add(d),
                gates: gates.add((at - first) * d),
                keep: op.keep,
                own: own.map_or(ptr::null_mut(), |o| o.add(at * h)),
                c_out,
                h_out: out.add(at * h),
            });
        }
        p.last(out, y[1].ptr::<T>());
        if let Some(cells) = cells {
            p.last(cells, y[2].ptr::<T>());
        }
    }
    Ok(())
}

/// Gradients of the inputs that need one.
fn gradients<T: Recurrent>(op: &Layer, cx: &Vjp, g: &[Option<Tensor>]) -> Result<Grads> {
    let states = op.states();
    // Inputs, the output, what was kept for this, and gradients of the outputs.
    let inputs = (0..3 + states).map(|i| cx.input(i).map(Some));
    let mut all = inputs.collect::<Result<Vec<_>>>()?;
    all.push(Some(cx.output(0)?));
    for i in [1 + states, 2 + states] {
        let plain = matches!(op.cell, Cell::Tanh | Cell::Relu);
        all.push((!plain).then(|| cx.output(i)).transpose()?);
    }
    all.extend((0..=states).map(|i| g.get(i).cloned().flatten()));
    let bits = |of: &mut dyn Iterator<Item = bool>| -> Mask {
        of.enumerate().fold(0, |m, (i, on)| m | (on as Mask) << i)
    };
    let count = op.inputs();
    let needs = bits(&mut (0..count).map(|i| cx.needs(i)));
    let there = bits(&mut all.iter().map(Option::is_some));
    let x: Vec<&Tensor> = all.iter().flatten().collect();
    let given = (op.clone(), needs, there);
    let needed = |i: usize| needs >> i & 1 == 1;
    let plan = |_: &_| {
        let meta = |i: usize| cx.input_meta(i).cloned();
        (0..count).filter(|&i| needed(i)).map(meta).collect()
    };
    let found: Vec<Tensor> = dispatch::function_of(
        "RnnBackwardBackward0",
        given,
        &x,
        plan,
        |(op, needs, there), x| slopes::<T>(op, *needs, *there, x),
    )?;
    let mut found = found.into_iter();
    Ok((0..count)
        .map(|i| if needed(i) { found.next() } else { None })
        .collect())
}

/// The gradients of the inputs in `needs`, from those of `all` that are `there`.
fn slopes<T: Recurrent>(
    op: &Layer,
    needs: Mask,
    there: Mask,
    all: &[&Tensor],
) -> Result<Vec<Tensor>> {
    let states = op.states();
    let count = op.inputs();
    let needs = |i: usize| needs >> i & 1 == 1;
    let get = |i: usize| -> Option<&Tensor> {
        let before = (there & ((1 << i) - 1)).count_ones() as usize;
        (there >> i & 1 == 1).then(|| all[before])
    };
    let read = |i: usize| get(i).map(|t| t.prepared(T::DTYPE)).transpose();
    let input = |i: usize| all[i].prepared(T::DTYPE);
    let (x, h0, w_ih, w_hh) = (input(0)?, input(1)?, input(1 + states)?, input(2 + states)?);
    let lstm = op.cell == Cell::Lstm;
    let c0 = lstm.then(|| input(2)).transpose()?;
    let p = op.plan(&x, &h0);
    let (h, d) = (p.width, p.depth);
    let y = input(3 + states)?;
    let (gates, own) = (get(4 + states).cloned(), get(5 + states).cloned());
    let incoming = |i: usize| read(6 + states + i);
    let (gy, gh) = (incoming(0)?, incoming(1)?);
    // The gradient of the cell state is added up in place.
    let state = zeros::<T>(&[p.sequences, h])?;
    if lstm {
        if let Some(gc) = incoming(2)? {
            state.write_from(&gc)?;
        }
    }
    // Rows a multiple of 4 KB apart would share a few sets of the cache (conflict misses).
    let wide = if d.is_multiple_of(256) { d + 16 } else { d };
    let gates_g = empty::<T>(&[p.rows, wide])?;
    let own_g = if op.cell == Cell::Gru {
        empty::<T>(&[p.rows, wide])?
    } else {
        gates_g.clone()
    };
    let bias_g = zeros::<T>(&[d])?;
    let own_bias_g = if op.cell == Cell::Gru {
        zeros::<T>(&[d])?
    } else {
        bias_g.clone()
    };
    let address = |t: &Option<Tensor>| t.as_ref().map_or(ptr::null_mut(), |t| t.ptr::<T>());
    let at = |p: *mut T, i: usize| {
        if p.is_null() {
            p
        } else {
            p.wrapping_add(i)
        }
    };
    let weights = empty::<T>(&[cpu::packed_len::<T>(p.gates(), h)])?;
    let first_g = (needs(1))
        .then(|| empty::<T>(&[p.sequences, h]))
        .transpose()?;
    let mut out = Grads::from_elem(None, count);
    if needs(0) {
        out[0] = Some(empty::<T>(&[p.rows, p.inputs])?);
    }
    for i in [1 + states, 2 + states] {
        if needs(i) {
            out[i] = Some(empty::<T>(&[
                d,
                if i == 1 + states { p.inputs } else { h },
            ])?);
        }
    }
    let run = || -> Result<()> {
        // SAFETY: all tensors are contiguous, of this type and of the plan's sizes; those that
        // are written are this call's own.
        unsafe {
            cpu::pack_back(p.gates(), h, w_hh.ptr::<T>(), weights.ptr::<T>());
            for (i, &t) in p.order.iter().enumerate().rev() {
                look();
                let (n, r) = (p.sizes[t], p.starts[t]);
                let after = p.order.get(i + 1).map_or(Rows::NONE, |&next| Rows {
                    ptr: own_g.ptr::<T>().add(p.starts[next] * wide),
                    stride: wide,
                    n: n.min(p.sizes[next]),
                });
                cpu::step_back(&Backward {
                    cell: p.cell,
                    width: h,
                    n,
                    h: p.before(i, y.ptr(), h0.ptr()),
                    c: match &c0 {
                        Some(c0) => p.before(i, address(&own), c0.ptr()),
                        None => [Rows::NONE; 2],
                    },
                    gates: at(address(&gates), r * d),
                    own: at(address(&own), r * h),
                    h_out: y.ptr::<T>().add(r * h),
                    gy: at(address(&gy), r * h),
                    after,
                    weights: weights.ptr::<T>(),
                    gh: address(&gh),
                    state: state.ptr::<T>(),
                    stride: wide,
                    gates_g: gates_g.ptr::<T>().add(r * wide),
                    own_g: own_g.ptr::<T>().add(r * wide),
                    bias_g: bias_g.ptr::<T>(),
                    own_bias_g: own_bias_g.ptr::<T>(),
                });
            }
            let product = |m, n, k, a: *const T, ars, acs, b: *const T, beta, c: *mut T| {
                gemm(
                    m,
                    n,
                    k,
                    T::ONE,
                    a,
                    ars,
                    acs,
                    b,
                    n as isize,
                    1,
                    beta,
                    c,
                    n as isize,
                    1,
                );
            };
            let step = wide as isize;
            if let Some(gx) = &out[0] {
                let (a, b) = (gates_g.ptr::<T>(), w_ih.ptr::<T>());
                product(p.rows, p.inputs, d, a, step, 1, b, T::ZERO, gx.ptr());
            }
            if let Some(gw) = &out[1 + states] {
                let (a, b) = (gates_g.ptr::<T>(), x.ptr::<T>());
                product(d, p.inputs, p.rows, a, 1, step, b, T::ZERO, gw.ptr());
            }
            if let Some(gw) = &out[2 + states] {
                let mut beta = T::ZERO;
                for (r, part) in p.joined(y.ptr::<T>(), h0.ptr::<T>()) {
                    let a = own_g.ptr::<T>().add(r * wide);
                    product(d, h, part.n, a, 1, step, part.ptr, beta, gw.ptr());
                    beta = T::ONE;
                }
            }
            if let Some(first) = &first_g {
                for i in 0..p.order.len() {
                    let parts = p.before(i, y.ptr::<T>(), ptr::null_mut());
                    let (on, n) = (parts[0].n, parts[1].n);
                    if n > 0 {
                        let a = own_g.ptr::<T>().add((p.starts[p.order[i]] + on) * wide);
                        let (b, to) = (w_hh.ptr::<T>(), first.ptr::<T>().add(on * h));
                        product(n, h, d, a, step, 1, b, T::ZERO, to);
                    }
                }
            }
        }
        Ok(())
    };
    host::unlocked(run)?;
    if let Some(first) = first_g {
        // A GRU's state also goes on directly.
        out[1] = Some(if op.cell == Cell::Gru {
            first.add(&state)?
        } else {
            first
        });
    }
    if lstm && needs(2) {
        out[2] = Some(state);
    }
    if op.biases {
        out[3 + states] = needs(3 + states).then(|| bias_g.clone());
        out[4 + states] = needs(4 + states)
            .then(|| own_bias_g.copy_dense())
            .transpose()?;
    }
    Ok(out.into_iter().flatten().collect())
}

impl Plan {
    /// The states that all steps begin with, in stretches that lie together in memory: the first
    /// row of gates of each, and the states.
    // SAFETY: `out` has a state for each row of all steps, and `first` one for each sequence.
    unsafe fn joined<T: Copy>(&self, out: *mut T, first: *mut T) -> Vec<(usize, Rows<T>)> {
        let mut all: Vec<(usize, Rows<T>)> = Vec::new();
        let mut steps: Vec<usize> = (0..self.order.len()).collect();
        steps.sort_by_key(|&i| self.order[i]);
        for i in steps {
            let mut row = self.starts[self.order[i]];
            // SAFETY: both have the states that a step begins with.
            for part in unsafe { self.before(i, out, first) } {
                if part.n == 0 {
                    continue;
                }
                match all.last_mut() {
                    Some((at, last))
                        if *at + last.n == row
                            && last.ptr.wrapping_add(last.n * self.width) == part.ptr =>
                    {
                        last.n += part.n
                    }
                    _ => all.push((row, part)),
                }
                row += part.n;
            }
        }
        all
    }
}

impl Layer {
    /// Gradients as a graph, from the layer made of other ops.
    fn recorded(&self, cx: &Vjp, g: &[Option<Tensor>]) -> Result<Grads> {
        let create_graph = mode::grad();
        mode::with_grad(true, || self.by_graph(cx, g, create_graph))
    }

    fn by_graph(&self, cx: &Vjp, g: &[Option<Tensor>], create_graph: bool) -> Result<Grads> {
        let states = self.states();
        let count = 3 + states + 2 * self.biases as usize;
        // Nodes of their own: an input may depend on another.
        let own = |i: usize| -> Result<Tensor> {
            if create_graph {
                return cx.input(i)?.mul_scalar(1.0);
            }
            let leaf = cx.input(i)?.detach();
            leaf.set_requires_grad(true)?;
            Ok(leaf)
        };
        let x: Vec<Tensor> = (0..count).map(own).collect::<Result<_>>()?;
        let start = State {
            h: x[1].clone(),
            c: (states == 2).then(|| x[2].clone()),
        };
        let w = Weights {
            ih: &x[1 + states],
            hh: &x[2 + states],
            bias_ih: x.get(3 + states),
            bias_hh: x.get(4 + states),
            hr: None,
        };
        let (y, s) = composite::layer(self.cell, &x[0], &self.sizes, &start, &w, self.reverse)?;
        let mut roots: Vec<(Edge, Tensor)> = Vec::new();
        for (t, g) in [Some(y), Some(s.h), s.c].iter().zip(g) {
            if let (Some(t), Some(g)) = (t, g) {
                roots.extend(t.edge()?.map(|e| (e, g.clone())));
            }
        }
        let wanted: Vec<usize> = (0..count).filter(|&i| cx.needs(i)).collect();
        let edges: Vec<Option<Edge>> =
            wanted.iter().map(|&i| x[i].edge()).collect::<Result<_>>()?;
        let (wanted, edges): (Vec<usize>, Vec<Edge>) = wanted
            .into_iter()
            .zip(edges)
            .filter_map(|(i, e)| Some((i, e?)))
            .unzip();
        let found = engine::backward(&Request {
            roots: &roots,
            inputs: &edges,
            accumulate: false,
            keep_graph: true,
            create_graph,
        })?;
        let mut out = Grads::from_elem(None, count);
        for (i, g) in wanted.into_iter().zip(found) {
            out[i] = g;
        }
        Ok(out)
    }
}

impl Derivative for Layer {
    fn name(&self) -> &'static str {
        match self.cell {
            Cell::Tanh => "RnnTanhBackward0",
            Cell::Relu => "RnnReluBackward0",
            Cell::Gru => "GruBackward0",
            Cell::Lstm => "LstmBackward0",
        }
    }

    fn save(&self, _needs: Mask) -> Save {
        let kept = match self.cell {
            Cell::Lstm => 0b11001,
            Cell::Gru => 0b1101,
            Cell::Tanh | Cell::Relu => 1,
        };
        Save {
            inputs: (1 << self.inputs()) - 1,
            outputs: kept,
        }
    }

    fn vjp(&self, cx: &Vjp, g: &[Option<Tensor>]) -> Result<Grads> {
        if mode::traced() {
            self.recorded(cx, g)
        } else if cx.output_meta(0).device.is_gpu() {
            gpu::gradients(self, cx, g)
        } else if cx.output_meta(0).dtype == DType::F32 {
            gradients::<f32>(self, cx, g)
        } else {
            gradients::<f64>(self, cx, g)
        }
    }
}

impl Op for Layer {
    fn sure(&self, _x: &[&Tensor]) -> Result<bool> {
        Ok(true)
    }
    fn infer(&self, x: &[&Meta]) -> Result<Metas> {
        let p = self.plan(x[0], x[1]);
        let of = |shape: &[usize]| TensorMeta::new(shape, x[0].dtype(), x[0].device());
        let mut out = Metas::new();
        out.push(of(&[p.rows, p.width]));
        for _ in 0..self.states() {
            out.push(of(&[p.sequences, p.width]));
        }
        if self.keep && matches!(self.cell, Cell::Gru | Cell::Lstm) {
            out.push(of(&[p.rows, p.depth]));
            out.push(of(&[p.rows, p.width]));
        }
        Ok(out)
    }

    fn traits(&self) -> Traits {
        Traits {
            detached: 0b11 << (1 + self.states()),
            ..Traits::NONE
        }
    }

    fn cpu(&self, x: &[&Tensor], y: &[Tensor]) -> Result<()> {
        if x[0].dtype() == DType::F32 {
            forward::<f32>(self, x, y)
        } else {
            forward::<f64>(self, x, y)
        }
    }

    fn gpu(&self, gpu: &Gpu, x: &[&Tensor], y: &[Tensor]) -> Result<bool> {
        transfer::ran(gpu::forward(self, gpu, x, y))
    }

    fn work(&self, x: &[&Meta], y: &[&Meta]) -> usize {
        y[0].numel() * (x[0].size(1) + y[0].size(1))
    }
}
