//! Bytes of files on all threads: CRC-32 as in zip archives, and reading with the checksum at once.

use super::pool::parallel_for;
use crc32fast::Hasher;
use std::io;
use std::sync::Mutex;

/// What a thread reads and sums at once: it stays in a second-level cache in between.
const CHUNK: usize = 256 << 10;

/// Returns the CRC-32 of the bytes.
pub fn crc32(bytes: &[u8]) -> u32 {
    if bytes.len() <= CHUNK {
        return crc32fast::hash(bytes);
    }
    summed(bytes.len(), |at, n| Ok(Hasher::of(&bytes[at..at + n]))).unwrap_or(0)
}

/// Fills `target` from `offset` on and returns its CRC-32.
///
/// Fails with `UnexpectedEof` where the file ends before, and as the system does otherwise.
#[cfg(unix)]
pub fn read_at(file: &std::fs::File, offset: u64, target: &mut [u8]) -> io::Result<u32> {
    use std::os::unix::fs::FileExt;
    let base = target.as_mut_ptr() as usize;
    summed(target.len(), |at, n| {
        // SAFETY: each range of `target` is given to one call.
        let part = unsafe { std::slice::from_raw_parts_mut((base as *mut u8).add(at), n) };
        file.read_exact_at(part, offset + at as u64)?;
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
fn summed(n: usize, f: impl Fn(usize, usize) -> io::Result<Hasher> + Sync) -> io::Result<u32> {
    let chunks = n.div_ceil(CHUNK);
    let sums: Vec<Mutex<io::Result<Hasher>>> =
        (0..chunks).map(|_| Mutex::new(Ok(Hasher::new()))).collect();
    parallel_for(chunks, 1, |range| {
        for i in range {
            let sum = f(i * CHUNK, CHUNK.min(n - i * CHUNK));
            *sums[i].lock().unwrap_or_else(|e| e.into_inner()) = sum;
        }
    });
    let mut whole = Hasher::new();
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
        assert_eq!(crc32(b"123456789"), 0xcbf4_3926);
        let bytes: Vec<u8> = (0..3 * CHUNK + 17).map(|i| ((i * i) >> 7) as u8).collect();
        assert_eq!(crc32(&bytes), crc32fast::hash(&bytes));
        assert_eq!(crc32(&[]), 0);
    }

    #[cfg(unix)]
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
