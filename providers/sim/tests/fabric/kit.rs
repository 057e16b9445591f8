//! Open NICs, connected pairs and buffers.

use std::fmt::Debug;
use std::time::Duration;

use sim::{Fabric, FabricConfig, Host, Noise, Time};
use via::provider::Driver;
use via::soft::{Device, SoftNic};
use via::{
    Access, Completion, Descriptor, Done, Memory, Nic, Ptag, Region, Reliability, Vi, ViConfig,
};

pub(crate) const SOON: Option<Duration> = Some(Duration::from_secs(10));

pub(crate) fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

pub(crate) fn us(us: u64) -> Duration {
    Duration::from_micros(us)
}

/// What a test cannot do without.
pub(crate) trait Must<T> {
    fn must(self) -> T;
}

impl<T, E: Debug> Must<T> for Result<T, E> {
    #[track_caller]
    fn must(self) -> T {
        self.unwrap_or_else(|error| panic!("{error:?}"))
    }
}

impl<T> Must<T> for Option<T> {
    #[track_caller]
    fn must(self) -> T {
        self.unwrap_or_else(|| panic!("nothing there"))
    }
}

/// A NIC with a tag.
pub(crate) struct Site {
    pub(crate) tag: Ptag,
    pub(crate) nic: Nic,
}

impl Site {
    pub(crate) fn new(driver: &dyn Driver) -> Self {
        Self::of(Nic::open(driver).must())
    }

    pub(crate) fn with(device: impl Device) -> Self {
        Self::of(Nic::open(&Once(std::sync::Mutex::new(Some(device)))).must())
    }

    fn of(nic: Nic) -> Self {
        // What breaks here breaks on purpose.
        nic.on_error(|_| ()).must();
        let tag = nic.create_ptag().must();
        Self { tag, nic }
    }

    pub(crate) fn vi(&self, level: Reliability) -> Vi {
        let config = ViConfig::new(&self.tag)
            .reliability(level)
            .accept_rdma_write();
        let config = if level.is_reliable() {
            config.accept_rdma_read()
        } else {
            config
        };
        self.nic.create_vi(&config).must()
    }

    pub(crate) fn region(&self, len: usize) -> Region {
        let memory = Memory::private(len).must();
        let access = Access::ReadWrite;
        self.nic.register(memory, &self.tag, access).must()
    }
}

/// Opens a NIC over a device that exists once.
struct Once<D>(std::sync::Mutex<Option<D>>);

impl<D: Device> Driver for Once<D> {
    fn name(&self) -> &'static str {
        "once"
    }

    fn open(
        &self,
        options: via::provider::OpenOptions,
    ) -> Result<std::sync::Arc<dyn via::provider::NicOps>, via::Error> {
        let device = self.0.lock().must().take();
        SoftNic::open(device.ok_or(via::Error::Resource)?, options)
    }
}

/// Two connected VIs on two hosts. Fields drop in order.
pub(crate) struct Pair {
    pub(crate) va: Vi,
    pub(crate) vb: Vi,
    pub(crate) a: Site,
    pub(crate) b: Site,
    pub(crate) hosts: [Host; 2],
    pub(crate) fabric: Fabric,
}

impl Pair {
    pub(crate) fn new(config: FabricConfig, level: Reliability) -> Self {
        let fabric = Fabric::new(config);
        let hosts = [fabric.host(), fabric.host()];
        let [a, b] = hosts.each_ref().map(|host| Site::new(host));
        let (va, vb) = (a.vi(level), b.vi(level));
        vb.import(&va.export().must().blob, vec![]).must();
        Self {
            va,
            vb,
            a,
            b,
            hosts,
            fabric,
        }
    }
}

pub(crate) fn noisy(seed: u64, ppm: u32) -> FabricConfig {
    FabricConfig {
        seed,
        jitter: us(3),
        noise: Noise::of_each_kind(ppm),
        ..FabricConfig::default()
    }
}

pub(crate) fn free() -> FabricConfig {
    FabricConfig {
        time: Time::Free,
        ..FabricConfig::default()
    }
}

pub(crate) fn pattern(n: u32, len: usize) -> Vec<u8> {
    (0..len).map(|at| (at as u32 * 7 + n * 13) as u8).collect()
}

pub(crate) fn bytes(region: &Region, at: usize, len: usize) -> Vec<u8> {
    let mut bytes = vec![0; len];
    region.memory().read(at, &mut bytes).must();
    bytes
}

pub(crate) fn post_send(vi: &Vi, region: &Region, range: std::ops::Range<u32>, immediate: u32) {
    let descriptor = Descriptor::send()
        .segment(region, range)
        .immediate(immediate);
    vi.post_send(&descriptor, immediate.into()).must();
}

pub(crate) fn post_recv(vi: &Vi, region: &Region, range: std::ops::Range<u32>, token: u64) {
    let descriptor = Descriptor::recv().segment(region, range);
    vi.post_recv(&descriptor, token).must();
}

pub(crate) fn received(vi: &Vi) -> Completion {
    vi.recv_wait(SOON).must().ok().must()
}

pub(crate) fn sent(vi: &Vi) -> Completion {
    vi.send_wait(SOON).must().ok().must()
}

/// Everything that is complete.
pub(crate) fn drain(mut done: impl FnMut() -> Result<Done, via::Error>) -> Vec<Completion> {
    std::iter::from_fn(|| done().must().completion()).collect()
}
