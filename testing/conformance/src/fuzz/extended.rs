//! What the other end of an extended socket can say, and what a live socket makes of it.

use std::io::{IoSlice, IoSliceMut};
use std::net::{TcpListener, TcpStream};
use std::time::Instant;

use proto::extended::{
    Advert, Frame, Grants, HEAD, Lead, PAYLOAD_MAX, Place, Posted, Rights, SLOT, VERSION,
};
use sockets::extended::{Region, Socket, Wait};
use via::{Access, Descriptor, Done, MemHandle, Memory, Nic, Ptag, RemoteSegment, Vi, ViConfig};

use super::Input;
use crate::kit::Must;

/// A frame.
///
/// # Panics
/// When a frame that was understood is not what it was understood as.
pub fn fuzz_extended(bytes: &[u8]) {
    if let Ok((grants, frame)) = Frame::decode(bytes) {
        let again = encoded(&frame, grants);
        assert_eq!(Frame::decode(&again), Ok((grants, frame)));
    }
    // A head says the same by itself.
    if let Some((head, payload)) = bytes.split_at_checked(HEAD)
        && let Ok(Some((grants, lead))) = Lead::decode(head, payload.len())
    {
        let frame = match lead {
            Lead::Data => Frame::Data(payload),
            Lead::Message { total, offset } => Frame::Message {
                total,
                offset,
                piece: payload,
            },
        };
        assert_eq!(Frame::decode(bytes), Ok((grants, frame)));
    }
}

/// What a hostile end says to a live socket, and calls of that socket's owner.
///
/// # Panics
/// When that harms more than the connection.
pub fn fuzz_extended_socket(bytes: &[u8]) {
    let mut input = Input(bytes);
    let (socket, enemy) = meeting();
    let region = |access| {
        let memory = Memory::private(256).must();
        memory.write(0, &[0x5a; 256]).must();
        socket.register(memory, access).must()
    };
    let (inbox, open, secret) = (
        region(Access::Local),
        region(Access::Write),
        region(Access::Local),
    );
    let (mut posted, mut told) = (0, 0);
    while !input.0.is_empty() {
        match input.byte() % 8 {
            0 => {
                let len = input.byte();
                enemy.say(&socket, input.take(len.into()));
            }
            1 => {
                let grants = Grants {
                    stream: u16::from(input.byte() % 4),
                    control: u16::from(input.byte() % 4),
                };
                let frame = frame(&mut input, &open);
                enemy.say(&socket, &encoded(&frame, grants));
            }
            2 => {
                let mut bytes = [0; 300];
                let peek = input.byte() % 2 == 1;
                // Nothing, the end and an error are all its right.
                let _any =
                    socket.receive(&mut [IoSliceMut::new(&mut bytes)], Wait::Not, peek, false);
            }
            3 => {
                let into = [&inbox, &open][usize::from(input.byte() % 2)];
                let slice = into.slice(0..64).must();
                posted += u32::from(socket.post_recv(&[slice], 1).is_ok());
            }
            4 => {
                let slice = inbox.slice(0..64).must();
                posted += u32::from(socket.post_send(&[slice], 2).is_ok());
            }
            5 => {
                let _room = socket.send(&[IoSlice::new(&[0x77; 300])], Wait::Not);
            }
            // A message in place, or what says that it is.
            6 => {
                let grants = Grants {
                    stream: u16::from(input.byte() % 4),
                    control: u16::from(input.byte() % 4),
                };
                let to = RemoteSegment {
                    addr: open.memory().addr() + u64::from(input.byte()),
                    handle: MemHandle(open.id().wrapping_add(u32::from(input.byte() % 2))),
                };
                enemy.put(&socket, input.byte().into(), to, grants);
            }
            _ => {
                while let Ok(Some(_)) = socket.completion() {
                    told += 1;
                }
            }
        }
    }
    while let Ok(Some(_)) = socket.completion() {
        told += 1;
    }
    assert!(told <= posted, "{told} completions of {posted} operations");
    let mut held = [0; 256];
    secret.memory().read(0, &mut held).must();
    assert_eq!(held, [0x5a; 256]);
    socket.close(Some(Instant::now()));
}

/// The hostile end: a VI that says what it is told to.
struct Enemy {
    vi: Vi,
    memory: via::Region,
    _tag: Ptag,
    _tcp: TcpStream,
}

fn meeting() -> (Socket, Enemy) {
    let nic = Nic::open(&shm::DRIVER).must();
    nic.on_error(|_| {}).must();
    let tag = nic.create_ptag().must();
    let config = ViConfig::new(&tag)
        .max_transfer_size(nic.attributes().max_transfer_size)
        .accept_rdma_read()
        .accept_rdma_write();
    let vi = nic.create_vi(&config).must();
    let memory = nic
        .register(Memory::private(2 * SLOT).must(), &tag, Access::Local)
        .must();
    for id in 0..64 {
        let room = Descriptor::recv().segment(&memory, SLOT as u32..2 * SLOT as u32);
        vi.post_recv(&room, id).must();
    }
    let export = vi.export().must();
    let listener = TcpListener::bind("127.0.0.1:0").must();
    let here = TcpStream::connect(listener.local_addr().must()).must();
    let (there, _) = listener.accept().must();
    let socket = Socket::in_place(here.into(), &nic, |ours, _tcp, _opener| {
        ours.import(&export.blob, export.fds)
    });
    let enemy = Enemy {
        vi,
        memory,
        _tag: tag,
        _tcp: there,
    };
    (socket.must(), enemy)
}

impl Enemy {
    fn say(&self, socket: &Socket, bytes: &[u8]) {
        self.memory.memory().write(0, bytes).must();
        let message = Descriptor::send().segment(&self.memory, 0..bytes.len() as u32);
        self.post(socket, &message);
    }

    /// Writes so many bytes, and tells of them.
    fn put(&self, socket: &Socket, len: u32, to: RemoteSegment, grants: Grants) {
        let write = Descriptor::rdma_write(to).immediate(grants.word());
        self.post(socket, &write.segment(&self.memory, 0..len));
    }

    fn post(&self, socket: &Socket, message: &Descriptor<'_>) {
        // A connection that has ended takes no more.
        if self.vi.post_send(message, 0).is_err() {
            return;
        }
        // One that the socket does not take stays, with whatever is written over it.
        for _ in 0..LOOKS {
            let _heard = socket.readable_bytes();
            if !matches!(self.vi.send_done(), Ok(Done::NotDone)) {
                return;
            }
        }
    }
}

/// A frame as an honest end has it, but for its numbers.
fn frame(input: &mut Input<'_>, open: &Region) -> Frame<'static> {
    let small = |byte: u8| u32::from(byte);
    match input.byte() % 11 {
        0 | 1 => Frame::Hello { version: VERSION },
        2 => Frame::Credit,
        3 => Frame::Fin,
        4 => Frame::Data(DATA.get(..1 + usize::from(input.byte())).unwrap_or(&DATA)),
        5 => Frame::Message {
            total: small(input.byte()),
            offset: small(input.byte() % 65),
            piece: DATA
                .get(..usize::from(input.byte() % 65))
                .unwrap_or_default(),
        },
        6 => {
            let count = 1 + input.byte() % 3;
            let receive = Posted {
                len: small(input.byte()),
                places: Vec::new(),
            };
            Frame::Posted(vec![receive; count.into()])
        }
        7 => {
            let len = small(input.byte());
            let place = Place {
                addr: small(input.byte()).into(),
                handle: open.id().wrapping_add(small(input.byte() % 2)),
                len,
            };
            let places = vec![place];
            Frame::Posted(vec![Posted { len, places }])
        }
        8 => Frame::Placed {
            len: small(input.byte() % 65),
        },
        9 => Frame::Advertise(Advert {
            handle: small(input.byte()),
            rights: Rights {
                read: true,
                write: true,
            },
            tag: small(input.byte()).into(),
            addr: small(input.byte()).into(),
            len: small(input.byte()).into(),
        }),
        _ => Frame::Withdraw {
            handle: small(input.byte()),
        },
    }
}

/// With its payload.
fn encoded(frame: &Frame<'_>, grants: Grants) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(HEAD);
    frame.encode(grants, &mut bytes);
    if let Frame::Data(body) | Frame::Message { piece: body, .. } = frame {
        bytes.extend_from_slice(body);
    }
    bytes
}

pub(super) fn frame_seeds() -> Vec<(String, Vec<u8>)> {
    let place = Place {
        addr: 0x0102_0304_0506_0708,
        handle: 7,
        len: 9,
    };
    let advert = Advert {
        handle: 5,
        rights: Rights {
            read: true,
            write: false,
        },
        tag: 1,
        addr: 2,
        len: 3,
    };
    let message = |total, offset| Frame::Message {
        total,
        offset,
        piece: &DATA[..8],
    };
    let posted = |len, count| {
        let places = vec![place, place];
        Frame::Posted(vec![Posted { len, places }; count])
    };
    let frames = [
        ("hello", Frame::Hello { version: VERSION }),
        ("data", Frame::Data(&DATA[..40])),
        ("fin", Frame::Fin),
        ("message", message(16, 8)),
        ("message_beyond_its_end", message(15, 8)),
        ("message_that_wraps", message(u32::MAX, u32::MAX - 4)),
        ("posted", posted(18, 1)),
        ("posted_several", posted(18, 3)),
        ("posted_with_places_that_do_not_add_up", posted(17, 1)),
        ("placed", Frame::Placed { len: 3 }),
        ("advertise", Frame::Advertise(advert)),
        ("withdraw", Frame::Withdraw { handle: 5 }),
        ("credit", Frame::Credit),
    ];
    let grants = Grants {
        stream: 2,
        control: 0x0304,
    };
    let whole = frames.map(|(name, frame)| (name.to_owned(), encoded(&frame, grants)));
    whole.into()
}

pub(super) fn socket_seeds() -> Vec<(String, Vec<u8>)> {
    let say = |frame: &[u8]| [&[1, 0, 0][..], frame].concat();
    let hello = say(&[0]);
    let put = |at, of, len| [6, 0, 0, at, of, len];
    let (read, peek, look) = ([2, 0], [2, 1], [7]);
    let (receive, receive_in_place, send, write) = ([3, 0], [3, 1], [4], [5]);
    let seeds: [(&str, Vec<u8>); 19] = [
        ("greeting", hello.clone()),
        ("greetings", [&hello[..], &hello, &read].concat()),
        ("no_greeting", [&say(&[2])[..], &read].concat()),
        ("bytes", [&hello[..], &say(&[4, 40]), &peek, &read].concat()),
        (
            "bytes_after_the_end",
            [&hello[..], &say(&[3]), &say(&[4, 1]), &read].concat(),
        ),
        (
            "more_bytes_than_there_is_room_for",
            [hello.clone(), say(&[4, 255]).repeat(20), read.to_vec()].concat(),
        ),
        (
            "message",
            [&hello[..], &receive, &say(&[5, 64, 0, 64]), &look].concat(),
        ),
        (
            "message_in_two",
            [
                &hello[..],
                &receive,
                &say(&[5, 64, 0, 32]),
                &say(&[5, 64, 32, 32]),
                &look,
            ]
            .concat(),
        ),
        (
            "second_piece_first",
            [&hello[..], &receive, &say(&[5, 64, 32, 32]), &look].concat(),
        ),
        (
            "message_for_nobody",
            [&hello[..], &say(&[5, 1, 0, 1]), &look].concat(),
        ),
        (
            "placed",
            [&hello[..], &receive_in_place, &say(&[8, 64]), &look].concat(),
        ),
        (
            "placed_where_it_may_not",
            [&hello[..], &receive, &say(&[8, 64]), &look].concat(),
        ),
        (
            "posted",
            [&hello[..], &say(&[6, 0, 64]), &send, &look].concat(),
        ),
        (
            "posted_at_a_place_that_is_none",
            [&hello[..], &send, &say(&[7, 64, 0, 0]), &look].concat(),
        ),
        (
            "written_and_told",
            [&hello[..], &receive_in_place, &put(0, 0, 64), &look].concat(),
        ),
        (
            "written_and_told_to_nobody",
            [&hello[..], &put(0, 0, 64), &look].concat(),
        ),
        (
            "written_where_it_may_not",
            [&hello[..], &receive_in_place, &put(200, 0, 64), &look].concat(),
        ),
        (
            "regions",
            [
                &hello[..],
                &say(&[9, 1, 2, 3, 4]),
                &say(&[9, 1, 2, 3, 4]),
                &say(&[10, 1]),
            ]
            .concat(),
        ),
        (
            "more_grants_than_were_owed",
            [
                &hello[..],
                &write,
                &[1, 3, 3, 2],
                &[1, 3, 3, 2],
                &write,
                &read,
            ]
            .concat(),
        ),
    ];
    seeds
        .map(|(name, operations)| (name.to_owned(), operations))
        .into()
}

static DATA: [u8; 256] = [0x33; 256];
const LOOKS: u32 = 100;
const _: () = assert!(DATA.len() <= PAYLOAD_MAX);
