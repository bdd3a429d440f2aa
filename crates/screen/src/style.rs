//! How a cell looks, apart from its character.

/// A colour as the program named it: what palette entries look like is the viewer's choice.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Colour {
    #[default]
    Default,
    Palette(u8),
    Rgb(u8, u8, u8),
}

/// The line below a character. The double one is kept as it was said, because terminals differ in which they know.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Underline {
    #[default]
    None,
    Single,
    /// CSI 4 : 2 m.
    Double,
    /// CSI 21 m.
    DoubleBy21,
    Curly,
    Dotted,
    Dashed,
}

/// What a character can be beside coloured and underlined.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Attribute {
    Bold = 1,
    Dim = 1 << 1,
    Italic = 1 << 2,
    Blink = 1 << 3,
    Inverse = 1 << 4,
    Hidden = 1 << 5,
    Struck = 1 << 6,
    Overlined = 1 << 7,
}

impl Attribute {
    /// Each with the number that SGR turns it on with.
    pub(crate) const ALL: [(Self, u16); 8] = [
        (Self::Bold, 1),
        (Self::Dim, 2),
        (Self::Italic, 3),
        (Self::Blink, 5),
        (Self::Inverse, 7),
        (Self::Hidden, 8),
        (Self::Struck, 9),
        (Self::Overlined, 53),
    ];
}

/// A set of attributes, in one byte because every cell has one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Attributes(u8);

impl Attributes {
    pub(crate) fn has(self, attribute: Attribute) -> bool {
        self.0 & attribute as u8 != 0
    }

    pub(crate) fn add(&mut self, attribute: Attribute) {
        self.0 |= attribute as u8;
    }

    pub(crate) fn remove(&mut self, attribute: Attribute) {
        self.0 &= !(attribute as u8);
    }
}

/// How a cell looks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Style {
    pub(crate) foreground: Colour,
    pub(crate) background: Colour,
    pub(crate) line: Colour,
    pub(crate) underline: Underline,
    pub(crate) attributes: Attributes,
}

impl Style {
    /// What an erased cell looks like: terminals keep the background and nothing else.
    pub(crate) fn erased(background: Colour) -> Self {
        Self { background, ..Self::default() }
    }
}
