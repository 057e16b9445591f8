use super::*;

/// The rules that these files break, as `path:line rule`.
fn broken(files: &[(&str, &str)]) -> Vec<String> {
    let mut tree = Tree::default();
    for (path, text) in files {
        if path.ends_with("Cargo.toml") {
            tree.manifests.extend(Manifest::parse(path, text));
        } else if path.ends_with(".rs") {
            tree.sources.push(Source::parse(path, text));
        } else {
            tree.texts.push(((*path).to_owned(), (*text).to_owned()));
        }
    }
    tree.mark_test_files();
    let violations = check(&tree);
    violations
        .iter()
        .filter(|v| !v.what.starts_with("is excepted"))
        .map(|v| format!("{}:{} {}", v.path, v.line, v.rule))
        .collect()
}

fn none() -> Vec<String> {
    Vec::new()
}

#[test]
fn crate_roots_forbid_unsafe() {
    let manifest = "[package]\nname = \"via\"\n[[bin]]\npath = \"tools/x.rs\"\n";
    let files = [
        ("via/Cargo.toml", manifest),
        ("via/src/lib.rs", "#![forbid(unsafe_code, missing_docs)]\n"),
        ("via/src/vi.rs", ""),
        ("via/src/bin/a.rs", "//! #![forbid(unsafe_code)]\n"),
        ("via/tools/x.rs", ""),
        ("via/tests/t.rs", ""),
    ];
    assert_eq!(
        broken(&files),
        ["via/src/bin/a.rs:1 unsafe", "via/tools/x.rs:1 unsafe"]
    );
    assert_eq!(
        broken(&[
            ("sys/Cargo.toml", "[package]\nname = \"sys\""),
            ("sys/src/lib.rs", "")
        ]),
        none()
    );
}

#[test]
fn unsafe_has_its_crates() {
    let text = "// unsafe\nfn f() { unsafe { g() } }\n";
    assert_eq!(
        broken(&[("via/tests/t.rs", text)]),
        ["via/tests/t.rs:2 unsafe"]
    );
    assert_eq!(
        broken(&[("system/src/a.rs", text)]),
        ["system/src/a.rs:2 unsafe"]
    );
    assert_eq!(
        broken(&[
            ("sys/src/a.rs", text),
            ("abi/vipl/src/a.rs", text),
            ("providers/verbs/src/a.rs", text)
        ]),
        none()
    );
}

#[test]
fn libc_has_its_folders() {
    let text = "use libc::{c_int, read};\n/// `libc::read`\nfn f(libc: u8) -> u8 { libc }\n";
    assert_eq!(
        broken(&[("via/src/a.rs", text)]),
        ["via/src/a.rs:1 libc", "via/src/a.rs:1 libc"]
    );
    assert_eq!(
        broken(&[("via/src/a.rs", "use libc as c;\n")]),
        ["via/src/a.rs:1 libc"]
    );
    assert_eq!(
        broken(&[("sys/src/a.rs", text), ("testing/dualrun/src/a.rs", text)]),
        none()
    );
}

#[test]
fn atomics_come_from_one_module() {
    let text = "use std::sync::{Arc, atomic::Ordering};\n#[cfg(test)]\nmod tests {\n    use core::sync::atomic::AtomicU8;\n}\n";
    assert_eq!(
        broken(&[("via/src/a.rs", text)]),
        ["via/src/a.rs:1 atomics"]
    );
    assert_eq!(
        broken(&[
            ("sys/src/sync.rs", text),
            ("cli/src/a.rs", text),
            ("providers/shm/tests/a.rs", text)
        ]),
        none()
    );
    assert_eq!(
        broken(&[("sys/src/a.rs", "use crate::sync::atomic::Ordering;\n")]),
        none()
    );
}

#[test]
fn a_test_file_by_its_declaration() {
    let atomic = "use std::sync::atomic::Ordering;\n";
    let files = [
        (
            "via/src/lib.rs",
            "#[cfg(test)]\nmod model;\nmod modelled;\n",
        ),
        ("via/src/model.rs", atomic),
        ("via/src/model/deep.rs", atomic),
        ("via/src/modelled.rs", atomic),
        ("via/src/cq.rs", "#[cfg(test)]\nmod tests;\n"),
        ("via/src/cq/tests.rs", atomic),
    ];
    assert_eq!(broken(&files), ["via/src/modelled.rs:1 atomics"]);
}

#[test]
fn proto_does_no_io() {
    let text = "use std::{fs::File, time::Instant};\nfn f() { Instant::now(); std::thread::yield_now() }\nuse std::time::SystemTime;\n";
    let places = [
        "proto/src/a.rs:1 sans-io",
        "proto/src/a.rs:2 sans-io",
        "proto/src/a.rs:2 sans-io",
        "proto/src/a.rs:3 sans-io",
    ];
    assert_eq!(broken(&[("proto/src/a.rs", text)]), places);
    assert_eq!(broken(&[("via/src/a.rs", text)]), none());
}

#[test]
fn our_threads_take_no_signals() {
    let text = "use std::thread;\nfn f() { thread::Builder::new(); }\n#[cfg(test)]\nmod tests { fn g() { std::thread::spawn(h) } }\n";
    for folder in ["via", "sockets", "providers/shm"] {
        let path = format!("{folder}/src/a.rs");
        assert_eq!(broken(&[(&path, text)]), [format!("{path}:2 signals")]);
    }
    assert_eq!(broken(&[("cli/src/a.rs", text)]), none());
}

#[test]
fn no_module_files() {
    assert_eq!(
        broken(&[("via/src/a/mod.rs", "")]),
        ["via/src/a/mod.rs:1 mod.rs"]
    );
}

#[test]
fn length_counts_what_is_no_test() {
    let code = "fn a() {}\n".repeat(LINES_MAX);
    let long = format!("{code}fn b() {{}}\n");
    let tested = format!("{code}#[cfg(test)]\nmod tests {{\n{code}}}\n");
    assert_eq!(
        broken(&[("via/src/a.rs", &long)]),
        ["via/src/a.rs:1001 length"]
    );
    assert_eq!(broken(&[("via/src/a.rs", &tested)]), none());
    assert_eq!(
        long_files(&[Source::parse("a.rs", &tested)]),
        [("a.rs", LINES_MAX)]
    );
}

#[test]
fn unfinished_is_refused() {
    let word = UNFINISHED_WORDS[0];
    let text = format!("// {word}: later\nlet s = \"{word}\";\ntodo!();\nlet {word}_LIST = 1;\n");
    assert_eq!(
        broken(&[("via/src/a.rs", &text)]),
        ["via/src/a.rs:1 unfinished", "via/src/a.rs:3 unfinished"]
    );
    let script = format!("# {word}\n");
    assert_eq!(
        broken(&[("check", &script), ("README.md", &script)]),
        ["check:1 unfinished"]
    );
}

#[test]
fn a_sleep_has_a_reason() {
    let bare = "fn f() { std::thread::sleep(T); }\n";
    let noted =
        "// tidy: sleep because the timeout is what is tested\nfn f() { thread::sleep(T); }\n";
    let empty = "use std::thread;\n// tidy: sleep because\nfn f() { thread::sleep(T); }\n";
    assert_eq!(
        broken(&[("via/tests/a.rs", bare)]),
        ["via/tests/a.rs:1 sleep"]
    );
    assert_eq!(
        broken(&[("testing/conformance/src/a.rs", bare)]),
        ["testing/conformance/src/a.rs:1 sleep"]
    );
    assert_eq!(
        broken(&[("via/tests/a.rs", empty)]),
        ["via/tests/a.rs:3 sleep"]
    );
    assert_eq!(
        broken(&[("via/tests/a.rs", noted), ("cli/src/a.rs", bare)]),
        none()
    );
}

#[test]
fn an_ignored_test_has_a_reason() {
    let text = "#[ignore]\nfn a() {}\n#[ignore = \"\"]\nfn b() {}\n#[ignore = \"needs a NIC\"]\nfn c() {}\n#[cfg_attr(miri, ignore)]\nfn d(ignore: u8) { e(ignore) }\n";
    let lines = [
        "via/tests/a.rs:1 ignore",
        "via/tests/a.rs:3 ignore",
        "via/tests/a.rs:7 ignore",
    ];
    assert_eq!(broken(&[("via/tests/a.rs", text)]), lines);
}

#[test]
fn the_repository_stands_alone() {
    let text = format!("see {BESIDE}/notes\n");
    assert_eq!(broken(&[("README.md", &text)]), ["README.md:1 alone"]);
}

#[test]
fn exceptions_cover_a_target() {
    for (root, reason) in UNSAFE_TARGETS {
        assert_eq!(exception(root), Some(*root));
        assert!(reason.len() > 10, "{root}: {reason:?} is no reason");
    }
    assert_eq!(exception("via/src/lib.rs"), None);
}

#[test]
fn sys_makes_system_calls_where_the_library_takes_the_function() {
    let text = "fn f() {\n    libc::sendmsg(1);\n    libc::mmap(1);\n    libc::syscall(1);\n    libc::statx(1);\n}\n";
    let list = "# NAME | CLASS | NOTE\nsendmsg | fast | as send\nsyscall | slow | all\nstatx | - | not taken\n";
    let files = |path| [("abi/preload/calls.txt", list), (path, text)];
    assert_eq!(
        broken(&files("sys/src/a.rs")),
        ["sys/src/a.rs:2 taken call"]
    );
    assert_eq!(broken(&files("abi/preload/src/a.rs")), none());
}

#[test]
fn a_cancelled_thread_can_leave_what_the_program_calls() {
    let text = "pub unsafe extern \"C\" fn f() {}\npub unsafe extern \"C-unwind\" fn g() {}\ntype H = unsafe extern \"C\" fn(i32);\n";
    assert_eq!(
        broken(&[("abi/preload/src/a.rs", text)]),
        ["abi/preload/src/a.rs:1 cancellation"]
    );
    assert_eq!(broken(&[("abi/vipl/src/a.rs", text)]), none());
}
