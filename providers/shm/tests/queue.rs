//! Many VIs on one completion queue, through the whole NIC.

use std::thread;
use std::time::{Duration, Instant};

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

    /// How long the queue takes to tell of a message that has been sent to `near`, for which `look` asks.
    fn latency(&self, which: usize, look: impl FnOnce(&Cq)) -> Duration {
        let (near, far) = (&self.near[which], &self.far[which]);
        near.post_recv(&Descriptor::recv(), 1).expect("posts");
        // tidy: sleep because the agent looks once as soon as an owner is back
        thread::sleep(TICK / 4);
        let sent = Instant::now();
        far.post_send(&Descriptor::send(), 2).expect("posts");
        look(&self.cq);
        let took = sent.elapsed();
        near.recv_done().expect("told").completion().expect("came");
        far.send_done().expect("told").completion().expect("sent");
        took
    }
}

#[test]
fn a_post_brings_back_a_vi_that_was_left_to_its_bell() {
    let crowd = Crowd::new();
    let mut took: Vec<_> = (0..ROUNDS)
        .map(|round| {
            crowd.cool();
            let polls = |cq: &Cq| while cq.done() == Ok(None) {};
            crowd.latency(round % VIS, polls)
        })
        .collect();
    assert_prompt(&mut took);
}

#[test]
fn a_post_does_not_silence_the_bell_of_who_sleeps_on_the_queue() {
    let crowd = Crowd::new();
    for cools in [false, true] {
        let mut took: Vec<_> = (0..ROUNDS)
            .map(|round| {
                if cools {
                    crowd.cool();
                }
                thread::scope(|scope| {
                    let sleeper = scope.spawn(|| crowd.cq.wait(SOON).expect("comes"));
                    // tidy: sleep because who sleeps on a queue does not say so
                    thread::sleep(5 * TICK);
                    crowd.latency(round % VIS, |_| drop(sleeper.join()))
                })
            })
            .collect();
        assert_prompt(&mut took);
    }
}

/// Not the tick of an agent: a busy machine may delay most of them, but not all.
fn assert_prompt(took: &mut [Duration]) {
    took.sort();
    println!("{took:?}");
    assert!(took[ROUNDS / 4] < TICK / 4, "{took:?}");
}

/// More than a completion queue always looks at.
const VIS: usize = 6;
/// More than there are fruitless ones before a VI cools.
const LOOKS: u32 = 10_000;
const ROUNDS: usize = 15;
/// How often an agent looks whether owners have left.
const TICK: Duration = Duration::from_millis(2);
const SOON: Option<Duration> = Some(Duration::from_secs(10));
