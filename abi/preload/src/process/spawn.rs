//! posix_spawn and what is built on it: another program beside this one, with copies of descriptors.

use std::ffi::{CStr, c_char, c_int, c_void};

use libc::pid_t;
use sockets::handover::departure::{self, before_move};
use sockets::packet::table::sharing;
use sockets::table;
use sys::hidden::is_hidden;
use sys::sync::Ordering;
use sys::sync::mapped::AtomicU32;

use super::environment::suited;
use super::exec::{image_at, image_named};
use super::image::Image;
use crate::outcome::{connection, keeping_errno};
use crate::{real, via_socket};

type Strings = *const *const c_char;

fn spawning<R>(image: Image, started: impl FnOnce(&R) -> bool, spawn: impl FnOnce() -> R) -> R {
    let spawning = keeping_errno(|| {
        let takes_over = image == Image::Followed && CLOSES_OURS.load(Ordering::Relaxed) == 0;
        let spawning = departure::before_spawn(takes_over);
        sharing::inherited();
        spawning
    });
    let result = spawn();
    keeping_errno(|| spawning.over(started(&result)));
    result
}

/// POSIX.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C-unwind" fn posix_spawn(
    pid: *mut pid_t,
    path: *const c_char,
    actions: *const c_void,
    attributes: *const c_void,
    arguments: Strings,
    environment: Strings,
) -> c_int {
    // SAFETY: the program's own call and its promises, here and below.
    let image = unsafe { image_there(path, environment, image_at) };
    let spawn = |environment| {
        // SAFETY: as above.
        unsafe { real::posix_spawn(pid, path, actions, attributes, arguments, environment) }
    };
    spawning(
        image,
        |result| *result == 0,
        // SAFETY: as above.
        || unsafe { suited(image, environment, spawn) },
    )
}

/// POSIX.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C-unwind" fn posix_spawnp(
    pid: *mut pid_t,
    name: *const c_char,
    actions: *const c_void,
    attributes: *const c_void,
    arguments: Strings,
    environment: Strings,
) -> c_int {
    // SAFETY: as above.
    let image = unsafe { image_there(name, environment, image_named) };
    let spawn = |environment| {
        // SAFETY: as above.
        unsafe { real::posix_spawnp(pid, name, actions, attributes, arguments, environment) }
    };
    spawning(
        image,
        |result| *result == 0,
        // SAFETY: as above.
        || unsafe { suited(image, environment, spawn) },
    )
}

/// POSIX. The new program will have a connection at another number, which says nothing of what the new one will be: the way back.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C-unwind" fn posix_spawn_file_actions_adddup2(
    actions: *mut c_void,
    fd: c_int,
    new: c_int,
) -> c_int {
    via_socket::share(fd);
    keeping_errno(|| {
        sockets::epoll::departure::lend(fd);
        table::share_socket(fd);
        if let Some((conn, borrowed)) = connection(fd) {
            before_move(conn, borrowed);
        }
    });
    // SAFETY: as above.
    unsafe { real::posix_spawn_file_actions_adddup2(actions, fd, new) }
}

/// POSIX. What is ours is not the program's to close.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C-unwind" fn posix_spawn_file_actions_addclose(
    actions: *mut c_void,
    fd: c_int,
) -> c_int {
    if is_hidden(fd) {
        return 0;
    }
    // SAFETY: as above.
    unsafe { real::posix_spawn_file_actions_addclose(actions, fd) }
}

/// glibc. Of what it closes in the new program some is ours, by which that would take its connections over.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C-unwind" fn posix_spawn_file_actions_addclosefrom_np(
    actions: *mut c_void,
    from: c_int,
) -> c_int {
    CLOSES_OURS.store(1, Ordering::Relaxed);
    // SAFETY: as above.
    unsafe { real::posix_spawn_file_actions_addclosefrom_np(actions, from) }
}

/// glibc. From there on a relative path is another file's than it is here.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C-unwind" fn posix_spawn_file_actions_addchdir_np(
    actions: *mut c_void,
    path: *const c_char,
) -> c_int {
    CHANGES_FOLDER.store(1, Ordering::Relaxed);
    // SAFETY: as above.
    unsafe { real::posix_spawn_file_actions_addchdir_np(actions, path) }
}

/// glibc.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C-unwind" fn posix_spawn_file_actions_addfchdir_np(
    actions: *mut c_void,
    fd: c_int,
) -> c_int {
    CHANGES_FOLDER.store(1, Ordering::Relaxed);
    // SAFETY: as above.
    unsafe { real::posix_spawn_file_actions_addfchdir_np(actions, fd) }
}

/// C. The C library starts the shell by a way of its own.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C-unwind" fn system(command: *const c_char) -> c_int {
    if command.is_null() {
        // SAFETY: as above.
        return unsafe { real::system(command) };
    }
    // SAFETY: as above.
    spawning(
        shell(),
        |result| *result != -1,
        || unsafe { real::system(command) },
    )
}

/// POSIX.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C-unwind" fn popen(command: *const c_char, mode: *const c_char) -> *mut c_void {
    // SAFETY: as above.
    spawning(
        shell(),
        |result: &*mut c_void| !result.is_null(),
        || unsafe { real::popen(command, mode) },
    )
}

/// What the program will be that `look` finds here, unless it may be another one in the folder that it is started in.
unsafe fn image_there(
    path: *const c_char,
    environment: Strings,
    look: unsafe fn(*const c_char, Strings) -> Image,
) -> Image {
    if CHANGES_FOLDER.load(Ordering::Relaxed) != 0 && !path.is_null() {
        // SAFETY: the program's string.
        let path = unsafe { CStr::from_ptr(path) }.to_bytes();
        if path.contains(&b'/') && !path.starts_with(b"/") {
            return Image::Stranger;
        }
    }
    // SAFETY: as the caller's.
    unsafe { look(path, environment) }
}

fn shell() -> Image {
    // SAFETY: the program's environment, which the C library passes on.
    unsafe { image_at(c"/bin/sh".as_ptr(), libc::environ.cast_const().cast()) }
}

/// Whether this process has had descriptors of ours closed in programs that it starts, and may do so again: which lists of actions say so only the C library knows.
static CLOSES_OURS: AtomicU32 = AtomicU32::new(0);

/// The same, of the folder that they are started in.
static CHANGES_FOLDER: AtomicU32 = AtomicU32::new(0);
