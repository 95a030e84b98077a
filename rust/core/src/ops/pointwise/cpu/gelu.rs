//! Vector code of gelu for AVX-512: functions of the normal distribution as polynomials of low
//! degree on 32 equal parts of an interval, whose coefficients lie in pairs of registers.

#[cfg(all(target_arch = "x86_64", not(debug_assertions)))]
mod avx2;

use super::super::{c, Own, Real};
use crate::cpu::pointwise::Kernel;
use crate::dtype::DType;
use std::f64::consts::PI;

/// The gradient of x for g of the result.
pub fn gradient<R: Real>(x: R, g: R) -> R {
    let (erf, exp) = (x * c(0.5f64.sqrt())).erf_exp();
    let area = c::<R>(0.5) * (c::<R>(1.0) + erf);
    g * (area + x * (c::<R>(1.0 / (2.0 * PI).sqrt()) * exp))
}

/// gelu as exact as the narrow types ask for.
#[inline(always)]
pub fn half(x: f32) -> f32 {
    x * crate::cpu::math::f32x::ndtr_half(x)
}

/// The loop for this machine.
pub fn own(which: Own) -> Option<Kernel<f32>> {
    #[cfg(all(target_arch = "x86_64", not(debug_assertions)))]
    if crate::cpu::level() == crate::cpu::Level::Avx512 {
        return Some(match which {
            Own::Forward => x86::forward,
            Own::Half => x86::half,
            Own::Gradient => x86::gradient,
        });
    }
    #[cfg(all(target_arch = "x86_64", not(debug_assertions)))]
    if crate::cpu::level() == crate::cpu::Level::Avx2 {
        return match which {
            Own::Forward => Some(avx2::forward),
            Own::Gradient => Some(avx2::gradient),
            Own::Half => None,
        };
    }
    let _ = which;
    None
}

/// The loop over the bits of float16 or bfloat16 for this machine.
pub fn own_bits(dtype: DType) -> Option<Kernel<u16>> {
    #[cfg(all(target_arch = "x86_64", not(debug_assertions)))]
    if crate::cpu::level() == crate::cpu::Level::Avx512 {
        return match dtype {
            DType::BF16 => Some(x86::bfloat16),
            DType::F16 => Some(x86::float16),
            _ => None,
        };
    }
    let _ = dtype;
    None
}

#[cfg(all(target_arch = "x86_64", not(debug_assertions)))]
mod x86 {
    use super::tables::*;
    use crate::compiled;
    use std::arch::x86_64::*;

    const LANES: usize = 16;
    /// Adding this rounds to an integer, whose low bits the sum holds.
    const MAGIC: f32 = 12_582_912.0;
    const STEP: f32 = 3.0 / 16.0;
    const SLOPE_STEP: f32 = 13.0 / 64.0;
    const HALF_STEP: f32 = 17.0 / 64.0;
    /// Beyond these the formulas are computed as they stand.
    const SLOPE_END: f32 = 31.25 * SLOPE_STEP;
    const HALF_END: f32 = 3.98;

    /// Coefficients in registers.
    struct Table<const N: usize>([(__m512, __m512); N]);

    impl<const N: usize> Table<N> {
        compiled! { avx512:
            #[inline]
            fn new(c: &[[f32; 32]; N]) -> Self {
                let mut rows = [(_mm512_setzero_ps(), _mm512_setzero_ps()); N];
                for (row, c) in rows.iter_mut().zip(c) {
                    let c = c.as_ptr();
                    // SAFETY: there are 32 numbers.
                    *row = unsafe { (_mm512_loadu_ps(c), _mm512_loadu_ps(c.add(LANES))) };
                }
                Table(rows)
            }

            /// The polynomial of the part that lies nearest to z, counted from `first`.
            #[inline]
            fn at(&self, z: __m512, step: f32, first: f32) -> __m512 {
                let magic = _mm512_set1_ps(MAGIC - first);
                let m = _mm512_fmadd_ps(z, _mm512_set1_ps(1.0 / step), magic);
                let part = _mm512_castps_si512(m);
                let t = _mm512_fnmadd_ps(_mm512_sub_ps(m, magic), _mm512_set1_ps(step), z);
                let c = |i: usize| _mm512_permutex2var_ps(self.0[i].0, part, self.0[i].1);
                let mut y = c(N - 1);
                for i in (0..N - 1).rev() {
                    y = _mm512_fmadd_ps(y, t, c(i));
                }
                y
            }
        }
    }

    compiled! { avx512:
        #[inline]
        fn abs(x: __m512) -> __m512 {
            _mm512_castsi512_ps(_mm512_and_si512(
                _mm512_castps_si512(x),
                _mm512_set1_epi32(0x7fff_ffff),
            ))
        }

        /// y with the sign of x where y has none.
        #[inline]
        fn signed(y: __m512, x: __m512) -> __m512 {
            // y | (x & sign)
            _mm512_castsi512_ps(_mm512_ternarylogic_epi32::<0xf8>(
                _mm512_castps_si512(y),
                _mm512_castps_si512(x),
                _mm512_set1_epi32(i32::MIN),
            ))
        }

        /// The formula itself where the mask says.
        #[cold]
        #[inline(never)]
        fn exact<F: Fn(f32, f32) -> f32>(
            f: F,
            y: __m512,
            far: __mmask16,
            a: __m512,
            b: __m512,
        ) -> __m512 {
            let (mut x, mut g) = ([0.0; LANES], [0.0; LANES]);
            // SAFETY: both arrays have LANES numbers.
            unsafe {
                _mm512_storeu_ps(x.as_mut_ptr(), a);
                _mm512_storeu_ps(g.as_mut_ptr(), b);
                for i in 0..LANES {
                    x[i] = f(x[i], g[i]);
                }
                _mm512_mask_loadu_ps(y, far, x.as_ptr())
            }
        }

        #[inline]
        fn gelu(x: __m512, table: &Table<5>) -> __m512 {
            let z = _mm512_min_ps(abs(x), _mm512_set1_ps(31.0 * STEP));
            let area = signed(table.at(z, STEP, 0.0), x);
            _mm512_mul_ps(x, _mm512_add_ps(area, _mm512_set1_ps(0.5)))
        }

        #[inline]
        fn slope(x: __m512, g: __m512, table: &Table<6>) -> __m512 {
            let z = abs(x);
            let h = signed_sum(table.at(z, SLOPE_STEP, 0.0), x);
            let y = _mm512_mul_ps(g, h);
            let far = _mm512_cmp_ps_mask::<_CMP_NLE_UQ>(z, _mm512_set1_ps(SLOPE_END));
            if far != 0 {
                return exact(super::gradient, y, far, x, g);
            }
            y
        }

        /// 1/2 + y where x is positive, 1/2 - y where it is negative.
        #[inline]
        fn signed_sum(y: __m512, x: __m512) -> __m512 {
            let sign = _mm512_and_si512(_mm512_castps_si512(x), _mm512_set1_epi32(i32::MIN));
            let y = _mm512_castsi512_ps(_mm512_xor_si512(_mm512_castps_si512(y), sign));
            _mm512_add_ps(y, _mm512_set1_ps(0.5))
        }

        /// gelu as exact as the narrow types ask for, where |x| is at most `HALF_END`.
        #[inline]
        fn rough(x: __m512, table: &Table<5>) -> __m512 {
            _mm512_mul_ps(x, table.at(x, HALF_STEP, -16.0))
        }

        /// The same for any number.
        #[inline]
        fn rough_all(x: __m512, table: &Table<5>) -> __m512 {
            let y = rough(x, table);
            let far = _mm512_cmp_ps_mask::<_CMP_NLE_UQ>(abs(x), _mm512_set1_ps(HALF_END));
            if far != 0 {
                let y = exact(|x, _| super::half(x), y, far, x, x);
                let nan = _mm512_cmp_ps_mask::<_CMP_UNORD_Q>(y, y);
                return _mm512_mask_mov_ps(y, nan, _mm512_set1_ps(f32::NAN));
            }
            y
        }

        /// The first `n` lanes.
        fn lanes(n: usize) -> __mmask16 {
            ((1u32 << n.min(LANES)) - 1) as __mmask16
        }

        pub unsafe fn forward(_: *const (), x: *const *const f32, y: *mut f32, n: usize) {
            // SAFETY: `x` points to `n` numbers, and `y` has room for `n`; masks end there, and who
            // takes the kernel asked for AVX-512.
            unsafe {
                let (x, table) = (*x, Table::new(&AREA));
                let mut i = 0;
                while i + LANES <= n {
                    _mm512_storeu_ps(y.add(i), gelu(_mm512_loadu_ps(x.add(i)), &table));
                    i += LANES;
                }
                if i < n {
                    let k = lanes(n - i);
                    let v = gelu(_mm512_maskz_loadu_ps(k, x.add(i)), &table);
                    _mm512_mask_storeu_ps(y.add(i), k, v);
                }
            }
        }

        pub unsafe fn half(_: *const (), x: *const *const f32, y: *mut f32, n: usize) {
            // SAFETY: `x` points to `n` numbers, and `y` has room for `n`; masks end there, and who
            // takes the kernel asked for AVX-512.
            unsafe {
                let (x, table) = (*x, Table::new(&HALF));
                let mut i = 0;
                while i < n {
                    let k = lanes(n - i);
                    let v = rough_all(_mm512_maskz_loadu_ps(k, x.add(i)), &table);
                    _mm512_mask_storeu_ps(y.add(i), k, v);
                    i += LANES;
                }
            }
        }

        pub unsafe fn gradient(_: *const (), x: *const *const f32, d: *mut f32, n: usize) {
            // SAFETY: `x` points to g, y and x of `n` numbers, and `d` has room for `n`; masks end
            // there, and who takes the kernel asked for AVX-512.
            unsafe {
                let (g, x, table) = (*x, *x.add(2), Table::new(&SLOPE));
                let mut i = 0;
                while i + LANES <= n {
                    let v = slope(_mm512_loadu_ps(x.add(i)), _mm512_loadu_ps(g.add(i)), &table);
                    _mm512_storeu_ps(d.add(i), v);
                    i += LANES;
                }
                if i < n {
                    let k = lanes(n - i);
                    let (x, g) = (
                        _mm512_maskz_loadu_ps(k, x.add(i)),
                        _mm512_maskz_loadu_ps(k, g.add(i)),
                    );
                    _mm512_mask_storeu_ps(d.add(i), k, slope(x, g, &table));
                }
            }
        }

        /// To the nearest bfloat16, ties to even, in the upper half; the only NaN is `f32::NAN`.
        #[inline]
        fn to_upper(y: __m512) -> __m512i {
            let bits = _mm512_castps_si512(y);
            let odd = _mm512_and_si512(_mm512_srli_epi32::<16>(bits), _mm512_set1_epi32(1));
            _mm512_add_epi32(_mm512_add_epi32(bits, _mm512_set1_epi32(0x7fff)), odd)
        }

        /// 32 numbers of bfloat16. Those of even and odd places go apart: what widens and narrows them
        /// crosses no lane.
        #[inline]
        fn pairs(v: __m512i, table: &Table<5>) -> __m512i {
            // The largest bfloat16 up to `HALF_END`.
            let end = _mm512_set1_epi16((HALF_END.to_bits() >> 16) as i16);
            let upper = _mm512_set1_epi32(0xffff_0000_u32 as i32);
            let even = _mm512_castsi512_ps(_mm512_slli_epi32::<16>(v));
            let odd = _mm512_castsi512_ps(_mm512_and_si512(v, upper));
            let size = _mm512_and_si512(v, _mm512_set1_epi16(0x7fff));
            let (even, odd) = if _mm512_cmpgt_epi16_mask(size, end) == 0 {
                (rough(even, table), rough(odd, table))
            } else {
                (rough_all(even, table), rough_all(odd, table))
            };
            let even = _mm512_srli_epi32::<16>(to_upper(even));
            // even | (odd & upper)
            _mm512_ternarylogic_epi32::<0xf8>(even, to_upper(odd), upper)
        }

        pub unsafe fn bfloat16(_: *const (), x: *const *const u16, y: *mut u16, n: usize) {
            // SAFETY: `x` points to `n` numbers, and `y` has room for `n`; masks end there, and who
            // takes the kernel asked for AVX-512.
            unsafe {
                let (x, table) = (*x, Table::new(&HALF));
                let mut i = 0;
                while i + 32 <= n {
                    let v = _mm512_loadu_epi16(x.add(i).cast());
                    _mm512_storeu_epi16(y.add(i).cast(), pairs(v, &table));
                    i += 32;
                }
                if i < n {
                    let k = ((1u64 << (n - i)) - 1) as __mmask32;
                    let v = _mm512_maskz_loadu_epi16(k, x.add(i).cast());
                    _mm512_mask_storeu_epi16(y.add(i).cast(), k, pairs(v, &table));
                }
            }
        }

        pub unsafe fn float16(_: *const (), x: *const *const u16, y: *mut u16, n: usize) {
            // SAFETY: `x` points to `n` numbers, and `y` has room for `n`; masks end there, and who
            // takes the kernel asked for AVX-512.
            unsafe {
                let (x, table) = (*x, Table::new(&HALF));
                let mut i = 0;
                while i < n {
                    let k = lanes(n - i);
                    let v = _mm512_cvtph_ps(_mm256_maskz_loadu_epi16(k, x.add(i).cast()));
                    let v = _mm512_cvtps_ph::<0>(rough_all(v, &table));
                    _mm256_mask_storeu_epi16(y.add(i).cast(), k, v);
                    i += LANES;
                }
            }
        }
    }
}

#[cfg(all(target_arch = "x86_64", not(debug_assertions)))]
#[rustfmt::skip]
mod tables {
    /// The area under the density from 0 to z in steps of 3/16, to 2^-25.
    pub const AREA: [[f32; 32]; 5] = [
        [
            0.0, 0.074_365_69, 0.146_169_77, 0.213_112_3,
            0.273_372_65, 0.325_749_28, 0.369_705_47, 0.405_324_25,
            0.433_192_8, 0.454_246_37, 0.469_603_63, 0.480_419_93,
            0.487_775_53, 0.492_605_4, 0.495_667_55, 0.497_542_1,
            0.498_650_1, 0.499_282_45, 0.499_630_93, 0.499_816_33,
            0.499_911_58, 0.499_958_84, 0.499_981_46, 0.499_991_92,
            0.499_996_6, 0.499_998_63, 0.499_999_46, 0.499_999_8,
            0.499_999_9, 0.499_999_97, 0.5, 0.5,
        ],
        [
            0.398_942_05, 0.391_990_7, 0.371_854_93, 0.340_567_5,
            0.301_137_45, 0.257_074, 0.211_876_78, 0.168_593_33,
            0.129_517_73, 0.096_061_62, 0.068_786_35, 0.047_553_934,
            0.031_739_663, 0.020_452_663, 0.012_724_158, 0.007_642_578,
            0.004_431_822, 0.002_481_168_1, 0.001_341_101_5, 6.998_396e-4,
            3.525_874e-4, 1.715_009_1e-4, 8.053_736e-5, 3.651_401e-5,
            1.598_280_1e-5, 6.754_253_7e-6, 2.755_706e-6, 1.085_473_9e-6,
            4.127_972_5e-7, 1.515_601_6e-7, 5.372_347_2e-8, 0.0,
        ],
        [
            0.0, -0.036_749_11, -0.069_722_764, -0.095_784_56,
            -0.112_926_46, -0.120_503_336, -0.119_180_58, -0.110_639_274,
            -0.097_138_21, -0.081_051_92, -0.064_487_17, -0.049_039_982,
            -0.035_707_13, -0.024_926_71, -0.016_700_495, -0.010_747_416,
            -0.006_647_77, -0.003_954_393_3, -0.002_263_133_4, -0.001_246_607_3,
            -6.611_137e-4, -3.376_504e-4, -1.661_131_8e-4, -7.873_618e-5,
            -3.596_288e-5, -1.583_111_8e-5, -6.717_455_6e-6, -2.747_81e-6,
            -1.083_687_3e-6, -4.120_960_6e-7, -1.511_150_5e-7, 0.0,
        ],
        [
            -0.066_380_925, -0.062_934_96, -0.053_186_476, -0.038_764_194,
            -0.021_959_52, -0.005_223_599_7, 0.009_321_999, 0.020_238_468,
            0.026_918_41, 0.029_528_901, 0.028_803_97, 0.025_770_023,
            0.021_485_29, 0.016_849_1, 0.012_502_853, 0.008_814_59,
            0.005_921_295_4, 0.003_798_296_2, 0.002_330_419, 0.001_369_345,
            7.713_899e-4, 4.169_481_4e-4, 2.163_905_6e-4, 1.078_933_5e-4,
            5.170_876_5e-5, 2.383_025_1e-5, 1.056_439_7e-5, 4.506_594_5e-6,
            1.850_370_7e-6, 7.314_424_7e-7, 2.784_230_7e-7, 0.0,
        ],
        [
            0.0, 0.009_063_211, 0.016_584_707, 0.021_385_731,
            0.022_904_832, 0.021_274_252, 0.017_210_975, 0.011_774_52,
            0.006_078_346, 0.001_042_237_3, -0.002_755_602_6, -0.005_110_168,
            -0.006_126_269_7, -0.006_103_027, -0.005_411_332_5, -0.004_397_116_6,
            -0.003_325_099_4, -0.002_361_512_5, -0.001_584_556_9, -0.001_008_654_2,
            -6.109_224e-4, -3.528_656e-4, -1.946_983_7e-4, -1.027_634_9e-4,
            -5.194_197_4e-5, -2.516_487_8e-5, -1.169_488_4e-5, -5.216_728e-6,
            -2.234_792_6e-6, -9.198_474e-7, -3.639_232e-7, 0.0,
        ],
    ];

    /// The derivative of gelu less 1/2, an odd function, in steps of 13/64, to 2^-25.
    pub const SLOPE: [[f32; 32]; 6] = [
        [
            0.0, 0.159_861_86, 0.306_953_82, 0.430_772_93,
            0.524_761_8, 0.587_007_94, 0.619_888_54, 0.628_892,
            0.621_043_4, 0.603_386_2, 0.581_859_5, 0.560_717_7,
            0.542_458_8, 0.528_107_94, 0.517_666, 0.510_562_84,
            0.506_017_4, 0.503_269_8, 0.501_696_3, 0.500_840_7,
            0.500_398_34, 0.500_180_5, 0.500_078_26, 0.500_032_5,
            0.500_012_9, 0.500_004_9, 0.500_001_8, 0.500_000_6,
            0.500_000_2, 0.500_000_06, 0.5, 0.5,
        ],
        [
            0.797_884_6, 0.765_468_8, 0.674_060_9, 0.539_642_4,
            0.384_249_33, 0.230_688_65, 0.097_696_885, -0.003_154_476_9,
            -0.068_251_08, -0.100_684_09, -0.107_776_51, -0.098_365_22,
            -0.080_612_294, -0.060_725_87, -0.042_584_952, -0.028_013_803,
            -0.017_373_724, -0.010_193_435_5, -0.005_672_055_3, -0.002_998_917_1,
            -0.001_508_750_3, -7.230_877_5e-4, -3.304_308e-4, -1.440_815_1e-4,
            -5.998_481_4e-5, -2.385_632_4e-5, -9.067_439e-6, -3.294_937e-6,
            -1.145_067_1e-6, -3.806_782_7e-7, -1.210_975_3e-7, -3.686_858_8e-8,
        ],
        [
            0.0, -0.157_122_69, -0.286_150_63, -0.366_331_82,
            -0.389_114_4, -0.359_058_05, -0.290_892_24, -0.204_181_2,
            -0.117_671_385, -0.045_120_71, 0.006_485_747, 0.036_445_32,
            0.048_392_86, 0.047_931_638, 0.040_655_35, 0.030_958_446,
            0.021_637_995, 0.014_052_806, 0.008_544_988, 0.004_889_403,
            0.002_642_042_7, 0.001_351_750_8, 6.561_247e-4, 3.026_077e-4,
            1.327_737_3e-4, 5.547_757_2e-5, 2.209_299e-5, 8.391_183e-6,
            3.041_427_4e-6, 1.052_529_6e-6, 3.479_214e-7, 1.098_957_44e-7,
        ],
        [
            -0.265_960_96, -0.241_829_86, -0.175_832_67, -0.084_962_89,
            0.008_855_999, 0.085_608_274, 0.132_603_54, 0.146_742_43,
            0.133_376_55, 0.102_844_9, 0.066_395_1, 0.032_995_574,
            0.007_804_633, -0.007_756_273, -0.014_913_199, -0.016_153_073,
            -0.014_077_876, -0.010_736_234_5, -0.007_411_858_5, -0.004_713_043,
            -0.002_788_732_8, -0.001_545_609_8, -8.060_197e-4, -3.967_934_8e-4,
            -1.848_513e-4, -8.164_775_5e-5, -3.424_392e-5, -1.365_428_6e-5,
            -5.181_268_5e-6, -1.872_613_1e-6, -6.450_777_6e-7, -2.119_290_6e-7,
        ],
        [
            0.0, 0.057_843_566, 0.100_480_564, 0.117_880_91,
            0.108_221_38, 0.077_667_15, 0.037_308_846, -0.001_167_677_9,
            -0.029_206_933, -0.043_227_88, -0.044_348_374, -0.036_652_334,
            -0.025_045_034, -0.013_577_594, -0.004_649_953, 9.707_352e-4,
            0.003_650_381_2, 0.004_274_703_6, 0.003_769_611_5, 0.002_843_046_6,
            0.001_918_945_1, 0.001_184_704, 6.773_308e-4, 3.614_279_6e-4,
            1.809_538_2e-4, 8.532_588e-5, 3.800_008_6e-5, 1.601_848e-5,
            6.402_292e-6, 2.429_562_5e-6, 8.763_811_4e-7, 3.007_754_4e-7,
        ],
        [
            0.059_694_58, 0.051_733_93, 0.030_600_293, 0.003_383_325_6,
            -0.021_382_509, -0.036_968_082, -0.040_607_013, -0.033_787_64,
            -0.020_871_97, -0.006_945_19, 0.004_059_883, 0.010_296_528,
            0.011_911_807, 0.010_294_467, 0.007_174_741_5, 0.003_961_805_7,
            0.001_462_196_5, -8.320_118e-5, -7.993_724_4e-4, -9.596_238e-4,
            -8.322_322_4e-4, -6.091_603_4e-4, -3.963_759_5e-4, -2.349_174_8e-4,
            -1.285_420_6e-4, -6.549_008e-5, -3.124_547_6e-5, -1.401_683_4e-5,
            -5.930_363e-6, -2.371_892e-6, -8.984_461_6e-7, -3.227_898_7e-7,
        ],
    ];

    /// The area left of x in steps of 17/64 from the 16th below 0, to 2^-15.9 of it.
    pub const HALF: [[f32; 32]; 5] = [
        [
            1.068_852_5e-5, 3.382_898e-5, 1.001_055_4e-4, 2.770_660_8e-4,
            7.175_423e-4, 0.001_739_655_7, 0.003_950_750_5, 0.008_409_861_5,
            0.016_793_307, 0.031_487_003, 0.055_496_02, 0.092_068_41,
            0.144_004_37, 0.212_761_82, 0.297_622_77, 0.395_264_03,
            0.5, 0.604_736, 0.702_377_2, 0.787_238_2,
            0.855_995_6, 0.907_931_57, 0.944_503_96, 0.968_513,
            0.983_206_7, 0.991_590_14, 0.996_049_2, 0.998_260_3,
            0.999_282_5, 0.999_722_96, 0.999_899_9, 0.999_966_14,
        ],
        [
            4.771_006e-5, 1.424_256_5e-4, 3.962_046_8e-4, 0.001_027_081_2,
            0.002_481_1, 0.005_585_198_8, 0.011_716_245, 0.022_903_087,
            0.041_721_11, 0.070_823, 0.112_033_94, 0.165_151_36,
            0.226_867_38, 0.290_415_38, 0.346_437_48, 0.385_112_82,
            0.398_941_3, 0.385_112_82, 0.346_437_48, 0.290_415_38,
            0.226_867_38, 0.165_151_36, 0.112_033_94, 0.070_823,
            0.041_721_11, 0.022_903_087, 0.011_716_245, 0.005_585_198_8,
            0.002_481_1, 0.001_027_081_2, 3.962_046_8e-4, 1.424_256_5e-4,
        ],
        [
            1.013_976_94e-4, 2.837_671_5e-4, 7.367_460_6e-4, 0.001_773_407_4,
            0.003_954_380_3, 0.008_159_784, 0.015_560_793, 0.027_376_447,
            0.044_328_663, 0.065_843_08, 0.089_276_72, 0.109_670_41,
            0.120_522_894, 0.115_712_054, 0.092_022_255, 0.051_147_707,
            0.0, -0.051_147_707, -0.092_022_255, -0.115_712_054,
            -0.120_522_894, -0.109_670_41, -0.089_276_72, -0.065_843_08,
            -0.044_328_663, -0.027_376_447, -0.015_560_793, -0.008_159_784,
            -0.003_954_380_3, -0.001_773_407_4, -7.367_460_6e-4, -2.837_671_5e-4,
        ],
        [
            1.376_431_3e-4, 3.573_403_8e-4, 8.553_476e-4, 0.001_884_000_8,
            0.003_808_642_5, 0.007_041_675_5, 0.011_847_449, 0.018_004_03,
            0.024_417_423, 0.028_929_789, 0.028_636_98, 0.020_891_475,
            0.004_770_240_3, -0.017_687_991, -0.041_355_83, -0.059_474_558,
            -0.066_270_93, -0.059_474_558, -0.041_355_83, -0.017_687_991,
            0.004_770_240_3, 0.020_891_475, 0.028_636_98, 0.028_929_789,
            0.024_417_423, 0.018_004_03, 0.011_847_449, 0.007_041_675_5,
            0.003_808_642_5, 0.001_884_000_8, 8.553_476e-4, 3.573_403_8e-4,
        ],
        [
            1.282_8e-4, 3.063_564_4e-4, 6.679_363_4e-4, 0.001_322_964_6,
            0.002_363_524, 0.003_766_540_7, 0.005_253_583, 0.006_178_193_7,
            0.005_572_303, 0.002_478_362, -0.003_443_497_7, -0.011_293_606,
            -0.018_755_72, -0.022_740_822, -0.020_772_424, -0.012_441_542,
            0.0, 0.012_441_542, 0.020_772_424, 0.022_740_822,
            0.018_755_72, 0.011_293_606, 0.003_443_497_7, -0.002_478_362,
            -0.005_572_303, -0.006_178_193_7, -0.005_253_583, -0.003_766_540_7,
            -0.002_363_524, -0.001_322_964_6, -6.679_363_4e-4, -3.063_564_4e-4,
        ],
    ];
}
