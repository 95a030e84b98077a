//! Recurrent layers and steps made of other ops: for every type and device, and the way to
//! derivatives of derivatives.

use crate::autograd::Vjp;
use crate::dispatch;
use crate::error::Result;
use crate::layout::Layout;
use crate::op::{Asked, Derivative, Grads};
use crate::ops::pointwise::activation::Relu;
use crate::ops::pointwise::apply;
use crate::ops::pointwise::unary::{Sigmoid, Tanh};
use crate::ops::shape::join::cat;
use crate::ops::shape::view;
use crate::shape::{expandable, Show};
use crate::tensor::Tensor;
use crate::{bail, ensure};

/// Consecutive parts along a dimension, as views from one node.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Parts {
    dim: usize,
    sizes: Vec<usize>,
}

impl Derivative for Parts {
    fn name(&self) -> &'static str {
        "SplitWithSizesBackward0"
    }
    fn asked(&self, x: &[&Tensor], y: &[Layout]) -> Result<Asked> {
        Ok(view::asked::parts(Asked::of_node(self.name()), x[0], y))
    }
    fn vjp(&self, cx: &Vjp, g: &[Option<Tensor>]) -> Result<Grads> {
        let g: Vec<Tensor> = (0..self.sizes.len())
            .map(|i| cx.grad_or_zeros(g, i))
            .collect::<Result<_>>()?;
        Ok(Grads::from_elem(Some(cat(&g, self.dim as i64)?), 1))
    }
}

fn parts(x: &Tensor, dim: usize, sizes: &[usize]) -> Result<Vec<Tensor>> {
    let mut at = 0;
    let mut layouts = Vec::new();
    for &n in sizes {
        layouts.push(x.layout().narrow(dim as i64, at, n as i64)?);
        at += n as i64;
    }
    dispatch::views(
        Parts {
            dim,
            sizes: sizes.to_vec(),
        },
        x,
        layouts,
    )
}

/// Equal parts of the last dimension.
fn chunks(x: &Tensor, n: usize) -> Result<Vec<Tensor>> {
    let last = x.ndim() - 1;
    parts(x, last, &vec![x.size(last) / n; n])
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Cell {
    Tanh,
    Relu,
    Gru,
    Lstm,
}

impl Cell {
    pub fn gates(self) -> usize {
        match self {
            Cell::Tanh | Cell::Relu => 1,
            Cell::Gru => 3,
            Cell::Lstm => 4,
        }
    }
    pub fn name(self) -> &'static str {
        match self {
            Cell::Tanh => "rnn_tanh",
            Cell::Relu => "rnn_relu",
            Cell::Gru => "gru",
            Cell::Lstm => "lstm",
        }
    }
}

/// Weights of one layer in one direction.
#[derive(Clone, Copy)]
pub struct Weights<'a> {
    pub ih: &'a Tensor,
    pub hh: &'a Tensor,
    pub bias_ih: Option<&'a Tensor>,
    pub bias_hh: Option<&'a Tensor>,
    /// Projects the hidden state (LSTM).
    pub hr: Option<&'a Tensor>,
}

impl Weights<'_> {
    /// Refuses weights and states of other sizes or types than the input and the state ask for:
    /// the ops that a step is made of would broadcast some of them.
    pub fn check(&self, cell: Cell, x: &Tensor, start: &State) -> Result<()> {
        let name = cell.name();
        let last = |t: &Tensor| t.size(t.ndim() - 1);
        let rows = cell.gates() * last(start.c.as_ref().unwrap_or(&start.h));
        let (inputs, hidden) = (last(x), last(&start.h));
        let wanted: [(&str, Option<&Tensor>, &[usize]); 5] = [
            ("weight_ih", Some(self.ih), &[rows, inputs]),
            ("weight_hh", Some(self.hh), &[rows, hidden]),
            ("bias_ih", self.bias_ih, &[rows]),
            ("bias_hh", self.bias_hh, &[rows]),
            ("weight_hr", self.hr, &[hidden, rows / cell.gates()]),
        ];
        for (what, t, shape) in wanted {
            let Some(t) = t else { continue };
            // A bias may be one number for all.
            let fits = match shape.len() {
                1 => expandable(t.shape(), &[x.size(0), rows]),
                _ => t.shape()[..] == *shape,
            };
            ensure!(
                fits,
                Runtime,
                "{name}: expected {what} of size {} for an input of {inputs} and a hidden state \
                 of {hidden} features, got {}",
                Show(shape),
                Show(t.shape())
            );
        }
        let states = [
            ("hidden state", Some(&start.h)),
            ("cell state", start.c.as_ref()),
        ];
        let all = wanted.iter().map(|&(what, t, _)| (what, t)).chain(states);
        for (what, t) in all.filter_map(|(what, t)| Some((what, t?))) {
            ensure!(
                t.dtype() == x.dtype(),
                Runtime,
                "{name}: input and {what} must have one dtype, got {} and {}",
                x.dtype().scalar_name(),
                t.dtype().scalar_name()
            );
        }
        Ok(())
    }
}

/// The hidden state, and an LSTM's cell state.
#[derive(Clone)]
pub struct State {
    pub h: Tensor,
    pub c: Option<Tensor>,
}

impl State {
    fn each(&self, f: impl Fn(&Tensor) -> Result<Tensor>) -> Result<State> {
        Ok(State {
            h: f(&self.h)?,
            c: self.c.as_ref().map(&f).transpose()?,
        })
    }
    fn join(parts: &[State]) -> Result<State> {
        if let [one] = parts {
            return Ok(one.clone());
        }
        let h: Vec<Tensor> = parts.iter().map(|s| s.h.clone()).collect();
        let c: Option<Vec<Tensor>> = parts.iter().map(|s| s.c.clone()).collect();
        Ok(State {
            h: cat(&h, 0)?,
            c: c.map(|c| cat(&c, 0)).transpose()?,
        })
    }
    fn rows(&self, start: usize, n: usize) -> Result<State> {
        self.each(|t| t.slice_dim(0, Some(start as i64), Some((start + n) as i64), 1))
    }
}

/// One step from `gates`, the input's share of the gates.
pub fn step(cell: Cell, gates: &Tensor, s: &State, w: &Weights) -> Result<State> {
    let own = s.h.linear(w.hh, w.bias_hh)?;
    if cell == Cell::Gru {
        let (x, own) = (chunks(gates, 3)?, chunks(&own, 3)?);
        let r = apply(Sigmoid, [&x[0].add(&own[0])?])?;
        let z = apply(Sigmoid, [&x[1].add(&own[1])?])?;
        let n = apply(Tanh, [&x[2].add(&r.mul(&own[2])?)?])?;
        return Ok(State {
            h: s.h.sub(&n)?.mul(&z)?.add(&n)?,
            c: None,
        });
    }
    let sum = gates.add(&own)?;
    match (cell, &s.c) {
        (Cell::Lstm, Some(c)) => {
            let g = chunks(&sum, 4)?;
            let (i, f) = (apply(Sigmoid, [&g[0]])?, apply(Sigmoid, [&g[1]])?);
            let (n, o) = (apply(Tanh, [&g[2]])?, apply(Sigmoid, [&g[3]])?);
            let c = f.mul(c)?.add(&i.mul(&n)?)?;
            let mut h = o.mul(&apply(Tanh, [&c])?)?;
            if let Some(hr) = w.hr {
                h = h.linear(hr, None)?;
            }
            Ok(State { h, c: Some(c) })
        }
        (Cell::Lstm, None) => bail!(Runtime, "lstm expects two hidden states"),
        (Cell::Relu, _) => Ok(State {
            h: apply(Relu, [&sum])?,
            c: None,
        }),
        _ => Ok(State {
            h: apply(Tanh, [&sum])?,
            c: None,
        }),
    }
}

/// One layer in one direction over `x`, whose rows are the steps' batches one after another;
/// batches do not grow. Gives the outputs in the same order and the last state of each sequence.
pub fn layer(
    cell: Cell,
    x: &Tensor,
    sizes: &[usize],
    start: &State,
    w: &Weights,
    reverse: bool,
) -> Result<(Tensor, State)> {
    let gates = parts(&x.linear(w.ih, w.bias_ih)?, 0, sizes)?;
    let mut outputs = Vec::with_capacity(sizes.len());
    let order: Vec<usize> = if reverse {
        (0..sizes.len()).rev().collect()
    } else {
        (0..sizes.len()).collect()
    };
    let mut now = sizes[order[0]];
    let whole = start.h.size(0);
    let mut s = if now == whole {
        start.clone()
    } else {
        start.rows(0, now)?
    };
    let mut ended = Vec::new();
    for t in order {
        let n = sizes[t];
        if n < now {
            // Sequences that end here leave with their state.
            ended.push(s.rows(n, now - n)?);
            s = s.rows(0, n)?;
        } else if n > now {
            s = State::join(&[s, start.rows(now, n - now)?])?;
        }
        now = n;
        s = step(cell, &gates[t], &s, w)?;
        outputs.push(s.h.clone());
    }
    if reverse {
        outputs.reverse();
    }
    ended.push(s);
    ended.reverse();
    Ok((cat(&outputs, 0)?, State::join(&ended)?))
}
