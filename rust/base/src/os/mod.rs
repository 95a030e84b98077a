//! What the core asks of the operating system, where systems differ. Each system's file gives the same functions;
//! nothing else of the core asks which system it is on, but for the GPU's back ends.
//!
//! | function | what |
//! |---|---|
//! | `map`, `unmap` | pages of zeros, aligned to [`HUGE_PAGE`] where the system has pages of that size |
//! | `discard` | lets go of what pages hold, and keeps their addresses |
//! | `total_memory`, `available_memory` | bytes that a process can be given at all, and now |
//! | `Backing`, `unmap_file`, `file_of` | maps of files, and memory that processes share |
//! | `read_exact_at` | reads a file at a place |
//! | `cpus` | how many processors this thread may run on |
//! | `may_be_interrupted` | whether a user's interruption can be for this thread |
//! | `at_fork` | has a child of `fork` call a function, where there is one |
//! | `CACHES` | where what may be lost is kept |
//! | `permits_amx` | asks for AMX's tiles |

#[cfg(unix)]
mod unix;
#[cfg(windows)]
mod windows;

#[cfg(unix)]
pub use unix::*;
#[cfg(windows)]
pub use windows::*;

/// The size of the pages that large blocks are made of.
pub const HUGE_PAGE: usize = 2 << 20;

/// The whole pages of `page` bytes among `from..to` behind `start`, as offsets.
fn whole_pages(start: usize, from: usize, to: usize, page: usize) -> Option<(usize, usize)> {
    let first = (start + from).next_multiple_of(page);
    let end = (start + to) / page * page;
    (first < end).then(|| (first - start, end - first))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_that_lie_partly_outside_are_not_whole() {
        assert_eq!(whole_pages(4096, 0, 8192, 4096), Some((0, 8192)));
        assert_eq!(whole_pages(4096, 1, 8191, 4096), None);
        assert_eq!(whole_pages(4096, 1, 12289, 4096), Some((4096, 8192)));
    }

    #[test]
    fn maps_hold_zeros_and_are_written_to() {
        let n = 3 * HUGE_PAGE;
        let block = map(n).unwrap();
        assert_eq!(block.as_ptr().addr() % 4096, 0);
        // SAFETY: a new block of `n` bytes.
        let all = unsafe { std::slice::from_raw_parts_mut(block.as_ptr(), n) };
        assert!(all.iter().all(|&b| b == 0));
        all.fill(7);
        discard(block, 5, n - 5);
        assert_eq!(
            (all[0], all[n - 1]),
            (7, 7),
            "pages at the ends are not whole"
        );
        all.fill(3);
        assert!(all.iter().all(|&b| b == 3));
        unmap(block.as_ptr(), n);
    }

    #[test]
    fn memory_has_bounds() {
        let (total, now) = (total_memory(), available_memory());
        // No machine that runs this has less than 64 MB, or more than a petabyte.
        assert!((64 << 20..1 << 50).contains(&total), "{total}");
        assert!(now > 0 && now <= total, "{now} of {total}");
        assert!(cpus() >= 1);
    }

    /// Products of 27 bits: rounded before the sum, they lose what is asked for here.
    #[test]
    fn mul_add_rounds_once() {
        use std::hint::black_box;
        let x = black_box(1.0 + f32::EPSILON);
        assert_eq!(
            x.mul_add(x, -(1.0 + 2.0 * f32::EPSILON)),
            f32::EPSILON * f32::EPSILON
        );
        let x = black_box(1.0 + f64::EPSILON);
        assert_eq!(
            x.mul_add(x, -(1.0 + 2.0 * f64::EPSILON)),
            f64::EPSILON * f64::EPSILON
        );
    }
}
