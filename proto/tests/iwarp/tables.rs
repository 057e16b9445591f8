//! The tables, as text for people to review.

use proto::ddp::Fault;
use proto::mpa;
use proto::rdmap::{Carries, Code, Line, Opcode, RdmapError, transitions};

use crate::rig::hex;

#[test]
fn the_states_of_a_startup() {
    assert_eq!(mpa::transitions(), include_str!("startup_states.txt"));
}

#[test]
fn the_states_of_a_stream() {
    assert_eq!(transitions(), include_str!("stream_states.txt"));
}

#[test]
fn the_messages() {
    let mut table = String::new();
    for row in Opcode::TABLE {
        let queue = row
            .queue
            .map_or_else(|| "tagged".to_owned(), |queue| format!("qn {queue}"));
        let carries = match row.carries {
            Carries::Payload => "payload".to_owned(),
            Carries::Body(len) => format!("{len} octets"),
            Carries::Terminate => "terminate".to_owned(),
        };
        let flags = match (row.solicited, row.invalidates) {
            (false, false) => "",
            (true, false) => "SE",
            (false, true) => "Inv",
            (true, true) => "SE Inv",
        };
        let line = format!(
            "{:02x} {:<15} {queue:<6} {carries:<9} {flags}",
            row.opcode.control(),
            row.name
        );
        table.push_str(line.trim_end());
        table.push('\n');
        assert_eq!(Opcode::from_control(row.opcode.control()), Ok(row.opcode));
        assert_eq!(
            Opcode::from_control(row.opcode.control() | 0x30),
            Ok(row.opcode)
        );
        assert_eq!(row.opcode.row(), &row);
    }
    assert_eq!(table, include_str!("messages.txt"));
}

#[test]
fn every_error_has_a_name() {
    for error in [
        RdmapError::Local,
        RdmapError::Protection(Fault::UnknownStag),
        RdmapError::Protection(Fault::Bounds),
        RdmapError::Protection(Fault::NoRight),
        RdmapError::Protection(Fault::NotAssociated),
        RdmapError::Protection(Fault::Wrap),
        RdmapError::InvalidateProtection,
        RdmapError::Version,
        RdmapError::UnexpectedOpcode,
        RdmapError::Stream,
        RdmapError::Invalidate,
        RdmapError::Unspecified,
    ] {
        assert!(Code::from(error).name().is_some(), "{error}");
    }
    assert_eq!(Code::new(3, 0, 1).to_string(), "3/0/01");
}

#[test]
fn everything_prints_like_a_capture_line() {
    for (ulpdu, line) in [
        (
            "4143 00000000 00000000 00000001 00000000 68656c6c6f",
            "Send qn 0 msn 1 mo 0 last len 5",
        ),
        (
            "0146 00000077 00000000 00000002 00000400 00",
            "Send SE Inv qn 0 msn 2 mo 1024 inv 0x77 len 1",
        ),
        (
            "c140 12345678 0000000000001000 6869",
            "Write stag 0x12345678 to 0x1000 last len 2",
        ),
        (
            "4141 00000000 00000001 00000001 00000000 00000051 0000000000000500 00000004 00000077 0000000000001000",
            "Read Request qn 1 msn 1 mo 0 last 4 from 0x77@0x1000 to 0x51@0x500",
        ),
        (
            "8142 00000051 0000000000000500 01",
            "Read Response stag 0x51 to 0x500 len 1",
        ),
        (
            "4147 00000000 00000002 00000001 00000000 2002 0000",
            "Terminate qn 2 msn 1 mo 0 last 2/0/02 MPA CRC",
        ),
        (
            "4149 00000000 00000000 00000001 00000000 0102030405060708",
            "Immediate SE qn 0 msn 1 mo 0 last len 8",
        ),
        (
            "414b 00000000 00000003 00000001 00000000 00000042 0000000000000005",
            "Atomic Response qn 3 msn 1 mo 0 last id 66 was 0x5",
        ),
        (
            "4141 00000000 00000001 00000001 00000000 00",
            "Read Request qn 1 msn 1 mo 0 last malformed, len 1",
        ),
        (
            "414d 00000000 00000001 00000001 00000000 00",
            "unexpected opcode qn 1 msn 1 mo 0 last len 1",
        ),
        (
            "4043 00000000 00000000 00000001 00000000",
            "malformed, invalid DDP version (untagged): 18 octets",
        ),
        ("", "malformed, local catastrophic error: 0 octets"),
    ] {
        assert_eq!(Line(&hex(ulpdu)).to_string(), line);
    }
}
