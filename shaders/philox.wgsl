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
fn philox_of(n: u32, more: u32) -> vec4<u32> {
    var c = vec4(n, more, scalar_word(2u), scalar_word(3u));
    var k = vec2(scalar_word(0u), scalar_word(1u));
    for (var k0 = 0; k0 < 10; k0++) {
        let a = philox_wide(0xd2511f53u, c.x);
        let b = philox_wide(0xcd9e8d57u, c.z);
        c = vec4(b.x ^ c.y ^ k.x, b.y, a.x ^ c.w ^ k.y, a.y);
        k += vec2(0x9e3779b9u, 0xbb67ae85u);
    }
    return c;
}
fn philox_block(n: u32) -> vec4<u32> {
    return philox_of(n, 0u);
}
fn philox_word() -> u32 {
    return philox_block(position >> 2u)[position & 3u];
}
// Words 2 i and 2 i + 1, the low one first.
fn philox_pair() -> vec2<u32> {
    let block = philox_block(position >> 1u);
    return select(block.xy, block.zw, (position & 1u) == 1u);
}
