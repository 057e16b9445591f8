use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4, TcpListener, TcpStream};
use std::process::Command;
use std::{env, fs, iter};

use proto::mpa::Handshake;
use rustix::net::{self, sockopt};
use sys::sync::AtomicUsize;
use via::NetAddress;

use super::*;
use crate::dial::options;
use crate::link::now;
use crate::private;

static OPEN: AtomicUsize = AtomicUsize::new(0);

/// An offer, whose peer the test plays.
struct Played {
    config: Config,
    agent: Arc<Agent<Departures>>,
    ours: Ask,
    theirs: Ask,
    /// Theirs.
    place: WaitingPlace,
}

impl Played {
    fn by(higher: bool) -> Self {
        let (low, high) = (address(1), address(2));
        let ask = |local, remote| Ask {
            local,
            remote,
            attributes: ViAttributes::default(),
        };
        let (mut ours, mut theirs) = (ask(low, high), ask(high, low));
        if !higher {
            std::mem::swap(&mut ours, &mut theirs);
        }
        let config = Config::default();
        let place = WaitingPlace::take(&theirs.local, Some(theirs.remote), &config);
        Self {
            config,
            agent: Agent::new(&OPEN).expect("an agent"),
            ours,
            theirs,
            place: place.expect("a place"),
        }
    }

    fn offer(&self) -> Offer {
        Offer::new(&self.ours, &self.config, &self.agent).expect("an offer")
    }

    fn call(&self) -> Client {
        Client::new(&self.theirs, true, &self.config, &self.agent).expect("a socket")
    }

    fn receive(&self) -> Caller {
        self.place.receive(soon(), || false).expect("a call")
    }
}

#[test]
fn a_knock_is_for_the_next_where_the_first_gives_up() {
    let higher = Played::by(true);
    let [first, second] = [(); 2].map(|()| {
        let offer = higher.offer();
        higher.receive().send_away(Error::NoMatch);
        offer
    });
    let knock = higher.call();
    knock.knock(soon());
    let called = higher.receive();
    drop(first);
    drop(called);
    let call = higher.receive();
    let bell = Caller::prepare(&higher.agent).expect("descriptors");
    let accepted = call.accept(&ViAttributes::default(), &higher.agent, bell);
    assert!(accepted.is_ok());
    assert!(matches!(second.wait(soon()), Some(Ok(_))));
}

#[test]
fn who_was_called_by_one_that_has_gone_knocks_again() {
    let lower = Played::by(false);
    let offer = lower.offer();
    lower.receive().send_away(Error::NoMatch);
    let said = private::request(&lower.theirs, true);
    let handshake = Handshake::initiate(options(&lower.config), &said, now()).expect("a request");
    let at = address::socket_address(lower.ours.local.host);
    let mut goes = TcpStream::connect(at).expect("the door is open");
    // What he says and that he goes arrive as one.
    sockopt::set_tcp_cork(&goes, true).expect("TCP");
    goes.write_all(handshake.output()).expect("sent");
    drop(goes);
    lower.receive().send_away(Error::NoMatch);
    assert!(matches!(lower.call().wait(soon()), Some(Ok(_))));
    assert!(matches!(offer.wait(soon()), Some(Ok(_))));
}

#[test]
fn a_knock_that_is_lost_is_repeated() {
    let lower = Played::by(false);
    let offer = lower.offer();
    drop(lower.receive());
    drop(lower.receive());
    assert!(matches!(lower.call().wait(soon()), Some(Ok(_))));
    assert!(matches!(offer.wait(soon()), Some(Ok(_))));
}

#[test]
fn whoever_says_that_he_is_the_peer_ends_nothing() {
    let lower = Played::by(false);
    let offer = lower.offer();
    drop(lower.receive());
    let mut wrong = lower.theirs;
    wrong.attributes.max_transfer_size += 1;
    let said = private::request(&wrong, true);
    let handshake = Handshake::initiate(options(&lower.config), &said, now()).expect("a request");
    let tcp = net::socket(net::AddressFamily::INET, net::SocketType::STREAM, None).expect("TCP");
    let elsewhere = SocketAddrV4::new(Ipv4Addr::new(127, 0, 0, 3), 0);
    net::bind(&tcp, &elsewhere).expect("it is ours");
    let at = address::socket_address(lower.ours.local.host);
    net::connect(&tcp, &at).expect("the door is open");
    let mut tcp = TcpStream::from(tcp);
    tcp.write_all(handshake.output()).expect("sent");
    let mut answer = Vec::new();
    tcp.read_to_end(&mut answer).expect("a refusal");
    assert!(answer.starts_with(b"MPA ID Rep Frame\x70"));
    assert!(matches!(lower.call().wait(soon()), Some(Ok(_))));
    assert!(matches!(offer.wait(soon()), Some(Ok(_))));
}

/// In a process of its own, which has few descriptors.
#[test]
fn who_cannot_knock_says_so() {
    if env::var_os(FEW).is_none() {
        let output = Command::new("sh")
            .args(["-c", "ulimit -n 64 && exec \"$0\" \"$@\""])
            .arg(env::current_exe().expect("this program"))
            .args(["--exact", "--nocapture"])
            .arg("peering::tests::who_cannot_knock_says_so")
            .env(FEW, "1")
            .output()
            .expect("a shell");
        let told = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success() && told.contains(MET), "{told}");
        return;
    }
    let lower = Played::by(false);
    let _opens_the_door = WaitingPlace::take(&lower.ours.local, None, &lower.config);
    let null = fs::File::open("/dev/null").expect("open");
    let all: Vec<_> = iter::from_fn(|| null.try_clone().ok()).collect();
    let offer = lower.offer();
    let outcome = offer.wait(soon()).map(|outcome| outcome.map(drop));
    drop(all);
    assert_eq!(outcome, Some(Err(Error::Resource)));
    println!("{MET}");
}

/// A free port of the loopback address with this last octet.
fn address(last: u8) -> NetAddress {
    let free = TcpListener::bind((Ipv4Addr::new(127, 0, 0, last), 0));
    let Ok(SocketAddr::V4(at)) = free.and_then(|listener| listener.local_addr()) else {
        panic!("no port");
    };
    address::of_stranger(at)
}

fn soon() -> Option<Instant> {
    Some(Instant::now() + Duration::from_secs(10))
}

/// Set in the process that has few descriptors.
const FEW: &str = "SOVIA_TEST_FEW";
const MET: &str = "without a descriptor it is our own lack";
