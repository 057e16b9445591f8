//! A program comes to its limits in the middle of an upgrade: its connection stays on TCP, nothing is lost, and `sovia stat` says why.

use std::collections::BTreeMap;

use hostile::program::Program;
use hostile::victim::Talker;
use sockets::reason::Reason;
use sockets::stat::{self, Path};

#[test]
fn without_scarcity_it_is_upgraded() {
    let program = Program::compile("scarce");
    assert_eq!(path(&program, "none", 0, 0), Path::Ring);
}

#[test]
fn descriptors_run_out() {
    let seen = sweep("files", (0..8).collect());
    assert!(seen.contains_key("descriptors"), "{seen:?}");
}

/// Steps of 256 KiB, through all that an upgrade maps.
#[test]
fn memory_runs_out() {
    let seen = sweep("memory", (0..20).map(|step| step * 256).collect());
    assert!(seen.contains_key("memory"), "{seen:?}");
}

/// The kernel would end the program with `SIGXFSZ` for a memory file that is larger than its files may be.
#[test]
fn files_may_not_be_large() {
    let seen = sweep("size", vec![64, 1024, 1 << 20]);
    assert!(told(&seen) && seen.contains_key("ring"), "{seen:?}");
}

#[test]
fn memory_files_are_refused() {
    let seen = sweep("memfd", vec![0; 3]);
    assert!(told(&seen), "{seen:?}");
}

/// One end makes the memory, and tells the other that it declines.
fn told(seen: &BTreeMap<&'static str, u32>) -> bool {
    seen.contains_key("memory") || seen.contains_key("declined")
}

/// How often each path was taken, with each amount left, from each exchange on until the upgrade.
fn sweep(what: &str, amounts: Vec<u64>) -> BTreeMap<&'static str, u32> {
    let program = Program::compile("scarce");
    let mut seen = BTreeMap::new();
    for amount in amounts {
        for exchanges in [0, 1, 2, 3, 4] {
            let name = match path(&program, what, amount, exchanges) {
                Path::Ring => "ring",
                Path::Tcp(reason) => {
                    let untold = [Reason::NotTried, Reason::Meeting];
                    assert!(!untold.contains(&reason), "{what} {amount}: {reason}");
                    reason.name()
                }
                Path::Packet(_) | Path::Extended(_) => {
                    panic!("{what} {amount}: nobody asks for it")
                }
            };
            *seen.entry(name).or_insert(0) += 1;
        }
    }
    println!("{what}: {seen:?}");
    seen
}

/// Which way the bytes go at last.
fn path(program: &Program, what: &str, amount: u64, exchanges: u32) -> Path {
    let mut command = program.preloaded();
    command.args([what, &amount.to_string(), &exchanges.to_string()]);
    let mut talker = Talker::start(command);
    let line = talker.hear();
    assert!(line.starts_with("up "), "{what} {amount}: {line}");
    let lines = stat::connections(talker.id()).expect("a process of ours");
    let path = lines.and_then(|lines| Some(lines.first()?.path));
    talker.end();
    path.unwrap_or_else(|| panic!("{what} {amount}: no line of stat"))
}
