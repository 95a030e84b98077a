//! Bytes of files on all threads: CRC-32 as in zip archives, and reading with the checksum at once.

use super::copy::copy;
use super::pool::{parallel_for, Ptr};
use crate::os::read_exact_at;
use crc32fast::Hasher;
use std::io;
use std::sync::Mutex;

/// What a thread reads and sums at once: it stays in a second-level cache in between.
const CHUNK: usize = 256 << 10;

/// Returns the CRC-32 of bytes that follow others of CRC-32 `before`.
pub fn crc32(before: u32, bytes: &[u8]) -> u32 {
    let part = |at, n| Ok(Hasher::of(&bytes[at..at + n]));
    summed(before, bytes.len(), part).unwrap_or(0)
}

/// Copies `n` bytes and returns the CRC-32 of the copy, which follows bytes of CRC-32 `before`.
///
/// # Safety
/// `source` and `target` are valid for `n` bytes and do not overlap; nobody else uses `target`.
/// Another thread may write to `source`: the sum is that of what arrived.
pub unsafe fn copy_summed(before: u32, source: *const u8, target: *mut u8, n: usize) -> u32 {
    let (source, target) = (Ptr::read(source), Ptr::new(target));
    let part = |at: usize, n: usize| {
        // SAFETY: both have `n` bytes and do not overlap; each range is given to one call.
        let copied = unsafe {
            let to = target.part(at..at + n);
            copy(source.at(at), to.as_mut_ptr(), n);
            &*to
        };
        Ok(Hasher::of(copied))
    };
    summed(before, n, part).unwrap_or(0)
}

/// Fills `target` from `offset` on and returns its CRC-32.
///
/// Fails with `UnexpectedEof` where the file ends before, and as the system does otherwise.
pub fn read_at(file: &std::fs::File, offset: u64, target: &mut [u8]) -> io::Result<u32> {
    let base = Ptr::new(target.as_mut_ptr());
    summed(0, target.len(), |at, n| {
        // SAFETY: each range of `target` is given to one call.
        let part = unsafe { base.part(at..at + n) };
        read_exact_at(file, part, offset + at as u64)?;
        Ok(Hasher::of(part))
    })
}

trait Of {
    fn of(bytes: &[u8]) -> Hasher;
}

impl Of for Hasher {
    fn of(bytes: &[u8]) -> Hasher {
        let mut sum = Hasher::new();
        sum.update(bytes);
        sum
    }
}

/// Combines the sums of the chunks of `0..n`; `f` gets where a chunk begins and its length.
fn summed(
    before: u32,
    n: usize,
    f: impl Fn(usize, usize) -> io::Result<Hasher> + Sync,
) -> io::Result<u32> {
    let mut whole = Hasher::new_with_initial(before);
    if n <= CHUNK && before == 0 {
        return Ok(f(0, n)?.finalize());
    }
    let chunks = n.div_ceil(CHUNK);
    let sums: Vec<Mutex<io::Result<Hasher>>> =
        (0..chunks).map(|_| Mutex::new(Ok(Hasher::new()))).collect();
    parallel_for(chunks, 1, |range| {
        for i in range {
            let sum = f(i * CHUNK, CHUNK.min(n - i * CHUNK));
            *sums[i].lock().unwrap_or_else(|e| e.into_inner()) = sum;
        }
    });
    for sum in sums {
        whole.combine(&sum.into_inner().unwrap_or_else(|e| e.into_inner())?);
    }
    Ok(whole.finalize())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chunks_sum_to_the_whole() {
        // The check value of CRC-32/ISO-HDLC.
        assert_eq!(crc32(0, b"123456789"), 0xcbf4_3926);
        assert_eq!(crc32(crc32(0, b"1234"), b"56789"), 0xcbf4_3926);
        let bytes: Vec<u8> = (0..3 * CHUNK + 17).map(|i| ((i * i) >> 7) as u8).collect();
        let whole = crc32fast::hash(&bytes);
        assert_eq!(crc32(0, &bytes), whole);
        assert_eq!(crc32(crc32(0, &bytes[..9]), &bytes[9..]), whole);
        assert_eq!(crc32(0, &[]), 0);
        let mut copy = vec![0; bytes.len()];
        // SAFETY: two buffers of one length.
        let sum = unsafe { copy_summed(0, bytes.as_ptr(), copy.as_mut_ptr(), bytes.len()) };
        assert!(sum == whole && copy == bytes);
    }

    #[test]
    fn reads_what_was_written_or_fails_at_the_end() {
        let path = std::env::temp_dir().join(format!("files-{}", std::process::id()));
        let bytes: Vec<u8> = (0..2 * CHUNK + 5).map(|i| ((i * 31) >> 3) as u8).collect();
        std::fs::write(&path, &bytes).unwrap();
        let file = std::fs::File::open(&path).unwrap();
        let mut target = vec![0; bytes.len() - 3];
        let sum = read_at(&file, 3, &mut target).unwrap();
        assert!(target == bytes[3..] && sum == crc32fast::hash(&target));
        let error = read_at(&file, 4, &mut target).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::UnexpectedEof);
        std::fs::remove_file(path).unwrap();
    }
}
