//! When each dispatch ran, by the GPU's own clock. While someone watches, each has a pass of its own
//! with a timestamp at both ends, which every adapter with timestamps can do.

use super::key::Map;
use smallvec::SmallVec;
use std::cell::Cell;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::LazyLock;
use std::time::Instant;

/// Dispatches of one batch that have timestamps.
const ROOM: u32 = 256;

static WATCHERS: AtomicU32 = AtomicU32::new(0);
/// Those that want each kernel by itself.
static APART: AtomicU32 = AtomicU32::new(0);
static EPOCH: LazyLock<Instant> = LazyLock::new(Instant::now);
thread_local!(static REQUEST: Cell<u64> = const { Cell::new(0) });

/// Begins to note times, until as many calls of [`unwatch`].
pub fn watch() {
    LazyLock::force(&EPOCH);
    WATCHERS.fetch_add(1, Ordering::Relaxed);
}

pub fn unwatch() {
    WATCHERS.fetch_sub(1, Ordering::Relaxed);
}

pub fn watched() -> bool {
    WATCHERS.load(Ordering::Relaxed) != 0
}

/// [`watch`]es kernels of which none waits for others until this is dropped.
pub struct Apart(());

impl Apart {
    pub fn watch() -> Apart {
        APART.fetch_add(1, Ordering::Relaxed);
        watch();
        Apart(())
    }
}

impl Drop for Apart {
    fn drop(&mut self) {
        unwatch();
        APART.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Whether someone watches who wants each kernel by itself.
pub fn apart() -> bool {
    APART.load(Ordering::Relaxed) != 0
}

/// Nanoseconds since the first watcher came.
pub fn at(time: Instant) -> f64 {
    match time.checked_duration_since(*EPOCH) {
        Some(after) => after.as_nanos() as f64,
        None => -(EPOCH.duration_since(time).as_nanos() as f64),
    }
}

/// The number of the request at hand, 0 where there is none.
pub fn request() -> u64 {
    REQUEST.get()
}

/// Runs `f` for a request of this number, which what it dispatches is noted under.
pub fn answering<R>(request: u64, f: impl FnOnce() -> R) -> R {
    struct Outer(u64);
    impl Drop for Outer {
        fn drop(&mut self) {
            REQUEST.set(self.0);
        }
    }
    let _outer = Outer(REQUEST.replace(request));
    f()
}

/// What a kernel works for: a node, and the number of the request, 0 where there is none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Client {
    pub op: &'static str,
    pub request: u64,
}

impl Client {
    /// Whose kernels are being recorded on this thread.
    pub fn here() -> Client {
        Client {
            op: super::fault::name(),
            request: REQUEST.get(),
        }
    }

    /// Runs `f`, which records what this waited with.
    pub fn at_work<R>(self, f: impl FnOnce() -> R) -> R {
        answering(self.request, || super::fault::working_now_for(self.op, f))
    }
}

/// One dispatch, or one copy, whose kernel has no name.
#[derive(Clone, Debug)]
pub struct Work {
    pub kernel: String,
    /// All that it works for, in the order in which they are computed: several where it is fused.
    pub clients: SmallVec<[Client; 1]>,
    pub groups: u64,
    /// Bytes of the buffers that it binds, each once.
    pub bytes: u64,
    /// When it was recorded, began and ended: see [`at`].
    pub recorded: f64,
    pub begin: f64,
    pub end: f64,
}

impl Work {
    pub(super) fn new(
        kernel: &str,
        clients: SmallVec<[Client; 1]>,
        groups: u64,
        bytes: u64,
    ) -> Work {
        Work {
            kernel: kernel.to_string(),
            clients,
            groups,
            bytes,
            recorded: at(Instant::now()),
            begin: 0.0,
            end: 0.0,
        }
    }
}

/// The timestamps of a stream.
pub(super) struct Clock {
    queries: wgpu::QuerySet,
    copies: bool,
    /// Nanoseconds of one tick, and where the GPU's clock stands at 0 of ours.
    tick: f64,
    zero: f64,
    open: Vec<Work>,
    awaited: Vec<(wgpu::Buffer, Vec<Work>)>,
    done: Vec<Work>,
}

impl Clock {
    /// Where the adapter has timestamps. Waits for the GPU to compare the clocks.
    pub fn new(device: &wgpu::Device, queue: &wgpu::Queue) -> Option<Clock> {
        let features = device.features();
        if !features.contains(wgpu::Features::TIMESTAMP_QUERY) {
            return None;
        }
        let queries = device.create_query_set(&wgpu::QuerySetDescriptor {
            label: None,
            ty: wgpu::QueryType::Timestamp,
            count: 2 * ROOM,
        });
        let mut clock = Clock {
            queries,
            copies: features.contains(wgpu::Features::TIMESTAMP_QUERY_INSIDE_ENCODERS),
            tick: queue.get_timestamp_period() as f64,
            zero: 0.0,
            open: vec![],
            awaited: vec![],
            done: vec![],
        };
        let mut gap = f64::INFINITY;
        for _ in 0..3 {
            let mut encoder = device.create_command_encoder(&Default::default());
            let writes = clock.begin(Work::new("", SmallVec::new(), 0, 0));
            drop(encoder.begin_compute_pass(&describe(&writes)));
            clock.resolve(device, &mut encoder);
            let before = at(Instant::now());
            queue.submit([encoder.finish()]);
            let _ = device.poll(wgpu::PollType::wait_indefinitely());
            let after = at(Instant::now());
            // Nothing else runs: the stamp lies between the two, the nearer they are the better.
            let stamp = clock.collect(device).last().map_or(0.0, |w| w.begin);
            if after - before < gap {
                gap = after - before;
                clock.zero += stamp - (before + after) / 2.0;
            }
            clock.done.clear();
        }
        Some(clock)
    }

    /// Whether there are timestamps outside passes, where copies are.
    pub fn copies(&self) -> bool {
        self.copies
    }

    pub fn is_full(&self) -> bool {
        self.open.len() as u32 >= ROOM
    }

    /// Notes what is about to be recorded: the timestamps of its pass.
    pub fn begin(&mut self, work: Work) -> Stamps {
        let first = 2 * self.open.len() as u32;
        self.open.push(work);
        Stamps {
            queries: self.queries.clone(),
            first,
        }
    }

    /// Ends a batch: its timestamps go to memory that the host can read.
    pub fn resolve(&mut self, device: &wgpu::Device, encoder: &mut wgpu::CommandEncoder) {
        if self.open.is_empty() {
            return;
        }
        let n = 2 * self.open.len() as u32;
        let buffer = |usage| {
            device.create_buffer(&wgpu::BufferDescriptor {
                label: None,
                size: 8 * n as u64,
                usage,
                mapped_at_creation: false,
            })
        };
        let inside = buffer(wgpu::BufferUsages::QUERY_RESOLVE | wgpu::BufferUsages::COPY_SRC);
        let outside = buffer(wgpu::BufferUsages::MAP_READ | wgpu::BufferUsages::COPY_DST);
        encoder.resolve_query_set(&self.queries, 0..n, &inside, 0);
        encoder.copy_buffer_to_buffer(&inside, 0, &outside, 0, 8 * n as u64);
        self.awaited.push((outside, std::mem::take(&mut self.open)));
    }

    /// Everything noted, once the GPU has done what was submitted.
    pub fn collect(&mut self, device: &wgpu::Device) -> &[Work] {
        for (buffer, mut works) in self.awaited.drain(..) {
            buffer.slice(..).map_async(wgpu::MapMode::Read, |_| {});
            let _ = device.poll(wgpu::PollType::wait_indefinitely());
            let Ok(view) = buffer.get_mapped_range(..) else {
                continue;
            };
            let stamps = view
                .chunks_exact(8)
                .map(|b| u64::from_le_bytes(b.try_into().unwrap()));
            let times: Vec<f64> = stamps.map(|s| s as f64 * self.tick - self.zero).collect();
            for (work, ends) in works.iter_mut().zip(times.chunks_exact(2)) {
                (work.begin, work.end) = (ends[0], ends[1].max(ends[0]));
            }
            self.done.append(&mut works);
        }
        &self.done
    }

    /// Forgets what was noted.
    pub fn clear(&mut self) {
        self.done.clear();
    }
}

/// The timestamps at both ends of a pass or a copy.
pub(super) struct Stamps {
    queries: wgpu::QuerySet,
    first: u32,
}

impl Stamps {
    /// Notes the time outside a pass: 0 is the begin, 1 the end.
    pub fn write(&self, encoder: &mut wgpu::CommandEncoder, end: u32) {
        encoder.write_timestamp(&self.queries, self.first + end);
    }
}

/// A pass with these timestamps.
pub(super) fn describe(stamps: &Stamps) -> wgpu::ComputePassDescriptor<'_> {
    both_ends(&stamps.queries, stamps.first)
}

/// A pass that writes two timestamps from the first on.
pub(super) fn both_ends(queries: &wgpu::QuerySet, first: u32) -> wgpu::ComputePassDescriptor<'_> {
    wgpu::ComputePassDescriptor {
        label: None,
        timestamp_writes: Some(wgpu::ComputePassTimestampWrites {
            query_set: queries,
            beginning_of_pass_write_index: Some(first),
            end_of_pass_write_index: Some(first + 1),
        }),
    }
}

/// Times of the kernels among `works`, the shortest of each.
pub fn shortest(works: &[Work]) -> Map<&str, f64> {
    let mut out = Map::default();
    for w in works {
        let least = out.entry(w.kernel.as_str()).or_insert(f64::INFINITY);
        *least = least.min(w.end - w.begin);
    }
    out
}
