//! What an idle stream holds of the machine.

use rustix::fs::fstat;

use super::*;

#[test]
fn an_idle_ring_holds_one_page_after_much() {
    let (a, b) = pair();
    let data = vec![3; RING];
    for (from, to) in [(&a, &b), (&b, &a)] {
        for _ in 0..3 {
            from.tx()
                .write(false, || [&data[..]].into_iter())
                .expect("sound");
            assert_eq!(read(to, RING).len(), RING);
        }
    }
    assert!(pages(&a) > RING / 4096);
    for stream in [&a, &b] {
        stream.tx().release_unused();
        // The second time there is nothing to do.
        stream.tx().release_unused();
    }
    assert!(
        pages(&a) <= 3,
        "{} pages: control, and one per ring",
        pages(&a)
    );
    a.tx()
        .write(false, || [&b"still works"[..]].into_iter())
        .expect("sound");
    assert_eq!(read(&b, 100), b"still works");
    assert!(pages(&a) <= 3);
}

#[test]
fn short_questions_and_answers_need_one_page() {
    let (a, b) = pair();
    let before = pages(&a);
    for len in [1, BESIDE, BESIDE + 1, 64, 1000, BEHIND].repeat(20) {
        let data: Vec<u8> = (0..len as u64).map(byte_at).collect();
        for (from, to) in [(&a, &b), (&b, &a)] {
            let written = from.tx().write(false, || [&data[..]].into_iter());
            assert_eq!(written, Ok((len, 0)));
            assert_eq!(read(to, len), data);
        }
    }
    assert_eq!(pages(&a), before.max(1));
    // One who goes on soon writes to the ring.
    for _ in 0..BEHIND / 32 {
        let written = a.tx().write(false, || [&[7; 64][..]].into_iter());
        assert_eq!(written, Ok((64, 0)));
        assert_eq!(read(&b, 64), [7; 64]);
    }
    assert_eq!(pages(&a), before.max(1) + 1);
}

#[test]
fn what_is_not_taken_is_not_released() {
    let (a, b) = pair();
    let data: Vec<u8> = (0..).map(byte_at).take(100_000).collect();
    a.tx()
        .write(false, || [&data[..]].into_iter())
        .expect("sound");
    a.tx().release_unused();
    assert_eq!(read(&b, 100_000), data);
    a.tx()
        .write(false, || [&data[..]].into_iter())
        .expect("sound");
    a.tx().set_to_tcp(0);
    assert_eq!(read(&b, 100_000), data);
    let before = pages(&a);
    a.tx().release_unused();
    assert_eq!(pages(&a), before, "the receiver may put back bytes now");
}

#[test]
fn a_ping_pong_stays_on_the_first_page() {
    let (a, b) = pair();
    let data = [5; 1000];
    for _ in 0..2000 {
        for (from, to) in [(&a, &b), (&b, &a)] {
            from.tx()
                .write(false, || [&data[..]].into_iter())
                .expect("sound");
            assert_eq!(read(to, 2000), data);
        }
    }
    assert!(pages(&a) <= 3, "{}", pages(&a));
}

pub(super) fn pages(stream: &Stream) -> usize {
    let blocks = stream
        .with_fd(|fd| fstat(fd))
        .expect("open")
        .expect("a memfd")
        .st_blocks;
    usize::try_from(blocks).expect("not negative") * 512 / 4096
}
