// Sorts lines that are short: an element's place is the number of those before it.
override LONG_KEYS: bool = false;
override WG: u32 = WORKGROUP;

struct Params {
    n: u32,
    length: u32,
}
@group(0) @binding(0) var<uniform> p: Params;
@group(0) @binding(1) var<storage, read_write> keys: array<u32>;
@group(0) @binding(2) var<storage, read_write> high_keys: array<u32>;
@group(0) @binding(3) var<storage, read_write> positions: array<u32>;
@group(0) @binding(4) var<storage, read> from_keys: array<u32>;
@group(0) @binding(5) var<storage, read> from_high: array<u32>;

@compute @workgroup_size(WG)
fn main(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_index) local: u32,
) {
    let t = (group.x + group.y * groups.x) * WG + local;
    if (t >= p.n) { return; }
    let start = t / p.length * p.length;
    let low = from_keys[t];
    var high = 0u;
    if (LONG_KEYS) { high = from_high[t]; }
    var place = start;
    for (var j = start; j < start + p.length; j++) {
        var other = 0u;
        if (LONG_KEYS) { other = from_high[j]; }
        let l = from_keys[j];
        let same = other == high;
        let before = other < high || (same && l < low) || (same && l == low && j < t);
        place += select(0u, 1u, before);
    }
    keys[place] = low;
    if (LONG_KEYS) { high_keys[place] = high; }
    positions[place] = t - start;
}
