//! Tensors from nothing, copies, views, and tensors put together or apart.

pub mod bits;
pub mod many;

crate::ops::family! {
    copy create join range view;
    join::rearrange::ENTRIES, view::complex::ENTRIES, view::copies::ENTRIES, bits::ENTRIES
}
