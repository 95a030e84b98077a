// Links equal offsets, so that duplicates can be handled in order without float atomics:
// links[j] is the next k > j of this window with the same offset (0x7fffffff where there is none),
// with the top bit set where an earlier one has it.
override WG: u32 = WORKGROUP;

struct Params {
    begin: u32,
    end: u32,
}
@group(0) @binding(0) var<uniform> p: Params;
@group(0) @binding(1) var<storage, read_write> links: array<u32>;
@group(0) @binding(2) var<storage, read> offsets: array<u32>;

@compute @workgroup_size(WG)
fn main(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_index) local: u32,
) {
    let id = (group.x + group.y * groups.x) * WG + local;
    let j = p.begin + id;
    if (j >= p.end) { return; }
    let mine = offsets[j];
    var link = 0x7fffffffu;
    for (var k = p.begin; k < p.end; k++) {
        if (offsets[k] == mine) {
            if (k < j) { link |= 0x80000000u; }
            if (k > j) {
                link = (link & 0x80000000u) | k;
                break;
            }
        }
    }
    links[j] = link;
}
