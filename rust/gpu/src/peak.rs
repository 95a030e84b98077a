//! Measures the peak of a card: bytes moved and float operations in a second.

use super::{clock, params, shader, Acc, Buffer, Gpu};
use crate::error::Result;
use std::time::{Duration, Instant};

params! {
    struct Block {
        n: u32,
        trips: u32,
    }
}
shader! { static PEAK: Block = "peak.wgsl", Acc::FLOAT }

/// Float operations of an invocation in each turn: eight chains of four lanes, a product and a sum.
const OPERATIONS: f64 = 64.0;
/// Turns that are written out, so that what counts them takes no time, and how often these are made:
/// far below the loop iterations after which software Vulkan ends an invocation.
const TURNS: u32 = 4;
const TRIPS: u32 = 128;
/// How often each is measured, and for how long this is done again on a card, which runs at a fraction of its
/// clock until it was busy for a while.
const TIMES: usize = 8;
const WARM: Duration = Duration::from_millis(400);

/// Bytes in a second that a copy reads and writes, and float32 operations in a second; nothing
/// where the adapter has no timestamps.
#[derive(Clone, Copy, Debug)]
pub struct Peaks {
    pub bytes: f64,
    pub operations: f64,
}

impl Gpu {
    pub fn peaks(&self) -> Result<Option<Peaks>> {
        let info = self.info();
        // Much more than the last cache, and enough invocations for any card.
        let (size, threads) = match info.software {
            true => (32 << 20, 1 << 12),
            false => (512 << 20, 1 << 21),
        };
        let size = (size as u64).min(info.max_binding).min(info.max_buffer / 2) as usize;
        let (x, y) = (self.alloc(size)?, self.alloc(size)?);
        self.fill_zero(&x)?;
        self.synchronize()?;
        let apart = clock::Apart::watch();
        let begin = Instant::now();
        let mut times = self.measure(&x, &y, size / 16, threads)?;
        while !info.software && begin.elapsed() < WARM {
            times.extend(self.measure(&x, &y, size / 16, threads)?);
        }
        drop(apart);
        let seconds = |entry| {
            let name = format!("peak.wgsl:{entry}");
            let found = clock::shortest(&times).get(name.as_str()).copied();
            found.filter(|&ns| ns > 0.0).map(|ns| ns * 1e-9)
        };
        Ok(seconds("copy")
            .zip(seconds("multiply"))
            .map(|(copy, multiply)| Peaks {
                bytes: 2.0 * size as f64 / copy,
                operations: threads as f64 * (TRIPS * TURNS) as f64 * OPERATIONS / multiply,
            }))
    }

    fn measure(
        &self,
        x: &Buffer,
        y: &Buffer,
        n: usize,
        threads: usize,
    ) -> Result<Vec<clock::Work>> {
        for (entry, n) in [("copy", n), ("multiply", threads)] {
            for _ in 0..TIMES {
                let block = Block {
                    n: n as u32,
                    trips: TRIPS,
                };
                let launch = PEAK.launch(Acc::F32).entry(entry).set("TURNS", TURNS);
                launch
                    .writes_words(y)
                    .reads_words(x)
                    .threads(self, &block, n)?;
            }
        }
        self.works()
    }
}
