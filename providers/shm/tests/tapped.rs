//! The NIC with a tap on its frames: what a lost or broken frame does above shared memory, which loses none.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use sim::{Act, Direction, Faults, Tapped, Trace};
use via::provider::{Driver, NicOps, OpenOptions};
use via::soft::{Device, SoftNic};
use via::{Descriptor, Error, Fault, Nic, Ptag, Reliability, Vi, ViConfig, ViState};

const SOON: Option<Duration> = Some(Duration::from_secs(10));

/// Opens one device, once.
struct Once<D>(Mutex<Option<D>>);

impl<D: Device> Driver for Once<D> {
    fn name(&self) -> &'static str {
        "tapped"
    }

    fn open(&self, options: OpenOptions) -> Result<Arc<dyn NicOps>, Error> {
        let device = self.0.lock().expect("no panic").take();
        SoftNic::open(device.ok_or(Error::Resource)?, options)
    }
}

struct End {
    vi: Vi,
    _tag: Ptag,
    nic: Nic,
}

fn end(driver: &dyn Driver, level: Reliability) -> End {
    let nic = Nic::open(driver).expect("opens");
    nic.on_error(|_| ()).expect("a handler");
    let tag = nic.create_ptag().expect("a tag");
    let config = ViConfig::new(&tag).reliability(level);
    let vi = nic.create_vi(&config).expect("a VI");
    End { vi, _tag: tag, nic }
}

/// A sender with taps on its device, connected to a receiver without.
fn tapped(level: Reliability) -> (End, End, Trace, Faults) {
    let (trace, faults) = (Trace::new(100), Faults::new());
    let device = shm::device().expect("a device");
    let device = Tapped::new(Tapped::new(device, trace.clone()), faults.clone());
    let a = end(&Once(Mutex::new(Some(device))), level);
    let b = end(&shm::DRIVER, level);
    let told = a.vi.export().expect("its own end");
    b.vi.import(&told.blob, told.fds).expect("connects");
    (a, b, trace, faults)
}

#[test]
fn a_dropped_frame_is_missed_and_a_trace_shows_the_others() {
    let (a, b, trace, faults) = tapped(Reliability::Unreliable);
    faults.plan(Direction::Sent, 1, Act::Drop);
    for n in 0..3 {
        b.vi.post_recv(&Descriptor::recv(), n.into())
            .expect("posts");
        let send = Descriptor::send().immediate(n);
        a.vi.post_send(&send, 0).expect("posts");
        a.vi.send_wait(SOON).expect("in time").ok().expect("sent");
    }
    let next = || b.vi.recv_wait(SOON).expect("in time").immediate;
    assert_eq!([next(), next()], [Some(0), Some(2)]);
    assert_eq!(faults.pending(), 0);
    assert_eq!(
        trace.text().matches("> Send").count(),
        2,
        "{}",
        trace.text()
    );
}

#[test]
fn a_connection_that_is_cut_flushes_what_is_posted() {
    let (a, b, _, faults) = tapped(Reliability::ReliableDelivery);
    faults.plan(Direction::Sent, 0, Act::Disconnect);
    b.vi.post_recv(&Descriptor::recv(), 7).expect("posts");
    a.vi.post_send(&Descriptor::send(), 0).expect("posts");
    let flushed = b.vi.recv_wait(SOON).expect("in time");
    assert_eq!(
        (flushed.token, flushed.status.fault()),
        (7, Some(Fault::Flushed))
    );
    assert_eq!(b.vi.state(), Ok(ViState::Error));
    a.nic.ops().close();
}
