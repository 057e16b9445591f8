//! Which of the paper's versions runs.

use std::time::Duration;

use proto::packet::Settings;
use thiserror::Error;
use via::provider::Driver;

/// A version of SOVIA: what Figure 9 of the paper compares, and how one waits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Variant {
    /// Window, threshold and largest packet.
    pub settings: Settings,
    /// A thread of its own takes packets in, and wakes the application's (SOVIA_HANDLER).
    pub handler: bool,
    /// How long a small message may wait for others; `None` sends each by itself.
    pub combine: Option<Duration>,
    /// How a thread waits.
    pub waiting: Waiting,
    /// Largest message that is copied into a buffer of ours, bytes.
    pub copy_max: u32,
    /// What happens to larger ones.
    pub large: Large,
    /// What holds a sender back.
    pub flow: Flow,
}

/// How a thread waits for a packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Waiting {
    /// It looks again and again, yielding the CPU now and then, without limit: for measurements.
    Polling,
    /// It looks for some microseconds, then sleeps in the NIC (`VipRecvWait`).
    Blocking,
}

/// What happens to messages that are too large to be copied.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Large {
    /// They are registered if the NIC says that it pays, else copied.
    AsTheNicSays,
    /// They are copied.
    Copied,
    /// They are registered, wherever the program's memory can be.
    Registered,
}

/// What holds a sender back whose peer does not read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Flow {
    /// The NIC, if it can, and a window if not.
    AsTheNicSays,
    /// A window, as in the paper.
    Windowed,
}

/// A name that no version has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error(
    "the versions are handler, single, flowctrl, windowless, dacks and combine; poll and block are the ways to wait, \
     copy and register those to send much; nic=NAME is over which NIC"
)]
pub struct BadVariant;

impl Variant {
    /// SOVIA_SINGLE: one packet at a time, each acknowledged by itself, taken in by whoever waits.
    #[must_use]
    pub fn single() -> Self {
        Self {
            settings: settings(1, 1),
            handler: false,
            combine: None,
            waiting: Waiting::Blocking,
            copy_max: COPY_MAX,
            large: Large::AsTheNicSays,
            flow: Flow::Windowed,
        }
    }

    /// SOVIA_HANDLER: as [`Variant::single`], with a handler thread.
    #[must_use]
    pub fn handler() -> Self {
        Self {
            handler: true,
            ..Self::single()
        }
    }

    /// As [`Variant::combine`], but for a window over a NIC that needs none.
    #[must_use]
    pub fn windowless() -> Self {
        Self {
            flow: Flow::AsTheNicSays,
            ..Self::combine()
        }
    }

    /// SOVIA_FLOWCTRL: a window of 32.
    #[must_use]
    pub fn flowctrl() -> Self {
        Self {
            settings: settings(32, 1),
            ..Self::single()
        }
    }

    /// SOVIA_DACKS: and delayed acknowledgements, 16 at a time.
    #[must_use]
    pub fn dacks() -> Self {
        Self {
            settings: settings(32, 16),
            ..Self::single()
        }
    }

    /// SOVIA_COMBINE: and small messages wait for others, 100 ms at most. The whole of SOVIA.
    #[must_use]
    pub fn combine() -> Self {
        Self {
            combine: Some(COMBINE_DELAY),
            ..Self::dacks()
        }
    }

    /// The same with another way to wait.
    #[must_use]
    pub fn waiting(mut self, waiting: Waiting) -> Self {
        self.waiting = waiting;
        self
    }

    /// The same, for large messages otherwise.
    #[must_use]
    pub fn large(mut self, large: Large) -> Self {
        self.large = large;
        self
    }

    /// Reads words between commas, as in `SOVIA_PACKET=dacks,poll`: a version, `poll` or `block`, `copy` or `register`.
    ///
    /// # Errors
    /// Any other word.
    pub fn parse(text: &str) -> Result<Self, BadVariant> {
        let words = text
            .split(',')
            .map(str::trim)
            .filter(|word| !word.is_empty());
        words
            .map(str::to_ascii_lowercase)
            .try_fold(Self::default(), |variant, word| {
                let Self { waiting, large, .. } = variant;
                let version = |version: Self| version.waiting(waiting).large(large);
                Ok(match word.trim_start_matches("sovia_") {
                    "handler" => version(Self::handler()),
                    "single" => version(Self::single()),
                    "flowctrl" => version(Self::flowctrl()),
                    "windowless" => version(Self::windowless()),
                    "dacks" => version(Self::dacks()),
                    "combine" => version(Self::combine()),
                    "poll" => variant.waiting(Waiting::Polling),
                    "block" => variant.waiting(Waiting::Blocking),
                    "copy" => variant.large(Large::Copied),
                    "register" => variant.large(Large::Registered),
                    _ => return Err(BadVariant),
                })
            })
    }
}

/// As [`Variant::parse`], and `nic=NAME`, as in `SOVIA_PACKET=dacks,nic=iwarp`: one of `drivers`, and the first if none is named.
///
/// # Errors
/// Any other word.
pub fn parse_over(
    text: &str,
    drivers: &[&'static dyn Driver],
) -> Result<(Variant, &'static dyn Driver), BadVariant> {
    let mut nic = drivers.first();
    let mut words = Vec::new();
    for word in text.split(',') {
        match word.trim().strip_prefix("nic=") {
            Some(name) => nic = drivers.iter().find(|driver| driver.name() == name),
            None => words.push(word),
        }
    }
    Ok((Variant::parse(&words.join(","))?, *nic.ok_or(BadVariant)?))
}

impl Default for Variant {
    /// [`Variant::combine`].
    fn default() -> Self {
        Self::combine()
    }
}

fn settings(window: u32, threshold: u32) -> Settings {
    Settings {
        window,
        threshold,
        ..Settings::default()
    }
}

const COPY_MAX: u32 = 2 << 10;
const COMBINE_DELAY: Duration = Duration::from_millis(100);

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn words() {
        assert_eq!(Variant::parse(""), Ok(Variant::default()));
        assert_eq!(Variant::parse("combine"), Ok(Variant::combine()));
        assert_eq!(Variant::parse("windowless"), Ok(Variant::windowless()));
        assert_ne!(Variant::combine(), Variant::windowless());
        assert_eq!(
            Variant::parse("poll, SOVIA_SINGLE"),
            Ok(Variant::single().waiting(Waiting::Polling))
        );
        assert_eq!(
            Variant::parse("dacks,register"),
            Ok(Variant::dacks().large(Large::Registered))
        );
        assert_eq!(Variant::parse("faster"), Err(BadVariant));
    }

    #[test]
    fn a_nic_among_the_words() {
        let drivers: [&dyn Driver; 2] = [&shm::DRIVER, &iwarp::DRIVER];
        let parse = |text| parse_over(text, &drivers).map(|(variant, nic)| (variant, nic.name()));
        assert_eq!(parse(""), Ok((Variant::default(), "shm")));
        assert_eq!(parse("nic=iwarp"), Ok((Variant::default(), "iwarp")));
        assert_eq!(parse("dacks, nic=iwarp"), Ok((Variant::dacks(), "iwarp")));
        assert_eq!(parse("nic=shm,single"), Ok((Variant::single(), "shm")));
        for wrong in ["nic=", "nic=sim", "iwarp", "dacks,nic=iwarp,faster"] {
            assert_eq!(parse(wrong), Err(BadVariant), "{wrong}");
        }
    }

    #[test]
    fn the_versions_differ_as_the_paper_says() {
        assert_eq!(Variant::single().settings.pre_posted(), 3);
        assert_eq!(Variant::dacks().settings, Settings::default());
        assert_eq!(Variant::flowctrl().settings.threshold, 1);
        assert!(Variant::handler().handler && Variant::combine().combine.is_some());
    }
}
