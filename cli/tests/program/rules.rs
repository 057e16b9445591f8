use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::folder::Folder;
use crate::talk::{Talk, Talker};
use crate::{command, stdout_of, text};

/// More than it takes to upgrade a connection.
const ENOUGH: u32 = 2000;

pub(crate) fn config(talk: &Talk, text: &str) -> PathBuf {
    let path = talk.folder.0.join("sovia.toml");
    fs::write(&path, text).expect("a file");
    path
}

pub(crate) fn stat_of(talker: &Talker) -> String {
    stdout_of(&format!("stat --json --pid {}", talker.pid()))
}

#[track_caller]
pub(crate) fn holds(text: &str, words: &[&str]) {
    for word in words {
        assert!(text.contains(word), "{word} in {text}");
    }
}

#[test]
fn never_keeps_a_connection_on_tcp() {
    let talk = Talk::new("never");
    let config = config(&talk, "[[rule]]\nprogram = \"talk\"\nupgrade = \"never\"\n");
    let [server, client] = talk.both(&config, ENOUGH);
    for talker in [&server, &client] {
        let said = stat_of(talker);
        holds(
            &said,
            &[
                "\"path\": \"tcp\"",
                "\"number\": 82",
                "\"rule-never\"",
                "\"upgrade\": \"never\"",
            ],
        );
    }
    assert_eq!(client.end(), "");
    assert_eq!(server.end(), "");
}

#[test]
fn rules_for_others_let_it_upgrade() {
    let talk = Talk::new("possible");
    let config = config(
        &talk,
        "[[rule]]\nprogram = \"talker\"\nupgrade = \"never\"\n\n[[rule]]\nport = 1\nupgrade = \"never\"\n
         [[rule]]\npeer = \"10.0.0.0/8\"\nupgrade = \"never\"\n\n[[rule]]\npeer = \"127.0.0.1\"\nupgrade = \"when-possible\"\n",
    );
    let [server, client] = talk.both(&config, ENOUGH);
    for talker in [&server, &client] {
        let said = stat_of(talker);
        holds(
            &said,
            &[
                "\"path\": \"shm/ring\"",
                "\"number\": 4",
                "\"when-possible\"",
            ],
        );
    }
    assert_eq!(client.end(), "");
    assert_eq!(server.end(), "");
}

#[test]
fn always_is_told_when_it_is_not() {
    let talk = Talk::new("always");
    let config = config(&talk, "# this one\n[[rule]]\nupgrade = \"always\"\n");
    let sovia = env!("CARGO_BIN_EXE_sovia");
    let run = |word| {
        let mut command = Command::new("sh");
        // Memory files may not be as large as an upgrade needs.
        command.arg("-c").arg("ulimit -f 100; exec \"$@\"");
        command.args(["sh", sovia, "run", "--config"]).arg(&config);
        command.arg(&talk.program).arg(word);
        command
    };
    let [server, client] = talk.pair(&mut run("server"), &mut run("client"), ENOUGH);
    let both = client.end() + &server.end();
    let line = format!("though {}:2 says always", config.display());
    assert_eq!(both.matches(&line).count(), 2, "{both}");
    holds(&both, &["is on TCP (reason 61 memory)"]);
}

/// A program lives on, whatever has become of its standard error.
#[test]
fn always_is_told_to_nobody_without_harm() {
    let talk = Talk::new("nobody");
    let config = config(&talk, "[[rule]]\nupgrade = \"always\"\n");
    let run = |word| {
        let mut command = Command::new("bash");
        // A pipe whose reader has ended.
        let line = "ulimit -f 100; exec 2> >(:); wait $!; exec \"$@\"";
        command.args(["-c", line, "bash", env!("CARGO_BIN_EXE_sovia")]);
        command.args(["run", "--config"]).arg(&config);
        command.arg(&talk.program).arg(word);
        command
    };
    let [server, mut client] = talk.pair(&mut run("server"), &mut run("client"), ENOUGH);
    client.exchange(1);
    assert_eq!(client.end(), "");
    assert_eq!(server.end(), "");
}

#[test]
fn always_is_marked_in_stat_when_it_is_not() {
    let talk = Talk::new("marked");
    let config = config(&talk, "[[rule]]\nupgrade = \"always\"\n");
    let mut server = command("run --config");
    server.arg(&config).arg(&talk.program).arg("server");
    let mut client = Command::new(&talk.program);
    let [server, mut client] = talk.pair(&mut server, client.arg("client"), ENOUGH);
    let table = format!("stat --pid {}", server.pid());
    // It gives up after so many calls, in which so much time must pass, too.
    let told = (0..1000).any(|_| {
        client.exchange(ENOUGH);
        stdout_of(&table).contains("tcp 6 peer-without-sovia (always!)")
    });
    assert!(told, "{}", stdout_of(&table));
    assert_eq!(client.end(), "");
    holds(&server.end(), &["is on TCP (reason 6 peer-without-sovia)"]);
}

#[test]
fn a_configuration_is_checked_by_itself() {
    let talk = Talk::new("alone");
    let config = config(&talk, "[[rule]]\nport = 1\nupgrade = \"never\"\n");
    let explain = |words: &[&str]| {
        let mut command = command("explain --config");
        let output = command
            .arg(&config)
            .args(words)
            .output()
            .expect("it starts");
        let said = [&*output.stdout, &*output.stderr].concat();
        (output.status.code(), text(&said).to_owned())
    };
    let (status, said) = explain(&[]);
    assert_eq!(status, Some(0), "{said}");
    holds(&said, &["sovia.toml: no mistake, 1 rule\n"]);
    holds(&explain(&["--json"]).1, &["\"rules\": 1"]);
    // A program alone is no question.
    assert_eq!(explain(&["true"]).0, Some(2));
    fs::write(&config, b"# a\n# \xff\n").expect("it is ours");
    holds(
        &explain(&[]).1,
        &["sovia.toml:2:3: a byte that is not UTF-8"],
    );
    fs::write(&config, "[[rule]]\nupgrade = 3\n").expect("it is ours");
    let (status, said) = explain(&[]);
    assert_eq!(status, Some(2), "{said}");
    holds(&said, &["sovia.toml:2:11: "]);
    let shell = |script: &str| {
        let mut command = Command::new("bash");
        command.args(["-c", script, env!("CARGO_BIN_EXE_sovia")]);
        let output = command.arg(&config).output().expect("a shell");
        text(&[&*output.stdout, &*output.stderr].concat()).to_owned()
    };
    holds(&shell("$0 explain --config <(echo)"), &["no mistake"]);
    holds(
        &shell("echo | $0 explain --config /dev/stdin"),
        &["no mistake"],
    );
    let pipe = "rm $1; mkfifo $1; $0 explain --config $1";
    holds(&shell(pipe), &["sovia.toml: a named pipe"]);
}

#[test]
fn a_mistake_stops_the_program_before_it_runs() {
    let talk = Talk::new("mistake");
    let config = config(&talk, "[[rule]]\nupgrade = \"never\"\nprot = 5\n");
    let place = format!("{}:3:1: unknown field `prot`", config.display());
    let output = command("run true").env("SOVIA_CONFIG", &config).output();
    let output = output.expect("it starts");
    assert_eq!(output.status.code(), Some(125));
    holds(text(&output.stderr), &[&place]);
    let output = command("explain true :1")
        .env("SOVIA_CONFIG", &config)
        .output();
    let output = output.expect("it starts");
    assert_eq!(output.status.code(), Some(2));
    holds(text(&output.stderr), &[&place]);
    // A file that was named has to be there.
    for (variable, status) in [("/no/such", 125), ("", 0)] {
        let output = command("run true").env("SOVIA_CONFIG", variable).output();
        assert_eq!(output.expect("it starts").status.code(), Some(status));
    }
}

#[test]
fn the_usual_place_is_found() {
    let talk = Talk::new("usual");
    let folder = talk.folder.0.join("sovia");
    fs::create_dir(&folder).expect("a folder");
    fs::write(
        folder.join("sovia.toml"),
        "[[rule]]\nport = 99\nupgrade = \"never\"\n",
    )
    .expect("a file");
    let mut explain = command("explain sh :99");
    explain
        .env("XDG_CONFIG_HOME", &talk.folder.0)
        .env_remove("SOVIA_CONFIG");
    let output = explain.output().expect("it starts");
    holds(
        text(&output.stdout),
        &["sovia/sovia.toml:1: never", "reason 82 rule-never"],
    );
}

#[test]
fn an_address_that_is_none_is_told_why() {
    for (address, why) in [
        ("127.0.0.1", "there is no port"),
        ("127.0.0.1:", "from 1 to 65535"),
        (":0", "from 1 to 65535"),
        (":http", "from 1 to 65535"),
        ("[::1%nowhere]:80", "no such interface"),
        ("[ff02::1%lo]:80", "nobody is connected to there"),
        ("255.255.255.255:80", "nobody is connected to there"),
        ("[ff02::1]:80", "nobody is connected to there"),
    ] {
        let output = command("explain --config= sh").arg(address).output();
        let output = output.expect("it starts");
        assert_eq!(output.status.code(), Some(2), "{address}");
        let said = text(&output.stderr);
        assert!(said.contains(address) && said.contains(why), "{said}");
    }
    for (address, shown) in [("0.0.0.0:80", "127.0.0.1:80"), ("[::]:80", "[::1]:80")] {
        let output = command("explain --config= sh").arg(address).output();
        let said = output.expect("it starts").stdout;
        assert!(text(&said).contains(shown), "{}", text(&said));
    }
}

#[test]
fn explain_names_the_rule_and_the_outcome() {
    let talk = Talk::new("explain");
    let config = config(&talk, RULES);
    let explain = |words: &str| {
        let output = command("explain --config")
            .arg(&config)
            .args(words.split(' '))
            .output();
        let output = output.expect("it starts");
        assert!(output.status.success(), "{}", text(&output.stderr));
        let place = config.display().to_string();
        text(&output.stdout).replace(&place, "sovia.toml")
    };
    holds(
        &explain("sh 127.0.0.1:5432"),
        &[
            "not      sovia.toml:1: another program",
            "decides  sovia.toml:5: never",
            "reason 82 rule-never",
        ],
    );
    holds(
        &explain("sh 203.0.113.9:80"),
        &[
            "sovia.toml:9: always",
            "reason 3 not-local",
            "no address of this host",
        ],
    );
    holds(
        &explain("sh :81"),
        &[
            "no rule of sovia.toml says otherwise: when-possible",
            "moves to shared memory",
        ],
    );
    holds(
        &explain("--json sh [::1]:80"),
        &[
            "\"line\": 9",
            "\"upgrade\": \"always\"",
            "\"reason\": null",
            "\"because\": \"another port\"",
        ],
    );
    let script = talk.folder.file("deploy", "#!/bin/sh\n");
    holds(
        &explain(&format!("{} :1", script.display())),
        &["sovia.toml:1: never", "run by /"],
    );
    let output = command("explain sh nowhere").output().expect("it starts");
    assert_eq!(output.status.code(), Some(2));
}

/// Nothing is promised that `sovia check` knows better.
#[test]
fn explain_looks_at_the_surroundings() {
    let folder = Folder::new("surroundings");
    let small = folder.file("small", "[connection]\nbuffer-bytes = 65536\n");
    let large = folder.file("large", "[connection]\nbuffer-bytes = 16777216\n");
    let configs = [&small, &large].map(|path| path.to_str().expect("UTF-8"));
    for (line, said) in [
        ("$0 explain --config= sh :80", "moves to shared memory"),
        (
            "SOVIA_PRELOAD=/nonexist $0 explain --config= sh :80",
            "stays on TCP: SOVIA_PRELOAD names /nonexist, which is not there (reason 6",
        ),
        (
            "ulimit -f 1024; $0 explain --config= sh :80",
            "stays on TCP: files may not be as large",
        ),
        ("ulimit -f 1024; $0 explain --config=$1 sh :80", "moves to"),
        (
            "ulimit -v 100000; $0 explain --config=$2 sh :80",
            "(ulimit -v) (reason 61",
        ),
    ] {
        let mut shell = Command::new("sh");
        shell.args(["-c", line, env!("CARGO_BIN_EXE_sovia")]);
        shell.args(configs);
        let output = shell.output().expect("sh");
        let all = text(&output.stdout);
        assert!(all.contains(said), "{line}: {all}{}", text(&output.stderr));
    }
}

/// Who reads it may be in another folder.
#[test]
fn a_relative_configuration_is_handed_on_with_its_folder() {
    let folder = Folder::new("relative");
    folder.file("here.toml", "[[rule]]\nport = 80\nupgrade = \"never\"\n");
    let place = folder.0.canonicalize().expect("it is there");
    let mut run = command("run --config here.toml env -C /");
    run.args(["sh", "-c", "echo $SOVIA_RULES"]);
    let output = run.current_dir(&place).output().expect("it starts");
    let wanted = format!("2 {}/here.toml;", place.display());
    let said = text(&output.stdout);
    assert!(said.starts_with(&wanted), "{said}{}", text(&output.stderr));
}

/// The inner one has its own file, or none, alone.
#[test]
fn an_inner_run_has_nothing_of_an_outer_ones_file() {
    let folder = Folder::new("inner");
    let outer = "[packet]\nvariant = \"combine\"\n[iwarp]\naddress = \"192.0.2.1:7471\"\n";
    folder.file("outer.toml", outer);
    folder.file("inner.toml", "[packet]\nvariant = \"dacks\"\n");
    let show = "echo [$SOVIA_PACKET $SOVIA_IWARP $SOVIA_FILE_PACKET $SOVIA_FILE_IWARP]";
    let sovia = env!("CARGO_BIN_EXE_sovia");
    for (between, inner, shown) in [
        ("", "inner.toml", "[dacks dacks]"),
        ("", "", "[ ]"),
        ("SOVIA_IWARP=:1", "inner.toml", "[dacks :1 dacks]"),
    ] {
        let mut run = command("run --config outer.toml env");
        run.args([between].iter().filter(|word| !word.is_empty()));
        run.args([sovia, "run", "--config", inner, "sh", "-c", show]);
        run.env_remove("SOVIA_PACKET").env_remove("SOVIA_IWARP");
        let output = run.current_dir(&folder.0).output().expect("it starts");
        let said = text(&output.stdout).trim();
        let all = text(&output.stderr);
        assert_eq!(said.replace(' ', ""), shown.replace(' ', ""), "{all}");
    }
}

/// A library of another version, or someone who plays with the variable.
#[test]
fn rules_that_are_not_understood_keep_everything_on_tcp() {
    let talk = Talk::new("unknown");
    let library = Path::new(env!("CARGO_BIN_EXE_sovia")).with_file_name("deps/libsovia.so");
    let run = |word, unknown| {
        let mut command = Command::new(&talk.program);
        command
            .env("LD_PRELOAD", &library)
            .env("SOVIA_RULES", unknown)
            .arg(word);
        command
    };
    // Of a version to come, of the one before, and with a word that none has.
    for unknown in ["3 new", "1 old;1 never", "2 here;1 colour=3"] {
        let run = |word| run(word, unknown);
        let [server, client] = talk.pair(&mut run("server"), &mut run("client"), ENOUGH);
        holds(&stat_of(&client), &["\"number\": 80"]);
        holds(
            &(client.end() + &server.end()),
            &["SOVIA_RULES is not understood"],
        );
    }
}

const RULES: &str = "[[rule]]
program = [\"deploy\", \"rsync\"]
upgrade = \"never\"

[[rule]]
port = 5432
upgrade = \"never\"

[[rule]]
port = [80, \"8000-8099\"]
upgrade = \"always\"
";
