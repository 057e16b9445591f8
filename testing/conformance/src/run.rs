//! Runs one statement on one provider.

use std::sync::mpsc::{RecvTimeoutError, channel};
use std::sync::{PoisonError, RwLock};
use std::thread;
use std::time::Duration;

use crate::lab::Lab;
use crate::statements::Statement;

/// Runs the statement `number` on a provider, or prints why it cannot be tested there.
///
/// # Panics
/// When the statement does not hold, or its test hangs.
pub fn run(number: u16, lab: impl Lab + 'static) {
    let statement = &Statement::ALL[usize::from(number) - 1];
    println!("{statement:?}");
    let Some(body) = statement.body else {
        panic!("statement {number} is not in the suite");
    };
    if let Some(reason) = lab.excused(number) {
        println!("not tested here: {reason}");
        return;
    }
    let _shared;
    let _alone;
    if ALONE.contains(&number) {
        _alone = HOUSE.write().unwrap_or_else(PoisonError::into_inner);
    } else {
        _shared = HOUSE.read().unwrap_or_else(PoisonError::into_inner);
    }
    let part = lab.take_part();
    watch(move || {
        let _part = part;
        body(&lab);
    });
}

/// Runs `body` on a thread of its own, so that one that hangs is a failure of one test.
///
/// # Panics
/// When `body` does, or takes longer than a test may.
pub fn watch(body: impl FnOnce() + Send + 'static) {
    let (done, finished) = channel::<()>();
    let thread = thread::spawn(move || {
        let _done = done;
        body();
    });
    let limit = if is_long() { LONG_LIMIT } else { LIMIT };
    match finished.recv_timeout(limit) {
        Err(RecvTimeoutError::Timeout) => panic!("no end after {limit:?}"),
        Ok(()) | Err(RecvTimeoutError::Disconnected) => {
            if let Err(panic) = thread.join() {
                std::panic::resume_unwind(panic);
            }
        }
    }
}

/// Whether tests shall take minutes rather than seconds (`SOVIA_LONG=1`).
#[must_use]
pub fn is_long() -> bool {
    std::env::var_os("SOVIA_LONG").is_some_and(|value| value == "1")
}

/// Statements about what the whole process holds: nothing else runs beside them.
const ALONE: [u16; 4] = [20, 34, 53, 207];
static HOUSE: RwLock<()> = RwLock::new(());
/// Below the limits of nextest, which knows no statement.
const LIMIT: Duration = Duration::from_secs(150);
const LONG_LIMIT: Duration = Duration::from_secs(1700);
