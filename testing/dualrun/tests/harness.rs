//! The harness itself, with shell scripts in place of programs.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::time::Duration;

use dualrun::ends::{Combination, End, Outcome, Run};

/// Runs a script as both ends; `library` stands for a library to preload.
fn run(name: &str, script: &str, combination: Combination, timeout: Duration) -> Outcome {
    let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name);
    fs::write(&path, format!("#!/bin/sh\n{script}")).expect("the target folder");
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).expect("its own file");
    let run = Run {
        binary: path,
        static_twin: None,
        warm: false,
        subject: End::Client,
        combination,
        // The dynamic linker complains of what is no library, and goes on.
        library: Some(PathBuf::from("/dev/null")),
        timeout,
        patience: None,
        variables: Vec::new(),
    };
    run.carry_out().expect("sh can be started")
}

const LONG: Duration = Duration::from_secs(60);

#[test]
fn an_end_has_its_name_its_words_and_its_status() {
    let outcome = run(
        "words",
        "echo I am the $1; echo oops >&2; [ $1 = client ]",
        Combination::NATIVE,
        LONG,
    );
    let [client, server] = &outcome.transcripts;
    assert_eq!(client.lines, ["I am the client", "stderr: oops", "exit 0"]);
    assert_eq!(server.lines, ["I am the server", "stderr: oops", "exit 1"]);
    assert!(outcome.hang.is_none());
}

#[test]
fn the_ends_are_joined_by_a_channel() {
    let script = "[ $1 = client ] && head -c 5 || printf hello >&0";
    let outcome = run("channel", script, Combination::NATIVE, LONG);
    assert_eq!(outcome.transcripts[0].lines, ["hello", "exit 0"]);
}

#[test]
fn only_the_ends_of_the_combination_are_preloaded() {
    let script = "echo ${LD_PRELOAD:-none} ${SOVIA_TRACE_UPGRADE:+traced}";
    for combination in Combination::COMPARED {
        let outcome = run("preloaded", script, combination, LONG);
        let preloaded = |end: usize| {
            outcome.transcripts[end]
                .lines
                .contains(&"/dev/null traced".into())
        };
        assert_eq!(preloaded(0), combination.client, "client of {combination}");
        assert_eq!(preloaded(1), combination.server, "server of {combination}");
    }
}

#[test]
fn upgrades_are_counted_by_end() {
    let script =
        r#"[ $1 = server ] || printf 'upgraded 3\nupgraded 4\n' >> "$SOVIA_TRACE_UPGRADE""#;
    let outcome = run("upgrades", script, Combination::SOVIA, LONG);
    assert_eq!(outcome.upgraded, [2, 0]);
}

#[test]
fn a_hang_is_described_and_ended_with_its_children() {
    // The child leaves its session, and would outlive its parent.
    let script = "echo begins; [ $1 = client ] && exit 0; setsid sleep 1000 & wait";
    let outcome = run("hang", script, Combination::NATIVE, Duration::from_secs(2));
    let hang = outcome.hang.expect("it hangs");
    assert!(hang.contains("sleep 1000"), "{hang}");
    assert!(hang.contains("state S"), "{hang}");
    assert_eq!(outcome.transcripts[0].lines, ["begins", "exit 0"]);
    assert_eq!(outcome.transcripts[1].lines, ["begins", "signal 9"]);
}
