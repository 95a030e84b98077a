//! Views as calls of PyTorch's functions, told from the layouts.

use crate::layout::Layout;
use crate::op::Asked;
use crate::schema::Value;
use crate::tensor::Tensor;

fn int(n: usize) -> Value {
    Value::Int(n as i64)
}

/// Any view, by its sizes and strides.
pub fn strided(x: &Tensor, y: &Layout) -> Asked {
    let strides = y.strides.iter().map(|&s| s as i64).collect();
    Asked::named("as_strided").with([
        x.clone().into(),
        y.shape[..].into(),
        Value::Ints(strides),
        int(y.offset),
    ])
}

/// A view of the same elements in the same order.
pub fn viewed(asked: Asked, x: &Tensor, y: &Layout) -> Asked {
    let (from, to) = (&x.shape()[..], &y.shape[..]);
    // The dimension of size 1 that one has and the other lacks.
    let odd = |long: &[usize], short: &[usize]| {
        let same = |d: &usize| long[*d] == 1 && [&long[..*d], &long[d + 1..]].concat() == short;
        (long.len() == short.len() + 1).then(|| (0..long.len()).find(same))?
    };
    let place = match asked.name.as_str() {
        "unsqueeze" => odd(to, from),
        "squeeze" => odd(from, to),
        "detach" | "alias" => return asked.with([x.clone().into()]),
        _ => None,
    };
    match place {
        Some(d) => asked.with([x.clone().into(), int(d)]),
        None => Asked::named("view").with([x.clone().into(), to.into()]),
    }
}

/// Dimensions in another order.
pub fn permuted(asked: Asked, x: &Tensor, dims: &[i64]) -> Asked {
    let moved: Vec<usize> = (0..dims.len()).filter(|&d| dims[d] != d as i64).collect();
    match (asked.name.as_str(), &moved[..]) {
        ("t", _) => asked.with([x.clone().into()]),
        ("transpose", &[a, b]) => asked.with([x.clone().into(), int(a), int(b)]),
        _ => Asked::named("permute").with([x.clone().into(), Value::Ints(dims.into())]),
    }
}

/// A part: one index, or a slice, of a dimension.
pub fn part(asked: Asked, x: &Tensor, y: &Layout) -> Asked {
    let from = x.layout();
    let ahead = y.offset.checked_sub(from.offset);
    let without = |d: usize| {
        let mut l = from.clone();
        l.shape.remove(d);
        l.strides.remove(d);
        l.shape == y.shape && l.strides == y.strides
    };
    // How many steps along a dimension lead to the first element.
    let steps = |d: usize| {
        let (ahead, step) = (ahead?, usize::try_from(from.strides[d]).ok()?);
        match (ahead, step) {
            (0, _) => Some(0),
            (_, 0) => None,
            _ => (ahead % step == 0 && ahead / step < from.shape[d]).then_some(ahead / step),
        }
    };
    match asked.name.as_str() {
        "select" => {
            let fits = |&d: &usize| without(d) && from.shape[d] > 0 && steps(d).is_some();
            if let Some(d) = (0..from.shape.len()).find(fits) {
                let at = int(steps(d).unwrap_or(0));
                return asked.with([x.clone().into(), int(d), at]);
            }
        }
        "slice" if y.shape.len() == from.shape.len() => {
            let differs =
                |&d: &usize| y.shape[d] != from.shape[d] || y.strides[d] != from.strides[d];
            let all: Vec<usize> = (0..from.shape.len()).collect();
            let which: Vec<usize> = all.iter().copied().filter(differs).collect();
            if let (&[d], _) | (&[], &[d, ..]) = (&which[..], &all[..]) {
                let (own, new) = (from.strides[d], y.strides[d]);
                let stride = if own > 0 && new % own == 0 {
                    new / own
                } else {
                    0
                };
                if let (Some(at), true) = (steps(d), stride > 0) {
                    let end = at + (y.shape[d] * stride as usize);
                    let end = int(end.min(from.shape[d]));
                    let mut args = vec![x.clone().into(), int(d), int(at), end];
                    if stride > 1 {
                        args.push(Value::Int(stride as i64));
                    }
                    return asked.with(args);
                }
            }
        }
        _ => {}
    }
    strided(x, y)
}

/// Several parts: single indices or pieces of a dimension.
pub fn parts(asked: Asked, x: &Tensor, y: &[Layout]) -> Asked {
    let from = x.shape();
    let own = x.clone().into();
    if y.iter().all(|l| l.shape.len() + 1 == from.len()) {
        let lacks = |&d: &usize| {
            let rest = [&from[..d], &from[d + 1..]].concat();
            from[d] == y.len() && y.iter().all(|l| l.shape[..] == rest[..])
        };
        let d = (0..from.len()).find(|d| {
            let own = &x.strides()[..];
            let rest = [&own[..*d], &own[*d + 1..]].concat();
            lacks(d) && y.iter().all(|l| l.strides[..] == rest[..])
        });
        return asked.with([own, int(d.unwrap_or(0))]);
    }
    let differs = |&d: &usize| y.iter().any(|l| l.shape.get(d) != from.get(d));
    let d = (0..from.len()).find(differs).unwrap_or(0);
    let sizes: Vec<usize> = y
        .iter()
        .map(|l| l.shape.get(d).copied().unwrap_or(1))
        .collect();
    let first = sizes.first().copied().unwrap_or(0);
    let (last, rest) = sizes.split_last().map_or((0, &[][..]), |(l, r)| (*l, r));
    match first > 0 && last <= first && last > 0 && rest.iter().all(|&n| n == first) {
        true => Asked::named("split").with([own, int(first), int(d)]),
        false => Asked::named("split_with_sizes").with([own, sizes[..].into(), int(d)]),
    }
}
