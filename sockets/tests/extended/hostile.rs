//! A peer that says what it should not spoils its own connection and nothing else.

use proto::extended::{
    Advert, CREDITS, Frame, Grants, PAYLOAD_MAX, Place, Posted, Rights, SLOT, VERSION,
};
use sockets::extended::Socket;
use sys::errno::Errno;
use via::{Access, Descriptor, MemHandle, Memory, Nic, Ptag, Region, RemoteSegment, Vi, ViConfig};

use crate::kit::{region, soon, tcp};

/// A VI that says what it is told to.
struct Enemy {
    vi: Vi,
    memory: Region,
    _tag: Ptag,
    _other_end: std::net::TcpStream,
}

fn enemy() -> (Socket, Enemy) {
    let nic = Nic::open(&shm::DRIVER).expect("opens");
    let tag = nic.create_ptag().expect("a tag");
    let config = ViConfig::new(&tag)
        .max_transfer_size(nic.attributes().max_transfer_size)
        .accept_rdma_read()
        .accept_rdma_write();
    let vi = nic.create_vi(&config).expect("a VI");
    let memory = Memory::private(2 * SLOT).expect("memory");
    let memory = nic
        .register(memory, &tag, Access::Local)
        .expect("registers");
    for id in 0..64 {
        let room = Descriptor::recv().segment(&memory, SLOT as u32..2 * SLOT as u32);
        vi.post_recv(&room, id).expect("posts");
    }
    let export = vi.export().expect("exports");
    let (here, there) = tcp();
    let socket = Socket::in_place(here.into(), &nic, |ours, _tcp, _opener| {
        ours.import(&export.blob, export.fds)
    });
    let enemy = Enemy {
        vi,
        memory,
        _tag: tag,
        _other_end: there,
    };
    (socket.expect("converts"), enemy)
}

impl Enemy {
    fn say(&self, bytes: &[u8]) {
        self.memory.memory().write(0, bytes).expect("in range");
        let message = Descriptor::send().segment(&self.memory, 0..bytes.len() as u32);
        // A connection that has ended takes no more.
        let _posted = self.vi.post_send(&message, 0);
        let _sent = self.vi.send_wait(Some(std::time::Duration::from_secs(20)));
    }

    /// A write of nothing, and its word.
    fn tell(&self, grants: Grants) {
        let nowhere = RemoteSegment {
            addr: 0,
            handle: MemHandle(0),
        };
        let write = Descriptor::rdma_write(nowhere).immediate(grants.word());
        let _posted = self.vi.post_send(&write, 0);
        let _sent = self.vi.send_wait(Some(std::time::Duration::from_secs(20)));
    }

    fn frame(&self, frame: &Frame<'_>, body: &[u8]) {
        self.granting(frame, body, Grants::default());
    }

    fn granting(&self, frame: &Frame<'_>, body: &[u8], grants: Grants) {
        let mut bytes = Vec::new();
        frame.encode(grants, &mut bytes);
        bytes.extend(body);
        self.say(&bytes);
    }
}

#[test]
fn what_is_against_the_protocol_ends_the_connection() {
    let hello = Frame::Hello { version: VERSION };
    #[expect(clippy::type_complexity, reason = "a table, read by the loop below")]
    let cases: [(&str, &dyn Fn(&Enemy)); 14] = [
        ("no greeting", &|enemy| enemy.frame(&Frame::Credit, b"")),
        ("a strange version", &|enemy| {
            enemy.frame(
                &Frame::Hello {
                    version: VERSION + 1,
                },
                b"",
            );
        }),
        ("two greetings", &|enemy| {
            enemy.frame(&hello, b"");
            enemy.frame(&hello, b"");
        }),
        ("garbage", &|enemy| enemy.say(&[0xa5; 40])),
        ("too short", &|enemy| enemy.say(&[1, 0, 0])),
        ("nothing", &|enemy| enemy.say(&[])),
        ("more than was owed", &|enemy| {
            let grants = Grants {
                stream: 1,
                control: 0,
            };
            enemy.granting(&hello, b"", grants);
        }),
        ("a message for nobody", &|enemy| {
            enemy.frame(&hello, b"");
            let message = Frame::Message {
                total: 1,
                offset: 0,
                piece: &[],
            };
            enemy.frame(&message, b"x");
        }),
        ("a placement for nobody", &|enemy| {
            enemy.frame(&hello, b"");
            enemy.frame(&Frame::Placed { len: 1 }, b"");
        }),
        ("a write that tells of itself to nobody", &|enemy| {
            enemy.frame(&hello, b"");
            enemy.tell(Grants::default());
        }),
        ("a write that grants more than was owed", &|enemy| {
            enemy.frame(&hello, b"");
            enemy.tell(Grants {
                stream: 0,
                control: CREDITS,
            });
        }),
        ("a region beyond the end of memory", &|enemy| {
            enemy.frame(&hello, b"");
            let rights = Rights {
                read: true,
                write: true,
            };
            let advert = Advert {
                handle: 1,
                rights,
                tag: 1,
                addr: u64::MAX,
                len: 2,
            };
            enemy.frame(&Frame::Advertise(advert), b"");
        }),
        ("bytes after the end", &|enemy| {
            enemy.frame(&hello, b"");
            enemy.frame(&Frame::Fin, b"");
            enemy.frame(&Frame::Data(&[]), b"x");
        }),
        ("more bytes than there is room for", &|enemy| {
            enemy.frame(&hello, b"");
            for _ in 0..=CREDITS {
                enemy.frame(&Frame::Data(&[]), &[0; PAYLOAD_MAX]);
            }
        }),
    ];
    for (what, say) in cases {
        let (socket, enemy) = enemy();
        let room = region(&socket, 8, Access::Local);
        say(&enemy);
        let ended = loop {
            match socket.read(&mut [0; 64]) {
                Ok(0) if what == "bytes after the end" => break Errno::PROTO,
                Ok(n) => assert_ne!(n, 0, "{what}"),
                Err(errno) => break errno,
            }
        };
        assert_eq!(ended, Errno::PROTO, "{what}");
        let posted = socket.post_send(&[room.whole().expect("whole")], 1);
        assert_eq!(posted, Err(Errno::PIPE), "{what}");
    }
}

#[test]
fn a_peer_that_lies_about_its_memory_harms_itself() {
    let (socket, enemy) = enemy();
    enemy.frame(&Frame::Hello { version: VERSION }, b"");
    let place = Place {
        addr: 0x1000,
        handle: 0xdead,
        len: 100_000,
    };
    let receive = Posted {
        len: 100_000,
        places: vec![place],
    };
    enemy.frame(&Frame::Posted(vec![receive]), b"");
    let ours = region(&socket, 100_000, Access::Local);
    socket
        .post_send(&[ours.whole().expect("whole")], 1)
        .expect("posts");
    // That it has left may be known before the peer's NIC refuses it.
    let _either = socket.wait(soon()).expect("ends");
    assert_eq!(socket.read(&mut [0]), Err(Errno::CONNRESET));
}
