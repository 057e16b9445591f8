//! Many VIs on one completion queue, through the whole NIC.

use std::thread;
use std::time::Duration;

use via::{Cq, Descriptor, Nic, Ptag, Reliability, Vi, ViConfig};

/// A NIC of which one completion queue has more VIs than are looked at for ever, and the other ends of their connections.
struct Crowd {
    far: Vec<Vi>,
    near: Vec<Vi>,
    cq: Cq,
    _tags: [Ptag; 2],
    _nics: [Nic; 2],
}

impl Crowd {
    fn new() -> Self {
        let nics = [(); 2].map(|()| Nic::open(&shm::DRIVER).expect("opens"));
        let tags = nics.each_ref().map(|nic| nic.create_ptag().expect("a tag"));
        let cq = nics[0].create_cq(64).expect("a queue");
        let level = Reliability::ReliableDelivery;
        let plan = ViConfig::new(&tags[0]).reliability(level);
        let plan = plan.send_cq(&cq).recv_cq(&cq);
        let vi = |plan: &ViConfig<'_>, nic: &Nic| nic.create_vi(plan).expect("a VI");
        let near: Vec<_> = (0..VIS).map(|_| vi(&plan, &nics[0])).collect();
        let plan = ViConfig::new(&tags[1]).reliability(level);
        let far: Vec<_> = (0..VIS).map(|_| vi(&plan, &nics[1])).collect();
        for (near, far) in near.iter().zip(&far) {
            let export = near.export().expect("exports");
            far.import(&export.blob, export.fds).expect("imports");
        }
        Self {
            far,
            near,
            cq,
            _tags: tags,
            _nics: nics,
        }
    }

    /// Looks until all VIs are left to their bells.
    fn cool(&self) {
        for _ in 0..LOOKS {
            assert_eq!(self.cq.done(), Ok(None));
        }
    }

    /// Whether a message that has been sent to `near` is found by a few looks.
    fn tells_soon(&self, which: usize) -> bool {
        let (near, far) = (&self.near[which], &self.far[which]);
        near.post_recv(&Descriptor::recv(), 1).expect("posts");
        // tidy: sleep because the agent looks once as soon as an owner is back
        thread::sleep(TICK / 4);
        far.post_send(&Descriptor::send(), 2).expect("posts");
        let found = (0..LOOKS_MAX).any(|_| self.cq.done() != Ok(None));
        if found {
            near.recv_done().expect("told").completion().expect("came");
            far.send_done().expect("told").completion().expect("sent");
        }
        found
    }
}

/// It was left to the agent, which looks every 2 ms.
#[test]
fn a_post_brings_back_a_vi_that_was_left_to_its_bell() {
    let crowd = Crowd::new();
    for which in (0..VIS).cycle().take(ROUNDS) {
        crowd.cool();
        assert!(crowd.tells_soon(which), "{which}");
    }
}

/// More than a completion queue always looks at.
const VIS: usize = 6;
/// More than there are fruitless ones before a VI cools.
const LOOKS: u32 = 10_000;
const ROUNDS: usize = 15;
/// More than the one that it takes, and many fewer than there are between two looks of an agent.
const LOOKS_MAX: usize = 100;
/// How often an agent looks whether owners have left.
const TICK: Duration = Duration::from_millis(2);
