//! CSI … m: how characters look, read from a program and said to a viewer.

use crate::csi::Csi;
use crate::style::{Attribute, Colour, Style, Underline};
use crate::writer::Writer;

/// Changes a style as a sequence says.
pub(crate) fn read(style: &mut Style, csi: &Csi<'_>) {
    let mut groups = csi.groups();
    while let Some(group) = groups.next() {
        let Some((first, rest)) = group.split_first() else { continue };
        match first {
            0 => *style = Style::default(),
            4 => style.underline = underline(rest.first().copied().unwrap_or(1)),
            6 => style.attributes.add(Attribute::Blink),
            21 => style.underline = Underline::DoubleBy21,
            22 => {
                style.attributes.remove(Attribute::Bold);
                style.attributes.remove(Attribute::Dim);
            }
            23 => style.attributes.remove(Attribute::Italic),
            24 => style.underline = Underline::None,
            25 => style.attributes.remove(Attribute::Blink),
            27 => style.attributes.remove(Attribute::Inverse),
            28 => style.attributes.remove(Attribute::Hidden),
            29 => style.attributes.remove(Attribute::Struck),
            55 => style.attributes.remove(Attribute::Overlined),
            30..=37 => style.foreground = palette(first - 30),
            40..=47 => style.background = palette(first - 40),
            90..=97 => style.foreground = palette(first - 90 + 8),
            100..=107 => style.background = palette(first - 100 + 8),
            39 => style.foreground = Colour::Default,
            49 => style.background = Colour::Default,
            59 => style.line = Colour::Default,
            38 | 48 | 58 => {
                let colour = if rest.is_empty() { separate(&mut groups) } else { joined(rest) };
                let Some(colour) = colour else { continue };
                match first {
                    38 => style.foreground = colour,
                    48 => style.background = colour,
                    _ => style.line = colour,
                }
            }
            number => {
                if let Some((attribute, _)) = Attribute::ALL.into_iter().find(|(_, known)| known == number) {
                    style.attributes.add(attribute);
                }
            }
        }
    }
}

/// `38:5:n`, `38:2:r:g:b` or `38:2:space:r:g:b`.
fn joined(numbers: &[u16]) -> Option<Colour> {
    match numbers {
        [5, index, ..] => Some(Colour::Palette(u8::try_from(*index).ok()?)),
        [2, _, red, green, blue, ..] | [2, red, green, blue] => rgb(*red, *green, *blue),
        _ => None,
    }
}

/// `38;5;n` or `38;2;r;g;b`.
fn separate<'a>(groups: &mut impl Iterator<Item = &'a [u16]>) -> Option<Colour> {
    let mut next = || groups.next().and_then(|group| group.first().copied());
    match next()? {
        5 => Some(Colour::Palette(u8::try_from(next()?).ok()?)),
        2 => rgb(next()?, next()?, next()?),
        _ => None,
    }
}

fn rgb(red: u16, green: u16, blue: u16) -> Option<Colour> {
    Some(Colour::Rgb(u8::try_from(red).ok()?, u8::try_from(green).ok()?, u8::try_from(blue).ok()?))
}

fn palette(index: u16) -> Colour {
    Colour::Palette(u8::try_from(index).unwrap_or(0))
}

fn underline(number: u16) -> Underline {
    match number {
        0 => Underline::None,
        2 => Underline::Double,
        3 => Underline::Curly,
        4 => Underline::Dotted,
        5 => Underline::Dashed,
        _ => Underline::Single,
    }
}

/// Says a whole style. What older terminals misread stands in sequences of its own.
pub(crate) fn write(style: &Style, writer: &mut Writer) {
    writer.text("\x1b[0");
    for (attribute, number) in Attribute::ALL {
        if style.attributes.has(attribute) {
            writer.text(";");
            writer.number(number);
        }
    }
    if style.underline == Underline::Single {
        writer.text(";4");
    }
    write_colour(style.foreground, Ground::Fore, writer);
    write_colour(style.background, Ground::Back, writer);
    writer.text("m");
    match style.underline {
        Underline::None | Underline::Single => {}
        Underline::Double => writer.text("\x1b[4:2m"),
        Underline::DoubleBy21 => writer.text("\x1b[21m"),
        Underline::Curly => writer.text("\x1b[4:3m"),
        Underline::Dotted => writer.text("\x1b[4:4m"),
        Underline::Dashed => writer.text("\x1b[4:5m"),
    }
    match style.line {
        Colour::Default => {}
        Colour::Palette(index) => writer.numbers("\x1b[58:5:", &[u16::from(index)], "m"),
        Colour::Rgb(red, green, blue) => {
            writer.text("\x1b[58:2:");
            for part in [red, green, blue] {
                writer.text(":");
                writer.number(u16::from(part));
            }
            writer.text("m");
        }
    }
}

/// Which of a cell's two colours.
#[derive(Clone, Copy)]
enum Ground {
    Fore = 30,
    Back = 40,
}

fn write_colour(colour: Colour, ground: Ground, writer: &mut Writer) {
    let base = ground as u16;
    match colour {
        Colour::Default => {}
        Colour::Palette(index @ 0..8) => writer.numbers(";", &[base + u16::from(index)], ""),
        Colour::Palette(index @ 8..16) => writer.numbers(";", &[base + 60 + u16::from(index) - 8], ""),
        Colour::Palette(index) => writer.numbers(";", &[base + 8, 5, u16::from(index)], ""),
        Colour::Rgb(red, green, blue) => {
            writer.numbers(";", &[base + 8, 2, u16::from(red), u16::from(green), u16::from(blue)], "");
        }
    }
}
