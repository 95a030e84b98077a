//! The declarations: each op with its signature, shape rule, kernels and derivative in one place.

/// Declares a family's modules that have public functions, and lists those.
macro_rules! family {
    ($($module:ident)* $(; $($more:path),*)?) => {
        $(pub mod $module;)*
        pub const TABLES: &[&[$crate::schema::Entry]] = &[$($module::ENTRIES,)* $($($more),*)?];
    };
}
pub(crate) use family;

/// Declares the families, and lists their public functions.
macro_rules! families {
    ($($family:ident)*) => {
        $(pub mod $family;)*
        const FAMILIES: &[&[&[Entry]]] = &[$($family::TABLES),*];
    };
}

// Each uses only those before it.
families! { pointwise shape index reduce sort linalg sparse random nn optim }

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
    let entries = || FAMILIES.iter().copied().flatten().copied().flatten();
    TABLE.get_or_init(|| {
        entries()
            .map(|entry| Op {
                entry,
                schema: parse(entry.schema),
            })
            .collect()
    })
}
