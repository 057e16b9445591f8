use std::collections::HashSet;

use super::layout::{BEHIND, BESIDE, SHOWN, in_page};
use super::*;

mod grow;
mod hostile;
mod oracle;
mod release;
mod signals;
mod turns;

/// As who sends does: what is short and in one piece at once, if that can be.
fn write(tx: Tx<'_>, nested: bool, pieces: &[&[u8]]) -> (usize, u32) {
    if let ([piece], false) = (pieces, nested)
        && let Some(written) = tx.write_short(piece)
    {
        assert_eq!(written.0, piece.len());
        return written;
    }
    tx.write(nested, || pieces.iter().copied()).expect("sound")
}

fn pair() -> (Stream, Stream) {
    pair_of(Size::DEFAULT)
}

fn pair_of(size: Size) -> (Stream, Stream) {
    let memory = Stream::memory(size).expect("memfd");
    let other = memory.try_clone().expect("dup");
    (
        Stream::map(memory, Side::A).expect("map"),
        Stream::map(other, Side::B).expect("map"),
    )
}

fn read(stream: &Stream, n: usize) -> Vec<u8> {
    let rx = stream.rx();
    let mut into = vec![0; n];
    let head = rx.head();
    let n = rx.peek(head, &mut into).expect("sound");
    into.truncate(n);
    assert!(rx.take(head, head + n as u64).0);
    into
}

/// Wherever in the first page the words lie.
#[test]
fn places_are_apart_and_in_the_memory() {
    let mut beginnings = HashSet::new();
    // The kernel counts files up, and others make some, too.
    for _ in 0..1000 {
        let (a, b) = pair_of(Size::LEAST);
        let begins = in_page(a.words.addr());
        assert_eq!(begins, in_page(b.words.addr()));
        if beginnings.insert(begins) {
            places_are_apart(&a, begins);
        }
    }
    assert!(beginnings.len() > 20 && beginnings.iter().all(|at| at % 128 == 0));
}

fn places_are_apart(stream: &Stream, begins: usize) {
    let mut seen = HashSet::new();
    let all = 0..stream.size().bytes() as u64;
    for (index, at) in (0..2).flat_map(|index| all.clone().map(move |at| (index, at))) {
        let (place, len) = stream.piece(index, at);
        // In the file: its first page lies elsewhere.
        let in_first = place.addr().wrapping_sub(stream.words.addr() - begins);
        let offset = match in_first {
            ..mem::FIRST => in_first,
            _ => mem::FIRST + (place.addr() - stream.rings.addr()),
        };
        assert!(len > 0 && offset + len <= stream.size().memory_len());
        assert!(offset >= mem::FIRST || offset + len <= mem::FIRST);
        let from_words = offset.wrapping_sub(begins);
        let is_beside = SHOWN
            .iter()
            .any(|shown| (shown + 24..shown + 64).contains(&from_words));
        assert!(from_words >= size_of::<ControlPage>() || is_beside);
        assert!(
            seen.insert(offset),
            "{at} of ring {index} has a place of its own"
        );
    }
}

#[test]
fn rings_are_as_long_as_the_memory_says() {
    for size in [Size::LEAST, Size::DEFAULT, Size::MOST] {
        assert_eq!(Size::of_memory(size.memory_len() as u64), Some(size));
        let (a, b) = pair_of(size);
        let data: Vec<u8> = (0..size.bytes() + 5).map(|at| (at % 251) as u8).collect();
        for _ in 0..3 {
            let (n, _) = a
                .tx()
                .write(false, || [&data[..]].into_iter())
                .expect("sound");
            assert_eq!(n, size.bytes());
            assert_eq!(read(&b, 100), data[..100]);
            assert_eq!(read(&b, n), data[100..n]);
            // So that the next lies across the end.
            a.tx()
                .write(false, || [&data[..33]].into_iter())
                .expect("sound");
            assert_eq!(read(&b, 20), data[..20]);
            assert_eq!(read(&b, 20), data[20..33]);
        }
    }
    let len = Size::DEFAULT.memory_len() as u64;
    for bad in [
        0,
        4095,
        4096,
        len - 1,
        len + 1,
        len + 4096,
        2 * len,
        u64::MAX,
    ] {
        assert_eq!(Size::of_memory(bad), None, "{bad}");
    }
    let other = memfd::create_as("sovia-stream", LEN + 4096).expect("memfd");
    assert!(Stream::map(other, Side::A).is_err());
}

#[test]
fn what_is_written_is_read() {
    let (a, b) = pair();
    let (n, bits) = a
        .tx()
        .write(false, || [&b"hello "[..], b"world"].into_iter())
        .expect("sound");
    assert_eq!((n, bits), (11, 0));
    assert_eq!(read(&b, 100), b"hello world");
    assert_eq!(b.rx().available(), Ok(0));
    b.rx().arm();
    assert_eq!(
        a.tx().write(false, || [&b"x"[..]].into_iter()),
        Ok((1, SLEEPER))
    );
    assert_eq!(a.tx().knock(), SLEEPER);
    assert_eq!(a.tx().knock(), 0);
}

#[test]
fn who_looks_at_a_board_is_told_there() {
    let (mut a, mut b) = pair();
    assert!(board::make());
    let lent = board::lend(|id, fd| (id, fd.try_clone_to_owned().expect("a descriptor")));
    let (id, fd) = lent.expect("it was made");
    let leaf = board::claim().expect("a leaf");
    let place = leaf.place(1234).expect("a place");
    a.set_post(board::admit(&Hidden::adopt(fd)));
    assert!(!b.notes_on(id), "it was lent by somebody else");
    b.set_lent(Some(id));
    assert!(b.notes_on(id));

    b.rx().arm_at(place);
    assert!(!b.rx().is_armed());
    let (_, bits) = (a.tx().write(false, || [&b"x"[..]].into_iter())).expect("sound");
    assert_eq!(bits & (SLEEPER | BOARD), BOARD);
    let asked = a.tx().knock();
    assert_eq!((asked & BOARD, a.tx().knock()), (BOARD, 0));
    assert!(!a.tx().note(asked), "nobody sleeps");
    let mut noted = Vec::new();
    (0..board::Leaf::groups(usize::MAX))
        .for_each(|group| leaf.take(group, |slot| noted.push(slot)));
    assert_eq!(noted, [1234]);

    // Somebody sleeps on the connection as well, and then on the set.
    b.rx().arm();
    b.rx().arm_at(place);
    assert_eq!(a.tx().knock() & (SLEEPER | BOARD), SLEEPER | BOARD);
    b.rx().arm_at(place);
    leaf.sleep();
    assert!(a.tx().note(a.tx().knock()));
    leaf.wake();
    // One that is to be told of all that comes asks once.
    b.rx().stand_at(place);
    for _ in 0..2 {
        let (_, bits) = (a.tx().write(false, || [&b"x"[..]].into_iter())).expect("sound");
        assert_eq!(bits & (BOARD | STANDS), BOARD | STANDS);
        assert!(b.rx().stands() && !a.tx().note(bits));
    }
    assert_eq!(a.tx().knock() & STANDS, STANDS);
    assert!(!b.rx().stands());
    b.rx().stand_at(place);
    b.rx().arm();
    b.rx().stand_down();
    assert!(
        !b.rx().stands() && b.rx().is_armed(),
        "somebody else sleeps"
    );
    assert_eq!(a.tx().knock(), SLEEPER);
    // One that asks for what the other end does not have is rung for.
    a.rx().arm_at(place);
    assert!(b.tx().note(b.tx().knock()));
    board::give_back(leaf);
}

#[test]
fn a_full_ring_takes_no_more_and_a_reader_wakes_the_sleeper() {
    let (a, b) = pair();
    let data = vec![7; RING + 5];
    assert_eq!(
        a.tx().write(false, || [&data[..]].into_iter()),
        Ok((RING, 0))
    );
    assert_eq!(a.tx().write(false, || [&data[..]].into_iter()), Ok((0, 0)));
    a.tx().arm();
    let rx = b.rx();
    // A receiver takes what it has seen.
    assert_eq!(rx.peek(0, &mut [0; 10]), Ok(10));
    assert_eq!(rx.take(0, 10), (true, false), "of no use to the sleeper");
    assert_eq!(a.tx().writable(), Ok(false));
    assert_eq!(rx.take(10, RING as u64 / 4), (true, true));
    assert!(rx.knock());
    assert!(!rx.knock());
    assert_eq!(rx.take(0, 10), (false, false));
    assert_eq!(a.tx().room(RING), Ok(RING / 4));
    assert_eq!(a.tx().writable(), Ok(true));
}

/// As `MSG_TRUNC` does: what the receiver remembers of the tail is older than what it takes.
#[test]
fn a_reader_that_does_not_look_wakes_the_sleeper_before_the_ring_is_empty() {
    let (a, b) = pair();
    let data = vec![7; RING];
    assert_eq!(
        a.tx().write(false, || [&data[..]].into_iter()),
        Ok((RING, 0))
    );
    a.tx().arm();
    let part = RING as u64 / 16;
    let woke = (0..16).position(|n| b.rx().take(n * part, (n + 1) * part) == (true, true));
    assert!(woke.is_some_and(|n| n < 8), "{woke:?}");
}

/// The byte that a test sends at a count. A whole ring or page on, it is another one.
fn byte_at(count: u64) -> u8 {
    (count.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 56) as u8
}

/// Small, seeded, and good enough to choose lengths and places.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        self.0 >> 33 ^ self.0 << 20
    }

    fn below(&mut self, end: u64) -> u64 {
        (self.next() >> 8) % end
    }

    /// Mostly short, now and then half a ring.
    fn len(&mut self) -> u64 {
        let most = [64, 3000, 20_000, RING as u64 / 2][self.below(4) as usize];
        self.below(most) + 1
    }
}

#[test]
fn a_watch_sees_bytes_and_the_end_and_outlives_the_stream() {
    let (a, b) = pair();
    let watch = b.rx().watch().expect("a place");
    assert!(watch.is_of(b.rx().watched()) && !watch.is_of(a.rx().watched()));
    let nothing = watch.shown();
    assert!(
        a.tx()
            .write(false, || [&b"x"[..]].into_iter())
            .is_ok_and(|(n, _)| n == 1)
    );
    let byte = watch.shown();
    assert_ne!(byte, nothing);
    assert_eq!(read(&b, 1), b"x");
    assert_eq!(watch.shown(), byte, "what is taken is not the sender's");
    a.tx().finish(FIN);
    let end = watch.shown();
    assert_ne!(end, byte);
    drop((a, b));
    assert_eq!(watch.shown(), end);
}
