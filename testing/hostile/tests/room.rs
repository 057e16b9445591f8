//! Who waits for room on a ring sleeps until there is some, though the receiver has sent nothing since there are rings.

use hostile::program::Program;

#[test]
fn in_poll() {
    is_slept_for("poll");
}

#[test]
fn in_epoll() {
    is_slept_for("epoll");
}

#[test]
fn in_send() {
    is_slept_for("send");
}

fn is_slept_for(how: &str) {
    let said = Program::compile("room").traced(how);
    let woken = said.trim_end().strip_prefix("woken ");
    let woken = woken.and_then(|n| n.parse::<u32>().ok()).expect("a number");
    // Of naps there would be one for each millisecond or two of the receiver's 200, and some ten on a host that is very busy.
    assert!(woken <= 4, "{said}");
}
