//! N: errors that no descriptor can hold.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex};

use via::provider::ViOps;
use via::{
    AsyncError, Descriptor, DescriptorAt, Done, ErrorCode, MemHandle, Nic, Queue, Reliability,
    Resource, ViId, ViState,
};

use crate::kit::{Log, Must, Pair, Site, await_state, connect, each_level, until};
use crate::lab::{Host, Lab};

pub(crate) fn s188_without_a_handler(lab: &dyn Lab) {
    let nic = Nic::open(lab.driver(Host::A)).must();
    let tag = nic.create_ptag().must();
    let vi = nic.create_vi(&via::ViConfig::new(&tag)).must();
    (0..3).for_each(|_| raise(&**vi.ops()));
    vi.post_recv(&Descriptor::recv(), 1).must();
    vi.disconnect().must();
    assert!(matches!(vi.recv_done(), Ok(Done::Completed(_))));
}

pub(crate) fn s189_error_is_filled_in(lab: &dyn Lab) {
    let site = Site::open(lab, Host::A);
    let vi = site.vi(Reliability::Unreliable);
    raise(&**vi.ops());
    let error = site.errors.wait_for(lab, ErrorCode::PostDesc, vi.id());
    assert_eq!((error.descriptor, error.cq), (Some(MISALIGNED), None));
    assert_eq!(error.code.resource(), Resource::Descriptor);

    each_level(lab, |level| {
        let pair = Pair::new(lab, level);
        pair.va.disconnect().must();
        let error = pair
            .b
            .errors
            .wait_for(lab, ErrorCode::ConnLost, pair.vb.id());
        assert_eq!(error, AsyncError::of_vi(ErrorCode::ConnLost, pair.vb.id()));
        assert_eq!(error.code.resource(), Resource::Vi);
    });
}

pub(crate) fn s190_default_handler_comes_back(lab: &dyn Lab) {
    let site = Site::open(lab, Host::A);
    let vi = site.vi(Reliability::Unreliable);
    site.ops().set_error_handler(None).must();
    raise(&**vi.ops());
    let later = Log::default();
    until(lab, "another handler to be called", || {
        let log = later.clone();
        site.nic.on_error(move |error| log.note(*error)).must();
        raise(&**vi.ops());
        later.len() > 0
    });
    assert_eq!(site.errors.all(), [], "the handler that was removed");
    // What it owned goes with it.
    let kept = site.vi(Reliability::Unreliable);
    let ops = Arc::clone(kept.ops());
    let handler = move |error: &AsyncError| assert_ne!(error.vi, Some(kept.id()));
    site.nic.on_error(handler).must();
    site.ops().set_error_handler(None).must();
    until(lab, "the handler to be dropped", || {
        ops.state() == Err(via::Error::InvalidParameter)
    });
}

pub(crate) fn s191_connection_lost_means_error(lab: &dyn Lab) {
    each_level(lab, |level| {
        let (a, b) = Site::two(lab);
        let (va, vb) = (a.vi(level), b.vi(level));
        let states = Log::default();
        let (log, ops) = (states.clone(), Arc::clone(vb.ops()));
        b.nic
            .on_error(move |error| log.note((error.code, error.vi, ops.state())))
            .must();
        connect((&a, &va), (&b, &vb));
        va.disconnect().must();
        let expected = (ErrorCode::ConnLost, Some(vb.id()), Ok(ViState::Error));
        assert_eq!(states.first(lab), expected);
        b.ops().set_error_handler(None).must();
    });
}

pub(crate) fn s192_handler_may_clean_up(lab: &dyn Lab) {
    each_level(lab, |level| {
        let (a, b) = Site::two(lab);
        let (va, vb) = (a.vi(level), b.vi(level));
        let cleaned = Log::default();
        let (log, ops) = (cleaned.clone(), Arc::clone(vb.ops()));
        b.nic.on_error(move |_| log.note(clean_up(&*ops))).must();
        vb.post_recv(&Descriptor::recv(), 0).must();
        connect((&a, &va), (&b, &vb));
        va.disconnect().must();
        cleaned.first(lab).must();
        assert_eq!(vb.state(), Err(via::Error::InvalidParameter));
        b.ops().set_error_handler(None).must();
    });
}

fn clean_up(vi: &dyn ViOps) -> Result<(), via::Error> {
    vi.state()?;
    vi.attributes()?;
    vi.disconnect()?;
    while let Done::Completed(_) = vi.done(Queue::Recv)? {}
    vi.destroy()
}

/// The handler of one NIC does not return until that of the other has been called.
pub(crate) fn s193_handlers_are_independent(lab: &dyn Lab) {
    let (first, second) = (Site::open(lab, Host::A), Site::open(lab, Host::A));
    let (v1, v2) = (
        first.vi(Reliability::Unreliable),
        second.vi(Reliability::Unreliable),
    );
    let (release, held) = channel::<()>();
    let (entered, outcomes) = (Arc::new(AtomicBool::new(false)), Log::default());
    let (entry, log, held) = (Arc::clone(&entered), outcomes.clone(), Mutex::new(held));
    first
        .nic
        .on_error(move |error| {
            entry.store(true, Ordering::Release);
            let held = held.lock().must();
            log.note((error.vi, held.recv_timeout(crate::kit::SOON.must())));
        })
        .must();
    raise(&**v1.ops());
    until(lab, "the first handler", || entered.load(Ordering::Acquire));
    raise(&**v2.ops());
    let error = second.errors.wait_for(lab, ErrorCode::PostDesc, v2.id());
    assert_eq!(error.descriptor, Some(MISALIGNED));
    release.send(()).must();
    assert_eq!(outcomes.first(lab), (Some(v1.id()), Ok(())));
    first.ops().set_error_handler(None).must();
    assert_eq!(second.errors.all().len(), 1);
}

pub(crate) fn s194_nothing_after_the_disconnect(lab: &dyn Lab) {
    each_level(lab, |level| {
        let (a, b) = Site::two(lab);
        let late = Log::default();
        let list: Arc<Mutex<Vec<ViId>>> = Arc::default();
        let (log, handled) = (late.clone(), Arc::clone(&list));
        b.nic
            .on_error(move |error| {
                if error
                    .vi
                    .is_some_and(|vi| handled.lock().must().contains(&vi))
                {
                    log.note(*error);
                }
            })
            .must();
        for round in 0..200 {
            let (va, vb) = (a.vi(level), b.vi(level));
            connect((&a, &va), (&b, &vb));
            va.disconnect().must();
            if round % 2 == 0 {
                await_state(lab, &vb, ViState::Error);
            }
            vb.disconnect().must();
            list.lock().must().push(vb.id());
        }
        b.ops().set_error_handler(None).must();
        assert_eq!(late.all(), []);
        for destroys in [false, true] {
            no_early_error_outlives_it(lab, level, destroys);
        }
    });
}

/// The first handler hears what came before it, but for what ended with a disconnect or a VI.
fn no_early_error_outlives_it(lab: &dyn Lab, level: Reliability, destroys: bool) {
    let a = Site::open(lab, Host::A);
    let nic = Nic::open(lab.driver(Host::B)).must();
    let b = Site {
        lab,
        tag: nic.create_ptag().must(),
        nic,
        errors: Log::default(),
    };
    let (va, vb, other) = (a.vi(level), b.vi(level), b.vi(level));
    connect((&a, &va), (&b, &vb));
    let flushed = Log::default();
    let log = flushed.clone();
    vb.post_recv(&Descriptor::recv(), 1).must();
    let handler = move |done| log.note(done);
    vb.ops().notify(Queue::Recv, Box::new(handler)).must();
    raise(&**other.ops());
    va.disconnect().must();
    // Called after the loss has been told to nobody.
    flushed.first(lab);
    vb.disconnect().must();
    if destroys {
        vb.ops().destroy().must();
    } else {
        connect((&a, &va), (&b, &vb));
    }
    let (told, last) = (Log::default(), b.vi(level));
    let log = told.clone();
    b.nic.on_error(move |error| log.note(*error)).must();
    raise(&**last.ops());
    told.wait_for(lab, ErrorCode::PostDesc, last.id());
    let expected = [other.id(), last.id()].map(Some);
    assert_eq!(
        told.all().iter().map(|error| error.vi).collect::<Vec<_>>(),
        expected
    );
    b.ops().set_error_handler(None).must();
}

/// Provokes an asynchronous error of an idle VI.
fn raise(vi: &dyn ViOps) {
    let at = DescriptorAt {
        addr: MISALIGNED,
        handle: MemHandle(0),
    };
    vi.post_at(Queue::Recv, at).must();
}

const MISALIGNED: u64 = 0x1001;
