//! What the corpora began with.

use proto::frame::{HEAD_WORDS, Head, Kind as FrameKind, Refusal};
use proto::setup::{Address, Ask, Attributes, DISCRIMINATOR_MAX, MESSAGE_MAX, Message};

use super::KINDS;

pub(super) fn frame_seeds() -> Vec<(String, Vec<u8>)> {
    let honest = |kind| Head {
        len: 64,
        msg_len: 64,
        ..Head::bare(kind, 1)
    };
    let mut seeds: Vec<_> = KINDS
        .iter()
        .map(|&kind| (format!("honest_{kind:?}"), honest(kind)))
        .chain([
            (
                "wraps".into(),
                Head {
                    offset: u32::MAX,
                    ..honest(FrameKind::Send)
                },
            ),
            (
                "long".into(),
                Head {
                    len: u32::MAX,
                    ..honest(FrameKind::RdmaWrite)
                },
            ),
        ])
        .map(|(name, head)| (name, head.encode()))
        .collect();
    seeds.push(("ones".into(), [u32::MAX; HEAD_WORDS]));
    seeds
        .into_iter()
        .map(|(name, words)| (name, words.into_iter().flat_map(u32::to_le_bytes).collect()))
        .collect()
}

pub(super) fn setup_seeds() -> Vec<(String, Vec<u8>)> {
    let address = |len| Address {
        host: [2, 1, 2, 3, 4, 5],
        discriminator_len: len,
        discriminator: [b'd'; DISCRIMINATOR_MAX],
    };
    let attributes = Attributes {
        reliability: 2,
        enable_rdma_write: true,
        enable_rdma_read: false,
        max_transfer_size: 65536,
        qos: 0,
    };
    let ask = Ask {
        local: address(3),
        remote: address(DISCRIMINATOR_MAX as u8),
        attributes,
    };
    let reply = Message::MapReply {
        handle: 7,
        slot: 1,
        value: 9,
        addr: 4096,
        len: 8192,
        write: true,
        read: false,
    };
    let accept = Message::Accept {
        attributes,
        data_len: 512 << 10,
    };
    let messages = [
        ("request", Message::Request(ask)),
        ("peer_request", Message::PeerRequest(ask)),
        ("accept", accept),
        ("reject", Message::Reject),
        ("no_match", Message::NoMatch),
        ("mismatch", Message::Mismatch(6)),
        ("map_request", Message::MapRequest { handle: 7 }),
        ("map_reply", reply),
    ];
    let mut seeds: Vec<_> = messages
        .iter()
        .map(|(name, message)| {
            (
                (*name).into(),
                message.encode(&mut [0; MESSAGE_MAX]).to_vec(),
            )
        })
        .collect();
    let mut cut: Vec<u8> = seeds[0].1.clone();
    cut.pop();
    seeds.push(("request_cut_short".into(), cut));
    let mut other: Vec<u8> = seeds[3].1.clone();
    if let Some(version) = other.get_mut(4) {
        *version ^= 0x80;
    }
    seeds.push(("reject_of_another_version".into(), other));
    seeds
}

pub(super) fn link_seeds() -> Vec<(String, Vec<u8>)> {
    let frame = |kind: u8, len, more, offset, handle, at, seq| {
        [2, kind, len, more, offset, handle, at, seq]
    };
    let note = |len: u32, seq, heard| {
        let [a, b, c, d] = len.to_le_bytes();
        [12, a, b, c, d, seq, heard]
    };
    let (ring, receive, send, short) = ([3], [9], [10], [13]);
    let mut seeds: Vec<(&str, Vec<u8>)> = vec![
        (
            "message",
            [&frame(0, 64, 0, 0, 0, 0, 1)[..], &ring, &receive].concat(),
        ),
        (
            "message_in_two",
            [
                &frame(0, 64, 64, 0, 0, 0, 1)[..],
                &frame(0, 64, 64, 64, 0, 0, 1),
                &ring,
                &receive,
            ]
            .concat(),
        ),
        (
            "second_part_first",
            [&frame(0, 64, 64, 64, 0, 0, 1)[..], &ring, &receive].concat(),
        ),
        (
            "parts_of_two",
            [
                &frame(0, 64, 64, 0, 0, 0, 1)[..],
                &frame(0, 64, 0, 0, 0, 0, 2),
                &ring,
                &receive,
            ]
            .concat(),
        ),
        (
            "same_twice",
            [
                &frame(0, 64, 0, 0, 0, 0, 1)[..],
                &frame(0, 64, 0, 0, 0, 0, 1),
                &ring,
                &receive,
            ]
            .concat(),
        ),
        (
            "empty",
            [&frame(0, 0, 0, 0, 0, 0, 1)[..], &ring, &receive].concat(),
        ),
        (
            "write_where_it_may",
            [&frame(1, 64, 0, 0, 0, 0, 1)[..], &ring, &receive].concat(),
        ),
        (
            "write_before_the_begin",
            [&frame(1, 64, 0, 0, 0, 0xff, 1)[..], &ring, &receive].concat(),
        ),
        (
            "write_where_it_may_not",
            [&frame(1, 64, 0, 0, 1, 0, 1)[..], &ring, &receive].concat(),
        ),
        (
            "write_nowhere",
            [&frame(1, 64, 0, 0, 3, 0, 1)[..], &ring, &receive].concat(),
        ),
        (
            "read",
            [&frame(2, 0, 64, 0, 0, 0, 1)[..], &ring, &receive].concat(),
        ),
        (
            "answer_to_nothing",
            [&frame(3, 64, 0, 0, 0, 0, 1)[..], &ring, &receive].concat(),
        ),
        (
            "ack_of_nothing",
            [&frame(4, 0, 0, 0, 0, 0, 9)[..], &ring, &receive].concat(),
        ),
        (
            "ack_ahead",
            [&send[..], &frame(4, 0, 0, 0, 0, 0, 9), &ring, &send].concat(),
        ),
        (
            "refusal",
            [
                &send[..],
                &frame(5, 0, 0, Refusal::Protection as u8, 0, 0, 1),
                &ring,
                &send,
            ]
            .concat(),
        ),
        (
            "goodbye_and_more",
            [
                &frame(6, 0, 0, 0, 0, 0, 1)[..],
                &frame(0, 64, 0, 0, 0, 0, 1),
                &ring,
                &receive,
            ]
            .concat(),
        ),
        (
            "raw_ones",
            [&[1][..], &[0xff; 40], &[16], &[0xff; 16], &ring, &receive].concat(),
        ),
        (
            "first_cell_overwritten",
            [
                &[0, 0x00, 0x10, 0, 0, 64][..],
                &[1; 64],
                &ring,
                &receive,
                &send,
            ]
            .concat(),
        ),
        (
            "words_overwritten",
            [
                &[0, 0, 0, 0, 0, 255][..],
                &[0xff; 255],
                &ring,
                &receive,
                &send,
            ]
            .concat(),
        ),
        ("not_a_message", [&[4, 16][..], &[0x5a; 16], &ring].concat()),
        (
            "asks_for_each_region",
            [5, 0, 5, 1, 5, 2, 5, 3, 3, 9].to_vec(),
        ),
        (
            "offers_its_segment",
            [
                6, 7, 0, 1, 0, 0, 0, 0, 0, 16, 0, 0, 1, 3, 11, 7, 0, 11, 7, 0, 9,
            ]
            .to_vec(),
        ),
        (
            "offers_nothing",
            [
                6, 7, 200, 0, 0, 0, 0, 0, 255, 255, 255, 255, 0, 3, 11, 7, 0, 9,
            ]
            .to_vec(),
        ),
        ("says_goodbye", [10, 7, 1, 0, 0, 0, 3, 9, 10].to_vec()),
        (
            "refuses_by_word",
            [10, 7, 0x11, 0xff, 0xff, 0xff, 3, 10, 9].to_vec(),
        ),
        ("enters_and_stays", [5, 0, 3, 8, 0, 9].to_vec()),
        ("note", [&note(8, 1, 0)[..], &receive].concat()),
        ("note_unreliably", [&note(8, 1, 0)[..], &receive].concat()),
        (
            "note_as_long_as_can_be",
            [&note(16, 1, 0)[..], &receive].concat(),
        ),
        ("note_too_long", [&note(17, 1, 0)[..], &receive].concat()),
        (
            "note_far_too_long",
            [&note(u32::MAX, 1, 0)[..], &receive].concat(),
        ),
        (
            "note_with_immediate_data",
            [&note(12 | 1 << 31, 1, 0)[..], &receive].concat(),
        ),
        (
            "note_with_immediate_data_too_long",
            [&note(13 | 1 << 31, 1, 0)[..], &receive].concat(),
        ),
        (
            "note_behind_a_message",
            [
                &frame(0, 64, 0, 0, 0, 0, 1)[..],
                &note(8, 2, 0),
                &receive,
                &receive,
            ]
            .concat(),
        ),
        (
            "note_that_heard",
            [&short[..], &note(8, 1, 1), &receive, &short, &short].concat(),
        ),
        (
            "note_that_heard_too_much",
            [&note(8, 1, 3)[..], &receive, &short, &send, &short].concat(),
        ),
        (
            "notes_that_cross",
            [&short[..], &note(8, 1, 0), &receive, &short, &short].concat(),
        ),
    ];
    // Of one seed, each level. Notes are taken in one pass at those that do not wait for the peer's word.
    let whole = seeds[0].1.clone();
    seeds.push(("message_unreliably", whole));
    let level = |name: &str| match name {
        _ if name.ends_with("unreliably") => 0,
        _ if name.starts_with("note") => 1,
        _ => 2,
    };
    seeds
        .into_iter()
        .map(|(name, operations)| {
            let mut bytes = vec![level(name)];
            bytes.extend(operations);
            (name.to_owned(), bytes)
        })
        .collect()
}
