use super::check::{check, Role, Signature};
use super::crowd::Crowd;
use super::{parse, Allowance, Fault, Kind, Program};

fn read(data: &[u8]) -> Result<Program, super::Error> {
    parse(data, 0, data.len() as u64)
}

fn checked(data: &[u8], signature: &str) -> Result<(), super::Error> {
    let mut p = read(data)?;
    let role = || match signature {
        "" => Role::Value,
        text => Role::Function(Signature::new(text).expect("a signature")),
    };
    let roles: Vec<Role> = p.globals.iter().map(|_| role()).collect();
    check(&mut p, &roles, data, data.len() as u64)
}

#[test]
fn a_value_recalled_is_one_node() {
    let p = read(b"\x80\x02X\x01\x00\x00\x00aq\x00h\x00\x86.").unwrap();
    let top = p.nodes[p.result as usize];
    assert_eq!((top.kind, top.n), (Kind::Tuple, 2));
    let items = &p.items[top.a as usize..];
    assert_eq!(items[0], items[1]);
    assert_eq!(p.end, 14);
}

#[test]
fn integers_are_read_with_their_sign() {
    let ints = |data: &[u8]| {
        let p = read(data).unwrap();
        p.nodes[p.result as usize].int()
    };
    assert_eq!(ints(b"J\xfe\xff\xff\xff."), -2);
    assert_eq!(ints(b"\x8a\x00."), 0);
    assert_eq!(ints(b"\x8a\x01\xff."), -1);
    assert_eq!(ints(b"\x8a\x02\xff\x00."), 255);
    assert_eq!(ints(b"\x8a\x08\xff\xff\xff\xff\xff\xff\xff\x7f."), i64::MAX);
}

#[test]
fn damage_is_told_from_refusal_and_from_an_early_end() {
    for (data, fault) in [
        (&b"\x80\x02"[..], Fault::Truncated),
        (b"X\xff\xff\xff\xffab.", Fault::Truncated),
        (b"cos\nsystem", Fault::Truncated),
        (b".", Fault::Corrupt),
        (b"t.", Fault::Corrupt),
        (b"N(\x85.", Fault::Corrupt),
        (b"h\x00.", Fault::Corrupt),
        (b"}Nu.", Fault::Corrupt),
        (b"\x80\x04.", Fault::Refused),
        (b"\x93.", Fault::Refused),
        (b"NNR.", Fault::Refused),
        (b"]K\x00K\x01s.", Fault::Refused),
    ] {
        let found = read(data).err().map(|e| e.fault);
        assert_eq!(found, Some(fault), "{data:?}");
    }
}

#[test]
fn nesting_costs_no_stack() {
    let nested = |n: usize| [b")", b"\x85".repeat(n).as_slice(), b"."].concat();
    assert!(read(&nested(1_000_000)).is_ok());
}

#[test]
fn memory_is_counted_against_the_size() {
    let lists = vec![b']'; Allowance::FREE as usize];
    let text = read(&lists).unwrap_err().text;
    assert!(text.contains("memory"), "{text}");
}

#[test]
fn calls_get_what_their_signature_says() {
    let call = |args: &[u8]| [b"ca\nb\n", args, b"R."].concat();
    let ok = |args: &[u8], s: &str| checked(&call(args), s).is_ok();
    assert!(ok(b"K\x01\x85", "int -> any"));
    assert!(ok(b")", "int? -> any"));
    assert!(!ok(b")", "int -> any"));
    assert!(!ok(b"K\x01K\x01\x86", "int -> any"));
    assert!(!ok(b"N\x85", "int -> any"));
    assert!(ok(b"N\x85", "int|none -> any"));
    assert!(ok(b"K\x01K\x02\x86\x85", "ints -> any"));
    assert!(!ok(b"K\x01N\x86\x85", "ints -> any"));
    // Of more than 64 bits.
    assert!(!ok(b"\x8a\x09AAAAAAAAA\x85", "int -> any"));
    assert!(!ok(b")", ""));
    // A set of texts and of lists.
    assert!(ok(b"](K\x01X\x01\x00\x00\x00ae\x85", "keys -> any"));
    assert!(!ok(b"](K\x01]e\x85", "keys -> any"));
    // What stands behind a signature must be one.
    assert!(Signature::new("storge -> any").is_none());
    assert!(Signature::new("maker -> any").is_none());
}

#[test]
fn keys_are_flat() {
    let dict = |key: &[u8]| checked(&[b"}", key, b"Ns."].concat(), "").is_ok();
    assert!(dict(b"N") && dict(b"K\x01N\x86") && dict(b"(NNNNNNNNNNNNNNNNt"));
    assert!(!dict(b"K\x01\x85\x85") && !dict(b"]") && !dict(b"(NNNNNNNNNNNNNNNNNt"));
}

#[test]
fn keys_that_crowd_are_noticed() {
    let spread = |mut c: Crowd, f: &dyn Fn(i64) -> i64| (0..20_000).all(|i| c.add(f(i)));
    for new in [Crowd::of_dict, Crowd::of_set] {
        assert!(spread(new(), &|i| i));
        assert!(spread(new(), &|i| i * 1024));
        assert!(spread(new(), &|i| i << 40));
        assert!(spread(new(), &|i| i.wrapping_mul(0x9e37_79b9_7f4a_7c15_u64 as i64)));
        assert!(!spread(new(), &|_| 7));
        assert!(!spread(new(), &|i| i % 16));
    }
}
