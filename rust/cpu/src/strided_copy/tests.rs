//! Copies between layouts of every kind beside one element at a time.

use super::strided_copy;
use crate::layout::Layout;
use crate::shape::Dims;
use smallvec::SmallVec;

/// A linear congruential generator of Knuth's.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, n: usize) -> usize {
        self.0 = self.0.wrapping_mul(6364136223846793005).wrapping_add(1);
        (self.0 >> 33) as usize % n
    }
}

/// Lays `shape` out over memory in some order of dimensions, with gaps, and for a source backwards
/// and with dimensions that do not move; the offset of its first element beside it.
fn laid_out(shape: &[usize], source: bool, r: &mut Numbers) -> (Layout, usize, usize) {
    let k = shape.len();
    let mut order: Vec<usize> = (0..k).collect();
    for i in (1..k).rev() {
        if r.below(3) == 0 {
            order.swap(i, r.below(i + 1));
        }
    }
    let mut strides = SmallVec::from_elem(0isize, k);
    let (mut step, mut start) = (1 + r.below(3) / 2, 0);
    for &d in order.iter().rev() {
        if source && r.below(5) == 0 {
            continue;
        }
        strides[d] = step as isize;
        if source && r.below(4) == 0 {
            start += (shape[d] - 1) * step;
            strides[d] = -(step as isize);
        }
        step *= shape[d];
        step += r.below(4) / 3 * r.below(5);
    }
    let layout = Layout {
        shape: Dims::from_slice(shape),
        strides,
        offset: 0,
    };
    (layout, start, step)
}

#[test]
fn every_layout_is_copied_element_by_element() {
    const LENGTHS: [usize; 15] = [1, 2, 3, 4, 5, 7, 8, 9, 15, 16, 17, 33, 63, 64, 129];
    let mut r = Numbers(7);
    for case in 0..4000 {
        let size = [1, 2, 4, 8, 16][case % 5];
        let k = 1 + r.below(4);
        let mut shape: Vec<usize> = (0..k).map(|_| LENGTHS[r.below(5)]).collect();
        for _ in 0..2 {
            shape[r.below(k)] = LENGTHS[r.below(15)];
        }
        if case % 50 == 0 {
            shape[r.below(k)] *= 700;
        }
        if shape.iter().product::<usize>() > 200_000 {
            continue;
        }
        let (x, from, room_x) = laid_out(&shape, true, &mut r);
        let (y, _, room_y) = laid_out(&shape, false, &mut r);
        let source: Vec<u8> = (0..(room_x + 1) * size)
            .map(|i| (i * 31 / 7) as u8)
            .collect();
        let mut want = vec![0xa5u8; (room_y + 1) * size];
        let mut got = want.clone();
        let mut at = vec![0usize; k];
        'all: loop {
            let place = |l: &Layout, start: usize| {
                let moved = at.iter().zip(&l.strides).map(|(&i, s)| i as isize * s);
                (start as isize + moved.sum::<isize>()) as usize * size
            };
            let (i, j) = (place(&x, from), place(&y, 0));
            want[j..j + size].copy_from_slice(&source[i..i + size]);
            for d in (0..k).rev() {
                at[d] += 1;
                if at[d] < shape[d] {
                    continue 'all;
                }
                at[d] = 0;
            }
            break;
        }
        // SAFETY: both layouts lie within their memory, and elements of `y` are apart.
        unsafe {
            let first = source.as_ptr().add(from * size);
            strided_copy(size, first, &x, got.as_mut_ptr(), &y);
        }
        assert!(got == want, "{size} {x:?} {y:?}");
    }
}
