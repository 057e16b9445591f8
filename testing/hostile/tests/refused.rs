//! The upgrade, the way back and the hand-over, where the kernel refuses one of their system calls: each in its turn.

#![cfg(target_arch = "x86_64")]

use hostile::program::Program;

#[test]
fn on_the_way_back_before_a_program_without_us() {
    nothing_is_lost("stranger");
}

#[test]
fn on_the_way_to_a_program_with_us() {
    nothing_is_lost("followed");
}

#[test]
fn on_the_way_to_another_process() {
    nothing_is_lost("passed");
}

#[test]
fn on_the_way_to_shared_memory_where_it_connects() {
    nothing_is_lost("connected");
}

#[test]
fn on_the_way_to_shared_memory_where_it_accepts() {
    nothing_is_lost("accepted");
}

fn nothing_is_lost(way: &str) {
    let program = Program::compile("refused");
    let output = program.preloaded().arg(way).output();
    let output = output.expect("it was compiled");
    let said = String::from_utf8_lossy(&output.stdout);
    let wrong = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}{wrong}");
    println!("{way}: {said}");
    let mut words = said.split_whitespace();
    let refused = words.nth(1).and_then(|n| n.parse::<u32>().ok());
    assert!(
        refused.is_some_and(|refused| refused > 5),
        "of all its calls: {said}"
    );
}
