//! The live view.

use std::env;
use std::io::{self, IsTerminal, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use ratatui::Frame;
use ratatui::crossterm::cursor::Show;
use ratatui::crossterm::event::{self, Event, KeyCode, KeyEventKind, KeyModifiers};
use ratatui::crossterm::execute;
use ratatui::layout::{Constraint, Layout};
use ratatui::style::{Modifier, Stylize};
use ratatui::text::Line;
use ratatui::widgets::{Table, TableState};
use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM};
use signal_hook::iterator::Signals;
use signal_hook::{flag, low_level};

use super::rates::{Moving, Rates, Sort, sort};
use super::table;
use super::{Options, Source};
use crate::error::{Context, Result};
use crate::signals::heeded;
use columns::Columns;

mod columns;

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
    let mut screen = Screen {
        processes: options.processes,
        ..Screen::default()
    };
    let mut rates = Rates::default();
    let mut before = Instant::now();
    let look = source.look()?;
    screen.is_blind = look.processes.is_empty() && source.host.hidden > 0;
    screen.moving = rates.next(&look, 1.0);
    let mut left = options.times;
    while left != Some(0) {
        terminal
            .draw(|frame| screen.draw(frame))
            .context("the terminal")?;
        let wait = every.saturating_sub(before.elapsed());
        if event::poll(wait).context("the terminal")? {
            if let Event::Key(key) = event::read().context("the terminal")?
                && key.kind == KeyEventKind::Press
            {
                let interrupted =
                    key.code == KeyCode::Char('c') && key.modifiers.contains(KeyModifiers::CONTROL);
                if interrupted || !screen.press(key.code) {
                    return Ok(());
                }
            }
            continue;
        }
        let look = source.look()?;
        let moving = rates.next(&look, before.elapsed().as_secs_f64());
        before = Instant::now();
        if !screen.frozen {
            screen.is_blind = look.processes.is_empty() && source.host.hidden > 0;
            screen.moving = moving;
        }
        left = left.map(|left| left - 1);
    }
    Ok(())
}

/// What is on the screen.
#[derive(Debug, Default)]
pub(super) struct Screen {
    pub(super) moving: Moving,
    pub(super) processes: bool,
    /// Whether there may be others', where nothing is seen.
    is_blind: bool,
    sort: Sort,
    frozen: bool,
    table: TableState,
}

impl Screen {
    /// Does what a key asks for; false to end.
    pub(super) fn press(&mut self, key: KeyCode) -> bool {
        match key {
            KeyCode::Char('q') | KeyCode::Esc => return false,
            KeyCode::Char('s') => self.sort = self.sort.next(),
            KeyCode::Char('p') => self.processes = !self.processes,
            KeyCode::Char(' ') => self.frozen = !self.frozen,
            KeyCode::Down => self.table.scroll_down_by(1),
            KeyCode::Up => self.table.scroll_up_by(1),
            KeyCode::PageDown => self.table.scroll_down_by(PAGE),
            KeyCode::PageUp => self.table.scroll_up_by(PAGE),
            KeyCode::Home => self.table.select_first(),
            _ => {}
        }
        true
    }

    pub(super) fn draw(&mut self, frame: &mut Frame<'_>) {
        let mut lines = match self.processes {
            true => self.moving.processes.clone(),
            false => self.moving.connections.clone(),
        };
        sort(&mut lines, self.sort);
        let [head, body, foot] = Layout::vertical([
            Constraint::Length(1),
            Constraint::Fill(1),
            Constraint::Length(1),
        ])
        .areas(frame.area());
        let Moving {
            connections,
            processes,
        } = &self.moving;
        let ring = connections.iter().filter(|line| line.way == "shm/ring");
        let ring = ring.count();
        let flow: f64 = processes.iter().map(|line| line.rate.bytes()).sum();
        let blind = match self.is_blind {
            true => "; other users' only root may see",
            false => "",
        };
        let title = format!(
            "sovia: {} connections, {ring} on shm/ring, {}/s{blind}",
            connections.len(),
            table::bytes(flow as u64)
        );
        frame.render_widget(Line::from(title).bold(), head);
        let columns = Columns::fitting(frame.area().width, &lines);
        let rows = lines.iter().map(|line| columns.row(line));
        let table = Table::new(rows, columns.widths())
            .header(columns.header().style(Modifier::BOLD))
            .row_highlight_style(Modifier::REVERSED);
        frame.render_stateful_widget(table, body, &mut self.table);
        let frozen = if self.frozen { "  (held)" } else { "" };
        let keys = format!(
            "q quit  s sort: {}  p {}  space hold  ↑↓ scroll{frozen}",
            self.sort.name(),
            if self.processes {
                "connections"
            } else {
                "processes"
            },
        );
        frame.render_widget(Line::from(keys).dim(), foot);
    }
}

const PAGE: u16 = 20;

#[cfg(test)]
mod tests {
    use ratatui::Terminal;
    use ratatui::backend::TestBackend;

    use super::super::sample;
    use super::*;

    fn shown(screen: &mut Screen, width: u16) -> String {
        let backend = TestBackend::new(width, 8);
        let mut terminal = Terminal::new(backend).expect("no terminal is needed");
        terminal.draw(|frame| screen.draw(frame)).expect("as above");
        terminal.backend().to_string()
    }

    fn moving() -> Moving {
        let mut rates = Rates::default();
        let mut look = sample::look();
        for step in 0..30 {
            rates.next(&look, 1.0);
            look.rows[0].bytes_sent += step * 1000;
            look.rows[0].calls_sent += 3;
            look.rows[2].sleeps += 7;
        }
        rates.next(&look, 1.0)
    }

    #[test]
    fn the_path_is_seen_at_every_width() {
        let mut screen = Screen {
            moving: moving(),
            ..Screen::default()
        };
        let mut seen = String::new();
        for width in [80, 100, 120, 160] {
            seen = format!("{seen}{width}\n{}\n", shown(&mut screen, width));
        }
        // Addresses of other hosts are long.
        for line in &mut screen.moving.connections {
            let address = |port| ([192, 168, 100, 200], port).into();
            line.ends = Some((address(65000), address(443)));
        }
        for width in [80, 100] {
            seen = format!("{seen}{width}\n{}\n", shown(&mut screen, width));
        }
        insta::assert_snapshot!(seen);
    }

    #[test]
    fn keys_change_what_is_shown() {
        let mut screen = Screen {
            moving: moving(),
            ..Screen::default()
        };
        let mut seen = shown(&mut screen, 160);
        for key in [
            KeyCode::Char('s'),
            KeyCode::Char('s'),
            KeyCode::Char('p'),
            KeyCode::Char(' '),
        ] {
            assert!(screen.press(key));
            seen = format!("{seen}\n{key:?}\n{}", shown(&mut screen, 160));
        }
        insta::assert_snapshot!(seen);
        assert!(!screen.press(KeyCode::Char('q')));
    }

    #[test]
    fn a_small_terminal_is_no_harm() {
        let mut screen = Screen {
            moving: Rates::default().next(&sample::look(), 1.0),
            ..Screen::default()
        };
        for (width, height) in [(1, 1), (3, 2), (20, 3), (50, 5), (70, 5)] {
            let mut terminal = Terminal::new(TestBackend::new(width, height)).expect("as above");
            terminal.draw(|frame| screen.draw(frame)).expect("as above");
        }
    }
}
