//! Bytes between the host and a GPU, and from one buffer to another.

use super::stream::Transfer;
use super::{copy, fault, Buffer, Gpu};
use crate::ensure;
use crate::error::{Error, Result};

/// The largest piece of one read, which needs a mapped buffer of its size.
const READ_CHUNK: u64 = 32 << 20;
/// Writes above this are submitted at once, since wgpu keeps a copy until then.
const WRITE_FLUSH: usize = 16 << 20;

impl Gpu {
    /// Copies host bytes into `dst` at a byte offset.
    pub fn write(&self, dst: &Buffer, offset: usize, data: &[u8]) -> Result<()> {
        if data.is_empty() {
            return Ok(());
        }
        self.check_alive(dst)?;
        check_range("write", dst, offset, data.len())?;
        if dst.is_segmented() {
            let pieces = dst.pieces(offset, data.len());
            return (pieces.into_iter())
                .try_for_each(|p| self.write(&p.of, p.start, &data[p.range]));
        }
        self.invalidate_recording();
        self.flush_pending([(dst, true)])?;
        let (head, tail) = (offset % 4, (offset + data.len()) % 4);
        let whole_end = offset + data.len() == dst.bytes() as usize;
        if head != 0 || (tail != 0 && !whole_end) {
            // The words at the ends also hold neighbours: go through a buffer of our own.
            let part = self.alloc(data.len())?;
            self.write(&part, 0, data)?;
            return copy::bytes(self, &part, 0, dst, offset, data.len());
        }
        {
            let mut stream = self.stream.lock();
            if dst.last_batch() == stream.batch {
                stream.flush();
            }
            let body = data.len() - tail;
            if body > 0 {
                let at = dst.start() + offset as u64;
                self.queue.write_buffer(dst.wgpu(), at, &data[..body]);
            }
            if tail > 0 {
                let mut word = [0u8; 4];
                word[..tail].copy_from_slice(&data[body..]);
                let at = dst.start() + (offset + body) as u64;
                self.queue.write_buffer(dst.wgpu(), at, &word);
            }
            if data.len() > WRITE_FLUSH {
                self.queue.submit([]);
            }
        }
        self.check()
    }

    /// Copies `src` from a byte offset to the host: submits what is recorded and waits.
    pub fn read(&self, src: &Buffer, offset: usize, data: &mut [u8]) -> Result<()> {
        if data.is_empty() {
            return self.check();
        }
        self.check_alive(src)?;
        check_range("read", src, offset, data.len())?;
        if src.is_segmented() {
            let pieces = src.pieces(offset, data.len());
            return (pieces.into_iter())
                .try_for_each(|p| self.read(&p.of, p.start, &mut data[p.range]));
        }
        self.flush_pending([(src, false)])?;
        // What kernels noted comes with the first piece, so that there is no second wait for it.
        let (noted, mut note) = (self.noted(), fault::NO_NOTE);
        for (i, piece) in data.chunks_mut(READ_CHUNK as usize).enumerate() {
            let also = noted.filter(|_| i == 0).map(|from| (from, &mut note));
            self.read_piece(src, offset + i * READ_CHUNK as usize, piece, also)?;
        }
        self.trim_stale();
        self.judge(note)?;
        self.check()
    }

    /// Reads a part of a buffer, and a note with it, waiting once.
    pub(super) fn read_piece(
        &self,
        src: &Buffer,
        offset: usize,
        data: &mut [u8],
        note: Option<(&Buffer, &mut fault::Note)>,
    ) -> Result<()> {
        self.invalidate_recording();
        let first = offset / 4 * 4;
        let span = ((offset + data.len()).next_multiple_of(4) - first) as u64;
        let whole = match note {
            Some(_) => span.next_multiple_of(8) + fault::NO_NOTE.len() as u64,
            None => span,
        };
        let kept = self.staging.lock().take().filter(|b| b.size() >= whole);
        let staging = kept.unwrap_or_else(|| {
            self.device.create_buffer(&wgpu::BufferDescriptor {
                label: Some("read"),
                size: whole.next_power_of_two().max(4096),
                usage: wgpu::BufferUsages::MAP_READ | wgpu::BufferUsages::COPY_DST,
                mapped_at_creation: false,
            })
        });
        self.check()?;
        {
            let mut stream = self.stream.lock();
            let noted = note.as_ref().map(|(from, _)| *from);
            let encoder = stream.encoder(&[src, noted.unwrap_or(src)], span);
            let from = src.start() + first as u64;
            encoder.copy_buffer_to_buffer(src.wgpu(), from, &staging, 0, span);
            if let Some(noted) = noted {
                let (to, size) = (span.next_multiple_of(8), fault::NO_NOTE.len() as u64);
                encoder.copy_buffer_to_buffer(noted.wgpu(), noted.start(), &staging, to, size);
            }
            let slice = staging.slice(0..whole);
            stream.flush();
            slice.map_async(wgpu::MapMode::Read, |_| {});
            stream.wait();
        }
        self.check()?;
        {
            let view = staging
                .get_mapped_range(0..whole)
                .map_err(|e| Error::runtime(format!("wgpu: reading back failed: {e:?}")))?;
            data.copy_from_slice(&view[offset - first..offset - first + data.len()]);
            if let Some((_, note)) = note {
                note.copy_from_slice(&view[span.next_multiple_of(8) as usize..]);
            }
        }
        staging.unmap();
        if staging.size() <= 1 << 20 {
            *self.staging.lock() = Some(staging);
        }
        Ok(())
    }

    /// Copies bytes between buffers (or within one, where the ranges must not overlap).
    pub fn copy(
        &self,
        src: &Buffer,
        src_offset: usize,
        dst: &Buffer,
        dst_offset: usize,
        bytes: usize,
    ) -> Result<()> {
        if bytes == 0 {
            return Ok(());
        }
        self.check_alive(src)?;
        self.check_alive(dst)?;
        check_range("copy", src, src_offset, bytes)?;
        check_range("copy", dst, dst_offset, bytes)?;
        let aligned =
            src_offset.is_multiple_of(4) && dst_offset.is_multiple_of(4) && bytes.is_multiple_of(4);
        let segmented = src.is_segmented() || dst.is_segmented();
        if !aligned || segmented || src.same(dst) {
            return copy::bytes(self, src, src_offset, dst, dst_offset, bytes);
        }
        self.flush_pending([(src, false), (dst, true)])?;
        let from = (src, src.start() + src_offset as u64);
        let to = (dst, dst.start() + dst_offset as u64);
        let mut stream = self.stream.lock();
        let copy = Transfer::Copy {
            from: (src.wgpu().clone(), from.1),
            to: (dst.wgpu().clone(), to.1),
            bytes: bytes as u64,
        };
        stream.transfer(copy, &[src, dst], bytes as u64);
        if let (Some(recording), true) = (&mut stream.recording, self.is_recording()) {
            recording.copy(from, to, bytes as u64);
        }
        Ok(())
    }

    /// Sets the whole buffer to zero.
    pub fn fill_zero(&self, dst: &Buffer) -> Result<()> {
        if dst.is_segmented() {
            let pieces = dst.pieces(0, dst.bytes() as usize);
            return pieces.iter().try_for_each(|p| self.fill_zero(&p.of));
        }
        self.flush_pending([(dst, true)])?;
        let bytes = dst.window().map(|w| w.size);
        let mut stream = self.stream.lock();
        let clear = Transfer::Clear {
            of: dst.wgpu().clone(),
            start: dst.start(),
            bytes,
        };
        stream.transfer(clear, &[dst], dst.capacity());
        if let (Some(recording), true) = (&mut stream.recording, self.is_recording()) {
            recording.clear(dst, dst.start(), bytes);
        }
        Ok(())
    }
}

fn check_range(what: &str, buffer: &Buffer, offset: usize, bytes: usize) -> Result<()> {
    ensure!(
        offset
            .checked_add(bytes)
            .is_some_and(|end| end as u64 <= buffer.bytes()),
        Runtime,
        "wgpu: {what} of {bytes} bytes at {offset} is outside a buffer of {} bytes",
        buffer.bytes()
    );
    Ok(())
}
