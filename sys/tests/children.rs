//! What takes a second process: real forks.
//!
//! Apart from the unit tests because a forked child holds duplicates of all descriptors that are open at that moment, and would keep alive what
//! other tests expect to see closed.
#![allow(unsafe_code, reason = "fork itself")]

use std::os::fd::{AsFd, AsRawFd};
use std::sync::Mutex;

use rustix::fs::{MemfdFlags, memfd_create};
use rustix::io::fcntl_dupfd_cloexec;
use rustix::process::{Pid, Signal, WaitOptions, kill_process, waitpid};
use sys::ledger::{Reader, Spare};
use sys::mem::Memory;
use sys::net::{Conn, Listener, Received};
use sys::sync::Ordering;
use sys::{fds, fork, poll, process_vm, time};

#[test]
fn a_forked_child_is_another_generation() {
    fork::watch().expect("atfork");
    fork::watch().expect("once is enough");
    let ours = fork::generation();
    let mut child = Child::fork(|| {
        let once = fork::generation().wrapping_sub(ours);
        let twice = Child::fork(|| fork::generation().wrapping_sub(ours) as u8).wait();
        if twice == Some(2) { once as u8 } else { 0xff }
    });
    assert_eq!(child.wait(), Some(1));
    assert_eq!(fork::generation(), ours);
}

#[test]
fn a_child_has_statics_of_its_own_and_nobody_in_them() {
    static ROOM: fork::Own<Mutex<u8>> = fork::Own::new();
    fork::watch().expect("atfork");
    let mut locked = ROOM.get().lock().expect("no panic");
    *locked = 7;
    let mut child = Child::fork(|| match ROOM.get().try_lock() {
        Ok(fresh) => 1 + *fresh,
        Err(_) => 0,
    });
    assert_eq!(child.wait(), Some(1));
    drop(locked);
    assert_eq!(*ROOM.get().lock().expect("no panic"), 7);
}

#[test]
fn what_a_process_tells_of_itself_its_child_does_not_tell() {
    fork::watch().expect("atfork");
    let spare = Spare::take().expect("there are some");
    spare.state.store(8, Ordering::Release);
    let (ours, theirs) = Conn::pair().expect("sockets");
    let child = Child::fork(|| {
        if spare.is_home() {
            return 1;
        }
        theirs.knock();
        sleep_forever()
    });
    ours.wait_readable(None).expect("poll");
    let told = |pid| {
        let reader = Reader::open(pid).expect("it lives").expect("a ledger");
        let mut count = 0;
        reader.for_each(|_, _| count += 1);
        count
    };
    assert_eq!(told(std::process::id()), 1);
    assert_eq!(told(child.pid()), 0);
}

#[test]
fn a_name_is_free_when_its_listener_goes_though_a_child_lives() {
    let name = format!("sovia-sys-listener-{}", std::process::id()).into_bytes();
    let listener = Listener::bind(&name, 1).expect("bind");
    let (ours, theirs) = Conn::pair().expect("sockets");
    let _child = Child::fork(|| {
        theirs.knock();
        sleep_forever()
    });
    ours.wait_readable(None).expect("poll");
    assert!(Conn::connect(&name).is_ok());
    drop(listener);
    assert!(Conn::connect(&name).is_err());
    Listener::bind(&name, 1).expect("free again");
}

#[test]
fn a_child_closes_what_is_its_parents_once() {
    let name = format!("sovia-sys-inherited-{}", std::process::id()).into_bytes();
    let mut listener = Some(Listener::bind(&name, 1).expect("bind"));
    let number = listener.as_ref().map(|held| held.as_fd().as_raw_fd());
    let mut child = Child::fork(|| {
        // What takes the number next is not closed with what had it before.
        let Ok(end) = Conn::pair().map(|(end, _)| end) else {
            return 0;
        };
        let is_taken = Some(end.as_fd().as_raw_fd()) == number;
        drop(listener.take());
        u8::from(is_taken) + u8::from(end.peer().is_ok())
    });
    assert_eq!(child.wait(), Some(2));
    assert!(Conn::connect(&name).is_ok());
}

#[test]
fn a_killed_peer_is_noticed() {
    let name = format!("sovia-sys-children-{}", std::process::id()).into_bytes();
    let listener = Listener::bind(&name, 1).expect("bind");
    let child = Child::fork(|| match Conn::connect(&name) {
        Ok(_held) => sleep_forever(),
        Err(_) => 1,
    });
    poll::wait_readable([listener.as_fd()], None).expect("poll");
    let conn = listener.accept().expect("accept").expect("the child");
    assert_eq!(conn.peer().expect("peer").pid, child.pid());

    let pidfd = conn.peer_pidfd().expect("pidfd");
    let now = time::deadline(Some(0));
    assert_eq!(
        poll::wait_readable([pidfd.as_fd()], now).expect("poll"),
        [false]
    );
    assert!(!conn.wait_readable(now).expect("poll"));

    child.kill();
    assert_eq!(
        poll::wait_readable([pidfd.as_fd()], None).expect("poll"),
        [true]
    );
    assert!(conn.wait_readable(None).expect("poll"));
    assert!(matches!(
        conn.recv(&mut [0; 64]).expect("recv"),
        Received::Closed
    ));
}

// Of a process with one thread numbers are tried until all descriptors were met; this program has others, which would have them listed.
#[test]
fn who_is_alone_meets_each_file_once() {
    const HIGH: i32 = 300;
    let low = memfd_create("sovia-test-of-a-child", MemfdFlags::CLOEXEC).expect("memory");
    let mut child = Child::fork(|| {
        let count = || {
            let mut found = [0u8; 2];
            let seen = fds::each_unlinked(|fd, name| {
                if name.starts_with(b"/memfd:sovia-test-of-a-child") {
                    found[usize::from(fd >= HIGH)] += 1;
                }
            });
            seen.map(|()| found).unwrap_or_default()
        };
        let alone = count();
        let Ok(_high) = fcntl_dupfd_cloexec(&low, HIGH) else {
            return 3;
        };
        u8::from(alone != [1, 0]) + 2 * u8::from(count() != [1, 1])
    });
    assert_eq!(child.wait(), Some(0));
}

#[test]
fn a_forked_child_is_read_and_written() {
    const LEN: usize = 3 * 4096 + 17;
    let memory = Memory::private(LEN).expect("memory");
    let copy = Memory::private(LEN).expect("memory");
    let theirs = [0xc3; LEN];
    let answer = [0x3c; LEN];
    let (near, far) = Conn::pair().expect("pair");
    let mut child = Child::fork(|| {
        let mut seen = [0; LEN];
        let written = memory.write(0, &theirs).is_ok() && far.send(b"written", &[]).is_ok();
        let answered =
            written && far.wait_readable(None).is_ok() && memory.read(0, &mut seen).is_ok();
        u8::from(answered && seen == answer)
    });
    assert!(near.wait_readable(None).expect("poll"));

    let mut bytes = [0xa5; LEN];
    assert_eq!(
        process_vm::read(child.pid(), memory.addr(), &copy, 0, LEN).expect("read"),
        LEN
    );
    copy.read(0, &mut bytes).expect("in range");
    assert_eq!(bytes, theirs);
    memory.read(0, &mut bytes).expect("in range");
    assert_eq!(bytes, [0; LEN], "ours is another page");

    copy.write(0, &answer).expect("in range");
    assert_eq!(
        process_vm::write(child.pid(), memory.addr(), &copy, 0, LEN).expect("write"),
        LEN
    );
    near.knock();
    assert_eq!(child.wait(), Some(1));
}

#[test]
fn a_process_that_is_not_ours_is_refused() {
    const NOBODY: u32 = 65_534;
    let memory = Memory::private(64).expect("memory");
    let mut child = Child::fork(|| {
        // SAFETY: the raw system calls concern the child's only thread; they touch no memory. They fail for whoever is not root, and so is nobody already.
        unsafe {
            libc::syscall(libc::SYS_setresgid, NOBODY, NOBODY, NOBODY);
            libc::syscall(libc::SYS_setresuid, NOBODY, NOBODY, NOBODY);
        }
        let refused = process_vm::read(1, 4096, &memory, 0, 64)
            .err()
            .and_then(|error| error.raw_os_error());
        u8::from(refused == Some(libc::EPERM))
    });
    assert_eq!(child.wait(), Some(1));
}

#[test]
fn a_process_that_is_gone_is_reported() {
    let memory = Memory::private(64).expect("memory");
    let mut child = Child::fork(|| 0);
    assert_eq!(child.wait(), Some(0));
    let gone =
        process_vm::write(child.pid(), memory.addr(), &memory, 0, 64).expect_err("no process");
    assert_eq!(gone.raw_os_error(), Some(libc::ESRCH));
}

#[test]
fn who_is_alone_exchanges_as_others_do() {
    use sys::alone::{self, Exchange};
    use sys::sync::AtomicUsize;
    use sys::sync::mapped::AtomicU32;

    // This program has other threads, so that the C library says no here and in the child, which has none.
    alone::find();
    assert!(!alone::is_alone());
    fn goes_both_ways() -> bool {
        let (long, short) = (AtomicUsize::new(usize::MAX), AtomicU32::new(7));
        long.exchange(1, 2) == Err(usize::MAX)
            && long.exchange(usize::MAX, 5) == Ok(usize::MAX)
            && long.exchange(5, 6) == Ok(5)
            && short.exchange(8, 9) == Err(7)
            && short.exchange(7, u32::MAX) == Ok(7)
            && (long.into_inner(), short.into_inner()) == (6, u32::MAX)
    }
    assert!(goes_both_ways());
    let mut child = Child::fork(|| {
        // SAFETY: the child has one thread.
        unsafe { alone::believe() };
        let alone = alone::is_alone() && goes_both_ways();
        alone::expect_others();
        u8::from(alone && !alone::is_alone() && goes_both_ways())
    });
    assert_eq!(child.wait(), Some(1));
}

/// A real fork of this process; killed and reaped when dropped.
struct Child {
    pid: Pid,
    reaped: bool,
}

impl Child {
    /// Forks; the child does `work` and exits with its result.
    ///
    /// The test program has other threads, whose locks the child inherits as they happen to be: `work` must not allocate, print or panic.
    fn fork(work: impl FnOnce() -> u8) -> Self {
        // SAFETY: the child does nothing but `work`, which makes system calls only, and `_exit`.
        match unsafe { libc::fork() } {
            0 => {
                let code = i32::from(work());
                // SAFETY: never returns and touches no memory of ours.
                unsafe { libc::_exit(code) }
            }
            pid => Self {
                pid: Pid::from_raw(pid).expect("fork"),
                reaped: false,
            },
        }
    }

    fn pid(&self) -> u32 {
        self.pid.as_raw_nonzero().get().cast_unsigned()
    }

    fn kill(&self) {
        kill_process(self.pid, Signal::KILL).expect("kill");
    }

    /// What the child's work returned; `None` if it was killed.
    fn wait(&mut self) -> Option<i32> {
        let (_, status) = waitpid(Some(self.pid), WaitOptions::empty())
            .expect("wait")
            .expect("blocking");
        self.reaped = true;
        status.exit_status()
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        if !self.reaped {
            self.kill();
            self.wait();
        }
    }
}

/// Sleeps until killed.
fn sleep_forever() -> ! {
    loop {
        // SAFETY: takes nothing and touches no memory.
        unsafe { libc::pause() };
    }
}
