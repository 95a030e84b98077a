// Philox4x32-10 (Salmon et al. 2011), part of a pointwise body: word `position` of the stream,
// the same bits as on the CPU. The scalars' words are key, stream and what else the body takes.
fn philox_wide(a: u32, b: u32) -> vec2<u32> {
    let al = a & 0xffffu;
    let ah = a >> 16u;
    let bl = b & 0xffffu;
    let bh = b >> 16u;
    let low = al * bl;
    let mid = ah * bl + (low >> 16u);
    let cross = al * bh + (mid & 0xffffu);
    return vec2(ah * bh + (mid >> 16u) + (cross >> 16u), a * b);
}
fn philox_block(n: u32) -> vec4<u32> {
    var c = vec4(n, 0u, scalar_word(2u), scalar_word(3u));
    var k = vec2(scalar_word(0u), scalar_word(1u));
    for (var k0 = 0; k0 < 10; k0++) {
        let a = philox_wide(0xd2511f53u, c.x);
        let b = philox_wide(0xcd9e8d57u, c.z);
        c = vec4(b.x ^ c.y ^ k.x, b.y, a.x ^ c.w ^ k.y, a.y);
        k += vec2(0x9e3779b9u, 0xbb67ae85u);
    }
    return c;
}
fn philox_word() -> u32 {
    return philox_block(position >> 2u)[position & 3u];
}
// In [0, 1).
fn philox_uniform() -> f32 {
    return f32(philox_word() >> 8u) * 5.9604644775390625e-8;
}
// Box and Muller's pairs: elements 2k and 2k + 1 share two words.
fn philox_normal() -> f32 {
    let block = philox_block(position >> 2u);
    let pair = select(block.xy, block.zw, (position & 2u) != 0u);
    let u = f32((pair.x >> 8u) + 1u) * 5.9604644775390625e-8;
    let angle = f32(pair.y >> 8u) * 5.9604644775390625e-8 * 6.28318531;
    let r = m_sqrt(-2.0 * m_ln(u));
    return r * m_sin_from(angle, 1u - (position & 1u));
}
