//! What whoever looks sees of them.

use sockets::conn::Origin;
use sockets::stat::{Ledger, Line, Nic, Path};
use via::Access;

use crate::kit::{ALL, Over, pattern, region, soon, tcp, wait};

#[test]
fn bytes_and_messages_are_told_until_it_is_closed() {
    for over in ALL {
        let (here, there) = tcp();
        let at = here.local_addr().expect("connected");
        let (a, b) = over.both(here, there);
        let bytes = pattern(40_000, 1);
        a.write(&bytes).expect("room");
        let mut got = vec![0; bytes.len()];
        let mut filled = 0;
        while filled < got.len() {
            filled += b.read(&mut got[filled..]).expect("it comes");
        }
        let memory = region(&b, 5000, Access::Read);
        b.advertise(&memory, 3).expect("told");
        let own = region(&a, 5000, Access::Local);
        b.post_recv(&[memory.whole().expect("whole")], 1)
            .expect("posts");
        a.post_send(&[own.slice(0..700).expect("within")], 2)
            .expect("posts");
        wait(&b, 1);
        wait(&a, 2);
        let remote = a.remote(3, soon()).expect("told");
        a.post_read(&[own.whole().expect("whole")], &remote, 0, 4)
            .expect("posts");
        wait(&a, 4);

        let (mut lines, before) = look();
        lines.retain(|line| line.local == at || line.peer == at);
        lines.sort_by_key(|line| line.peer == at);
        let [opened, accepted] = &lines[..] else {
            panic!("{lines:?}");
        };
        let path = Path::Extended(Nic::new(match over {
            Over::Shm => "shm",
            Over::Iwarp => "iwarp",
        }));
        assert_eq!((opened.path, accepted.path), (path, path));
        assert_eq!(
            (opened.origin, accepted.origin),
            (Origin::Connected, Origin::Accepted)
        );
        assert!(opened.fd.is_some());
        assert_eq!((opened.bytes, opened.calls), ([40_700, 5000], [2, 1]));
        // One who reads another's memory is seen at its own end only.
        assert_eq!(accepted.bytes, [0, 40_700]);
        assert!(accepted.calls[1] >= 2);

        drop((a, b));
        let (lines, after) = look();
        assert!(lines.iter().all(|line| line.local != at && line.peer != at));
        assert!(after >= before + 40_700);
    }
}

/// The lines, and the bytes that connections sent that are no more.
fn look() -> (Vec<Line>, u64) {
    let ledger = Ledger::open(std::process::id()).expect("our own");
    let (lines, closed, _) = ledger.expect("there are lines").look();
    (lines, closed.bytes[0])
}
