//! Einstein summation: pairs of operands are contracted through batched products.

use crate::arg;
use crate::dtype::DType;
use crate::error::Result;
use crate::layout::Layout;
use crate::shape::{DimSet, Dims, Show};
use crate::tensor::Tensor;
use crate::{bail, ensure};
use smallvec::SmallVec;

/// A letter, or from 256 on a dimension that an ellipsis covers, counted from the right.
type Label = u32;
const DOTS: Label = 256;

struct Operand {
    x: Tensor,
    labels: Vec<Label>,
}

/// Subscripts of one operand; `None` is the ellipsis.
fn subscripts(text: &str, which: &str) -> Result<Vec<Option<Label>>> {
    let mut out = Vec::new();
    let bytes = text.as_bytes();
    let mut i = 0;
    while i < bytes.len() {
        match bytes[i] {
            b' ' => {}
            b'.' => {
                ensure!(
                    bytes[i..].starts_with(b"...") && !out.contains(&None),
                    Runtime,
                    "einsum(): found '.' for {which} that is not part of any ellipsis, or a \
                     second ellipsis, in '{text}'"
                );
                out.push(None);
                i += 2;
            }
            ch if ch.is_ascii_alphabetic() => out.push(Some(ch as Label)),
            ch => bail!(
                Runtime,
                "einsum(): invalid subscript given at index {i} in the equation string, got \
                 '{}' in '{text}' but subscripts must be in [a-zA-Z]",
                ch as char
            ),
        }
        i += 1;
    }
    Ok(out)
}

/// Joins repeated labels of an operand to diagonals.
fn diagonals(mut x: Tensor, mut labels: Vec<Label>, i: usize) -> Result<Operand> {
    let mut d = 0;
    while d < labels.len() {
        let Some(first) = labels[..d].iter().position(|&l| l == labels[d]) else {
            d += 1;
            continue;
        };
        ensure!(
            x.size(first) == x.size(d),
            Runtime,
            "einsum(): subscript {} is repeated for operand {i} but the sizes don't match, {} != \
             {}",
            show(labels[d]),
            x.size(d),
            x.size(first)
        );
        let (a, b) = (first as i64, d as i64);
        x = x.part("DiagonalBackward0", |l: &Layout| l.diagonal(0, a, b))?;
        // The diagonal comes last.
        labels.remove(d);
        let l = labels.remove(first);
        labels.push(l);
        d = 0;
    }
    Ok(Operand { x, labels })
}

fn show(l: Label) -> String {
    if l >= DOTS {
        "...".into()
    } else {
        (l as u8 as char).to_string()
    }
}

/// Sums away a dimension, or drops it where its size is one.
fn drop_dims(o: &mut Operand, dtype: Option<DType>, gone: impl Fn(usize) -> bool) -> Result<()> {
    let mask = DimSet::of(o.labels.len(), gone)?;
    if !mask.is_empty() {
        o.x = o.x.sum_mask(mask, false, dtype)?;
        let mut d = 0;
        o.labels.retain(|_| {
            d += 1;
            !mask.has(d - 1)
        });
    }
    Ok(())
}

/// Drops dimensions of size 1 that the other operand has larger: they broadcast.
fn drop_ones(o: &mut Operand, size: impl Fn(Label) -> usize) -> Result<()> {
    let keep: Vec<usize> = (0..o.labels.len())
        .filter(|&d| o.x.size(d) != 1 || size(o.labels[d]) == 1)
        .collect();
    if keep.len() < o.labels.len() {
        let shape: Dims = keep.iter().map(|&d| o.x.size(d)).collect();
        o.x = o.x.reshape_to(&shape)?;
        o.labels = keep.iter().map(|&d| o.labels[d]).collect();
    }
    Ok(())
}

/// The dimensions of `o` in the order of the groups, as one dimension for each group.
fn grouped(o: &Operand, groups: [&[Label]; 3]) -> Result<Tensor> {
    let at = |l: &Label| o.labels.iter().position(|x| x == l).unwrap_or(0);
    let order: SmallVec<[i64; 5]> = groups
        .iter()
        .flat_map(|g| g.iter())
        .map(|l| at(l) as i64)
        .collect();
    let shape: Dims = groups
        .iter()
        .map(|g| g.iter().map(|l| o.x.size(at(l))).product())
        .collect();
    o.x.permute(&order)?.reshape_to(&shape)
}

/// Multiplies two operands; labels that are not `kept` are summed.
fn contract(mut a: Operand, mut b: Operand, kept: impl Fn(Label) -> bool) -> Result<Operand> {
    let only = |l: &Label, other: &Operand| !other.labels.contains(l) && !kept(*l);
    let alone: Vec<bool> = a.labels.iter().map(|l| only(l, &b)).collect();
    drop_dims(&mut a, None, |d| alone[d])?;
    let alone: Vec<bool> = b.labels.iter().map(|l| only(l, &a)).collect();
    drop_dims(&mut b, None, |d| alone[d])?;
    // A sum of integers is int64.
    let dtype = a.x.dtype().promote(b.x.dtype());
    (a.x, b.x) = (a.x.to_dtype(dtype)?, b.x.to_dtype(dtype)?);
    let (mut batch, mut left, mut sum) = (vec![], vec![], vec![]);
    for &l in &a.labels {
        match (b.labels.contains(&l), kept(l)) {
            (true, true) => batch.push(l),
            (true, false) => sum.push(l),
            _ => left.push(l),
        }
    }
    let right: Vec<Label> = b
        .labels
        .iter()
        .filter(|l| !a.labels.contains(l))
        .copied()
        .collect();
    let size = |l: &Label| {
        let of = |o: &Operand| o.labels.iter().position(|x| x == l).map(|d| o.x.size(d));
        of(&a).or(of(&b)).unwrap_or(1)
    };
    let shape: Dims = batch.iter().chain(&left).chain(&right).map(size).collect();
    let labels: Vec<Label> = batch.iter().chain(&left).chain(&right).copied().collect();
    let x = if sum.is_empty() {
        // Nothing to sum: a product of elements.
        let x = grouped(&a, [&batch, &left, &[]])?;
        let y = grouped(&b, [&batch, &[], &right])?;
        x.mul(&y)?
    } else if batch.is_empty() {
        let x = grouped(&a, [&[], &left, &sum])?;
        let y = grouped(&b, [&[], &sum, &right])?;
        let flat = |t: &Tensor| t.reshape_to(&t.shape()[1..]);
        flat(&x)?.mm(&flat(&y)?)?
    } else {
        grouped(&a, [&batch, &left, &sum])?.bmm(&grouped(&b, [&batch, &sum, &right])?)?
    };
    Ok(Operand {
        x: x.reshape_to(&shape)?,
        labels,
    })
}

/// `einsum`.
pub fn einsum(equation: &str, tensors: &[Tensor]) -> Result<Tensor> {
    ensure!(
        !tensors.is_empty(),
        Runtime,
        "einsum(): must provide at least one operand"
    );
    let (inputs, output) = match equation.split_once("->") {
        Some((i, o)) => (i, Some(o)),
        None => (equation, None),
    };
    let parts: Vec<&str> = inputs.split(',').collect();
    ensure!(
        parts.len() <= tensors.len(),
        Runtime,
        "einsum(): fewer operands were provided than specified in the equation ({} for '{equation}')",
        tensors.len()
    );
    ensure!(
        parts.len() >= tensors.len(),
        Runtime,
        "einsum(): more operands were provided than specified in the equation ({} for '{equation}')",
        tensors.len()
    );
    let mut operands = Vec::new();
    let mut sizes: Vec<(Label, usize)> = Vec::new();
    let mut dots = 0;
    for (i, (part, x)) in parts.iter().zip(tensors).enumerate() {
        let subs = subscripts(part, &format!("operand {i}"))?;
        let named = subs.iter().flatten().count();
        let covered = x.ndim().checked_sub(named);
        let covered =
            match covered {
                Some(n) if n == 0 || subs.contains(&None) => n,
                _ => bail!(
                Runtime,
                "einsum(): the number of subscripts in the equation ({named}) {} the number of \
                 dimensions ({}) for operand {i}{}",
                if subs.contains(&None) { "is more than" } else { "does not match" },
                x.ndim(),
                if subs.contains(&None) { "" } else { " and no ellipsis was given" }
            ),
            };
        dots = dots.max(covered);
        let mut labels = Vec::new();
        for s in subs {
            match s {
                Some(l) => labels.push(l),
                None => labels.extend((0..covered).rev().map(|k| DOTS + k as Label)),
            }
        }
        for (d, &l) in labels.iter().enumerate() {
            let n = x.size(d);
            match sizes.iter_mut().find(|s| s.0 == l) {
                None => sizes.push((l, n)),
                Some(s) if s.1 == 1 => s.1 = n,
                Some(s) => ensure!(
                    n == 1 || n == s.1,
                    Runtime,
                    "einsum(): operands do not broadcast with remapped shapes \
                     [original->remapped]: subscript {} has size {n} for operand {i} of shape {} \
                     which does not broadcast with previously seen size {}",
                    show(l),
                    Show(x.shape()),
                    s.1
                ),
            }
        }
        operands.push(diagonals(x.clone(), labels, i)?);
    }
    let ellipsis = || (0..dots).rev().map(|k| DOTS + k as Label);
    let mut out: Vec<Label> = Vec::new();
    match output {
        Some(text) => {
            for s in subscripts(text, "the output")? {
                let Some(l) = s else {
                    out.extend(ellipsis());
                    continue;
                };
                ensure!(
                    !out.contains(&l),
                    Runtime,
                    "einsum(): output subscript {} appears more than once in the output",
                    show(l)
                );
                ensure!(
                    sizes.iter().any(|s| s.0 == l),
                    Runtime,
                    "einsum(): output subscript {} does not appear in the equation for any input \
                     operand",
                    show(l)
                );
                out.push(l);
            }
        }
        None => {
            out.extend(ellipsis());
            let count = |l: Label| inputs.bytes().filter(|&b| b as Label == l).count();
            let mut once: Vec<Label> = sizes
                .iter()
                .map(|s| s.0)
                .filter(|&l| l < DOTS && count(l) == 1)
                .collect();
            once.sort_unstable();
            out.extend(once);
        }
    }
    let size = |l: Label| sizes.iter().find(|s| s.0 == l).map_or(1, |s| s.1);
    for o in &mut operands {
        drop_ones(o, size)?;
    }
    let mut rest = operands.into_iter();
    let mut acc = match rest.next() {
        Some(o) => o,
        None => bail!(Runtime, "einsum(): must provide at least one operand"),
    };
    let mut rest: std::collections::VecDeque<Operand> = rest.collect();
    while let Some(next) = rest.pop_front() {
        let later: Vec<Label> = rest
            .iter()
            .flat_map(|o| o.labels.iter())
            .chain(&out)
            .copied()
            .collect();
        acc = contract(acc, next, |l| later.contains(&l))?;
    }
    let gone: Vec<bool> = acc.labels.iter().map(|l| !out.contains(l)).collect();
    drop_dims(&mut acc, None, |d| gone[d])?;
    let order: SmallVec<[i64; 5]> = out
        .iter()
        .filter_map(|l| acc.labels.iter().position(|x| x == l))
        .map(|d| d as i64)
        .collect();
    let y = acc.x.permute(&order)?;
    let shape: Dims = out
        .iter()
        .map(|l| match acc.labels.iter().position(|x| x == l) {
            Some(d) => acc.x.size(d),
            None => 1,
        })
        .collect();
    y.reshape_to(&shape)
}

crate::entries! {
    /// Sums of products of the operands' elements, as the equation's subscripts say.
    "einsum(str equation, Tensor[] operands=[]) -> Tensor", FN,
    |a| Ok(einsum(a.str(arg!(equation))?, a.tensors(arg!(operands))?)?.into());
}
