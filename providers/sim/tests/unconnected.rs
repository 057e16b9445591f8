//! Waiting on a VI that nothing can happen to.

use std::time::Duration;

use sim::{Fabric, FabricConfig};
use via::{Descriptor, Error, Nic, ViConfig};

#[test]
fn a_wait_without_a_connection_ends_in_virtual_time() {
    let fabric = Fabric::new(FabricConfig::default());
    let nic = Nic::open(&fabric.host()).expect("opens");
    let tag = nic.create_ptag().expect("a tag");
    let vi = nic.create_vi(&ViConfig::new(&tag)).expect("a VI");
    vi.post_recv(&Descriptor::recv(), 1).expect("posts");
    let (patience, before) = (Duration::from_millis(10), fabric.elapsed());
    assert_eq!(vi.recv_wait(Some(patience)), Err(Error::Timeout));
    assert!(fabric.elapsed() - before >= patience);
}
