//! Memory of a GPU: what is asked for, kept and given back.

use super::{buffer, Buffer, BufferUse, Gpu, Living, MemoryStats, Window};
use crate::alloc;
use crate::device::gpu_title;
use crate::error::{function_name, Error, Kind, Result};
use crate::shape::Show;

impl Gpu {
    /// Memory of at least `bytes` (zero asks for one word), with undefined contents. Where no buffer is so
    /// large it is several.
    pub fn alloc(&self, bytes: usize) -> Result<Buffer> {
        let class = self.class(bytes as u64);
        if class > self.info.max_buffer {
            return self.alloc_segments(bytes);
        }
        if let Some(raw) = self.pool.lock().reuse(class, self.info.max_binding) {
            return Ok(Buffer::new(self, raw, bytes as u64));
        }
        let within_cap = |pool: &buffer::Pool| {
            pool.cap
                .is_none_or(|cap| pool.stats.reserved + class <= cap)
        };
        self.trim_stale();
        for last in [false, true] {
            if within_cap(&self.pool.lock()) {
                let buffer = self.create(class);
                match self.check() {
                    Ok(()) => {
                        let raw = self.pool.lock().adopt(buffer, class, self.life);
                        return Ok(Buffer::new(self, raw, bytes as u64));
                    }
                    Err(e) if e.kind != Kind::OutOfMemory => return Err(e),
                    Err(_) => {}
                }
            }
            if !last {
                self.pool.lock().stats.retries += 1;
                self.trim();
            }
        }
        self.pool.lock().stats.refused += 1;
        Err(self.no_memory(bytes, "after freeing every unused buffer"))
    }

    /// Memory that is more than one buffer.
    #[cold]
    fn alloc_segments(&self, bytes: usize) -> Result<Buffer> {
        // Software works in the host's memory, of which a driver promises more than there is.
        if self.info.software && alloc::check(bytes, 1).is_err() {
            self.pool.lock().stats.refused += 1;
            return Err(self.no_memory(bytes, "this machine has less now"));
        }
        let step = self.info.max_buffer / Window::ALIGN * Window::ALIGN;
        let mut segments = Vec::new();
        let mut left = bytes as u64;
        while left > 0 {
            let of = left.min(step);
            match self.alloc(of as usize) {
                Ok(segment) => segments.push(segment),
                Err(e) if e.kind == Kind::OutOfMemory => {
                    drop(segments);
                    let most = step as f64 / (1 << 20) as f64;
                    let why = format!("as buffers of {most:.1} MiB, the adapter's largest");
                    return Err(self.no_memory(bytes, &why));
                }
                Err(e) => return Err(e),
            }
            left -= of;
        }
        Buffer::joined(self, segments, step)
            .ok_or_else(|| Error::runtime("wgpu: a buffer has no segments".to_string()))
    }

    /// The size of a buffer for so many bytes, one that can be made and bound whole where they can.
    fn class(&self, bytes: u64) -> u64 {
        let class = buffer::size_class(bytes);
        let limits = [self.info.max_binding, self.info.max_buffer].map(|n| n / 4 * 4);
        let between = |&n: &u64| bytes <= n && n < class;
        limits.into_iter().find(between).unwrap_or(class)
    }

    fn create(&self, class: u64) -> wgpu::Buffer {
        self.device.create_buffer(&wgpu::BufferDescriptor {
            label: None,
            size: class,
            usage: wgpu::BufferUsages::STORAGE
                | wgpu::BufferUsages::COPY_SRC
                | wgpu::BufferUsages::COPY_DST,
            mapped_at_creation: false,
        })
    }

    fn no_memory(&self, bytes: usize, why: &str) -> Error {
        let pool = self.pool.lock();
        let mib = |b: u64| b as f64 / (1 << 20) as f64;
        let cap = pool
            .cap
            .map_or("none".to_string(), |c| format!("{:.1} MiB", mib(c)));
        Error::new(
            Kind::OutOfMemory,
            format!(
                "{} out of memory. Tried to allocate {:.1} MiB on {} ({why}). {:.1} MiB are in \
                 {} live buffers, {:.1} MiB taken from the driver, cap {cap}.{}",
                gpu_title(),
                mib(bytes as u64),
                self.info.name,
                mib(pool.stats.allocated),
                pool.stats.live,
                mib(pool.stats.reserved),
                listed(&pool.living(10)),
            ),
        )
    }

    /// What all live buffers are for, `n` of them one by one, the largest first.
    pub fn living(&self, n: usize) -> Living {
        self.pool.lock().living(n)
    }

    /// Gives every unused buffer back to the driver (`empty_cache`).
    pub fn trim(&self) {
        // What goes wrong there shows when its results are asked for.
        let _ = self.settle_all();
        let mut stream = self.stream.lock();
        stream.wait();
        stream.drop_bind_groups();
        drop(self.pool.lock().drain());
        drop(stream);
        let _ = self.device.poll(wgpu::PollType::wait_indefinitely());
    }

    /// Gives buffers back that nothing has used for long.
    pub(crate) fn trim_stale(&self) {
        let mut stream = self.stream.lock();
        let mut pool = self.pool.lock();
        if stream.batch >= pool.look_at {
            let old = pool.stale(stream.batch);
            drop(pool);
            stream.forget(&old);
        }
    }

    pub fn memory(&self) -> MemoryStats {
        self.pool.lock().stats
    }

    /// Lets peaks begin anew, at what is held now.
    pub fn reset_peaks(&self) {
        let stats = &mut self.pool.lock().stats;
        (stats.peak_allocated, stats.peak_reserved) = (stats.allocated, stats.reserved);
        stats.peak_live = stats.live;
    }

    /// Lets the sums that grow begin anew.
    pub fn reset_sums(&self) {
        self.pool.lock().stats.since = Default::default();
    }

    /// Limits what is taken from the driver; `None` lifts the limit.
    pub fn set_memory_cap(&self, bytes: Option<u64>) {
        self.pool.lock().cap = bytes;
    }

    /// The limit of what is taken from the driver.
    pub fn memory_cap(&self) -> Option<u64> {
        self.pool.lock().cap
    }
}

/// Lines that tell what buffers are for.
fn listed(living: &Living) -> String {
    let mib = |bytes: u64| bytes as f64 / (1 << 20) as f64;
    let line = |t: &BufferUse| {
        let op = match t.op {
            "" => String::new(),
            op => format!(" of {}", function_name(op)),
        };
        let modules = match t.modules.as_str() {
            "" => String::new(),
            path => format!(" in {path}"),
        };
        let what = match &t.tensor {
            Some((shape, dtype)) => format!("{} {dtype}", Show(shape)),
            None => "workspace".to_string(),
        };
        format!("\n  {:.1} MiB: {what}{op}{modules}", mib(t.bytes))
    };
    let mut lines: String = living.largest.iter().map(line).collect();
    for (of, what) in [
        (living.others, "others of 1 MiB and more"),
        (living.small, "smaller than 1 MiB"),
    ] {
        if of.count > 0 {
            lines += &format!("\n  {:.1} MiB: {} {what}", mib(of.bytes), of.count);
        }
    }
    match lines.is_empty() {
        true => lines,
        false => format!(" The largest tensors:{lines}"),
    }
}
