//! Resampling: `interpolate`, `grid_sample`.

crate::entries! {}
