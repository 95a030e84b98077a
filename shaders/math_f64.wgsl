// Elementary functions for pointwise bodies in float64. Vulkan has only the algebraic ones; the others are
// series of what is left after a reduction, by terms until none counts.
fn m_is_nan(x: f64) -> bool {
    return long_nan(x);
}
// By a choice: the union of masked words is miscompiled by LLVM 15 where there is AVX-512, which
// turns `i1e` wrong on software Vulkan.
fn m_copysign(x: f64, s: f64) -> f64 {
    return select(x, -x, ((bitcast<u64>(x) ^ bitcast<u64>(s)) >> 63u) != 0lu);
}
fn m_abs(x: f64) -> f64 {
    return m_copysign(x, f64(1.0));
}
fn m_neg(x: f64) -> f64 {
    return -x;
}
fn m_max(a: f64, b: f64) -> f64 {
    return larger(a, b);
}
fn m_min(a: f64, b: f64) -> f64 {
    return smaller(a, b);
}
fn m_sign(x: f64) -> f64 {
    if (m_is_nan(x) || !m_is_true(x)) { return f64(0.0); }
    return m_copysign(f64(1.0), x);
}
fn m_sqrt(x: f64) -> f64 {
    return sqrt(x);
}
fn m_rsqrt(x: f64) -> f64 {
    return f64(1.0) / sqrt(x);
}
fn m_floor(x: f64) -> f64 {
    return m_copysign(floor(x), x);
}
fn m_ceil(x: f64) -> f64 {
    return m_copysign(ceil(x), x);
}
fn m_trunc(x: f64) -> f64 {
    return m_copysign(trunc(x), x);
}
fn m_round(x: f64) -> f64 {
    return m_copysign(round(x), x);
}

fn m_inf() -> f64 {
    return bitcast<f64>(0x7ff0000000000000lu);
}
fn m_nan() -> f64 {
    return bitcast<f64>(0x7ff8000000000000lu);
}
fn m_is_inf(x: f64) -> bool {
    return (bitcast<u64>(x) & 0x7ffffffffffffffflu) == 0x7ff0000000000000lu;
}
fn m_is_true(x: f64) -> bool {
    return long_true(x);
}
fn m_differ(a: f64, b: f64) -> bool {
    return ((bitcast<u64>(a) ^ bitcast<u64>(b)) >> 63u) == 1lu;
}
// The leading 26 bits, whose products are exact.
fn m_leading(x: f64) -> f64 {
    return bitcast<f64>(bitcast<u64>(x) & 0xfffffffff8000000lu);
}
// x times 2^64.
fn m_raised(x: f64) -> f64 {
    return x * 18446744073709551616.0lf;
}
// x 2^n in two steps, so that denormals come out.
fn m_scale2(x: f64, n: i32) -> f64 {
    let a = n >> 1u;
    let b = n - a;
    return x * bitcast<f64>(u64(u32(a + 1023)) << 52u) * bitcast<f64>(u64(u32(b + 1023)) << 52u);
}

fn m_exp_series(r: f64) -> f64 {
    return 1.0lf + r * (1.0lf + r * (0.5lf + r * (0.16666666666666666lf + r * (0.041666666666666664lf + r *
        (0.008333333333333333lf + r * (0.001388888888888889lf + r * (0.0001984126984126984lf + r *
        (2.48015873015873e-05lf + r * (2.7557319223985893e-06lf + r * (2.755731922398589e-07lf + r *
        (2.505210838544172e-08lf + r * (2.08767569878681e-09lf + r * (1.6059043836821613e-10lf)))))))))))));
}
// e^(n ln 2 + r) for |r| <= ln(2) / 2.
fn m_exp_parts(n: f64, r: f64) -> f64 {
    return m_scale2(m_exp_series(r), i32(n));
}
fn m_exp(x: f64) -> f64 {
    if (m_is_nan(x)) { return x; }
    if (x > 709.79lf) { return m_inf(); }
    if (x < -745.2lf) { return 0.0lf; }
    let n = round(x * 1.4426950408889634lf);
    let r = (x - n * 0.693145751953125lf) - n * 1.4286068203094173e-06lf;
    return m_exp_parts(n, r);
}
fn m_decay(x: f64) -> f64 {
    return m_exp(x);
}
fn m_exp2(x: f64) -> f64 {
    if (m_is_nan(x)) { return x; }
    if (x >= 1024.0lf) { return m_inf(); }
    if (x < -1075.0lf) { return 0.0lf; }
    let n = round(x);
    return m_exp_parts(n, (x - n) * 0.6931471805599453lf);
}
fn m_expm1(x: f64) -> f64 {
    if (!m_is_true(x) || m_is_nan(x)) { return x; }
    if (x > 0.5lf || x < -0.5lf) { return m_exp(x) - 1.0lf; }
    return x * (1.0lf + x * (0.5lf + x * (0.16666666666666666lf + x * (0.041666666666666664lf + x *
        (0.008333333333333333lf + x * (0.001388888888888889lf + x * (0.0001984126984126984lf + x *
        (2.48015873015873e-05lf + x * (2.7557319223985893e-06lf + x * (2.755731922398589e-07lf + x *
        (2.505210838544172e-08lf + x * (2.08767569878681e-09lf + x * (1.6059043836821613e-10lf + x *
        (1.1470745597729725e-11lf + x * (7.647163731819816e-13lf + x * (4.779477332387385e-14lf + x *
        (2.8114572543455206e-15lf + x * (1.5619206968586225e-16lf))))))))))))))))));
}

// A positive finite x as m 2^e, m within a factor of sqrt(2) of one; and 2 s + s^3 q = ln m for
// s = (m - 1) / (m + 1), s in two parts.
struct Logarithm {
    e: f64,
    s: f64,
    low: f64,
    rest: f64,
}
fn m_ln_split(x: f64) -> Logarithm {
    var bits = bitcast<u64>(x);
    var e = 0;
    if (bits < 0x0010000000000000lu) {
        bits = bitcast<u64>(x * 18014398509481984.0lf);
        e = -54;
    }
    var m = bitcast<f64>((bits & 0x000ffffffffffffflu) | 0x3ff0000000000000lu);
    e += i32(u32(bits >> 52u)) - 1023;
    if (m > 1.4142135623730951lf) {
        m *= 0.5lf;
        e += 1;
    }
    let f = m - 1.0lf;
    let t = 2.0lf + f;
    let s = f / t;
    let high = m_leading(s);
    let t_high = m_leading(t);
    let t_low = f - (t_high - 2.0lf);
    let low = ((f - high * t_high) - high * t_low) / t;
    let z = s * s;
    let q = s * z * (0.6666666666666666lf + z * (0.4lf + z * (0.2857142857142857lf + z * (0.2222222222222222lf + z *
        (0.18181818181818182lf + z * (0.15384615384615385lf + z * (0.13333333333333333lf + z *
        (0.11764705882352941lf + z * (0.10526315789473684lf + z * (0.09523809523809523lf + z *
        (0.08695652173913043lf)))))))))));
    return Logarithm(f64(e), high, low, q);
}
fn m_ln(x: f64) -> f64 {
    if (m_is_nan(x) || x < 0.0lf) { return m_nan(); }
    if (!m_is_true(x)) { return -m_inf(); }
    if (m_is_inf(x)) { return x; }
    let l = m_ln_split(x);
    let rest = 2.0lf * l.low + l.rest + l.e * 1.4286068203094173e-06lf;
    return l.e * 0.693145751953125lf + (2.0lf * l.s + rest);
}
fn m_log2(x: f64) -> f64 {
    if (m_is_nan(x) || x <= 0.0lf || m_is_inf(x)) { return m_ln(x); }
    let l = m_ln_split(x);
    return l.e + (2.0lf * l.s + (2.0lf * l.low + l.rest)) * 1.4426950408889634lf;
}
fn m_log10(x: f64) -> f64 {
    if (m_is_nan(x) || x <= 0.0lf || m_is_inf(x)) { return m_ln(x); }
    let l = m_ln_split(x);
    // log10(2) in two parts, of which products with e are exact.
    let rest = l.e * 4.605038981195214e-06lf
        + (2.0lf * l.s + (2.0lf * l.low + l.rest)) * 0.4342944819032518lf;
    return l.e * 0.301025390625lf + rest;
}
fn m_log1p(x: f64) -> f64 {
    if (m_is_nan(x) || !m_is_true(x) || x > 0.41lf || x < -0.29lf) {
        return select(m_ln(1.0lf + x), x, !m_is_true(x));
    }
    let s = x / (2.0lf + x);
    let z = s * s;
    // x - s x is 2 s, whose error counts less.
    return x - s * (x - z * (0.6666666666666666lf + z * (0.4lf + z * (0.2857142857142857lf + z * (0.2222222222222222lf + z *
        (0.18181818181818182lf + z * (0.15384615384615385lf + z * (0.13333333333333333lf + z *
        (0.11764705882352941lf + z * (0.10526315789473684lf + z * (0.09523809523809523lf + z *
        (0.08695652173913043lf))))))))))));
}

// |x| in quarter turns: the nearest whole number of them, modulo four, and the angle left.
struct Turns {
    whole: u32,
    rest: f64,
}
// 32 bits of a long number from a place on.
fn m_bits_at(words: array<u32, 8>, at: u32) -> u32 {
    var all = words;
    let k = at / 32u;
    let shift = at % 32u;
    var high = 0u;
    if (k < 7u) { high = all[k + 1u]; }
    return (all[k] >> shift) | ((high << (31u - shift)) << 1u);
}
// Payne and Hanek: of 2 / pi only bits count that do not give multiples of four turns, for 192 bits.
fn m_far_turns(x: f64) -> Turns {
    var table = array<u32, 40>(
        0xa2f9836eu, 0x4e441529u, 0xfc2757d1u, 0xf534ddc0u, 0xdb629599u, 0x3c439041u, 0xfe5163abu, 0xdebbc561u,
        0xb7246e3au, 0x424dd2e0u, 0x06492eeau, 0x09d1921cu, 0xfe1deb1cu, 0xb129a73eu, 0xe88235f5u, 0x2ebb4484u,
        0xe99c7026u, 0xb45f7e41u, 0x3991d639u, 0x835339f4u, 0x9c845f8bu, 0xbdf9283bu, 0x1ff897ffu, 0xde05980fu,
        0xef2f118bu, 0x5a0a6d1fu, 0x6d367ecfu, 0x27cb09b7u, 0x4f463f66u, 0x9e5fea2du, 0x7527bac7u, 0xebe5f17bu,
        0x3d0739f7u, 0x8a5292eau, 0x6bfb5fb1u, 0x1f8d5d08u, 0x56033046u, 0xfc7b6babu, 0xf0cfbc20u, 0x9af4361du);
    let bits = bitcast<u64>(x);
    let m = (bits & 0x000ffffffffffffflu) | 0x0010000000000000lu;
    // x = m 2^e.
    let e = i32(u32(bits >> 52u)) - 1075;
    let first = u32(max(e - 2, 0));
    var product = array<u32, 8>();
    let parts = array<u32, 2>(u32(m & 0xfffffffflu), u32(m >> 32u));
    var factor = parts;
    for (var i = 0u; i < 2u; i++) {
        var carry = 0lu;
        for (var k = 0u; k < 6u; k++) {
            // Word k, counted from the lowest of the 192 bits behind `first`.
            let at = first / 32u + 5u - k;
            let shift = first % 32u;
            let word = (table[at] << shift) | ((table[at + 1u] >> (31u - shift)) >> 1u);
            let sum = u64(factor[i]) * u64(word) + u64(product[i + k]) + carry;
            product[i + k] = u32(sum & 0xfffffffflu);
            carry = sum >> 32u;
        }
        product[i + 6u] = u32(carry);
    }
    let point = u32(i32(first) + 192 - e);
    var whole = m_bits_at(product, point);
    var high = m_bits_at(product, point - 32u);
    var mid = m_bits_at(product, point - 64u);
    var low = m_bits_at(product, point - 96u);
    var last = m_bits_at(product, point - 128u);
    let up = (high >> 31u) == 1u;
    if (up) {
        whole += 1u;
        last = ~last;
        low = ~low;
        mid = ~mid;
        high = ~high;
    }
    let rest = (f64(high) * 2.3283064365386963e-10lf + f64(mid) * 5.421010862427522e-20lf
        + (f64(low) + f64(last) * 2.3283064365386963e-10lf) * 1.262177448353619e-29lf) * 1.5707963267948966lf;
    return Turns(whole & 3u, select(rest, -rest, up));
}
fn m_turns(x: f64) -> Turns {
    if (x >= 1000000.0lf) { return m_far_turns(x); }
    let n = round(x * 0.6366197723675814lf);
    let r = ((x - n * 1.5707963267341256lf) - n * 6.077100506303966e-11lf) - n * 2.0222662487959506e-21lf;
    return Turns(u32(n) & 3u, r);
}
fn m_sin_series(r: f64) -> f64 {
    let z = r * r;
    return r + r * z * (-0.16666666666666666lf + z * (0.008333333333333333lf + z * (-0.0001984126984126984lf + z *
        (2.7557319223985893e-06lf + z * (-2.505210838544172e-08lf + z * (1.6059043836821613e-10lf + z *
        (-7.647163731819816e-13lf + z * (2.8114572543455206e-15lf))))))));
}
fn m_cos_series(r: f64) -> f64 {
    let z = r * r;
    return 1.0lf - (0.5lf * z - z * z * (0.041666666666666664lf + z * (-0.001388888888888889lf + z * (2.48015873015873e-05lf + z *
        (-2.755731922398589e-07lf + z * (2.08767569878681e-09lf + z * (-1.1470745597729725e-11lf + z *
        (4.779477332387385e-14lf + z * (-1.5619206968586225e-16lf)))))))));
}
fn m_sin_from(x: f64, quadrant: u32) -> f64 {
    if (m_is_nan(x) || m_is_inf(x)) { return m_nan(); }
    let t = m_turns(m_abs(x));
    let negative = x < 0.0lf && quadrant == 0u;
    let q = t.whole + quadrant + select(0u, 2u, negative);
    var r = 0.0lf;
    if ((q & 1u) == 0u) { r = m_sin_series(t.rest); } else { r = m_cos_series(t.rest); }
    return select(r, -r, (q & 2u) == 2u);
}
fn m_sin(x: f64) -> f64 {
    return select(m_sin_from(x, 0u), x, !m_is_true(x));
}
fn m_cos(x: f64) -> f64 {
    return m_sin_from(x, 1u);
}
fn m_tan(x: f64) -> f64 {
    if (m_is_nan(x) || m_is_inf(x) || !m_is_true(x)) { return select(m_nan(), x, !m_is_true(x)); }
    let t = m_turns(m_abs(x));
    let s = m_sin_series(t.rest);
    let c = m_cos_series(t.rest);
    let r = select(s / c, -c / s, (t.whole & 1u) == 1u);
    return select(r, -r, x < 0.0lf);
}

fn m_atan(x: f64) -> f64 {
    if (m_is_nan(x) || !m_is_true(x)) { return x; }
    var near = array<f64, 9>(0.0lf, 0.12435499454676144lf, 0.24497866312686414lf, 0.35877067027057225lf, 0.4636476090008061lf,
        0.5585993153435624lf, 0.6435011087932844lf, 0.7188299996216245lf, 0.7853981633974483lf);
    let a = m_abs(x);
    let inverse = a > 1.0lf;
    let t = select(a, 1.0lf / a, inverse);
    let k = round(t * 8.0lf);
    let c = k * 0.125lf;
    let z = (t - c) / (1.0lf + t * c);
    let w = z * z;
    let small = z + z * w * (-0.3333333333333333lf + w * (0.2lf + w * (-0.14285714285714285lf + w * (0.1111111111111111lf + w *
        (-0.09090909090909091lf + w * (0.07692307692307693lf + w * (-0.06666666666666667lf + w *
        (0.058823529411764705lf))))))));
    let r = near[u32(k)] + small;
    return m_copysign(select(r, 1.5707963267948966lf - (r - 6.123233995736766e-17lf), inverse), x);
}
fn m_atan2(y: f64, x: f64) -> f64 {
    if (m_is_nan(x) || m_is_nan(y)) { return m_nan(); }
    let a = m_abs(x);
    let b = m_abs(y);
    var r = 0.0lf;
    if (m_is_inf(a) && m_is_inf(b)) {
        r = 0.7853981633974483lf;
    } else if (!m_is_true(b)) {
        r = 0.0lf;
    } else if (!m_is_true(a)) {
        r = 1.5707963267948966lf;
    } else {
        r = m_atan(b / a);
    }
    if (m_differ(x, 1.0lf)) { r = 3.141592653589793lf - (r - 1.2246467991473532e-16lf); }
    return m_copysign(r, y);
}
fn m_asin(x: f64) -> f64 {
    let a = m_abs(x);
    if (m_is_nan(x) || a > 1.0lf) { return m_nan(); }
    if (a <= 0.5lf) { return m_atan(x / sqrt((1.0lf - x) * (1.0lf + x))); }
    let h = sqrt((1.0lf - a) * 0.5lf);
    return m_copysign(1.5707963267948966lf - 2.0lf * m_atan(h / sqrt((1.0lf - h) * (1.0lf + h))), x);
}
fn m_acos(x: f64) -> f64 {
    if (m_is_nan(x) || m_abs(x) > 1.0lf) { return m_nan(); }
    if (m_abs(x) <= 0.5lf) { return 1.5707963267948966lf - (m_asin(x) - 6.123233995736766e-17lf); }
    let h = sqrt((1.0lf - m_abs(x)) * 0.5lf);
    let r = 2.0lf * m_atan(h / sqrt((1.0lf - h) * (1.0lf + h)));
    return select(r, 3.141592653589793lf - (r - 1.2246467991473532e-16lf), x < 0.0lf);
}
fn m_sinh(x: f64) -> f64 {
    let a = m_abs(x);
    if (m_is_nan(x) || !m_is_true(x)) { return x; }
    if (a > 22.0lf) {
        let h = m_exp(0.5lf * a);
        return m_copysign(0.5lf * h * h, x);
    }
    let t = m_expm1(a);
    return m_copysign(0.5lf * (t + t / (t + 1.0lf)), x);
}
fn m_cosh(x: f64) -> f64 {
    let a = m_abs(x);
    if (a > 22.0lf) {
        let h = m_exp(0.5lf * a);
        return 0.5lf * h * h;
    }
    let t = m_exp(a);
    return 0.5lf * (t + 1.0lf / t);
}
fn m_tanh(x: f64) -> f64 {
    if (m_is_nan(x) || !m_is_true(x)) { return x; }
    let a = m_abs(x);
    if (a > 20.0lf) { return m_copysign(1.0lf, x); }
    let t = m_expm1(-2.0lf * a);
    return m_copysign(-t / (t + 2.0lf), x);
}
fn m_asinh(x: f64) -> f64 {
    if (m_is_nan(x) || !m_is_true(x) || m_is_inf(x)) { return x; }
    let a = m_abs(x);
    if (a > 1.0e8lf) { return m_copysign(m_ln(a) + 0.6931471805599453lf, x); }
    let z = a * a;
    return m_copysign(m_log1p(a + z / (1.0lf + sqrt(z + 1.0lf))), x);
}
fn m_acosh(x: f64) -> f64 {
    if (m_is_nan(x) || x < 1.0lf) { return m_nan(); }
    if (x > 1.0e8lf) { return m_ln(x) + 0.6931471805599453lf; }
    let t = x - 1.0lf;
    return m_log1p(t + sqrt(t * (x + 1.0lf)));
}
fn m_atanh(x: f64) -> f64 {
    let a = m_abs(x);
    if (m_is_nan(x) || a > 1.0lf) { return m_nan(); }
    if (!m_is_true(x)) { return x; }
    if (a == 1.0lf) { return m_copysign(m_inf(), x); }
    return m_copysign(0.5lf * m_log1p(2.0lf * a / (1.0lf - a)), x);
}
fn m_sigmoid(x: f64) -> f64 {
    return 1.0lf / (1.0lf + m_exp(-x));
}
