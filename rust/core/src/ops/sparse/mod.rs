//! Sparse tensors: lists of coordinates and their values, and matrices by rows or columns. What is
//! computed with them is computed with these parts, by ops on dense tensors; only the steps between
//! have derivatives of their own.

pub mod coo;
mod matrix;
pub mod packed;
mod places;

crate::ops::family! { entries gather lines forms slices arithmetic products sums }
