//! How the programs are linked.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    // Most of what is relocated at a start are addresses in a row. Packed, they are a hundredth of the bytes to be read, in
    // each of the processes that a sandbox takes. The start files that Rust brings for musl unpack them; those of an older glibc would not.
    if std::env::var("CARGO_CFG_TARGET_ENV").is_ok_and(|env| env == "musl") {
        println!("cargo::rustc-link-arg-bins=-Wl,-z,pack-relative-relocs");
    }
}
