//! Tells the linker the name of `libsov.so`: else a program that was linked with a file of it has that file's path.

fn main() {
    println!("cargo::rustc-cdylib-link-arg=-Wl,-soname,libsov.so");
}
