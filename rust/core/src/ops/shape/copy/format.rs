//! Memory formats: whether a tensor lies in one, and results moved to where they are expected.

use crate::error::Result;
use crate::layout::{CHANNELS_LAST, CHANNELS_LAST_3D};
use crate::ops::shape::create::{dense_strides, format_strides};
use crate::schema::MemoryFormat;
use crate::shape::Strides;
use crate::tensor::Tensor;

impl Tensor {
    /// Whether the elements lie in memory as a format demands.
    pub fn is_contiguous_as(&self, format: MemoryFormat) -> bool {
        match format {
            MemoryFormat::Contiguous | MemoryFormat::Preserve => self.is_contiguous(),
            MemoryFormat::ChannelsLast => self.layout().is_packed(&CHANNELS_LAST),
            MemoryFormat::ChannelsLast3d => self.layout().is_packed(&CHANNELS_LAST_3D),
        }
    }

    /// A result in this format, strides of dimensions of one element too, at its place in the graph: moved
    /// where it lies otherwise.
    pub fn in_format(self, format: MemoryFormat) -> Result<Tensor> {
        let strides = format_strides(self.shape(), format)?;
        self.with_strides(strides)
    }

    /// The same of images or volumes in channels-last order; others as they are.
    pub fn in_channels_last(self) -> Result<Tensor> {
        match self.ndim() {
            4 => self.in_format(MemoryFormat::ChannelsLast),
            5 => self.in_format(MemoryFormat::ChannelsLast3d),
            _ => Ok(self),
        }
    }

    /// A result of the shape of `x` with the strides that `empty_like` gives for it, at its place in the graph.
    pub fn in_order_of(self, x: &Tensor) -> Result<Tensor> {
        self.with_strides(dense_strides(x.layout()))
    }

    /// A result of the shape of `x` with all its strides, also where they leave gaps; where elements of `x`
    /// share memory, as [`in_order_of`](Tensor::in_order_of) has it.
    pub fn in_places_of(self, x: &Tensor) -> Result<Tensor> {
        match x.layout().overlaps_itself() {
            true => self.in_order_of(x),
            false => self.with_strides(x.strides().clone()),
        }
    }

    /// The same with other strides, which no two elements share.
    pub fn with_strides(self, strides: Strides) -> Result<Tensor> {
        // Slices lie as what computes all of them at once has it.
        if strides == *self.strides() || self.stands() {
            return Ok(self);
        }
        let mut layout = self.layout().clone();
        layout.strides = strides;
        if layout.same_places(self.layout()) {
            return Ok(self.replaced(&self.alias(layout)));
        }
        let (dtype, device) = (self.dtype(), self.device());
        let moved = Tensor::empty_strided(self.shape(), &layout.strides, dtype, device)?;
        moved.assign(&self)?;
        Ok(self.replaced(&moved))
    }
}
