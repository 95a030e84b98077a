//! The lines of a transform. A line of an even number of real values is half as many complex ones:
//! even and odd places are told apart after the transform, or brought together before it.

use super::long::{self, Long};
#[cfg(target_arch = "x86_64")]
use super::wide;
#[cfg(target_arch = "x86_64")]
use super::{passes::FftFloat, stockham::Stockham};
use super::{Fft, Half};
use crate::alloc::Workspace;
use crate::cpu::pool::{parallel_for, Ptr};
use crate::cpu::transpose;
use crate::isa::Level;
use crate::shape::Span;
use crate::{alloc, machine, per_isa};
use rustfft::algorithm::butterflies::Butterfly1;
use rustfft::num_complex::Complex;
#[cfg(not(target_arch = "x86_64"))]
use rustfft::FftNum as FftFloat;
use rustfft::{Fft as Plan, FftDirection, FftNum, FftPlanner, FftPlannerScalar};
use std::collections::HashMap;
use std::f64::consts::TAU;
use std::slice::{from_raw_parts, from_raw_parts_mut};
use std::sync::{Arc, Mutex};

/// A real or complex number.
pub(super) trait Sample<T>: Copy + Send + Sync {
    const REAL: bool;
    fn widen(self) -> Complex<T>;
    fn narrow(z: Complex<T>) -> Self;
}
macro_rules! numbers {
    ($($t:ty)*) => {$(
        impl Sample<$t> for $t {
            const REAL: bool = true;
            fn widen(self) -> Complex<$t> {
                Complex::new(self, 0.0)
            }
            fn narrow(z: Complex<$t>) -> $t {
                z.re
            }
        }
        impl Sample<$t> for Complex<$t> {
            const REAL: bool = false;
            fn widen(self) -> Complex<$t> {
                self
            }
            fn narrow(z: Complex<$t>) -> Self {
                z
            }
        }
    )*};
}
numbers! { f32 f64 }

/// Plans that were made, and the sum of their lengths.
pub(super) struct Plans<T: FftFloat>(pub Mutex<Option<Made<T>>>);

pub(super) struct Made<T: FftFloat> {
    planner: Planner<T>,
    plans: HashMap<(usize, bool), Line<T>>,
    roots: HashMap<(usize, bool), Arc<Roots<T>>>,
    sum: usize,
}

/// The transform of a line, and the same one by its own type where it is ours.
#[derive(Clone)]
struct Line<T: FftFloat> {
    plan: Arc<dyn Plan<T>>,
    #[cfg(target_arch = "x86_64")]
    own: Option<Arc<Stockham<T>>>,
}

enum Planner<T: FftNum> {
    Vector(FftPlanner<T>),
    Portable(FftPlannerScalar<T>),
}

impl<T: FftFloat> Planner<T> {
    fn line(&mut self, n: usize, forward: bool) -> Line<T> {
        #[cfg(target_arch = "x86_64")]
        if let Some(own) = Stockham::new(n, forward).map(Arc::new) {
            return Line {
                plan: own.clone(),
                own: Some(own),
            };
        }
        let direction = match forward {
            true => FftDirection::Forward,
            false => FftDirection::Inverse,
        };
        let plan = match self {
            // One value is its own transform, an infinite one too, and nothing is multiplied.
            _ if n == 1 => Arc::new(Butterfly1::new(direction)),
            Planner::Vector(p) => p.plan_fft(n, direction),
            Planner::Portable(p) => p.plan_fft(n, direction),
        };
        Line {
            plan,
            #[cfg(target_arch = "x86_64")]
            own: None,
        }
    }
}

/// `exp(-+ 2 pi i k / n)` for `k` up to a quarter of `n`.
struct Roots<T> {
    re: Vec<T>,
    im: Vec<T>,
}

fn number<T: FftNum>(v: f64) -> T {
    T::from_f64(v).expect("float32 and float64 hold it")
}

impl<T: FftNum> Roots<T> {
    fn new(n: usize, forward: bool) -> Roots<T> {
        let sign = if forward { -1.0 } else { 1.0 };
        let angle = |k: usize| sign * TAU * k as f64 / n as f64;
        let all = n / 4 + 1;
        Roots {
            re: alloc::gathered((0..all).map(|k| number(angle(k).cos()))),
            im: alloc::gathered((0..all).map(|k| number(angle(k).sin()))),
        }
    }
}

impl<T: FftFloat> Plans<T> {
    /// The sum of lengths up to which plans are kept; then all but the newest are forgotten.
    const KEPT: usize = 1 << 22;

    /// The plan of `n` complex values; where they stand for `2 * n` real ones, the roots too.
    fn get(&self, n: usize, forward: bool, halved: bool) -> (Line<T>, Arc<Roots<T>>) {
        let mut plans = self.0.lock().unwrap_or_else(|e| e.into_inner());
        let portable = machine::level() == Level::Portable;
        let same = |p: &Planner<T>| portable == matches!(p, Planner::Portable(_));
        let known = |m: &Made<T>| m.plans.contains_key(&(n, forward)) || m.sum + n <= Self::KEPT;
        let made = match plans.take().filter(|m| same(&m.planner) && known(m)) {
            Some(made) => made,
            None => Made {
                planner: match portable {
                    true => Planner::Portable(FftPlannerScalar::new()),
                    false => Planner::Vector(FftPlanner::new()),
                },
                plans: HashMap::new(),
                roots: HashMap::new(),
                sum: 0,
            },
        };
        let Made {
            planner,
            plans,
            roots,
            sum,
        } = plans.insert(made);
        let plan = plans.entry((n, forward)).or_insert_with(|| {
            *sum += n;
            match long::split(n) {
                Some((a, b)) => {
                    let parts = [a, b].map(|n| planner.line(n, forward).plan);
                    Line {
                        plan: Arc::new(Long::new(parts, forward)),
                        #[cfg(target_arch = "x86_64")]
                        own: None,
                    }
                }
                None => planner.line(n, forward),
            }
        });
        let n = if halved { 2 * n } else { 0 };
        let make = || Arc::new(Roots::new(n.max(1), forward));
        let roots = roots.entry((n, forward)).or_insert_with(make);
        (plan.clone(), roots.clone())
    }
}

per_isa! {
    /// From the transform `z` of even places as real and odd ones as imaginary parts, that of all:
    /// its first `m + 1` values, times `scale`.
    unsafe fn tell_apart[T: FftNum](
        z: *const T, m: usize, re: *const T, im: *const T, scale: T, y: *mut T
    ) {
        // SAFETY: `z` has `m` complex values, `y` room for one more, and there are roots up to the
        // middle of `m`; `y` overlaps nothing.
        unsafe {
            let h = scale / (T::one() + T::one());
            let (a, b) = (*z, *z.add(1));
            *y = (a + b) * scale;
            *y.add(1) = T::zero();
            *y.add(2 * m) = (a - b) * scale;
            *y.add(2 * m + 1) = T::zero();
            #[cfg(target_arch = "x86_64")]
            let done = wide::takes::<T>(m);
            #[cfg(not(target_arch = "x86_64"))]
            let done = false;
            #[cfg(target_arch = "x86_64")]
            if done {
                let half = std::ptr::from_ref(&h).cast::<f32>().read();
                wide::tell_apart(z.cast(), m, re.cast(), im.cast(), half, y.cast());
            }
            for k in if done { 0..0 } else { 1..m.div_ceil(2) } {
                let l = m - k;
                let (a_re, a_im) = (*z.add(2 * k), *z.add(2 * k + 1));
                let (b_re, b_im) = (*z.add(2 * l), *z.add(2 * l + 1));
                // Twice what the even places give, and the odd ones.
                let (e_re, e_im) = (a_re + b_re, a_im - b_im);
                let (o_re, o_im) = (a_im + b_im, b_re - a_re);
                let (w_re, w_im) = (*re.add(k), *im.add(k));
                let t_re = w_re * o_re - w_im * o_im;
                let t_im = w_re * o_im + w_im * o_re;
                *y.add(2 * k) = (e_re + t_re) * h;
                *y.add(2 * k + 1) = (e_im + t_im) * h;
                *y.add(2 * l) = (e_re - t_re) * h;
                *y.add(2 * l + 1) = (t_im - e_im) * h;
            }
            if m.is_multiple_of(2) {
                // The root is -i or i.
                let sign = if (*im.add(m / 2)).is_negative() { -scale } else { scale };
                *y.add(m) = *z.add(m) * scale;
                *y.add(m + 1) = *z.add(m + 1) * sign;
            }
        }
    }
}

per_isa! {
    /// The way back: `z`, whose transform has the even places of a real line as real and the odd ones
    /// as imaginary parts, from the first `m + 1` values of its transform, of which those between the
    /// ends count `inner` and the ends `scale`.
    unsafe fn bring_together[T: FftNum](
        x: *const T, m: usize, re: *const T, im: *const T, scale: T, inner: T, z: *mut T
    ) {
        // SAFETY: `x` has `m + 1` complex values, `z` room for `m`, and there are roots up to the
        // middle of `m`; `z` overlaps nothing.
        unsafe {
            let (a, b) = (*x * scale, *x.add(2 * m) * scale);
            *z = a + b;
            *z.add(1) = a - b;
            #[cfg(target_arch = "x86_64")]
            let done = wide::takes::<T>(m);
            #[cfg(not(target_arch = "x86_64"))]
            let done = false;
            #[cfg(target_arch = "x86_64")]
            if done {
                let inner = std::ptr::from_ref(&inner).cast::<f32>().read();
                wide::bring_together(x.cast(), m, re.cast(), im.cast(), inner, z.cast());
            }
            for k in if done { 0..0 } else { 1..m.div_ceil(2) } {
                let l = m - k;
                let (a_re, a_im) = (*x.add(2 * k) * inner, *x.add(2 * k + 1) * inner);
                let (b_re, b_im) = (*x.add(2 * l) * inner, *x.add(2 * l + 1) * inner);
                let (e_re, e_im) = (a_re + b_re, a_im - b_im);
                let (d_re, d_im) = (a_re - b_re, a_im + b_im);
                let (w_re, w_im) = (*re.add(k), *im.add(k));
                let o_re = w_re * d_re - w_im * d_im;
                let o_im = w_re * d_im + w_im * d_re;
                *z.add(2 * k) = e_re - o_im;
                *z.add(2 * k + 1) = e_im + o_re;
                *z.add(2 * l) = e_re + o_im;
                *z.add(2 * l + 1) = o_re - e_im;
            }
            if m.is_multiple_of(2) {
                let two = T::one() + T::one();
                let sign = if (*im.add(m / 2)).is_negative() { two } else { -two };
                *z.add(m) = *x.add(m) * inner * two;
                *z.add(m + 1) = *x.add(m + 1) * inner * sign;
            }
        }
    }
}

/// Writes `y[j][i] = x[i][j]`, strides in elements.
///
/// # Safety
/// `x` has `rows` rows of `cols` elements, `y` room for them transposed; nothing else uses it.
pub(super) unsafe fn turn<X: Copy>(
    x: *const X,
    xs: usize,
    y: *mut X,
    ys: usize,
    (rows, cols): (usize, usize),
) {
    // SAFETY: `x` has `rows` rows of `cols` elements, `y` room for them transposed; nothing else
    // uses it.
    unsafe {
        if size_of::<X>() <= 8 {
            return transpose::kernel::<X>()(x, xs as isize, y, ys as isize, rows, cols);
        }
        // Whichever are few stay in the cache.
        if rows < cols {
            for j in 0..cols {
                for i in 0..rows {
                    *y.add(j * ys + i) = *x.add(i * xs + j);
                }
            }
            return;
        }
        for i in 0..rows {
            for j in 0..cols {
                *y.add(j * ys + i) = *x.add(i * xs + j);
            }
        }
    }
}

/// Lines that lie at a multiple of a page from each other meet in the caches.
pub(super) fn pitch(n: usize) -> usize {
    n.next_multiple_of(16) + 16
}

/// What a thread works in.
struct Room<T> {
    given: Workspace<Complex<T>>,
    z: Workspace<Complex<T>>,
    scratch: Workspace<Complex<T>>,
}

/// One transform as its lines see it.
struct Lines<'a, T: FftFloat> {
    op: &'a Fft,
    line: Line<T>,
    roots: Arc<Roots<T>>,
    scale: T,
    /// Elements of a line that are read, and that are written with anything but zero.
    read: usize,
    written: usize,
}

impl<T: FftFloat> Lines<'_, T> {
    /// `direct`: from complex numbers to complex ones.
    fn room(&self, direct: bool) -> Room<T> {
        let zero = Complex::new(T::zero(), T::zero());
        let plan = &self.line.plan;
        let scratch = plan
            .get_inplace_scratch_len()
            .max(plan.get_outofplace_scratch_len())
            .max(plan.get_immutable_scratch_len());
        // Lines of complex numbers without padding go from place to place.
        let (n, op) = (self.op.n, self.op);
        let own = match direct && self.read == n && op.out == n && op.half == Half::None {
            true => 0,
            false => n + 2,
        };
        Room {
            given: Workspace::full(zero, own),
            z: Workspace::full(zero, own),
            scratch: Workspace::full(zero, scratch),
        }
    }

    /// The elements of a line that are read, to all that it has.
    fn line<X: Sample<T>, Y: Sample<T>>(&self, x: &[X], y: &mut [Y], room: &mut Room<T>) {
        let halved = self.op.is_halved::<T, X, Y>();
        // SAFETY: a number that is real is `T`, one that is not is `Complex<T>`, which is two of them.
        unsafe {
            let (from, to) = (x.as_ptr(), y.as_mut_ptr());
            match (X::REAL, Y::REAL) {
                (true, false) if halved => {
                    self.spectrum(
                        from_raw_parts(from.cast(), x.len()),
                        from_raw_parts_mut(to.cast(), y.len()),
                        room,
                    );
                }
                (_, true) if halved => {
                    self.signal(x, from_raw_parts_mut(to.cast(), y.len()), room);
                }
                (false, false) if y.len() == self.op.n && self.op.half == Half::None => {
                    self.complex(
                        from_raw_parts(from.cast(), x.len()),
                        from_raw_parts_mut(to.cast(), y.len()),
                        room,
                    );
                }
                _ => self.any(x, y, room),
            }
        }
    }

    /// Complex values to as many.
    fn complex(&self, x: &[Complex<T>], y: &mut [Complex<T>], room: &mut Room<T>) {
        let n = self.op.n;
        #[cfg(target_arch = "x86_64")]
        if let (Some(own), true) = (&self.line.own, x.len() == n) {
            // SAFETY: both have `n` values.
            return unsafe {
                own.complex(x.as_ptr(), y.as_mut_ptr(), self.scale, &mut room.scratch)
            };
        }
        if x.len() == n {
            self.line
                .plan
                .process_immutable_with_scratch(x, y, &mut room.scratch);
        } else {
            let z = &mut room.z[..n];
            z[..x.len()].copy_from_slice(x);
            z[x.len()..].fill(Complex::new(T::zero(), T::zero()));
            self.line
                .plan
                .process_outofplace_with_scratch(z, y, &mut room.scratch);
        }
        if self.scale != T::one() {
            y.iter_mut().for_each(|v| *v = v.scale(self.scale));
        }
    }

    /// An even number of real values to complex ones.
    fn spectrum(&self, x: &[T], y: &mut [Complex<T>], room: &mut Room<T>) {
        let (n, m) = (self.op.n, self.op.n / 2);
        let Room { given, z, scratch } = room;
        let roots = &self.roots;
        // SAFETY: two real values are as large as a complex one and no less aligned; roots, as
        // `tell_apart` reads them, are those of `n`. What is padded was read when its place is
        // written.
        unsafe {
            let x = if x.len() == n {
                x.as_ptr().cast::<Complex<T>>()
            } else {
                let padded = from_raw_parts_mut(given.as_mut_ptr().cast::<T>(), n);
                padded[..x.len()].copy_from_slice(x);
                padded[x.len()..].fill(T::zero());
                given.as_ptr()
            };
            let to = match y.len() <= m {
                true => given.as_mut_ptr(),
                false => y.as_mut_ptr(),
            };
            #[cfg(target_arch = "x86_64")]
            let own = self.line.own.as_ref();
            #[cfg(not(target_arch = "x86_64"))]
            let own = None::<()>;
            #[cfg(target_arch = "x86_64")]
            if let Some(own) = own {
                own.spectrum(x.cast(), (&roots.re, &roots.im), to, self.scale, scratch);
            }
            if own.is_none() {
                let x = from_raw_parts(x, m);
                let plan = &self.line.plan;
                plan.process_immutable_with_scratch(x, &mut z[..m], scratch);
                let (re, im) = (roots.re.as_ptr(), roots.im.as_ptr());
                tell_apart(
                    z.as_ptr().cast::<T>(),
                    m,
                    re,
                    im,
                    self.scale,
                    to.cast::<T>(),
                );
            }
        }
        if y.len() <= m {
            let all = y.len();
            y.copy_from_slice(&given[..all]);
        }
        if self.op.half == Half::Output {
            for (j, v) in y[..self.written].iter_mut().enumerate() {
                if j != 0 && 2 * j != n {
                    *v = *v + *v;
                }
            }
        }
        for j in m + 1..self.written {
            y[j] = y[n - j].conj();
        }
        y[self.written..].fill(Complex::new(T::zero(), T::zero()));
    }

    /// To an even number of real values.
    fn signal<X: Sample<T>>(&self, x: &[X], y: &mut [T], room: &mut Room<T>) {
        let (n, m) = (self.op.n, self.op.n / 2);
        let zero = Complex::new(T::zero(), T::zero());
        let Room { given, z, scratch } = room;
        let half = T::one() / (T::one() + T::one());
        let (inner, from) = if !X::REAL && x.len() == m + 1 {
            (self.scale, x.as_ptr().cast::<T>())
        } else {
            for (k, h) in given[..=m].iter_mut().enumerate() {
                let v = x.get(k).map_or(zero, |v| v.widen());
                let mirror = match k == 0 || k == m {
                    true => zero,
                    false => x.get(n - k).map_or(zero, |v| v.widen().conj()),
                };
                *h = v + mirror;
            }
            (self.scale, given.as_ptr().cast::<T>())
        };
        let inner = match self.op.half == Half::Input {
            true => inner,
            false => inner * half,
        };
        #[cfg(target_arch = "x86_64")]
        if let Some(own) = &self.line.own {
            let roots = (&self.roots.re[..], &self.roots.im[..]);
            let ends = match self.op.half {
                Half::Input => T::one(),
                _ => T::one() + T::one(),
            };
            let short = y.len() < n;
            // SAFETY: `m + 1` values are given, and there is room for `n` real ones.
            unsafe {
                let to = match short {
                    true => z.as_mut_ptr().cast::<T>(),
                    false => y.as_mut_ptr(),
                };
                own.signal(from, roots, ends, to, inner, scratch);
            }
            match short {
                true => Self::shorten(z, y),
                false => y[n..].fill(T::zero()),
            }
            return;
        }
        // SAFETY: `m + 1` values are given, roots are those of `n`, and `z` has room for `m`.
        unsafe {
            let (re, im) = (self.roots.re.as_ptr(), self.roots.im.as_ptr());
            bring_together(
                from,
                m,
                re,
                im,
                self.scale,
                inner,
                z.as_mut_ptr().cast::<T>(),
            );
        }
        let (z, plan) = (&mut z[..m], &self.line.plan);
        if y.len() >= n {
            // SAFETY: two real values are as large as a complex one and no less aligned.
            let to = unsafe { from_raw_parts_mut(y.as_mut_ptr().cast::<Complex<T>>(), m) };
            plan.process_outofplace_with_scratch(z, to, scratch);
            y[n..].fill(T::zero());
        } else {
            plan.process_with_scratch(z, scratch);
            Self::shorten(z, y);
        }
    }

    /// The first real values of those that are in `z`.
    fn shorten(z: &[Complex<T>], y: &mut [T]) {
        // SAFETY: a complex value is two real ones.
        let z = unsafe { from_raw_parts(z.as_ptr().cast::<T>(), 2 * z.len()) };
        let all = y.len();
        y.copy_from_slice(&z[..all]);
    }

    /// By complex values in any case.
    fn any<X: Sample<T>, Y: Sample<T>>(&self, x: &[X], y: &mut [Y], room: &mut Room<T>) {
        let n = self.op.n;
        let zero = Complex::new(T::zero(), T::zero());
        let two = T::one() + T::one();
        let counts_twice = |side, k: usize| self.op.half == side && k != 0 && 2 * k != n;
        let z = &mut room.z[..n];
        z[x.len()..].fill(zero);
        for (k, (z, v)) in z.iter_mut().zip(x).enumerate() {
            let v = v.widen();
            *z = if counts_twice(Half::Input, k) {
                v.scale(two)
            } else {
                v
            };
        }
        let plan = &self.line.plan;
        plan.process_with_scratch(z, &mut room.scratch);
        for (j, v) in y.iter_mut().enumerate() {
            let twice = counts_twice(Half::Output, j);
            let scale = if twice { self.scale * two } else { self.scale };
            *v = Y::narrow(match j < self.written {
                true => z[j].scale(scale),
                false => zero,
            });
        }
    }
}

impl Fft {
    /// Whether lines go through a transform of half their length.
    fn is_halved<T, X: Sample<T>, Y: Sample<T>>(&self) -> bool {
        let one = X::REAL != Y::REAL || (Y::REAL && self.half != Half::Output);
        self.n.is_multiple_of(2) && one
    }

    /// Transforms `x`, of which `span` is the shape, into `y`.
    pub(super) fn lines<T: FftFloat, X: Sample<T>, Y: Sample<T>>(
        &self,
        plans: &Plans<T>,
        span: Span,
        x: &[X],
        y: &mut [Y],
    ) {
        /// Neighbouring lines that are read together where their elements are neighbours.
        const BLOCK: usize = 16;
        let Span {
            outer,
            length,
            inner,
        } = span;
        if y.is_empty() {
            return;
        }
        alloc::spare(self.n.saturating_mul(64));
        let (n, out) = (self.n, self.out);
        let halved = self.is_halved::<T, X, Y>();
        let (line, roots) = plans.get(if halved { n / 2 } else { n }, self.forward, halved);
        let half = |side| if self.half == side { n / 2 + 1 } else { n };
        let lines = Lines {
            op: self,
            line,
            roots,
            scale: number(self.scale.f64()),
            read: length.min(half(Half::Input)),
            written: out.min(half(Half::Output)),
        };
        let read = lines.read;
        let block = BLOCK.min(inner);
        let blocks = inner.div_ceil(block);
        let work = n * block * 8;
        let (to, direct) = (Ptr::new(y.as_mut_ptr()), !X::REAL && !Y::REAL);
        parallel_for(outer * blocks, (1 << 17) / work.max(1) + 1, |range| {
            let (zero, mut room) = (Complex::new(T::zero(), T::zero()), lines.room(direct));
            let together = if block > 1 { block } else { 0 };
            let mut near = Workspace::full(X::narrow(zero), together * pitch(read));
            let mut back = Workspace::full(Y::narrow(zero), together * pitch(out));
            for job in range {
                let (o, first) = (job / blocks, job % blocks * block);
                let width = block.min(inner - first);
                let from = &x[o * length * inner + first..];
                let at = o * out * inner + first;
                if block == 1 {
                    // SAFETY: each line of the result is one job's.
                    let to = unsafe { to.part(at..at + out) };
                    lines.line(&from[..read], to, &mut room);
                    continue;
                }
                // SAFETY: `read` rows of `width` elements, `inner` from each other, are of the source,
                // and `out` of the result, this job's alone; both rooms have `width` lines.
                unsafe {
                    let (rows, ys) = ((read, width), pitch(read));
                    turn(from.as_ptr(), inner, near.as_mut_ptr(), ys, rows);
                    for b in 0..width {
                        let x = &near[b * pitch(read)..][..read];
                        lines.line(x, &mut back[b * pitch(out)..][..out], &mut room);
                    }
                    let to = to.get().add(at);
                    turn(back.as_ptr(), pitch(out), to, inner, (width, out));
                }
            }
        });
    }
}
