//! The floating formats of 8 bits: a table of what codes mean, and one rounding to the nearest.

/// How a format lays out its bits, and what becomes of numbers beyond its largest. One without a
/// mantissa has no sign either: powers of two.
struct Format {
    /// Bits of the mantissa.
    mantissa: u32,
    bias: u32,
    /// The code of the largest number.
    largest: u8,
    /// The bits of a float32 from which on numbers do not round to a code up to that.
    beyond: u32,
    /// The code for numbers beyond, and for NaN.
    over: u8,
    nan: u8,
    /// Whether there is a -0, rather than NaN in its place.
    signed_zero: bool,
}

/// float8_e4m3fn, float8_e5m2, float8_e4m3fnuz, float8_e5m2fnuz and float8_e8m0fnu, as the Open
/// Compute Project's OFP8 and MX formats and Noune et al. 2022, arXiv:2206.02915, define them. The
/// first saturates: what is beyond, infinity too, becomes the largest number.
const FORMATS: [Format; 5] = [
    Format {
        mantissa: 3,
        bias: 7,
        largest: 0x7e,
        beyond: 464f32.to_bits(),
        over: 0x7e,
        nan: 0x7f,
        signed_zero: true,
    },
    Format {
        mantissa: 2,
        bias: 15,
        largest: 0x7b,
        beyond: 65536f32.to_bits(),
        over: 0x7c,
        nan: 0x7f,
        signed_zero: true,
    },
    Format {
        mantissa: 3,
        bias: 8,
        largest: 0x7f,
        beyond: 256f32.to_bits(),
        over: 0x80,
        nan: 0x80,
        signed_zero: false,
    },
    Format {
        mantissa: 2,
        bias: 16,
        largest: 0x7f,
        beyond: 65536f32.to_bits(),
        over: 0x80,
        nan: 0x80,
        signed_zero: false,
    },
    Format {
        mantissa: 0,
        bias: 127,
        largest: 0xfe,
        beyond: f32::INFINITY.to_bits(),
        over: 0xff,
        nan: 0xff,
        signed_zero: false,
    },
];

/// The value of each code of each format, all of which float32 holds.
static VALUES: [[f32; 256]; FORMATS.len()] = {
    let mut all = [[0.0; 256]; FORMATS.len()];
    let mut k = 0;
    while k < FORMATS.len() {
        let mut code = 0;
        while code < 256 {
            all[k][code] = value(&FORMATS[k], code as u8);
            code += 1;
        }
        k += 1;
    }
    all
};

const fn value(f: &Format, code: u8) -> f32 {
    if f.mantissa == 0 {
        return match code {
            0 => f32::from_bits(1 << 22),
            _ if code == f.nan => f32::NAN,
            _ => f32::from_bits((code as u32) << 23),
        };
    }
    let (size, ones) = ((code & 0x7f) as u32, (1 << f.mantissa) - 1);
    let (e, m) = (size >> f.mantissa, size & ones);
    let special = match f.signed_zero {
        true => size > f.largest as u32,
        false => code == f.nan,
    };
    // The mantissa counts steps of the exponent's last place; subnormal numbers share the first's.
    let (steps, e) = match e {
        0 => (m, 1),
        _ => (m | (ones + 1), e),
    };
    let step = f32::from_bits((127 + e - f.bias - f.mantissa) << 23);
    let v = match special {
        true if size == f.over as u32 => f32::INFINITY,
        true => f32::NAN,
        false => steps as f32 * step,
    };
    match code >> 7 {
        0 => v,
        _ => -v,
    }
}

/// What a code of the k-th format means.
#[inline(always)]
pub fn decode(k: usize, code: u8) -> f32 {
    VALUES[k][code as usize]
}

/// The largest number of the k-th format, and whether it has an infinity.
pub fn limits(k: usize) -> (f32, bool) {
    let f = &FORMATS[k];
    (decode(k, f.largest), f.over != f.largest && f.over != f.nan)
}

/// The code of the k-th format that is nearest, ties to even.
#[inline(always)]
pub fn encode(k: usize, v: f32) -> u8 {
    let f = &FORMATS[k];
    let bits = v.to_bits();
    let size = bits & 0x7fff_ffff;
    let fitting = if f.mantissa == 0 {
        // Above 2^-126 a tie goes up: the even one of two powers of two has the even mantissa, 10.
        let normal = (size >= 1 << 23) as u32;
        (size + 0x3f_ffff + normal) >> 23
    } else {
        let shift = 23 - f.mantissa;
        // Added to a number whose last place is the least step, subnormal numbers are rounded to it.
        let large = (128 - f.bias + shift) << 23;
        let small = (f32::from_bits(size) + f32::from_bits(large)).to_bits();
        let small = small.wrapping_sub(large);
        let odd = size >> shift & 1;
        let half = (1 << (shift - 1)) - 1 + odd;
        let normal = size.wrapping_sub((127 - f.bias) << 23).wrapping_add(half) >> shift;
        if size < (128 - f.bias) << 23 {
            small
        } else {
            normal
        }
    };
    let over = if size > f32::INFINITY.to_bits() {
        f.nan
    } else {
        f.over
    };
    let code = if size < f.beyond {
        fitting
    } else {
        over as u32
    };
    let signed = f.mantissa > 0 && (f.signed_zero || code != 0);
    let sign = if signed { bits >> 24 & 0x80 } else { 0 };
    (code | sign) as u8
}

/// An element of the k-th format.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(transparent)]
pub struct F8<const K: usize>(pub u8);

#[cfg(test)]
mod tests {
    use super::*;

    /// The values of the formats by their definition, from the least positive up to the largest.
    fn positive(k: usize) -> Vec<f64> {
        let (bias, mantissa, most): (i32, i32, f64) = [
            (7, 3, 448.0),
            (15, 2, 57344.0),
            (8, 3, 240.0),
            (16, 2, 57344.0),
        ][k];
        let steps = 1 << mantissa;
        let subnormal = (1..steps).map(|m| m as f64 * 2f64.powi(1 - bias - mantissa));
        let normal = (1..32).flat_map(|e| {
            (steps..2 * steps).map(move |m| m as f64 * 2f64.powi(e - bias - mantissa))
        });
        subnormal.chain(normal).take_while(|&v| v <= most).collect()
    }

    #[test]
    fn codes_mean_what_the_formats_define() {
        for k in 0..4 {
            let want = positive(k);
            for (i, &v) in want.iter().enumerate() {
                let code = i as u8 + 1;
                assert_eq!(
                    (decode(k, code) as f64, decode(k, code | 0x80) as f64),
                    (v, -v)
                );
                assert_eq!(
                    (encode(k, v as f32), encode(k, -v as f32)),
                    (code, code | 0x80)
                );
            }
            let zero = decode(k, 0x80);
            assert_eq!((decode(k, 0).to_bits(), zero.is_nan()), (0, k > 1));
            assert_eq!(encode(k, -0.0), if k > 1 { 0 } else { 0x80 });
        }
        assert_eq!(
            (decode(1, 0x7c), decode(1, 0xfc)),
            (f32::INFINITY, f32::NEG_INFINITY)
        );
        for (k, nans) in [
            vec![0x7f, 0xff],
            vec![0x7d, 0x7e, 0x7f, 0xfd, 0xfe, 0xff],
            vec![0x80],
            vec![0x80],
            vec![0xff],
        ]
        .iter()
        .enumerate()
        {
            for code in 0..=255u8 {
                assert_eq!(
                    decode(k, code).is_nan(),
                    nans.contains(&code),
                    "{k} {code:x}"
                );
            }
        }
        for code in 0..255u8 {
            assert_eq!(decode(4, code) as f64, 2f64.powi(code as i32 - 127));
            assert_eq!(encode(4, decode(4, code)), code);
            assert_eq!(encode(4, -decode(4, code)), code);
        }
    }

    #[test]
    fn numbers_between_go_to_the_nearest_and_from_halfway_to_the_even_code() {
        for k in 0..4 {
            let mut all = positive(k);
            all.insert(0, 0.0);
            for (i, pair) in all.windows(2).enumerate() {
                let (code, half) = (i as u8, ((pair[0] + pair[1]) / 2.0) as f32);
                assert_eq!(encode(k, half), code + (code & 1), "{k} {half}");
                assert_eq!(encode(k, half.next_up()), code + 1, "{k} {half}");
                assert_eq!(encode(k, half.next_down()), code, "{k} {half}");
            }
            let top = all.len() as u8 - 1;
            let step = all[all.len() - 1] - all[all.len() - 2];
            let half = (all[all.len() - 1] + step / 2.0) as f32;
            assert_eq!(encode(k, half.next_down()), top);
            let (past, infinite, nan) = [
                (0x7e, 0x7e, 0x7f),
                (0x7c, 0x7c, 0x7f),
                (0x80, 0x80, 0x80),
                (0x80, 0x80, 0x80),
            ][k];
            for v in [half.next_up(), 1e9, f32::MAX] {
                assert_eq!(
                    (encode(k, v), encode(k, -v)),
                    (past, past | 0x80),
                    "{k} {v}"
                );
            }
            assert_eq!(encode(k, f32::INFINITY), infinite);
            assert_eq!(encode(k, f32::NAN), nan);
            assert_eq!(encode(k, 1e-40), 0);
        }
        // Powers of two: a tie goes up but between the least two.
        let tie = |e: i32| (1.5 * 2f64.powi(e)) as f32;
        for e in -126..127 {
            let code = (e + 127) as u8;
            assert_eq!(encode(4, tie(e)), code + 1);
            assert_eq!(encode(4, tie(e).next_down()), code);
        }
        assert_eq!(
            [0.0, 1e-45, tie(-127), tie(127), f32::INFINITY, f32::NAN].map(|v| encode(4, v)),
            [0, 0, 1, 255, 255, 255]
        );
    }
}
