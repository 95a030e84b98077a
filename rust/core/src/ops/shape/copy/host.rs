//! Copies and conversions in host memory.

use crate::cpu::elements::Bool;
use crate::cpu::pointwise::{
    self,
    chain::{Body, Loop},
};
use crate::cpu::strided_copy::strided_copy;
use crate::device::Device;
use crate::dtype::DType;
use crate::error::Result;
use crate::layout::Layout;
use crate::ops::pointwise::apply;
use crate::ops::pointwise::compare::LogicalOr;
use crate::tensor::Tensor;
use crate::{bail, typed};
use smallvec::SmallVec;
use std::sync::atomic::{AtomicBool, Ordering};

/// Copies elements, converting types; `x` broadcasts to `y`. Both in host memory.
pub fn copy_host(x: &Tensor, y: &Tensor) -> Result<()> {
    if x.dtype() == y.dtype() {
        // Same type: move bits, whatever they mean.
        let wide = x.layout().expand_to(y.shape());
        let (from, to) = (x.bytes_ptr(), y.bytes_ptr());
        // SAFETY: both layouts lie in their host memory; writers have refused layouts of `y` in
        // which elements share memory.
        unsafe { strided_copy(x.dtype().size(), from, &wide, to, y.layout()) };
        return Ok(());
    }
    match (x.dtype().is_complex(), y.dtype().is_complex()) {
        (false, false) => convert(x, y),
        (false, true) => {
            copy_host(x, &y.component(0))?;
            y.component(1).write_scalar(0.0.into())
        }
        // What has either part is true.
        (true, false) if y.dtype() == DType::Bool => {
            let parts = [0, 1].map(|which| x.component(which).to_dtype(DType::Bool));
            let [re, im] = parts;
            copy_host(&apply(LogicalOr, [&re?, &im?])?, y)
        }
        (true, false) => copy_host(&x.component(0), y),
        (true, true) => {
            copy_host(&x.component(0), &y.component(0))?;
            copy_host(&x.component(1), &y.component(1))
        }
    }
}

/// Says once that imaginary parts are dropped.
pub(super) fn warn_of_parts_lost(from: DType, to: DType) {
    static WARNED: AtomicBool = AtomicBool::new(false);
    let lost = from.is_complex() && !to.is_complex() && to != DType::Bool;
    if lost && !WARNED.swap(true, Ordering::Relaxed) {
        crate::host::warn("Casting complex values to real discards the imaginary part");
    }
}

/// The type by way of which elements of `a` become those of `b`.
fn via(a: DType, b: DType) -> DType {
    // One rounding: integers stay exact until they become the target's kind of number.
    match (a.is_integral(), b.is_integral()) {
        // The low bits, or whether there are any.
        (true, true) => b.signed(),
        // float16 has instructions to and from float32 alone.
        _ if [a, b].iter().any(|&t| t.is_float8() || t == DType::F16) => DType::F32,
        _ if a == DType::F64 || b == DType::F64 => DType::F64,
        _ => DType::F32,
    }
}

/// What converts each element of operand `i`.
pub(super) fn each(i: usize, a: DType, b: DType) -> Option<Loop> {
    (!a.is_complex() && !b.is_complex()).then(|| Loop {
        compute: via(a, b),
        body: Body::Operand(i),
        numbers: [None; pointwise::MAX_INPUTS],
        grain: pointwise::GRAIN,
    })
}

fn convert(x: &Tensor, y: &Tensor) -> Result<()> {
    let (a, b) = (x.dtype(), y.dtype());
    let via = via(a, b);
    typed!(
        via,
        T => {
            // SAFETY: both tensors lie in host memory; writers have refused layouts of `y` in which
            // elements share memory.
            unsafe { pointwise::convert::<T>(x, y) };
        },
        [F32 => f32, F64 => f64, I64 => i64, I32 => i32, I16 => i16, I8 => i8, U8 => u8, Bool => Bool],
        _ => bail!(
            NoKernel,
            "no conversion from {} to {}",
            a.scalar_name(),
            b.scalar_name()
        )
    );
    Ok(())
}

impl Tensor {
    /// Writes those elements of `x` (of the same shape and type) that differ, one after the other,
    /// so that several may share memory: on the host, to which memory of a GPU goes and comes back.
    pub fn write_changes(&self, x: &Tensor) -> Result<()> {
        if self.device() == Device::Meta {
            return Ok(());
        }
        if self.device().is_gpu() {
            let (low, high) = self.layout().reach();
            let mut line = Layout::contiguous(&[high - low]);
            line.offset = low;
            let line = self.alias(line);
            let own = line.to_host()?;
            let mut layout = self.layout().clone();
            layout.offset -= low;
            own.alias(layout).write_changes(&x.to_host()?)?;
            return line.write_from(&own);
        }
        let (before, x) = (self.detach().copy_dense()?, x.contiguous()?);
        let (size, layout) = (self.dtype().size(), self.layout());
        let (new, old) = (x.bytes_ptr(), before.bytes_ptr());
        let mut at: SmallVec<[usize; 5]> = SmallVec::from_elem(0, layout.ndim());
        for i in 0..x.numel() {
            let steps = at
                .iter()
                .zip(&layout.strides)
                .map(|(&k, &s)| k as isize * s);
            let to = steps.sum::<isize>() * size as isize;
            // SAFETY: `i` counts the elements of two contiguous tensors of this type, and `at` is
            // the same element's place in this one.
            unsafe {
                let (new, old) = (new.add(i * size), old.add(i * size));
                let slice = |p: *mut u8| std::slice::from_raw_parts(p, size);
                if slice(new) != slice(old) {
                    let to = self.bytes_ptr().offset(to);
                    std::ptr::copy_nonoverlapping(new, to, size);
                }
            }
            for d in (0..at.len()).rev() {
                at[d] += 1;
                if at[d] < layout.shape[d] {
                    break;
                }
                at[d] = 0;
            }
        }
        Ok(())
    }
}
