//! The program as its users meet it.

use std::process::{Command, Output};

mod bench;
mod check;
mod folder;
mod keys;
mod lab;
mod netpipe;
mod rping;
mod rules;
mod run;
mod stat;
mod talk;
mod vi;

fn command(arguments: &str) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_sovia"));
    command.args(arguments.split_whitespace());
    command
}

/// The same, with a word for `env` about signals: what this program ignores it would, too.
fn command_with_signals(word: &str, arguments: &str) -> Command {
    let mut command = Command::new("env");
    command.args([word, env!("CARGO_BIN_EXE_sovia")]);
    command.args(arguments.split_whitespace());
    command
}

fn sovia(arguments: &str) -> Output {
    command(arguments).output().expect("the program starts")
}

/// Its standard output, when it succeeds.
fn stdout_of(arguments: &str) -> String {
    let output = sovia(arguments);
    assert!(
        output.status.success(),
        "{arguments}: {}",
        text(&output.stderr)
    );
    text(&output.stdout).to_owned()
}

fn text(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).expect("UTF-8")
}
