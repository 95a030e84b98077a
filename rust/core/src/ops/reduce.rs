//! Reductions over dimensions.

use crate::autograd::Vjp;
use crate::cpu::elements::Element;
use crate::cpu::pointwise::View;
use crate::cpu::pool::parallel_for;
use crate::dispatch;
use crate::dtype::DType;
use crate::error::Result;
use crate::layout::Layout;
use crate::op::{Derivative, Grads, Metas, Op, TensorMeta};
use crate::shape::Dims;
use crate::tensor::Tensor;
use crate::with_compute;
use smallvec::SmallVec;

/// The sum over the dimensions in `mask`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Sum {
    pub mask: SmallVec<[bool; 5]>,
    pub keepdim: bool,
    pub dtype: DType,
    pub name: &'static str,
}

/// The shape after reducing the dimensions in `mask`.
pub fn reduced_shape(shape: &[usize], mask: &[bool], keepdim: bool) -> Dims {
    let mut out = Dims::new();
    for (&n, &r) in shape.iter().zip(mask) {
        if !r {
            out.push(n);
        } else if keepdim {
            out.push(1);
        }
    }
    out
}

/// Puts dimensions of size one where `mask` says they were reduced, and expands to `shape`.
pub fn spread(g: &Tensor, shape: &[usize], mask: &[bool], keepdim: bool) -> Result<Tensor> {
    let kept = reduced_shape(shape, mask, true);
    let g = if keepdim {
        g.clone()
    } else {
        g.reshape_to(&kept)?
    };
    g.expand_to(shape)
}

impl Derivative for Sum {
    fn name(&self) -> &'static str {
        self.name
    }
    fn vjp(&self, cx: &Vjp, g: &[Option<Tensor>]) -> Result<Grads> {
        let Some(g) = &g[0] else {
            return Ok(Grads::new());
        };
        let g = spread(g, &cx.input_meta(0)?.shape, &self.mask, self.keepdim)?;
        Ok(SmallVec::from_elem(Some(g), 1))
    }
}

impl Op for Sum {
    fn infer(&self, x: &[&Tensor]) -> Result<Metas> {
        let shape = reduced_shape(x[0].shape(), &self.mask, self.keepdim);
        let meta = TensorMeta {
            shape,
            dtype: self.dtype,
            device: x[0].device(),
        };
        Ok(SmallVec::from_elem(meta, 1))
    }

    fn cpu(&self, x: &[&Tensor], y: &[Tensor]) -> Result<()> {
        let (x, y) = (x[0], &y[0]);
        let kept: SmallVec<[usize; 5]> = (0..x.ndim()).filter(|&d| !self.mask[d]).collect();
        let over: SmallVec<[usize; 5]> = (0..x.ndim()).filter(|&d| self.mask[d]).collect();
        let order: SmallVec<[usize; 5]> = kept.iter().chain(&over).copied().collect();
        let (outer, inner) = (
            y.numel(),
            over.iter().map(|&d| x.size(d)).product::<usize>(),
        );
        let view = View::new(x, x.layout(), &order);
        let to = y.bytes_ptr() as usize;
        let size = y.dtype().size();
        with_compute!(y.dtype(), T => {
            parallel_for(outer, (1 << 15) / inner.max(1) + 1, |range| {
                const BLOCK: usize = 1024;
                let mut buffer = [T::default(); BLOCK];
                for i in range {
                    let mut partial = Vec::new();
                    let mut at = 0;
                    while at < inner {
                        let n = BLOCK.min(inner - at);
                        // SAFETY: the block lies within the view.
                        unsafe { view.load(i * inner + at, n, buffer.as_mut_ptr()) };
                        partial.push(block_sum(&buffer[..n]));
                        at += n;
                    }
                    while partial.len() > 1 {
                        let half = partial.len().div_ceil(2);
                        for j in half..partial.len() {
                            partial[j - half] = add(partial[j - half], partial[j]);
                        }
                        partial.truncate(half);
                    }
                    let total = partial.first().copied().unwrap_or_default();
                    // SAFETY: element `i` of the contiguous output belongs to this range.
                    unsafe {
                        crate::cpu::elements::store(
                            y.dtype(), (to + i * size) as *mut u8, 0, 1, &total);
                    }
                }
            });
        });
        Ok(())
    }
}

/// Addition that wraps for integers.
pub trait Accumulate: Element {
    fn plus(self, o: Self) -> Self;
}
impl Accumulate for f32 {
    #[inline(always)]
    fn plus(self, o: Self) -> Self {
        self + o
    }
}
impl Accumulate for f64 {
    #[inline(always)]
    fn plus(self, o: Self) -> Self {
        self + o
    }
}
impl Accumulate for i64 {
    #[inline(always)]
    fn plus(self, o: Self) -> Self {
        self.wrapping_add(o)
    }
}

fn add<T: Accumulate>(a: T, b: T) -> T {
    a.plus(b)
}

/// Sixteen running sums, then their tree: short dependency chains and small error.
fn block_sum<T: Accumulate + Default>(x: &[T]) -> T {
    let mut lanes = [T::default(); 16];
    let chunks = x.chunks_exact(16);
    for (i, &v) in chunks.remainder().iter().enumerate() {
        lanes[i] = v;
    }
    for c in chunks {
        for (l, &v) in lanes.iter_mut().zip(c) {
            *l = l.plus(v);
        }
    }
    let mut n = 16;
    while n > 1 {
        n /= 2;
        for i in 0..n {
            lanes[i] = lanes[i].plus(lanes[i + n]);
        }
    }
    lanes[0]
}

impl Tensor {
    /// `sum` over the dimensions in `mask`.
    pub fn sum_mask(&self, mask: &[bool], keepdim: bool, dtype: Option<DType>) -> Result<Tensor> {
        let dtype = dtype.unwrap_or(if self.dtype().is_integral() {
            DType::I64
        } else {
            self.dtype()
        });
        let all = mask.iter().all(|&m| m) && !keepdim;
        let name = if all { "SumBackward0" } else { "SumBackward1" };
        dispatch::call1(
            Sum {
                mask: mask.into(),
                keepdim,
                dtype,
                name,
            },
            &[self],
        )
    }

    /// Sums broadcast dimensions away (`sum_to_size`).
    pub fn sum_to(&self, shape: &[usize]) -> Result<Tensor> {
        if self.shape()[..] == *shape {
            return Ok(self.clone());
        }
        let lead = self.ndim() - shape.len();
        let mask: SmallVec<[bool; 5]> = (0..self.ndim())
            .map(|d| d < lead || (shape[d - lead] == 1 && self.size(d) != 1))
            .collect();
        let y = self.sum_mask(&mask, true, Some(self.dtype()))?;
        if lead == 0 {
            Ok(y)
        } else {
            y.reshape_to(shape)
        }
    }
}

/// A contiguous layout with the dimensions in `mask` last; for kernels that work along rows.
pub fn rows_last(layout: &Layout, mask: &[bool]) -> SmallVec<[i64; 5]> {
    let n = layout.ndim() as i64;
    (0..n)
        .filter(|&d| !mask[d as usize])
        .chain((0..n).filter(|&d| mask[d as usize]))
        .collect()
}

crate::entries! {
    /// Sums all elements, or those along `dim`.
    "sum(Tensor self, *, ScalarType? dtype=None) -> Tensor", FN | METHOD,
    |a| Ok(a.tensor(0)?.sum_mask(&vec![true; a.tensor(0)?.ndim()], false, a.dtype(1))?.into());
    "sum(Tensor self, int[1]? dim, bool keepdim=False, *, ScalarType? dtype=None) -> Tensor",
    FN | METHOD | OUT,
    |a| {
        let x = a.tensor(0)?;
        let mask = crate::shape::reduced(a.opt_ints(1), x.ndim())?;
        Ok(x.sum_mask(&mask, a.bool(2)?, a.dtype(3))?.into())
    };
}
