//! Whoever waits on a connection that the kernel reset for a doorbell is told of no error while bytes that came before it are unread, for to the
//! program there is none: it would give up the connection, and the bytes.

use hostile::program::Program;

/// `POLLIN`, `POLLRDHUP`.
const ENDED: &str = "2001";

#[test]
fn after_a_byte() {
    is_an_orderly_end("byte", ["0", ENDED, ENDED]);
}

#[test]
fn after_the_end() {
    // `POLLHUP` too: both directions have ended.
    is_an_orderly_end("end", ["10", "2011", "2011"]);
}

#[test]
fn before_a_doorbell_for_room() {
    is_an_orderly_end("room", ["0", ENDED, ENDED]);
}

fn is_an_orderly_end(how: &str, wanted: [&str; 3]) {
    let said = Program::compile("kept").traced(how);
    let words: Vec<_> = said.split_whitespace().collect();
    let [
        nothing,
        polled,
        waited,
        "sent",
        sent,
        "received",
        received,
        "told",
        told,
    ] = words[..]
    else {
        panic!("{said}");
    };
    assert_eq!([nothing, polled, waited], wanted, "{said}");
    assert_eq!((received, told), (sent, "nothing"), "{said}");
}
