//! Sums over a row and maps of it, a vector at a time.

use crate::cpu::elements::Element;
use crate::cpu::simd::{fetch_mut, Simd, MOST};
use crate::ops::pointwise::Float;

/// Vectors of running sums, so that an addition does not wait for the last one.
const APART: usize = 4;
/// After so many steps the lanes of running sums are joined in f64, whatever the length of the
/// sum: the rounding errors of equal terms add up.
const STEPS: usize = 64;

/// The terms of `K` sums.
pub trait Terms<T: Float, const K: usize> {
    /// The sums and the terms of the elements of a vector, the first of which is `i`.
    ///
    /// # Safety
    /// The row has these elements; the machine has the instructions of the vector.
    unsafe fn add<V: Simd<Elem = T>>(&self, i: usize, sums: [V; K]) -> [V; K];
}

/// The sums over a row of `n` elements.
///
/// # Safety
/// The row has as many elements; the machine has the instructions of the vector.
#[inline(always)]
pub unsafe fn sums<V: Simd, const K: usize>(n: usize, terms: &impl Terms<V::Elem, K>) -> [f64; K]
where
    V::Elem: Float,
{
    // SAFETY: the caller's, and elements of a vector that starts at `i` lie below `n`.
    unsafe {
        let zero = V::Elem::default();
        let (mut i, mut all) = (0, [0.0; K]);
        while n - i >= V::LANES {
            let mut apart = [[V::splat(zero); K]; APART];
            let steps = ((n - i) / (APART * V::LANES)).min(STEPS);
            for _ in 0..steps {
                for sums in &mut apart {
                    *sums = terms.add(i, *sums);
                    i += V::LANES;
                }
            }
            if steps < STEPS {
                while n - i >= V::LANES {
                    apart[0] = terms.add(i, apart[0]);
                    i += V::LANES;
                }
            }
            let [a, b, c, d] = apart;
            for k in 0..K {
                all[k] += join(a[k].add(b[k]).add(c[k].add(d[k])));
            }
        }
        for i in i..n {
            let one = terms.add(i, [[zero]; K]);
            for k in 0..K {
                all[k] += one[k][0].to_f64();
            }
        }
        all
    }
}

/// The sum of the lanes, as a tree.
// SAFETY: the machine has the instructions of the vector.
#[inline(always)]
unsafe fn join<V: Simd>(x: V) -> f64
where
    V::Elem: Float,
{
    let mut lanes = [V::Elem::default(); MOST];
    // SAFETY: there is room for the most lanes; the caller's instructions.
    unsafe { x.store(lanes.as_mut_ptr()) };
    let mut sums = lanes.map(|v| v.to_f64());
    let mut half = V::LANES / 2;
    while half > 0 {
        for j in 0..half {
            sums[j] += sums[j + half];
        }
        half /= 2;
    }
    sums[0]
}

/// What is written to each element of a row.
pub trait Map<T: Float> {
    /// Writes the elements of a vector, the first of which is `i`.
    ///
    /// # Safety
    /// The rows have these elements; the machine has the instructions of the vector.
    unsafe fn write<V: Simd<Elem = T>>(&self, i: usize);
}

/// Writes a row of `n` elements.
///
/// # Safety
/// The rows have as many elements; the machine has the instructions of the vector.
#[inline(always)]
pub unsafe fn each<V: Simd>(n: usize, map: &impl Map<V::Elem>)
where
    V::Elem: Float,
{
    let whole = n / V::LANES * V::LANES;
    // SAFETY: the caller's.
    unsafe {
        for i in (0..whole).step_by(V::LANES) {
            map.write::<V>(i);
        }
        for i in whole..n {
            map.write::<[V::Elem; 1]>(i);
        }
    }
}

/// The elements of a row.
pub struct Plain<T>(pub *const T);
impl<T: Float> Terms<T, 1> for Plain<T> {
    #[inline(always)]
    unsafe fn add<V: Simd<Elem = T>>(&self, i: usize, [sum]: [V; 1]) -> [V; 1] {
        // SAFETY: the caller's.
        unsafe { [sum.add(V::load(self.0.add(i)))] }
    }
}

/// The squares of what a row is away from a number.
pub struct Squares<T>(pub *const T, pub T);
impl<T: Float> Terms<T, 1> for Squares<T> {
    #[inline(always)]
    unsafe fn add<V: Simd<Elem = T>>(&self, i: usize, [sum]: [V; 1]) -> [V; 1] {
        // SAFETY: the caller's.
        unsafe {
            let off = V::load(self.0.add(i)).sub(V::splat(self.1));
            [off.fma(off, sum)]
        }
    }
}

/// The same terms; meanwhile lines that are going to be written are asked for.
pub struct Asking<T, S>(pub S, pub *mut T);
impl<T: Float, S: Terms<T, 1>> Terms<T, 1> for Asking<T, S> {
    #[inline(always)]
    unsafe fn add<V: Simd<Elem = T>>(&self, i: usize, sums: [V; 1]) -> [V; 1] {
        fetch_mut(self.1.wrapping_add(i));
        // SAFETY: the caller's.
        unsafe { self.0.add(i, sums) }
    }
}

/// What a row is away from a number, and its squares.
pub struct Moments<T>(pub *const T, pub T);
impl<T: Float> Terms<T, 2> for Moments<T> {
    #[inline(always)]
    unsafe fn add<V: Simd<Elem = T>>(&self, i: usize, [sum, squares]: [V; 2]) -> [V; 2] {
        // SAFETY: the caller's.
        unsafe {
            let off = V::load(self.0.add(i)).sub(V::splat(self.1));
            [sum.add(off), off.fma(off, squares)]
        }
    }
}

/// A row of the input, normalised: `(x - mean) * rstd`.
#[derive(Clone, Copy)]
pub struct Normal<T> {
    pub x: *const T,
    pub mean: T,
    pub rstd: T,
}
impl<T: Float> Normal<T> {
    // SAFETY: as for [`Terms::add`].
    #[inline(always)]
    unsafe fn at<V: Simd<Elem = T>>(&self, i: usize) -> V {
        // SAFETY: the caller's.
        unsafe {
            let off = V::load(self.x.add(i)).sub(V::splat(self.mean));
            off.mul(V::splat(self.rstd))
        }
    }
}

/// A number for each element of a row, or the same for all.
pub trait Factor<T>: Copy {
    // SAFETY: as for [`Terms::add`].
    unsafe fn at<V: Simd<Elem = T>>(self, i: usize) -> V;
}
impl<T: Float> Factor<T> for *const T {
    #[inline(always)]
    unsafe fn at<V: Simd<Elem = T>>(self, i: usize) -> V {
        // SAFETY: the caller's.
        unsafe { V::load(self.add(i)) }
    }
}
/// One number for all.
#[derive(Clone, Copy)]
pub struct Same<T>(pub T);
impl<T: Float> Factor<T> for Same<T> {
    #[inline(always)]
    unsafe fn at<V: Simd<Elem = T>>(self, _: usize) -> V {
        // SAFETY: the caller's.
        unsafe { V::splat(self.0) }
    }
}

/// `normal * weight + bias`, and where it is written.
pub struct Affine<T, W, B>(pub Normal<T>, pub W, pub B, pub *mut T);
impl<T: Float, W: Factor<T>, B: Factor<T>> Map<T> for Affine<T, W, B> {
    #[inline(always)]
    unsafe fn write<V: Simd<Elem = T>>(&self, i: usize) {
        let Affine(normal, weight, bias, y) = self;
        // SAFETY: the caller's.
        unsafe {
            let v = normal.at::<V>(i).fma(weight.at(i), bias.at(i));
            v.store(y.add(i));
        }
    }
}

/// The gradient times the weight, and the same times the normalised input. Adds the gradients of
/// weight and bias to `sums`, where there are any.
pub struct Products<T, W> {
    pub g: *const T,
    pub normal: Normal<T>,
    pub weight: W,
    pub sums: Option<[*mut T; 2]>,
}
impl<T: Float, W: Factor<T>> Terms<T, 2> for Products<T, W> {
    #[inline(always)]
    unsafe fn add<V: Simd<Elem = T>>(&self, i: usize, [sum, along]: [V; 2]) -> [V; 2] {
        // SAFETY: the caller's.
        unsafe {
            let (g, normal) = (V::load(self.g.add(i)), self.normal.at::<V>(i));
            if let Some([w, b]) = self.sums.map(|s| s.map(|p| p.add(i))) {
                g.fma(normal, V::load(w)).store(w);
                g.add(V::load(b)).store(b);
            }
            let g = g.mul(self.weight.at(i));
            [sum.add(g), g.fma(normal, along)]
        }
    }
}

/// `k * (g * weight + a + normal * b)`.
pub struct Slope<T, W> {
    pub g: *const T,
    pub normal: Normal<T>,
    pub weight: W,
    pub k: T,
    pub a: T,
    pub b: T,
    pub dx: *mut T,
}
impl<T: Float, W: Factor<T>> Map<T> for Slope<T, W> {
    #[inline(always)]
    unsafe fn write<V: Simd<Elem = T>>(&self, i: usize) {
        // SAFETY: the caller's.
        unsafe {
            let g = V::load(self.g.add(i)).fma(self.weight.at(i), V::splat(self.a));
            let d = self.normal.at::<V>(i).fma(V::splat(self.b), g);
            d.mul(V::splat(self.k)).store(self.dx.add(i));
        }
    }
}
