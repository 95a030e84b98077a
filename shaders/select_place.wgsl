// Brings the element of place k of each line there, with its position, by keys alone: partitions by the
// median of three, in an order that decides which of several equal elements it is. An invocation has
// a line, which is short.
override LONG_KEYS: bool = false;
override WG: u32 = WORKGROUP;

struct Params {
    lines: u32,
    length: u32,
    k: u32,
}
@group(0) @binding(0) var<uniform> p: Params;
@group(0) @binding(1) var<storage, read_write> keys: array<u32>;
@group(0) @binding(2) var<storage, read_write> high_keys: array<u32>;
@group(0) @binding(3) var<storage, read_write> positions: array<u32>;

fn key(i: u32) -> vec2<u32> {
    var high = 0u;
    if (LONG_KEYS) { high = high_keys[i]; }
    return vec2(keys[i], high);
}
fn above(a: vec2<u32>, b: vec2<u32>) -> bool {
    return a.y > b.y || (a.y == b.y && a.x > b.x);
}
fn exchange(i: u32, j: u32) {
    let a = key(i);
    let b = key(j);
    let at = positions[i];
    keys[i] = b.x;
    keys[j] = a.x;
    if (LONG_KEYS) {
        high_keys[i] = b.y;
        high_keys[j] = a.y;
    }
    positions[i] = positions[j];
    positions[j] = at;
}
fn in_order(i: u32, j: u32) {
    if (above(key(i), key(j))) { exchange(i, j); }
}

@compute @workgroup_size(WG)
fn main(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_index) local: u32,
) {
    let line = (group.x + group.y * groups.x) * WG + local;
    if (line >= p.lines) { return; }
    let start = line * p.length;
    let place = start + p.k;
    var low = start;
    var high = start + p.length - 1u;
    while (high > low) {
        if (high == low + 1u) {
            in_order(low, high);
            break;
        }
        exchange((low - start + high - start) / 2u + start, low + 1u);
        in_order(low + 1u, high);
        in_order(low, high);
        in_order(low + 1u, low);
        let pivot = key(low);
        var i = low + 1u;
        var j = high;
        loop {
            i++;
            while (above(pivot, key(i))) { i++; }
            j--;
            while (above(key(j), pivot)) { j--; }
            if (j < i) { break; }
            exchange(i, j);
        }
        exchange(low, j);
        if (j <= place) { low = i; }
        if (j >= place) { high = max(j, start + 1u) - 1u; }
    }
}
