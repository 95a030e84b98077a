// What a convolution's operand b is read at: x at the sum of a place and a tap. Places are numbered by (batch, depth,
// row, column), taps by (channel, depth, row, column); of the classes of a transposed one see conv.wgsl.
// A coordinate that stays outside whatever is added.
const OUTSIDE: i32 = -0x40000000;

struct Params {
    // Of the product, for each group of channels; n and k of the largest class.
    m: u32,
    n: u32,
    k: u32,
    groups: u32,
    // Parts of k that different workgroups take, each of `part`; y then is [split, ...].
    splits: u32,
    part: u32,
    tiles_m: u32,
    tiles_n: u32,
    y_split: u32,
    bias: u32,
    classes: u32,
    batch: u32,
    channels: u32, // that taps are numbered by
    // Offset, and the strides of a group and of m.
    a_offset: u32,
    a_group: u32,
    a_row: u32,
    b_offset: u32,
    b_group: u32,
    y_offset: u32,
    y_group: u32,
    y_row: u32,
    pad0: u32,
    pad1: u32,
    pad2: u32,
    // Depth, height and width; of strides the last is that of the batch or the channel.
    source: vec4<u32>, // sizes of x, and its stride of a channel
    source_strides: vec4<i32>,
    places: vec4<u32>,
    place_strides: vec4<u32>,
    kernel: vec4<u32>,
    kernel_strides: vec4<u32>,
    stride: vec4<u32>,
    padding: vec4<u32>,
    dilation: vec4<u32>,
    // Of a class: taps lie `period` apart, stride / gcd(stride, dilation); `inverse` is that of
    // dilation / gcd, modulo the period.
    period: vec4<u32>,
    inverse: vec4<u32>,
}
// Places `first`, `first` + `apart` and so on, which read x from `start` on, `step` apart, and taps likewise.
struct Class {
    places: vec3<u32>,
    first: vec3<u32>,
    apart: vec3<u32>,
    start: vec3<i32>,
    step: vec3<i32>,
    taps: vec3<u32>,
    tap_first: vec3<u32>,
    tap_apart: vec3<u32>,
    tap_step: vec3<i32>,
}
fn class_of(id: u32) -> Class {
    let stride = p.stride.xyz;
    let pad = p.padding.xyz;
    let dilation = p.dilation.xyz;
    let kernel = p.kernel.xyz;
    var s: Class;
    s.places = p.places.xyz;
    if (CLASSES) {
        let many = min(stride, s.places);
        s.first = vec3(id / (many.z * many.y), id / many.z % many.y, id % many.z);
        s.apart = stride;
        s.places = (s.places - s.first + stride - 1u) / stride;
        let factor = stride / p.period.xyz;
        let rest = (s.first + pad) % stride;
        s.tap_first = (rest / factor) * p.inverse.xyz % p.period.xyz;
        s.tap_apart = p.period.xyz;
        let any_tap = (rest % factor == vec3(0u)) & (s.tap_first < kernel);
        let taps = (kernel - s.tap_first + s.tap_apart - 1u) / s.tap_apart;
        s.taps = select(vec3(0u), taps, any_tap);
        s.start = (vec3<i32>(s.first + pad) - vec3<i32>(s.tap_first * dilation)) / vec3<i32>(stride);
        s.step = vec3(1);
        s.tap_step = -vec3<i32>(dilation / factor);
        return s;
    }
    s.first = vec3(0u);
    s.apart = vec3(1u);
    s.start = -vec3<i32>(pad);
    s.step = vec3<i32>(stride);
    s.taps = kernel;
    s.tap_first = vec3(0u);
    s.tap_apart = vec3(1u);
    s.tap_step = vec3<i32>(dilation);
    return s;
}
fn volume(v: vec3<u32>) -> u32 {
    return v.x * v.y * v.z;
}

// Coordinates in x and an offset in it, and the offset in the tensor that has the same numbers.
struct Where {
    at: vec4<i32>,
    own: u32,
}
fn offset_in_x(at: vec3<i32>) -> i32 {
    return at.x * p.source_strides.x + at.y * p.source_strides.y + at.z * p.source_strides.z;
}
// An index split into (outer, depth, row, column).
fn split_index(i: u32, size: vec3<u32>) -> vec4<u32> {
    let r = i / size.z;
    let q = r / size.y;
    let o = q / size.x;
    return vec4(q - o * size.x, r - q * size.y, i - r * size.z, o);
}
fn place(s: Class, i: u32) -> Where {
    if (i >= p.batch * volume(s.places)) { return Where(vec4(OUTSIDE), 0u); }
    let e = split_index(i, s.places);
    let at = s.start + vec3<i32>(e.xyz) * s.step;
    let own = (s.first + e.xyz * s.apart) * p.place_strides.xyz;
    let offset = offset_in_x(at) + i32(e.w) * p.source_strides.w;
    return Where(vec4(at, offset), e.w * p.place_strides.w + own.x + own.y + own.z);
}
fn tap(s: Class, i: u32) -> Where {
    if (i >= p.channels * volume(s.taps)) { return Where(vec4(OUTSIDE), 0u); }
    let e = split_index(i, s.taps);
    let at = vec3<i32>(e.xyz) * s.tap_step;
    let own = (s.tap_first + e.xyz * s.tap_apart) * p.kernel_strides.xyz;
    let offset = offset_in_x(at) + i32(e.w * p.source.w);
    return Where(vec4(at, offset), e.w * p.kernel_strides.w + own.x + own.y + own.z);
}
fn row_of(s: Class, k: u32) -> Where {
    if (TO_WEIGHT) { return place(s, k); }
    return tap(s, k);
}
fn column_of(s: Class, n: u32) -> Where {
    if (TO_WEIGHT) { return tap(s, n); }
    return place(s, n);
}
// Whether coordinates in x are those of an element.
fn is_inside(at: vec4<i32>) -> bool {
    let out = vec3<u32>(at.xyz) >= p.source.xyz;
    return !(out.z || (DIMS > 1u && out.y) || (DIMS > 2u && out.x));
}
