//! The handler thread of SOVIA_HANDLER.

use std::sync::Arc;

use sys::quiet;

use super::stream::Stream;

/// Takes in all packets of `stream`, and wakes whoever waits for them: two threads on the way of each, which is what the paper measures.
pub(super) fn start(stream: &Arc<Stream>) {
    let handled = Arc::clone(stream);
    let started = quiet::spawn("sovia-handler", None, move || while handled.handle_one() {});
    if started.is_err() {
        stream.abort();
    }
}
