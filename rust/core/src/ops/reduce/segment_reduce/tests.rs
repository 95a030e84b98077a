//! The shader's results are those of the host.

use super::*;
use crate::gpu::testing::{close, gpu, noise};
use crate::transfer::tests::{fresh, get, put};

const ALL: [Combine; 5] = [
    Combine::Sum,
    Combine::Mean,
    Combine::Max,
    Combine::Min,
    Combine::Prod,
];

/// Segments of every kind: long, empty at each end and in between, with elements in none.
fn segments(outer: usize, length: i64) -> (Vec<i64>, usize) {
    let row = [0, 0, 1, length / 2, length / 2, length - 1, length - 1];
    (row.repeat(outer), row.len())
}

#[test]
fn segments_on_the_gpu_match_the_host() {
    let Some((_turn, gpu)) = gpu() else { return };
    for (outer, length, inner) in [(1, 9, 1), (3, 700, 1), (2, 40, 5), (1, 65, 40)] {
        let shape = [outer, length, inner];
        let (bounds, ends) = segments(outer, length as i64);
        let host_bounds = Tensor::from_slice(&bounds, &[outer, ends], DType::I64).unwrap();
        let there = put(&[outer, ends], DType::I64, &bounds);
        let values = noise(outer * length * inner, 3);
        let x = Tensor::from_slice(&values, &shape, DType::F32).unwrap();
        for combine in ALL {
            for initial in [None, Some(Scalar::Float(0.25))] {
                let op = SegmentReduce { combine, initial };
                let small = [outer, ends - 1, inner];
                let want = Tensor::empty(&small, DType::F32, Device::Cpu).unwrap();
                cpu::reduce(&op, &x, &host_bounds, &want).unwrap();
                let y = fresh(&small, DType::F32);
                let from = x.to_device(y.device()).unwrap();
                gpu::reduce(gpu, &op, &from, &there, &y).unwrap();
                same(&get(&y), &want);
                let op = SegmentSpread {
                    length,
                    mean: combine == Combine::Mean,
                };
                let back = Tensor::empty(&shape, DType::F32, Device::Cpu).unwrap();
                cpu::spread(&op, &want, &host_bounds, &back).unwrap();
                let d = fresh(&shape, DType::F32);
                gpu::spread(gpu, &op, &y, &there, &d).unwrap();
                same(&get(&d), &back);
            }
        }
    }
}

/// Equal but for rounding; infinities and NaN are where they should be.
fn same(got: &[f32], want: &Tensor) {
    // SAFETY: contiguous host memory of this type.
    let want = unsafe { want.slice::<f32>() };
    let number = |v: f32| if v.is_finite() { v } else { 0.0 };
    let kind = |v: &f32| (v.is_nan(), *v == f32::INFINITY, *v == f32::NEG_INFINITY);
    assert!(got.iter().map(kind).eq(want.iter().map(kind)));
    let got: Vec<f32> = got.iter().map(|&v| number(v)).collect();
    let want: Vec<f64> = want.iter().map(|&v| number(v).into()).collect();
    close(&got, &want, 1e-5);
}
