//! Statistics: variance, median, histograms, unique values.

crate::entries! {}
