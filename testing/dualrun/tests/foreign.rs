//! Programs for another C library than ours, whose dynamic linker ends them for what it cannot preload: they are started without.

use std::env;
use std::ffi::OsString;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{self, Command};

use dualrun::library::{target_folder, under_test};

#[test]
fn it_is_not_asked_to_preload_us() {
    let folder = Folder::new("linker");
    for how in WAYS {
        assert_eq!(folder.start(how, &folder.library), "nothing", "{how}");
    }
}

/// What else is asked for is not ours to leave out.
#[test]
fn what_else_is_asked_for_stays() {
    let folder = Folder::new("others");
    let mut both = OsString::from("/none/other.so:");
    both.push(&folder.library);
    for how in WAYS {
        let said = folder.start(how, Path::new(&both));
        assert_eq!(said, "LD_PRELOAD=/none/other.so", "{how}");
    }
}

#[test]
fn a_script_for_it_is_one() {
    let folder = Folder::new("script");
    let script = folder.path.join("script");
    fs::write(&script, format!("#!{}\n", folder.program.display())).expect("a folder of ours");
    fs::set_permissions(&script, fs::Permissions::from_mode(0o755)).expect("ours");
    let said = folder.start_program("execve", &script, &folder.library);
    assert_eq!(said, "nothing");
}

#[test]
fn musl_starts() {
    let folder = Folder::new("musl");
    let source = folder.path.join("hello.c");
    let text = "#include <unistd.h>\nint main(void) { return write(1, \"started\", 7) != 7; }\n";
    fs::write(&source, text).expect("a folder of ours");
    let program = folder.path.join("hello");
    let compiled = Command::new("musl-gcc")
        .arg("-o")
        .args([&program, &source])
        .status();
    if !compiled.is_ok_and(|status| status.success()) {
        println!("skipped: there is no musl-gcc (Debian's package musl-tools)");
        return;
    }
    let said = folder.start_program("execve", &program, &folder.library);
    assert_eq!(said, "started");
}

/// A launcher, a linker, and a program that asks for it.
struct Folder {
    path: PathBuf,
    launcher: PathBuf,
    program: PathBuf,
    library: PathBuf,
}

impl Folder {
    fn new(name: &str) -> Self {
        let path = env::temp_dir().join(format!("sovia-foreign-{name}-{}", process::id()));
        fs::create_dir_all(&path).expect("a folder of ours");
        let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/foreign");
        let [launcher, linker, program] =
            ["launcher", "ld-other.so.1", "program"].map(|name| path.join(name));
        let with = |flag: &str| flag.to_owned();
        compile(&launcher, &sources.join("launcher.c"), &[with("-O1")]);
        let bare = ["-O1", "-nostdlib", "-static-pie", "-fno-stack-protector"];
        compile(&linker, &sources.join("linker.c"), &bare.map(with));
        let wanted = format!("-Wl,--dynamic-linker={}", linker.display());
        compile(&program, &sources.join("launcher.c"), &[wanted]);
        Self {
            library: target_folder()
                .and_then(|target| under_test(&target))
                .expect("the library is built"),
            path,
            launcher,
            program,
        }
    }

    fn start(&self, how: &str, preload: &Path) -> String {
        self.start_program(how, &self.program, preload)
    }

    fn start_program(&self, how: &str, program: &Path, preload: &Path) -> String {
        let output = Command::new(&self.launcher)
            .arg(how)
            .arg(program)
            .env("LD_PRELOAD", preload)
            .env("PATH", &self.path)
            .output()
            .expect("it was compiled");
        let said = String::from_utf8_lossy(&output.stdout).into_owned();
        let wrong = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{how}: {said}{wrong}");
        said
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        // What is left is overwritten by a later process with this number.
        let _ = fs::remove_dir_all(&self.path);
    }
}

fn compile(to: &Path, source: &Path, flags: &[String]) {
    let output = Command::new("cc")
        .args(["-std=gnu11", "-Wall", "-Wextra", "-Werror"])
        .args(flags)
        .arg("-o")
        .args([to, source])
        .output()
        .expect("a C compiler, cc");
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{errors}");
}

const WAYS: [&str; 10] = [
    "execve",
    "execv",
    "execvp",
    "execl",
    "execle",
    "fexecve",
    "syscall",
    "vfork",
    "posix_spawn",
    "posix_spawnp",
];
