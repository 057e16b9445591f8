//! The C programs, compiled, and the library to run them under.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{self, Command};
use std::sync::atomic::{AtomicU32, Ordering};

/// A program of the folder `programs/`, compiled for this process; it goes when this is dropped.
#[derive(Debug)]
pub struct Program {
    path: PathBuf,
}

impl Program {
    /// Compiles `NAME.c` with `cc`.
    ///
    /// # Panics
    /// If the compiler refuses it.
    pub fn compile(name: &str) -> Self {
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("programs");
        // Tests may be threads of one process.
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let path = target().join(format!("hostile-{name}-{}-{count}", process::id()));
        let output = Command::new("cc")
            .args(["-std=gnu11", "-g", "-O1", "-Wall", "-Wextra", "-Werror"])
            .arg("-pthread")
            .arg("-o")
            .arg(&path)
            .arg(source.join(format!("{name}.c")))
            .output()
            .expect("a C compiler, cc");
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{name}: {errors}");
        Self { path }
    }

    /// To be run without sovia.
    pub fn native(&self) -> Command {
        let mut command = Command::new(&self.path);
        command.env_remove("LD_PRELOAD");
        command
    }

    /// To be run under sovia, whose connections leave TCP soon, however short those before them were.
    pub fn preloaded(&self) -> Command {
        let mut command = Command::new(&self.path);
        command
            .env("LD_PRELOAD", library())
            .env("SOVIA_RULES", "2 hostile turns=8 bytes=131072");
        command
    }

    /// What it prints under sovia, where it reads who has left TCP in the file that `SOVIA_TRACE_UPGRADE` names.
    ///
    /// # Panics
    /// If it fails, or none of its connections has left TCP.
    pub fn traced(&self, argument: &str) -> String {
        let trace = self.path.with_extension("upgrades");
        let output = self
            .preloaded()
            .arg(argument)
            .env("SOVIA_TRACE_UPGRADE", &trace)
            .output()
            .expect("it was compiled");
        // A later one appends.
        fs::remove_file(&trace).expect("both ends were upgraded");
        let said = String::from_utf8_lossy(&output.stdout);
        let wrong = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{said}{wrong}");
        said.into_owned()
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        // What is left is overwritten by a later process with this number.
        let _ = fs::remove_file(&self.path);
    }
}

/// What `SOVIA_PRELOAD` names, else the newest `libsovia.so` that cargo built beside this test.
///
/// # Panics
/// If there is none.
pub fn library() -> PathBuf {
    if let Some(named) = env::var_os("SOVIA_PRELOAD") {
        return fs::canonicalize(named).expect("SOVIA_PRELOAD names a library");
    }
    let built = ["release", "debug"].map(|profile| target().join(profile).join("deps/libsovia.so"));
    let newest = built
        .iter()
        .filter_map(|path| Some((fs::metadata(path).ok()?.modified().ok()?, path)))
        .max();
    newest
        .expect("libsovia.so: build the crate preload")
        .1
        .clone()
}

/// The target folder in which this test was built: `<target>/PROFILE/deps/TEST`.
fn target() -> PathBuf {
    let test = env::current_exe().expect("this test");
    let target = test.ancestors().nth(3);
    target.expect("it is in a target folder").to_owned()
}
