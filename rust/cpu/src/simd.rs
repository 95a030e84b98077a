//! Vector registers behind one trait: arrays, which the compiler turns into whatever the machine
//! surely has, and the registers of SSE2, AVX2, AVX-512 and NEON.

mod exp;
#[cfg(target_arch = "x86_64")]
mod ln;
#[cfg(target_arch = "aarch64")]
mod neon;
#[cfg(test)]
mod tests;
#[cfg(target_arch = "x86_64")]
mod x86;

pub use exp::Exp;
#[cfg(target_arch = "x86_64")]
pub use ln::ln;
#[cfg(target_arch = "aarch64")]
pub use neon::{F32x8, F64x4};

/// What lanes hold, with the arithmetic of portable vectors: wrapping for integers.
pub trait Lane: Copy + Default + PartialOrd {
    const UNIT: Self;
    fn plus(self, o: Self) -> Self;
    fn minus(self, o: Self) -> Self;
    fn times(self, o: Self) -> Self;
    fn magnitude(self) -> Self;
    /// self * b + c, rounded once where that costs no more.
    fn fused(self, b: Self, c: Self) -> Self;
    fn of_f32(x: f32) -> Self;
    fn to_f32(self) -> f32;
}

macro_rules! floats {
    ($($t:ident)*) => { $(
        impl Lane for $t {
            const UNIT: Self = 1.0;
            #[inline(always)]
            fn plus(self, o: Self) -> Self {
                self + o
            }
            #[inline(always)]
            fn minus(self, o: Self) -> Self {
                self - o
            }
            #[inline(always)]
            fn times(self, o: Self) -> Self {
                self * o
            }
            #[inline(always)]
            fn magnitude(self) -> Self {
                self.abs()
            }
            #[inline(always)]
            fn fused(self, b: Self, c: Self) -> Self {
                if cfg!(target_arch = "aarch64") {
                    self.mul_add(b, c)
                } else {
                    self * b + c
                }
            }
            #[inline(always)]
            fn of_f32(x: f32) -> Self {
                x as $t
            }
            #[inline(always)]
            fn to_f32(self) -> f32 {
                self as f32
            }
        }
    )* };
}
floats!(f32 f64);

impl Lane for i64 {
    const UNIT: Self = 1;
    #[inline(always)]
    fn plus(self, o: Self) -> Self {
        self.wrapping_add(o)
    }
    #[inline(always)]
    fn minus(self, o: Self) -> Self {
        self.wrapping_sub(o)
    }
    #[inline(always)]
    fn times(self, o: Self) -> Self {
        self.wrapping_mul(o)
    }
    #[inline(always)]
    fn magnitude(self) -> Self {
        self.wrapping_abs()
    }
    #[inline(always)]
    fn fused(self, b: Self, c: Self) -> Self {
        self.wrapping_mul(b).wrapping_add(c)
    }
    #[inline(always)]
    fn of_f32(x: f32) -> Self {
        x as i64
    }
    #[inline(always)]
    fn to_f32(self) -> f32 {
        self as f32
    }
}

/// The most lanes of a vector.
pub const MOST: usize = 16;

/// A vector register.
///
/// # Safety
/// Methods may be called where the machine has the instructions that the type stands for; addresses
/// are those of as many elements as are loaded or stored, of any alignment.
pub trait Simd: Copy {
    type Elem: Lane;
    const LANES: usize;
    unsafe fn splat(x: Self::Elem) -> Self;
    unsafe fn load(p: *const Self::Elem) -> Self;
    unsafe fn store(self, p: *mut Self::Elem);
    unsafe fn add(self, o: Self) -> Self;
    unsafe fn sub(self, o: Self) -> Self;
    unsafe fn mul(self, o: Self) -> Self;
    unsafe fn abs(self) -> Self;
    /// self * b + c.
    unsafe fn fma(self, b: Self, c: Self) -> Self;
    /// The larger of each pair, `o` where one is NaN.
    unsafe fn max(self, o: Self) -> Self;
    /// One more in each lane where `x` is not zero.
    unsafe fn count(self, x: Self) -> Self;
    /// Loads the first `n` lanes, of at most all; the others are zero.
    unsafe fn load_first(p: *const Self::Elem, n: usize) -> Self;
    /// Stores the first `n` lanes, of at most all.
    unsafe fn store_first(self, p: *mut Self::Elem, n: usize);
    /// Exchanges the rows and columns of `LANES` vectors.
    unsafe fn transpose(x: *mut Self);

    /// Loads as many float16.
    #[inline(always)]
    unsafe fn widen_f16(p: *const u16) -> Self {
        // SAFETY: the machine has the instructions of the vector; `p` is the address of as many
        // numbers as it has lanes.
        unsafe { widened(|i| half::f16::from_bits(*p.add(i)).to_f32()) }
    }
    /// Loads as many bfloat16.
    #[inline(always)]
    unsafe fn widen_bf16(p: *const u16) -> Self {
        // SAFETY: the machine has the instructions of the vector; `p` is the address of as many
        // numbers as it has lanes.
        unsafe { widened(|i| f32::from_bits((*p.add(i) as u32) << 16)) }
    }
    /// Stores the lanes as float16, rounded to nearest.
    #[inline(always)]
    unsafe fn narrow_f16(self, p: *mut u16) {
        // SAFETY: the machine has the instructions of the vector; `p` has room for as many numbers
        // as it has lanes.
        unsafe { narrowed(self, p, |x| half::f16::from_f32(x).to_bits()) }
    }
    /// Stores the lanes as bfloat16, rounded to nearest.
    #[inline(always)]
    unsafe fn narrow_bf16(self, p: *mut u16) {
        // SAFETY: the machine has the instructions of the vector; `p` has room for as many numbers
        // as it has lanes.
        unsafe { narrowed(self, p, |x| half::bf16::from_f32(x).to_bits()) }
    }
    /// The last `n` lanes of `o`, after the first ones of `self`.
    #[inline(always)]
    unsafe fn with_last(self, o: Self, n: usize) -> Self {
        // SAFETY: the caller has the instructions of this vector.
        unsafe {
            let (mut all, last) = (lanes(self), lanes(o));
            let from = Self::LANES - n;
            all[from..Self::LANES].copy_from_slice(&last[from..Self::LANES]);
            Self::load(all.as_ptr())
        }
    }

    #[inline(always)]
    unsafe fn largest(self) -> Self::Elem {
        // SAFETY: the caller has the instructions of this vector.
        let x = unsafe { lanes(self) };
        let larger = |a, &b| if b > a { b } else { a };
        x[..Self::LANES].iter().fold(x[0], larger)
    }
    #[inline(always)]
    unsafe fn sum(self) -> Self::Elem {
        // SAFETY: the caller has the instructions of this vector.
        let x = unsafe { lanes(self) };
        let zero = Self::Elem::default();
        x[..Self::LANES].iter().fold(zero, |a, &b| a.plus(b))
    }
    /// Adds a[i] * y[j] to each sum[i][j].
    #[inline(always)]
    unsafe fn add_outer<const M: usize, const N: usize>(
        a: *const Self::Elem,
        y: &[Self; N],
        sum: &mut [[Self; N]; M],
    ) {
        for i in 0..M {
            // SAFETY: `a` has M elements; the machine has the instructions of the vectors.
            unsafe {
                let x = Self::splat(*a.add(i));
                for j in 0..N {
                    sum[i][j] = x.fma(y[j], sum[i][j]);
                }
            }
        }
    }
    /// Adds the sum of each vector's lanes to the numbers at `p`.
    #[inline(always)]
    unsafe fn add_sums<const M: usize>(x: &[Self; M], p: *mut Self::Elem) {
        // SAFETY: `p` has M numbers, one for each vector; the machine has the instructions of the
        // vectors.
        unsafe {
            for (i, &x) in x.iter().enumerate() {
                let mut all = lanes(x);
                let mut n = Self::LANES;
                while n > 1 {
                    n /= 2;
                    for j in 0..n {
                        all[j] = all[j].plus(all[j + n]);
                    }
                }
                *p.add(i) = (*p.add(i)).plus(all[0]);
            }
        }
    }
    /// Writes the lanes that `mask` names one after another; `first` has as many low ones.
    #[inline(always)]
    unsafe fn store_some(self, p: *mut Self::Elem, mask: u32, _first: u32) {
        // SAFETY: `p` has room for as many lanes as `mask` has ones; the machine has the
        // instructions of the vector.
        unsafe {
            let mut to = p;
            for (i, &x) in lanes(self)[..Self::LANES].iter().enumerate() {
                if mask >> i & 1 != 0 {
                    *to = x;
                    to = to.add(1);
                }
            }
        }
    }
    /// Writes the first `n` lanes to every second element. Those between may be read and written back.
    #[inline(always)]
    unsafe fn store_second(self, p: *mut Self::Elem, n: usize) {
        // SAFETY: `p` has room up to element 2 * (n - 1); the machine has the instructions of the
        // vector.
        unsafe {
            for (i, &x) in lanes(self)[..n].iter().enumerate() {
                *p.add(2 * i) = x;
            }
        }
    }
    /// Writes a vector of zeros but for lanes `lo` to `hi`, which come from `p + lo`.
    #[inline(always)]
    unsafe fn copy_part(p: *const Self::Elem, lo: usize, hi: usize, to: *mut Self::Elem) {
        // SAFETY: `to` has room for all lanes, `p` elements `lo` to `hi`; the machine has the
        // instructions of the vector.
        unsafe {
            if (lo, hi) == (0, Self::LANES) {
                return Self::load(p).store(to);
            }
            Self::splat(Self::Elem::default()).store(to);
            for i in lo..hi {
                *to.add(i) = *p.add(i);
            }
        }
    }
    /// As [`Simd::copy_part`] of every second element; lane `lo` comes from `p + 2 * lo`.
    #[inline(always)]
    unsafe fn copy_second(p: *const Self::Elem, lo: usize, hi: usize, to: *mut Self::Elem) {
        // SAFETY: `to` has room for all lanes, `p` elements `2 * lo` to `2 * hi - 1`; the machine
        // has the instructions of the vector.
        unsafe {
            Self::splat(Self::Elem::default()).store(to);
            for i in lo..hi {
                *to.add(i) = *p.wrapping_add(2 * i);
            }
        }
    }
}

/// The lanes, and zeros behind them.
#[inline(always)]
unsafe fn lanes<V: Simd>(v: V) -> [V::Elem; MOST] {
    let mut all = [V::Elem::default(); MOST];
    // SAFETY: there is room for the most lanes; the caller has the instructions of this vector.
    unsafe { v.store(all.as_mut_ptr()) };
    all
}

/// A vector of the numbers that `f` gives.
#[inline(always)]
unsafe fn widened<V: Simd>(f: impl Fn(usize) -> f32) -> V {
    let mut all = [V::Elem::default(); MOST];
    (0..V::LANES).for_each(|i| all[i] = V::Elem::of_f32(f(i)));
    // SAFETY: there are the most lanes; the caller has the instructions of this vector.
    unsafe { V::load(all.as_ptr()) }
}

/// Writes what `f` makes of the lanes.
#[inline(always)]
unsafe fn narrowed<V: Simd>(v: V, p: *mut u16, f: impl Fn(f32) -> u16) {
    // SAFETY: the caller has the instructions of this vector, and room for its lanes at `p`.
    unsafe {
        for (i, x) in lanes(v)[..V::LANES].iter().enumerate() {
            *p.add(i) = f(x.to_f32());
        }
    }
}

/// Asks for the cache line of any address.
#[inline(always)]
pub fn fetch<T>(_p: *const T) {
    #[cfg(target_arch = "aarch64")]
    // SAFETY: any address may be asked for.
    unsafe {
        std::arch::asm!(
            "prfm pldl1keep, [{}]", in(reg) _p, options(nostack, preserves_flags, readonly)
        )
    };
    #[cfg(target_arch = "x86_64")]
    // SAFETY: any address may be asked for.
    unsafe {
        std::arch::x86_64::_mm_prefetch::<{ std::arch::x86_64::_MM_HINT_T0 }>(_p.cast())
    };
}

/// Asks for the cache line of any address, which is going to be written.
#[inline(always)]
pub fn fetch_mut<T>(_p: *mut T) {
    #[cfg(target_arch = "aarch64")]
    // SAFETY: any address may be asked for.
    unsafe {
        std::arch::asm!(
            "prfm pstl1keep, [{}]", in(reg) _p, options(nostack, preserves_flags, readonly)
        )
    };
    #[cfg(target_arch = "x86_64")]
    // SAFETY: any address may be asked for.
    unsafe {
        std::arch::x86_64::_mm_prefetch::<{ std::arch::x86_64::_MM_HINT_ET0 }>(_p.cast())
    };
}

/// The same bits, since `zero` is 0, which the compiler does not know: a choice that leaves a number
/// of memory as it is would become a branch around the store, and the loop stay scalar.
#[inline(always)]
pub fn veiled<R: Copy>(v: R, zero: u64) -> R {
    macro_rules! bits {
        ($($t:ty)*) => {
            match size_of::<R>() {
                // SAFETY: both types have this size, and a number keeps its bits.
                $(n if n == size_of::<$t>() => unsafe {
                    let bits: $t = std::mem::transmute_copy(&v);
                    std::mem::transmute_copy(&(bits ^ zero as $t))
                },)*
                _ => v,
            }
        };
    }
    bits!(u8 u16 u32 u64)
}

impl<T: Lane, const N: usize> Simd for [T; N] {
    type Elem = T;
    const LANES: usize = N;
    #[inline(always)]
    unsafe fn splat(x: T) -> Self {
        [x; N]
    }
    #[inline(always)]
    unsafe fn load(p: *const T) -> Self {
        // SAFETY: `p` has N elements; their alignment does not matter.
        unsafe { p.cast::<Self>().read_unaligned() }
    }
    #[inline(always)]
    unsafe fn store(self, p: *mut T) {
        // SAFETY: `p` has room for N elements; their alignment does not matter.
        unsafe {
            p.cast::<Self>().write_unaligned(self);
        }
    }
    #[inline(always)]
    unsafe fn add(self, o: Self) -> Self {
        std::array::from_fn(|i| self[i].plus(o[i]))
    }
    #[inline(always)]
    unsafe fn sub(self, o: Self) -> Self {
        std::array::from_fn(|i| self[i].minus(o[i]))
    }
    #[inline(always)]
    unsafe fn mul(self, o: Self) -> Self {
        std::array::from_fn(|i| self[i].times(o[i]))
    }
    #[inline(always)]
    unsafe fn abs(self) -> Self {
        self.map(T::magnitude)
    }
    #[inline(always)]
    unsafe fn fma(self, b: Self, c: Self) -> Self {
        std::array::from_fn(|i| self[i].fused(b[i], c[i]))
    }
    #[inline(always)]
    unsafe fn max(self, o: Self) -> Self {
        std::array::from_fn(|i| if self[i] > o[i] { self[i] } else { o[i] })
    }
    #[inline(always)]
    unsafe fn count(self, x: Self) -> Self {
        let one = |i: usize| {
            if x[i] != T::default() {
                T::UNIT
            } else {
                T::default()
            }
        };
        std::array::from_fn(|i| self[i].plus(one(i)))
    }
    #[inline(always)]
    unsafe fn load_first(p: *const T, n: usize) -> Self {
        // SAFETY: `p` has `n` elements, and only those are read.
        unsafe { std::array::from_fn(|i| if i < n { *p.add(i) } else { T::default() }) }
    }
    #[inline(always)]
    unsafe fn store_first(self, p: *mut T, n: usize) {
        // SAFETY: `p` has room for `n` elements.
        unsafe {
            for i in 0..n {
                *p.add(i) = self[i];
            }
        }
    }
    #[inline(always)]
    unsafe fn transpose(x: *mut Self) {
        // SAFETY: `x` has N vectors, and `i` and `j` stay below N.
        unsafe {
            for i in 0..N {
                for j in 0..i {
                    let (a, b) = ((*x.add(i))[j], (*x.add(j))[i]);
                    ((*x.add(i))[j], (*x.add(j))[i]) = (b, a);
                }
            }
        }
    }
}

/// The vectors of a type for each instruction set.
pub trait Vectors: Lane {
    type Portable: Exp<Elem = Self>;
    #[cfg(target_arch = "aarch64")]
    type Neon: Exp<Elem = Self>;
    #[cfg(target_arch = "x86_64")]
    type Avx2: Exp<Elem = Self>;
    #[cfg(target_arch = "x86_64")]
    type Avx512: Exp<Elem = Self>;
}
// Every x86-64 has SSE2. Of arrays the compiler makes vectors as it likes, across them too.
impl Vectors for f32 {
    #[cfg(target_arch = "x86_64")]
    type Portable = std::arch::x86_64::__m128;
    #[cfg(not(target_arch = "x86_64"))]
    type Portable = [f32; 4];
    #[cfg(target_arch = "aarch64")]
    type Neon = F32x8;
    #[cfg(target_arch = "x86_64")]
    type Avx2 = std::arch::x86_64::__m256;
    #[cfg(target_arch = "x86_64")]
    type Avx512 = std::arch::x86_64::__m512;
}
impl Vectors for f64 {
    #[cfg(target_arch = "x86_64")]
    type Portable = std::arch::x86_64::__m128d;
    #[cfg(not(target_arch = "x86_64"))]
    type Portable = [f64; 2];
    #[cfg(target_arch = "aarch64")]
    type Neon = F64x4;
    #[cfg(target_arch = "x86_64")]
    type Avx2 = std::arch::x86_64::__m256d;
    #[cfg(target_arch = "x86_64")]
    type Avx512 = std::arch::x86_64::__m512d;
}
