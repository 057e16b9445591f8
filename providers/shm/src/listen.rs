//! Waiting for connection requests.

use std::collections::{HashMap, VecDeque};
use std::io::ErrorKind;
use std::sync::{Arc, Condvar, LazyLock, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use proto::setup::{MESSAGE_MAX, Message};
use sys::fork::Own;
use sys::net::{Conn, Listener, Received};
use sys::poll::{Interest, Poller};
use sys::time::expired;
use sys::wait::{Limits, Spinner};
use via::{Error, NetAddress};

use crate::connect::ShmIncoming;
use crate::name;

/// Waits for a request to `local`; until the deadline, or until `is_over` and [`look_again`].
///
/// All waiters of the process share one listening socket for as long as one of them waits. The
/// oldest looks after it; when it has got a request the next oldest goes on.
pub(crate) fn wait(
    local: &NetAddress,
    deadline: Option<Instant>,
    is_over: &dyn Fn() -> bool,
) -> Result<ShmIncoming, Error> {
    let mut turn = Turn::take(local)?;
    turn.come(deadline, is_over)?;
    turn.receive(deadline, is_over)
}

/// Has all who wait see whether it is over for them.
pub(crate) fn look_again() {
    let shared = SHARED.get();
    for point in shared.points().values() {
        point.poller.wake();
    }
    shared.moved_up.notify_all();
}

#[derive(Default)]
struct Shared {
    points: Mutex<HashMap<NetAddress, Point>>,
    moved_up: Condvar,
}

/// A child that was forked while somebody waited begins without waiters.
static SHARED: Own<Shared> = Own::new();

/// An address that some threads wait at.
struct Point {
    greeter: Arc<Mutex<Greeter>>,
    /// The greeter's, to wake whoever has it.
    poller: Arc<Poller>,
    waiting: VecDeque<u64>,
    last: u64,
}

/// The listening socket, and who has come but not yet said what it wants.
struct Greeter {
    listener: Listener,
    poller: Arc<Poller>,
    silent: VecDeque<Silent>,
    /// Somebody has come for whom there is no descriptor.
    is_starved: bool,
}

struct Silent {
    conn: Conn,
    until: Instant,
}

/// A waiter's place in the row.
struct Turn {
    shared: &'static Shared,
    address: NetAddress,
    number: u64,
    greeter: Arc<Mutex<Greeter>>,
}

impl Turn {
    fn take(address: &NetAddress) -> Result<Self, Error> {
        let shared = SHARED.get();
        let mut points = shared.points();
        if !points.contains_key(address) {
            let greeter = Greeter::new(address)?;
            let point = Point {
                poller: Arc::clone(&greeter.poller),
                greeter: Arc::new(Mutex::new(greeter)),
                waiting: VecDeque::new(),
                last: 0,
            };
            points.insert(*address, point);
        }
        let point = points.get_mut(address).ok_or(Error::Resource)?;
        point.last += 1;
        point.waiting.push_back(point.last);
        Ok(Self {
            shared,
            address: *address,
            number: point.last,
            greeter: Arc::clone(&point.greeter),
        })
    }

    /// Waits until this is the oldest waiter.
    fn come(&mut self, deadline: Option<Instant>, is_over: &dyn Fn() -> bool) -> Result<(), Error> {
        let mut points = self.shared.points();
        loop {
            let first = points
                .get(&self.address)
                .and_then(|point| point.waiting.front());
            if first == Some(&self.number) {
                return Ok(());
            }
            if is_over() {
                return Err(Error::InvalidState);
            }
            let left = deadline.map_or(Duration::from_secs(3600), |deadline| {
                deadline.saturating_duration_since(Instant::now())
            });
            if left.is_zero() {
                return Err(Error::Timeout);
            }
            points = self
                .shared
                .moved_up
                .wait_timeout(points, left)
                .unwrap_or_else(PoisonError::into_inner)
                .0;
        }
    }

    fn receive(
        &mut self,
        deadline: Option<Instant>,
        is_over: &dyn Fn() -> bool,
    ) -> Result<ShmIncoming, Error> {
        let mut greeter = self.greeter.lock().unwrap_or_else(PoisonError::into_inner);
        let mut spin = SPINNER.begin();
        loop {
            if let Some(incoming) = greeter.next(&self.address)? {
                spin.hit();
                return Ok(incoming);
            }
            if is_over() {
                return Err(Error::InvalidState);
            }
            if expired(deadline) {
                return Err(Error::Timeout);
            }
            if !spin.again() {
                greeter.sleep(deadline)?;
            }
        }
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        let mut points = self.shared.points();
        if let Some(point) = points.get_mut(&self.address) {
            point.waiting.retain(|&number| number != self.number);
            if point.waiting.is_empty() {
                points.remove(&self.address);
            }
        }
        self.shared.moved_up.notify_all();
    }
}

impl Greeter {
    fn new(address: &NetAddress) -> Result<Self, Error> {
        let listener = (0..name::SLOTS)
            .find_map(
                |slot| match Listener::bind(&name::listener(address, slot), BACKLOG) {
                    Err(error) if error.kind() == ErrorKind::AddrInUse => None,
                    bound => Some(bound),
                },
            )
            .and_then(Result::ok)
            .ok_or(Error::Resource)?;
        let poller = Arc::new(Poller::new().map_err(|_| Error::Resource)?);
        poller
            .add(&listener, LISTENER, Interest::Read)
            .map_err(|_| Error::Resource)?;
        Ok(Self {
            listener,
            poller,
            silent: VecDeque::new(),
            is_starved: false,
        })
    }

    /// The next request, if one has come.
    fn next(&mut self, address: &NetAddress) -> Result<Option<ShmIncoming>, Error> {
        self.is_starved = false;
        // Whoever comes faster than he is heard does not keep the others from it.
        for _ in 0..SILENT_MAX {
            let conn = match self.listener.accept() {
                Ok(Some(conn)) => conn,
                Ok(None) => break,
                // No fault of the waiter's: it is tried again.
                Err(_) => {
                    self.is_starved = true;
                    break;
                }
            };
            self.poller
                .add(&conn, SILENT, Interest::Read)
                .map_err(|_| Error::Resource)?;
            if self.silent.len() == SILENT_MAX {
                self.drop_silent(0);
            }
            self.silent.push_back(Silent {
                conn,
                until: Instant::now() + PATIENCE,
            });
        }
        let mut bytes = [0; MESSAGE_MAX];
        let mut index = 0;
        while let Some(silent) = self.silent.get(index) {
            match silent.conn.recv(&mut bytes) {
                Ok(Received::Nothing) if Instant::now() < silent.until => index += 1,
                Ok(Received::Packet { len, .. }) => {
                    let Some(conn) = self.drop_silent(index) else {
                        continue;
                    };
                    if let Ok(Message::Request(ask)) = Message::decode(&bytes[..len])
                        && let Some(incoming) = ShmIncoming::new(Arc::new(conn), &ask, address)
                    {
                        return Ok(Some(incoming));
                    }
                }
                _ => {
                    self.drop_silent(index);
                }
            }
        }
        Ok(None)
    }

    fn drop_silent(&mut self, index: usize) -> Option<Conn> {
        let Silent { conn, .. } = self.silent.remove(index)?;
        let removed = self.poller.remove(&conn);
        debug_assert!(removed.is_ok(), "added before");
        Some(conn)
    }

    fn sleep(&self, deadline: Option<Instant>) -> Result<(), Error> {
        let patience = self.silent.iter().map(|silent| silent.until).min();
        let until = [deadline, patience].into_iter().flatten().min();
        let timeout = until.map(|until| until.saturating_duration_since(Instant::now()));
        if self.is_starved {
            // Whoever has come is still there, so waiting for somebody would not wait.
            std::thread::sleep(timeout.map_or(NAP, |timeout| timeout.min(NAP)));
            return Ok(());
        }
        self.poller
            .wait(&mut Vec::new(), timeout)
            .map_err(|_| Error::Resource)?;
        Ok(())
    }
}

impl Shared {
    fn points(&self) -> MutexGuard<'_, HashMap<NetAddress, Point>> {
        self.points.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

static SPINNER: LazyLock<Spinner> = LazyLock::new(|| Spinner::new(Limits::SOCKET));

// Whoever is ready, all are looked at.
const LISTENER: u64 = 0;
const SILENT: u64 = 1;
const BACKLOG: i32 = 128;
/// Who connects and says nothing is sent away after this time, or when there are too many of them.
const PATIENCE: Duration = Duration::from_secs(1);
const SILENT_MAX: usize = 64;
/// Between two tries to get a descriptor.
const NAP: Duration = Duration::from_millis(1);
