//! What the card can do at most, measured: bytes moved and float operations, in a second.

use super::{clock, params, shader, Acc, Buffer, Gpu};
use crate::error::Result;

params! {
    struct Block {
        n: u32,
        trips: u32,
    }
}
shader! { static PEAK: Block = "peak.wgsl", Acc::FLOAT }

/// Float operations of an invocation in each turn: eight chains of four lanes, a product and a sum.
const OPERATIONS: f64 = 64.0;
/// Turns, far below the loop iterations after which software Vulkan ends an invocation.
const TRIPS: u32 = 512;
/// How often each is measured; the first times warm the card up.
const TIMES: usize = 8;

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
        let measured = self.measure(&x, &y, size / 16, threads);
        drop(apart);
        let times = measured?;
        let seconds = |entry| {
            let name = format!("peak.wgsl:{entry}");
            let found = clock::shortest(&times).get(name.as_str()).copied();
            found.filter(|&ns| ns > 0.0).map(|ns| ns * 1e-9)
        };
        Ok(seconds("copy")
            .zip(seconds("multiply"))
            .map(|(copy, multiply)| Peaks {
                bytes: 2.0 * size as f64 / copy,
                operations: threads as f64 * TRIPS as f64 * OPERATIONS / multiply,
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
                let launch = PEAK.launch(Acc::F32).entry(entry);
                launch
                    .writes_words(y)
                    .reads_words(x)
                    .threads(self, &block, n)?;
            }
        }
        self.works()
    }
}
