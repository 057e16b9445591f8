//! More errors than are handled.

use std::sync::Mutex;
use std::sync::mpsc::channel;

use via::{Descriptor, ErrorCode, MemHandle, Reliability, RemoteSegment, Vi};

use crate::Lab;
use crate::buffer::Buffer;
use crate::kit::{Must, Pair, SOON, connect, sent};

/// A peer's writes are refused faster than the program hears of it.
///
/// # Panics
/// When what waits to be told grows with their number, or hides what others have done.
pub fn flood_with_errors(lab: &dyn Lab) {
    let pair = Pair::for_rdma(lab, Reliability::Unreliable);
    let (other_a, other_b) = (
        pair.a.vi(Reliability::Unreliable),
        pair.b.vi(Reliability::Unreliable),
    );
    connect((&pair.a, &other_a), (&pair.b, &other_b));
    let (release, held) = channel::<()>();
    let (log, held) = (pair.b.errors.clone(), Mutex::new(Some(held)));
    let handler = move |error: &_| {
        log.note(*error);
        if let Some(held) = held.lock().must().take() {
            held.recv_timeout(SOON.must()).must();
        }
    };
    pair.b.nic.on_error(handler).must();

    let source = Buffer::new(&pair.a, 1);
    for _ in 0..REFUSED {
        write_nowhere(&pair.va, &source);
    }
    pair.exchange_empty();
    write_nowhere(&other_a, &source);
    // In the same ring, behind the write.
    other_b.post_recv(&Descriptor::recv(), 0).must();
    other_a.post_send(&Descriptor::send(), 0).must();
    crate::kit::received(&other_b).ok().must();
    release.send(()).must();
    pair.b.settle();

    let errors = &pair.b.errors;
    let told = errors.count(ErrorCode::RdmawProt, pair.vb.id());
    println!("{told} of {REFUSED} refused writes were told");
    assert!((1..=TOLD_MAX).contains(&told), "{told} were kept");
    assert_eq!(errors.count(ErrorCode::RdmawProt, other_b.id()), 1);
    pair.assert_connected();
}

fn write_nowhere(vi: &Vi, source: &Buffer) {
    let nowhere = RemoteSegment {
        addr: 0,
        handle: MemHandle(0),
    };
    let write = Descriptor::rdma_write(nowhere).raw_segment(source.segment(0..1));
    vi.post_send(&write, 0).must();
    sent(vi).ok().must();
}

const REFUSED: u32 = 20_000;
const TOLD_MAX: usize = 1100;
