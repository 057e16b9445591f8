//! C programs of type SOCK_VIA, each in a process of its own: with `sov.h`, and with POSIX's calls under `libsovia.so`.

use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU16, Ordering};

/// Where cargo puts what it builds.
fn built() -> PathBuf {
    let test = std::env::current_exe().expect("this test");
    let deps = test.parent().expect("a folder");
    deps.to_owned()
}

fn library(name: &str) -> PathBuf {
    let deps = built();
    let beside = deps.parent().expect("a folder").join(name);
    let within = deps.join(name);
    let newest = [beside, within].into_iter().filter(|path| path.exists());
    newest
        .max_by_key(|path| {
            std::fs::metadata(path)
                .and_then(|found| found.modified())
                .ok()
        })
        .unwrap_or_else(|| panic!("{name} is not built"))
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Face {
    Linked,
    Preloaded,
}

const FACES: [Face; 2] = [Face::Linked, Face::Preloaded];

fn compile(face: Face, name: &str) -> PathBuf {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let out = built().join(format!("sov-{name}-{face:?}-{}", std::process::id()));
    let mut cc = Command::new("cc");
    cc.args([
        "-std=c11",
        "-D_DEFAULT_SOURCE",
        "-Wall",
        "-Wextra",
        "-Werror",
        "-O1",
        "-o",
    ]);
    cc.arg(&out).arg(here.join("tests/c/echo.c"));
    match face {
        Face::Linked => {
            let library = library("libsov.so");
            cc.arg("-I").arg(here.join("include")).arg(&library);
            cc.arg(format!(
                "-Wl,-rpath,{}",
                library.parent().expect("a folder").display()
            ));
        }
        Face::Preloaded => {
            cc.arg("-DPRELOADED");
        }
    }
    assert!(cc.status().expect("a C compiler").success());
    out
}

fn start(program: &Path, face: Face, version: &str, arguments: [&str; 3]) -> Child {
    let mut command = Command::new(program);
    command.args(arguments).env("SOVIA_PACKET", version);
    // A NIC for each pair: the port of its door is another kind than theirs.
    command.env("SOVIA_IWARP", format!("127.0.0.1:{}", arguments[1]));
    command.stdin(Stdio::piped()).stdout(Stdio::piped());
    if face == Face::Preloaded {
        command.env("LD_PRELOAD", library("libsovia.so"));
    }
    command.spawn().expect("a process")
}

fn line(child: &mut Child) -> String {
    let stdout = child.stdout.take().expect("a pipe");
    let mut line = String::new();
    BufReader::new(stdout).read_line(&mut line).expect("a line");
    line.trim().to_owned()
}

/// A server and a client in one mode; whether each ended well.
fn run(program: &Path, face: Face, version: &str, mode: &str) -> [bool; 2] {
    static NEXT: AtomicU16 = AtomicU16::new(0);
    // Below those that the kernel gives to whoever connects, for over iWARP it is one of TCP's.
    let own = (std::process::id() % 200) as u16 * 100;
    let port = (12000 + own + NEXT.fetch_add(1, Ordering::Relaxed)).to_string();
    let mut server = start(program, face, version, ["serve", &port, mode]);
    assert_eq!(line(&mut server), "listening");
    let mut client = start(program, face, version, ["ask", &port, mode]);
    if mode == "before" {
        assert_eq!(line(&mut client), "sent");
        let mut stdin = server.stdin.take().expect("a pipe");
        stdin.write_all(b"g").expect("the server reads");
    }
    [client, server].map(|mut child| child.wait().expect("a child").success())
}

fn in_every_version(faces: &[Face], mode: &str, well: [bool; 2]) {
    for &face in faces {
        let program = compile(face, mode);
        for version in [
            "",
            "handler",
            "single",
            "flowctrl",
            "dacks",
            "combine",
            "dacks,register",
            "dacks,poll",
            "nic=iwarp",
            "windowless,nic=iwarp",
        ] {
            assert_eq!(
                run(&program, face, version, mode),
                well,
                "{face:?} {version}"
            );
        }
        std::fs::remove_file(program).expect("it is there");
    }
}

#[test]
fn long_messages_both_ways_and_a_partial_close() {
    in_every_version(&FACES, "echo", [true, true]);
}

#[test]
fn a_child_of_fork_leaves_its_parents_sockets_alone() {
    in_every_version(&[Face::Linked], "forked", [true, true]);
}

/// The calls of `sov.h` have no poll of their own.
#[test]
fn programs_that_poll_are_told_what_there_is() {
    for mode in ["polled", "edge"] {
        in_every_version(&[Face::Preloaded], mode, [true, true]);
    }
}

#[test]
fn a_client_connects_and_sends_before_the_server_accepts() {
    for face in FACES {
        let program = compile(face, "before");
        for version in ["dacks", "combine"] {
            assert_eq!(
                run(&program, face, version, "before"),
                [true, true],
                "{face:?} {version}"
            );
        }
        std::fs::remove_file(program).expect("it is there");
    }
}

#[test]
fn a_program_that_exits_without_closing_loses_nothing() {
    in_every_version(&FACES, "exit", [true, true]);
}

#[test]
fn nor_one_that_ends_by_another_of_c_s_ways() {
    for mode in ["_exit", "_Exit", "quick_exit"] {
        in_every_version(&FACES, mode, [true, true]);
    }
}

#[test]
fn a_call_waits_as_long_as_the_socket_says() {
    in_every_version(&FACES, "timed", [true, true]);
}

#[test]
fn a_close_that_lingers_for_no_time_resets() {
    in_every_version(&FACES, "linger", [true, true]);
}

#[test]
fn a_killed_program_resets_its_connections_and_what_it_sent_arrives() {
    in_every_version(&FACES, "killed", [false, true]);
}

#[test]
fn a_wrong_version_is_an_error_and_no_tcp() {
    for face in FACES {
        let program = compile(face, "wrong");
        let mut server = start(&program, face, "faster", ["serve", "31999", "echo"]);
        assert_eq!(line(&mut server), "");
        assert!(!server.wait().expect("a child").success());
        std::fs::remove_file(program).expect("it is there");
    }
}

#[test]
fn the_header_compiles_alone_and_as_cplusplus() {
    let header = Path::new(env!("CARGO_MANIFEST_DIR")).join("include/sov.h");
    for (compiler, language) in [("cc", "c"), ("c++", "c++")] {
        let status = Command::new(compiler)
            .args([
                "-x",
                language,
                "-Wall",
                "-Wextra",
                "-Werror",
                "-fsyntax-only",
            ])
            .arg(&header)
            .status()
            .expect("a compiler");
        assert!(status.success(), "{compiler}");
    }
}
