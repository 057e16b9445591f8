//! sigaction and its kin: handlers of a program that has sockets of type `SOCK_VIA` run between its calls on them, and in their sleeps, but not in their middle.
//!
//! From the first such socket on, the kernel has a function of ours for each handler, which has the signal put off while the thread is in a section
//! ([`sys::section`]), and else calls the program's with what the kernel gave. Flags and masks are the program's own. Programs that have no such
//! socket are not touched.

use std::ffi::{c_int, c_void};

use libc::{SIG_DFL, SIG_ERR, SIG_IGN, sighandler_t};
use sys::section;
use sys::sync::mapped::AtomicU32;
use sys::sync::{AtomicUsize, Ordering};

use crate::outcome::keeping_errno;
use crate::real;

/// The first socket of type `SOCK_VIA` is about to be made.
pub(crate) fn begin() {
    if BEGUN.swap(1, Ordering::SeqCst) != 0 {
        return;
    }
    for signal in 1..=SIGNALS_MAX {
        if let (Some(place), Some(mut action)) = (place(signal), installed(signal))
            && is_function(action.sa_sigaction)
            && action.sa_sigaction != ours()
        {
            place.store(action.sa_sigaction, Ordering::SeqCst);
            action.sa_sigaction = ours();
            // SAFETY: what was installed, with a handler that calls it.
            unsafe { real::sigaction(signal, &raw const action, std::ptr::null_mut()) };
        }
    }
}

/// What the kernel calls.
unsafe extern "C-unwind" fn handle(signal: c_int, info: *mut c_void, context: *mut c_void) {
    // SAFETY: the kernel's arguments.
    let is_put_off =
        unsafe { section::put_off(signal, info, context, || keeping_errno(|| goes_on(signal))) };
    let handler = place(signal).map_or(0, |place| place.load(Ordering::SeqCst));
    if is_put_off || handler == 0 {
        return;
    }
    // SAFETY: the program's handler. One that takes fewer arguments looks at no others.
    let handler: unsafe extern "C-unwind" fn(c_int, *mut c_void, *mut c_void) =
        unsafe { std::mem::transmute(handler) };
    // SAFETY: what the kernel gave.
    unsafe { handler(signal, info, context) };
}

/// Whether calls go on after that signal, which is put off. One whose handler is for once is installed again, for that one.
fn goes_on(signal: c_int) -> bool {
    let Some(mut action) = installed(signal) else {
        return false;
    };
    if action.sa_flags & libc::SA_RESETHAND != 0 && action.sa_sigaction == SIG_DFL {
        action.sa_sigaction = ours();
        // SAFETY: as it was when the kernel took it away.
        unsafe { real::sigaction(signal, &raw const action, std::ptr::null_mut()) };
    }
    action.sa_flags & libc::SA_RESTART != 0
}

/// POSIX.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C-unwind" fn sigaction(
    signal: c_int,
    new: *const libc::sigaction,
    old: *mut libc::sigaction,
) -> c_int {
    let place = match place(signal) {
        Some(place) if BEGUN.load(Ordering::Relaxed) != 0 => place,
        // SAFETY: the program's own call, here and below.
        _ => return unsafe { real::sigaction(signal, new, old) },
    };
    let before = place.load(Ordering::SeqCst);
    // SAFETY: the program's, or null.
    let mut action = unsafe { new.as_ref() }.copied();
    if let Some(action) = &mut action {
        action.sa_sigaction = stand_in(place, action.sa_sigaction);
    }
    let given = action.as_ref().map_or(std::ptr::null(), std::ptr::from_ref);
    // SAFETY: as above.
    let result = unsafe { real::sigaction(signal, given, old) };
    // SAFETY: the program's room, which the kernel has filled, or null.
    if let Some(old) = unsafe { old.as_mut() }
        && result == 0
        && old.sa_sigaction == ours()
    {
        old.sa_sigaction = before;
    }
    result
}

/// As one of the C library's that install a handler and return what was there.
fn exchange(
    signal: c_int,
    handler: sighandler_t,
    real: impl FnOnce(sighandler_t) -> sighandler_t,
) -> sighandler_t {
    let place = match place(signal) {
        Some(place) if BEGUN.load(Ordering::Relaxed) != 0 => place,
        _ => return real(handler),
    };
    let before = place.load(Ordering::SeqCst);
    match real(stand_in(place, handler)) {
        there if there == ours() => before,
        there => there,
    }
}

macro_rules! installers {
    ($($(#[$attribute:meta])* fn $name:ident;)*) => {$(
        $(#[$attribute])*
        #[cfg_attr(not(test), unsafe(no_mangle))]
        pub unsafe extern "C-unwind" fn $name(signal: c_int, handler: sighandler_t) -> sighandler_t {
            // SAFETY: the program's own call.
            exchange(signal, handler, |handler| unsafe { real::$name(signal, handler) })
        }
    )*};
}

installers! {
    /// C.
    fn signal;
    /// BSD.
    fn bsd_signal;
    /// SVID.
    fn ssignal;
    /// System V.
    fn sysv_signal;
    /// What glibc's headers call where a program asks for System V's.
    fn __sysv_signal;
    /// System V.
    fn sigset;
}

/// What is to be installed in the place of a handler of the program's.
fn stand_in(place: &AtomicUsize, handler: sighandler_t) -> sighandler_t {
    if !is_function(handler) {
        return handler;
    }
    place.store(handler, Ordering::SeqCst);
    ours()
}

fn is_function(handler: sighandler_t) -> bool {
    !matches!(handler, SIG_DFL | SIG_IGN | SIG_ERR | SIG_HOLD)
}

fn ours() -> sighandler_t {
    handle as *const () as sighandler_t
}

fn installed(signal: c_int) -> Option<libc::sigaction> {
    // SAFETY: plain data, for which zeros are valid.
    let mut action: libc::sigaction = unsafe { std::mem::zeroed() };
    // SAFETY: asks what is installed.
    let known = unsafe { real::sigaction(signal, std::ptr::null(), &raw mut action) } == 0;
    known.then_some(action)
}

/// Where the program's handler is kept; `None` for a signal that has none, or is not put off: that of a fault.
fn place(signal: c_int) -> Option<&'static AtomicUsize> {
    let is_fault = matches!(
        signal,
        libc::SIGBUS | libc::SIGFPE | libc::SIGILL | libc::SIGSEGV | libc::SIGSYS | libc::SIGTRAP
    );
    let place = usize::try_from(signal).ok().filter(|_| !is_fault)?;
    HANDLERS.get(place)
}

static BEGUN: AtomicU32 = AtomicU32::new(0);
/// The program's, by signal.
static HANDLERS: [AtomicUsize; SIGNALS_MAX as usize + 1] =
    [const { AtomicUsize::new(0) }; SIGNALS_MAX as usize + 1];
const SIGNALS_MAX: c_int = 64;
/// `sigset` has it for a signal that is to be blocked.
const SIG_HOLD: sighandler_t = 2;
