//! What the live view shows, whatever it is that draws it.

use ratatui::Frame;
use ratatui::crossterm::event::KeyCode;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Modifier, Stylize};
use ratatui::text::Line;
use ratatui::widgets::{Table, TableState};

use super::super::rates::{Lively, Moving, Sort, order};
use super::super::table;
use super::columns::Columns;

/// What is on the screen.
#[derive(Debug, Default)]
pub(super) struct Screen {
    moving: Moving,
    /// The places of its lines as they are shown; `None` if that has changed since they were last drawn.
    order: Option<Vec<usize>>,
    /// What fits into this width, as long as the lines are these.
    columns: Option<(u16, Columns)>,
    processes: bool,
    /// Whether there may be others', where nothing is seen.
    pub(super) is_blind: bool,
    sort: Sort,
    pub(super) frozen: bool,
    table: TableState,
}

impl Screen {
    pub(super) fn new(processes: bool) -> Self {
        Self {
            processes,
            ..Self::default()
        }
    }

    pub(super) fn show(&mut self, moving: Moving) {
        self.moving = moving;
        self.order = None;
        self.columns = None;
    }

    /// Does what a key asks for; false to end.
    pub(super) fn press(&mut self, key: KeyCode) -> bool {
        match key {
            KeyCode::Char('q') | KeyCode::Esc => return false,
            KeyCode::Char('s') => {
                self.sort = self.sort.next();
                self.order = None;
            }
            KeyCode::Char('p') => {
                self.processes = !self.processes;
                (self.order, self.columns) = (None, None);
            }
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
        self.draw_table(frame, body);
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

    /// Of thousands of lines only those are formatted for which there is room.
    fn draw_table(&mut self, frame: &mut Frame<'_>, body: Rect) {
        let lines: &[Lively] = match self.processes {
            true => &self.moving.processes,
            false => &self.moving.connections,
        };
        let width = body.width;
        let (_, columns) = match self.columns {
            Some(known) if known.0 == width => known,
            _ => *self.columns.insert((width, Columns::fitting(width, lines))),
        };
        let order = self.order.get_or_insert_with(|| order(lines, self.sort));
        let room = usize::from(body.height.saturating_sub(HEADER));
        let selected = self.table.selected();
        let selected = selected.map(|at| at.min(order.len().saturating_sub(1)));
        let last = order.len().saturating_sub(room);
        let mut top = self.table.offset().min(last);
        if let Some(at) = selected {
            top = top.clamp((at + 1).saturating_sub(room).min(at), at);
        }
        self.table.select(selected);
        *self.table.offset_mut() = top;
        let shown = order.iter().skip(top).take(room);
        let rows = shown.map(|&at| columns.row(&lines[at]));
        let table = Table::new(rows, columns.widths())
            .header(columns.header().style(Modifier::BOLD))
            .row_highlight_style(Modifier::REVERSED);
        let mut within = TableState::new().with_selected(selected.map(|at| at - top));
        frame.render_stateful_widget(table, body, &mut within);
    }
}

const PAGE: u16 = 20;
const HEADER: u16 = 1;

#[cfg(test)]
mod tests {
    use ratatui::Terminal;
    use ratatui::backend::TestBackend;

    use super::super::super::rates::Rates;
    use super::super::super::sample;
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
        let mut far = moving();
        for line in &mut far.connections {
            let address = |port| ([192, 168, 100, 200], port).into();
            line.ends = Some((address(65000), address(443)));
        }
        screen.show(far);
        for width in [80, 100] {
            seen = format!("{seen}{width}\n{}\n", shown(&mut screen, width));
        }
        insta::assert_snapshot!(seen);
    }

    /// The numbers of the processes that are seen.
    fn seen(screen: &mut Screen) -> Vec<u32> {
        let text = shown(screen, 160);
        let numbers = text.lines().filter_map(|line| {
            let words = line.trim_start_matches(['"', ' ']);
            words.split(' ').next()?.parse().ok()
        });
        numbers.collect()
    }

    #[test]
    fn of_thousands_those_are_shown_for_which_there_is_room() {
        let mut many = moving();
        let line = many.connections[0].clone();
        let lines = (1..=2000).rev().map(|pid| Lively {
            pid,
            ..line.clone()
        });
        many.connections = lines.collect();
        let mut screen = Screen::default();
        screen.show(many);
        assert_eq!(seen(&mut screen), [1, 2, 3, 4, 5]);
        (0..5).for_each(|_| assert!(screen.press(KeyCode::Down)));
        assert_eq!(seen(&mut screen), [2, 3, 4, 5, 6]);
        (0..4).for_each(|_| assert!(screen.press(KeyCode::Up)));
        assert_eq!(seen(&mut screen), [2, 3, 4, 5, 6]);
        screen.press(KeyCode::Up);
        assert_eq!(seen(&mut screen), [1, 2, 3, 4, 5]);
        (0..200).for_each(|_| assert!(screen.press(KeyCode::PageDown)));
        assert_eq!(seen(&mut screen), [1996, 1997, 1998, 1999, 2000]);
        screen.press(KeyCode::Home);
        assert_eq!(seen(&mut screen), [1, 2, 3, 4, 5]);
        (0..200).for_each(|_| assert!(screen.press(KeyCode::PageDown)));
        let few = moving().connections.len();
        screen.show(moving());
        assert_eq!(seen(&mut screen).len(), few);
        screen.show(Moving::default());
        assert_eq!(seen(&mut screen), [] as [u32; 0]);
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
