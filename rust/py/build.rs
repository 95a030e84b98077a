//! Tells the code which DLL of Python it is built for: Windows finds a function by the name of the DLL that has it.
//! And has the linker of a release put functions that are alike side by side, where it can: they compress better.

use std::env;
use std::process::{Command, Stdio};

/// Those that `src/libpython.rs` names.
const DLLS: [&str; 6] = ["310", "311", "312", "313", "314", "314t"];

/// What LLVM's linker takes from its version 20 on.
const SORTED: &str = "link-arg=-Wl,--bp-compression-sort=function";

/// Whether the linker takes that: an empty library is linked.
fn sorts(target: &str) -> bool {
    let name = |key: &str| env::var(key).unwrap_or_default();
    let mut rustc = Command::new(name("RUSTC"));
    rustc.args(["-", "--crate-type=cdylib", "--crate-name=probe"]);
    rustc.args(["-C", SORTED, "--target", target]);
    rustc.args(["--out-dir", &name("OUT_DIR")]);
    if let Ok(linker) = env::var("RUSTC_LINKER") {
        rustc.args(["-C", &format!("linker={linker}")]);
    }
    let flags = name("CARGO_ENCODED_RUSTFLAGS");
    rustc.args(flags.split('\x1f').filter(|flag| !flag.is_empty()));
    rustc.stdin(Stdio::null()).stdout(Stdio::null());
    let done = rustc.stderr(Stdio::null()).status();
    done.is_ok_and(|status| status.success())
}

fn main() {
    let target = env::var("TARGET").unwrap_or_default();
    let linker = target.to_uppercase().replace('-', "_");
    println!("cargo:rerun-if-changed=build.rs");
    // `Py_GIL_DISABLED` among them.
    pyo3_build_config::use_pyo3_cfgs();
    println!("cargo:rerun-if-env-changed=CARGO_TARGET_{linker}_LINKER");
    if env::var("PROFILE").is_ok_and(|p| p == "release") && sorts(&target) {
        let word = SORTED.trim_start_matches("link-arg=");
        println!("cargo:rustc-cdylib-link-arg={word}");
    }
    let dlls = DLLS.map(|version| format!("\"python{version}\""));
    println!(
        "cargo:rustc-check-cfg=cfg(python_dll, values({}))",
        dlls.join(", ")
    );
    if env::var("CARGO_CFG_WINDOWS").is_err() {
        return;
    }
    let config = pyo3_build_config::get();
    let version = config.version();
    let free = config.target_abi().kind().is_free_threaded();
    let dll = format!(
        "python{}{}{}",
        version.major,
        version.minor,
        if free { "t" } else { "" }
    );
    assert!(
        dlls.contains(&format!("{dll:?}")),
        "{dll}.dll is none of those that rust/py/build.rs and rust/py/src/libpython.rs name"
    );
    println!("cargo:rustc-cfg=python_dll={dll:?}");
}
