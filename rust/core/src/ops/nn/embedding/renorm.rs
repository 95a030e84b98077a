//! Rows made shorter in place.

use super::check_numbers;
use super::rows::in_range;
use crate::cpu::elements::Element;
use crate::cpu::indices::Indices;
use crate::device::Device;
use crate::dispatch;
use crate::dtype::{Bitwise, DType};
use crate::ensure;
use crate::error::Result;
use crate::op::{Metas, TensorMeta};
use crate::shape::Show;
use crate::tensor::Tensor;

/// Shortens the rows in `at` that are longer than `max_norm`, in place.
pub(super) fn renorm(table: &Tensor, at: &Tensor, max_norm: f64, p: f64) -> Result<()> {
    check_numbers(at, "embedding_renorm_")?;
    ensure!(
        table.ndim() == 2,
        Runtime,
        "embedding_renorm_: expected a table of 2 dimensions, but got {}",
        Show(table.shape())
    );
    table.check_inplace(false)?;
    let given = (Bitwise(max_norm), Bitwise(p));
    let name = "EmbeddingRenormBackward0";
    let same = |_: &_| Ok(Metas::from_elem(TensorMeta::of(table), 1));
    let from = [&table.detach(), at];
    let renewed = dispatch::function_of(name, given, &from, same, |&(most, p), x| {
        shortened(x[0], x[1], *most, *p)
    })?;
    crate::autograd::mode::with_grad(false, || table.copy_from(&renewed))
}

fn shortened(table: &Tensor, at: &Tensor, max_norm: f64, p: f64) -> Result<Tensor> {
    let at = at.prepared(DType::I64)?;
    let mut rows = Indices::of(&at).own();
    in_range(rows.iter().copied(), table.size(0))?;
    rows.sort_unstable();
    rows.dedup();
    let copy = Tensor::empty(table.shape(), table.dtype(), Device::Cpu)?;
    copy.write_from(table)?;
    let width = table.size(1);
    crate::with_element!(copy.dtype(), T => {
        // SAFETY: a contiguous tensor of type T of this call's own.
        let values = unsafe { copy.slice_mut::<T>() };
        for &i in &rows {
            let row = &mut values[i as usize * width..][..width];
            let sizes = row.iter().map(|v| Element::to_f64(*v).abs());
            let norm = if p == f64::INFINITY {
                sizes.fold(0.0, f64::max)
            } else {
                sizes.map(|v| v.powf(p)).sum::<f64>().powf(1.0 / p)
            };
            if norm > max_norm {
                let k = max_norm / (norm + 1e-7);
                row.iter_mut().for_each(|v| *v = <T as Element>::of_f64(Element::to_f64(*v) * k));
            }
        }
    });
    Ok(copy)
}
