//! The C library's own functions, which ours stand in front of.

use std::ffi::{CStr, c_char, c_int, c_void};

use libc::{iovec, mmsghdr, msghdr, nfds_t, off_t, pollfd, size_t, sockaddr, socklen_t, ssize_t};
use sys::quiet::Quiet;
use sys::sync::Ordering;
use sys::sync::mapped::AtomicU64;

/// Declares functions that call the next definition of their name after this library.
macro_rules! next {
    ($($(#[$attribute:meta])* fn $name:ident($($argument:ident: $type:ty),* $(,)?) -> $result:ty;)*) => {$(
        $(#[$attribute])*
        #[inline]
        #[allow(non_snake_case, reason = "the C library's names")]
        pub(crate) unsafe fn $name($($argument: $type),*) -> $result {
            static NEXT: AtomicU64 = AtomicU64::new(0);
            const NAME: &CStr = match CStr::from_bytes_with_nul(concat!(stringify!($name), "\0").as_bytes()) {
                Ok(name) => name,
                Err(_) => c"",
            };
            let address = lookup(&NEXT, NAME);
            if address == 0 {
                return missing() as $result;
            }
            // SAFETY: the address is that of the C library's function of this name, whose type POSIX or glibc's headers give. A thread that is
            // cancelled in it unwinds, and what its frames hold is given back.
            let function: unsafe extern "C-unwind" fn($($type),*) -> $result = unsafe { std::mem::transmute(address as usize) };
            // SAFETY: the caller passes the arguments that the program passed.
            unsafe { function($($argument),*) }
        }
    )*};
}

/// The address of the next `name`; looked up once, and by two threads at once to the same end.
#[inline]
pub(crate) fn lookup(cache: &AtomicU64, name: &CStr) -> u64 {
    match cache.load(Ordering::Relaxed) {
        0 => find(cache, name),
        address => address,
    }
}

#[cold]
fn find(cache: &AtomicU64, name: &CStr) -> u64 {
    // The linker has a lock, which a handler must not leave.
    let _quiet = Quiet::begin();
    // SAFETY: looks a name up.
    let address = unsafe { libc::dlsym(libc::RTLD_NEXT, name.as_ptr()) }.addr() as u64;
    cache.store(address, Ordering::Relaxed);
    address
}

/// The C library has no such function (it is older than the function).
#[cold]
pub(crate) fn missing() -> c_int {
    // SAFETY: errno of this thread.
    unsafe { *libc::__errno_location() = libc::ENOSYS };
    -1
}

next! {
    fn accept(fd: c_int, address: *mut sockaddr, len: *mut socklen_t) -> c_int;
    fn accept4(fd: c_int, address: *mut sockaddr, len: *mut socklen_t, flags: c_int) -> c_int;
    fn bind(fd: c_int, address: *const sockaddr, len: socklen_t) -> c_int;
    fn listen(fd: c_int, backlog: c_int) -> c_int;
    fn pipe(ends: *mut c_int) -> c_int;
    fn pipe2(ends: *mut c_int, flags: c_int) -> c_int;
    fn socket(domain: c_int, kind: c_int, protocol: c_int) -> c_int;
    fn socketpair(domain: c_int, kind: c_int, protocol: c_int, ends: *mut c_int) -> c_int;
    fn close(fd: c_int) -> c_int;
    fn close_range(first: u32, last: u32, flags: c_int) -> c_int;
    fn connect(fd: c_int, address: *const sockaddr, len: socklen_t) -> c_int;
    fn dup(fd: c_int) -> c_int;
    fn dup2(fd: c_int, new: c_int) -> c_int;
    fn dup3(fd: c_int, new: c_int, flags: c_int) -> c_int;
    fn fcntl(fd: c_int, command: c_int, argument: *mut c_void) -> c_int;
    fn fcntl64(fd: c_int, command: c_int, argument: *mut c_void) -> c_int;
    fn getpeername(fd: c_int, address: *mut sockaddr, len: *mut socklen_t) -> c_int;
    fn getsockname(fd: c_int, address: *mut sockaddr, len: *mut socklen_t) -> c_int;
    fn getsockopt(fd: c_int, level: c_int, name: c_int, value: *mut c_void, len: *mut socklen_t) -> c_int;
    fn ioctl(fd: c_int, request: libc::c_ulong, argument: *mut c_void) -> c_int;
    fn epoll_create(size: c_int) -> c_int;
    fn epoll_create1(flags: c_int) -> c_int;
    fn epoll_ctl(set: c_int, operation: c_int, fd: c_int, event: *mut libc::epoll_event) -> c_int;
    fn epoll_pwait(set: c_int, events: *mut libc::epoll_event, count: c_int, timeout: c_int, mask: *const libc::sigset_t) -> c_int;
    fn epoll_pwait2(set: c_int, events: *mut libc::epoll_event, count: c_int, timeout: *const libc::timespec, mask: *const libc::sigset_t) -> c_int;
    fn poll(fds: *mut pollfd, count: nfds_t, timeout: c_int) -> c_int;
    fn ppoll(fds: *mut pollfd, count: nfds_t, timeout: *const libc::timespec, mask: *const libc::sigset_t) -> c_int;
    fn pselect(count: c_int, read: *mut libc::fd_set, write: *mut libc::fd_set, except: *mut libc::fd_set, timeout: *const libc::timespec, mask: *const libc::sigset_t) -> c_int;
    fn select(count: c_int, read: *mut libc::fd_set, write: *mut libc::fd_set, except: *mut libc::fd_set, timeout: *mut libc::timeval) -> c_int;
    fn preadv2(fd: c_int, buffers: *const iovec, count: c_int, offset: off_t, flags: c_int) -> ssize_t;
    fn pwritev2(fd: c_int, buffers: *const iovec, count: c_int, offset: off_t, flags: c_int) -> ssize_t;
    fn read(fd: c_int, buffer: *mut c_void, len: size_t) -> ssize_t;
    fn readv(fd: c_int, buffers: *const iovec, count: c_int) -> ssize_t;
    fn recv(fd: c_int, buffer: *mut c_void, len: size_t, flags: c_int) -> ssize_t;
    fn recvfrom(fd: c_int, buffer: *mut c_void, len: size_t, flags: c_int, address: *mut sockaddr, address_len: *mut socklen_t) -> ssize_t;
    fn recvmmsg(fd: c_int, messages: *mut mmsghdr, count: u32, flags: c_int, timeout: *mut libc::timespec) -> c_int;
    fn recvmsg(fd: c_int, message: *mut msghdr, flags: c_int) -> ssize_t;
    fn send(fd: c_int, buffer: *const c_void, len: size_t, flags: c_int) -> ssize_t;
    fn sendmmsg(fd: c_int, messages: *mut mmsghdr, count: u32, flags: c_int) -> c_int;
    fn sendmsg(fd: c_int, message: *const msghdr, flags: c_int) -> ssize_t;
    fn sendto(fd: c_int, buffer: *const c_void, len: size_t, flags: c_int, address: *const sockaddr, address_len: socklen_t) -> ssize_t;
    fn sendfile(out: c_int, input: c_int, offset: *mut off_t, count: size_t) -> ssize_t;
    fn splice(input: c_int, input_offset: *mut libc::loff_t, out: c_int, out_offset: *mut libc::loff_t, len: size_t, flags: libc::c_uint) -> ssize_t;
    fn setsockopt(fd: c_int, level: c_int, name: c_int, value: *const c_void, len: socklen_t) -> c_int;
    fn shutdown(fd: c_int, how: c_int) -> c_int;
    fn write(fd: c_int, buffer: *const c_void, len: size_t) -> ssize_t;
    fn writev(fd: c_int, buffers: *const iovec, count: c_int) -> ssize_t;
}

// Processes and threads.
next! {
    fn pthread_cancel(thread: libc::pthread_t) -> c_int;
    fn pthread_setcanceltype(kind: c_int, before: *mut c_int) -> c_int;
    fn _exit(status: c_int) -> c_int;
    fn execve(path: *const c_char, arguments: *const *const c_char, environment: *const *const c_char) -> c_int;
    fn execveat(directory: c_int, path: *const c_char, arguments: *const *const c_char, environment: *const *const c_char, flags: c_int) -> c_int;
    fn execvpe(name: *const c_char, arguments: *const *const c_char, environment: *const *const c_char) -> c_int;
    fn fexecve(fd: c_int, arguments: *const *const c_char, environment: *const *const c_char) -> c_int;
    fn openpty(ours: *mut c_int, theirs: *mut c_int, name: *mut c_char, settings: *const c_void, size: *const c_void) -> c_int;
    fn popen(command: *const c_char, mode: *const c_char) -> *mut c_void;
    fn posix_spawn(pid: *mut libc::pid_t, path: *const c_char, actions: *const c_void, attributes: *const c_void, arguments: *const *const c_char, environment: *const *const c_char) -> c_int;
    fn posix_spawn_file_actions_addclose(actions: *mut c_void, fd: c_int) -> c_int;
    fn posix_spawn_file_actions_addchdir_np(actions: *mut c_void, path: *const c_char) -> c_int;
    fn posix_spawn_file_actions_addfchdir_np(actions: *mut c_void, fd: c_int) -> c_int;
    fn posix_spawn_file_actions_addclosefrom_np(actions: *mut c_void, from: c_int) -> c_int;
    fn posix_spawn_file_actions_adddup2(actions: *mut c_void, fd: c_int, new: c_int) -> c_int;
    fn posix_spawnp(pid: *mut libc::pid_t, name: *const c_char, actions: *const c_void, attributes: *const c_void, arguments: *const *const c_char, environment: *const *const c_char) -> c_int;
    fn quick_exit(status: c_int) -> c_int;
    fn system(command: *const c_char) -> c_int;
    fn _Fork() -> libc::pid_t;
    fn clone(start: extern "C" fn(*mut c_void) -> c_int, stack: *mut c_void, flags: c_int, argument: *mut c_void, parent_tid: *mut libc::pid_t, tls: *mut c_void, child_tid: *mut libc::pid_t) -> c_int;
    fn fork() -> libc::pid_t;
}

// Handlers of signals.
next! {
    fn sigaction(signal: c_int, new: *const libc::sigaction, old: *mut libc::sigaction) -> c_int;
    fn signal(signal: c_int, handler: libc::sighandler_t) -> libc::sighandler_t;
    fn bsd_signal(signal: c_int, handler: libc::sighandler_t) -> libc::sighandler_t;
    fn ssignal(signal: c_int, handler: libc::sighandler_t) -> libc::sighandler_t;
    fn sysv_signal(signal: c_int, handler: libc::sighandler_t) -> libc::sighandler_t;
    fn __sysv_signal(signal: c_int, handler: libc::sighandler_t) -> libc::sighandler_t;
    fn sigset(signal: c_int, handler: libc::sighandler_t) -> libc::sighandler_t;
}

// Jumps. `env` is the program's `jmp_buf`; none returns.
next! {
    fn longjmp(env: *mut c_void, value: c_int) -> c_int;
    fn _longjmp(env: *mut c_void, value: c_int) -> c_int;
    fn siglongjmp(env: *mut c_void, value: c_int) -> c_int;
    fn __longjmp_chk(env: *mut c_void, value: c_int) -> c_int;
}

/// Whether the C library lets its streams be walked, as glibc does for C++.
pub(crate) fn has_list_of_streams() -> bool {
    static FIRST: AtomicU64 = AtomicU64::new(0);
    lookup(&FIRST, c"_IO_iter_begin") != 0
}

// stdio. The libc crate has the type of a stream.
next! {
    fn _IO_iter_begin() -> *mut c_void;
    fn _IO_iter_end() -> *mut c_void;
    fn _IO_iter_file(at: *mut c_void) -> *mut libc::FILE;
    fn _IO_iter_next(at: *mut c_void) -> *mut c_void;
    fn _IO_list_lock() -> c_int;
    fn _IO_list_resetlock() -> c_int;
    fn _IO_list_unlock() -> c_int;
    fn __vdprintf_chk(fd: c_int, flag: c_int, format: *const c_char, arguments: *mut c_void) -> c_int;
    fn fclose(stream: *mut libc::FILE) -> c_int;
    fn fdopen(fd: c_int, mode: *const c_char) -> *mut libc::FILE;
    fn fileno(stream: *mut libc::FILE) -> c_int;
    fn fileno_unlocked(stream: *mut libc::FILE) -> c_int;
    fn freopen(path: *const c_char, mode: *const c_char, stream: *mut libc::FILE) -> *mut libc::FILE;
    fn freopen64(path: *const c_char, mode: *const c_char, stream: *mut libc::FILE) -> *mut libc::FILE;
    fn vasprintf(text: *mut *mut c_char, format: *const c_char, arguments: *mut c_void) -> c_int;
    fn vdprintf(fd: c_int, format: *const c_char, arguments: *mut c_void) -> c_int;
}

// Asynchronous input and output.
next! {
    fn aio_read(block: *mut libc::aiocb) -> c_int;
    fn aio_read64(block: *mut libc::aiocb) -> c_int;
    fn aio_write(block: *mut libc::aiocb) -> c_int;
    fn aio_write64(block: *mut libc::aiocb) -> c_int;
    fn lio_listio(mode: c_int, blocks: *const *mut libc::aiocb, count: c_int, event: *mut libc::sigevent) -> c_int;
    fn lio_listio64(mode: c_int, blocks: *const *mut libc::aiocb, count: c_int, event: *mut libc::sigevent) -> c_int;
}

// liburing.
next! {
    fn io_uring_enter(fd: u32, submit: u32, count: u32, flags: u32, mask: *mut libc::sigset_t) -> c_int;
    fn io_uring_enter2(fd: u32, submit: u32, count: u32, flags: u32, argument: *mut c_void, len: usize) -> c_int;
    fn io_uring_queue_init(entries: u32, ring: *mut c_void, flags: u32) -> c_int;
    fn io_uring_queue_init_mem(entries: u32, ring: *mut c_void, parameters: *mut c_void, buffer: *mut c_void, len: usize) -> c_int;
    fn io_uring_queue_init_params(entries: u32, ring: *mut c_void, parameters: *mut c_void) -> c_int;
    fn io_uring_setup(entries: u32, parameters: *mut c_void) -> c_int;
    fn io_uring_submit(ring: *mut c_void) -> c_int;
    fn io_uring_submit_and_get_events(ring: *mut c_void) -> c_int;
    fn io_uring_submit_and_wait(ring: *mut c_void, count: u32) -> c_int;
    fn io_uring_submit_and_wait_min_timeout(ring: *mut c_void, completion: *mut c_void, count: u32, time: *mut c_void, least_us: u32, mask: *mut libc::sigset_t) -> c_int;
    fn io_uring_submit_and_wait_reg(ring: *mut c_void, completion: *mut c_void, count: u32, index: c_int) -> c_int;
    fn io_uring_submit_and_wait_timeout(ring: *mut c_void, completion: *mut c_void, count: u32, time: *mut c_void, mask: *mut libc::sigset_t) -> c_int;
    fn io_uring_wait_cqe_timeout(ring: *mut c_void, completion: *mut c_void, time: *mut c_void) -> c_int;
    fn io_uring_wait_cqes(ring: *mut c_void, completion: *mut c_void, count: u32, time: *mut c_void, mask: *mut libc::sigset_t) -> c_int;
    fn io_uring_wait_cqes_min_timeout(ring: *mut c_void, completion: *mut c_void, count: u32, time: *mut c_void, least_us: u32, mask: *mut libc::sigset_t) -> c_int;
}

// Calls by number, directories.
next! {
    fn prctl(option: c_int, a: usize, b: usize, c: usize, d: usize) -> c_int;
    fn unshare(flags: c_int) -> c_int;
    fn readdir(directory: *mut libc::DIR) -> *mut libc::dirent;
    fn readdir64(directory: *mut libc::DIR) -> *mut libc::dirent64;
    fn getdents64(directory: c_int, into: *mut c_void, len: size_t) -> ssize_t;
    fn readdir_r(directory: *mut libc::DIR, entry: *mut libc::dirent, result: *mut *mut libc::dirent) -> c_int;
    fn readdir64_r(directory: *mut libc::DIR, entry: *mut libc::dirent64, result: *mut *mut libc::dirent64) -> c_int;
    fn scandir(path: *const c_char, list: *mut *mut *mut libc::dirent, filter: *const c_void, order: *const c_void) -> c_int;
    fn scandir64(path: *const c_char, list: *mut *mut *mut libc::dirent, filter: *const c_void, order: *const c_void) -> c_int;
    fn scandirat(at: c_int, path: *const c_char, list: *mut *mut *mut libc::dirent, filter: *const c_void, order: *const c_void) -> c_int;
    fn scandirat64(at: c_int, path: *const c_char, list: *mut *mut *mut libc::dirent, filter: *const c_void, order: *const c_void) -> c_int;
    fn syscall(number: libc::c_long, a: usize, b: usize, c: usize, d: usize, e: usize, f: usize) -> libc::c_long;
}
