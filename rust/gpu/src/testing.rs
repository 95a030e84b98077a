//! Helpers for tests of shaders and adapters, here and in other crates.

use super::pointwise;
use crate::{Acc, Gpu};
use parking_lot::{Mutex, MutexGuard};

/// The GPU, for one test at a time: an index out of range is reported to whoever reads next.
pub fn gpu() -> Option<(MutexGuard<'static, ()>, &'static Gpu)> {
    static TURN: Mutex<()> = Mutex::new(());
    match Gpu::at(0) {
        Ok(gpu) => Some((TURN.lock(), gpu)),
        Err(e) => {
            eprintln!("skipped: {e}");
            None
        }
    }
}

/// Numbers that look random, in [-1, 1).
pub fn noise(n: usize, seed: u32) -> Vec<f32> {
    let mut s = seed.wrapping_mul(2_654_435_761).max(1);
    (0..n)
        .map(|_| {
            s ^= s << 13;
            s ^= s >> 17;
            s ^= s << 5;
            (s >> 8) as f32 / (1 << 23) as f32 - 1.0
        })
        .collect()
}

pub fn close(got: &[f32], want: &[f64], tolerance: f64) {
    assert_eq!(got.len(), want.len());
    for (i, (&g, &w)) in got.iter().zip(want).enumerate() {
        assert!(
            (g as f64 - w).abs() <= tolerance * (1.0 + w.abs()),
            "[{i}] {g} != {w}"
        );
    }
}

/// Validates a pointwise body that reads `inputs` tensors.
pub fn valid_body(acc: Acc, body: &str, inputs: usize) {
    pointwise::POINTWISE.check_in(&[acc], [body, pointwise::VALUE[inputs]]);
}
