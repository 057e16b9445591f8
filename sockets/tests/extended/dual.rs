//! Plain calls and posted operations on one connection.

use std::io::IoSlice;
use std::thread;

use sockets::extended::Wait;
use via::Access;

use crate::kit::{ALL, fill, held, pattern, region, soon, wait};

#[test]
fn a_message_passes_bytes_that_nobody_reads() {
    for over in ALL {
        let (a, b) = over.pair();
        let piece = vec![1; 65_536];
        let mut sent = 0;
        while let Ok(n) = a.send(&[IoSlice::new(&piece)], Wait::Not) {
            sent += n;
        }
        let (from, to) = (
            region(&a, 50_000, Access::Local),
            region(&b, 50_000, Access::Local),
        );
        fill(&from, &pattern(50_000, 2));
        b.post_recv(&[to.whole().expect("whole")], 1)
            .expect("posts");
        a.post_send(&[from.whole().expect("whole")], 2)
            .expect("posts");
        assert_eq!(wait(&b, 1).result, Ok(50_000), "{over:?}");
        assert!(held(&to, 50_000) == pattern(50_000, 2));
        let mut got = 0;
        let mut room = vec![0; 65_536];
        while got < sent {
            got += b.read(&mut room).expect("reads");
        }
    }
}

#[test]
fn streams_messages_and_rdma_side_by_side() {
    for over in ALL {
        let (a, b) = over.pair();
        let table = region(&b, 4096, Access::Read);
        fill(&table, &pattern(4096, 3));
        b.advertise(&table, 1).expect("tells");
        let remote = a.remote(1, soon()).expect("told");
        let bytes = pattern(3_000_000, 6);
        thread::scope(|scope| {
            scope.spawn(|| a.write(&bytes).expect("writes"));
            scope.spawn(|| {
                let mut got = vec![0; bytes.len()];
                let mut at = 0;
                while at < got.len() {
                    at += b.read(&mut got[at..]).expect("reads");
                }
                assert!(got == bytes);
            });
            scope.spawn(|| {
                let to = region(&b, 100_000, Access::Write);
                for id in 0..ROUNDS {
                    b.post_recv(&[to.whole().expect("whole")], id)
                        .expect("posts");
                    assert_eq!(wait(&b, id).result, Ok(100_000));
                    assert!(held(&to, 100_000) == pattern(100_000, id as usize));
                }
            });
            let (from, cell) = (
                region(&a, 100_000, Access::Local),
                region(&a, 64, Access::Local),
            );
            for id in 0..ROUNDS {
                fill(&from, &pattern(100_000, id as usize));
                a.post_send(&[from.whole().expect("whole")], id)
                    .expect("posts");
                assert_eq!(wait(&a, id).result, Ok(100_000));
                a.post_read(&[cell.whole().expect("whole")], &remote, 64 * (id % 64), id)
                    .expect("posts");
                assert_eq!(wait(&a, id).result, Ok(64));
                let at = 64 * (id as usize % 64);
                assert_eq!(held(&cell, 64), pattern(4096, 3)[at..at + 64]);
            }
        });
    }
}

const ROUNDS: u64 = 100;
