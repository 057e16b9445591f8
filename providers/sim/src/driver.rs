//! The device that a C program opens by name.

use std::sync::{Arc, Mutex, PoisonError};

use via::Error;
use via::provider::{Driver, NicOps, OpenOptions};
use via::window::Windows;

use crate::config::{FabricConfig, Time};
use crate::fabric::{Fabric, Host};
use crate::window::SimWindows;

/// The one host of a fabric that belongs to this process: quiet, and in [free](Time::Free) time.
///
/// A forked child has one of its own.
pub static DRIVER: ProcessDriver = ProcessDriver {
    host: Mutex::new(None),
};

/// See [`DRIVER`].
pub struct ProcessDriver {
    /// With the fork generation that it was made in.
    host: Mutex<Option<(u32, Host)>>,
}

impl Driver for ProcessDriver {
    fn name(&self) -> &'static str {
        crate::NAME
    }

    fn open(&self, options: OpenOptions) -> Result<Arc<dyn NicOps>, Error> {
        sys::fork::watch().map_err(|_| Error::Resource)?;
        let generation = sys::fork::generation();
        let host = {
            let mut slot = self.host.lock().unwrap_or_else(PoisonError::into_inner);
            match &*slot {
                Some((made_in, host)) if *made_in == generation => host.clone(),
                _ => {
                    let host = Fabric::new(FabricConfig {
                        time: Time::Free,
                        trace_max: 0,
                        ..FabricConfig::default()
                    })
                    .host();
                    let before = slot.replace((generation, host.clone()));
                    // The parent's may be locked by a thread that is not here.
                    std::mem::forget(before);
                    host
                }
            }
        };
        host.open(options)
    }

    fn windows(&self) -> Option<&'static dyn Windows> {
        static WINDOWS: SimWindows = SimWindows::new();
        Some(&WINDOWS)
    }
}
