use proptest::prelude::*;

use super::*;

fn frames() -> Vec<Frame<'static>> {
    let place = Place {
        addr: 0x0102_0304_0506_0708,
        handle: 7,
        len: 9,
    };
    vec![
        Frame::Hello { version: VERSION },
        Frame::Fin,
        Frame::Posted(vec![
            Posted {
                len: 18,
                places: vec![place, place],
            },
            Posted {
                len: 5,
                places: vec![],
            },
        ]),
        Frame::Placed { len: 3 },
        Frame::Advertise(Advert {
            handle: 5,
            rights: Rights {
                read: true,
                write: false,
            },
            tag: 1,
            addr: 2,
            len: 3,
        }),
        Frame::Withdraw { handle: 5 },
        Frame::Credit,
    ]
}

#[test]
fn what_is_written_is_read() {
    let grants = Grants {
        stream: 2,
        control: 0x0304,
    };
    for frame in frames() {
        let mut bytes = Vec::new();
        frame.encode(grants, &mut bytes);
        assert_eq!(Frame::decode(&bytes), Ok((grants, frame)));
        bytes.push(0);
        assert_eq!(Frame::decode(&bytes), Err(FrameError::Length));
    }
}

#[test]
fn a_payload_follows_its_head() {
    let data = Frame::Data(b"abc");
    let message = Frame::Message {
        total: 5,
        offset: 2,
        piece: b"abc",
    };
    for frame in [data, message] {
        let mut bytes = Vec::new();
        frame.encode(Grants::default(), &mut bytes);
        assert_eq!(bytes.len(), HEAD);
        bytes.extend(b"abc");
        assert_eq!(Frame::decode(&bytes), Ok((Grants::default(), frame)));
    }
}

#[test]
fn a_piece_lies_in_its_message_and_places_add_up() {
    let mut bytes = Vec::new();
    let frame = Frame::Message {
        total: 2,
        offset: 1,
        piece: &[],
    };
    frame.encode(Grants::default(), &mut bytes);
    assert_eq!(Frame::decode(&bytes), Err(FrameError::Piece));
    bytes.extend(b"ab");
    assert_eq!(Frame::decode(&bytes), Err(FrameError::Piece));
    let mut bytes = Vec::new();
    let place = Place {
        addr: 1,
        handle: 1,
        len: 4,
    };
    let frame = Frame::Posted(vec![Posted {
        len: 5,
        places: vec![place],
    }]);
    frame.encode(Grants::default(), &mut bytes);
    assert_eq!(Frame::decode(&bytes), Err(FrameError::Length));
}

#[test]
fn a_frame_tells_of_some_receives_and_not_too_many() {
    let receive = Posted {
        len: 0,
        places: vec![],
    };
    for (count, is_frame) in [(0, false), (1, true), (POSTED_MAX, true)] {
        let frame = Frame::Posted(vec![receive.clone(); count]);
        let mut bytes = Vec::new();
        frame.encode(Grants::default(), &mut bytes);
        assert_eq!(Frame::decode(&bytes).is_ok(), is_frame, "{count}");
        // One more than are there.
        bytes[1] += 1;
        assert_eq!(Frame::decode(&bytes), Err(FrameError::Length));
    }
}

#[test]
fn grants_go_as_immediate_data() {
    let grants = Grants {
        stream: 0x0102,
        control: 0x0304,
    };
    assert_eq!(grants.word(), 0x0102_0304);
    assert_eq!(Grants::of_word(grants.word()), grants);
}

#[test]
fn a_head_alone_says_what_follows() {
    let message = Frame::Message {
        total: 5,
        offset: 2,
        piece: b"abc",
    };
    let grants = Grants::default();
    let lead = |frame: &Frame<'_>, payload| {
        let mut head = Vec::new();
        frame.encode(grants, &mut head);
        Lead::decode(&head, payload)
    };
    let (total, offset) = (5, 2);
    let said = Lead::Message { total, offset };
    assert_eq!(lead(&message, 3), Ok(Some((grants, said))));
    assert_eq!(lead(&message, 4), Err(FrameError::Piece));
    assert_eq!(lead(&Frame::Data(b""), 1), Ok(Some((grants, Lead::Data))));
    assert_eq!(lead(&Frame::Data(b""), 0), Err(FrameError::Length));
    assert_eq!(lead(&Frame::Fin, 0), Ok(None));
    assert_eq!(Lead::decode(&[2; HEAD - 1], 1), Err(FrameError::Length));
}

proptest! {
    #[test]
    fn any_bytes_are_a_frame_or_an_error(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
        let _ = Frame::decode(&bytes);
    }

    #[test]
    fn what_is_read_is_written_again(kind in 1u8..10, mut rest in proptest::collection::vec(any::<u8>(), 15..80)) {
        rest[5] = 0;
        rest[6] = 0;
        rest.insert(0, kind);
        if let Ok((grants, frame)) = Frame::decode(&rest) {
            let mut bytes = Vec::new();
            frame.encode(grants, &mut bytes);
            if let Frame::Data(body) | Frame::Message { piece: body, .. } = &frame {
                bytes.extend(*body);
            }
            prop_assert_eq!(Frame::decode(&bytes), Ok((grants, frame)));
        }
    }
}
