//! Tells the linker where code is to lie in `libsovia.so`, and the library's name.

fn main() {
    println!("cargo::rerun-if-changed=layout.ld");
    // By it a program that was linked with one file, and is run under another, has one of them.
    println!("cargo::rustc-cdylib-link-arg=-Wl,-soname,libsovia.so");
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/layout.ld");
    let flags = std::env::var("CARGO_ENCODED_RUSTFLAGS").unwrap_or_default();
    let is_named = |linker: &str| flags.contains(&format!("fuse-ld={linker}"));
    // They do not take such a script.
    if is_named("mold") || is_named("gold") {
        return;
    }
    for argument in ["-T", script] {
        // By itself each: a comma in the path would part what follows `-Wl`.
        println!("cargo::rustc-cdylib-link-arg=-Xlinker");
        println!("cargo::rustc-cdylib-link-arg={argument}");
    }
}
