//! L: completion queues.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use via::provider::{CqEntry, ViId};
use via::{Cq, Descriptor, Done, Error, Fault, Queue, Reliability, Vi};

use crate::kit::{
    Must, SHORT, SOON, Site, assert_about, assert_fault, assert_prompt, beside, connect,
    each_level, poll, refused, sent, three_sleepers, timed, until,
};
use crate::lab::{Host, Lab};

pub(crate) fn s165_empty_queue(lab: &dyn Lab) {
    let site = Site::open(lab, Host::A);
    let cq = site.nic.create_cq(8).must();
    assert_eq!(cq.done(), Ok(None));
    let _bound = bound(&site, Reliability::Unreliable, &cq);
    assert_eq!(cq.done(), Ok(None));
}

pub(crate) fn s166_one_entry_a_completion(lab: &dyn Lab) {
    each_level(lab, |level| {
        let cast = Cast::new(lab, level, 64);
        let [v0, v1] = &cast.servers;
        for (vi, queue, times) in [
            (v0, Queue::Recv, 3),
            (v1, Queue::Send, 2),
            (v0, Queue::Send, 1),
        ] {
            for _ in 0..times {
                cast.complete_one(vi, queue);
                let entry = cast.cq.wait(SOON).must();
                assert_eq!(entry, CqEntry { vi: vi.id(), queue });
                poll(lab, vi, queue).ok().must();
            }
        }
        assert_eq!(cast.cq.done(), Ok(None));
    });
}

pub(crate) fn s167_an_entry_is_a_promise(lab: &dyn Lab) {
    each_level(lab, |level| {
        let cast = Cast::new(lab, level, 64);
        for round in 0..200 {
            let vi = &cast.servers[round % 2];
            let queue = if round % 3 == 0 {
                Queue::Send
            } else {
                Queue::Recv
            };
            cast.complete_one(vi, queue);
            let entry = cast.poll();
            assert_eq!(entry, CqEntry { vi: vi.id(), queue });
            let done = vi.ops().done(queue).must();
            assert!(
                matches!(done, Done::Completed(_)),
                "{done:?} behind an entry"
            );
        }
    });
}

pub(crate) fn s168_an_entry_leaves_the_descriptor(lab: &dyn Lab) {
    each_level(lab, |level| {
        let cast = Cast::new(lab, level, 64);
        let vi = &cast.servers[0];
        for queue in [Queue::Recv, Queue::Send] {
            cast.complete_one(vi, queue);
            cast.poll();
            assert_eq!(vi.ops().is_empty(queue), Ok(false));
            assert_eq!(cast.cq.done(), Ok(None));
            vi.ops().done(queue).must().completion().must().ok().must();
            assert_eq!(vi.ops().is_empty(queue), Ok(true));
        }
    });
}

pub(crate) fn s169_wait(lab: &dyn Lab) {
    each_level(lab, |level| {
        let cast = Cast::new(lab, level, 64);
        for timeout in [SHORT, Duration::ZERO] {
            let (took, waited) = timed(lab, || cast.cq.wait(Some(timeout)));
            refused(waited, Error::Timeout);
            assert_about(took, timeout);
        }
        for timeout in [Some(Duration::ZERO), None] {
            flush_one(&cast.idle);
            let (took, waited) = timed(lab, || cast.cq.wait(timeout));
            assert_eq!(waited.must().vi, cast.idle.id());
            assert_prompt(took);
        }
        // And it is woken by what comes.
        let (woken, ()) = beside(
            lab,
            || cast.cq.wait(SOON).must(),
            || cast.complete_one(&cast.servers[1], Queue::Recv),
        );
        assert_eq!(woken.vi, cast.servers[1].id());
    });
}

pub(crate) fn s170_flushed_descriptors_have_entries(lab: &dyn Lab) {
    each_level(lab, |level| {
        let cast = Cast::new(lab, level, 64);
        for (vi, leaver) in cast
            .servers
            .iter()
            .zip([&cast.servers[0], &cast.clients[1]])
        {
            for token in 0..5 {
                vi.post_recv(&Descriptor::recv(), token).must();
            }
            leaver.disconnect().must();
            for token in 0..5 {
                let entry = cast.cq.wait(SOON).must();
                assert_eq!(
                    entry,
                    CqEntry {
                        vi: vi.id(),
                        queue: Queue::Recv
                    }
                );
                let done = vi.recv_done().must().completion().must();
                assert_fault(done, token, Fault::Flushed);
            }
            assert_eq!(cast.cq.done(), Ok(None));
        }
    });
}

pub(crate) fn s171_entries_keep_the_order_of_their_queue(lab: &dyn Lab) {
    each_level(lab, |level| {
        let cast = Cast::new(lab, level, 1024);
        let mut expected: HashMap<(ViId, Queue), u64> = HashMap::new();
        for vi in &cast.servers {
            for token in 0..50 {
                vi.post_recv(&Descriptor::recv(), token).must();
            }
        }
        for token in 0..50 {
            for (vi, client) in cast.servers.iter().zip(&cast.clients) {
                client.post_recv(&Descriptor::recv(), token).must();
                client.post_send(&Descriptor::send(), token).must();
                vi.post_send(&Descriptor::send(), token).must();
            }
        }
        for _ in 0..200 {
            let entry = cast.cq.wait(SOON).must();
            let vi = cast.server(entry.vi);
            let done = vi
                .ops()
                .done(entry.queue)
                .must()
                .completion()
                .must()
                .ok()
                .must();
            let next = expected.entry((entry.vi, entry.queue)).or_default();
            assert_eq!(done.token, *next);
            *next += 1;
        }
        assert_eq!(cast.cq.done(), Ok(None));
    });
}

pub(crate) fn s172_no_entry_is_lost_under_load(lab: &dyn Lab) {
    each_level(lab, |level| {
        let cast = Cast::new(lab, level, 256);
        let rounds: u64 = 5000;
        let window = 64;
        for vi in &cast.servers {
            (0..window).for_each(|token| vi.post_recv(&Descriptor::recv(), token).must());
        }
        let credits = [0, 1].map(|_| AtomicU64::new(window));
        let drive = |which: usize| {
            let vi = &cast.clients[which];
            for number in 0..rounds {
                until(lab, "credit", || {
                    credits[which].load(Ordering::Acquire) > number
                });
                vi.post_send(&Descriptor::send(), number).must();
                sent(vi).ok().must();
            }
        };
        let collect = || {
            let mut counts = [0_u64; 2];
            while counts != [rounds; 2] {
                let entry = cast.cq.wait(SOON).must();
                let which = usize::from(entry.vi == cast.servers[1].id());
                let vi = &cast.servers[which];
                let done = vi.recv_done().must().completion().must().ok().must();
                assert_eq!(done.token, counts[which]);
                counts[which] += 1;
                vi.post_recv(&Descriptor::recv(), done.token + window)
                    .must();
                credits[which].fetch_add(1, Ordering::Release);
            }
            assert_eq!(cast.cq.done(), Ok(None));
        };
        beside(lab, || beside(lab, || drive(0), || drive(1)), collect);
    });
}

pub(crate) fn s173_resize_keeps_entries(lab: &dyn Lab) {
    each_level(lab, |level| {
        let cast = Cast::new(lab, level, 8);
        let vi = &cast.servers[0];
        let mut unread = 0;
        let most = cast.site.nic.attributes().max_cq_entries;
        for size in [64, most, 20, 16] {
            (0..4).for_each(|_| flush_one(&cast.idle));
            unread += 4;
            cast.cq.ops().resize(size).must();
        }
        refused(cast.cq.ops().resize(unread - 1), Error::Resource);
        cast.cq.ops().resize(unread).must();
        for _ in 0..unread {
            let entry = cast.cq.done().must().must();
            assert_eq!(
                entry,
                CqEntry {
                    vi: cast.idle.id(),
                    queue: Queue::Recv
                }
            );
            assert_fault(
                cast.idle.recv_done().must().completion().must(),
                0,
                Fault::Flushed,
            );
        }
        assert_eq!(cast.cq.done(), Ok(None));
        cast.complete_one(vi, Queue::Recv);
        assert_eq!(cast.poll().vi, vi.id());
    });
}

pub(crate) fn s174_resize_has_a_limit(lab: &dyn Lab) {
    let site = Site::open(lab, Host::A);
    let cq = site.nic.create_cq(8).must();
    let most = site.nic.attributes().max_cq_entries;
    cq.ops().resize(most).must();
    refused(cq.ops().resize(most + 1), Error::Resource);
    refused(cq.ops().resize(u32::MAX), Error::Resource);
}

pub(crate) fn s175_bound_queue_stays(lab: &dyn Lab) {
    each_level(lab, |level| {
        let site = Site::open(lab, Host::A);
        let cq = site.nic.create_cq(8).must();
        let vi = bound(&site, level, &cq);
        refused(cq.ops().destroy(), Error::Resource);
        flush_one(&vi);
        refused(cq.ops().destroy(), Error::Resource);
        drop(vi);
        cq.ops().destroy().must();
        refused(cq.done(), Error::InvalidParameter);
        refused(cq.wait(Some(SHORT)), Error::InvalidParameter);
        refused(cq.ops().resize(9), Error::InvalidParameter);
        refused(cq.ops().notify(Box::new(|_| {})), Error::InvalidParameter);
        refused(cq.ops().destroy(), Error::InvalidParameter);
    });
    // It ends the wait of all who sleep on it, as closing the NIC does.
    for closes in [false, true] {
        let site = Site::open(lab, Host::A);
        let cq = site.nic.create_cq(8).must();
        let waits = three_sleepers(
            lab,
            || cq.wait(None),
            || {
                if closes {
                    site.ops().close();
                } else {
                    cq.ops().destroy().must();
                }
            },
        );
        assert_eq!(waits, [Err(Error::InvalidParameter); 3]);
    }
}

pub(crate) fn s176_entries_go_with_their_vi(lab: &dyn Lab) {
    each_level(lab, |level| {
        let site = Site::open(lab, Host::A);
        let cq = site.nic.create_cq(64).must();
        let (dying, staying) = (bound(&site, level, &cq), bound(&site, level, &cq));
        for _ in 0..5 {
            flush_one(&dying);
            flush_one(&staying);
        }
        while dying.recv_done().must() != Done::Empty {}
        dying.ops().destroy().must();
        for _ in 0..5 {
            assert_eq!(cq.done().must().must().vi, staying.id());
        }
        assert_eq!(cq.done(), Ok(None));
    });
}

pub(crate) fn s177_done_before_the_entry(lab: &dyn Lab) {
    each_level(lab, |level| {
        let cast = Cast::new(lab, level, 64);
        let vi = &cast.servers[0];
        for rest in [0, 1] {
            cast.complete_one(vi, Queue::Recv);
            poll(lab, vi, Queue::Recv).ok().must();
            for token in 0..rest {
                vi.post_recv(&Descriptor::recv(), token).must();
            }
            let expected = if rest == 0 {
                Done::Empty
            } else {
                Done::NotDone
            };
            match cast.cq.done().must() {
                Some(stale) => assert_eq!(
                    stale,
                    CqEntry {
                        vi: vi.id(),
                        queue: Queue::Recv
                    }
                ),
                None => println!("the entry went with the descriptor"),
            }
            assert_eq!(vi.recv_done(), Ok(expected));
        }
        // The receive left over from the last round completes as ever.
        cast.clients[0].post_send(&Descriptor::send(), 0).must();
        assert_eq!(cast.poll().vi, vi.id());
        vi.recv_done().must().completion().must().ok().must();
    });
}

pub(crate) fn s178_queues_run_out(lab: &dyn Lab) {
    let site = Site::open(lab, Host::A);
    let attributes = site.nic.attributes();
    let most = attributes.max_cq_entries;
    refused(site.nic.create_cq(most + 1), Error::Resource);
    refused(site.nic.create_cq(u32::MAX), Error::Resource);
    refused(site.nic.create_cq(0), Error::InvalidParameter);
    site.nic.create_cq(most).must();

    let make = || site.nic.create_cq(1);
    let mut held: Vec<Cq> = (0..attributes.max_cq).map(|_| make().must()).collect();
    refused(make(), Error::Resource);
    held.pop();
    held.push(make().must());
    refused(make(), Error::Resource);
}

pub(crate) fn s179_overrun_loses_nothing(lab: &dyn Lab) {
    each_level(lab, |level| {
        let cast = Cast::new(lab, level, 1);
        let vi = &cast.servers[0];
        for token in 0..100 {
            vi.post_recv(&Descriptor::recv(), token).must();
        }
        for _ in 0..50 {
            cast.clients[0].post_send(&Descriptor::send(), 0).must();
            sent(&cast.clients[0]).ok().must();
        }
        for token in 0..50 {
            assert_eq!(cast.poll().vi, vi.id());
            assert_eq!(
                vi.recv_done().must().completion().must().ok().must().token,
                token
            );
        }
        vi.disconnect().must();
        for token in 50..100 {
            assert_eq!(cast.poll().vi, vi.id());
            assert_fault(
                vi.recv_done().must().completion().must(),
                token,
                Fault::Flushed,
            );
        }
        assert_eq!(cast.cq.done(), Ok(None));
    });
}

/// Two servers on one completion queue, each connected to a client of its own.
struct Cast<'l> {
    servers: [Vi; 2],
    clients: [Vi; 2],
    /// On the same queue, and never connected.
    idle: Vi,
    cq: Cq,
    site: Site<'l>,
    other: Site<'l>,
}

impl<'l> Cast<'l> {
    #[track_caller]
    fn new(lab: &'l dyn Lab, level: Reliability, entries: u32) -> Self {
        let (other, site) = Site::two(lab);
        let cq = site.nic.create_cq(entries).must();
        let servers = [bound(&site, level, &cq), bound(&site, level, &cq)];
        let clients = [other.vi(level), other.vi(level)];
        for (client, server) in clients.iter().zip(&servers) {
            connect((&other, client), (&site, server));
        }
        let idle = bound(&site, level, &cq);
        Self {
            servers,
            clients,
            idle,
            cq,
            site,
            other,
        }
    }

    /// Makes one descriptor of `queue` of the server complete, sooner or later.
    #[track_caller]
    fn complete_one(&self, server: &Vi, queue: Queue) {
        let client = &self.clients[usize::from(server.id() == self.servers[1].id())];
        match queue {
            Queue::Recv => {
                server.post_recv(&Descriptor::recv(), 0).must();
                client.post_send(&Descriptor::send(), 0).must();
            }
            Queue::Send => {
                client.post_recv(&Descriptor::recv(), 0).must();
                server.post_send(&Descriptor::send(), 0).must();
            }
        }
    }

    #[track_caller]
    fn server(&self, id: ViId) -> &Vi {
        self.servers.iter().find(|vi| vi.id() == id).must()
    }

    /// The next entry, by polling.
    #[track_caller]
    fn poll(&self) -> CqEntry {
        let mut entry = None;
        until(self.other.lab, "an entry", || {
            entry = self.cq.done().must();
            entry.is_some()
        });
        entry.must()
    }
}

/// A VI whose two queues report to `cq`.
#[track_caller]
fn bound(site: &Site<'_>, level: Reliability, cq: &Cq) -> Vi {
    let config = site.config(level).send_cq(cq).recv_cq(cq);
    site.nic.create_vi(&config).must()
}

/// Makes one receive of an idle VI complete, here and now.
#[track_caller]
fn flush_one(vi: &Vi) {
    vi.post_recv(&Descriptor::recv(), 0).must();
    vi.disconnect().must();
}
