//! What a receiver is told of a sender that was killed, whoever hears it first from the kernel, which says it once.

use hostile::program::Program;

#[test]
fn a_send_hears_it_first() {
    a_gap_is_told("send");
}

#[test]
fn a_shutdown_hears_it_first() {
    a_gap_is_told("shutdown");
}

#[test]
fn another_process_hears_it_first() {
    a_gap_is_told("fork");
}

/// Bytes that the sender had been told were sent are gone, as over TCP: that is an error, and never an orderly end.
fn a_gap_is_told(how: &str) {
    let said = Program::compile("died").traced(how);
    let words: Vec<_> = said.split_whitespace().collect();
    let ["sent", sent, "received", received, "told", told] = words[..] else {
        panic!("{said}");
    };
    let [sent, received] = [sent, received].map(|n| n.parse::<u64>().expect("a number"));
    assert!(received < sent, "there was room for all: {said}");
    assert_eq!(told, "ECONNRESET", "{said}");
}
