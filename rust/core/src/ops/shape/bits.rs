//! The same bits read as another type.

use crate::arg;
use crate::dtype::DType;
use crate::ensure;
use crate::error::Result;
use crate::tensor::{Creation, Tensor};

impl Tensor {
    /// `view(dtype)`: the same memory read as another type; no gradient passes.
    pub fn view_bits(&self, dtype: DType) -> Result<Tensor> {
        let (old, new) = (self.dtype().size(), dtype.size());
        let mut layout = self.layout().clone();
        let what = format!(
            "to view {} as {} (different element sizes)",
            self.dtype().scalar_name(),
            dtype.scalar_name()
        );
        if old != new {
            ensure!(self.ndim() > 0, Runtime, "self.dim() cannot be 0 {what}");
            let last = self.ndim() - 1;
            ensure!(
                self.stride(last) == 1 || self.size(last) == 0,
                Runtime,
                "self.stride(-1) must be 1 {what}, but got {}",
                self.stride(last)
            );
            let (up, down) = (old.max(new) / new, old.max(new) / old);
            ensure!(
                self.size(last).is_multiple_of(down),
                Runtime,
                "self.size(-1) must be divisible by {down} {what}, but got {}",
                self.size(last)
            );
            ensure!(
                self.offset().is_multiple_of(down),
                Runtime,
                "self.storage_offset() must be divisible by {down} {what}, but got {}",
                self.offset()
            );
            layout.shape[last] = self.size(last) * up / down;
            layout.offset = self.offset() * up / down;
            for d in 0..last {
                let s = self.stride(d) as usize;
                ensure!(
                    s.is_multiple_of(down),
                    Runtime,
                    "self.stride({d}) must be divisible by {down} {what}, but got {s}"
                );
                layout.strides[d] = (s.saturating_mul(up) / down) as isize;
            }
        }
        let address = self.storage().ptr() as usize;
        ensure!(
            address.is_multiple_of(new.min(8)) || self.numel() == 0,
            Runtime,
            "view: memory lent by another library at address {address:#x} is not aligned for {}; \
             clone() the tensor first",
            dtype
        );
        Ok(self.view_as(layout, dtype, Creation::Default))
    }
}

crate::entries! {
    /// The same bytes read as another type.
    "view(Tensor self, ScalarType dtype) -> Tensor", METHOD,
    |a| {
        let x = a.tensor(arg!(self))?;
        let dtype = a.dtype(arg!(dtype)).unwrap_or(x.dtype());
        if dtype == x.dtype() {
            return Ok(x.reshape_to(x.shape())?.into());
        }
        Ok(x.view_bits(dtype)?.into())
    };
}
