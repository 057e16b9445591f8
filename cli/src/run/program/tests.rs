use std::env;
use std::os::unix::fs::PermissionsExt;

use super::*;

/// A folder that is gone after the test.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let path = env::temp_dir().join(format!("sovia-program-{}-{name}", std::process::id()));
        fs::create_dir_all(&path).expect("a folder");
        Self(path)
    }

    fn file(&self, name: &str, bytes: &[u8], mode: u32) -> PathBuf {
        let path = self.0.join(name);
        fs::write(&path, bytes).expect("a file");
        fs::set_permissions(&path, fs::Permissions::from_mode(mode)).expect("chmod");
        path
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        fs::remove_dir_all(&self.0).expect("it is ours");
    }
}

fn program(file: PathBuf) -> Program {
    Program {
        file,
        place: Place::ours(),
    }
}

fn obstacle(path: PathBuf) -> Option<Obstacle> {
    program(path).obstacle()
}

/// An ELF header, a program header table of no or one entry that names `linker`, and that name.
fn elf(machine: u16, linker: Option<&str>) -> Vec<u8> {
    let mut file = vec![0; 120];
    file[..7].copy_from_slice(b"\x7fELF\x02\x01\x01");
    file[16..18].copy_from_slice(&2u16.to_le_bytes());
    file[18..20].copy_from_slice(&machine.to_le_bytes());
    file[20..24].copy_from_slice(&1u32.to_le_bytes());
    file[32..40].copy_from_slice(&64u64.to_le_bytes());
    for (at, half) in [(52, 64u16), (54, 56), (56, u16::from(linker.is_some()))] {
        file[at..at + 2].copy_from_slice(&half.to_le_bytes());
    }
    let name = [linker.unwrap_or_default().as_bytes(), b"\0"].concat();
    file[64..68].copy_from_slice(&3u32.to_le_bytes());
    file[72..80].copy_from_slice(&120u64.to_le_bytes());
    file[96..104].copy_from_slice(&(name.len() as u64).to_le_bytes());
    file.extend(name);
    file
}

const X86_64: u16 = 62;
const SPARC: u16 = 43;

#[cfg(target_arch = "x86_64")]
#[test]
fn what_the_header_tells() {
    let folder = Folder::new("header");
    let at = |name, bytes: &[u8]| obstacle(folder.file(name, bytes, 0o755));
    let gnu = elf(X86_64, Some("/lib64/ld-linux-x86-64.so.2"));
    assert_eq!(at("gnu", &gnu), None);
    assert_eq!(at("static", &elf(X86_64, None)), Some(Obstacle::Static));
    assert_eq!(at("sparc", &elf(SPARC, None)), Some(Obstacle::Foreign));
    let musl = "/lib/ld-musl-x86_64.so.1";
    assert_eq!(
        at("musl", &elf(X86_64, Some(musl))),
        Some(Obstacle::OtherLibrary(musl.into()))
    );
}

#[cfg(target_arch = "x86_64")]
#[test]
fn a_cut_header_is_told_and_a_scrambled_one_no_harm() {
    let folder = Folder::new("cut");
    let whole = elf(X86_64, Some("/lib64/ld-linux-x86-64.so.2"));
    for length in 0..whole.len() {
        let found = obstacle(folder.file("cut", &whole[..length], 0o755));
        // Less than the magic is a script for the shell.
        let expected = (length >= 4).then_some(Obstacle::Damaged);
        assert_eq!(found, expected, "{length}");
    }
    for at in 4..whole.len() {
        let mut scrambled = whole.clone();
        scrambled[at] = 0xff;
        obstacle(folder.file("scrambled", &scrambled, 0o755));
    }
}

#[test]
fn a_script_has_its_interpreters_obstacle() {
    let folder = Folder::new("script");
    let interpreter = folder.file("interpreter", &elf(X86_64, None), 0o755);
    let text = format!("#! {} -x\nbody\n", interpreter.display());
    let script = folder.file("script", text.as_bytes(), 0o755);
    assert_eq!(
        obstacle(script),
        Some(Obstacle::Interpreter(
            interpreter,
            Box::new(Obstacle::Static)
        ))
    );
    for text in ["#!/bin/sh\n", "#!/usr/bin/env sh", "#!", "#! \n", "echo\n"] {
        let script = folder.file("plain", text.as_bytes(), 0o755);
        assert_eq!(obstacle(script), None, "{text:?}");
    }
}

#[test]
fn programs_are_found_as_a_shell_does() {
    let folder = Folder::new("find");
    let found = |name: &OsStr| Program::find(name, &Place::ours()).map(|program| program.file);
    let script = folder.file("script", b"#!/bin/sh\n", 0o755);
    assert_eq!(found(script.as_os_str()).ok(), Some(script));
    assert!(found(OsStr::new("sh")).is_ok_and(|path| path.is_absolute()));
    let plain = folder.file("plain", b"", 0o644);
    assert!(matches!(found(plain.as_os_str()), Err(Error::Forbidden(_))));
    assert!(matches!(
        found(folder.0.as_os_str()),
        Err(Error::Forbidden(_))
    ));
    for absent in ["", "no-such-program-anywhere", "/no/such/program"] {
        assert!(
            matches!(found(OsStr::new(absent)), Err(Error::Absent(_))),
            "{absent:?}"
        );
    }
}

#[test]
fn an_interpreter_that_is_not_there_is_told() {
    let folder = Folder::new("absent");
    let shell = |text: &str| {
        let program = program(folder.file("script", text.as_bytes(), 0o755));
        let checked = program
            .check_interpreter()
            .map_err(|error| error.to_string());
        (program.runs().0, checked.err())
    };
    for text in ["", "echo\n", "#!\n", "#! /bin/sh -x\n"] {
        assert_eq!(shell(text), (PathBuf::from("/bin/sh"), None), "{text:?}");
    }
    for (text, name) in [
        ("#!/no/such\n", "/no/such"),
        ("#! /no/such \t\n", "/no/such"),
        // Lines that end as Windows' do.
        ("#!/bin/sh\r\necho\r\n", "/bin/sh\r"),
        ("#!/usr/bin/env sh\r\necho\r\n", "sh\r"),
        ("#!/usr/bin/env no-such-program -x\n", "no-such-program -x"),
        ("#!/usr/bin/env -S no-such-program -x\n", "no-such-program"),
    ] {
        let (found, said) = shell(text);
        assert_eq!(found, PathBuf::from(name));
        let said = said.expect(text);
        let end = format!("script: its interpreter {name}: no such program");
        assert!(said.ends_with(&end), "{said}");
    }
    let inner = folder.file("inner", b"#!/bin/sh\n", 0o755);
    let (found, said) = shell(&format!("#!{}\n", inner.display()));
    assert_eq!((found, said), (PathBuf::from("/bin/sh"), None));
    #[cfg(target_arch = "x86_64")]
    {
        let linker = folder.file("program", &elf(X86_64, Some("/no/ld-linux.so")), 0o755);
        let error = program(linker).check_interpreter().expect_err("not there");
        assert!(error.is_absent() && error.to_string().contains("/no/ld-linux.so"));
    }
}

#[test]
fn a_script_is_known_by_its_name_where_the_kernel_starts_its_interpreter() {
    let folder = Folder::new("names");
    let known = |name: &str, text: &str| {
        let script = folder.file(name, text.as_bytes(), 0o755);
        let (invoked, _) = program(script.clone()).names().expect("a folder");
        (invoked == script, invoked)
    };
    assert!(known("direct", "#!/bin/sh -e\n").0);
    for (name, text) in [("looked-up", "#!/usr/bin/env sh\n"), ("unsaid", "true\n")] {
        let (is_script, invoked) = known(name, text);
        assert!(!is_script, "{name}");
        assert_eq!(invoked.file_name(), Some("sh".as_ref()), "{name}");
    }
}
