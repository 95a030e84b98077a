//! Sparse tensors: lists of coordinates and their values. What is computed with them is computed with
//! these two, by ops on dense tensors; only the two steps between have derivatives of their own.

pub mod coo;
mod matrix;
mod places;

crate::ops::family! { entries arithmetic products sums }
