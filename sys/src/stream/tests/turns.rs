//! Turns between processes, as far as one process shows them.

use std::thread;

use super::*;

#[test]
fn a_thread_enters_again_and_others_wait() {
    let (a, b) = pair();
    let outer = a.tx().enter().expect("nobody has it");
    let inner = a.tx().enter().expect("ours");
    assert!(!outer.orphaned() && !inner.orphaned());
    drop(inner);
    let _other_side = a.rx().enter().expect("another turn");
    let _other_end = b.tx().enter().expect("another turn");
    thread::scope(|scope| {
        let other = scope.spawn(|| a.tx().enter().expect("in the end").orphaned());
        assert_ne!(a.tx().turn().load(Ordering::Relaxed), 0);
        drop(outer);
        assert!(!other.join().expect("no panic"));
    });
    assert_eq!(a.tx().turn().load(Ordering::Relaxed), 0);
}

#[test]
fn counts_of_several_threads_add_up() {
    let (a, _b) = pair();
    let count = crate::sync::AtomicU64::new(0);
    thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| {
                for _ in 0..20_000 {
                    let _held = a.rx().enter().expect("in the end");
                    let n = count.load(Ordering::Relaxed);
                    count.store(n + 1, Ordering::Relaxed);
                }
            });
        }
    });
    assert_eq!(count.load(Ordering::Relaxed), 60_000);
}

#[test]
fn one_who_is_not_there_is_replaced() {
    let (a, _b) = pair();
    // No thread has so great a number; it is the greatest that there can be.
    for gone in [1 << 22, u32::MAX, i32::MAX as u32] {
        a.tx().turn().store(gone, Ordering::Relaxed);
        assert!(a.tx().enter().expect("replaced").orphaned());
    }
    // A thread that has ended, and one of a process that never had the memory.
    let ended = thread::spawn(rustix::thread::gettid)
        .join()
        .expect("no panic");
    a.tx().turn().store(
        ended.as_raw_nonzero().get().cast_unsigned(),
        Ordering::Relaxed,
    );
    assert!(a.tx().enter().expect("replaced").orphaned());
    a.rx().turn().store(1, Ordering::Relaxed);
    if std::fs::read("/proc/1/maps").is_err() {
        println!("skipped: this user may not look at process 1");
        return;
    }
    assert!(a.rx().enter().expect("replaced").orphaned());
}

/// Who is killed, or left by a jump, after its bytes are counted and before they are shown.
#[test]
fn what_was_about_to_be_published_comes() {
    let (a, b) = pair();
    let send = |bytes: &[u8]| a.tx().write(false, || [bytes].into_iter());
    let hide = |shown| {
        let published = &a.direction(0).published;
        published.tail.store(shown, Ordering::Relaxed);
        published.base.store(77, Ordering::Relaxed);
    };
    assert_eq!(send(b"first"), Ok((5, 0)));
    hide(0);
    assert_eq!(b.rx().available(), Ok(0));
    a.tx().publish_left();
    assert_eq!(read(&b, 5), b"first");
    // Or with what comes next.
    assert_eq!(send(b"left"), Ok((4, 0)));
    hide(5);
    assert_eq!(send(b", next"), Ok((6, 0)));
    assert_eq!(read(&b, 10), b"left, next");
    // One that a handler published already stays so.
    a.tx().bytes().publish(5, 9);
    assert_eq!(a.direction(0).published.tail.load(Ordering::Relaxed), 15);
    // The end, too.
    a.tx().finish(FIN);
    a.direction(0).published.fin.store(0, Ordering::Relaxed);
    a.tx().publish_left();
    assert_eq!(b.rx().finished(), FIN);
}
