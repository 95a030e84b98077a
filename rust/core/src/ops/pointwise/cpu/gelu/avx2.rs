//! Vector code of gelu for AVX2: functions of the normal distribution as polynomials on eight equal
//! parts of an interval, whose coefficients are permuted to the lanes.

use crate::compiled;
use std::arch::x86_64::*;

const LANES: usize = 8;
/// Adding this rounds to an integer, whose low bits the sum holds.
const MAGIC: f32 = 12_582_912.0;
const STEP: f32 = 13.0 / 16.0;
const SLOPE_STEP: f32 = 27.0 / 32.0;
/// Beyond this the formula is computed as it stands.
const SLOPE_END: f32 = 7.49 * SLOPE_STEP;

compiled! { avx2:
    /// The polynomial of the part that lies nearest to z.
    #[inline]
    fn at<const N: usize>(c: &[[f32; 8]; N], z: __m256, step: f32) -> __m256 {
        let magic = _mm256_set1_ps(MAGIC);
        let m = _mm256_fmadd_ps(z, _mm256_set1_ps(1.0 / step), magic);
        let part = _mm256_castps_si256(m);
        let t = _mm256_fnmadd_ps(_mm256_sub_ps(m, magic), _mm256_set1_ps(step), z);
        // SAFETY: there are eight numbers.
        let c = |i: usize| unsafe { _mm256_permutevar8x32_ps(_mm256_loadu_ps(c[i].as_ptr()), part) };
        let mut y = c(N - 1);
        for i in (0..N - 1).rev() {
            y = _mm256_fmadd_ps(y, t, c(i));
        }
        y
    }

    #[inline]
    fn gelu(x: __m256) -> __m256 {
        let sign = _mm256_set1_ps(-0.0);
        let z = _mm256_min_ps(_mm256_andnot_ps(sign, x), _mm256_set1_ps(7.0 * STEP));
        let area = _mm256_or_ps(at(&AREA, z, STEP), _mm256_and_ps(x, sign));
        _mm256_mul_ps(x, _mm256_add_ps(area, _mm256_set1_ps(0.5)))
    }

    #[inline]
    fn slope(x: __m256, g: __m256) -> __m256 {
        let sign = _mm256_set1_ps(-0.0);
        let z = _mm256_andnot_ps(sign, x);
        let h = _mm256_xor_ps(at(&SLOPE, z, SLOPE_STEP), _mm256_and_ps(x, sign));
        let y = _mm256_mul_ps(g, _mm256_add_ps(h, _mm256_set1_ps(0.5)));
        let far = _mm256_cmp_ps::<_CMP_NLE_UQ>(z, _mm256_set1_ps(SLOPE_END));
        match _mm256_movemask_ps(far) {
            0 => y,
            _ => exact(x, g, y, far),
        }
    }

    /// The formula itself where the mask says.
    #[cold]
    #[inline(never)]
    fn exact(x: __m256, g: __m256, y: __m256, far: __m256) -> __m256 {
        let (mut xs, mut gs) = ([0.0; LANES], [0.0; LANES]);
        // SAFETY: both arrays have LANES numbers.
        unsafe {
            _mm256_storeu_ps(xs.as_mut_ptr(), x);
            _mm256_storeu_ps(gs.as_mut_ptr(), g);
            for (x, g) in xs.iter_mut().zip(gs) {
                *x = super::gradient(*x, g);
            }
            _mm256_blendv_ps(y, _mm256_loadu_ps(xs.as_ptr()), far)
        }
    }

    /// As many numbers as there are, fewer than eight, and zeros.
    #[inline]
    unsafe fn last(x: *const f32, n: usize) -> __m256 {
        let mut few = [0.0; LANES];
        // SAFETY: `x` points to `n` numbers.
        unsafe {
            std::ptr::copy_nonoverlapping(x, few.as_mut_ptr(), n);
            _mm256_loadu_ps(few.as_ptr())
        }
    }

    /// Writes as many numbers as there is room for, fewer than eight.
    #[inline]
    unsafe fn write_last(v: __m256, y: *mut f32, n: usize) {
        let mut few = [0.0; LANES];
        // SAFETY: `y` has room for `n` numbers.
        unsafe {
            _mm256_storeu_ps(few.as_mut_ptr(), v);
            std::ptr::copy_nonoverlapping(few.as_ptr(), y, n);
        }
    }

    pub unsafe fn forward(_: *const (), x: *const *const f32, y: *mut f32, n: usize) {
        // SAFETY: `x` points to `n` numbers, and `y` has room for `n`; who takes the kernel asked for
        // AVX2.
        unsafe {
            let (x, whole) = (*x, n / LANES * LANES);
            // Whether there are eight is not asked of each vector: that took a fifth of the time.
            for i in (0..whole).step_by(LANES) {
                _mm256_storeu_ps(y.add(i), gelu(_mm256_loadu_ps(x.add(i))));
            }
            if whole < n {
                let v = gelu(last(x.add(whole), n - whole));
                write_last(v, y.add(whole), n - whole);
            }
        }
    }

    pub unsafe fn gradient(_: *const (), x: *const *const f32, d: *mut f32, n: usize) {
        // SAFETY: `x` points to g, y and x of `n` numbers, and `d` has room for `n`; who takes the
        // kernel asked for AVX2.
        unsafe {
            let (g, x, whole) = (*x, *x.add(2), n / LANES * LANES);
            for i in (0..whole).step_by(LANES) {
                let v = slope(_mm256_loadu_ps(x.add(i)), _mm256_loadu_ps(g.add(i)));
                _mm256_storeu_ps(d.add(i), v);
            }
            if whole < n {
                let left = n - whole;
                let v = slope(last(x.add(whole), left), last(g.add(whole), left));
                write_last(v, d.add(whole), left);
            }
        }
    }
}

/// The area under the density from 0 to z, to 2^-25.
#[rustfmt::skip]
const AREA: [[f32; 8]; 8] = [
    [0.0, 0.291_747_6, 0.447_918_7, 0.492_605_4, 0.499_422_97, 0.499_975_7, 0.499_999_46, 0.5],
    [0.398_942_3, 0.286_786_68, 0.106_538_266, 0.020_452_674, 0.002_029_048, 0.000_104_023_72, 2.755_940_4e-6, 3.773_142_5e-8],
    [0.0, -0.116_506_8, -0.086_562_55, -0.024_926_681, -0.003_297_173_4, -0.000_211_302_73, -6.719_117e-6, -1.073_951_7e-7],
    [-0.066_490_255, -0.016_243_853, 0.029_131_554, 0.016_844_187, 0.003_233_786_4, 0.000_268_795_18, 1.045_723_55e-5, 1.971_759_2e-7],
    [0.0, 0.022_708_772, 0.002_598_658_4, -0.006_110_429_3, -0.002_078_820_7, -0.000_237_640_69, -1.157_902_6e-5, -2.595_264_7e-7],
    [0.009_969_721, -0.001_252_690_6, -0.005_212_160_8, 0.000_451_225, 0.000_865_852_3, 0.000_152_890_66, 9.752_055e-6, 2.676_348_2e-7],
    [0.0, -0.002_775_331_5, 0.001_004_566_7, 0.000_635_733_25, -0.000_183_120_14, -7.316_146_4e-5, -6.824_764e-6, -2.476_159_6e-7],
    [-0.001_149_923_5, 0.000_458_658_3, 0.000_372_218_52, -0.000_266_198_65, -1.663_036_7e-5, 2.333_786_7e-5, 3.413_931_4e-6, 1.591_171_2e-7],
];
/// That area and z times the density, to the last digits of a float32.
#[rustfmt::skip]
const SLOPE: [[f32; 8]; 9] = [
    [0.0, 0.536_389_95, 0.616_350_2, 0.535_331_3, 0.504_157_2, 0.500_217_5, 0.500_005_3, 0.500_000_06],
    [0.797_884_5, 0.359_968_72, -0.081_427_14, -0.071_410_8, -0.012_593_943, -0.000_860_506_14, -2.565_116_3e-5, -3.491_109e-7],
    [0.0, -0.387_656_3, -0.093_399_644, 0.049_365_16, 0.016_726_004, 0.001_585_334_8, 5.943_379_4e-5, 9.682_841e-7],
    [-0.265_958_58, 0.022_195_153, 0.125_272_21, -0.000_545_435_3, -0.012_072_858, -0.001_780_930_6, -8.710_854e-5, -1.728_815_5e-6],
    [0.0, 0.104_886_72, -0.035_223_998, -0.019_527_927, 0.004_233_909_3, 0.001_330_762_6, 8.997_491e-5, 2.224_016e-6],
    [0.059_781_723, -0.024_545_792, -0.016_488_792, 0.011_482_976, 0.000_394_893_14, -0.000_663_092_9, -6.884_757e-5, -2.176_750_3e-6],
    [0.0, -0.016_015_62, 0.011_740_104, -0.001_323_244_4, -0.001_174_240_7, 0.000_190_255_09, 3.978_972e-5, 1.700_593_9e-6],
    [-0.009_048_261, 0.005_604_296_5, -0.000_182_991_98, -0.001_401_962_8, 0.000_517_243_1, 6.029_099e-6, -1.730_216e-5, -1.159_121_8e-6],
    [0.0, 0.001_525_868_3, -0.001_523_808_8, 0.000_621_352_9, -5.618_625e-5, -3.021_686_1e-5, 4.898_565_7e-6, 5.709_379e-7],
];
