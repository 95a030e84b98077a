//! Events in the stream: whether the GPU has come so far, and when it did by its own clock.

use super::{adapter, clock, Gpu};
use crate::error::{Error, Result};
use crate::{bail, ensure};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::Arc;

/// Nanoseconds of a millisecond.
const MILLI: f64 = 1e6;

/// A place in the stream, behind all that was asked for before it.
pub struct Event {
    index: u8,
    /// The number of the device, of all that were opened.
    life: u32,
    submission: wgpu::SubmissionIndex,
    passed: Arc<AtomicBool>,
    /// Where the time is once it has passed; none where it was not asked for.
    stamp: Option<wgpu::Buffer>,
}

impl Gpu {
    /// Submits what is recorded, and records an event where the stream ends now. Where it is
    /// `timed` it has a time, which needs an adapter with timestamps.
    pub fn record_event(&self, timed: bool) -> Result<Event> {
        self.invalidate_recording();
        self.flush()?;
        let stamped = timed.then(|| self.stamped()).transpose()?;
        let (commands, stamp) = stamped.unzip();
        let submission = self.queue.submit(commands);
        let passed = Arc::new(AtomicBool::new(false));
        let told = passed.clone();
        self.queue
            .on_submitted_work_done(move || told.store(true, Ordering::Release));
        self.check()?;
        Ok(Event {
            index: self.index,
            life: self.life,
            submission,
            passed,
            stamp,
        })
    }

    /// Commands that note the time, and where they put it.
    fn stamped(&self) -> Result<(wgpu::CommandBuffer, wgpu::Buffer)> {
        ensure!(
            self.info.features.contains(wgpu::Features::TIMESTAMP_QUERY),
            Runtime,
            "Event.record: {} has no timestamps, so an event cannot be timed; make it with \
             enable_timing=False, and measure with time.perf_counter() around \
             torch.accelerator.synchronize()",
            self.info.name
        );
        let queries = self.device.create_query_set(&wgpu::QuerySetDescriptor {
            label: None,
            ty: wgpu::QueryType::Timestamp,
            count: 2,
        });
        let buffer = |usage| {
            self.device.create_buffer(&wgpu::BufferDescriptor {
                label: None,
                size: 16,
                usage,
                mapped_at_creation: false,
            })
        };
        let inside = buffer(wgpu::BufferUsages::QUERY_RESOLVE | wgpu::BufferUsages::COPY_SRC);
        let outside = buffer(wgpu::BufferUsages::MAP_READ | wgpu::BufferUsages::COPY_DST);
        let mut encoder = self.device.create_command_encoder(&Default::default());
        // Every adapter with timestamps has them at the ends of a pass.
        let pass = encoder.begin_compute_pass(&clock::both_ends(&queries, 0));
        drop(pass);
        encoder.resolve_query_set(&queries, 0..2, &inside, 0);
        encoder.copy_buffer_to_buffer(&inside, 0, &outside, 0, 16);
        Ok((encoder.finish(), outside))
    }
}

impl Event {
    /// The GPU's number.
    pub fn index(&self) -> u8 {
        self.index
    }

    fn gpu(&self) -> Result<&'static Gpu> {
        let gpu = Gpu::at(self.index)?;
        match gpu.life == self.life {
            true => Ok(gpu),
            false => Err(adapter::loss("the event was recorded before that")),
        }
    }

    /// Whether the GPU has come so far.
    pub fn has_passed(&self) -> Result<bool> {
        let gpu = self.gpu()?;
        if !self.passed.load(Ordering::Acquire) {
            // An error here is a lost device, which its callback reports.
            let _ = gpu.device.poll(wgpu::PollType::Poll);
            gpu.check()?;
        }
        Ok(self.passed.load(Ordering::Acquire))
    }

    /// Waits until the GPU has come so far.
    pub fn wait(&self) -> Result<()> {
        let gpu = self.gpu()?;
        if !self.passed.load(Ordering::Acquire) {
            gpu.stream.lock().stats.waits += 1;
            let _ = gpu.device.poll(wgpu::PollType::Wait {
                submission_index: Some(self.submission.clone()),
                timeout: None,
            });
            gpu.check()?;
            self.passed.store(true, Ordering::Release);
        }
        Ok(())
    }

    /// When the GPU came so far, in ticks of its clock.
    fn ticks(&self) -> Result<u64> {
        let Some(stamp) = &self.stamp else {
            bail!(
                Runtime,
                "Event.elapsed_time: both events must be made with enable_timing=True"
            );
        };
        self.wait()?;
        let slice = stamp.slice(..);
        slice.map_async(wgpu::MapMode::Read, |_| {});
        let _ = self.gpu()?.device.poll(wgpu::PollType::wait_indefinitely());
        let read = stamp.get_mapped_range(..);
        let read = read.map_err(|e| Error::runtime(format!("Event.elapsed_time: {e:?}")))?;
        let ticks = read.first_chunk().map_or(0, |b| u64::from_le_bytes(*b));
        drop(read);
        stamp.unmap();
        Ok(ticks)
    }

    /// Milliseconds from this mark to a later one on the same GPU; negative where that was before.
    pub fn milliseconds_to(&self, end: &Event) -> Result<f64> {
        ensure!(
            (self.index, self.life) == (end.index, end.life),
            Value,
            "Event.elapsed_time: both events must be of one GPU, got wgpu:{} and wgpu:{}",
            self.index,
            end.index
        );
        let (first, last) = (self.ticks()?, end.ticks()?);
        let tick = self.gpu()?.queue.get_timestamp_period() as f64;
        Ok(last.wrapping_sub(first) as i64 as f64 * tick / MILLI)
    }
}
