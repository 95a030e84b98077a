//! The declarations: each op with its signature, shape rule, kernels and derivative in one place.

pub mod along;
pub mod arith;
pub mod attention;
pub mod bits;
pub mod conv;
pub mod copy;
pub mod create;
pub mod ctc;
pub mod diff;
pub mod distance;
pub mod dropout;
pub mod einsum;
pub mod embedding;
pub mod extrema;
pub mod fold;
pub mod histogram;
pub mod index;
pub mod interpolate;
pub mod join;
pub mod linalg;
pub mod loss;
pub mod matmul;
pub mod matrix;
pub mod nll;
pub mod norm;
pub mod optim;
pub mod pad;
pub mod pointwise;
pub mod pool;
pub mod random;
pub mod range;
pub mod reduce;
pub mod resample;
pub mod rnn;
pub mod sample;
pub mod scan;
pub mod scatter;
pub mod softmax;
pub mod sort;
pub mod stats;
pub mod unique;
pub mod view;
pub mod window;

use crate::autograd::{mode, Vjp};
use crate::dispatch;
use crate::error::Result;
use crate::op::{function_name, Derivative, Grads};
use crate::schema::{parse, Entry, Schema};
use crate::tensor::Tensor;
use std::sync::OnceLock;

/// Refuses an argument that requires grad where there is no derivative for it: silently, its
/// gradient would be lost.
pub(crate) fn constant(op: &str, name: &str, x: Option<&Tensor>) -> Result<()> {
    crate::ensure!(
        !(mode::grad() && x.is_some_and(Tensor::requires_grad)),
        Runtime,
        "The function '{op}' is not differentiable with respect to argument '{name}'. This input \
         cannot have requires_grad True."
    );
    Ok(())
}

/// Results that depend on what needs a gradient, and have none: asking for it raises.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Underived(&'static str);

impl Derivative for Underived {
    fn name(&self) -> &'static str {
        self.0
    }
    fn vjp(&self, _cx: &Vjp, _g: &[Option<Tensor>]) -> Result<Grads> {
        crate::bail!(
            NotImplemented,
            "the derivative for '{}' is not implemented.",
            function_name(self.0)
        )
    }
}

/// Makes `y` depend on `x` by a node called `name` through which no gradient goes.
fn underived(name: &'static str, x: &[&Tensor], y: &[Tensor]) -> Result<()> {
    dispatch::record(Underived(name), x, y)
}

/// A public function with its parsed signature.
pub struct Op {
    pub entry: &'static Entry,
    pub schema: Schema,
}

/// Every public function, in the order of declaration. Entries of one name are overloads, tried
/// in this order.
pub fn table() -> &'static [Op] {
    static TABLE: OnceLock<Vec<Op>> = OnceLock::new();
    TABLE.get_or_init(|| {
        let families: &[&'static [Entry]] = &[
            pointwise::arithmetic::ENTRIES,
            pointwise::compare::ENTRIES,
            pointwise::math::ENTRIES,
            pointwise::activation::ENTRIES,
            attention::ENTRIES,
            conv::ENTRIES,
            copy::ENTRIES,
            create::ENTRIES,
            dropout::ENTRIES,
            ctc::ENTRIES,
            distance::ENTRIES,
            einsum::ENTRIES,
            embedding::ENTRIES,
            extrema::ENTRIES,
            fold::ENTRIES,
            index::entries::ENTRIES,
            interpolate::ENTRIES,
            join::ENTRIES,
            join::rearrange::ENTRIES,
            linalg::ENTRIES,
            loss::ENTRIES,
            matmul::ENTRIES,
            matrix::ENTRIES,
            nll::ENTRIES,
            norm::ENTRIES,
            optim::ENTRIES,
            pad::ENTRIES,
            pool::ENTRIES,
            sample::ENTRIES,
            random::ENTRIES,
            range::ENTRIES,
            reduce::ENTRIES,
            rnn::ENTRIES,
            scan::ENTRIES,
            diff::ENTRIES,
            histogram::ENTRIES,
            scatter::ENTRIES,
            softmax::ENTRIES,
            sort::ENTRIES,
            stats::ENTRIES,
            unique::ENTRIES,
            view::entries::ENTRIES,
            view::copies::ENTRIES,
            view::complex::ENTRIES,
            window::ENTRIES,
            bits::ENTRIES,
        ];
        families
            .iter()
            .flat_map(|f| f.iter())
            .map(|entry| Op {
                entry,
                schema: parse(entry.schema),
            })
            .collect()
    })
}
