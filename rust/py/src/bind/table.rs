//! The op table by public name: which functions a module or the class has, and their overloads.

use super::overload::Overload;
use super::Function;
use pyo3::prelude::*;
use pyo3::types::PyString;
use pytensorlib_core::ops::{table, Op};
use pytensorlib_core::schema::{flag, Type};
use std::collections::BTreeMap;

/// Names in one place (a module or the class) to their overloads.
pub(super) type Names = BTreeMap<String, Vec<&'static Op>>;

pub(super) fn collect(wanted: u32, suffix: &str) -> Names {
    let mut names = Names::new();
    for op in table() {
        if op.entry.flags & wanted == wanted {
            names
                .entry(format!("{}{suffix}", op.schema.name))
                .or_default()
                .push(op);
        }
    }
    names
}

/// The orders in which [`flag::SCALES`] also takes its arguments: the factor of `self` before it (a
/// method's after), the last factor after it, or not at all where there are two.
fn older(op: &Op, method: bool) -> Vec<Vec<usize>> {
    if op.entry.flags & flag::SCALES != flag::SCALES {
        return Vec::new();
    }
    let (factors, terms): (Vec<usize>, Vec<usize>) =
        (0..op.schema.params.len()).partition(|&i| op.schema.params[i].keyword_only);
    let order = |head: &[usize]| [head, &terms[1..]].concat();
    match (&factors[..], method) {
        (&[b, a], true) => vec![order(&[0, b, a]), order(&[0, b])],
        (&[b, a], false) => vec![order(&[b, 0, a]), order(&[b, 0])],
        (&[a], _) => vec![order(&[0, a])],
        _ => Vec::new(),
    }
}

/// Whether a list may be written as separate arguments: tensors where none is a list, too, integers
/// where nothing else comes by position but `self`.
fn written_out(op: &Op, method: bool) -> bool {
    let mut places = op.schema.params.iter().filter(|p| !p.keyword_only);
    let (count, last) = (places.clone().count(), places.next_back());
    last.is_some_and(|p| match p.ty {
        Type::Tensors => p.default.is_some(),
        Type::Ints(_) => count == 1 + method as usize,
        _ => false,
    })
}

pub(super) fn functions(
    py: Python<'_>,
    names: Names,
    inplace: bool,
    module: &'static str,
    class: &str,
) -> Vec<&'static Function> {
    let overload = |op: &'static Op, order: Vec<usize>| Overload {
        places: match order.len() {
            0 => op.schema.params.iter().filter(|p| !p.keyword_only).count(),
            n => n,
        },
        rest: written_out(op, !class.is_empty()),
        renews: op.schema.name.ends_with('_') && !op.schema.name.ends_with("__"),
        op,
        names: op
            .schema
            .params
            .iter()
            .map(|p| PyString::intern(py, p.name).unbind())
            .collect(),
        method: !class.is_empty(),
        out: op.entry.flags & flag::OUT != 0 && !inplace,
        order,
    };
    let also = |op: &&'static Op| op.entry.flags & flag::ALSO == flag::ALSO;
    names
        .into_iter()
        .map(|(name, ops)| (name, ops.into_iter().partition::<Vec<_>, _>(also)))
        .filter(|(_, (_, ops))| !ops.is_empty())
        .map(|(name, (sparse, ops))| {
            let signatures = ops.len();
            let older = ops.iter().flat_map(|&op| {
                older(op, !class.is_empty())
                    .into_iter()
                    .map(move |o| (op, o))
            });
            let overloads = ops
                .iter()
                .map(|&op| (op, Vec::new()))
                .chain(older)
                .map(|(op, order)| overload(op, order))
                .collect();
            &*Box::leak(Box::new(Function {
                qualified: format!("{class}{name}"),
                operator: name.starts_with("__") && name.ends_with("__"),
                module,
                name,
                overloads,
                sparse: sparse
                    .into_iter()
                    .map(|op| overload(op, Vec::new()))
                    .collect(),
                signatures,
                inplace,
            }))
        })
        .collect()
}

/// A row of [`_schemas`]: signature, place, whether it is a method, has `x_` and `out=`, text.
pub(super) type Row = (&'static str, &'static str, bool, bool, bool, &'static str);

/// Every op at every place where it is found; `Tensor` names methods that are no functions.
#[pyfunction]
pub(super) fn _schemas() -> Vec<Row> {
    const PLACES: [(u32, &str); 5] = [
        (flag::FN, "torch"),
        (flag::NN, "nn"),
        (flag::LINALG, "linalg"),
        (flag::SPECIAL, "special"),
        (flag::FFT, "fft"),
    ];
    let mut rows = Vec::new();
    for op in table() {
        let f = op.entry.flags;
        let has = |bit| f & bit != 0;
        if f & flag::ALSO == flag::ALSO {
            continue;
        }
        let mut places: Vec<&str> = PLACES.iter().filter(|p| has(p.0)).map(|p| p.1).collect();
        if places.is_empty() {
            places.push("Tensor");
        }
        for place in places {
            rows.push((
                op.entry.schema,
                place,
                has(flag::METHOD),
                has(flag::INPLACE),
                has(flag::OUT),
                op.entry.doc.trim(),
            ));
        }
    }
    rows
}
