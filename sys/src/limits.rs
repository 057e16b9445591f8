//! What the process may have.

use std::ptr;

use crate::system_call::call;

/// From which number on this process can be given no descriptor; `None` if that is not known.
pub fn descriptors() -> Option<u64> {
    soft(libc::RLIMIT_NOFILE)
}

/// The soft limit on a resource (`RLIMIT_NOFILE`, …); `None` if there is none, or the kernel does not say: a program may have forbidden itself to ask, of
/// which rustix's `getrlimit` would panic.
pub(crate) fn soft(resource: libc::__rlimit_resource_t) -> Option<u64> {
    let mut limit = libc::rlimit64 {
        rlim_cur: libc::RLIM64_INFINITY,
        rlim_max: libc::RLIM64_INFINITY,
    };
    let place = ptr::from_mut(&mut limit).expose_provenance();
    // SAFETY: the kernel writes to `limit`, and nowhere else.
    let told = unsafe { call(libc::SYS_prlimit64, [0, resource as usize, 0, place, 0, 0]) };
    (told == 0 && limit.rlim_cur != libc::RLIM64_INFINITY).then_some(limit.rlim_cur)
}

#[cfg(all(test, not(loom)))]
mod tests {
    use rustix::process::{Resource, getrlimit};

    use super::*;

    #[test]
    fn it_is_what_the_kernel_says() {
        for (number, resource) in [
            (libc::RLIMIT_NOFILE, Resource::Nofile),
            (libc::RLIMIT_FSIZE, Resource::Fsize),
            (libc::RLIMIT_STACK, Resource::Stack),
        ] {
            assert_eq!(soft(number), getrlimit(resource).current);
        }
        assert_eq!(soft(1 << 20), None, "there is no such resource");
    }
}
