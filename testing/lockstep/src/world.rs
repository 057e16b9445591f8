//! The actors of one world: all native, all under sovia, or some of each.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs;
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, Signal, kill_process, pidfd_open};

/// What is in the environment of an actor with which a session begins.
pub type Environment = Vec<(OsString, OsString)>;

/// See the [module](self).
pub struct World {
    place: PathBuf,
    listener: UnixListener,
    actors: BTreeMap<String, Actor>,
    /// Those that this process started; their children are others'.
    children: Vec<Child>,
}

struct Actor {
    stream: UnixStream,
    read: Vec<u8>,
    pid: Pid,
    /// Of the process, whose stream may be closed before its other descriptors are.
    process: Option<OwnedFd>,
    is_busy: bool,
}

/// What is heard of an actor in a given time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Heard {
    /// Its answer.
    Answer(String),
    /// It has ended.
    End,
    /// Nothing.
    Nothing,
}

impl World {
    /// A world with an actor for each of `begin`, in a folder of its own under `folder`.
    ///
    /// # Errors
    /// A process or socket cannot be made, or an actor does not come.
    pub fn begin(
        program: &Path,
        folder: &Path,
        name: &str,
        begin: &[(&str, Environment)],
    ) -> io::Result<Self> {
        let place = folder.join(name);
        // Of an earlier session.
        let _ = fs::remove_file(&place);
        let listener = UnixListener::bind(&place)?;
        let mut world = Self {
            place,
            listener,
            actors: BTreeMap::new(),
            children: Vec::new(),
        };
        for (actor, environment) in begin {
            let child = Command::new(program)
                .arg(&world.place)
                .arg(actor)
                .env_remove("LD_PRELOAD")
                .envs(environment.iter().map(|(name, value)| (name, value)))
                .stdin(Stdio::null())
                .stdout(Stdio::null())
                .spawn()?;
            world.children.push(child);
            world.await_hello(actor, PATIENCE)?;
        }
        Ok(world)
    }

    /// Whether there is such an actor.
    pub fn has(&self, actor: &str) -> bool {
        self.actors.contains_key(actor)
    }

    /// Whether it has not answered its last command.
    pub fn is_busy(&self, actor: &str) -> bool {
        self.actors.get(actor).is_some_and(|actor| actor.is_busy)
    }

    /// Who has not answered yet.
    pub fn busy(&self) -> Vec<String> {
        let busy = self.actors.iter().filter(|(_, actor)| actor.is_busy);
        busy.map(|(name, _)| name.clone()).collect()
    }

    /// All that are idle.
    pub fn idle(&self) -> Vec<String> {
        let idle = self.actors.iter().filter(|(_, actor)| !actor.is_busy);
        idle.map(|(name, _)| name.clone()).collect()
    }

    /// Gives a command to an actor. One that has ended meanwhile is found out by what is [heard](Self::hear).
    pub fn tell(&mut self, actor: &str, words: &str) {
        if let Some(actor) = self.actors.get_mut(actor) {
            actor.is_busy = true;
            // See above.
            let _ = actor.stream.write_all(format!("{words}\n").as_bytes());
        }
    }

    /// What an actor answers within `limit`.
    ///
    /// # Errors
    /// Other than that it has ended.
    pub fn hear(&mut self, name: &str, limit: Duration) -> io::Result<Heard> {
        let Some(actor) = self.actors.get_mut(name) else {
            return Ok(Heard::End);
        };
        let heard = actor.line(limit)?;
        if heard == Heard::End {
            self.actors.remove(name);
        }
        Ok(heard)
    }

    /// Waits until an actor, which was told to end or become another, has closed all that it had.
    ///
    /// # Errors
    /// It does not within [`PATIENCE`].
    pub fn await_end(&mut self, name: &str, exits: bool) -> io::Result<()> {
        let process = self
            .actors
            .get_mut(name)
            .and_then(|actor| actor.process.take());
        let ends = self.hear(name, PATIENCE)? == Heard::End;
        let gone = match process {
            Some(process) if exits => ready(&process, PATIENCE)?,
            _ => true,
        };
        if ends && gone {
            Ok(())
        } else {
            Err(io::Error::other(format!("actor {name} does not end")))
        }
    }

    /// Kills an actor.
    pub fn kill(&mut self, name: &str) {
        if let Some(actor) = self.actors.get(name) {
            // One that has ended is no harm: its number is not given out again so soon.
            let _ = kill_process(actor.pid, Signal::KILL);
        }
    }

    /// Waits for an actor that somebody begot, or that begins anew.
    ///
    /// # Errors
    /// It does not come within `limit`.
    pub fn await_hello(&mut self, name: &str, limit: Duration) -> io::Result<()> {
        if !ready(&self.listener, limit)? {
            return Err(io::Error::new(
                io::ErrorKind::TimedOut,
                format!("actor {name} does not begin"),
            ));
        }
        let (stream, _) = self.listener.accept()?;
        let mut actor = Actor {
            stream,
            read: Vec::new(),
            pid: Pid::INIT,
            process: None,
            is_busy: true,
        };
        let unexpected = |what: String| io::Error::other(format!("actor {name} says {what}"));
        let Heard::Answer(hello) = actor.line(limit)? else {
            return Err(unexpected("nothing".to_owned()));
        };
        let words: Vec<&str> = hello.split(' ').collect();
        actor.pid = match words.as_slice() {
            ["hello", who, pid] if *who == name => pid
                .parse()
                .ok()
                .and_then(Pid::from_raw)
                .ok_or_else(|| unexpected(hello.clone()))?,
            _ => return Err(unexpected(hello)),
        };
        actor.process = Some(pidfd_open(actor.pid, PidfdFlags::empty())?);
        self.actors.insert(name.to_owned(), actor);
        Ok(())
    }
}

impl Actor {
    fn line(&mut self, limit: Duration) -> io::Result<Heard> {
        let end = Instant::now() + limit;
        loop {
            if let Some(length) = self.read.iter().position(|&byte| byte == b'\n') {
                let line = self.read.drain(..=length).take(length).collect();
                self.is_busy = false;
                return Ok(Heard::Answer(
                    String::from_utf8(line).map_err(io::Error::other)?,
                ));
            }
            if !ready(&self.stream, end.saturating_duration_since(Instant::now()))? {
                return Ok(Heard::Nothing);
            }
            let mut some = [0; 512];
            match self.stream.read(&mut some) {
                Ok(0) => return Ok(Heard::End),
                Ok(count) => self
                    .read
                    .extend_from_slice(some.get(..count).unwrap_or(&[])),
                Err(error) if error.kind() == io::ErrorKind::ConnectionReset => {
                    return Ok(Heard::End);
                }
                Err(error) => return Err(error),
            }
        }
    }
}

fn ready(file: &impl AsFd, limit: Duration) -> io::Result<bool> {
    let limit = Timespec::try_from(limit).map_err(io::Error::other)?;
    let mut entries = [PollFd::new(file, PollFlags::IN)];
    Ok(poll(&mut entries, Some(&limit))? > 0)
}

impl Drop for World {
    fn drop(&mut self) {
        for actor in self.actors.values() {
            // As in `kill`.
            let _ = kill_process(actor.pid, Signal::KILL);
        }
        for child in &mut self.children {
            // It has ended, or was told to by the end of its stream.
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// For an actor to begin, on a busy machine too.
pub const PATIENCE: Duration = Duration::from_secs(10);
