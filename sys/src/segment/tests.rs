use super::*;
use crate::{
    bell::{FUTEX, SOCKET},
    mem::Memory,
};

#[test]
fn both_sides_meet_in_the_same_words() {
    let (a, b) = sides();
    a.set_state(3);
    assert_eq!(
        (a.state(), b.peer_state(), b.state(), a.peer_state()),
        (3, 3, 0, 0)
    );

    b.bell(Wait::Frames).arm(SOCKET);
    b.bell(Wait::Room).arm(FUTEX);
    assert_eq!(a.peer_bell(Wait::Frames).knock(), SOCKET);
    assert_eq!(a.peer_bell(Wait::Room).knock(), FUTEX);
    assert_eq!(
        b.peer_bell(Wait::Room).knock(),
        0,
        "the bells of the other side are others"
    );

    a.grant(7).expect("a slot").offer(9);
    assert_eq!(b.peer_grant(7).expect("a slot").enter(), Some(9));
    assert!(a.grant(7).expect("a slot").is_busy());
    assert!(a.grant(6).is_some_and(|grant| !grant.is_busy()));
    assert!(a.grant(GRANTS).is_none());
}

#[test]
fn both_directions_are_apart() {
    let (ours, fd) = Segment::create(DATA_MIN).expect("a segment");
    let theirs = Segment::import(fd, DATA_MIN).expect("the same segment");
    let (mut to_b, mut from_b, _) = split(ours, Side::A);
    let (mut to_a, mut from_a, _) = split(theirs, Side::B);
    for (producer, fill) in [(&mut to_b, 1), (&mut to_a, 2)] {
        assert_eq!(producer.reserve(65_536), Some(0));
        producer
            .write_bytes(0, 0, &vec![fill; 65_536])
            .expect("in the piece");
        producer.publish(crate::ring::Cell([u32::from(fill); 15]));
    }
    for (consumer, fill) in [(&mut from_a, 1), (&mut from_b, 2)] {
        let cell = crate::ring::Cell([u32::from(fill); 15]);
        assert_eq!(consumer.peek(), Some(crate::ring::Frame::Cell(cell)));
        let mut data = vec![0; 65_536];
        consumer.read_bytes(0, &mut data).expect("in the data area");
        assert!(data.iter().all(|&byte| byte == fill));
        assert_eq!(consumer.read_bytes(1, &mut data), Err(OutOfRange));
    }
}

#[test]
fn sizes_are_checked() {
    for data_len in [
        0,
        4096,
        DATA_MIN / 2,
        DATA_MIN + 1,
        3 * DATA_MIN,
        2 * DATA_MAX,
        usize::MAX,
    ] {
        assert_eq!(
            Segment::create(data_len).expect_err("refused").kind(),
            ErrorKind::InvalidInput
        );
    }
    let (_, fd) = Segment::create(DATA_MAX).expect("a segment");
    assert_eq!(
        Segment::import(fd, DATA_MIN).expect_err("too large").kind(),
        ErrorKind::InvalidData
    );
    let (_, fd) = Segment::create(DATA_MIN).expect("a segment");
    assert_eq!(
        Segment::import(fd, DATA_MAX).expect_err("too small").kind(),
        ErrorKind::InvalidData
    );
    let fd = Memory::shared(100)
        .expect("memory")
        .try_clone_fd()
        .expect("shared");
    assert_eq!(
        Segment::import(fd, DATA_MIN).expect_err("too small").kind(),
        ErrorKind::InvalidData
    );
}

#[test]
fn an_idle_connection_takes_few_pages() {
    let (segment, fd) = Segment::create(DATA_DEFAULT).expect("a segment");
    let (mut producer, ..) = split(Arc::clone(&segment), Side::A);
    let (_, mut consumer, _) = split(segment, Side::B);
    for _ in 0..10_000 {
        let offset = producer.reserve(100).expect("room");
        producer
            .write_bytes(offset, 0, &[1; 100])
            .expect("in the piece");
        producer.publish(crate::ring::Cell::default());
        consumer.peek().expect("a frame");
        consumer.release();
    }
    let pages = rustix::fs::fstat(&fd).expect("a memfd").st_blocks * 512 / 4096;
    // One of control, one of cells, four and one of data.
    assert!(pages <= 7, "{pages} pages");
}

fn sides() -> (Control, Control) {
    let (ours, fd) = Segment::create(DATA_MIN).expect("a segment");
    let theirs = Segment::import(fd, DATA_MIN).expect("the same segment");
    (split(ours, Side::A).2, split(theirs, Side::B).2)
}
