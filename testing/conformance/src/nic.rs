//! B: opening, closing and asking a NIC.

use std::collections::HashSet;
use std::sync::Arc;

use via::provider::OpenOptions;
use via::{Error, ErrorCode, Fault, Nic, Reliability, ViAttributes, ViState};

use crate::kit::beside;
use crate::kit::{
    Must, SOON, Site, assert_fault, await_state, each_level, incoming, open_compat, received,
    refused, request,
};
use crate::lab::{Host, Lab};

pub(crate) fn s017_opens_by_name(lab: &dyn Lab) {
    for host in [Host::A, Host::B] {
        let driver = lab.driver(host);
        let nic = Nic::open(driver).must();
        assert_eq!(nic.attributes().name, driver.name());
        assert!(!nic.ops().is_closed());
    }
}

pub(crate) fn s018_two_handles_are_independent(lab: &dyn Lab) {
    let first = Nic::open(lab.driver(Host::A)).must();
    let second = Site::open(lab, Host::A);
    assert!(!Arc::ptr_eq(first.ops(), second.nic.ops()));
    first.ops().close();
    assert!(first.ops().is_closed() && !second.nic.ops().is_closed());
    let vi = second.vi(Reliability::Unreliable);
    assert_eq!(vi.state(), Ok(ViState::Idle));
}

pub(crate) fn s020_handles_run_out_and_come_back(lab: &dyn Lab) {
    let driver = lab.driver(Host::A);
    let open = || {
        driver.open(OpenOptions {
            strict: true,
            ..OpenOptions::default()
        })
    };
    let mut handles = Vec::new();
    let limit = loop {
        match open() {
            Ok(nic) => handles.push(nic),
            Err(error) => break error,
        }
        assert!(handles.len() < HANDLES_MAX, "no limit in sight");
    };
    assert_eq!(limit, Error::Resource);
    assert!(handles.len() >= 2, "only {} handles", handles.len());
    handles.pop().must().close();
    let again = open().must();
    refused(open(), Error::Resource);
    again.close();
    handles.iter().for_each(|nic| nic.close());
    handles.clear();
    open().must().close();
}

pub(crate) fn s021_closed_handle_is_refused(lab: &dyn Lab) {
    let nic = lab
        .driver(Host::A)
        .open(OpenOptions {
            strict: true,
            ..OpenOptions::default()
        })
        .must();
    nic.close();
    nic.close();
    assert!(nic.is_closed());
    refused(nic.create_ptag(), Error::InvalidParameter);
    refused(nic.create_cq(1), Error::InvalidParameter);
    refused(
        nic.create_vi(ViAttributes::default(), None, None),
        Error::InvalidParameter,
    );
    refused(nic.set_error_handler(None), Error::InvalidParameter);
}

pub(crate) fn s022_attributes_are_fixed(lab: &dyn Lab) {
    let site = Site::open(lab, Host::A);
    let before = site.nic.attributes().clone();
    let _vi = site.vi(Reliability::Unreliable);
    assert_eq!(&before, site.nic.attributes());
    assert_eq!(&before, open_compat(lab).attributes());
}

pub(crate) fn s023_offers_unreliable_delivery(lab: &dyn Lab) {
    let nic = Nic::open(lab.driver(Host::A)).must();
    assert!(
        nic.attributes()
            .reliability
            .contains(Reliability::Unreliable)
    );
    let reads = nic.attributes().rdma_read;
    assert!(
        !reads.contains(Reliability::Unreliable),
        "RDMA read does not exist at UD"
    );
}

/// The other minima of the reference's section 14 are held here too.
pub(crate) fn s024_transfers_are_large_enough(lab: &dyn Lab) {
    let nic = Nic::open(lab.driver(Host::A)).must();
    let has = nic.attributes();
    assert!(has.max_transfer_size >= 32768);
    assert!(has.max_segments_per_desc >= 252);
    assert!(has.max_discriminator_len >= 16);
    assert!(has.max_vi >= 1024 && has.max_cq >= 1 && has.max_ptags >= 1);
    assert!(has.max_descriptors_per_queue >= 1024 && has.max_cq_entries >= 1024);
    assert!(has.max_register_block_bytes >= u64::from(has.max_transfer_size));
    assert!(has.max_register_bytes >= has.max_register_block_bytes);
}

pub(crate) fn s025_address_belongs_to_the_device(lab: &dyn Lab) {
    let addresses = |host| {
        let open = || {
            Nic::open(lab.driver(host))
                .must()
                .attributes()
                .local_address
        };
        HashSet::from([open(), open()])
    };
    let (a, b) = (addresses(Host::A), addresses(Host::B));
    assert!(a.len() == 1 && b.len() == 1);
    assert_eq!(a != b, lab.has_two_hosts());
    neighbours_are_found(lab);
}

/// By a NIC that says so.
fn neighbours_are_found(lab: &dyn Lab) {
    let (a, b) = Site::two(lab);
    if !a.nic.capabilities().discovers {
        refused(a.nic.discover(1), Error::NotSupported);
        return;
    }
    let [own, other] = [&a, &b].map(|site| site.nic.attributes().local_address);
    assert_eq!(a.nic.discover(0), Ok(vec![own]));
    let found = a.nic.discover(1).must();
    assert_eq!(found.first(), Some(&own));
    assert!(found.contains(&other));
    let all: HashSet<_> = found.iter().collect();
    assert_eq!(all.len(), found.len(), "one is told twice: {found:?}");
    assert!(!found.contains(&lab.nowhere()));
    a.ops().close();
    refused(a.nic.discover(1), Error::InvalidParameter);
}

pub(crate) fn s026_close_disconnects_everything(lab: &dyn Lab) {
    each_level(lab, |level| {
        let nic = lab
            .driver(Host::A)
            .open(OpenOptions {
                strict: true,
                ..OpenOptions::default()
            })
            .must();
        let b = Site::open(lab, Host::B);
        let vb = b.vi(level);
        let attributes = ViAttributes {
            ptag: Some(nic.create_ptag().must()),
            ..vb.ops().attributes().must()
        };
        let va = nic.create_vi(attributes, None, None).must();
        let to = b.fresh_address();
        let (asked, ()) = beside(
            lab,
            || request(lab, &*va, &to, &to, SOON),
            || incoming(b.ops(), &to).accept(&**vb.ops()).must(),
        );
        asked.must();
        vb.post_recv(&via::Descriptor::recv(), 7).must();

        nic.close();
        await_state(lab, &vb, ViState::Error);
        assert_fault(received(&vb), 7, Fault::Flushed);
        b.errors.wait_for(lab, ErrorCode::ConnLost, vb.id());
        refused(va.state(), Error::InvalidParameter);
    });
    a_close_wakes_who_waits_for_a_request(lab);
}

/// The first and the one behind; and the address is free then.
fn a_close_wakes_who_waits_for_a_request(lab: &dyn Lab) {
    let (a, b) = Site::two(lab);
    let va = a.vi(Reliability::Unreliable);
    let (from, to) = (a.fresh_address(), b.fresh_address());
    let waits = || loop {
        match b.nic.connect_wait(&to, None) {
            Ok(asker) => asker.reject().must(),
            Err(error) => return error,
        }
    };
    let (ended, ()) = beside(
        lab,
        || beside(lab, waits, waits),
        || {
            // They have been there then.
            let asked = request(lab, &**va.ops(), &from, &to, SOON);
            refused(asked, Error::Reject);
            b.ops().close();
        },
    );
    assert_eq!(ended, (Error::InvalidParameter, Error::InvalidParameter));
    refused(va.connect(&from, &to, SOON), Error::NoMatch);
}

const HANDLES_MAX: usize = 65536;
