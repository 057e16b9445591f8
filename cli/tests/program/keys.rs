//! Buffers, waits and patience by rules.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::fd::OwnedFd;
use std::path::Path;
use std::process::Command;

use crate::rules::{config, holds, stat_of};
use crate::talk::{Talk, Talker};
use crate::{command, stdout_of, text};

/// More than it takes to upgrade a connection.
const ENOUGH: u32 = 2000;

/// One at which nobody listens.
fn port() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    listener.local_addr().expect("bound").port()
}

/// A server at `port`, or where the kernel wants it, and a client of its, with `words` in their environment.
fn pair(talk: &Talk, config: &Path, port: Option<u16>, words: &[(&str, &str)]) -> [Talker; 2] {
    let run = |word| {
        let mut command = command("run --config");
        command.arg(config).arg(&talk.program).arg(word);
        command.envs(words.iter().copied());
        command
    };
    let mut server = run("server");
    if let Some(port) = port {
        server.env("TALK_PORT", port.to_string());
    }
    talk.pair(&mut server, &mut run("client"), ENOUGH)
}

#[test]
fn a_rule_gives_a_port_its_buffer() {
    let talk = Talk::new("buffer");
    let small = port();
    let rule = format!("[[rule]]\nport = {small}\nbuffer-bytes = 65536\n");
    let config = config(&talk, &rule);
    for (port, fits) in [(Some(small), 65536), (None, 2 << 20)] {
        let reads = ENOUGH.to_string();
        let [server, mut client] = pair(&talk, &config, port, &[("TALK_READS", &reads)]);
        holds(&stat_of(&client), &["\"path\": \"shm/ring\""]);
        // The lines of a ring that are kept apart are a few.
        let sent = client.fill();
        assert!(sent <= fits && sent > fits / 2, "{sent} of {fits}");
        drop((server, client));
    }
}

#[test]
fn a_rule_has_waits_sleep_at_once() {
    let talk = Talk::new("spin");
    let sleepy = port();
    // One by port, and one by program, which the waits for several heed as well.
    let by_port =
        format!("[[rule]]\nport = {sleepy}\nspin-us = 0\n\n[connection]\nspin-us = 1000\n");
    let by_program = "[[rule]]\nprogram = \"talk\"\nspin-us = 0\n\n[connection]\nspin-us = 1000\n";
    for (rules, ways) in [
        (by_port.as_str(), ["none", "poll"].as_slice()),
        (by_program, &["none", "poll", "epoll"]),
    ] {
        let config = config(&talk, rules);
        for &way in ways {
            let words: &[_] = if way == "none" {
                &[]
            } else {
                &[("TALK_WAIT", way)]
            };
            let ends = pair(&talk, &config, Some(sleepy), words);
            let slept: u32 = ends.iter().map(sleeps).sum();
            // Somebody has to wait for each message, and finds nothing at first.
            assert!(slept > ENOUGH / 2, "{way}: {slept}");
        }
    }
}

#[test]
fn a_wait_for_several_is_the_programs() {
    let talk = Talk::new("several");
    let busy = port();
    let rule = format!("[[rule]]\nport = {busy}\nspin-us = 1000\n\n[connection]\nspin-us = 0\n");
    let config = config(&talk, &rule);
    for way in ["several", "epoll"] {
        let [server, client] = pair(&talk, &config, Some(busy), &[("TALK_WAIT", way)]);
        assert!(sleeps(&server) > 0, "{way}");
        drop((server, client));
    }
}

fn sleeps(of: &Talker) -> u32 {
    let said = stat_of(of);
    holds(&said, &["\"path\": \"shm/ring\""]);
    let (_, from) = said.split_once("\"sleeps\": ").expect("it is told");
    let (number, _) = from.split_once(',').expect("more follows");
    number.parse().expect("a number")
}

#[test]
fn a_rule_says_when_a_port_leaves_tcp() {
    let talk = Talk::new("after");
    let early = port();
    let patient = "after-turns = 1000000\nafter-bytes = 1099511627776\n";
    let here = format!("[[rule]]\nport = {early}\nafter-turns = 1\n\n[connection]\n{patient}");
    // As far as the patient one is the rule, and the other way about.
    let there = format!("[[rule]]\nport = {early}\n{patient}");
    let young = "\"not-tried\"";
    let upgraded = "\"path\": \"shm/ring\"";
    for (rules, of_rule, of_others) in [(here, upgraded, young), (there, young, upgraded)] {
        let config = config(&talk, &rules);
        // Where `connect` does not wait, the rules are asked later.
        for later in ["0", "1"] {
            let ends = |port| pair(&talk, &config, port, &[("TALK_LATER", later)]);
            for end in ends(Some(early)) {
                holds(&stat_of(&end), &[of_rule]);
            }
            for end in ends(None) {
                holds(&stat_of(&end), &[of_others]);
            }
        }
    }
}

/// As `inetd` starts a program: it has a connection when it begins.
#[test]
fn what_a_program_begins_with_heeds_them_too() {
    let talk = Talk::new("begun");
    let patient = "[connection]\nafter-turns = 1000000\nafter-bytes = 1099511627776\n";
    for (text, name) in [(patient, "not-tried"), ("", "peer-without-sovia")] {
        let config = config(&talk, text);
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = listener.local_addr().expect("bound");
        let mut peer = TcpStream::connect(address).expect("it listens");
        let (begun, _) = listener.accept().expect("it has connected");
        let begun = OwnedFd::from(begun);
        let out = begun.try_clone().expect("a number");
        let mut command = command("run --config");
        command.arg(&config).arg("cat").stdin(begun).stdout(out);
        let mut cat = command.spawn().expect("it starts");
        drop(command);
        let mut exchange = || {
            let mut byte = [7];
            peer.write_all(&byte).expect("it reads");
            peer.read_exact(&mut byte).expect("it answers");
        };
        (0..ENOUGH).for_each(|_| exchange());
        let reason = || {
            let said = stdout_of(&format!("stat --json --pid {}", cat.id()));
            let (_, from) = said.split_once("\"name\": \"").expect("it has a reason");
            let (name, _) = from.split_once('"').expect("it ends");
            name.to_owned()
        };
        // It gives up after so many calls, in which so much time must pass, too.
        let told = (0..1000).any(|_| {
            (0..ENOUGH).for_each(|_| exchange());
            reason() == name
        });
        assert!(told, "{} in place of {name}", reason());
        drop(peer);
        assert!(cat.wait().expect("a child").success());
    }
}

#[test]
fn explain_says_who_decides_over_each_key() {
    let talk = Talk::new("each");
    let config = config(&talk, RULES);
    let explain = |words: &str| {
        let output = command("explain --config")
            .arg(&config)
            .args(words.split(' '))
            .output();
        let output = output.expect("it starts");
        assert!(output.status.success(), "{}", text(&output.stderr));
        let shown = text(&output.stdout).replace(&config.display().to_string(), "sovia.toml");
        let (_, shown) = shown.split_once("address").unwrap_or(("", &shown));
        format!("$ sovia explain {words}\naddress{shown}")
    };
    let said = ["sh :5432", "sh :80", "cat :80"].map(explain);
    insta::assert_snapshot!(said.join("\n"));
    holds(
        &explain("--json sh :5432"),
        &[
            "\"key\": \"buffer-bytes\",\n      \"value\": 65536,\n      \"from\": \"rule\",\n      \"line\": 1",
            "\"value\": 3,\n      \"from\": \"connection\",\n      \"line\": null",
            "\"several\": {\n    \"key\": \"spin-us\",\n    \"value\": null",
        ],
    );
    // It says nothing of whether.
    let checked = Command::new(env!("CARGO_BIN_EXE_sovia"))
        .args(["check", "--config"])
        .arg(&config)
        .arg("cat")
        .output()
        .expect("it starts");
    assert!(!text(&checked.stdout).contains("sovia.toml:1"));
}

const RULES: &str = "[[rule]]
port = 5432
buffer-bytes = 65536

[[rule]]
program = \"cat\"
upgrade = \"never\"
spin-us = 0

[[rule]]
port = 5432
upgrade = \"always\"
spin-us = 50

[connection]
after-turns = 3
";
