//! The two traits that an op implements, and what the engine knows of it.

use crate::autograd::{Jvp, Tangents, Vjp};
use crate::cpu::indices::Indices;
use crate::device::Device;
use crate::dtype::DType;
pub use crate::error::function_name;
use crate::error::Result;
use crate::gpu::Gpu;
use crate::layout::Layout;
use crate::meta::Meta;
use crate::schema::Value as Argument;
use crate::shape::Dims;
use crate::tensor::Tensor;
use smallvec::SmallVec;
use std::any::Any;
use std::fmt::Debug;
use std::hash::{Hash, Hasher};
use std::ops::Range;
use std::sync::Arc;

mod capabilities;
mod cut;
mod traits;

pub use capabilities::{Batching, Drawn, Fast, Fusion, Large, Mapped, Replay, ReplayArgs};
pub use cut::{Cut, Part};
pub use traits::{Rare, Repeats, Traits};

/// What a tensor looks like, without its data.
#[derive(Debug, PartialEq, Eq)]
pub struct TensorMeta {
    pub shape: Dims,
    pub dtype: DType,
    pub device: Device,
}

impl Clone for TensorMeta {
    fn clone(&self) -> Self {
        TensorMeta {
            shape: Dims::from_slice(&self.shape),
            ..*self
        }
    }
}

impl TensorMeta {
    pub fn new(shape: &[usize], dtype: DType, device: Device) -> Self {
        TensorMeta {
            shape: Dims::from_slice(shape),
            dtype,
            device,
        }
    }
    pub fn of(t: &Meta) -> Self {
        TensorMeta {
            shape: Dims::from_slice(t.shape()),
            dtype: t.dtype(),
            device: t.device(),
        }
    }
}

/// A set of small indices as bits.
pub type Mask = u64;
/// One gradient for each input; `None` is a zero that nobody had to write down.
pub type Grads = SmallVec<[Option<Tensor>; 3]>;
/// The gradient of an op with one input.
pub fn one(g: Tensor) -> Result<Grads> {
    Ok(SmallVec::from_elem(Some(g), 1))
}

/// Results of an op.
pub type Tensors = SmallVec<[Tensor; 1]>;
/// Shapes and types of the results.
pub type Metas = SmallVec<[TensorMeta; 1]>;

/// A call of a function by its name.
pub struct Asked {
    pub name: String,
    /// By position, and by keyword; `None` where they are the op's inputs.
    pub args: Option<Vec<Argument>>,
    pub options: Vec<(&'static str, Argument)>,
}

impl Asked {
    /// The function that a node is named after, of the op's inputs.
    pub fn of_node(node: &str) -> Asked {
        // `MaxPool2D` is one word.
        let name = ["1", "2", "3"].iter().fold(function_name(node), |name, n| {
            name.replace(&format!("{n}_d"), &format!("{n}d"))
        });
        Asked::named(name)
    }

    /// The function that computes a gradient, of the op's inputs.
    pub fn backward(node: &str) -> Asked {
        let mut asked = Asked::of_node(node);
        asked.name.push_str("_backward");
        asked
    }

    pub fn named(name: impl Into<String>) -> Asked {
        Asked {
            name: name.into(),
            args: None,
            options: Vec::new(),
        }
    }

    pub fn with(mut self, args: impl IntoIterator<Item = Argument>) -> Asked {
        self.args = Some(args.into_iter().collect());
        self
    }

    pub fn option(mut self, name: &'static str, value: Argument) -> Asked {
        self.options.push((name, value));
        self
    }
}

/// Which inputs and outputs a derivative needs again.
#[derive(Clone, Copy, Debug, Default)]
pub struct Save {
    pub inputs: Mask,
    pub outputs: Mask,
}

impl Save {
    pub const NONE: Save = Save {
        inputs: 0,
        outputs: 0,
    };
    /// Inputs by their numbers, those that `vjp` asks for them by.
    pub const fn inputs<const N: usize>(which: [usize; N]) -> Save {
        Save {
            inputs: mask(which),
            outputs: 0,
        }
    }
    pub const fn outputs<const N: usize>(which: [usize; N]) -> Save {
        Save::NONE.and_outputs(which)
    }
    pub const fn and_outputs<const N: usize>(self, which: [usize; N]) -> Save {
        Save {
            outputs: mask(which),
            ..self
        }
    }
}

/// The bits of these numbers.
pub const fn mask<const N: usize>(which: [usize; N]) -> Mask {
    let (mut bits, mut i) = (0, 0);
    while i < N {
        bits |= 1 << which[i];
        i += 1;
    }
    bits
}

/// An op is a value: it can be compared, hashed and kept, and calls of equal ops on equal inputs do
/// the same. Floats count by their bits, generators by which they are.
pub trait Value: Any + Debug + Send + Sync {
    fn equals(&self, other: &dyn Value) -> bool;
    fn digest(&self, state: &mut dyn Hasher);
}

impl<T: Any + Debug + Send + Sync + Eq + Hash> Value for T {
    fn equals(&self, other: &dyn Value) -> bool {
        (other as &dyn Any).downcast_ref::<T>() == Some(self)
    }
    fn digest(&self, mut state: &mut dyn Hasher) {
        self.type_id().hash(&mut state);
        self.hash(&mut state);
    }
}

impl PartialEq for dyn Op {
    fn eq(&self, other: &dyn Op) -> bool {
        self.equals(other)
    }
}
impl Eq for dyn Op {}
impl Hash for dyn Op {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.digest(state)
    }
}

/// How gradients pass through an op. `vjp` has no default: no op without a derivative.
pub trait Derivative: Value {
    /// PyTorch's name of the graph node, such as `AddBackward0`.
    fn name(&self) -> &'static str;

    /// What to keep for `vjp`, given which inputs need a gradient.
    fn save(&self, _needs: Mask) -> Save {
        Save::NONE
    }

    /// The inputs whose gradient depends on them with a slope of nothing: under `create_graph` it
    /// requires grad.
    fn steps(&self) -> Mask {
        0
    }

    /// Asked in backward where the op took place in its first input: raises where there is no
    /// gradient then.
    fn overwritten(&self) -> Result<()> {
        Ok(())
    }

    /// The function of PyTorch's dispatcher that it does the work of, for whoever answers calls by name
    /// (`y` are the layouts of views). Without arguments those are the inputs, and what else there
    /// is to say stays with the op.
    fn asked(&self, _x: &[&Tensor], _y: &[Layout]) -> Result<Asked> {
        Ok(Asked::of_node(self.name()))
    }

    /// Of a view of one input, the derivative of the same view of many such inputs at once: `x` is one
    /// of `size` slices, which lie `step` elements apart. `None` where that is as of any layout.
    fn view_of_many(&self, _x: &Layout, _size: usize, _step: isize) -> Option<Arc<dyn Derivative>> {
        None
    }

    /// Gradients of the inputs for gradients `g` of the outputs, written with ops, so that they
    /// are a graph themselves under `create_graph`. A gradient may have the broadcast shape or
    /// the promoted type: the engine sums and casts it to the input's.
    fn vjp(&self, cx: &Vjp, g: &[Option<Tensor>]) -> Result<Grads>;

    /// Tangents of the outputs for those of the inputs, written with ops. `None` where there is no such
    /// rule: `vjp` is linear in `g`, so its own transpose, by a `vjp` of what it is written with, gives them.
    fn jvp(&self, _cx: &Jvp) -> Result<Option<Tangents>> {
        Ok(None)
    }

    /// Whether a view of this kind is one without derivatives.
    fn severs(&self) -> bool {
        false
    }
}

/// A handle to an op for whoever keeps it beyond the call.
pub trait Keep {
    fn keep(&self) -> Arc<dyn Op>;
}

impl<O: Op + Clone> Keep for O {
    fn keep(&self) -> Arc<dyn Op> {
        Arc::new(self.clone())
    }
}

/// An op with kernels: its shape rule, what computes it, and what the engine may do with it.
pub trait Op: Derivative + Keep {
    /// Checks the inputs and gives the results' shapes and types, which depend on metas alone: what
    /// depends on data (how many elements a mask takes, how long targets are) is read before the op
    /// is made and is one of its parameters.
    fn infer(&self, x: &[&Meta]) -> Result<Metas>;

    /// The memory order of the result where it is not row-major.
    fn layout(&self, _x: &[&Meta], _y: &TensorMeta) -> Option<Layout> {
        None
    }

    /// Computes `y` from `x` in host memory. Inputs may have any strides and type that `infer`
    /// accepted; outputs are contiguous unless the op is pointwise.
    fn cpu(&self, x: &[&Tensor], y: &[Tensor]) -> Result<()>;

    /// Computes on `gpu`, where `x` and `y` live (0-d inputs may be on the host); `false` where
    /// this op has no kernel for these arguments.
    fn gpu(&self, _gpu: &Gpu, _x: &[&Tensor], _y: &[Tensor]) -> Result<bool> {
        Ok(false)
    }

    /// The results, as `infer` describes them, written with other ops; what runs on the GPU where
    /// there is no kernel. `None` where nothing is gained over the host.
    fn decompose(&self, _x: &[&Tensor]) -> Result<Option<Tensors>> {
        Ok(None)
    }

    /// Whether its kernel computes whatever the elements are, so that it may run later than it was asked
    /// for; or the error that the kernel would end with. Elements are looked at where no work on them
    /// [waits](crate::storage::Storage::waits). Not of what draws random numbers.
    fn sure(&self, x: &[&Tensor]) -> Result<bool> {
        let metas: SmallVec<[&Meta; 4]> = x.iter().map(|t| t.meta()).collect();
        Ok(self.fusion().is_some_and(|f| {
            f.element_loop(&metas).is_some() || matches!(x, [x] if f.reduction(x).is_some())
        }))
    }

    /// Elements touched, as an estimate of time for releasing the host's lock.
    fn work(&self, x: &[&Meta], y: &[&Meta]) -> usize {
        largest(x, y)
    }

    /// The ways to cut its work in two, the best first: where its tensors are larger than a GPU's
    /// kernel can bind.
    fn cuts(&self, _x: &[&Meta], _y: &[&Meta]) -> Vec<Cut> {
        Vec::new()
    }

    /// The same op where every input has one dimension more in front, that of `size` slices, and so has
    /// every result; `x` are those of one slice.
    fn of_many(&self, _x: &[&Meta], _size: usize) -> Option<Arc<dyn Op>> {
        None
    }

    /// What else there is to say of it in a word or two: whether it is pointwise, draws random numbers, ..
    fn traits(&self) -> Traits {
        Traits::NONE
    }

    // What few ops can do beyond that, each as an object.

    /// The way of its small calls, where it has one.
    fn fast(&self) -> Option<&dyn Fast> {
        None
    }

    /// How it can be one kernel with its neighbours.
    fn fusion(&self) -> Option<&dyn Fusion> {
        None
    }

    /// What it knows of tensors larger than a kernel can bind, beyond its cuts.
    fn large(&self) -> Option<&dyn Large> {
        None
    }

    /// Rules of `vmap` beyond [`Op::of_many`].
    fn batching(&self) -> Option<&dyn Batching> {
        None
    }

    /// What is another thing in each call that replays what it dispatched to a GPU.
    fn replay(&self) -> Option<&dyn Replay> {
        None
    }
}

/// The most elements of any.
fn largest(x: &[&Meta], y: &[&Meta]) -> usize {
    x.iter().chain(y).map(|t| t.numel()).max().unwrap_or(0)
}

/// Whether all numbers of an int64 tensor are in a range, as far as the host knows: not where work on them
/// waits. Kernels of a GPU note themselves which are not.
pub fn lie_in(t: &Tensor, range: Range<usize>) -> bool {
    all_are(t, |i| usize::try_from(i).is_ok_and(|i| range.contains(&i)))
}

/// Whether all numbers of an int64 tensor are such, as [`lie_in`] tells.
#[inline(never)]
pub fn all_are(t: &Tensor, such: impl Fn(i64) -> bool) -> bool {
    if t.device().is_gpu() {
        return true;
    }
    let known = t.dtype() == DType::I64 && t.is_contiguous() && !t.storage().waits();
    known && Indices::of(t).iter().all(such)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dtype::Scalar;
    use crate::ops::pointwise::ternary::LerpNumber;
    use crate::ops::pointwise::Pw;
    use crate::ops::shape::create::Fill;
    use std::hash::{BuildHasher, BuildHasherDefault, DefaultHasher};

    fn hash(op: &dyn Op) -> u64 {
        BuildHasherDefault::<DefaultHasher>::default().hash_one(op)
    }

    fn fill(value: Scalar) -> Fill {
        Fill {
            value,
            name: "full",
        }
    }

    #[test]
    fn ops_are_equal_where_they_compute_the_same_bits() {
        let numbers = [0.0, -0.0, 1.0, f64::NAN, f64::INFINITY];
        let mut ops: Vec<Box<dyn Op>> = Vec::new();
        for w in numbers {
            ops.push(Box::new(Pw::<_, 2>(LerpNumber { w })));
            ops.push(Box::new(fill(Scalar::Float(w))));
        }
        ops.push(Box::new(fill(Scalar::Int(0))));
        ops.push(Box::new(fill(Scalar::Bool(false))));
        for (i, a) in ops.iter().enumerate() {
            for (j, b) in ops.iter().enumerate() {
                assert_eq!(**a == **b, i == j, "{a:?} and {b:?}");
                assert_eq!(hash(&**a) == hash(&**b), i == j, "{a:?} and {b:?}");
            }
        }
    }

    #[test]
    fn equal_ops_made_apart_are_equal() {
        let make = || Pw::<_, 2>(LerpNumber { w: f64::NAN });
        let (a, b): (&dyn Op, &dyn Op) = (&make(), &make());
        assert!(a == b && hash(a) == hash(b));
    }
}
