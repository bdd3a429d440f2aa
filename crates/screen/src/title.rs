//! The window's title and the stack on which programs put it while they show their own. The text is from inside and
//! ends up in sequences that we send, so that nothing but printable characters is kept of it.

/// Bytes of a title; what is longer is cut.
const LONGEST: usize = 512;
/// Titles on the stack, as many as xterm keeps. When there are more, the oldest is forgotten.
const DEEPEST: usize = 10;

/// Which of a window's names is put onto the stack. Terminals with one name treat all as the title.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kept {
    Both = 0,
    Icon = 1,
    Title = 2,
}

impl Kept {
    pub(crate) fn read(number: u16) -> Option<Self> {
        [Self::Both, Self::Icon, Self::Title].into_iter().find(|kept| *kept as u16 == number)
    }
}

/// A title that was put onto the stack.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Pushed {
    pub(crate) kept: Kept,
    pub(crate) title: Option<String>,
}

/// A title and those beneath it. While no program has set one, it is the viewer's own, which is not known here and
/// also is beneath all others.
#[derive(Clone, Debug, Default)]
pub(crate) struct Titles {
    pub(crate) current: Option<String>,
    pub(crate) beneath: Vec<Pushed>,
}

impl PartialEq for Titles {
    /// What is beneath the shorter stack is a viewer's own.
    fn eq(&self, other: &Self) -> bool {
        let pairs = self.beneath.iter().rev().zip(other.beneath.iter().rev());
        self.current == other.current && pairs.into_iter().all(|(left, right)| left == right)
    }
}

impl Titles {
    pub(crate) fn set(&mut self, text: &[u8]) {
        self.current = Some(printable(text));
    }

    pub(crate) fn push(&mut self, kept: Kept) {
        if self.beneath.len() == DEEPEST {
            self.beneath.remove(0);
        }
        self.beneath.push(Pushed { kept, title: self.current.clone() });
    }

    /// Takes what was put last, and the title with it unless it was the icon's name. A program that takes more than
    /// it has put gets the viewer's own title.
    pub(crate) fn pop(&mut self, kept: Kept) {
        let is_icon = kept == Kept::Icon;
        let place = self.beneath.iter().rposition(|pushed| (pushed.kept == Kept::Icon) == is_icon);
        let title = place.and_then(|place| self.beneath.remove(place).title);
        if !is_icon {
            self.current = title;
        }
    }
}

/// What of a text can stand in a title.
pub(crate) fn printable(text: &[u8]) -> String {
    let mut title = String::new();
    for character in String::from_utf8_lossy(text).chars().filter(|character| !character.is_control()) {
        if title.len() + character.len_utf8() > LONGEST {
            break;
        }
        title.push(character);
    }
    title.shrink_to_fit();
    title
}
