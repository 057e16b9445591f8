use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::text;

/// A folder that is gone after the test.
pub(crate) struct Folder(pub(crate) PathBuf);

impl Folder {
    pub(crate) fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("sovia-cli-{}-{name}", std::process::id()));
        fs::create_dir_all(&path).expect("a folder");
        Self(path)
    }

    /// A file in it that may be executed.
    pub(crate) fn file(&self, name: &str, bytes: impl AsRef<[u8]>) -> PathBuf {
        let path = self.0.join(name);
        fs::write(&path, bytes).expect("a file");
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).expect("chmod");
        path
    }

    /// A C program in it.
    pub(crate) fn program(&self, name: &str, source: &str, options: &[&str]) -> PathBuf {
        let program = self.0.join(name);
        compile("gcc", &program, source, options);
        program
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        fs::remove_dir_all(&self.0).expect("it is ours");
    }
}

/// Builds a C program with `compiler`.
pub(crate) fn compile(compiler: &str, program: &Path, source: &str, options: &[&str]) {
    let file = program.with_extension("c");
    fs::write(&file, source).expect("a file");
    let output = Command::new(compiler)
        .args(["-O1", "-o"])
        .arg(program)
        .arg(&file)
        .args(options)
        .output()
        .expect("a C compiler");
    assert!(output.status.success(), "{}", text(&output.stderr));
}
