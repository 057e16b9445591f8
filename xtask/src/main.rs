//! Checks of the workspace that neither the compiler nor clippy makes.
//!
//! `cargo xtask tidy` reads the sources and holds the rules of ARCHITECTURE.md and CONTRIBUTING.md;
//! `cargo xtask abi` compares what `libvipl.so` exports with its version map, `cargo xtask calls` what `libsovia.so` exports with its list,
//! `cargo xtask layout` looks for the functions whose place in it is said, and `cargo xtask deb` makes a Debian package.
//! No dependency, so that it is built in a second and can judge a tree that does not compile.

#![forbid(unsafe_code)]

mod abi;
mod calls;
mod deb;
mod layout;
mod tidy;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let result = match arguments.as_slice() {
        ["tidy"] => tidy::run(&root()),
        ["abi"] => abi::run(&abi::default_library(&root()), &abi::default_map(&root())),
        ["abi", library] => abi::run(Path::new(library), &abi::default_map(&root())),
        ["abi", library, map] => abi::run(Path::new(library), Path::new(map)),
        ["calls"] => calls::default_library(&root())
            .and_then(|library| calls::run(&root(), Some(&library), false)),
        ["calls", "--write"] => calls::run(&root(), None, true),
        ["calls", library] => calls::run(&root(), Some(Path::new(library)), false),
        ["layout"] => {
            calls::default_library(&root()).and_then(|library| layout::run(&root(), &library))
        }
        ["layout", library] => layout::run(&root(), Path::new(library)),
        ["deb"] => deb::run(&root(), "release"),
        ["deb", "--profile", profile] => deb::run(&root(), profile),
        [] | ["help" | "--help" | "-h"] => {
            print!("{USAGE}");
            Ok(true)
        }
        _ => Err(format!("unknown arguments\n{USAGE}")),
    };
    match result {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(message) => {
            eprintln!("xtask: {message}");
            ExitCode::from(2)
        }
    }
}

/// The workspace, wherever the caller stands. Asked of cargo when run, not when built: clones may share a target folder.
fn root() -> PathBuf {
    let here = std::env::var_os("CARGO_MANIFEST_DIR")
        .map_or_else(|| env!("CARGO_MANIFEST_DIR").into(), PathBuf::from);
    here.parent().map_or_else(PathBuf::new, Path::to_path_buf)
}

const USAGE: &str = "\
cargo xtask tidy                 hold the rules of the house on every source file
cargo xtask abi [LIBRARY [MAP]]  compare the exported symbols of libvipl.so with its version map
                                 (release build and abi/vipl/vipl.map if not given)
cargo xtask calls [LIBRARY]      compare what libsovia.so exports with abi/preload/calls.txt, and that with docs/calls.md
cargo xtask calls --write        make docs/calls.md
cargo xtask layout [LIBRARY]     say which lines of abi/preload/layout.ld find no function in libsovia.so
cargo xtask deb [--profile P]    make a Debian package of the release build (or that of another profile), with dpkg-deb
";
