//! Tells the code which DLL of Python it is built for: Windows finds a function by the name of the DLL that has it.

/// Those that `src/libpython.rs` names.
const DLLS: [&str; 6] = ["310", "311", "312", "313", "314", "314t"];

fn main() {
    let dlls = DLLS.map(|version| format!("\"python{version}\""));
    println!(
        "cargo:rustc-check-cfg=cfg(python_dll, values({}))",
        dlls.join(", ")
    );
    if std::env::var("CARGO_CFG_WINDOWS").is_err() {
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
