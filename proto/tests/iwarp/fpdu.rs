//! FPDUs, checksums and markers (17.3).

use proto::ddp::Stag;
use proto::mpa::{
    Crc, Deframer, Framer, MarkerCheck, MpaError, Place, Ready, Role, Terms, ULPDU_LEN_MAX,
    fpdu_len, mulpdu,
};
use proto::rdmap::{Config, PlaceAhead, Remote};

use crate::rig::{Plain, Sut, counting, drained, fpdu, framed, hex, taken, terms, ulpdus};

const MARKED: Option<MarkerCheck> = Some(MarkerCheck::On);

fn send(msn: u32, len: usize) -> Vec<u8> {
    let mut ulpdu = hex(&format!("4143 00000000 00000000 {msn:08x} 00000000"));
    ulpdu.extend(counting(len));
    ulpdu
}

fn write(stag: u32, len: usize) -> Vec<u8> {
    let mut ulpdu = hex(&format!("c140 {stag:08x} 0000000000000000"));
    ulpdu.extend(counting(len));
    ulpdu
}

/// The vectors of section 15.2: ULPDUs, where their FPDUs begin, markers and checksums by position.
struct Vector {
    ulpdus: Vec<Vec<u8>>,
    len: usize,
    markers: &'static [(usize, &'static str)],
    checksums: &'static [(usize, &'static str)],
}

fn vectors() -> Vec<Vector> {
    vec![
        Vector {
            ulpdus: vec![send(1, 484), send(2, 16)],
            len: 556,
            markers: &[(0, "00000000"), (512, "00000000")],
            checksums: &[(508, "8d49863e"), (552, "bde5443d")],
        },
        Vector {
            ulpdus: vec![send(1, 488), send(2, 16)],
            len: 560,
            markers: &[(0, "00000000"), (512, "000001fc")],
            checksums: &[(516, "68a8c2e0"), (556, "b2743d9e")],
        },
        Vector {
            ulpdus: vec![send(1, 480), send(2, 16)],
            len: 552,
            markers: &[(0, "00000000"), (512, "00000004")],
            checksums: &[(504, "c7a97213"), (548, "7bff670a")],
        },
        Vector {
            ulpdus: vec![send(1, 1200), send(2, 100), write(9, 700)],
            len: 2088,
            markers: &[
                (0, "00000000"),
                (512, "000001fc"),
                (1024, "000003fc"),
                (1536, "000000b0"),
                (2048, "000002b0"),
            ],
            checksums: &[(1232, "56d33696"), (1356, "278a7c0e"), (2084, "4dcf40da")],
        },
    ]
}

fn streams() -> Vec<(Vec<Vec<u8>>, Vec<u8>)> {
    vectors()
        .into_iter()
        .map(|vector| {
            let mut framer = Framer::new(true, true);
            let stream = vector
                .ulpdus
                .iter()
                .flat_map(|ulpdu| framed(&mut framer, ulpdu))
                .collect();
            (vector.ulpdus, stream)
        })
        .collect()
}

#[test]
fn c49_the_plain_vectors() {
    for octets in [
        "0017 4143 00000000 00000000 00000001 00000000 68656c6c6f 000000 b990b10c",
        "0013 c140 12345678 0000000000001000 68656c6c6f 000000 4bf8eb4a",
        "000e c140 00000001 0000000000000000 ebd34c5f",
        "0012 4143 00000000 00000000 00000001 00000000 587be8c4",
        "002e 4141 00000000 00000001 00000001 00000000 00000001 0000000000000000 00000000 00000001 0000000000000000 27dbd7e7",
        "000e c142 00000001 0000000000000000 21a3e83e",
        "0016 4147 00000000 00000002 00000001 00000000 20 02 00 00 7fe42585",
        "0016 4147 00000000 00000002 00000001 00000000 20 03 00 00 01766420",
        "0026 4147 00000000 00000002 00000001 00000000 11 00 c0 00 0013 c140000000770000000000000010 5b9db2bc",
    ] {
        let octets = hex(octets);
        let len = usize::from(u16::from_be_bytes([octets[0], octets[1]]));
        assert_eq!(fpdu(&octets[2..2 + len]), octets);
        assert_eq!(ulpdus(&octets, false, true), [octets[2..2 + len].to_vec()]);
    }
}

#[test]
fn c49_an_engine_says_hello_as_the_vectors_do() {
    let mut sut = Sut::open();
    sut.send(1, b"hello".to_vec());
    assert_eq!(
        sut.output(),
        hex("0017 4143 00000000 00000000 00000001 00000000 68656c6c6f 000000 b990b10c")
    );
    let (stag, to) = (Stag(0x1234_5678), 0x1000);
    sut.write(2, b"hello".to_vec(), Remote { stag, to });
    assert_eq!(
        sut.output(),
        hex("0013 c140 12345678 0000000000001000 68656c6c6f 000000 4bf8eb4a")
    );
}

#[test]
fn c49_c54_the_figures_of_rfc_5044() {
    let ulpdu = |msn: u32| {
        hex(&format!(
            "4143 00000000 00000000 {msn:08x} 00000000 {}",
            "00".repeat(24)
        ))
    };
    let mut framer = Framer::new(true, true);
    let first = framed(&mut framer, &ulpdu(1));
    assert_eq!(first[..6], hex("00000000 002a"));
    assert_eq!(first[first.len() - 4..], hex("52239983"));
    let plain = fpdu(&ulpdu(1));
    assert_eq!(plain[plain.len() - 4..], hex("b7243ec3"));
    // The second begins so that a marker falls 0x14 octets into it.
    let mut framer = Framer::new(true, true).starting_at(512 - 0x14);
    let second = framed(&mut framer, &ulpdu(2));
    assert_eq!(second[0x14..0x18], hex("0000 0014"));
    assert_eq!(second[second.len() - 4..], hex("84925898"));
}

#[test]
fn c51_pad_is_not_looked_at() {
    let mut octets = fpdu(&send(1, 5));
    let end = octets.len();
    octets[end - 7..end - 4].copy_from_slice(&[1, 2, 3]);
    let mut crc = Crc::new();
    crc.update(&octets[..end - 4]);
    octets[end - 4..].copy_from_slice(&crc.octets());
    assert_eq!(ulpdus(&octets, false, true), [send(1, 5)]);
}

#[test]
fn c52_every_flipped_bit_is_found() {
    let mut framer = Framer::new(true, true);
    let good = framed(&mut framer, &send(1, 521));
    for bit in 0..good.len() * 8 {
        let mut bad = good.clone();
        bad[bit / 8] ^= 1 << (bit % 8);
        let mut deframer = Deframer::new(MARKED, true, 0);
        // Behind it a valid one, and enough that a longer length is satisfied.
        let follows = vec![0; 66_000];
        let found = taken(&mut deframer, &[bad, follows].concat(), usize::MAX);
        assert_eq!(found, Vec::<Vec<u8>>::new(), "bit {bit}");
        assert!(deframer.poll().is_err(), "bit {bit}");
    }
}

#[test]
fn c52_c53_a_bad_checksum_ends_it() {
    let mut sut = Sut::open();
    sut.receive(1, 64);
    sut.receive(2, 64);
    let mut octets = fpdu(&send(1, 5));
    octets[22] ^= 0x40;
    octets.extend(fpdu(&send(1, 5)));
    sut.feed(&octets);
    sut.expect_terminate("20 02 00 00");
    assert_eq!(sut.memory.placed, 0);
}

#[test]
fn c56_any_split_gives_the_same() {
    for (expected, stream) in streams() {
        for step in [1, 2, 3, 511, 512, 513, usize::MAX] {
            let mut deframer = Deframer::new(MARKED, true, 0);
            assert_eq!(taken(&mut deframer, &stream, step), expected, "{step}");
        }
    }
}

#[test]
fn c57_the_marker_vectors() {
    for (vector, (_, stream)) in vectors().iter().zip(streams()) {
        assert_eq!(stream.len(), vector.len);
        for &(at, value) in vector.markers.iter().chain(vector.checksums) {
            assert_eq!(stream[at..at + 4], hex(value), "at {at}");
        }
    }
}

/// A stream of one marked FPDU, with a change and a checksum that fits it.
fn changed(change: impl FnOnce(&mut [u8])) -> Vec<u8> {
    let mut framer = Framer::new(true, true);
    let mut octets = framed(&mut framer, &send(1, 600));
    change(&mut octets);
    let end = octets.len() - 4;
    let mut crc = Crc::new();
    crc.update(&octets[..end]);
    octets[end..].copy_from_slice(&crc.octets());
    octets
}

#[test]
fn c58_c59_what_is_reserved_in_a_marker() {
    for (at, octets) in [(512, [0xde, 0xad]), (0, [0xbe, 0xef]), (514, [0x01, 0xff])] {
        let stream = changed(|stream| stream[at..at + 2].copy_from_slice(&octets));
        assert_eq!(ulpdus(&stream, true, true), [send(1, 600)], "at {at}");
    }
}

#[test]
fn c60_a_marker_that_points_elsewhere() {
    for wrong in [0x01f8u16, 0x0200] {
        let stream = changed(|stream| stream[514..516].copy_from_slice(&wrong.to_be_bytes()));
        let terms = Terms {
            receive_markers: true,
            ..terms(Role::Initiator)
        };
        let mut sut = Sut::new(terms, Config::default());
        sut.receive(1, 600);
        sut.feed(&stream);
        let expected = [hex("4147 00000000 00000002 00000001 00000000 20 03 00 00")];
        assert_eq!(sut.ulpdus(), expected);
        let mut sut = Sut::new(
            terms,
            Config {
                marker_check: MarkerCheck::Off,
                ..Config::default()
            },
        );
        sut.receive(1, 600);
        sut.feed(&stream);
        assert_eq!(sut.received(), [(1, 600)]);
    }
}

#[test]
fn c61_nobody_sends_a_lone_marker() {
    let mut framer = Framer::new(true, true);
    let mut total = 0;
    for len in [484, 0, 17, 3000, 488, 480, 1] {
        let stream = framed(&mut framer, &send(1, len));
        total += stream.len();
        let material = fpdu_len(18 + len);
        let markers = (stream.len() - material) / 4;
        assert_eq!(stream.len(), material + 4 * markers);
        // The last octet written is never a marker's, for a checksum is what ends it.
        assert_eq!(framer.waiting(), 0);
        let before = framer.position();
        assert_eq!(drained(&mut framer, &Plain::default()), b"");
        assert_eq!(framer.position(), before);
    }
    let position = framer.position() as usize;
    assert_eq!(position, total);
}

#[test]
fn c62_markers_go_on_beyond_four_gigabytes() {
    let start = (1 << 32) - 1000;
    let mut framer = Framer::new(true, true).starting_at(start);
    let mut deframer = Deframer::new(MARKED, true, 0).starting_at(start);
    for msn in 1..50 {
        let stream = framed(&mut framer, &send(msn, 333));
        assert_eq!(taken(&mut deframer, &stream, 100), [send(msn, 333)]);
    }
    assert!(framer.position() > 1 << 32);
}

#[test]
fn c63_the_first_octets_with_markers() {
    let mut framer = Framer::new(true, true);
    assert_eq!(framed(&mut framer, &send(1, 0))[..6], hex("00000000 0012"));
}

#[test]
fn c65_c66_no_fpdu_is_longer_than_its_segment() {
    for (emss, markers) in [
        (536, true),
        (1448, false),
        (1448, true),
        (9000, true),
        (u32::MAX, true),
    ] {
        let terms = Terms {
            send_markers: markers,
            ..terms(Role::Initiator)
        };
        let config = Config {
            mulpdu: mulpdu(emss, markers),
            ..Config::default()
        };
        let mut sut = Sut::new(terms, config);
        sut.send(1, counting(200_000));
        let mut len = 0;
        for ulpdu in sut.ulpdus() {
            assert!(ulpdu.len() <= usize::from(ULPDU_LEN_MAX));
            // The worst phase of markers.
            let marked = if markers {
                4 * fpdu_len(ulpdu.len()).div_ceil(508)
            } else {
                0
            };
            assert!(
                emss as usize >= fpdu_len(ulpdu.len()) + marked
                    || marked > 4 * (emss as usize).div_ceil(512)
            );
            len += ulpdu.len() - 18;
        }
        assert_eq!(len, 200_000);
    }
}

#[test]
fn c66_the_longest_length_is_taken() {
    for markers in [false, true] {
        let mut ulpdu = hex("c140 00000001 0000000000000000");
        ulpdu.resize(65535, 7);
        let mut framer = Framer::new(markers, true);
        let stream = framed(&mut framer, &ulpdu);
        let check = markers.then_some(MarkerCheck::Off);
        let mut deframer = Deframer::new(check, true, 0);
        let found = taken(&mut deframer, &stream, 1000);
        assert_eq!(found, [ulpdu]);
        assert!(
            deframer
                .space()
                .iter()
                .map(|space| space.len())
                .sum::<usize>()
                < 70_000
        );
    }
}

#[test]
fn c67_too_short_for_a_header() {
    for ulpdu in [
        "",
        "41",
        "41430000000000000000000001",
        "4143000000000000000000000100000000",
        "c1400000000100000000000000",
    ] {
        let mut sut = Sut::open();
        sut.receive(1, 64);
        sut.feed_ulpdu(ulpdu);
        sut.expect_terminate("10 00 00 00");
    }
}

#[test]
fn c68_fin_within_an_fpdu() {
    let mut sut = Sut::open();
    sut.receive(1, 64);
    sut.receive(2, 64);
    let octets = [fpdu(&send(1, 5)), fpdu(&send(2, 5))].concat();
    sut.feed(&octets[..octets.len() - 1]);
    sut.engine.handle_fin(&mut sut.memory, sut.now);
    let actions = format!("{:?}", sut.actions());
    assert!(
        actions.starts_with("[Received(Received { id: WorkId(1), len: 5"),
        "{actions}"
    );
    assert!(
        actions.contains("Failed(Lost), ReceiveFlushed(WorkId(2)), Close]"),
        "{actions}"
    );
    assert_eq!(sut.memory.placed, 5);
}

#[test]
fn c69_a_reset_flushes_everything() {
    let mut sut = Sut::open();
    sut.receive(1, 64);
    sut.send(2, b"never".to_vec());
    let remote = Remote {
        stag: Stag(1),
        to: 0,
    };
    sut.read(3, 10, remote, remote);
    sut.engine.handle_reset(sut.now);
    let actions = format!("{:?}", sut.actions());
    assert_eq!(
        actions,
        "[Failed(Lost), Completed(Completion { id: WorkId(2), outcome: Err(Flushed) }), \
         Completed(Completion { id: WorkId(3), outcome: Err(Flushed) }), ReceiveFlushed(WorkId(1)), Close]"
    );
}

#[test]
fn c70_mpa_reports_and_does_no_more() {
    let mut deframer = Deframer::new(None, true, 0);
    let mut octets = fpdu(&send(1, 5));
    octets[9] ^= 1;
    deframer.handle_octets(&octets);
    assert_eq!(deframer.poll(), Err(MpaError::Crc));
    deframer.handle_octets(&fpdu(&send(1, 5)));
    assert_eq!(deframer.poll(), Err(MpaError::Crc));
}

#[test]
fn c71_nothing_is_seen_before_its_checksum() {
    let octets = fpdu(&send(1, 5));
    let mut sut = Sut::open();
    sut.receive(1, 64);
    sut.feed(&octets[..octets.len() - 1]);
    assert_eq!(sut.memory.placed, 0);
    assert_eq!(sut.engine.ahead(&mut sut.memory, sut.now), None);
    sut.feed(&octets[octets.len() - 1..]);
    assert_eq!(sut.received(), [(1, 5)]);
    assert_eq!(sut.memory.placed, 5);
}

#[test]
fn the_framer_names_payload_and_does_not_copy_it() {
    let mut memory = Plain::default();
    memory.buffers.insert(7, counting(5000));
    let mut framer = Framer::new(false, true);
    for _ in 0..3 {
        let place = Place::new(7).advanced(100);
        framer
            .frame(&[1; 18], Some((place, 4000)), &memory)
            .unwrap();
    }
    // Length and header, payload; CRC and the next header together.
    assert_eq!(framer.pieces_len(), 7);
    assert_eq!(memory.shown.get(), 12_000);
    let stream = drained(&mut framer, &memory);
    let expected = [vec![1; 18], counting(5000)[100..4100].to_vec()].concat();
    assert_eq!(ulpdus(&stream, false, true), vec![expected; 3]);
}

#[test]
fn short_payload_may_be_copied_into_one_piece() {
    for (inline_max, pieces) in [(0, 3), (4, 3), (5, 1)] {
        let config = Config {
            inline_max,
            ..Config::default()
        };
        let mut sut = Sut::with(config);
        sut.send(1, b"hello".to_vec());
        sut.engine.fill(&sut.memory, sut.now);
        assert_eq!(sut.engine.pieces().count(), pieces, "{inline_max}");
        assert_eq!(
            sut.output(),
            hex("0017 4143 00000000 00000000 00000001 00000000 68656c6c6f 000000 b990b10c")
        );
        assert_eq!(sut.completed(), [(1, 5)]);
    }
}

#[test]
fn memory_that_has_gone_leaves_no_octet_behind() {
    let mut memory = Plain::default();
    memory.buffers.insert(7, counting(5000));
    for markers in [false, true] {
        let mut framer = Framer::new(markers, true);
        framer
            .frame(&[1; 18], Some((Place::new(7), 900)), &memory)
            .unwrap();
        let before = framer.position();
        let lost = framer.frame(&[2; 18], Some((Place::new(7), 5001)), &memory);
        assert!(lost.is_err());
        assert_eq!(framer.position(), before);
        let stream = drained(&mut framer, &memory);
        assert_eq!(ulpdus(&stream, markers, true).len(), 1);
    }
}

#[test]
fn what_has_not_begun_can_be_dropped() {
    let mut memory = Plain::default();
    memory.buffers.insert(7, counting(5000));
    for markers in [false, true] {
        for written in [0, 1, 30, 700, 1000] {
            let mut framer = Framer::new(markers, true);
            for head in 1..=3 {
                let payload = Some((Place::new(7), 600));
                framer.frame(&[head; 18], payload, &memory).unwrap();
            }
            let mut whole = Vec::new();
            for piece in framer.pieces() {
                match piece {
                    proto::mpa::Piece::Own(octets) => whole.extend(octets),
                    proto::mpa::Piece::Payload { place, len } => {
                        let from = place.offset as usize;
                        whole.extend(&counting(5000)[from..from + len as usize]);
                    }
                }
            }
            framer.handle_written(written);
            framer.drop_unbegun();
            framer.frame(&[9; 18], None, &memory).unwrap();
            let mut stream = whole[..written as usize].to_vec();
            stream.extend(drained(&mut framer, &memory));
            let heads: Vec<_> = ulpdus(&stream, markers, true)
                .iter()
                .map(|ulpdu| ulpdu[0])
                .collect();
            let expected: &[u8] = match written {
                0 => &[9],
                1..=600 => &[1, 9],
                _ => &[1, 2, 9],
            };
            assert_eq!(heads, expected, "{written} {markers}");
        }
    }
}

#[test]
fn the_receive_buffer_wraps_without_moving_anything() {
    let mut deframer = Deframer::new(None, true, 0);
    for msn in 1..200 {
        let octets = fpdu(&send(msn, 2000 + msn as usize));
        assert_eq!(deframer.handle_octets(&octets), octets.len());
        assert_eq!(deframer.poll(), Ok(Ready::Fpdu));
        assert!(deframer.ulpdu().pieces().count() <= 2);
        let found: Vec<u8> = deframer.ulpdu().pieces().flatten().copied().collect();
        assert_eq!(found, send(msn, 2000 + msn as usize));
        // One behind, so that the buffer is never empty.
        deframer.handle_octets(&octets[..7]);
        deframer.release();
        deframer.handle_octets(&octets[7..]);
        assert_eq!(deframer.poll(), Ok(Ready::Fpdu));
        deframer.release();
    }
}

#[test]
fn long_payload_can_go_straight_to_its_place() {
    let config = Config {
        place_ahead: PlaceAhead::Always,
        ..Config::default()
    };
    let octets = fpdu(&send(1, 5000));
    for spoilt in [false, true] {
        let mut sut = Sut::with(config);
        sut.receive(1, 5000);
        sut.feed(&octets[..100]);
        let ahead = sut.engine.ahead(&mut sut.memory, sut.now).unwrap();
        assert_eq!((ahead.place, ahead.len), (Place::new(1).advanced(80), 4920));
        let buffer = sut.memory.buffers.get_mut(&1).unwrap();
        buffer[80..].copy_from_slice(&octets[100..5020]);
        buffer[4000] ^= u8::from(spoilt);
        sut.engine.handle_ahead(4920, &mut sut.memory, sut.now);
        assert_eq!(sut.engine.ahead(&mut sut.memory, sut.now), None);
        sut.feed(&octets[5020..]);
        // Only what had come before was moved, and nothing is delivered that is not good.
        assert_eq!(sut.memory.placed, 80);
        if spoilt {
            sut.expect_terminate("20 02 00 00");
        } else {
            assert_eq!(sut.received(), [(1, 5000)]);
        }
    }
    // Not without leave, and not for a few octets.
    for (config, come) in [(Config::default(), 100), (config, 4500)] {
        let mut sut = Sut::with(config);
        sut.receive(1, 5000);
        sut.feed(&octets[..come]);
        assert_eq!(sut.engine.ahead(&mut sut.memory, sut.now), None);
        sut.feed(&octets[come..]);
        assert_eq!(sut.received(), [(1, 5000)]);
    }
}

#[test]
fn c71_what_others_may_read_is_verified_before_it_is_written() {
    let config = Config {
        place_ahead: PlaceAhead::Unseen,
        ..Config::default()
    };
    let mut sut = Sut::with(config);
    sut.memory.region(9, 0, vec![0; 5000]);
    let mut octets = fpdu(&write(9, 5000));
    octets[3000] ^= 1;
    sut.feed(&octets[..100]);
    assert_eq!(sut.engine.ahead(&mut sut.memory, sut.now), None);
    // All of it is to be read at once instead.
    let space: usize = sut.engine.space().iter().map(|space| space.len()).sum();
    assert!(space >= octets.len() - 100, "{space}");
    sut.feed(&octets[100..]);
    sut.expect_terminate("20 02 00 00");
    assert_eq!(sut.memory.placed, 0);
    // A message is its receiver's only when it is whole.
    let octets = fpdu(&send(1, 5000));
    let mut sut = Sut::with(config);
    sut.receive(1, 5000);
    sut.feed(&octets[..100]);
    let ahead = sut.engine.ahead(&mut sut.memory, sut.now).unwrap();
    sut.engine
        .handle_ahead_octets(&octets[100..5020], &mut sut.memory, sut.now);
    assert_eq!(ahead.len, 4920);
    sut.feed(&octets[5020..]);
    assert_eq!(sut.received(), [(1, 5000)]);
}

#[test]
fn segments_of_one_length_and_long_ones_alone() {
    let config = Config {
        mulpdu: 1018,
        even_segments: true,
        alone_min: 600,
        ..Config::default()
    };
    let mut sut = Sut::with(config);
    sut.send(1, vec![1; 2501]);
    let mut lens = Vec::new();
    loop {
        sut.engine.fill(&sut.memory, sut.now);
        let waiting = sut.engine.waiting();
        if waiting == 0 {
            break;
        }
        lens.push(waiting);
        sut.engine.handle_written(waiting, sut.now);
    }
    // 834, 834 and 833 octets, a header of 18, 6 of frame, pad.
    assert_eq!(lens, [860, 860, 860]);
    // In a stream all go at once.
    sut.engine.set_alone_min(u32::MAX);
    sut.send(2, vec![1; 2501]);
    sut.engine.fill(&sut.memory, sut.now);
    assert_eq!(sut.engine.waiting(), 3 * 860);
}

#[test]
fn a_region_that_goes_while_a_write_comes_ahead() {
    let config = Config {
        place_ahead: PlaceAhead::Always,
        ..Config::default()
    };
    let mut sut = Sut::with(config);
    sut.memory.region(9, 0, vec![0; 5000]);
    let octets = fpdu(&write(9, 5000));
    sut.feed(&octets[..100]);
    assert!(sut.engine.ahead(&mut sut.memory, sut.now).is_some());
    sut.memory.regions.clear();
    assert_eq!(sut.engine.ahead(&mut sut.memory, sut.now), None);
    sut.feed(&octets[100..]);
    sut.expect_terminate("11 00 c0 00 1396 c140 00000009 0000000000000000");
}
