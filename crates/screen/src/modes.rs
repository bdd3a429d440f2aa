//! What a program has switched on or off in the terminal: closed lists, by which modes are both read and said.

/// A private mode (CSI ? n h) that is simply on or off.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Switch {
    ApplicationCursor = 1,
    ReverseVideo = 1 << 1,
    Wrap = 1 << 2,
    CursorVisible = 1 << 3,
    FocusEvents = 1 << 4,
    BracketedPaste = 1 << 5,
    ThemeReports = 1 << 6,
    /// A public mode (CSI 4 h).
    Insert = 1 << 7,
    /// A public mode (CSI 20 h): a line feed also returns the carriage.
    NewLine = 1 << 8,
    /// ESC = and ESC >.
    ApplicationKeypad = 1 << 9,
}

impl Switch {
    pub(crate) fn private(number: u16) -> Option<Self> {
        Some(match number {
            1 => Self::ApplicationCursor,
            5 => Self::ReverseVideo,
            7 => Self::Wrap,
            25 => Self::CursorVisible,
            66 => Self::ApplicationKeypad,
            1004 => Self::FocusEvents,
            2004 => Self::BracketedPaste,
            2031 => Self::ThemeReports,
            _ => return None,
        })
    }

    pub(crate) fn public(number: u16) -> Option<Self> {
        Some(match number {
            4 => Self::Insert,
            20 => Self::NewLine,
            _ => return None,
        })
    }
}

/// On or off, as a program says it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Turn {
    On,
    Off,
}

/// What of the mouse is reported.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mouse {
    Presses,
    Buttons,
    Drags,
    Moves,
}

impl Mouse {
    pub(crate) const ALL: [(Self, u16); 4] =
        [(Self::Presses, 9), (Self::Buttons, 1000), (Self::Drags, 1002), (Self::Moves, 1003)];
}

/// How the mouse is reported, if not in the old way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum MouseEncoding {
    Utf8,
    Sgr,
    Urxvt,
    Pixels,
}

impl MouseEncoding {
    pub(crate) const ALL: [(Self, u16); 4] =
        [(Self::Utf8, 1005), (Self::Sgr, 1006), (Self::Urxvt, 1015), (Self::Pixels, 1016)];
}

/// One of several modes, of which the last one asked for holds. In most terminals ending any of them ends all, in
/// others only itself; so that each viewer's terminal can decide, both are kept as they were said.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Choice<T> {
    pub(crate) asked: Option<T>,
    pub(crate) ended: Option<T>,
}

impl<T> Default for Choice<T> {
    fn default() -> Self {
        Self { asked: None, ended: None }
    }
}

impl<T: Copy + PartialEq> Choice<T> {
    fn turn(&mut self, which: T, turn: Turn) {
        match turn {
            Turn::On => *self = Self { asked: Some(which), ended: None },
            Turn::Off if self.asked == Some(which) => *self = Self::default(),
            Turn::Off => self.ended = self.asked.map(|_| which),
        }
    }
}

/// All modes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Modes {
    switches: u16,
    pub(crate) mouse: Choice<Mouse>,
    pub(crate) encoding: Choice<MouseEncoding>,
    /// What the wheel does in the alternate screen; terminals differ in what holds if nobody has said.
    pub(crate) alternate_scroll: Option<Turn>,
    /// CSI n SP q, 0 to 6; 0 is the viewer's own.
    pub(crate) cursor_shape: u16,
    /// What has been said of blinking since the shape was.
    pub(crate) cursor_blink: Option<Turn>,
}

impl Default for Modes {
    fn default() -> Self {
        Self {
            switches: Switch::Wrap as u16 | Switch::CursorVisible as u16,
            mouse: Choice::default(),
            encoding: Choice::default(),
            alternate_scroll: None,
            cursor_shape: 0,
            cursor_blink: None,
        }
    }
}

impl Modes {
    pub(crate) fn has(&self, switch: Switch) -> bool {
        self.switches & switch as u16 != 0
    }

    pub(crate) fn turn(&mut self, switch: Switch, turn: Turn) {
        match turn {
            Turn::On => self.switches |= switch as u16,
            Turn::Off => self.switches &= !(switch as u16),
        }
    }

    /// Sets a private mode that only has to be remembered; others are not known here.
    pub(crate) fn turn_private(&mut self, number: u16, turn: Turn) {
        if let Some(switch) = Switch::private(number) {
            self.turn(switch, turn);
        } else if let Some((mouse, _)) = Mouse::ALL.into_iter().find(|(_, known)| *known == number) {
            self.mouse.turn(mouse, turn);
        } else if let Some((encoding, _)) = MouseEncoding::ALL.into_iter().find(|(_, known)| *known == number)
        {
            self.encoding.turn(encoding, turn);
        } else if number == 1007 {
            self.alternate_scroll = Some(turn);
        } else if number == 12 {
            self.cursor_blink = Some(turn);
        }
    }

    /// What CSI ! p puts back.
    pub(crate) fn reset_softly(&mut self) {
        for switch in [Switch::Insert, Switch::ApplicationCursor, Switch::ApplicationKeypad] {
            self.turn(switch, Turn::Off);
        }
        for switch in [Switch::Wrap, Switch::CursorVisible] {
            self.turn(switch, Turn::On);
        }
    }
}
