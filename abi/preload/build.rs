//! Tells the linker where code is to lie in `libsovia.so`.

fn main() {
    println!("cargo::rerun-if-changed=layout.ld");
    let directory = env!("CARGO_MANIFEST_DIR");
    let flags = std::env::var("CARGO_ENCODED_RUSTFLAGS").unwrap_or_default();
    // It has no such scripts.
    if !flags.contains("mold") {
        println!("cargo::rustc-cdylib-link-arg=-Wl,-T,{directory}/layout.ld");
    }
}
