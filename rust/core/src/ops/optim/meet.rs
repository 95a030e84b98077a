//! Finds parameters that share memory among those that one step updates.

use crate::device::Device;
use crate::tensor::Tensor;
use smallvec::SmallVec;

/// Whether two of these tensors lie over one another and one of the two is written to.
pub(super) fn meet(x: &[&Tensor], written: impl Fn(usize) -> bool) -> bool {
    if apart(x) {
        return false;
    }
    let mut places: Vec<(usize, usize, usize, bool)> = Vec::new();
    for (k, t) in x.iter().enumerate().filter(|(_, t)| t.numel() > 0) {
        let (size, (first, end)) = (t.dtype().size(), t.layout().reach());
        // Memory of the host has addresses, which two storages may share; a GPU's has a number.
        let address = t.storage().address();
        let (memory, start) = match t.device() {
            Device::Cpu => (0, address),
            _ => (address, 0),
        };
        places.push((memory, start + first * size, start + end * size, written(k)));
    }
    places.sort_unstable();
    // Where what was seen in this memory ends, and what of it is written to.
    let (mut memory, mut seen, mut wet) = (0, 0, 0);
    places.iter().any(|&(of, start, end, writes)| {
        if of != memory {
            (memory, seen, wet) = (of, 0, 0);
        }
        let meets = start < wet || writes && start < seen;
        seen = seen.max(end);
        wet = if writes { wet.max(end) } else { wet };
        meets
    })
}

/// Whether each of these tensors is known to have a storage of its own, by a table of their numbers.
fn apart(x: &[&Tensor]) -> bool {
    let bits = usize::BITS - (2 * x.len()).leading_zeros();
    let mut table: SmallVec<[usize; 32]> = SmallVec::from_elem(0, 1 << bits);
    x.iter().all(|t| {
        let id = t.storage().id();
        // The golden ratio spreads addresses: Knuth 1998, The Art of Computer Programming 3, 6.4.
        let mut at = (id as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> (u64::BITS - bits);
        loop {
            let place = &mut table[at as usize];
            if *place == 0 {
                *place = id;
                return !t.storage().is_lent();
            }
            if *place == id {
                return false;
            }
            at = (at + 1) & ((1 << bits) - 1);
        }
    })
}
