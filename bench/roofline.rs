//! Prints what this machine can do at most: `threads bytes_per_second flops_per_second`.
//!
//! Bytes: the better of reading 256 MB and copying 128 MB past the caches. Operations: float32
//! multiply-adds in registers, at the widest vectors there are (one of them counts as two).

use std::hint::black_box;
use std::time::Instant;

/// Runs `f` on `threads` threads at once and returns the least seconds of several tries.
fn fastest(threads: usize, f: impl Fn(usize) + Sync) -> f64 {
    (0..7).fold(f64::INFINITY, |best, _| {
        let start = Instant::now();
        std::thread::scope(|s| {
            for i in 1..threads {
                let f = &f;
                s.spawn(move || f(i));
            }
            f(0);
        });
        best.min(start.elapsed().as_secs_f64())
    })
}

const STEPS: usize = 20_000_000;
/// Enough chains to cover the latency of two units; few enough for the registers.
const CHAINS: usize = 12;

macro_rules! multiply_adds {
    ($name:ident, $features:literal, $lanes:literal, $set:ident, $add:ident) => {
        #[cfg(target_arch = "x86_64")]
        #[target_feature(enable = $features)]
        fn $name() -> usize {
            use std::arch::x86_64::{$add, $set};
            let mut chains = [black_box($set(1.0)); CHAINS];
            let (a, b) = (black_box($set(0.999)), black_box($set(0.001)));
            for _ in 0..STEPS {
                for chain in &mut chains {
                    *chain = $add(*chain, a, b);
                }
            }
            black_box(chains);
            2 * CHAINS * $lanes * STEPS
        }
    };
}
multiply_adds!(wide, "avx512f", 16, _mm512_set1_ps, _mm512_fmadd_ps);
multiply_adds!(middle, "avx2,fma", 8, _mm256_set1_ps, _mm256_fmadd_ps);

#[cfg(not(target_arch = "x86_64"))]
fn narrow() -> usize {
    let mut chains = black_box([[1.0f32; 4]; CHAINS]);
    let (a, b) = black_box((0.999f32, 0.001f32));
    for _ in 0..STEPS {
        for x in chains.as_flattened_mut() {
            *x = x.mul_add(a, b);
        }
    }
    black_box(chains);
    2 * CHAINS * 4 * STEPS
}

fn compute() -> usize {
    // SAFETY: called where the features are present.
    #[cfg(target_arch = "x86_64")]
    unsafe {
        if is_x86_feature_detected!("avx512f") {
            wide()
        } else {
            middle()
        }
    }
    #[cfg(not(target_arch = "x86_64"))]
    narrow()
}

fn main() {
    let threads: usize = std::env::args()
        .nth(1)
        .map_or(1, |a| a.parse().expect("threads"));
    let words = (128 << 20) / 8;
    let source: Vec<u64> = (0..2 * words as u64).collect();
    let share = 2 * words / threads;
    let read = fastest(threads, |i| {
        let mut sums = [0u64; 8];
        for eight in source[i * share..(i + 1) * share].chunks_exact(8) {
            for (s, x) in sums.iter_mut().zip(eight) {
                *s = s.wrapping_add(*x);
            }
        }
        black_box(sums);
    });
    let mut target = vec![1u64; words];
    let base = target.as_mut_ptr() as usize;
    let copy = fastest(threads, |i| {
        let n = words / threads;
        // SAFETY: each thread has its own part of `target`. A copy this long bypasses the caches.
        unsafe {
            let to = (base as *mut u64).add(i * n);
            std::ptr::copy_nonoverlapping(source.as_ptr().add(i * n), to, n);
        }
    });
    black_box(&target);
    let flops = fastest(threads, |_| {
        black_box(compute());
    });
    let done = (compute() * threads) as f64;
    let moved = (16 * words) as f64;
    println!(
        "{threads} {:.4e} {:.4e}",
        moved / read.min(copy),
        done / flops
    );
}
