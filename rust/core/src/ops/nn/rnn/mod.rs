//! Recurrent networks: whole sequences, and single steps.

mod composite;
mod cpu;
mod fused;
mod gpu;

use crate::arg;
use crate::cpu::indices::Indices;
use crate::dtype::DType;
use crate::ensure;
use crate::error::Result;
use crate::ops::shape::join::{cat, stack};
use crate::schema::{Args, Signature, Value};
use crate::shape::Show;
use crate::tensor::Tensor;
use composite::{Cell, State, Weights};

struct Network<'a> {
    cell: Cell,
    params: &'a [Tensor],
    biases: bool,
    layers: i64,
    dropout: f64,
    train: bool,
    bidirectional: bool,
}

impl Network<'_> {
    /// `x` as for [`layer`]; states are (layers * directions, batch, width).
    fn run(&self, x: &Tensor, sizes: &[usize], hx: &[Tensor]) -> Result<(Tensor, Vec<Tensor>)> {
        let name = self.cell.name();
        let directions = 1 + self.bidirectional as usize;
        ensure!(
            self.layers > 0,
            Runtime,
            "{name}: num_layers must be positive, got {}",
            self.layers
        );
        let runs = directions * self.layers as usize;
        let projected = self.cell == Cell::Lstm
            && hx.len() == 2
            && hx.iter().all(|h| h.ndim() == 3)
            && hx[0].size(2) != hx[1].size(2);
        let each = 2 + 2 * self.biases as usize + projected as usize;
        ensure!(
            self.params.len() == each.saturating_mul(runs),
            Runtime,
            "{name}: got an incorrect number of RNN parameters: {} for {runs} layers and \
             directions of {each}",
            self.params.len()
        );
        ensure!(
            !sizes.is_empty() && sizes[0] > 0 || sizes.iter().all(|&n| n == 0) && !sizes.is_empty(),
            Runtime,
            "{name}: Expected sequence length to be larger than 0 in RNN"
        );
        let states = 1 + (self.cell == Cell::Lstm) as usize;
        ensure!(
            hx.len() == states,
            Runtime,
            "{name} expects {states} hidden states, got {}",
            hx.len()
        );
        let width = self.params[0].size(1);
        ensure!(
            x.size(1) == width,
            Runtime,
            "{name}: input.size(-1) must be equal to input_size. Expected {width}, got {}",
            x.size(1)
        );
        for h in hx {
            ensure!(
                h.ndim() == 3 && h.size(0) == runs && h.size(1) == sizes[0],
                Runtime,
                "{name}: Expected hidden size ({runs}, {}, *), got {}",
                sizes[0],
                Show(h.shape())
            );
        }
        let mut x = x.clone();
        let mut last: Vec<State> = Vec::new();
        for l in 0..self.layers as usize {
            let mut sides = Vec::new();
            for d in 0..directions {
                let i = l * directions + d;
                let p = &self.params[i * each..(i + 1) * each];
                let w = Weights {
                    ih: &p[0],
                    hh: &p[1],
                    bias_ih: self.biases.then(|| &p[2]),
                    bias_hh: self.biases.then(|| &p[3]),
                    hr: if projected { p.last() } else { None },
                };
                let at = |h: &Tensor| h.select(0, i as i64);
                let start = State {
                    h: at(&hx[0])?,
                    c: hx.get(1).map(at).transpose()?,
                };
                let (y, s) = fused::layer(self.cell, &x, sizes, &start, &w, d == 1)?;
                sides.push(y);
                last.push(s);
            }
            x = if directions == 2 {
                cat(&sides, 1)?
            } else {
                sides.swap_remove(0)
            };
            if self.train && self.dropout > 0.0 && l + 1 < self.layers as usize {
                x = x.dropout(self.dropout, true)?;
            }
        }
        let h: Vec<Tensor> = last.iter().map(|s| s.h.clone()).collect();
        let mut out = vec![stack(&h, 0)?];
        if self.cell == Cell::Lstm {
            let c: Vec<Tensor> = last.iter().filter_map(|s| s.c.clone()).collect();
            out.push(stack(&c, 0)?);
        }
        Ok((x, out))
    }
}

/// `(input, hx, params, has_biases, num_layers, dropout, train, bidirectional, batch_first)`.
fn padded<Sig: Signature>(cell: Cell, a: &Args<Sig>) -> Result<Value> {
    let x = a.tensor(arg!(input))?;
    let batch_first = a.bool(arg!(batch_first))?;
    let one;
    let hx = match a.tensors(arg!(hx)) {
        Ok(list) => list,
        Err(_) => {
            one = [a.tensor(arg!(hx))?.clone()];
            &one[..]
        }
    };
    ensure!(
        x.ndim() == 3,
        Runtime,
        "{}: Expected input to be a 3-D tensor, got {}",
        cell.name(),
        Show(x.shape())
    );
    let net = network(cell, a)?;
    let x = if batch_first {
        x.permute(&[1, 0, 2])?
    } else {
        x.clone()
    };
    let (steps, batch) = (x.size(0), x.size(1));
    let rows = x.reshape_to(&[steps * batch, x.size(2)])?;
    let (y, states) = net.run(&rows, &vec![batch; steps], hx)?;
    let mut y = y.reshape_to(&[steps, batch, y.size(1)])?;
    if batch_first {
        y = y.permute(&[1, 0, 2])?;
    }
    Ok(Value::Tuple(std::iter::once(y).chain(states).collect()))
}

/// `(data, batch_sizes, hx, params, has_biases, num_layers, dropout, train, bidirectional)`.
fn packed<Sig: Signature>(cell: Cell, a: &Args<Sig>) -> Result<Value> {
    let (x, sizes) = (
        a.tensor(arg!(data))?,
        a.tensor(arg!(batch_sizes))?
            .to_host()?
            .prepared(DType::I64)?,
    );
    let one;
    let hx = match a.tensors(arg!(hx)) {
        Ok(list) => list,
        Err(_) => {
            one = [a.tensor(arg!(hx))?.clone()];
            &one[..]
        }
    };
    let sizes = &Indices::of(&sizes).own()[..];
    let falling = sizes.windows(2).all(|w| w[0] >= w[1]) && sizes.last().is_some_and(|&n| n > 0);
    let total = sizes.iter().try_fold(0i64, |a, &b| a.checked_add(b));
    ensure!(
        falling && x.ndim() == 2 && total == Some(x.size(0) as i64),
        Runtime,
        "{}: batch_sizes must not increase, be positive and sum to the number of rows, got {} for \
         data of size {}",
        cell.name(),
        Show(sizes),
        Show(x.shape())
    );
    let sizes: Vec<usize> = sizes.iter().map(|&n| n as usize).collect();
    let (y, states) = network(cell, a)?.run(x, &sizes, hx)?;
    Ok(Value::Tuple(std::iter::once(y).chain(states).collect()))
}

fn network<'a, Sig: Signature>(cell: Cell, a: &'a Args<Sig>) -> Result<Network<'a>> {
    Ok(Network {
        cell,
        params: a.tensors(arg!(params))?,
        biases: a.bool(arg!(has_biases))?,
        layers: a.int(arg!(num_layers))?,
        dropout: a.float(arg!(dropout))?,
        train: a.bool(arg!(train))?,
        bidirectional: a.bool(arg!(bidirectional))?,
    })
}

/// `(input, hx, w_ih, w_hh, b_ih, b_hh)`.
fn single<Sig: Signature>(cell: Cell, a: &Args<Sig>) -> Result<Value> {
    let x = a.tensor(arg!(input))?;
    let w = Weights {
        ih: a.tensor(arg!(w_ih))?,
        hh: a.tensor(arg!(w_hh))?,
        bias_ih: a.opt_tensor(arg!(b_ih)),
        bias_hh: a.opt_tensor(arg!(b_hh)),
        hr: None,
    };
    let hx: Vec<Tensor> = match cell {
        Cell::Lstm => a.tensors(arg!(hx))?.to_vec(),
        _ => vec![a.tensor(arg!(hx))?.clone()],
    };
    let name = cell.name();
    ensure!(
        cell != Cell::Lstm || hx.len() == 2,
        Runtime,
        "lstm_cell expects two hidden states, got {}",
        hx.len()
    );
    let gates = w.ih.size(0);
    ensure!(
        x.ndim() == 2 && w.ih.ndim() == 2 && w.ih.size(1) == x.size(1),
        Runtime,
        "{name}_cell: input has inconsistent input_size: got {} for weight_ih {}",
        Show(x.shape()),
        Show(w.ih.shape())
    );
    for h in &hx {
        ensure!(
            h.ndim() == 2 && h.size(0) == x.size(0) && h.size(1) * cell.gates() == gates,
            Runtime,
            "{name}_cell: hidden has inconsistent size: got {} for input {} and weight_ih {}",
            Show(h.shape()),
            Show(x.shape()),
            Show(w.ih.shape())
        );
    }
    let s = State {
        h: hx[0].clone(),
        c: hx.get(1).cloned(),
    };
    let s = fused::step(cell, x, &s, &w)?;
    Ok(match s.c {
        Some(c) => Value::Tuple(vec![s.h, c]),
        None => s.h.into(),
    })
}

crate::entries! {
    /// A long short-term memory over sequences. Hochreiter, Schmidhuber 1997.
    "lstm(Tensor input, Tensor[] hx, Tensor[] params, bool has_biases, int num_layers, float dropout, bool train, bool bidirectional, bool batch_first) -> (Tensor, Tensor, Tensor)",
    FN, |a| padded(Cell::Lstm, a);
    "lstm(Tensor data, Tensor batch_sizes, Tensor[] hx, Tensor[] params, bool has_biases, int num_layers, float dropout, bool train, bool bidirectional) -> (Tensor, Tensor, Tensor)",
    FN, |a| packed(Cell::Lstm, a);
    /// A gated recurrent unit over sequences. Cho et al. 2014, arXiv:1406.1078.
    "gru(Tensor input, Tensor hx, Tensor[] params, bool has_biases, int num_layers, float dropout, bool train, bool bidirectional, bool batch_first) -> (Tensor, Tensor)",
    FN, |a| padded(Cell::Gru, a);
    "gru(Tensor data, Tensor batch_sizes, Tensor hx, Tensor[] params, bool has_biases, int num_layers, float dropout, bool train, bool bidirectional) -> (Tensor, Tensor)",
    FN, |a| packed(Cell::Gru, a);
    /// A recurrent network with tanh. Elman 1990.
    "rnn_tanh(Tensor input, Tensor hx, Tensor[] params, bool has_biases, int num_layers, float dropout, bool train, bool bidirectional, bool batch_first) -> (Tensor, Tensor)",
    FN, |a| padded(Cell::Tanh, a);
    "rnn_tanh(Tensor data, Tensor batch_sizes, Tensor hx, Tensor[] params, bool has_biases, int num_layers, float dropout, bool train, bool bidirectional) -> (Tensor, Tensor)",
    FN, |a| packed(Cell::Tanh, a);
    /// A recurrent network with relu.
    "rnn_relu(Tensor input, Tensor hx, Tensor[] params, bool has_biases, int num_layers, float dropout, bool train, bool bidirectional, bool batch_first) -> (Tensor, Tensor)",
    FN, |a| padded(Cell::Relu, a);
    "rnn_relu(Tensor data, Tensor batch_sizes, Tensor hx, Tensor[] params, bool has_biases, int num_layers, float dropout, bool train, bool bidirectional) -> (Tensor, Tensor)",
    FN, |a| packed(Cell::Relu, a);
    /// One step of an LSTM: the new hidden and cell state.
    "lstm_cell(Tensor input, Tensor[] hx, Tensor w_ih, Tensor w_hh, Tensor? b_ih=None, Tensor? b_hh=None) -> (Tensor, Tensor)",
    FN, |a| single(Cell::Lstm, a);
    /// One step of a GRU.
    "gru_cell(Tensor input, Tensor hx, Tensor w_ih, Tensor w_hh, Tensor? b_ih=None, Tensor? b_hh=None) -> Tensor",
    FN, |a| single(Cell::Gru, a);
    /// One step of a recurrent network with tanh.
    "rnn_tanh_cell(Tensor input, Tensor hx, Tensor w_ih, Tensor w_hh, Tensor? b_ih=None, Tensor? b_hh=None) -> Tensor",
    FN, |a| single(Cell::Tanh, a);
    /// One step of a recurrent network with relu.
    "rnn_relu_cell(Tensor input, Tensor hx, Tensor w_ih, Tensor w_hh, Tensor? b_ih=None, Tensor? b_hh=None) -> Tensor",
    FN, |a| single(Cell::Relu, a);
}
