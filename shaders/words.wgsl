// What arithmetic in 64-bit integers becomes where the adapter has none (`gpu/words`): functions of their low
// and high words.
fn words_add(a: vec2<u32>, b: vec2<u32>) -> vec2<u32> {
    let low = a.x + b.x;
    return vec2(low, a.y + b.y + select(0u, 1u, low < a.x));
}
fn words_subtract(a: vec2<u32>, b: vec2<u32>) -> vec2<u32> {
    return vec2(a.x - b.x, a.y - b.y - select(0u, 1u, a.x < b.x));
}
fn words_negate(a: vec2<u32>) -> vec2<u32> {
    return words_subtract(vec2(0u), a);
}
// By products of halves of words, which fit in one.
fn words_multiply(a: vec2<u32>, b: vec2<u32>) -> vec2<u32> {
    let low = (a.x & 0xffffu) * (b.x & 0xffffu);
    let one = (a.x >> 16u) * (b.x & 0xffffu) + (low >> 16u);
    let two = (a.x & 0xffffu) * (b.x >> 16u) + (one & 0xffffu);
    let high = (a.x >> 16u) * (b.x >> 16u) + (one >> 16u) + (two >> 16u);
    return vec2((two << 16u) | (low & 0xffffu), high + a.x * b.y + a.y * b.x);
}
fn words_less_unsigned(a: vec2<u32>, b: vec2<u32>) -> bool {
    return (a.y < b.y) | ((a.y == b.y) & (a.x < b.x));
}
fn words_less_signed(a: vec2<u32>, b: vec2<u32>) -> bool {
    let sign = vec2(0u, 0x80000000u);
    return words_less_unsigned(a ^ sign, b ^ sign);
}
fn words_equal(a: vec2<u32>, b: vec2<u32>) -> bool {
    return (a.x == b.x) & (a.y == b.y);
}
fn words_true(a: vec2<u32>) -> bool {
    return (a.x | a.y) != 0u;
}
// Shifts by fewer than 64.
fn words_left(a: vec2<u32>, n: u32) -> vec2<u32> {
    let k = n & 31u;
    let near = vec2(a.x << k, (a.y << k) | ((a.x >> 1u) >> (31u - k)));
    return select(near, vec2(0u, a.x << k), (n & 32u) != 0u);
}
fn words_right_unsigned(a: vec2<u32>, n: u32) -> vec2<u32> {
    let k = n & 31u;
    let near = vec2((a.x >> k) | ((a.y << 1u) << (31u - k)), a.y >> k);
    return select(near, vec2(a.y >> k, 0u), (n & 32u) != 0u);
}
fn words_right_signed(a: vec2<u32>, n: u32) -> vec2<u32> {
    let k = n & 31u;
    let high = bitcast<u32>(bitcast<i32>(a.y) >> k);
    let sign = bitcast<u32>(bitcast<i32>(a.y) >> 31u);
    let near = vec2((a.x >> k) | ((a.y << 1u) << (31u - k)), high);
    return select(near, vec2(high, sign), (n & 32u) != 0u);
}
// Quotient and rest, bit after bit where one of them has more than a word. Of a division by zero the quotient is
// zero, or all ones.
fn words_division(a: vec2<u32>, b: vec2<u32>) -> vec4<u32> {
    if ((a.y | b.y) == 0u) {
        if (b.x == 0u) { return vec4(0u, 0u, a.x, 0u); }
        let q = a.x / b.x;
        return vec4(q, 0u, a.x - q * b.x, 0u);
    }
    var quotient = vec2(0u);
    var rest = vec2(0u);
    for (var i = 0u; i < 64u; i++) {
        let k = 63u - i;
        let next = (select(a.x, a.y, k >= 32u) >> (k & 31u)) & 1u;
        let over = (rest.y >> 31u) != 0u;
        rest = vec2((rest.x << 1u) | next, (rest.y << 1u) | (rest.x >> 31u));
        quotient = vec2(quotient.x << 1u, (quotient.y << 1u) | (quotient.x >> 31u));
        if (over | !words_less_unsigned(rest, b)) {
            rest = words_subtract(rest, b);
            quotient.x |= 1u;
        }
    }
    return vec4(quotient, rest);
}
fn words_divide_unsigned(a: vec2<u32>, b: vec2<u32>) -> vec2<u32> {
    return words_division(a, b).xy;
}
fn words_rest_unsigned(a: vec2<u32>, b: vec2<u32>) -> vec2<u32> {
    return words_division(a, b).zw;
}
fn words_size(a: vec2<u32>) -> vec2<u32> {
    return select(a, words_negate(a), (a.y >> 31u) != 0u);
}
fn words_divide_signed(a: vec2<u32>, b: vec2<u32>) -> vec2<u32> {
    let q = words_division(words_size(a), words_size(b)).xy;
    return select(q, words_negate(q), ((a.y ^ b.y) >> 31u) != 0u);
}
fn words_rest_signed(a: vec2<u32>, b: vec2<u32>) -> vec2<u32> {
    let r = words_division(words_size(a), words_size(b)).zw;
    return select(r, words_negate(r), (a.y >> 31u) != 0u);
}
fn words_of_signed(x: i32) -> vec2<u32> {
    return vec2(bitcast<u32>(x), bitcast<u32>(x >> 31u));
}
fn words_of_unsigned(x: u32) -> vec2<u32> {
    return vec2(x, 0u);
}
fn words_of_bool(x: bool) -> vec2<u32> {
    return vec2(select(0u, 1u, x), 0u);
}
// Towards zero. What is past the range, or NaN, is the least number, as on x86.
fn words_of_float(x: f32) -> vec2<u32> {
    let bits = bitcast<u32>(x);
    let exponent = (bits >> 23u) & 0xffu;
    if (exponent < 127u) { return vec2(0u); }
    if (exponent >= 190u) { return vec2(0u, 0x80000000u); }
    let whole = vec2((bits & 0x7fffffu) | 0x800000u, 0u);
    var size = words_left(whole, max(exponent, 150u) - 150u);
    if (exponent < 150u) { size = vec2(whole.x >> (150u - exponent), 0u); }
    return select(size, words_negate(size), (bits >> 31u) != 0u);
}
// To the nearest, ties to even.
fn words_float_unsigned(a: vec2<u32>) -> f32 {
    if ((a.x | a.y) == 0u) { return 0.0; }
    let zeros = select(countLeadingZeros(a.y), 32u + countLeadingZeros(a.x), a.y == 0u);
    let m = words_left(a, zeros);
    let kept = m.y >> 8u;
    let lost = m.y & 0xffu;
    let tie = (m.x != 0u) | ((kept & 1u) == 1u);
    let up = (lost > 128u) | ((lost == 128u) & tie);
    return bitcast<f32>(((189u - zeros) << 23u) + kept + select(0u, 1u, up));
}
fn words_float_signed(a: vec2<u32>) -> f32 {
    let sign = a.y & 0x80000000u;
    return bitcast<f32>(bitcast<u32>(words_float_unsigned(words_size(a))) | sign);
}
