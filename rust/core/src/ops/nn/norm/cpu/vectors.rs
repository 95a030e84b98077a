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
    /// Whether the last elements are taken as a vector's, some of which were taken before.
    const AGAIN: bool = false;
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
    // SAFETY: the row has as many elements; the machine has the instructions of the vector;
    // elements of a vector that starts at `i` lie below `n`.
    unsafe {
        let (mut i, mut all) = (0, [0.0; K]);
        while n - i >= V::LANES {
            let (of, end) = some::<V, K>(i, n, terms);
            i = end;
            for k in 0..K {
                all[k] += join(of[k]);
            }
        }
        let one = last::<V, K>(i, n, terms);
        for k in 0..K {
            all[k] += one[k];
        }
        all
    }
}

/// The lanes of the sums over whole vectors from element `i` on, not too many, and where they end.
// SAFETY: as for [`sums`].
#[inline(always)]
unsafe fn some<V: Simd, const K: usize>(
    mut i: usize,
    n: usize,
    terms: &impl Terms<V::Elem, K>,
) -> ([V; K], usize)
where
    V::Elem: Float,
{
    // SAFETY: the row has as many elements; the machine has the instructions of the vector;
    // elements of a vector that starts at `i` lie below `n`.
    unsafe {
        let mut apart = [[V::splat(V::Elem::default()); K]; APART];
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
        let sums = std::array::from_fn(|k| a[k].add(b[k]).add(c[k].add(d[k])));
        (sums, i)
    }
}

/// The sums over the elements from `i` on, fewer than a vector's.
// SAFETY: as for [`sums`].
#[inline(always)]
unsafe fn last<V: Simd, const K: usize>(
    i: usize,
    n: usize,
    terms: &impl Terms<V::Elem, K>,
) -> [f64; K]
where
    V::Elem: Float,
{
    let mut all = [0.0; K];
    for i in i..n {
        // SAFETY: the row has as many elements; the machine has the instructions of the vector.
        let one = unsafe { terms.add(i, [[V::Elem::default()]; K]) };
        for k in 0..K {
            all[k] += one[k][0].to_f64();
        }
    }
    all
}

/// Rows up to this length are worth [`Running`] sums.
pub const SHORT_ROW: usize = 1024;
/// After so many rows their lanes are joined.
const ROWS: usize = 16;

/// Sums over rows of the same number of elements, one after the other: their lanes are joined in f64 after some
/// rows, not after each.
#[derive(Clone, Copy)]
pub struct Running<T, const K: usize> {
    lanes: [[T; MOST]; K],
    rows: usize,
    all: [f64; K],
}

impl<T: Float, const K: usize> Running<T, K> {
    pub fn new() -> Self {
        Running {
            lanes: [[T::default(); MOST]; K],
            rows: 0,
            all: [0.0; K],
        }
    }
    /// Adds a row of `n` elements, at most [`SHORT_ROW`] and at least a vector's.
    ///
    /// # Safety
    /// As for [`sums`].
    #[inline(always)]
    pub unsafe fn add<V: Simd<Elem = T>, S: Terms<T, K>>(&mut self, n: usize, terms: &S) {
        // SAFETY: the row has as many elements; the machine has the instructions of the vector.
        unsafe {
            let mut i = 0;
            while n - i >= V::LANES {
                let (mut of, end) = some::<V, K>(i, n, terms);
                i = end;
                if S::AGAIN && (1..V::LANES).contains(&(n - i)) {
                    let with = terms.add(n - V::LANES, of);
                    of = std::array::from_fn(|k| of[k].with_last(with[k], n - i));
                    i = n;
                }
                for (lanes, of) in self.lanes.iter_mut().zip(of) {
                    of.add(V::load(lanes.as_ptr())).store(lanes.as_mut_ptr());
                }
            }
            let rest = last::<V, K>(i, n, terms);
            (0..K).for_each(|k| self.all[k] += rest[k]);
            self.rows += 1;
            if self.rows == ROWS {
                self.settle::<V>();
            }
        }
    }
    // SAFETY: the machine has the instructions of the vector.
    #[inline(always)]
    unsafe fn settle<V: Simd<Elem = T>>(&mut self) {
        for (all, lanes) in self.all.iter_mut().zip(&mut self.lanes) {
            // SAFETY: there are the most lanes; the caller's instructions.
            *all += unsafe { join(V::load(lanes.as_ptr())) };
            *lanes = [T::default(); MOST];
        }
        self.rows = 0;
    }
    /// What all rows add up to.
    ///
    /// # Safety
    /// As for [`Running::add`].
    #[inline(always)]
    pub unsafe fn total<V: Simd<Elem = T>>(&mut self) -> [f64; K] {
        // SAFETY: the row has these elements; the machine has the instructions of the vector.
        unsafe { self.settle::<V>() };
        self.all
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
    /// Whether the last elements are written as a vector's, some of which were written before.
    const AGAIN: bool = false;
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
pub unsafe fn each<V: Simd, M: Map<V::Elem>>(n: usize, map: &M)
where
    V::Elem: Float,
{
    let whole = n / V::LANES * V::LANES;
    // SAFETY: the rows have as many elements; the machine has the instructions of the vector.
    unsafe {
        for i in (0..whole).step_by(V::LANES) {
            map.write::<V>(i);
        }
        if M::AGAIN && whole > 0 && whole < n {
            return map.write::<V>(n - V::LANES);
        }
        for i in whole..n {
            map.write::<[V::Elem; 1]>(i);
        }
    }
}

/// The elements of a row.
pub struct Plain<X>(pub X);
impl<T: Float, X: Factor<T>> Terms<T, 1> for Plain<X> {
    const AGAIN: bool = X::HALF;
    #[inline(always)]
    unsafe fn add<V: Simd<Elem = T>>(&self, i: usize, [sum]: [V; 1]) -> [V; 1] {
        // SAFETY: the row has these elements; the machine has the instructions of the vector.
        unsafe { [sum.add(self.0.at(i))] }
    }
}

/// The squares of what a row is away from a number.
pub struct Squares<T>(pub *const T, pub T);
impl<T: Float> Terms<T, 1> for Squares<T> {
    #[inline(always)]
    unsafe fn add<V: Simd<Elem = T>>(&self, i: usize, [sum]: [V; 1]) -> [V; 1] {
        // SAFETY: the row has these elements; the machine has the instructions of the vector.
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
        // SAFETY: the row has these elements; the machine has the instructions of the vector.
        unsafe { self.0.add(i, sums) }
    }
}

/// What a row is away from a number, and its squares.
pub struct Moments<X, T>(pub X, pub T);
impl<T: Float, X: Factor<T>> Terms<T, 2> for Moments<X, T> {
    const AGAIN: bool = X::HALF;
    #[inline(always)]
    unsafe fn add<V: Simd<Elem = T>>(&self, i: usize, [sum, squares]: [V; 2]) -> [V; 2] {
        // SAFETY: the row has these elements; the machine has the instructions of the vector.
        unsafe {
            let off = self.0.at::<V>(i).sub(V::splat(self.1));
            [sum.add(off), off.fma(off, squares)]
        }
    }
}

/// A row of the input, normalised: `(x - mean) * rstd`.
#[derive(Clone, Copy)]
pub struct Normal<T, X = *const T> {
    pub x: X,
    pub mean: T,
    pub rstd: T,
}
impl<T: Float, X: Factor<T>> Normal<T, X> {
    // SAFETY: as for [`Terms::add`].
    #[inline(always)]
    unsafe fn at<V: Simd<Elem = T>>(&self, i: usize) -> V {
        // SAFETY: the row has these elements; the machine has the instructions of the vector.
        unsafe {
            let off = self.x.at::<V>(i).sub(V::splat(self.mean));
            off.mul(V::splat(self.rstd))
        }
    }
}

/// A number for each element of a row, or the same for all.
pub trait Factor<T>: Copy {
    /// Whether they are of a half type, of which a vector is read as quickly as one.
    const HALF: bool = false;
    // SAFETY: as for [`Terms::add`].
    unsafe fn at<V: Simd<Elem = T>>(self, i: usize) -> V;
}
/// Where a row is written, or read.
pub trait Place<T>: Factor<T> {
    // SAFETY: as for [`Map::write`].
    unsafe fn put<V: Simd<Elem = T>>(self, i: usize, v: V);
    /// The place of element `i` of a tensor.
    fn of(start: *mut u8, i: usize) -> Self;
}
impl<T: Float> Factor<T> for *mut T {
    #[inline(always)]
    unsafe fn at<V: Simd<Elem = T>>(self, i: usize) -> V {
        // SAFETY: the row has a vector's elements from `i` on; the machine has its code.
        unsafe { V::load(self.add(i)) }
    }
}
impl<T: Float> Place<T> for *mut T {
    #[inline(always)]
    unsafe fn put<V: Simd<Elem = T>>(self, i: usize, v: V) {
        // SAFETY: the row has room for a vector from `i` on, and the machine has its instructions.
        unsafe { v.store(self.add(i)) }
    }
    #[inline(always)]
    fn of(start: *mut u8, i: usize) -> Self {
        start.cast::<T>().wrapping_add(i)
    }
}
macro_rules! halves {
    ($($name:ident: $widen:ident $narrow:ident;)*) => { $(
        /// A row of this type, widened and narrowed in registers.
        #[derive(Clone, Copy)]
        pub struct $name(pub *mut u16);
        impl<T: Float> Factor<T> for $name {
            const HALF: bool = true;
            #[inline(always)]
            unsafe fn at<V: Simd<Elem = T>>(self, i: usize) -> V {
                // SAFETY: the row has a vector's elements from `i` on; the machine has its code.
                unsafe { V::$widen(self.0.add(i)) }
            }
        }
        impl<T: Float> Place<T> for $name {
            #[inline(always)]
            unsafe fn put<V: Simd<Elem = T>>(self, i: usize, v: V) {
                // SAFETY: the row has room for a vector from `i` on, and the machine has its
                // instructions.
                unsafe { v.$narrow(self.0.add(i)) }
            }
            #[inline(always)]
            fn of(start: *mut u8, i: usize) -> Self {
                $name(start.cast::<u16>().wrapping_add(i))
            }
        }
    )* };
}
halves! {
    F16: widen_f16 narrow_f16;
    BF16: widen_bf16 narrow_bf16;
}
impl<T: Float> Factor<T> for *const T {
    #[inline(always)]
    unsafe fn at<V: Simd<Elem = T>>(self, i: usize) -> V {
        // SAFETY: the row has a vector's elements from `i` on; the machine has its code.
        unsafe { V::load(self.add(i)) }
    }
}
/// One number for all.
#[derive(Clone, Copy)]
pub struct Same<T>(pub T);
impl<T: Float> Factor<T> for Same<T> {
    #[inline(always)]
    unsafe fn at<V: Simd<Elem = T>>(self, _: usize) -> V {
        // SAFETY: the machine has the instructions of the vector.
        unsafe { V::splat(self.0) }
    }
}

/// `normal * weight + bias`, and where it is written.
pub struct Affine<T, W, B, X, Y>(pub Normal<T, X>, pub W, pub B, pub Y);
impl<T: Float, W: Factor<T>, B: Factor<T>, X: Factor<T>, Y: Place<T>> Map<T>
    for Affine<T, W, B, X, Y>
{
    const AGAIN: bool = Y::HALF;
    #[inline(always)]
    unsafe fn write<V: Simd<Elem = T>>(&self, i: usize) {
        let Affine(normal, weight, bias, y) = self;
        // SAFETY: the rows have these elements; the machine has the instructions of the vector.
        unsafe {
            let v = normal.at::<V>(i).fma(weight.at(i), bias.at(i));
            y.put(i, v);
        }
    }
}

/// The gradient times the weight, and the same times the normalised input. Adds the gradients of
/// weight and bias to `sums`, where there are any.
pub struct Products<T, W, X> {
    pub g: X,
    pub normal: Normal<T, X>,
    pub weight: W,
    pub sums: Option<[*mut T; 2]>,
}
impl<T: Float, W: Factor<T>, X: Factor<T>> Terms<T, 2> for Products<T, W, X> {
    /// Halves have no sums that are written.
    const AGAIN: bool = X::HALF;
    #[inline(always)]
    unsafe fn add<V: Simd<Elem = T>>(&self, i: usize, [sum, along]: [V; 2]) -> [V; 2] {
        // SAFETY: the row has these elements; the machine has the instructions of the vector.
        unsafe {
            let (g, normal) = (self.g.at::<V>(i), self.normal.at::<V>(i));
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
pub struct Slope<T, W, X, Y> {
    pub g: X,
    pub normal: Normal<T, X>,
    pub weight: W,
    pub k: T,
    pub a: T,
    pub b: T,
    pub dx: Y,
}
impl<T: Float, W: Factor<T>, X: Factor<T>, Y: Place<T>> Map<T> for Slope<T, W, X, Y> {
    const AGAIN: bool = Y::HALF;
    #[inline(always)]
    unsafe fn write<V: Simd<Elem = T>>(&self, i: usize) {
        // SAFETY: the rows have these elements; the machine has the instructions of the vector.
        unsafe {
            let g = self.g.at::<V>(i).fma(self.weight.at(i), V::splat(self.a));
            let d = self.normal.at::<V>(i).fma(V::splat(self.b), g);
            self.dx.put(i, d.mul(V::splat(self.k)));
        }
    }
}

/// `(x - mean) * k + a` with factors for each element.
pub struct Scaled<X, M, T, A, Y> {
    pub x: X,
    pub mean: M,
    pub k: *const T,
    pub a: A,
    pub y: Y,
}
impl<T: Float, X: Factor<T>, M: Factor<T>, A: Factor<T>, Y: Place<T>> Map<T>
    for Scaled<X, M, T, A, Y>
{
    const AGAIN: bool = Y::HALF;
    #[inline(always)]
    unsafe fn write<V: Simd<Elem = T>>(&self, i: usize) {
        // SAFETY: the rows have these elements; the machine has the instructions of the vector.
        unsafe {
            let off = self.x.at::<V>(i).sub(self.mean.at(i));
            self.y.put(i, off.fma(self.k.at(i), self.a.at(i)));
        }
    }
}

/// `k * (g - a - (x - mean) * b)` with factors for each element.
pub struct Slopes<X, T, Y> {
    pub g: X,
    pub x: X,
    pub mean: *const T,
    pub k: *const T,
    pub a: *const T,
    pub b: *const T,
    pub y: Y,
}
impl<T: Float, X: Factor<T>, Y: Place<T>> Map<T> for Slopes<X, T, Y> {
    const AGAIN: bool = Y::HALF;
    #[inline(always)]
    unsafe fn write<V: Simd<Elem = T>>(&self, i: usize) {
        // SAFETY: the rows have these elements; the machine has the instructions of the vector.
        unsafe {
            let off = self.x.at::<V>(i).sub(self.mean.at(i));
            let g = self
                .g
                .at::<V>(i)
                .sub(self.a.at(i))
                .sub(off.mul(self.b.at(i)));
            self.y.put(i, g.mul(self.k.at(i)));
        }
    }
}

/// Adds a row to sums for each element.
pub struct AddRow<X, T> {
    pub x: X,
    pub to: *mut T,
}
impl<T: Float, X: Factor<T>> Map<T> for AddRow<X, T> {
    #[inline(always)]
    unsafe fn write<V: Simd<Elem = T>>(&self, i: usize) {
        // SAFETY: the rows have these elements; the machine has the instructions of the vector.
        unsafe { self.to.put(i, self.to.at::<V>(i).add(self.x.at(i))) }
    }
}

/// Adds what a row is away from means to sums, and its squares to others.
pub struct AddMoments<X, T> {
    pub x: X,
    pub mean: *const T,
    pub to: [*mut T; 2],
}
impl<T: Float, X: Factor<T>> Map<T> for AddMoments<X, T> {
    #[inline(always)]
    unsafe fn write<V: Simd<Elem = T>>(&self, i: usize) {
        let [sum, squares] = self.to;
        // SAFETY: the rows have these elements; the machine has the instructions of the vector.
        unsafe {
            let off = self.x.at::<V>(i).sub(self.mean.at(i));
            sum.put(i, sum.at::<V>(i).add(off));
            squares.put(i, off.fma(off, squares.at(i)));
        }
    }
}

/// Adds a gradient to sums, and the same times what was normalised to others.
pub struct AddProducts<X, T> {
    pub g: X,
    pub x: X,
    pub mean: *const T,
    pub k: *const T,
    pub to: [*mut T; 2],
}
impl<T: Float, X: Factor<T>> Map<T> for AddProducts<X, T> {
    #[inline(always)]
    unsafe fn write<V: Simd<Elem = T>>(&self, i: usize) {
        let [sum, along] = self.to;
        // SAFETY: the rows have these elements; the machine has the instructions of the vector.
        unsafe {
            let g = self.g.at::<V>(i);
            let normal = self.x.at::<V>(i).sub(self.mean.at(i)).mul(self.k.at(i));
            sum.put(i, sum.at::<V>(i).add(g));
            along.put(i, g.fma(normal, along.at(i)));
        }
    }
}
