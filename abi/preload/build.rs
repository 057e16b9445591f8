//! Tells the linker where code is to lie in `libsovia.so`.

fn main() {
    println!("cargo::rerun-if-changed=layout.ld");
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
