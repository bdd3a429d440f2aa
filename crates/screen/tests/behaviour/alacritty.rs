//! A viewer with a terminal of somebody else's making: alacritty's, without its window.

use std::cell::RefCell;
use std::rc::Rc;

use alacritty_terminal::event::{Event, EventListener};
use alacritty_terminal::grid::Dimensions as _;
use alacritty_terminal::index::{Column, Line};
use alacritty_terminal::term::cell::{Cell, Flags};
use alacritty_terminal::term::test::TermSize;
use alacritty_terminal::term::{Config, Term};
use alacritty_terminal::vte::ansi::{CharsetIndex, Processor, Rgb};
use screen::Size;

/// What the terminal has told its window.
#[derive(Clone, Default)]
struct Heard {
    title: Rc<RefCell<Option<String>>>,
    replies: Rc<RefCell<Vec<String>>>,
}

impl EventListener for Heard {
    fn send_event(&self, event: Event) {
        match event {
            Event::Title(title) => *self.title.borrow_mut() = Some(title).filter(|title| !title.is_empty()),
            Event::ResetTitle => *self.title.borrow_mut() = None,
            Event::PtyWrite(text) => self.replies.borrow_mut().push(text),
            Event::ClipboardStore(_, text) => self.replies.borrow_mut().push(format!("clipboard: {text}")),
            Event::ColorRequest(_, format) => {
                self.replies.borrow_mut().push(format(Rgb { r: 0, g: 0, b: 0 }))
            }
            _ => {}
        }
    }
}

/// A viewer.
pub(crate) struct Viewer {
    term: Term<Heard>,
    parser: Processor,
    heard: Heard,
}

impl Viewer {
    pub(crate) fn new(size: Size) -> Self {
        let heard = Heard::default();
        let config = Config { scrolling_history: 100, kitty_keyboard: true, ..Config::default() };
        let size = TermSize::new(size.columns.into(), size.rows.into());
        Self { term: Term::new(config, &size, heard.clone()), parser: Processor::new(), heard }
    }

    pub(crate) fn feed(&mut self, bytes: &[u8]) {
        self.parser.advance(&mut self.term, bytes);
    }

    /// What the terminal has sent to the program by itself.
    pub(crate) fn replies(&self) -> Vec<String> {
        self.heard.replies.borrow().clone()
    }

    /// The text that has scrolled off.
    pub(crate) fn history(&self) -> String {
        let grid = self.term.grid();
        let lines = (1..=grid.history_size()).rev().map(|line| &grid[Line(-i32::try_from(line).unwrap())]);
        lines.flat_map(|row| (0..grid.columns()).map(|column| row[Column(column)].c)).collect()
    }

    /// All that can be seen or felt of the terminal, one fact a line.
    pub(crate) fn facts(&self) -> Vec<String> {
        let grid = self.term.grid();
        let mut facts = Vec::new();
        for line in 0..grid.screen_lines() {
            let row = &grid[Line(i32::try_from(line).unwrap())];
            let cells: Vec<String> = (0..grid.columns()).map(|column| look(&row[Column(column)])).collect();
            facts.push(format!("line {line}: {}", cells.join("|")));
        }
        let cursor = &grid.cursor;
        facts.push(format!("cursor {:?} wrap {}", cursor.point, cursor.input_needs_wrap));
        facts.push(format!("pen {}", look(&cursor.template)));
        facts.push(format!(
            "charsets {:?} {:?}",
            cursor.charsets[CharsetIndex::G0],
            cursor.charsets[CharsetIndex::G1]
        ));
        let saved = &grid.saved_cursor;
        facts.push(format!(
            "saved {:?} wrap {} pen {}",
            saved.point,
            saved.input_needs_wrap,
            look(&saved.template)
        ));
        facts.push(format!("modes {:?}", self.term.mode()));
        facts.push(format!("shape {:?}", self.term.cursor_style()));
        facts.push(format!("title {:?}", self.heard.title.borrow()));
        facts
    }
}

fn look(cell: &Cell) -> String {
    // It keeps the tab itself in a cell, and where a wide character did not fit; neither can be seen.
    let mut cell = cell.clone();
    cell.c = if cell.c == '\t' { ' ' } else { cell.c };
    cell.flags -= Flags::LEADING_WIDE_CHAR_SPACER;
    if cell == Cell::default() {
        return String::new();
    }
    let marks: String = cell.zerowidth().unwrap_or_default().iter().collect();
    format!("{}{marks} {:?} {:?} {:?} {:?}", cell.c, cell.fg, cell.bg, cell.underline_color(), cell.flags)
}
