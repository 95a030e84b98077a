//! Reading and writing by index.

use crate::error::Result;
use crate::layout::Layout;
use crate::tensor::Tensor;

/// The adjoint of viewing a tensor of layout `base` through `view` (both over one storage): sums
/// `g` of the view's shape into a tensor of the base's shape.
pub fn strided_adjoint(g: &Tensor, view: &Layout, base: &Layout) -> Result<Tensor> {
    let start = base.offset.min(view.offset);
    let extent = base.extent()?.max(view.extent()?) - start;
    let whole = Tensor::zeros(&[extent], g.dtype(), g.device())?;
    let shifted = |l: &Layout| Layout {
        offset: l.offset - start,
        ..l.clone()
    };
    let region = whole.as_strided_view(shifted(view))?;
    if view.overlaps_itself() {
        crate::bail!(
            NotImplemented,
            "as_strided: gradient of an overlapping view"
        );
    }
    region.copy_from(g)?;
    whole.as_strided_view(shifted(base))
}

crate::entries! {}
