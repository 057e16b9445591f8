//! Descriptors that go from process to process over a Unix socket.

use std::ffi::c_int;
use std::os::fd::RawFd;

use libc::{cmsghdr, mmsghdr, msghdr};
use sockets::epoll::given;
use sockets::handover::go_back;
use sockets::reason::Reason;
use sockets::table;

use crate::outcome::{connection, keeping_errno};
use crate::via_socket;

/// A message is about to be sent: the connections that it carries go back to TCP. Who gets them may be anybody, and until it takes the
/// message nobody can see that it has them, so they stay there.
///
/// # Safety
/// The program promises a message to the kernel.
#[inline]
pub(crate) unsafe fn before_sending(message: *const msghdr) {
    // SAFETY: by the contract.
    if unsafe { message.as_ref() }.is_some_and(|message| message.msg_controllen != 0) {
        keeping_errno(|| {
            // SAFETY: as above.
            unsafe { each_passed(message, go) }
        });
    }
}

/// As [`before_sending`], for several.
///
/// # Safety
/// The program promises `count` messages.
pub(crate) unsafe fn before_sending_all(messages: *const mmsghdr, count: u32) {
    if !messages.is_null() {
        for n in 0..count.min(crate::messages::MESSAGES_MAX) {
            // SAFETY: by the contract.
            unsafe { before_sending(&raw const (*messages.add(n as usize)).msg_hdr) };
        }
    }
}

/// A message has been received: the descriptors that came with it are new, whatever their numbers were before.
///
/// # Safety
/// The kernel has just filled the message in.
#[inline]
pub(crate) unsafe fn received(message: *const msghdr) {
    // SAFETY: by the contract.
    if unsafe { message.as_ref() }.is_some_and(|message| message.msg_controllen != 0) {
        // SAFETY: as above.
        keeping_errno(|| unsafe { each_passed(message, came) });
    }
}

fn came(fd: RawFd) {
    table::renumber(fd);
    given::received(fd);
}

fn go(fd: RawFd) {
    via_socket::share(fd);
    given::give(fd);
    table::share_socket(fd);
    if let Some((conn, borrowed)) = connection(fd) {
        go_back(conn, borrowed, Reason::HandedOver);
    }
}

#[cold]
unsafe fn each_passed(message: *const msghdr, mut visit: impl FnMut(RawFd)) {
    // SAFETY: by the callers' contract; the macros stay within `msg_controllen`.
    unsafe {
        let mut header: *mut cmsghdr = libc::CMSG_FIRSTHDR(message);
        while let Some(control) = header.as_ref() {
            if (control.cmsg_level, control.cmsg_type) == (libc::SOL_SOCKET, libc::SCM_RIGHTS) {
                let data = libc::CMSG_DATA(header).cast::<c_int>();
                let end =
                    (&raw const *control).byte_add(control.cmsg_len.min((*message).msg_controllen));
                let len = end.addr().saturating_sub(data.addr()) / size_of::<c_int>();
                for n in 0..len.min(FDS_MAX) {
                    visit(data.add(n).read_unaligned());
                }
            }
            header = libc::CMSG_NXTHDR(message, header);
        }
    }
}

/// `SCM_MAX_FD`.
const FDS_MAX: usize = 253;
