//! Asynchronous errors: `VipErrorCallback`.

use std::sync::{Arc, PoisonError};

use via::AsyncError;
use via::ErrorCode;
use via::provider::ErrorHandler;

use crate::abi_types::{VipErrorDescriptor, VipReturn};
use crate::caller::{Callback, Context, ErrorCallback};
use crate::guard::guard;
use crate::handles::Handle;
use crate::objects::Nic;

/// A caller's function for errors.
pub(crate) type ErrorFunction = Callback<unsafe extern "C" fn(Context, *const VipErrorDescriptor)>;

#[unsafe(no_mangle)]
pub(crate) extern "C" fn VipErrorCallback(
    nic: Handle<Nic>,
    context: Context,
    function: ErrorCallback,
) -> VipReturn {
    guard(nic, || {
        let nic = nic.get()?;
        let function = Callback::new(function, context);
        nic.ops
            .set_error_handler(function.map(|function| handler(&nic, function)))?;
        *nic.error_function
            .lock()
            .unwrap_or_else(PoisonError::into_inner) = function;
        Ok(())
    })
}

/// Calls the caller's function with the descriptor that it is promised.
fn handler(nic: &Arc<Nic>, function: ErrorFunction) -> ErrorHandler {
    // The NIC holds its handler: by a strong reference it would hold itself.
    let nic = Arc::downgrade(nic);
    Arc::new(move |error| {
        if let Some(nic) = nic.upgrade() {
            function.call(&describe(&nic, error));
        }
    })
}

fn describe(nic: &Nic, error: &AsyncError) -> VipErrorDescriptor {
    VipErrorDescriptor {
        nic_handle: nic.handle,
        vi_handle: error.vi.and_then(|vi| nic.vi(vi)).unwrap_or(Handle::NULL),
        cq_handle: error.cq.and_then(|cq| nic.cq(cq)).unwrap_or(Handle::NULL),
        descriptor_ptr: error.descriptor.map_or(0, |address| address as usize),
        op_code: error.op.map_or(0, |op| op as u64),
        resource_code: error.code.resource() as u32,
        error_code: error.code as u32,
    }
}

/// Tells the consumer of `nic`, on a thread of its own because the NIC's may be what failed, that `code` has happened to it.
pub(crate) fn raise(nic: &Nic, code: ErrorCode) {
    let error = AsyncError {
        code,
        vi: None,
        cq: None,
        descriptor: None,
        op: None,
    };
    let function = *nic
        .error_function
        .lock()
        .unwrap_or_else(PoisonError::into_inner);
    let descriptor = describe(nic, &error);
    let told = function.map(|function| {
        std::thread::Builder::new()
            .name("vipl-failure".into())
            .spawn(move || function.call(&descriptor))
    });
    if !matches!(told, Some(Ok(_))) {
        eprintln!("vipl: asynchronous error: {error:?}");
    }
}
