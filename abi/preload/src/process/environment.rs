//! The environment of a program that would not start with this library in it.

use std::ffi::{CStr, c_char};

use super::image::{Image, is_this_library};

type Strings = *const *const c_char;

/// Calls `start` with the environment for a program that will be `image`: that of a program which refuses this library does not ask for it. What
/// else it asks for stays.
///
/// On the stack, for the child of `vfork` must not allocate. A program that has more variables than there is room for gets what it was given.
///
/// # Safety
/// `environment` is a null-terminated array of strings, or null.
pub(super) unsafe fn suited<R>(
    image: Image,
    environment: Strings,
    start: impl FnOnce(Strings) -> R,
) -> R {
    if image != Image::Refuses || environment.is_null() {
        return start(environment);
    }
    // SAFETY: by the contract.
    unsafe { without_us(environment, start) }
}

#[cold]
#[inline(never)]
unsafe fn without_us<R>(environment: Strings, start: impl FnOnce(Strings) -> R) -> R {
    let mut kept = [std::ptr::null(); VARIABLES_MAX];
    let mut list = [0u8; LIST_MAX];
    let mut count = 0;
    for n in 0.. {
        // SAFETY: by the contract the array goes on to a null pointer, where this ends.
        let variable = unsafe { *environment.add(n) };
        if variable.is_null() {
            break;
        }
        // SAFETY: by the contract.
        let text = unsafe { CStr::from_ptr(variable) }.to_bytes();
        let variable = match text.strip_prefix(PRELOAD) {
            None => variable,
            Some(asked) => match others(asked, &mut list) {
                None => return start(environment),
                Some(0) => continue,
                Some(_) => list.as_ptr().cast(),
            },
        };
        // The last place stays null.
        if count + 1 >= VARIABLES_MAX {
            return start(environment);
        }
        if let Some(place) = kept.get_mut(count) {
            *place = variable;
        }
        count += 1;
    }
    start(kept.as_ptr())
}

/// Writes the variable with all that is `asked` for but this library to `list`, and says how many there are; `None` if there is no room.
fn others(asked: &[u8], list: &mut [u8; LIST_MAX]) -> Option<usize> {
    list.fill(0);
    let mut len = 0;
    let mut put = |bytes: &[u8]| {
        // A zero comes last.
        let room = list
            .get_mut(len..)
            .filter(|room| room.len() > bytes.len())?;
        room.get_mut(..bytes.len())?.copy_from_slice(bytes);
        len += bytes.len();
        Some(())
    };
    put(PRELOAD)?;
    let mut count = 0;
    let entries = asked.split(|byte| matches!(byte, b':' | b' '));
    for entry in entries.filter(|entry| !entry.is_empty() && !is_this_library(entry)) {
        if count > 0 {
            put(b":")?;
        }
        put(entry)?;
        count += 1;
    }
    Some(count)
}

const PRELOAD: &[u8] = b"LD_PRELOAD=";
const VARIABLES_MAX: usize = 4096;
const LIST_MAX: usize = 4096;
