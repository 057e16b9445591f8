//! `syscall()`: system calls by number.
//!
//! Those that concern a connection, or waiting, or the life of a process, are carried out by the function of the same name here. All others pass
//! through with their six registers as they are. A program that makes system calls by instructions of its own is not seen at all.

use std::ffi::{c_int, c_long};
use std::mem::MaybeUninit;
use std::ptr;

use libc::sigset_t;
use sockets::table;

use crate::outcome::{connection, keeping_errno};
use crate::process::{before_clone, before_sharer, exec, exit, forking};
use crate::{
    aio, connect, descriptor, directory, epoll, extended, file, filter, messages, option, poll,
    real, receive, send, uring, via_socket,
};

/// Linux. Whoever passes fewer arguments leaves something in the other registers, and the kernel does not look.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C-unwind" fn syscall(
    number: c_long,
    a: usize,
    b: usize,
    c: usize,
    d: usize,
    e: usize,
    f: usize,
) -> c_long {
    // SAFETY: the program's arguments as it passed them, to what they are meant for.
    unsafe {
        filter::before(number, [a, b, c]);
        if table::is_retired() {
            return real::syscall(number, a, b, c, d, e, f);
        }
        match by_name(number, [a, b, c, d, e, f]) {
            Some(result) => result,
            None => real::syscall(number, a, b, c, d, e, f),
        }
    }
}

/// Carries a call out by our function of its name, if there is one that matters.
unsafe fn by_name(number: c_long, arguments: [usize; 6]) -> Option<c_long> {
    let [a, b, c, d, e, f] = arguments;
    let int = |argument: usize| argument as c_int;
    // SAFETY: as in `syscall`, here and below.
    unsafe {
        Some(match number {
            libc::SYS_close => descriptor::close(int(a)).into(),
            libc::SYS_close_range => descriptor::close_range(a as u32, b as u32, int(c)).into(),
            libc::SYS_dup => descriptor::dup(int(a)).into(),
            #[cfg(target_arch = "x86_64")]
            libc::SYS_dup2 => descriptor::dup2(int(a), int(b)).into(),
            libc::SYS_dup3 => descriptor::dup3(int(a), int(b), int(c)).into(),
            libc::SYS_fcntl => option::fcntl(int(a), int(b), pointer(c)).into(),
            libc::SYS_accept => connect::accept(int(a), pointer(b), pointer(c)).into(),
            libc::SYS_accept4 => connect::accept4(int(a), pointer(b), pointer(c), int(d)).into(),
            libc::SYS_connect => connect::connect(int(a), pointer(b), c as u32).into(),
            #[cfg(target_arch = "x86_64")]
            libc::SYS_poll => poll::poll(pointer(a), b as u64, int(c)).into(),
            libc::SYS_ppoll => {
                let mask = mask(d, e)?;
                poll::ppoll(pointer(a), b as u64, pointer(c), mask.pointer()).into()
            }
            #[cfg(target_arch = "x86_64")]
            libc::SYS_select => {
                poll::select(int(a), pointer(b), pointer(c), pointer(d), pointer(e)).into()
            }
            libc::SYS_pselect6 => {
                let given = pointer::<[usize; 2]>(f)
                    .as_ref()
                    .copied()
                    .unwrap_or_default();
                let mask = mask(given[0], given[1])?;
                let sets = [b, c, d].map(pointer);
                poll::pselect(
                    int(a),
                    sets[0],
                    sets[1],
                    sets[2],
                    pointer(e),
                    mask.pointer(),
                )
                .into()
            }
            #[cfg(target_arch = "x86_64")]
            libc::SYS_epoll_create => epoll::epoll_create(int(a)).into(),
            libc::SYS_epoll_create1 => epoll::epoll_create1(int(a)).into(),
            libc::SYS_epoll_ctl => epoll::epoll_ctl(int(a), int(b), int(c), pointer(d)).into(),
            #[cfg(target_arch = "x86_64")]
            libc::SYS_epoll_wait => epoll::epoll_wait(int(a), pointer(b), int(c), int(d)).into(),
            libc::SYS_epoll_pwait => {
                let mask = mask(e, f)?;
                epoll::epoll_pwait(int(a), pointer(b), int(c), int(d), mask.pointer()).into()
            }
            libc::SYS_epoll_pwait2 => {
                let mask = mask(e, f)?;
                epoll::epoll_pwait2(int(a), pointer(b), int(c), pointer(d), mask.pointer()).into()
            }
            libc::SYS_execve => exec::execve(pointer(a), pointer(b), pointer(c)).into(),
            libc::SYS_execveat => {
                exec::execveat(int(a), pointer(b), pointer(c), pointer(d), int(e)).into()
            }
            libc::SYS_exit_group => exit::_exit(int(a)),
            // The child of `vfork` would return through the frames of its parent: it gets its own.
            #[cfg(target_arch = "x86_64")]
            libc::SYS_fork | libc::SYS_vfork => {
                forking(|| real::syscall(libc::SYS_fork, 0, 0, 0, 0, 0, 0))
            }
            #[cfg(target_arch = "x86_64")]
            libc::SYS_clone => {
                return forks(a as u64, || real::syscall(number, a, b, c, d, e, f));
            }
            libc::SYS_clone3 => {
                let flags = *pointer::<u64>(a).as_ref()?;
                return forks(flags, || real::syscall(number, a, b, c, d, e, f));
            }
            libc::SYS_io_uring_setup => {
                let flags = uring::own::flags_of(pointer(b));
                let ring = real::syscall(number, a, b, c, d, e, f);
                uring::own::made(ring as c_int, flags, pointer(b));
                ring
            }
            libc::SYS_io_uring_enter => {
                uring::own::before_enter(int(a), b as u32, d as u32);
                return None;
            }
            libc::SYS_io_uring_register => {
                uring::own::before_register(b as u32);
                return None;
            }
            libc::SYS_getdents64 => directory::listed(int(a), pointer(b), || {
                real::syscall(number, a, b, c, d, e, f) as isize
            }) as c_long,
            libc::SYS_io_submit => {
                aio::before_submit(b as c_long, pointer(c));
                return None;
            }
            _ => return on_connection(number, arguments),
        })
    }
}

/// `clone` with such flags, where it makes a process of its own. One with this process's memory is only expected: it may not return through this frame.
fn forks(flags: u64, clone: impl FnOnce() -> c_long) -> Option<c_long> {
    let has = |flag: c_int| flags & u64::from(flag.cast_unsigned()) != 0;
    if !has(libc::CLONE_VM) {
        before_clone(flags as c_int);
        return Some(forking(clone));
    }
    // None of those that are asked for here is above the 31st.
    before_sharer(flags as c_int);
    None
}

/// Calls that move bytes or change a connection, if the descriptor is one.
unsafe fn on_connection(number: c_long, arguments: [usize; 6]) -> Option<c_long> {
    let [a, b, c, d, e, f] = arguments;
    let int = |argument: usize| argument as c_int;
    let fd = int(a);
    if !MOVING.contains(&number) {
        return None;
    }
    let passes = matches!(
        number,
        libc::SYS_sendmsg | libc::SYS_sendmmsg | libc::SYS_recvmsg | libc::SYS_recvmmsg
    );
    let two = matches!(number, libc::SYS_sendfile | libc::SYS_splice);
    let of_ours =
        || keeping_errno(|| connection(fd).is_some()) || extended::is(fd) || via_socket::is(fd);
    if !passes && !two && !of_ours() {
        return None;
    }
    // SAFETY: as in `syscall`.
    unsafe {
        Some(match number {
            libc::SYS_read => receive::read(fd, pointer(b), c) as c_long,
            libc::SYS_write => send::write(fd, pointer(b), c) as c_long,
            libc::SYS_readv => receive::readv(fd, pointer(b), int(c)) as c_long,
            libc::SYS_writev => send::writev(fd, pointer(b), int(c)) as c_long,
            // An offset has a register of its own for its upper half, which is of no use here.
            libc::SYS_preadv2 => {
                receive::preadv2(fd, pointer(b), int(c), d as i64, int(f)) as c_long
            }
            libc::SYS_pwritev2 => {
                send::pwritev2(fd, pointer(b), int(c), d as i64, int(f)) as c_long
            }
            libc::SYS_recvfrom => {
                receive::recvfrom(fd, pointer(b), c, int(d), pointer(e), pointer(f)) as c_long
            }
            libc::SYS_sendto => {
                send::sendto(fd, pointer(b), c, int(d), pointer(e), f as u32) as c_long
            }
            libc::SYS_recvmsg => receive::recvmsg(fd, pointer(b), int(c)) as c_long,
            libc::SYS_sendmsg => send::sendmsg(fd, pointer(b), int(c)) as c_long,
            libc::SYS_recvmmsg => {
                messages::recvmmsg(fd, pointer(b), c as u32, int(d), pointer(e)).into()
            }
            libc::SYS_sendmmsg => messages::sendmmsg(fd, pointer(b), c as u32, int(d)).into(),
            libc::SYS_ioctl => option::ioctl(fd, b as u64, pointer(c)).into(),
            libc::SYS_setsockopt => {
                option::setsockopt(fd, int(b), int(c), pointer(d), e as u32).into()
            }
            libc::SYS_getsockopt => {
                option::getsockopt(fd, int(b), int(c), pointer(d), pointer(e)).into()
            }
            libc::SYS_shutdown => connect::shutdown(fd, int(b)).into(),
            libc::SYS_sendfile => file::sendfile(fd, int(b), pointer(c), d) as c_long,
            libc::SYS_splice => {
                file::splice(fd, pointer(b), int(c), pointer(d), e, f as u32) as c_long
            }
            _ => return None,
        })
    }
}

const MOVING: [c_long; 18] = [
    libc::SYS_read,
    libc::SYS_write,
    libc::SYS_readv,
    libc::SYS_writev,
    libc::SYS_preadv2,
    libc::SYS_pwritev2,
    libc::SYS_recvfrom,
    libc::SYS_sendto,
    libc::SYS_recvmsg,
    libc::SYS_sendmsg,
    libc::SYS_recvmmsg,
    libc::SYS_sendmmsg,
    libc::SYS_ioctl,
    libc::SYS_setsockopt,
    libc::SYS_getsockopt,
    libc::SYS_shutdown,
    libc::SYS_sendfile,
    libc::SYS_splice,
];

fn pointer<T>(argument: usize) -> *mut T {
    ptr::with_exposed_provenance_mut(argument)
}

/// The kernel's set of signals as the C library has it, which is longer.
struct Mask(Option<sigset_t>);

impl Mask {
    fn pointer(&self) -> *const sigset_t {
        self.0.as_ref().map_or(ptr::null(), ptr::from_ref)
    }
}

/// `None` for what the kernel should refuse.
unsafe fn mask(address: usize, len: usize) -> Option<Mask> {
    if address == 0 {
        return Some(Mask(None));
    }
    if len != KERNEL_SET {
        return None;
    }
    let mut set = MaybeUninit::<sigset_t>::zeroed();
    // SAFETY: the program's set, of that length; zeros are an empty set.
    unsafe {
        ptr::copy_nonoverlapping(pointer::<u8>(address), set.as_mut_ptr().cast::<u8>(), len);
        Some(Mask(Some(set.assume_init())))
    }
}

/// Bytes of the kernel's set of signals.
const KERNEL_SET: usize = 8;
