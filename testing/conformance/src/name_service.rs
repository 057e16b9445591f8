//! O: names of hosts.

use via::name_service::NameService;
use via::{Error, NetAddress, Nic};

use crate::kit::{Must, SOON, Site, beside, fresh_name, incoming, refused, request};
use crate::lab::{Host, Lab};

pub(crate) fn s195_own_host(lab: &dyn Lab) {
    let own = Nic::open(lab.driver(Host::A))
        .must()
        .attributes()
        .local_address;
    let names = names(own);
    assert_eq!(names.address(&sys::host::hostname(), 0), Ok(own));
    assert_eq!(names.address("localhost", 0), Ok(own));
    let names = NameService::new("own.domain.test", own);
    for name in ["own.domain.test", "own"] {
        assert_eq!(names.address(name, 0), Ok(own), "{name}");
        refused(names.address(name, 1), Error::NameService);
    }
    assert_eq!(names.name(own), Ok("own.domain.test"));
}

pub(crate) fn s197_unknown_name(lab: &dyn Lab) {
    let own = Nic::open(lab.driver(Host::A))
        .must()
        .attributes()
        .local_address;
    for name in ["no such host", "", ".", "localhos"] {
        refused(names(own).address(name, 0), Error::NameService);
    }
}

pub(crate) fn s199_index_beyond_the_last(lab: &dyn Lab) {
    let own = Nic::open(lab.driver(Host::A))
        .must()
        .attributes()
        .local_address;
    let mut names = names(own);
    names.read("twice 2:0:0:0:0:1\ntwice 2:0:0:0:0:2\n").must();
    assert_eq!(names.address("twice", 1), Ok([2, 0, 0, 0, 0, 2]));
    refused(names.address("twice", 2), Error::NameService);
    refused(names.address("localhost", 1), Error::NameService);
    refused(names.address("localhost", usize::MAX), Error::NameService);
}

pub(crate) fn s200_name_of_an_address(lab: &dyn Lab) {
    let own = Nic::open(lab.driver(Host::A))
        .must()
        .attributes()
        .local_address;
    let names = names(own);
    let name = names.name(own).must();
    assert_eq!(names.address(name, 0), Ok(own));
    refused(names.name(lab.nowhere()).map(drop), Error::NameService);
}

pub(crate) fn s201_address_outlives_the_service(lab: &dyn Lab) {
    let (a, b) = Site::two(lab);
    let service = names(b.nic.attributes().local_address);
    let host = service.address("localhost", 0).must();
    drop(service);
    let to = NetAddress::new(host, fresh_name().as_bytes()).must();
    let level = via::Reliability::Unreliable;
    let (va, vb) = (a.vi(level), b.vi(level));
    let (asked, ()) = beside(
        lab,
        || request(lab, &**va.ops(), &a.fresh_address(), &to, SOON),
        || incoming(b.ops(), &to).accept(&**vb.ops()).must(),
    );
    asked.must();
}

fn names(own: [u8; 6]) -> NameService {
    NameService::new(&sys::host::hostname(), own)
}
