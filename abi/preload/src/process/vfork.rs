//! vfork: a child that runs in its parent's memory, until it becomes another program.

use sys::sync::mapped::AtomicU64;

use super::before_guest;
use crate::outcome::keeping_errno;
use crate::real;

/// What is to be done before, in the parent; then the C library's function, which is to be jumped to.
unsafe extern "C-unwind" fn before() -> usize {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    keeping_errno(before_guest);
    keeping_errno(|| real::lookup(&NEXT, c"vfork")) as usize
}

macro_rules! jumps {
    ($($name:ident)*) => {$(
        /// BSD. It returns twice, and first in the child, which goes on with our frame's place: so there is none.
        #[cfg(all(target_arch = "x86_64", not(test)))]
        #[unsafe(no_mangle)]
        #[unsafe(naked)]
        pub unsafe extern "C-unwind" fn $name() -> libc::pid_t {
            std::arch::naked_asm!(
                "sub rsp, 8",
                "call {before}",
                "add rsp, 8",
                "jmp rax",
                before = sym before,
            )
        }
    )*};
}

jumps! { vfork __vfork }
