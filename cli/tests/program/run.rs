use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::process::{Command, Output};

use crate::folder::Folder;
use crate::{command, sovia, text};

/// `sovia run` with a script for /bin/sh.
fn run_script(script: &str) -> Output {
    command("run sh -c")
        .arg(script)
        .output()
        .expect("the program starts")
}

#[test]
fn the_exit_status_is_the_programs() {
    for status in [0, 1, 77, 255] {
        let output = run_script(&format!("exit {status}"));
        assert_eq!(output.status.code(), Some(status));
        assert!(output.stderr.is_empty(), "{}", text(&output.stderr));
    }
    use std::os::unix::process::ExitStatusExt;
    assert_eq!(run_script("kill -TERM $$").status.signal(), Some(15));
}

#[test]
fn the_library_is_there_and_so_is_what_was_preloaded() {
    let output = command("run sh -c")
        .arg("grep -c libsovia.so /proc/self/maps; echo $LD_PRELOAD")
        .env("LD_PRELOAD", "libpthread.so.0")
        .output()
        .expect("the program starts");
    let (mapped, preload) = text(&output.stdout).split_once('\n').expect("two lines");
    assert_ne!(mapped, "0", "{}", text(&output.stderr));
    assert!(
        preload.ends_with("libsovia.so:libpthread.so.0\n"),
        "{preload}"
    );
}

/// Services of systemd ignore SIGPIPE, and daemons may begin with closed descriptors.
#[test]
fn the_program_begins_as_if_it_were_run_by_itself() {
    let signals = "grep -E '^Sig(Blk|Ign|Cgt)' /proc/self/status";
    for (before, program) in [
        ("trap '' PIPE;", signals),
        ("trap '' HUP;", signals),
        ("exec <&-;", "cat"),
        ("exec >&-;", "echo lost"),
        ("exec 2>&-;", "ls -l /proc/self/fd/2"),
    ] {
        let ran = |sovia: &str| {
            let mut shell = Command::new("sh");
            shell
                .arg("-c")
                .arg(format!("{before} exec {sovia} {program}"));
            let output = shell.output().expect("a shell");
            (output.status.code(), output.stdout, output.stderr)
        };
        let under = ran(&format!("{} run", env!("CARGO_BIN_EXE_sovia")));
        assert_eq!(under, ran("env"), "{before} {program}");
    }
}

#[test]
fn arguments_go_to_the_program_as_they_are() {
    for separator in ["", "-- "] {
        let line = format!("run {separator}printf %s. --quiet -x -- --help");
        let output = sovia(&line);
        assert_eq!(text(&output.stdout), "--quiet.-x.--.--help.", "{line}");
    }
}

#[test]
fn a_program_that_cannot_be_run_gives_the_status_of_a_shell() {
    for (program, status) in [
        ("no-such-program", 127),
        ("/no/such", 127),
        ("/etc/passwd", 126),
        ("/", 126),
    ] {
        let output = sovia(&format!("run {program}"));
        assert_eq!(output.status.code(), Some(status), "{program}");
        assert!(
            text(&output.stderr).contains(program),
            "{}",
            text(&output.stderr)
        );
    }
    let output = command("run").arg("").output().expect("it starts");
    assert_eq!(text(&output.stderr), "sovia: '': no such program\n");
    assert_eq!(sovia("run").status.code(), Some(2));
    assert_eq!(sovia("run --no-such-option x").status.code(), Some(2));
}

#[test]
fn without_the_library_nothing_runs() {
    let output = command("run true")
        .env("SOVIA_PRELOAD", "/no/such/libsovia.so")
        .output()
        .expect("the program starts");
    assert_eq!(output.status.code(), Some(125));
    assert!(text(&output.stderr).contains("/no/such/libsovia.so"));

    // The dynamic linker would ignore these, and start the program.
    let folder = Folder::new("alone");
    for other in [folder.file("text", "no library"), folder.0.clone()] {
        let output = command("run true")
            .env("SOVIA_PRELOAD", &other)
            .output()
            .expect("the program starts");
        assert_eq!(output.status.code(), Some(125));
        assert!(text(&output.stderr).contains("which is no shared library"));
    }

    // Alone in a folder it tells where it looked.
    let alone = folder.0.join("sovia");
    fs::copy(env!("CARGO_BIN_EXE_sovia"), &alone).expect("a copy");
    let run = || {
        let output = Command::new(&alone).args(["run", "true"]).output();
        output.expect("the copy starts")
    };
    let output = run();
    assert_eq!(output.status.code(), Some(125));
    let said = text(&output.stderr);
    assert!(
        said.contains("alone") && said.contains("lib/sovia/libsovia.so"),
        "{said}"
    );
    // As an installation leaves it that found no room.
    folder.file("libsovia.so", "");
    let output = run();
    assert_eq!(output.status.code(), Some(125));
    let said = text(&output.stderr);
    assert!(said.contains("libsovia.so is no shared library"), "{said}");
}

#[test]
fn a_program_that_cannot_be_accelerated_runs_with_a_warning() {
    let folder = Folder::new("script");
    let script = folder.0.join("script");
    // An interpreter for another processor never gets to run; the warning comes before.
    let interpreter = folder.0.join("interpreter");
    let mut header = [0; 64];
    header[..7].copy_from_slice(b"\x7fELF\x01\x01\x01");
    fs::write(&interpreter, header).expect("a file");
    fs::write(&script, format!("#!{}\n", interpreter.display())).expect("a file");
    for file in [&interpreter, &script] {
        fs::set_permissions(file, fs::Permissions::from_mode(0o755)).expect("chmod");
    }
    let warned = |options: &str| {
        let output = sovia(&format!("run {options} {}", script.display()));
        text(&output.stderr).contains("not over Virtual Interfaces")
    };
    assert!(warned(""));
    assert!(!warned("--quiet"));
}

#[test]
fn who_has_read_enough_is_no_failure() {
    for (arguments, status) in [
        ("stat --reasons", 0),
        ("vi list", 0),
        ("check /bin/sh", 0),
        ("check /no/such", 127),
        ("stat --prometheus --listen 0", 0),
    ] {
        let (reader, writer) = std::io::pipe().expect("a pipe");
        drop(reader);
        // Nobody reads complaints, either.
        let status_of = command(arguments)
            .stdout(writer.try_clone().expect("a descriptor"))
            .stderr(writer)
            .status()
            .expect("the program starts");
        assert_eq!(status_of.code(), Some(status), "{arguments}");
    }
}
