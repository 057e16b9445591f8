//! Streams whose end several processes have: real forks, apart from other tests for the same reason as `children.rs`.
#![allow(unsafe_code, reason = "fork itself")]

use rustix::process::{Pid, Signal, WaitOptions, kill_process, waitid, waitpid};
use rustix::process::{WaitId, WaitIdOptions};
use sys::stream::{FIN, Side, Size, Stream};
use sys::sync::Ordering;

#[test]
fn a_killed_process_gives_its_turn_up_reaped_or_not() {
    for reaped in [true, false] {
        let (near, _far) = pair();
        let child = fork(|| match (near.tx().enter(), near.rx().enter()) {
            (Ok(_tx), Ok(_rx)) => loop {
                // SAFETY: takes nothing and touches no memory.
                unsafe { libc::pause() };
            },
            _ => 1,
        });
        let number = child.as_raw_nonzero().get().cast_unsigned();
        while near.rx().turn().load(Ordering::Acquire) != number {
            std::thread::yield_now();
        }
        kill_process(child, Signal::KILL).expect("kill");
        if reaped {
            wait(child);
        } else {
            let ended = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT;
            waitid(WaitId::Pid(child), ended).expect("wait");
        }
        assert!(near.tx().enter().expect("given up").orphaned());
        let held = near.rx().enter().expect("given up");
        assert!(held.orphaned());
        drop(held);
        assert!(!near.rx().enter().expect("free").orphaned());
        if !reaped {
            wait(child);
        }
    }
}

/// Three processes write numbered records in turns, and are killed and replaced all the time; a fourth reads. Each record is whole, and
/// each writer's come in order, with none missing.
#[test]
fn what_killed_processes_wrote_is_whole() {
    let (near, far) = pair();
    let reader = fork(|| u8::from(!read_records(&far)));
    for generation in 0..GENERATIONS {
        let writers = [0, 1, 2].map(|who| fork(|| write_records(&near, generation * 3 + who)));
        // Until they have got somewhere.
        let enough = near.tx().tail() + 40_000;
        while near.tx().tail() < enough {
            std::thread::yield_now();
        }
        for writer in writers {
            kill_process(writer, Signal::KILL).expect("kill");
            wait(writer);
        }
    }
    drop(near.tx().enter().expect("given up"));
    near.tx().finish(FIN);
    assert_eq!(wait(reader), Some(0));
}

fn write_records(stream: &Stream, who: u64) -> u8 {
    let tx = stream.tx();
    for number in 0u64.. {
        let mut record = [0; RECORD];
        for (word, value) in record
            .chunks_exact_mut(8)
            .zip([who, number].into_iter().cycle())
        {
            word.copy_from_slice(&value.to_ne_bytes());
        }
        loop {
            let Ok(_held) = tx.enter() else { return 1 };
            if tx.room(RECORD).is_ok_and(|room| room >= RECORD) {
                if number % 2 == 0 && tx.write_short(&record).is_some() {
                    break;
                }
                let written = tx.write(false, || record.chunks(100));
                if written.is_ok_and(|(n, _)| n == RECORD) {
                    break;
                }
                return 2;
            }
        }
    }
    0
}

fn read_records(stream: &Stream) -> bool {
    let rx = stream.rx();
    let mut next = [0u64; 3 * GENERATIONS as usize];
    loop {
        let ended = rx.finished() != 0;
        let mut record = [0; RECORD];
        let head = rx.head();
        let Ok(n) = rx.peek(head, &mut record) else {
            return false;
        };
        if n < RECORD {
            if ended {
                return n == 0 && next.iter().any(|next| *next > 0);
            }
            std::hint::spin_loop();
            continue;
        }
        if !rx.take(head, head + RECORD as u64).0 {
            return false;
        }
        let word = |at: usize| {
            let mut word = [0; 8];
            word.copy_from_slice(&record[8 * at..8 * at + 8]);
            u64::from_ne_bytes(word)
        };
        let (who, number) = (word(0), word(1));
        let whole = (0..RECORD / 8).all(|at| word(at) == [who, number][at % 2]);
        let Some(next) = next.get_mut(who as usize) else {
            return false;
        };
        if !whole || number != *next {
            return false;
        }
        *next += 1;
    }
}

fn pair() -> (Stream, Stream) {
    let memory = Stream::memory(Size::DEFAULT).expect("memfd");
    let other = memory.try_clone().expect("dup");
    (
        Stream::map(memory, Side::A).expect("map"),
        Stream::map(other, Side::B).expect("map"),
    )
}

/// The child does `work` and exits with its result; it must not allocate, print or panic, for other threads' locks are as they happened to be.
fn fork(work: impl FnOnce() -> u8) -> Pid {
    // SAFETY: the child does nothing but `work`, which makes system calls and uses shared memory, and `_exit`.
    match unsafe { libc::fork() } {
        0 => {
            let code = i32::from(work());
            // SAFETY: never returns and touches no memory of ours.
            unsafe { libc::_exit(code) }
        }
        pid => Pid::from_raw(pid).expect("fork"),
    }
}

/// With which code the child ended, if it was not killed.
fn wait(child: Pid) -> Option<i32> {
    let (_, status) = waitpid(Some(child), WaitOptions::empty())
        .expect("wait")
        .expect("blocking");
    status.exit_status()
}

const GENERATIONS: u64 = 12;
const RECORD: usize = 2000;
