use std::sync::{Condvar, Mutex};
use std::time::Duration;

use super::*;
use crate::abi_types::VipErrorDescriptor;
use crate::caller::{Context, Out, Text};
use crate::errors::VipErrorCallback;
use crate::nic::{VipCloseNic, VipOpenNic};
use crate::objects::{Cq, Nic};

/// Codes of the errors that were raised, and the NIC handles that they named.
static RAISED: Mutex<Vec<(u32, Handle<Nic>)>> = Mutex::new(Vec::new());
static CHANGED: Condvar = Condvar::new();

unsafe extern "C" fn note(_: Context, error: *const VipErrorDescriptor) {
    // SAFETY: it is valid during the call.
    let error = unsafe { *error };
    let mut raised = RAISED.lock().expect("no test panics with it");
    raised.push((error.error_code, error.nic_handle));
    CHANGED.notify_all();
}

fn panicking<T: Object>(subject: Handle<T>) -> VipReturn {
    guard(subject, || -> Result<(), Error> { panic!("on purpose") })
}

fn open() -> Handle<Nic> {
    let mut nic = Handle::NULL;
    let opened = VipOpenNic(Text::of(c"shm"), Out::to(&mut nic));
    assert_eq!(opened, VipReturn::SUCCESS);
    nic
}

#[test]
fn a_panic_fails_the_nic_once() {
    let nic = open();
    let other = open();
    assert_eq!(
        VipErrorCallback(nic, Context::NULL, Some(note)),
        VipReturn::SUCCESS
    );
    let mut cq = Handle::NULL;
    let made = crate::cq::VipCreateCQ(nic, 4, Out::to(&mut cq));
    assert_eq!(made, VipReturn::SUCCESS);

    let resource = VipReturn::from(Error::Resource);
    assert_eq!(panicking(cq), resource);
    assert_eq!(panicking(nic), resource);
    let raised = RAISED.lock().expect("no test panics with it");
    let (raised, _) = CHANGED
        .wait_timeout_while(raised, Duration::from_secs(10), |raised| raised.is_empty())
        .expect("no test panics with it");
    assert_eq!(*raised, [(10, nic)]);
    drop(raised);

    // All that is left is to close it; another handle of the device goes on.
    let (mut vi, mut recv_queue) = (Handle::NULL, false.into());
    let done = crate::cq::VipCQDone(cq, Out::to(&mut vi), Out::to(&mut recv_queue));
    assert_eq!(done, resource);
    assert_eq!(VipErrorCallback(nic, Context::NULL, Some(note)), resource);
    assert_eq!(VipCloseNic(nic), VipReturn::SUCCESS);
    assert_eq!(VipCloseNic(nic), VipReturn::from(Error::InvalidParameter));
    assert_eq!(VipCloseNic(other), VipReturn::SUCCESS);
    assert_eq!(RAISED.lock().expect("no test panics with it").len(), 1);
}

#[test]
fn a_panic_without_an_object() {
    let resource = VipReturn::from(Error::Resource);
    assert_eq!(panicking(Handle::<Nic>::NULL), resource);
    assert_eq!(panicking(Handle::<Cq>::of_bits(77)), resource);
    assert_eq!(caught(|| -> () { panic!("on purpose") }), None);
}
