//! The live view.

use std::env;
use std::io::{self, IsTerminal, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use ratatui::crossterm::cursor::Show;
use ratatui::crossterm::event::{self, Event, KeyCode, KeyEventKind, KeyModifiers};
use ratatui::crossterm::execute;
use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM};
use signal_hook::iterator::Signals;
use signal_hook::{flag, low_level};

use super::rates::{Rates, Sort, sort};
use super::table;
use super::{Options, Source};
use crate::error::{Context, Result};
use crate::signals::heeded;
use screen::Screen;

mod columns;
mod screen;

/// Shows what flows, again and again: on a terminal until `q`, elsewhere table after table.
pub(super) fn watch(options: &Options, source: &mut Source, every: Duration) -> Result<()> {
    let moves_cursor = env::var_os("TERM").is_some_and(|term| !term.is_empty() && term != "dumb");
    if moves_cursor && io::stdout().is_terminal() && io::stdin().is_terminal() {
        live(options, source, every)
    } else {
        plain(options, source, every)
    }
}

fn plain(options: &Options, source: &mut Source, every: Duration) -> Result<()> {
    let mut rates = Rates::default();
    let mut before = Instant::now();
    let look = source.look()?;
    source.warn(look.processes.is_empty());
    rates.next(&look, 1.0);
    for _ in 0..options.times.unwrap_or(u32::MAX) {
        thread::sleep(every);
        let look = source.look()?;
        let moving = rates.next(&look, before.elapsed().as_secs_f64());
        before = Instant::now();
        let mut lines = match options.processes {
            true => moving.processes,
            false => moving.connections,
        };
        sort(&mut lines, Sort::default());
        let mut out = io::stdout().lock();
        let written = out.write_all(table::rates(&lines).as_bytes());
        written
            .and_then(|()| out.flush())
            .context("standard output")?;
    }
    Ok(())
}

fn live(options: &Options, source: &mut Source, every: Duration) -> Result<()> {
    give_back_when_told_to_end().context("signals")?;
    let mut terminal = ratatui::try_init().context("the terminal")?;
    let result = drive(&mut terminal, options, source, every);
    let restored = ratatui::try_restore().context("the terminal");
    result.and(restored)
}

/// Has the terminal as it was before a signal ends us. A second one does not wait for a terminal that takes nothing.
fn give_back_when_told_to_end() -> io::Result<()> {
    let signals = heeded(&[SIGHUP, SIGINT, SIGQUIT, SIGTERM]);
    let is_told = Arc::new(AtomicBool::new(false));
    for &signal in &signals {
        flag::register_conditional_default(signal, Arc::clone(&is_told))?;
    }
    let mut signals = Signals::new(signals)?;
    let wait = move || {
        if let Some(signal) = signals.forever().next() {
            is_told.store(true, Ordering::Relaxed);
            // Whoever draws would hide the cursor again.
            let mut out = io::stdout().lock();
            // It may be the terminal that is gone.
            let _ = ratatui::try_restore();
            let _ = execute!(out, Show);
            let _ = low_level::emulate_default_handler(signal);
        }
    };
    let thread = thread::Builder::new().name("end".to_owned());
    thread.spawn(wait).map(drop)
}

fn drive(
    terminal: &mut ratatui::DefaultTerminal,
    options: &Options,
    source: &mut Source,
    every: Duration,
) -> Result<()> {
    let mut screen = Screen::new(options.processes);
    let mut rates = Rates::default();
    let mut before = Instant::now();
    let look = source.look()?;
    screen.is_blind = look.processes.is_empty() && source.host.hidden > 0;
    screen.show(rates.next(&look, 1.0));
    let mut left = options.times;
    while left != Some(0) {
        terminal
            .draw(|frame| screen.draw(frame))
            .context("the terminal")?;
        let wait = every.saturating_sub(before.elapsed());
        if event::poll(wait).context("the terminal")? {
            if !read_keys(&mut screen).context("the terminal")? {
                return Ok(());
            }
            // Keys that keep coming do not put off the next look.
            if before.elapsed() < every {
                continue;
            }
        }
        let look = source.look()?;
        let moving = rates.next(&look, before.elapsed().as_secs_f64());
        before = Instant::now();
        if !screen.frozen {
            screen.is_blind = look.processes.is_empty() && source.host.hidden > 0;
            screen.show(moving);
        }
        left = left.map(|left| left - 1);
    }
    Ok(())
}

/// Takes all that has been pressed, for one drawing; false to end.
fn read_keys(screen: &mut Screen) -> io::Result<bool> {
    for _ in 0..KEYS_MAX {
        if let Event::Key(key) = event::read()?
            && key.kind == KeyEventKind::Press
        {
            let interrupted =
                key.code == KeyCode::Char('c') && key.modifiers.contains(KeyModifiers::CONTROL);
            if interrupted || !screen.press(key.code) {
                return Ok(false);
            }
        }
        if !event::poll(Duration::ZERO)? {
            break;
        }
    }
    Ok(true)
}

/// At most, for one drawing.
const KEYS_MAX: usize = 1000;
